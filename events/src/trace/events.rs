//! The events of a trace: a builder that selects them, and a reader that lends them.

use etl_format::{FileTime, ProcessId, ThreadId, TimeRange};

use super::files::{Files, Naming};
use super::pass::Pass;
use super::query::Query;
use crate::Result;
use crate::conditions::{Conditions, NoCondition};
use crate::event::Event;

/// The events of a trace in time order: choose which, then read them with [`Events::next`].
///
/// Conditions of different kinds must all hold. If there are several providers, ids, processes,
/// event names or texts, one must match. The trace is read when the first event is asked for: first
/// as a whole, for its schemas and names, then event by event.
///
/// An event borrows from its reader, so this is not an `Iterator`; [`Events::into_owned`] makes
/// one.
///
/// ```
/// # use etl_events::testing::trace;
/// let mut trace = etl_events::from_bytes(trace())?;
/// let mut events = trace.events().provider("Microsoft-Windows-DotNETRuntime").event("GCStart*");
/// while let Some(event) = events.next()? {
///     println!("{} {:?} {:?}", event.time(), event.get("Count"), event.get("Reason"));
/// }
/// # Ok::<(), etl_events::Error>(())
/// ```
#[derive(Debug)]
pub struct Events<'t> {
    query: Query,
    state: State<'t>,
    unknown_providers: Vec<String>,
}

#[derive(Debug)]
enum State<'t> {
    /// Nothing was read.
    Waiting(&'t mut Files),
    Reading(Box<Pass<'t>>),
    /// The first pass has failed.
    Failed,
}

impl<'t> Events<'t> {
    pub(super) fn new(files: &'t mut Files) -> Self {
        Events {
            query: Query::default(),
            state: State::Waiting(files),
            unknown_providers: Vec::new(),
        }
    }

    /// Selects events of a provider: its GUID, its name, or the end of a name after a hyphen that
    /// no other provider of Windows has (`DotNETRuntime`).
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut events = trace.events().provider("12345678-0001-0002-0303-030303030303");
    /// assert_eq!(events.next()?.map(|event| event.level()), Some(Some(2)));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.query.providers.push(provider.into());
        self
    }

    /// Selects events with this name; `*` is any text, `?` any character.
    #[must_use]
    pub fn event(mut self, name: &str) -> Self {
        self.change_conditions(|conditions| conditions.event(name));
        self
    }

    /// Selects events with this id.
    #[must_use]
    pub fn id(mut self, id: u16) -> Self {
        self.query.ids.push(id);
        self
    }

    /// Selects events with this opcode: the type of a kernel or classic event.
    #[must_use]
    pub fn opcode(mut self, opcode: u8) -> Self {
        self.query.opcodes.push(opcode);
        self
    }

    /// Selects the events that a session with this level records: with at most this level, or
    /// without a level. 0 selects all.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// assert!(trace.events().id(5).level(2).next()?.is_some());
    /// assert!(trace.events().id(5).level(1).next()?.is_none());
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn level(mut self, level: u8) -> Self {
        self.query.level = level;
        self
    }

    /// Selects the events that a session with this mask records: with any of these keywords, or
    /// without keywords. 0 selects all.
    #[must_use]
    pub fn keyword(mut self, mask: u64) -> Self {
        self.query.keyword = mask;
        self
    }

    /// Selects events of a process: by its id, or by the file name of its program with or without
    /// `.exe`. Of a trace without such a process, [`Events::next`] returns an error.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let pid = trace.events().process("app").next()?.and_then(|event| event.pid());
    /// assert_eq!(pid, Some(etl_format::ProcessId::new(100)));
    /// let error = trace.events().process("other").next().unwrap_err();
    /// assert!(error.to_string().contains("other"));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn process(mut self, process: impl Into<String>) -> Self {
        self.query.processes.insert(process.into());
        self
    }

    /// Also selects the processes that the processes of [`Events::process`] started, recursively.
    #[must_use]
    pub fn with_children(mut self) -> Self {
        self.query.children = true;
        self
    }

    /// Selects events with this process id, whether or not the trace describes such a process.
    ///
    /// ```
    /// use etl_format::ProcessId;
    ///
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut events = trace.events().pid(ProcessId::new(100));
    /// assert_eq!(events.next()?.map(|event| event.name()), Some("GCStart_V1"));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn pid(mut self, pid: ProcessId) -> Self {
        self.query.pids.push(pid);
        self
    }

    /// Selects events of the thread with this id.
    #[must_use]
    pub fn thread(mut self, tid: ThreadId) -> Self {
        self.query.threads.push(tid);
        self
    }

    /// Selects events in a range of time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use etl_format::TimeRange;
    ///
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let from = trace.start_time().checked_add(Duration::from_millis(2));
    /// let mut events = trace.events().between(TimeRange::new(from, None));
    /// let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.name(), "GCEnd_V1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn between(mut self, range: TimeRange<FileTime>) -> Self {
        self.query.time = range;
        self
    }

    /// Selects events by a field or a column: `FileName ~ *.dll`, `ProcessId = 4`, `level <= 3`.
    /// The operators are `=`, `!=`, `<`, `<=`, `>`, `>=` and `~`, which compares with a pattern.
    ///
    /// # Errors
    /// For a condition that cannot be read, or that no value could fulfil.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut events = trace.events().condition("Count = 7")?.condition("process = app.exe")?;
    /// let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.name(), "GCStart_V1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn condition(mut self, condition: &str) -> Result<Self, NoCondition> {
        let conditions = std::mem::take(&mut self.query.conditions);
        self.query.conditions = conditions.field(condition)?;
        Ok(self)
    }

    /// Selects events with this text in a value of a field, in the message, or in an undecoded
    /// payload, case-insensitively.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut events = trace.events().text("DENIED");
    /// let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.payload_text(), "access denied");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.change_conditions(|conditions| conditions.text(text));
        self
    }

    /// Names processes, threads and the drives in paths, also if the trace was opened without
    /// names. The trace is read for them.
    #[must_use]
    pub fn with_names(mut self) -> Self {
        self.query.naming = Some(Naming::Names);
        self
    }

    /// Returns events without names of processes and threads, also if the trace was opened with
    /// names.
    #[must_use]
    pub fn without_names(mut self) -> Self {
        self.query.naming = Some(Naming::None);
        self
    }

    /// Also names what is at addresses: a method of a module, or an image.
    #[must_use]
    pub fn resolve_addresses(mut self) -> Self {
        self.query.naming = Some(Naming::Addresses);
        self
    }

    /// Paths keep the devices of volumes (`\Device\HarddiskVolume2`) instead of drives.
    #[must_use]
    pub fn raw_paths(mut self) -> Self {
        self.query.raw_paths = true;
        self
    }

    /// Includes stale records: copies of records that a merge left in the first buffer.
    #[must_use]
    pub fn with_stale_records(mut self) -> Self {
        self.query.stale = true;
        self
    }

    fn change_conditions(&mut self, change: impl FnOnce(Conditions) -> Conditions) {
        let conditions = std::mem::take(&mut self.query.conditions);
        self.query.conditions = change(conditions);
    }

    /// The next event, or `None` at the end.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no selected process. Damaged regions are skipped,
    /// unless the trace was opened with [`OpenOptions::strict`](crate::OpenOptions::strict).
    #[expect(
        clippy::should_implement_trait,
        reason = "events borrow from their reader"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>> {
        if let State::Waiting(_) = self.state
            && let State::Waiting(files) = std::mem::replace(&mut self.state, State::Failed)
        {
            let started = Pass::start(files, &self.query)?;
            self.state = State::Reading(Box::new(started.pass));
            self.unknown_providers = started.unknown_providers;
        }
        match &mut self.state {
            State::Reading(pass) => pass.next(),
            State::Waiting(_) | State::Failed => Ok(None),
        }
    }

    /// The selected names of providers that neither the tables nor the trace define, after the
    /// first event was asked for.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut events = trace.events().provider("Microsoft-Windows-DotNETRuntmie");
    /// assert!(events.next()?.is_none());
    /// assert_eq!(events.unknown_providers(), ["Microsoft-Windows-DotNETRuntmie"]);
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn unknown_providers(&self) -> &[String] {
        &self.unknown_providers
    }
}
