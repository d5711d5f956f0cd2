//! `etlkit scrub`: a trace without what is private.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etl_format::read::{Options, Source, Trace};
use etl_tools::scrub::{self, Action, Category, Lengths, Mask, Policy, Summary, scrub};
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::escape::Printable;
use crate::headless;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Raised when a field of the report changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Listed texts that are shorter stand in every trace by chance.
const SHORTEST_SECRET: usize = 3;

/// Arguments of `etlkit scrub`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lengths stay, and the same value becomes the same one everywhere, so that everything still resolves.
With --lengths free text becomes short tokens instead, so that lengths tell nothing either.

Categories: users (owners of home directories, fields with names of users), machines, command-lines
(arguments; the program stays), sids, paths (directories; file names stay), ips, addresses.
Actions: keep, hash (replaced by what salt and value give), drop (`*` in text, 0 elsewhere).
Profiles: usual hashes users, machines, command lines and SIDs; strict also directories and IP
addresses, and drops command lines; none does what else is asked for only. See docs/scrub.md.

Exit codes: 0 done, 1 the trace is damaged and was scrubbed as far as possible, 2 could not be done, or
a listed text could not be removed: then there is no output.

Examples:
  etlkit scrub trace.etl -o clean.etl
  etlkit scrub trace.etl -o clean.etl --secret \"Project X\" --secrets-file names.txt --salt \"$SALT\"
  etlkit scrub trace.etl -o clean.etl --profile none --field ExceptionMessage=drop
  etlkit scrub trace.etl -o clean.etl --profile strict --lengths free
  etlkit scrub trace.etl -o clean.etl --set addresses=hash --set paths=hash --compress")]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// What is replaced unless --set and --field say otherwise
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
    /// Another action for a category. May be given more than once
    #[arg(long, value_name = "CATEGORY=ACTION", value_parser = category)]
    set: Vec<(Category, Action)>,
    /// An action for the fields of this name. May be given more than once
    #[arg(long, value_name = "NAME=ACTION", value_parser = field)]
    field: Vec<(String, Action)>,
    /// Remove this text wherever it stands, in any case and coding. May be given more than once
    #[arg(long, value_name = "TEXT")]
    secret: Vec<String>,
    /// Remove the texts in this file, one a line
    #[arg(long, value_name = "FILE")]
    secrets_file: Vec<PathBuf>,
    /// What replacements are made with: the same salt gives the same ones. Without it, each run has
    /// its own
    #[arg(long, value_name = "TEXT")]
    salt: Option<String>,
    /// How long replacements are
    #[arg(long, value_enum, default_value_t)]
    lengths: Length,
    #[command(flatten)]
    packing: CompressArgs,
    /// How to print the report, which does not repeat what was removed; docs/scrub.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Profile {
    /// Nothing but what is asked for
    None,
    /// Users, machines, command lines and SIDs
    #[default]
    Usual,
    /// Directories and IP addresses as well; command lines are dropped
    Strict,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Length {
    /// As long as what they replace
    #[default]
    Keep,
    /// Short tokens; records are encoded again, and dropped text is empty
    Free,
}

fn action(text: &str) -> Result<Action, String> {
    match text {
        "keep" => Ok(Action::Keep),
        "hash" => Ok(Action::Hash),
        "drop" => Ok(Action::Drop),
        _ => Err("expected keep, hash or drop behind the =".to_owned()),
    }
}

fn category(text: &str) -> Result<(Category, Action), String> {
    let (name, what) = text.split_once('=').ok_or("expected CATEGORY=ACTION")?;
    let category = Category::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| {
        let names: Vec<_> = Category::ALL.iter().map(|c| c.name()).collect();
        format!("expected one of {}", names.join(", "))
    })?;
    Ok((category, action(what)?))
}

fn field(text: &str) -> Result<(String, Action), String> {
    let (name, what) = text.rsplit_once('=').ok_or("expected NAME=ACTION")?;
    if name.is_empty() {
        return Err("expected the name of a field before the =".to_owned());
    }
    Ok((name.to_owned(), action(what)?))
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    file: &'a str,
    output: &'a str,
    records: u64,
    changed: u64,
    undecoded: u64,
    categories: BTreeMap<&'static str, u64>,
    names: u64,
    fields: &'a BTreeMap<String, u64>,
    /// In the order in which they were listed; the texts themselves are not repeated.
    secrets: &'a [u64],
    lengths_kept: u64,
    damaged: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.file);
    let options = options(args)?;
    Input::open(&args.file, &args.input)?.with(Scrub { args, options, name: &name })
}

fn options(args: &Args) -> Result<scrub::Options, Failure> {
    let mut policy = match args.profile {
        Profile::None => Policy::none(),
        Profile::Usual => Policy::usual(),
        Profile::Strict => Policy::strict(),
    };
    for (category, action) in &args.set {
        policy = policy.with(*category, *action);
    }
    for (name, action) in &args.field {
        policy = policy.with_field(name, *action);
    }
    let mut secrets = args.secret.clone();
    for path in &args.secrets_file {
        secrets.extend(listed(path)?);
    }
    if let Some(place) = secrets.iter().position(|s| s.chars().count() < SHORTEST_SECRET) {
        let what = format!("secret {} has fewer than {SHORTEST_SECRET} characters", place + 1);
        return Err(Failure::new(what, "it would stand in every trace by chance")
            .hint("list longer texts; --field and --set replace whole values"));
    }
    let mask = match &args.salt {
        Some(salt) => Mask::new(salt.as_bytes()),
        None => Mask::new(&random()),
    };
    let lengths = match args.lengths {
        Length::Keep => Lengths::Keep,
        Length::Free => Lengths::Free,
    };
    Ok(scrub::Options { policy, secrets, mask, lengths })
}

/// The lines of a file of texts.
fn listed(path: &Path) -> Result<Vec<String>, Failure> {
    let text = input::read_text(path, "a list of texts")
        .map_err(|failure| failure.hint("texts stand in UTF-8, one a line"))?;
    let text = text.trim_start_matches('\u{feff}');
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// A salt that nobody else has: the standard library seeds its hashers from the system's source of
/// randomness.
fn random() -> Vec<u8> {
    let word = |_| RandomState::new().build_hasher().finish().to_le_bytes();
    (0..4).flat_map(word).collect()
}

struct Scrub<'a> {
    args: &'a Args,
    options: scrub::Options,
    name: &'a str,
}

impl WithSource for Scrub<'_> {
    type Output = Result<Outcome, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let Scrub { args, options, name } = self;
        let head = input::head(&mut source);
        let reading = Options { threads: args.threads.count(), ..Options::salvage() };
        let mut trace =
            Trace::open(source, &reading).map_err(|e| input::not_a_trace(name, &e, &head))?;
        headless::something(name, &mut trace)?;
        let lists = args.secrets_file.iter().map(PathBuf::as_path);
        let mut sink = Sink::create(&args.sink, lists.chain([args.file.as_path()]))?;
        let used: u64 = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut progress = Progress::new(used * 2, false);
        let compressor = args.packing.compressor(&args.threads);
        let watch = |record: &etl_format::read::Record<'_>| progress.pass(record.bytes().len());
        let made = scrub(&mut trace, &options, sink.medium(), compressor, watch);
        let made = made.map(|(_, summary)| summary);
        let summary = made.map_err(|failed| sink.failed(name, &failed))?;
        drop(progress);
        headless::warn(name, &trace);
        if summary.left > 0 {
            return Err(Failure::new(
                name,
                format!(
                    "a listed text stands {} times in bytes that say how records are laid out, and \
                     cannot be removed",
                    summary.left
                ),
            )
            .hint("list a longer text"));
        }
        let report = match args.format {
            ReportFormat::Text => text(sink.name(), &summary),
            ReportFormat::Json => json(name, sink.name(), &summary),
        };
        sink.finish_of(name, &summary.damage, &report)
    }
}

fn categories(summary: &Summary) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    Category::ALL.iter().map(|category| category.name()).zip(summary.categories)
}

fn text(output: &str, summary: &Summary) -> String {
    let mut out = String::new();
    let Summary { records, changed, undecoded, .. } = summary;
    let _ = writeln!(out, "{}: {changed} of {records} records changed", Printable(output));
    for (name, count) in categories(summary).filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "{count:>10}  {}", name.replace('-', " "));
    }
    if summary.names > 0 {
        let _ = writeln!(out, "{:>10}  names that the trace told, elsewhere", summary.names);
    }
    for (number, count) in summary.secrets.iter().enumerate() {
        let _ = writeln!(out, "{count:>10}  secret {}", number + 1);
    }
    if !summary.fields.is_empty() {
        out.push_str("fields\n");
    }
    for (name, count) in &summary.fields {
        let mut line = Vec::new();
        crate::escape::line(&mut line, name);
        let _ = writeln!(out, "{count:>10}  {}", String::from_utf8_lossy(&line));
    }
    if summary.lengths_kept > 0 {
        let _ = writeln!(
            out,
            "note: {} records with a known schema kept their lengths: they could not be encoded again",
            summary.lengths_kept
        );
    }
    if *undecoded > 0 {
        let _ = writeln!(
            out,
            "note: {undecoded} records have no known schema; in them only homes, SIDs, names and \
             secrets were looked for"
        );
    }
    out
}

fn json(file: &str, output: &str, summary: &Summary) -> String {
    output::json(&Report {
        schema_version: SCHEMA_VERSION,
        file,
        output,
        records: summary.records,
        changed: summary.changed,
        undecoded: summary.undecoded,
        categories: categories(summary).collect(),
        names: summary.names,
        fields: &summary.fields,
        secrets: &summary.secrets,
        lengths_kept: summary.lengths_kept,
        damaged: !summary.damage.is_empty(),
    })
}
