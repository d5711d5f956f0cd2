//! Which events a command is asked for.

use clap::Args;
use etl_format::read::{FileOrder, Header, Record, Source};
use etl_format::{Clock, Guid};
use jiff::Timestamp;

use etl_schema::store::SchemaStore;

use crate::error::Failure;
use crate::escape::Printable;
use etl_schema::providers;

/// Selects events; every kind of condition that is given must hold, and of several values of one
/// kind any.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct FilterArgs {
    /// Only events of this provider: a GUID, or a name. May be given more than once
    #[arg(long, short, value_name = "GUID|NAME")]
    provider: Vec<String>,
    /// Only events with this id
    #[arg(long, value_name = "N", value_parser = number::<u16>)]
    id: Vec<u16>,
    /// Only events with this opcode (the type of a kernel or classic event)
    #[arg(long, value_name = "N", value_parser = number::<u8>)]
    opcode: Vec<u8>,
    /// Only events of at most this level
    #[arg(long, value_name = "N", value_parser = number::<u8>)]
    level: Option<u8>,
    /// Only events with any of these keywords (or with none)
    #[arg(long, value_name = "MASK", value_parser = number::<u64>)]
    keyword: Option<u64>,
    /// Only events of this process
    #[arg(long, value_name = "PID", value_parser = number::<u32>)]
    pid: Vec<u32>,
    /// Only events of this thread
    #[arg(long, value_name = "TID", value_parser = number::<u32>)]
    tid: Vec<u32>,
    /// Only events from this time on: seconds since the start (1.5), or UTC (2020-07-29T00:07:01Z)
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only events before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

/// A decimal number, or a hexadecimal one after `0x`.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let value = parsed.map_err(|_| "expected a number, decimal or 0x and hexadecimal")?;
    T::try_from(value).map_err(|_| "the number is too large".to_owned())
}

/// The selection, with times as raw timestamps of one trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    providers: Vec<Guid>,
    /// Names that no table knows.
    names: Vec<String>,
    ids: Vec<u16>,
    opcodes: Vec<u8>,
    level: Option<u8>,
    keyword: Option<u64>,
    pids: Vec<u32>,
    tids: Vec<u32>,
    from: Option<i64>,
    to: Option<i64>,
    all: bool,
}

impl FilterArgs {
    /// Makes the selection for a trace with this clock.
    pub fn compile(&self, clock: &Clock) -> Result<Filter, Failure> {
        let mut filter = Filter {
            ids: self.id.clone(),
            opcodes: self.opcode.clone(),
            level: self.level,
            keyword: self.keyword,
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            from: self.from.as_deref().map(|t| timestamp(t, clock)).transpose()?,
            to: self.to.as_deref().map(|t| timestamp(t, clock)).transpose()?,
            ..Filter::default()
        };
        if let (Some(from), Some(to)) = (filter.from, filter.to)
            && from >= to
        {
            return Err(Failure::new("--to", "is not after --from: no event lies between them")
                .hint("--from 1.5 --to 2 takes half a second"));
        }
        for provider in &self.provider {
            match provider.parse().ok().or_else(|| providers::by_name(provider)) {
                Some(guid) => filter.providers.push(guid),
                // Not known beforehand: its events may tell it.
                None => filter.names.push(provider.clone()),
            }
        }
        filter.all = filter.admits_all();
        Ok(filter)
    }
}

/// A raw timestamp from what the user wrote.
fn timestamp(text: &str, clock: &Clock) -> Result<i64, Failure> {
    if let Ok(seconds) = text.trim_end_matches('s').parse::<f64>()
        && seconds.is_finite()
    {
        // Seconds typed by a person are rounded to the 100 ns of a FILETIME.
        let since = (seconds * 1e7).round() as i64;
        return Ok(clock.timestamp_at(clock.start_time.saturating_add(since)));
    }
    let time: Timestamp = text.parse().map_err(|_| {
        Failure::new(text, "is no time")
            .hint("write seconds since the start of the trace (1.5), or UTC (2020-07-29T00:07:01Z)")
    })?;
    let filetime =
        time.as_nanosecond() / 100 + i128::from(etl_format::constants::FILETIME_UNIX_EPOCH);
    Ok(clock.timestamp_at(i64::try_from(filetime).unwrap_or(i64::MAX)))
}

impl Filter {
    /// Whether there are names that only the trace can explain.
    pub fn asks_for_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Takes from what was learned of the trace, or given, which providers go by the names that are
    /// asked for.
    pub fn learn_names(&mut self, store: &SchemaStore) {
        for name in &self.names {
            for guid in store.providers_named(name) {
                if !self.providers.contains(&guid) {
                    self.providers.push(guid);
                }
            }
        }
    }

    /// [`Filter::learn_names`] from all records of a trace, since some providers tell their names at the
    /// end only; a note on standard error names those that are asked for and that nobody goes by,
    /// neither in the trace nor in what was `given` beforehand.
    pub fn look_ahead<S: Source>(&mut self, records: &mut FileOrder<S>, given: &SchemaStore) {
        let mut names = SchemaStore::default();
        while let Ok(Some(record)) = records.next_record() {
            names.learn(&record);
        }
        self.learn_names(&names);
        for name in self.unknown_names(&names) {
            if self.unknown_names(given).any(|n| n == name) {
                tell!("note: no provider is called {}", Printable(name));
            }
        }
    }

    /// The names that nobody goes by, as far as the store knows.
    fn unknown_names<'a>(&'a self, store: &'a SchemaStore) -> impl Iterator<Item = &'a str> {
        let names = self.names.iter().map(String::as_str);
        names.filter(|name| store.providers_named(name).next().is_none())
    }

    fn admits_all(&self) -> bool {
        self.providers.is_empty()
            && self.names.is_empty()
            && self.ids.is_empty()
            && self.opcodes.is_empty()
            && self.level.is_none()
            && self.keyword.is_none()
            && self.pids.is_empty()
            && self.tids.is_empty()
            && self.from.is_none()
            && self.to.is_none()
    }

    /// Whether the user asked for this record.
    #[inline]
    pub fn admits(&self, record: &Record<'_>) -> bool {
        self.all || self.looks_right(record, record.process_id(), record.thread_id())
    }

    /// Whether the user asked for this record, where `called` knows more names of providers.
    #[inline]
    pub fn admits_called<'a>(
        &self,
        record: &Record<'_>,
        called: impl FnOnce(Guid) -> Option<&'a str>,
    ) -> bool {
        self.admits(record)
            || !self.names.is_empty()
                && record.provider().and_then(called).is_some_and(|name| self.names_it(name))
                && self.is_right_otherwise(record, record.process_id(), record.thread_id())
    }

    /// Whether the user asked for this record, which is about these processes and threads rather
    /// than those of its header.
    pub fn admits_about(
        &self,
        record: &Record<'_>,
        processes: impl Iterator<Item = u32>,
        threads: impl Iterator<Item = u32>,
    ) -> bool {
        // Of several, one that is wanted is enough.
        let mut processes = processes.filter(|id| self.pids.contains(id));
        let mut threads = threads.filter(|id| self.tids.contains(id));
        self.all || self.looks_right(record, processes.next(), threads.next())
    }

    fn looks_right(&self, record: &Record<'_>, process: Option<u32>, thread: Option<u32>) -> bool {
        self.is_of_provider(record) && self.is_right_otherwise(record, process, thread)
    }

    fn is_of_provider(&self, record: &Record<'_>) -> bool {
        (self.providers.is_empty() && self.names.is_empty())
            || record.provider().is_some_and(|p| self.providers.contains(&p))
            || (!self.names.is_empty()
                && providers::name_in_traits(record).is_some_and(|name| self.names_it(name)))
    }

    fn names_it(&self, name: &str) -> bool {
        self.names.iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    fn is_right_otherwise(
        &self,
        record: &Record<'_>,
        process: Option<u32>,
        thread: Option<u32>,
    ) -> bool {
        let timestamp = record.timestamp();
        if self.from.is_some_and(|from| timestamp < from)
            || self.to.is_some_and(|to| timestamp >= to)
        {
            return false;
        }
        let one_of = |wanted: &[u32], id: Option<u32>| {
            wanted.is_empty() || id.is_some_and(|id| wanted.contains(&id))
        };
        if !one_of(&self.pids, process) || !one_of(&self.tids, thread) {
            return false;
        }
        let (id, opcode, level, keyword) = match record.header() {
            Header::Event(h) => {
                let d = h.descriptor;
                (Some(d.id), Some(d.opcode), Some(d.level), Some(d.keyword))
            }
            Header::Full(h) => (None, Some(h.opcode), Some(h.level), None),
            Header::Instance(h) => (None, Some(h.full.opcode), Some(h.full.level), None),
            Header::Message(h) => (Some(h.number), None, None, None),
            Header::System(h) => (None, Some(h.hook as u8), None, None),
            Header::PerfInfo(h) => (None, Some(h.hook as u8), None, None),
            _ => (None, None, None, None),
        };
        // Conditions on what a kind of record does not have leave its records out, but for level
        // and keyword, by which sessions would not filter them either.
        (self.ids.is_empty() || id.is_some_and(|id| self.ids.contains(&id)))
            && (self.opcodes.is_empty() || opcode.is_some_and(|o| self.opcodes.contains(&o)))
            && self.level.is_none_or(|most| level.is_none_or(|l| l <= most))
            && self.keyword.is_none_or(|any| keyword.is_none_or(|k| k == 0 || k & any != 0))
    }
}
