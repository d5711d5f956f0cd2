//! The arguments of `dump` and `slice` that select events.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command};
use etl_control::enable::Enablement;
use etl_events::filter::Filter;
use etl_events::time::{TimePoint, TimePointError};
use etl_format::read::{Order, Source, Trace};
use etl_format::{Clock, FileTime, ProcessId, ThreadId, TimeRange};
use etl_schema::store::SchemaStore;

use crate::error::Failure;
use crate::input::Input;
use crate::process_args::ProcessArgs;

/// Selects events that meet each kind of condition: one of its values, if it has several.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct FilterArgs {
    /// Select events of this provider, or of the unique provider of Windows whose name ends with
    /// -NAME; can be repeated, like all options of this section except --level, --keyword, --from
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

/// Parses any text, and offers the names of providers to the completions of shells.
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
    /// The processes of a trace that --process and --children select.
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

    /// The given options that select events by fields of their headers.
    #[cfg(feature = "parquet")]
    pub fn header_options(&self) -> Vec<&'static str> {
        let mut given = Vec::new();
        for (option, is_given) in [
            ("--provider", !self.provider.is_empty()),
            ("--id", !self.id.is_empty()),
            ("--opcode", !self.opcode.is_empty()),
            ("--level", self.level.is_some()),
            ("--keyword", self.keyword.is_some()),
        ] {
            if is_given {
                given.push(option);
            }
        }
        given
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

    /// Whether events are selected by the processes or threads that they are about. Only the whole
    /// trace shows these.
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
        let time = range_since(start, self.from.as_deref(), self.to.as_deref(), clock)?;
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

/// Resolves the names of providers that only the trace can define. Returns the names that neither
/// the trace nor `store` defines: see [`note_unknown`].
///
/// # Errors
/// If a record cannot be read.
pub(crate) fn learn_names<S: Source>(
    filter: &mut Filter,
    trace: &mut Trace<S>,
    store: &SchemaStore,
) -> Result<Vec<String>, etl_format::Error> {
    if filter.names.is_empty() {
        return Ok(Vec::new());
    }
    filter.learn_names_of_trace(&mut trace.records(Order::File)?, store)
}

/// Notes on standard error that nothing defines these names of providers.
pub(crate) fn note_unknown<T: AsRef<str>>(names: impl IntoIterator<Item = T>) {
    for name in names {
        let name = name.as_ref();
        stderr_line!("note: unknown provider {name}: neither the trace nor the tables define it");
    }
}

/// The raw timestamps of --from and --to, for a trace with this clock.
pub(crate) fn range(
    from: Option<&str>,
    to: Option<&str>,
    clock: &Clock,
) -> Result<TimeRange, Failure> {
    range_since(clock.start_time, from, to, clock)
}

/// The same, with seconds since `start`.
fn range_since(
    start: FileTime,
    from: Option<&str>,
    to: Option<&str>,
    clock: &Clock,
) -> Result<TimeRange, Failure> {
    let mut range = TimeRange::default();
    if let Some(text) = from {
        range.from = Some(parse_time("--from", text)?.ticks(start, clock));
    }
    if let Some(text) = to {
        range.to = Some(parse_time("--to", text)?.ticks(start, clock));
    }
    if let (Some(from), Some(to)) = (range.from, range.to)
        && from >= to
    {
        return Err(Failure::new("--to", "must be after --from")
            .hint("an example: --from 1.5 --to 2 selects half a second"));
    }
    Ok(range)
}

fn parse_time(option: &str, text: &str) -> Result<TimePoint, Failure> {
    text.parse().map_err(|error| match error {
        TimePointError::BeforeStart => Failure::new(
            format!("{option} {text}"),
            "is before the start of the trace",
        )
        .hint("write seconds since the start (1.5), or UTC (2020-07-29T00:07:01Z)"),
        _ => Failure::new(option, format!("{text:?} is not a time")).hint(
            "write seconds since the start of the trace (1.5), or UTC (2020-07-29T00:07:01Z)",
        ),
    })
}
