//! `etlkit scrub`: removes private data from a trace.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etl_format::read::{Options, Source, Trace};
use etl_tools::scrub::{Action, Category, Lengths, Mask, Policy, Scrubber, Summary};
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::escape::one_line;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// Shorter texts occur in every trace by chance.
const MIN_SECRET: usize = 3;

/// Arguments of `etlkit scrub`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Equal values get equal replacements of the same length, so that events still refer to each other
and symbols still resolve. With --lengths free, text is replaced by short tokens, which hides
lengths.

Categories: users (owners of home directories, fields with user names), machines, command-lines
(only the arguments), sids, paths (only the directories), ips, addresses.
Actions: keep, hash (replace by a hash of salt and value), drop (replace text by `*`, the rest by
0).
Presets: usual hashes users, machines, command-lines and sids; strict also hashes paths and ips,
and drops command-lines; none replaces nothing but what other options name. docs/scrub.md
describes all.

Exit codes: 0 success, 1 the trace is damaged and its intact parts were scrubbed, 2 error, or a
listed text cannot be removed (then no output is written).

Examples:
  etlkit scrub trace.etl -o clean.etl
  etlkit scrub trace.etl -o clean.etl --secret \"Project X\" --secrets-file names.txt --salt \"$SALT\"
  etlkit scrub trace.etl -o clean.etl --preset none --field ExceptionMessage=drop
  etlkit scrub trace.etl -o clean.etl --preset strict --lengths free
  etlkit scrub trace.etl -o clean.etl --set addresses=hash --set paths=hash --compress")]
pub(crate) struct Args {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// Categories to replace; --set and --field change single ones
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// Set the action of a category; may be repeated
    #[arg(long, value_name = "CATEGORY=ACTION", value_parser = category)]
    set: Vec<(Category, Action)>,
    /// Set the action of all fields with this name; may be repeated
    #[arg(long, value_name = "NAME=ACTION", value_parser = field)]
    field: Vec<(String, Action)>,
    /// Remove this text everywhere, in upper and lower case and in any encoding; may be repeated
    #[arg(long, value_name = "TEXT")]
    secret: Vec<String>,
    /// Remove the texts in this file, one per line; may be repeated
    #[arg(long, value_name = "FILE")]
    secrets_file: Vec<PathBuf>,
    /// Salt of the hashes: equal salts give equal replacements [default: random]
    #[arg(long, value_name = "TEXT")]
    salt: Option<String>,
    /// Length of the replacements
    #[arg(long, value_enum, default_value_t)]
    lengths: Length,
    #[command(flatten)]
    packing: CompressArgs,
    /// Format of the report; docs/scrub.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Preset {
    /// Nothing
    None,
    /// Users, machines, command-lines and sids
    #[default]
    Usual,
    /// Also paths and ips; drops command-lines
    Strict,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Length {
    /// The same as of the replaced text
    #[default]
    Keep,
    /// Short tokens, and empty text for dropped values; records are encoded again
    Free,
}

fn action(text: &str) -> Result<Action, String> {
    match text {
        "keep" => Ok(Action::Keep),
        "hash" => Ok(Action::Hash),
        "drop" => Ok(Action::Drop),
        _ => Err("expected keep, hash or drop after the =".to_owned()),
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
    let scrubber = scrubber(args)?;
    Input::open(&args.file, &args.input)?.with(Scrub { args, scrubber, name: &name })
}

fn scrubber(args: &Args) -> Result<Scrubber<'static>, Failure> {
    let mut policy = match args.preset {
        Preset::None => Policy::none(),
        Preset::Usual => Policy::usual(),
        Preset::Strict => Policy::strict(),
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
    if let Some(index) = secrets.iter().position(|s| s.chars().count() < MIN_SECRET) {
        let what = format!("secret {} (fewer than {MIN_SECRET} characters)", index + 1);
        return Err(Failure::new(what, "such a short text occurs in every trace by chance")
            .hint("list longer texts, or replace whole values with --field and --set"));
    }
    let mask = match &args.salt {
        Some(salt) => Mask::new(salt.as_bytes()),
        None => Mask::new(&random()),
    };
    let lengths = match args.lengths {
        Length::Keep => Lengths::Keep,
        Length::Free => Lengths::Free,
    };
    Ok(Scrubber::new(mask).policy(policy).secrets(secrets).lengths(lengths))
}

/// The lines of a file of texts.
fn listed(path: &Path) -> Result<Vec<String>, Failure> {
    let text = input::read_text(path, "a list of texts")
        .map_err(|failure| failure.hint("the file contains texts in UTF-8, one per line"))?;
    let text = text.trim_start_matches('\u{feff}');
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// A random salt: the standard library seeds its hashers from the random source of the system.
fn random() -> Vec<u8> {
    let word = |_| RandomState::new().build_hasher().finish().to_le_bytes();
    (0..4).flat_map(word).collect()
}

struct Scrub<'a> {
    args: &'a Args,
    scrubber: Scrubber<'static>,
    name: &'a str,
}

impl WithSource for Scrub<'_> {
    type Output = Result<Outcome, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let Scrub { args, scrubber, name } = self;
        let head = input::head(&mut source);
        let reading = Options { threads: args.threads.count(), ..Options::salvage() };
        let mut trace =
            Trace::open(source, &reading).map_err(|e| input::not_a_trace(name, &e, &head))?;
        missing_header::ensure_records(name, &mut trace)?;
        let lists = args.secrets_file.iter().map(PathBuf::as_path);
        let mut sink = Sink::create(&args.sink, lists.chain([args.file.as_path()]))?;
        let used: u64 = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut progress = Progress::new(used * 2, false);
        let done = scrubber
            .compression(args.packing.chosen())
            .on_record(|record| progress.pass(record.bytes().len()))
            .run(&mut trace, sink.medium())
            .map(|(_, summary)| summary);
        let summary = done.map_err(|error| sink.operation_failure(name, &error))?;
        drop(progress);
        missing_header::warn_if_missing(name, &trace);
        if summary.left > 0 {
            return Err(Failure::new(
                name,
                format!(
                    "a listed text occurs {} times in bytes that describe the layout of records, and \
                     cannot be removed there",
                    summary.left
                ),
            )
            .hint("list a longer text"));
        }
        let report = match args.format {
            ReportFormat::Text => text(sink.name(), &summary),
            ReportFormat::Json => json(name, sink.name(), &summary),
        };
        sink.finish_with_damage(name, &summary.damage, &report)
    }
}

fn categories(summary: &Summary) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    Category::ALL.iter().map(|category| category.name()).zip(summary.categories)
}

fn text(output: &str, summary: &Summary) -> String {
    let mut out = String::new();
    let Summary { records, changed, undecoded, .. } = summary;
    let _ = writeln!(out, "{output}: {changed} of {records} records changed");
    for (name, count) in categories(summary).filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "{count:>10}  {}", name.replace('-', " "));
    }
    if summary.names > 0 {
        let _ = writeln!(out, "{:>10}  names known from other events", summary.names);
    }
    for (number, count) in summary.secrets.iter().enumerate() {
        let _ = writeln!(out, "{count:>10}  secret {}", number + 1);
    }
    if !summary.fields.is_empty() {
        out.push_str("fields\n");
    }
    for (name, count) in &summary.fields {
        let _ = writeln!(out, "{count:>10}  {}", one_line(name));
    }
    if summary.lengths_kept > 0 {
        let _ = writeln!(
            out,
            "note: {} records kept their lengths: they cannot be encoded again",
            summary.lengths_kept
        );
    }
    if *undecoded > 0 {
        let _ = writeln!(
            out,
            "note: {undecoded} records have no known schema: only home directories, SIDs, known names \
             and secrets were replaced in them"
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
