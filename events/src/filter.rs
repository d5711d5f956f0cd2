//! Conditions by which events are selected: provider, id, opcode, level, keyword, process, thread
//! and time.
//!
//! Every kind of condition that is set must hold; if it has several values, one must match.
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
    /// Further processes, by their ids and the times in which they have them.
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
        // No process has this id: it means that the process is unknown.
        let no_process = ProcessLife {
            pid: ProcessId::new(UNKNOWN_ID),
            from: None,
            to: None,
        };
        Filter {
            lives: ProcessLives::from_iter([no_process]),
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
    /// their end. Returns the names that neither the trace nor `store` defines.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn learn_names_of_trace<S: Source>(
        &mut self,
        records: &mut Records<S>,
        store: &SchemaStore,
    ) -> Result<Vec<String>, etl_format::Error> {
        let learned = schemas::read(records, SchemaStore::default())?;
        let mut unknown = self.learn_names(&learned);
        unknown.retain(|name| store.providers_named(name).next().is_none());
        Ok(unknown)
    }

    /// Whether every event is selected.
    #[inline]
    #[must_use]
    pub fn admits_all(&self) -> bool {
        self.providers.is_empty()
            && self.names.is_empty()
            && self.ids.is_empty()
            && self.opcodes.is_empty()
            && self.processes.is_empty()
            && self.lives.is_empty()
            && self.threads.is_empty()
            && self.enablement == Enablement::default()
            && self.time.is_everything()
    }

    /// Whether the event is selected.
    #[inline]
    #[must_use]
    pub fn admits(&self, record: &Record<'_>) -> bool {
        self.admits_provider(record) && self.admits_rest(record, stated_owner(record))
    }

    /// Whether the event is selected. `provider_name` knows further names of providers, and
    /// `context` the threads that ran.
    #[inline]
    pub fn admits_with<'a>(
        &self,
        record: &Record<'_>,
        context: Option<&Context<'_>>,
        provider_name: impl FnOnce(Guid) -> Option<&'a str>,
    ) -> bool {
        let owner = match context {
            Some(context) if self.selects_processes() || !self.threads.is_empty() => {
                context.owner(record)
            }
            _ => stated_owner(record),
        };
        let is_provider =
            self.admits_provider(record) || self.admits_provider_name(record, provider_name);
        is_provider && self.admits_rest(record, owner)
    }

    /// Whether the event is selected by the processes and threads that it is about, instead of the
    /// process and thread in its header. If it is about several, one of them is enough.
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

    /// Whether `provider_name` has one of the selected names for the provider of a record.
    #[inline]
    fn admits_provider_name<'a>(
        &self,
        record: &Record<'_>,
        provider_name: impl FnOnce(Guid) -> Option<&'a str>,
    ) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let Some(provider) = record.provider() else {
            return false;
        };
        provider_name(provider).is_some_and(|name| self.has_name(name))
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    fn selects_processes(&self) -> bool {
        !self.processes.is_empty() || !self.lives.is_empty()
    }

    /// Whether the process that has an id at the time of an event is selected.
    fn wants_process(&self, id: ProcessId, record: &Record<'_>) -> bool {
        self.processes.contains(&id) || self.lives.has(id, record.timestamp())
    }

    /// All conditions but the one on the provider.
    fn admits_rest(&self, record: &Record<'_>, owner: RecordOwner) -> bool {
        self.time.contains(record.timestamp())
            && self.admits_owner(record, owner)
            && self.admits_numbers(record)
    }

    /// The conditions on the process and the thread.
    fn admits_owner(&self, record: &Record<'_>, owner: RecordOwner) -> bool {
        if self.selects_processes() {
            let Some(id) = owner.process_id else {
                return false;
            };
            if !self.wants_process(id, record) {
                return false;
            }
        }
        match owner.thread_id {
            _ if self.threads.is_empty() => true,
            Some(id) => self.threads.contains(&id),
            None => false,
        }
    }

    /// The conditions on id, opcode, level and keyword.
    fn admits_numbers(&self, record: &Record<'_>) -> bool {
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
        let is_enabled = match (id, keyword) {
            (Some(id), Some(keyword)) => self.enablement.admits(&EventKey { id, level, keyword }),
            // A session filters by keywords and ids only the events that have both.
            _ => self.enablement.admits_level(level),
        };
        // A condition on an id or opcode excludes the records that have none.
        (self.ids.is_empty() || id.is_some_and(|id| self.ids.contains(&id)))
            && (self.opcodes.is_empty() || opcode.is_some_and(|o| self.opcodes.contains(&o)))
            && is_enabled
    }
}

/// The process and the thread that a record states: for events of connections and of disks in its
/// payload, otherwise in its header. Unknown ids can be selected.
fn stated_owner(record: &Record<'_>) -> RecordOwner {
    let owner = etl_analysis::owner(record);
    RecordOwner {
        process_id: owner.process_id.or(record.process_id()),
        thread_id: owner.thread_id.or(record.thread_id()),
    }
}
