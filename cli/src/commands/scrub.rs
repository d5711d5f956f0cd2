//! `etlkit scrub`: removes private data from a trace.

use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use etl_events::missing::TraceNames;
use etl_schema::store::SchemaStore;
use etl_tools::scrub::{Action, Category, Lengths, Mask, Policy, Scrubber, Summary};

use crate::Outcome;
use crate::choice::{Choice, one_of};
use crate::commands::repack::CompressArgs;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::escape::one_line;
use crate::input::{self, Input};
use crate::missing;
use crate::rewrite::{Report, Rewrite, RewriteArgs};
use crate::schemas::SchemaArgs;

/// Shorter texts occur in every trace by chance.
const MIN_SECRET: usize = 3;

/// Bytes of the longest text: no record is longer.
const MAX_SECRET: usize = 64 << 10;

/// Bytes of memory for each byte of a text to remove, about: the tables that look for it in any
/// encoding and case take 700.
const SECRET_MEMORY: u64 = 1 << 10;

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
and drops command-lines; none only replaces the values that other options name. docs/rewrite.md
describes all.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was scrubbed, 2
error, or a listed text cannot be removed (then no output is written).

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
    /// Categories to replace; --set and --field change single ones
    #[arg(long, value_parser = one_of(PRESETS), default_value = "usual")]
    preset: fn() -> Policy,
    /// Set the action of a category; may be repeated
    #[arg(long, value_name = "CATEGORY=ACTION", value_parser = category)]
    set: Vec<CategoryAction>,
    /// Set the action of all fields with this name; may be repeated
    #[arg(long, value_name = "NAME=ACTION", value_parser = field)]
    field: Vec<FieldAction>,
    /// Remove this text everywhere, in upper and lower case and in any encoding; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    secret: Vec<String>,
    /// Remove the texts in this file, one per line; may be repeated
    #[arg(long, value_name = "FILE")]
    secrets_file: Vec<PathBuf>,
    /// Salt of the hashes: equal salts give equal replacements [default: random]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    salt: Option<String>,
    /// Length of the replacements
    #[arg(long, value_parser = one_of(LENGTHS), default_value = "keep")]
    lengths: Lengths,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    packing: CompressArgs,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

/// A value of `--set`.
#[derive(Clone, Copy, Debug)]
struct CategoryAction {
    category: Category,
    action: Action,
}

/// A value of `--field`.
#[derive(Clone, Debug)]
struct FieldAction {
    name: String,
    action: Action,
}

/// The words of `--preset`.
const PRESETS: &[Choice<fn() -> Policy>] = &[
    Choice::new("none", "Nothing", Policy::none),
    Choice::new(
        "usual",
        "Users, machines, command-lines and sids",
        Policy::usual,
    ),
    Choice::new(
        "strict",
        "Also paths and ips; drops command-lines",
        Policy::strict,
    ),
];

/// The words of `--lengths`.
const LENGTHS: &[Choice<Lengths>] = &[
    Choice::new("keep", "The same as of the replaced text", Lengths::Keep),
    Choice::new(
        "free",
        "Short tokens, and empty text for dropped values; records are encoded again",
        Lengths::Free,
    ),
];

fn action(text: &str) -> Result<Action, String> {
    match text {
        "keep" => Ok(Action::Keep),
        "hash" => Ok(Action::Hash),
        "drop" => Ok(Action::Drop),
        _ => Err("expected keep, hash or drop after the =".to_owned()),
    }
}

fn category(text: &str) -> Result<CategoryAction, String> {
    let (name, word) = text.split_once('=').ok_or("expected CATEGORY=ACTION")?;
    let mut categories = Category::ALL.into_iter();
    let Some(category) = categories.find(|category| category.name() == name) else {
        let names: Vec<_> = Category::ALL.iter().map(|c| c.name()).collect();
        return Err(format!("expected one of {}", names.join(", ")));
    };
    let action = action(word)?;
    Ok(CategoryAction { category, action })
}

fn field(text: &str) -> Result<FieldAction, String> {
    let (name, word) = text.rsplit_once('=').ok_or("expected NAME=ACTION")?;
    if name.is_empty() {
        return Err("expected the name of a field before the =".to_owned());
    }
    Ok(FieldAction {
        name: name.to_owned(),
        action: action(word)?,
    })
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.schemas.store(&args.rewrite.input)?;
    let scrubber = scrubber(args)?.schemas(store.clone());
    let mut input = Input::open(&args.file, &args.rewrite.input)?;
    let lists = args.secrets_file.iter().map(PathBuf::as_path);
    let mut job = Rewrite::start(&mut input, &args.rewrite, lists, &args.file)?;
    let mut progress = job.progress(2);
    let done = scrubber
        .compression(args.packing.chosen())
        .on_record(move |record| progress.pass(record.bytes().len()))
        .run(&mut job.trace, job.sink.medium())
        .map(|finished| finished.report);
    let summary = done.map_err(|error| job.failure(&error))?;
    if summary.left > 0 {
        let message = format!(
            "a listed text occurs {} times in bytes that describe the layout of records, and \
             cannot be removed there",
            summary.left
        );
        return Err(job.refusal(message).hint("list a longer text"));
    }
    note_missing(args, &summary, &mut job, store);
    job.finish(&summary, &summary.damage)
}

/// Notes the named fields that no event has: the data that they should hide may be in others.
fn note_missing(args: &Args, summary: &Summary, job: &mut Rewrite<'_>, store: SchemaStore) {
    let mut unused = Vec::new();
    for FieldAction { name, .. } in &args.field {
        let mut replaced = summary.fields.keys();
        if !replaced.any(|field| field.eq_ignore_ascii_case(name)) {
            unused.push(name.as_str());
        }
    }
    if !unused.is_empty() {
        let mut names = TraceNames::default();
        // The fields before an error are better than none.
        let _ = names.add_fields(&mut job.trace, store);
        missing::note_fields("--field", &names.missing_members(unused));
    }
}

fn scrubber(args: &Args) -> Result<Scrubber<'static>, Failure> {
    let mut policy = (args.preset)();
    for CategoryAction { category, action } in &args.set {
        policy = policy.with(*category, *action);
    }
    for FieldAction { name, action } in &args.field {
        policy = policy.with_field(name, *action);
    }
    let mut secrets = args.secret.clone();
    for path in &args.secrets_file {
        secrets.extend(listed(path)?);
    }
    if let Some(index) = secrets.iter().position(|s| s.chars().count() < MIN_SECRET) {
        let what = format!("secret {} (fewer than {MIN_SECRET} characters)", index + 1);
        return Err(
            Failure::new(what, "such a short text occurs in every trace by chance")
                .hint("list longer texts, or replace whole values with --field and --set"),
        );
    }
    ensure_bounded(&secrets, args.rewrite.input.memory(0))?;
    let mask = match &args.salt {
        Some(salt) if salt.is_empty() => {
            return Err(
                Failure::new("--salt", "is empty: anyone could test guesses of the texts")
                    .hint("is its variable set? Without --salt, a random one is used"),
            );
        }
        Some(salt) => Mask::new(salt.as_bytes()),
        None => Mask::new(&random()),
    };
    Ok(Scrubber::new(mask)
        .policy(policy)
        .secrets(secrets)
        .lengths(args.lengths))
}

/// Fails if the texts to remove are too long for so many bytes of memory.
fn ensure_bounded(secrets: &[String], memory: u64) -> Result<(), Failure> {
    if let Some(index) = secrets.iter().position(|text| text.len() > MAX_SECRET) {
        let what = format!("secret {}", index + 1);
        let message = format!("is longer than {} KiB, as no record is", MAX_SECRET >> 10);
        return Err(Failure::new(what, message).hint("list one text per line"));
    }
    let total: usize = secrets.iter().map(String::len).sum();
    let max_total = memory / SECRET_MEMORY;
    if total as u64 > max_total {
        let message = format!("are longer than {} KiB together", max_total >> 10);
        let failure = Failure::new("the secrets", message);
        return Err(failure.hint("--max-memory allows more; or scrub several times"));
    }
    Ok(())
}

/// The lines of a file of texts.
fn listed(path: &Path) -> Result<Vec<String>, Failure> {
    let text = input::read_text(path, "a list of texts")
        .map_err(|failure| failure.hint("the file contains texts in UTF-8, one per line"))?;
    let lines = text.trim_start_matches('\u{feff}').lines();
    let texts = lines.filter(|line| !line.is_empty());
    Ok(texts.map(str::to_owned).collect())
}

/// A random salt: the standard library seeds its hashers from the random source of the system.
fn random() -> Vec<u8> {
    let mut salt = Vec::new();
    for _ in 0..4 {
        let word = RandomState::new().build_hasher().finish();
        salt.extend(word.to_le_bytes());
    }
    salt
}

impl Report for Summary {
    fn text(&self, _: &str, output: &str, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "{output}: {} of {} records changed",
            self.changed, self.records
        )?;
        for (category, count) in self.categories.iter().filter(|(_, count)| **count > 0) {
            writeln!(out, "{count:>10}  {}", category.name().replace('-', " "))?;
        }
        if self.names > 0 {
            writeln!(out, "{:>10}  names known from other events", self.names)?;
        }
        for (number, count) in self.secrets.iter().enumerate() {
            writeln!(out, "{count:>10}  secret {}", number + 1)?;
        }
        if !self.fields.is_empty() {
            out.push_str("fields\n");
        }
        for (name, count) in &self.fields {
            writeln!(out, "{count:>10}  {}", one_line(name))?;
        }
        let kept = self.lengths_kept;
        let undecoded = self.undecoded;
        if kept > 0 {
            let kept = plural(kept, "record kept its length", "records kept their lengths");
            writeln!(out, "note: {kept}: no other length can be encoded")?;
        }
        if undecoded > 0 {
            let what = plural(
                undecoded,
                "record has no known schema",
                "records have no known schema",
            );
            writeln!(
                out,
                "note: {what}: only home directories, SIDs, known names and secrets were replaced \
                 there"
            )?;
        }
        Ok(())
    }
}
