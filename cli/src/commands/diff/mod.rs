//! `etlkit diff`: what differs between two traces.

mod json;
mod text;

use std::path::PathBuf;

use etl_format::read::{Options, Source, Trace};
use etl_tools::diff::{self, Difference, Event, Ignore, Summary, Which, diff};

use crate::Outcome;
use crate::error::Failure;
use crate::headless;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output::{self, ReportFormat};
use crate::problem;
use crate::progress::Progress;
use crate::threads::ThreadArgs;
use etl_schema::providers;

/// Arguments of `etlkit diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Events are aligned in time order: first those that are the same, then, between those, events of the
same identity and time. See docs/json-diff.md for the rule.

What --ignore takes:
  time             times of events, and fields that are times
  ids              process and thread ids, of events and in fields
  addresses        stacks, pointers, and 64-bit fields that hold addresses
  processor        the processor on which an event was written
  activity         activity ids
  header           the header event; header:NAME one of its fields
  field:NAME       a field of payloads
  provider:NAME    the events of a provider: a GUID, or a name

Exit codes: 0 the same, 1 there are differences, 2 one of the files is not readable.

Examples:
  etlkit diff before.etl after.etl
  etlkit diff monday.etl tuesday.etl --ignore time --ignore ids --ignore addresses --ignore header
  etlkit diff a.etl b.etl --format json | jq '.differences[] | select(.kind == \"missing\")'")]
pub(crate) struct Args {
    /// The first trace; `-` reads standard input
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The second trace
    #[arg(value_name = "B")]
    second: PathBuf,
    /// What makes no difference (see below). May be given more than once, or with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    ignore: Vec<String>,
    /// How to print; docs/json-diff.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Print this many differences between events; all are counted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Events of each trace that are laid side by side where the traces part
    #[arg(long, value_name = "N", default_value_t = diff::Options::default().window,
        value_parser = window)]
    window: usize,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// Windows are held in memory, so there is an end to them.
fn window(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 2..=1_000_000) => Ok(n),
        _ => Err("expected a number from 2 to 1000000".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if input::is_stdin(&args.first) && input::is_stdin(&args.second) {
        return Err(Failure::new("-", "standard input can be only one of the two")
            .hint("write one of them to a file"));
    }
    let mut ignore = Ignore::default();
    for what in &args.ignore {
        let named = what.strip_prefix("provider:").and_then(providers::by_name);
        let what = named.map_or(what.clone(), |guid| format!("provider:{guid}"));
        ignore.add(&what).map_err(|_| {
            Failure::new(&what, "cannot be ignored: it is not known")
                .hint("`etlkit diff --help` lists what can be; an unknown provider by its GUID")
        })?;
    }
    let second = Input::open(&args.second, &args.input)?;
    Input::open(&args.first, &args.input)?.with(First { args, ignore, second })
}

struct First<'a> {
    args: &'a Args,
    ignore: Ignore,
    second: Input,
}

impl WithSource for First<'_> {
    type Output = Result<Outcome, Failure>;

    fn with<S: Source>(self, source: S) -> Self::Output {
        let First { args, ignore, second } = self;
        second.with(Both { args, ignore, first: source })
    }
}

struct Both<'a, A> {
    args: &'a Args,
    ignore: Ignore,
    first: A,
}

impl<A: Source> WithSource for Both<'_, A> {
    type Output = Result<Outcome, Failure>;

    fn with<B: Source>(self, mut second: B) -> Self::Output {
        let Both { args, ignore, mut first } = self;
        let names = [input::display(&args.first), input::display(&args.second)];
        let mut a = open(&mut first, &names[0])?;
        let mut b = open(&mut second, &names[1])?;
        let threads = args.threads.count();
        let options = diff::Options { ignore, window: args.window, threads };
        let total = a.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut progress = Progress::new(total, false);
        let mut left = args.limit;
        let mut render = Renderer::new(args.format, a.clock().start_time);
        let sink = |difference: Difference<'_>| {
            if left > 0 {
                left -= 1;
                render.difference(&difference);
            }
        };
        let summary = diff(&mut a, &mut b, &options, sink, |r| progress.pass(r.bytes().len()));
        let summary = summary.map_err(|(which, error)| {
            Failure::trace(&names[usize::from(which == Which::Second)], &error)
        })?;
        drop(progress);
        output::unless_unread(output::print(&render.finish(&names, &summary, args.limit)))?;
        for (name, damage) in names.iter().zip(&summary.damage) {
            problem::warn(name, damage);
        }
        headless::warn(&names[0], &a);
        headless::warn(&names[1], &b);
        Ok(if summary.differs() { Outcome::Findings } else { Outcome::Fine })
    }
}

fn open<'s, S: Source>(source: &'s mut S, name: &str) -> Result<Trace<&'s mut S>, Failure> {
    let head = input::head(source);
    let mut trace = Trace::open(source, &Options::salvage())
        .map_err(|e| input::not_a_trace(name, &e, &head))?;
    headless::something(name, &mut trace)?;
    Ok(trace)
}

enum Renderer {
    Text(text::Text),
    Json(json::Json),
}

impl Renderer {
    fn new(format: ReportFormat, start: i64) -> Self {
        match format {
            ReportFormat::Text => Renderer::Text(text::Text::new(start)),
            ReportFormat::Json => Renderer::Json(json::Json::default()),
        }
    }

    fn difference(&mut self, difference: &Difference<'_>) {
        match self {
            Renderer::Text(text) => text.difference(difference),
            Renderer::Json(json) => json.difference(difference),
        }
    }

    fn finish(self, names: &[String; 2], summary: &Summary, limit: u64) -> String {
        match self {
            Renderer::Text(text) => text.finish(names, summary, limit),
            Renderer::Json(json) => json.finish(names, summary),
        }
    }
}

/// The provider's name, from the trace or from what is known beforehand.
fn provider_name(event: &Event) -> Option<&str> {
    event.provider_name().or_else(|| providers::name(event.provider()))
}
