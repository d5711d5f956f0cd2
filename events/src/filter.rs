//! Conditions by which events are selected: provider, id, opcode, level, keyword, process, thread
//! and time.
//!
//! Every kind of condition that is set must hold; of several values of one kind, one must match.
//! Level and keyword follow the rule of sessions ([`Enablement`]): level 0 and keyword 0 select
//! everything, and an event without a level or keyword passes.

use std::collections::BTreeSet;

use etl_analysis::RecordOwner;
use etl_analysis::{Analysis, ProcessLife, ProcessLives, ProcessSelector, Recording};
use etl_control::enable::{Enablement, EventKey};
use etl_format::constants::UNKNOWN_ID;
use etl_format::read::{Limits, Record, Records, Source};
use etl_format::{Guid, ProcessId, ThreadId, TimeRange};
use etl_schema::providers;
use etl_schema::store::SchemaStore;
use etl_schema::tables::windows;

use crate::Result;
use crate::context::Context;
use crate::header_fields::HeaderFields;
use crate::schemas;
use crate::subject::Subject;

/// A selection of events; the default selects all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The GUIDs of providers.
    pub providers: BTreeSet<Guid>,
    /// Further providers by names that only the trace can resolve: see [`Filter::learn_names`].
    pub names: Vec<String>,
    /// Ids of events.
    pub ids: Vec<u16>,
    /// Opcodes of events (types of kernel and classic events).
    pub opcodes: Vec<u8>,
    /// The enablement of a session that gets the events.
    pub enablement: Enablement,
    /// Processes by their ids.
    pub processes: Vec<ProcessId>,
    /// Processes by their ids and the times in which they have them, beside those of `processes`.
    pub lives: ProcessLives,
    /// Threads by their ids.
    pub threads: Vec<ThreadId>,
    /// The raw timestamps of the events.
    pub time: TimeRange,
}

impl Filter {
    /// Selects events of these providers, each a GUID, a name, or the end of a name that no other
    /// provider of Windows has.
    #[must_use]
    pub fn of_providers<T: AsRef<str>>(providers: impl IntoIterator<Item = T>) -> Self {
        let mut filter = Filter::default();
        for provider in providers {
            let provider = provider.as_ref();
            let guids = match provider.parse() {
                Ok(guid) => vec![guid],
                Err(_) => providers::all_by_name(provider),
            };
            if guids.is_empty() {
                // A provider that only the trace knows may be called so.
                filter.names.push(provider.to_owned());
                filter.providers.extend(windows::find(provider));
            }
            filter.providers.extend(guids);
        }
        filter
    }

    /// Selects the events of processes, and has none: for a trace that has no selected process.
    #[must_use]
    pub fn of_no_process() -> Self {
        // No process has this id, which stands for an unknown one.
        let none = ProcessLife {
            pid: ProcessId::new(UNKNOWN_ID),
            from: None,
            to: None,
        };
        Filter {
            lives: ProcessLives::from_iter([none]),
            ..Filter::default()
        }
    }

    /// Adds the processes that a selector selects. Reads the whole trace within `limits`, unless it
    /// selects none.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no such process.
    pub fn select_processes<S: Source>(
        &mut self,
        source: S,
        name: &str,
        selector: &ProcessSelector,
        limits: Limits,
    ) -> Result<()> {
        if selector.is_empty() {
            return Ok(());
        }
        let mut recording = Recording::open_within([(source, name)], limits)?;
        let machine = Analysis::new().run_for_owners(&mut recording, &mut ())?;
        let selector = selector.clone().find_others(&machine, &mut recording)?;
        self.lives.extend(selector.lives(&machine)?);
        Ok(())
    }

    /// Resolves names of providers from schemas that were read. Returns the names that are in none
    /// of them, nor the end of a name of Windows.
    pub fn learn_names(&mut self, store: &SchemaStore) -> Vec<String> {
        let mut unknown = Vec::new();
        for name in &self.names {
            let mut guids = store.providers_named(name).peekable();
            if guids.peek().is_none() && windows::find(name).is_none() {
                unknown.push(name.clone());
            }
            self.providers.extend(guids);
        }
        unknown
    }

    /// Resolves names of providers from all records of a trace, because some traces define them at
    /// their end. Returns the names that neither the trace nor `known` defines.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn learn_names_of_trace<S: Source>(
        &mut self,
        records: &mut Records<S>,
        known: &SchemaStore,
    ) -> Result<Vec<String>, etl_format::Error> {
        let names = schemas::read(records, SchemaStore::default())?;
        let mut unknown = self.learn_names(&names);
        unknown.retain(|name| known.providers_named(name).next().is_none());
        Ok(unknown)
    }

    /// Whether every event is selected.
    #[inline]
    #[must_use]
    pub fn admits_all(&self) -> bool {
        let Filter {
            providers,
            names,
            ids,
            opcodes,
            enablement,
            processes,
            ..
        } = self;
        let Filter {
            lives,
            threads,
            time,
            ..
        } = self;
        providers.is_empty()
            && names.is_empty()
            && ids.is_empty()
            && opcodes.is_empty()
            && processes.is_empty()
            && lives.is_empty()
            && threads.is_empty()
            && *enablement == Enablement::default()
            && time.is_everything()
    }

    /// Whether the event is selected.
    #[inline]
    #[must_use]
    pub fn admits(&self, record: &Record<'_>) -> bool {
        self.admits_provider(record) && self.admits_rest(record, stated_owner(record))
    }

    /// Whether the event is selected, where `provider_name` knows further names of providers, and
    /// `context` the threads that ran.
    #[inline]
    pub fn admits_with<'a>(
        &self,
        record: &Record<'_>,
        context: Option<&Context<'_>>,
        provider_name: impl FnOnce(Guid) -> Option<&'a str>,
    ) -> bool {
        let selects_ids = !self.processes.is_empty() || !self.lives.is_empty();
        let owner = match context {
            Some(context) if selects_ids || !self.threads.is_empty() => context.owner(record),
            _ => stated_owner(record),
        };
        let of_name = || {
            !self.names.is_empty()
                && record
                    .provider()
                    .and_then(provider_name)
                    .is_some_and(|n| self.has_name(n))
        };
        (self.admits_provider(record) || of_name()) && self.admits_rest(record, owner)
    }

    /// Whether the event is selected, with the processes and threads that it is about in place of
    /// those in its header. One of several is enough.
    #[must_use]
    pub fn admits_subject(&self, record: &Record<'_>, subject: &Subject) -> bool {
        let mut processes = subject
            .processes()
            .filter(|id| self.wants_process(*id, record));
        let mut threads = subject.threads().filter(|id| self.threads.contains(id));
        let owner = RecordOwner {
            process_id: processes.next(),
            thread_id: threads.next(),
        };
        self.admits_provider(record) && self.admits_rest(record, owner)
    }

    fn admits_provider(&self, record: &Record<'_>) -> bool {
        (self.providers.is_empty() && self.names.is_empty())
            || record
                .provider()
                .is_some_and(|p| self.providers.contains(&p))
            || (!self.names.is_empty()
                && providers::name_in_traits(record).is_some_and(|name| self.has_name(name)))
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    /// Whether the process that has an id at the time of an event is selected.
    fn wants_process(&self, id: ProcessId, record: &Record<'_>) -> bool {
        self.processes.contains(&id) || self.lives.has(id, record.timestamp())
    }

    /// All conditions but that on the provider.
    fn admits_rest(&self, record: &Record<'_>, owner: RecordOwner) -> bool {
        let timestamp = record.timestamp();
        if !self.time.contains(timestamp) {
            return false;
        }
        let any_process = self.processes.is_empty() && self.lives.is_empty();
        if !any_process
            && !owner
                .process_id
                .is_some_and(|id| self.wants_process(id, record))
        {
            return false;
        }
        let is_thread = |id: ThreadId| self.threads.contains(&id);
        if !self.threads.is_empty() && !owner.thread_id.is_some_and(is_thread) {
            return false;
        }
        if self.ids.is_empty()
            && self.opcodes.is_empty()
            && self.enablement == Enablement::default()
        {
            return true;
        }
        let HeaderFields {
            id,
            opcode,
            level,
            keyword,
            ..
        } = HeaderFields::of(record);
        let level = level.unwrap_or(0);
        let is_enabled = match id.zip(keyword) {
            Some((id, keyword)) => self.enablement.admits(&EventKey { id, level, keyword }),
            // A session filters by keywords and ids only the events that have both.
            None => self.enablement.admits_level(level),
        };
        // A condition on an id or opcode excludes the records that have none.
        (self.ids.is_empty() || id.is_some_and(|id| self.ids.contains(&id)))
            && (self.opcodes.is_empty() || opcode.is_some_and(|o| self.opcodes.contains(&o)))
            && is_enabled
    }
}

/// The process and the thread in the header of a record.
fn stated_owner(record: &Record<'_>) -> RecordOwner {
    RecordOwner {
        process_id: record.process_id(),
        thread_id: record.thread_id(),
    }
}
