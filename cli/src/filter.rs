//! The arguments of `dump` and `slice` that select events.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command};
use etl_control::enable::Enablement;
use etl_events::filter::Filter;
use etl_format::read::{Order, Source, Trace};
use etl_format::{Clock, FileTime, ProcessId, ThreadId, Ticks, TimeRange};
use etl_schema::store::SchemaStore;
use jiff::Timestamp;

use crate::error::Failure;
use crate::input::Input;
use crate::process_args::ProcessArgs;

/// Selects events. Every kind of condition must hold; of several values of one kind, one.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct FilterArgs {
    /// Select events of this provider, or of the only one of Windows whose name ends so after a
    /// hyphen; can be repeated, like all options of this section except --level, --keyword, --from
    /// and --to
    #[arg(long, short, value_name = "GUID|NAME", value_parser = ProviderName,
        hide_possible_values = true)]
    provider: Vec<String>,
    /// Select events with this id
    #[arg(long, value_name = "N", value_parser = number::<u16>)]
    id: Vec<u16>,
    /// Select events with this opcode (the type of a kernel or classic event)
    #[arg(long, value_name = "N", value_parser = number::<u8>)]
    opcode: Vec<u8>,
    /// Select events that a session with this level records: with at most this level; 0 selects all
    #[arg(long, value_name = "N", value_parser = number::<u8>)]
    level: Option<u8>,
    /// Select events that a session with this keyword mask records: with any of these keywords, or
    /// with none; 0 selects all
    #[arg(long, value_name = "MASK", value_parser = number::<u64>)]
    keyword: Option<u64>,
    /// Select events of this process
    #[arg(long, value_name = "PID", value_parser = number::<u32>)]
    pid: Vec<u32>,
    #[command(flatten)]
    processes: ProcessArgs,
    /// Select events of this thread
    #[arg(long, value_name = "TID", value_parser = number::<u32>)]
    tid: Vec<u32>,
    /// Select events at or after TIME: seconds since the start (1.5), a duration
    /// since then (250ms), or UTC (2020-07-29T00:07:01Z)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,
    /// Select events before TIME
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
}

/// Takes any text, and offers the names of providers to the completions of shells.
#[derive(Clone, Debug)]
struct ProviderName;

impl TypedValueParser for ProviderName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // A blank ends a word.
        let names = etl_providers::all().iter().map(|provider| provider.name());
        let mut names: Vec<&str> = names.filter(|name| !name.contains(' ')).collect();
        names.dedup();
        Some(Box::new(names.into_iter().map(PossibleValue::new)))
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let value: Option<u64> = etl_format::parse_number(text);
    let value = value.ok_or("expected a decimal number, or a hexadecimal one with 0x")?;
    T::try_from(value).map_err(|_| "the number is too large".to_owned())
}

/// The id of a thread, as a [`number`].
pub(crate) fn thread_id(text: &str) -> Result<ThreadId, String> {
    number(text).map(ThreadId::new)
}

impl FilterArgs {
    /// The processes that --process and --children select, of those in a trace.
    pub fn processes(&self, input: &mut Input) -> Result<Filter, Failure> {
        self.processes.filter(input)
    }

    /// Names and GUIDs of the providers that are selected.
    pub fn providers(&self) -> &[String] {
        &self.provider
    }

    /// Ids of the events that are selected.
    pub fn ids(&self) -> &[u16] {
        &self.id
    }

    /// The options with which events are selected by what their headers have, of those given.
    #[cfg(feature = "parquet")]
    pub fn options_of_headers(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--provider", !self.provider.is_empty()),
            ("--id", !self.id.is_empty()),
            ("--opcode", !self.opcode.is_empty()),
            ("--level", self.level.is_some()),
            ("--keyword", self.keyword.is_some()),
        ];
        given
            .into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(name, _)| name)
    }

    /// Whether threads are selected.
    #[cfg(feature = "parquet")]
    pub fn has_threads(&self) -> bool {
        !self.tid.is_empty()
    }

    /// Whether processes have to be found in the trace first.
    pub fn needs_processes(&self) -> bool {
        !self.processes.names().is_empty()
    }

    /// Whether events are selected by the processes or threads that they are about, which only the
    /// trace as a whole shows.
    pub fn has_subjects(&self) -> bool {
        self.needs_processes() || !self.pid.is_empty() || !self.tid.is_empty()
    }

    /// The selection for a trace with this clock; `processes` has the processes of the trace.
    pub fn filter(&self, clock: &Clock, processes: &Filter) -> Result<Filter, Failure> {
        self.filter_since(clock.start_time, clock, processes)
    }

    /// The same for traces that are read together: the seconds of --from and --to count from
    /// `start`.
    pub fn filter_since(
        &self,
        start: FileTime,
        clock: &Clock,
        processes: &Filter,
    ) -> Result<Filter, Failure> {
        let time = span_since(start, self.from.as_deref(), self.to.as_deref(), clock)?;
        Ok(Filter {
            ids: self.id.clone(),
            opcodes: self.opcode.clone(),
            enablement: Enablement::new(self.level.unwrap_or(0), self.keyword.unwrap_or(0)),
            processes: self.pid.iter().copied().map(ProcessId::new).collect(),
            lives: processes.lives.clone(),
            threads: self.tid.iter().copied().map(ThreadId::new).collect(),
            time,
            ..Filter::of_providers(&self.provider)
        })
    }
}

/// Resolves the names of providers that only the trace can define. Returns those that neither the
/// trace nor `known` defines: see [`note_unknown`].
///
/// # Errors
/// When a record cannot be read.
pub(crate) fn learn_names<S: Source>(
    filter: &mut Filter,
    trace: &mut Trace<S>,
    known: &SchemaStore,
) -> Result<Vec<String>, etl_format::Error> {
    if filter.names.is_empty() {
        return Ok(Vec::new());
    }
    filter.learn_names_of_trace(&mut trace.records(Order::File)?, known)
}

/// Notes on standard error that nothing defines these names of providers.
pub(crate) fn note_unknown<T: AsRef<str>>(names: impl IntoIterator<Item = T>) {
    for name in names {
        let name = name.as_ref();
        stderr_line!("note: unknown provider {name}: neither the trace nor the tables define it");
    }
}

/// The raw timestamps of --from and --to, for a trace with this clock.
pub(crate) fn span(
    from: Option<&str>,
    to: Option<&str>,
    clock: &Clock,
) -> Result<TimeRange, Failure> {
    span_since(clock.start_time, from, to, clock)
}

/// The same, where seconds count from `start`.
fn span_since(
    start: FileTime,
    from: Option<&str>,
    to: Option<&str>,
    clock: &Clock,
) -> Result<TimeRange, Failure> {
    let from = from
        .map(|t| timestamp("--from", t, start, clock))
        .transpose()?;
    let to = to.map(|t| timestamp("--to", t, start, clock)).transpose()?;
    match (from, to) {
        (Some(from), Some(to)) if from >= to => Err(Failure::new("--to", "must be after --from")
            .hint("an example: --from 1.5 --to 2 selects half a second")),
        (from, to) => Ok(TimeRange::new(from, to)),
    }
}

/// A number of seconds, or a duration (`1.5s`, `250ms`, `20us`, `100ns`).
fn seconds(text: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    let of = |(unit, size)| Some((text.strip_suffix(unit)?, size));
    let (number, size) = units.into_iter().find_map(of).unwrap_or((text, 1.0));
    let value: f64 = number.trim_end().parse().ok()?;
    Some(value * size).filter(|seconds| seconds.is_finite())
}

/// The raw timestamp of a time as the user writes it with an option.
fn timestamp(option: &str, text: &str, start: FileTime, clock: &Clock) -> Result<Ticks, Failure> {
    if let Some(seconds) = seconds(text) {
        if seconds < 0.0 {
            return Err(Failure::new(
                format!("{option} {text}"),
                "is before the start of the trace",
            )
            .hint("write seconds since the start (1.5), or UTC (2020-07-29T00:07:01Z)"));
        }
        // Rounded to the 100 ns of a FILETIME.
        let since = (seconds * 1e7).round() as i64;
        let time = FileTime::new(start.get().saturating_add(since));
        return Ok(clock.ticks_at(time));
    }
    let time: Timestamp = text.parse().map_err(|_| {
        Failure::new(option, format!("{text:?} is not a time"))
            .hint("write seconds since the start of the trace (1.5), or UTC (2020-07-29T00:07:01Z)")
    })?;
    let filetime =
        time.as_nanosecond() / 100 + i128::from(etl_format::constants::FILETIME_UNIX_EPOCH);
    Ok(clock.ticks_at(FileTime::new(i64::try_from(filetime).unwrap_or(i64::MAX))))
}
