//! `etlkit verify`, alias `etlverify`.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueEnum;
use etl_format::read::{Options, Source, Trace};
use etl_verify::{Enabled, Gates, Report, Rule, Settings, Truth, Verdict};

use crate::Outcome;
use crate::commands::spec::ProfileArg;
use crate::error::Failure;
use crate::headless;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output;
use crate::progress::Progress;

/// Arguments of `etlverify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 sound, 1 findings graver than a note, 2 nothing to judge or not readable.

Examples:
  etlverify merged.etl
  etlverify --format json merged.etl | jq .coverage
  etlverify --together clr1.etl clr2.etl kernel.etl
  etlverify --jobs 4 traces/
  etlverify --profile documented --threads 1 clr1.etl
  etlverify --enable 'Microsoft-Windows-DotNETRuntime:0x1CCBD:5' clr1.etl
  etlverify --truth out/truth.jsonl out/recipe.etl
  etlverify --min-coverage 99.5 --allow file.events-lost --deny stacks merged.etl
  etlverify --format html merged.etl > report.html
  etlverify --explain rundown.unclosed
  etlverify merged.etl.zip
  ssh box cat merged.etl.gz | etlverify -")]
pub(crate) struct Args {
    /// Traces, or directories of traces; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["explain", "rules"])]
    files: Vec<PathBuf>,
    /// Judge the files as one recording: those of the runtime and the rundown session, say, that have
    /// not been merged
    #[arg(long)]
    together: bool,
    /// Judge this many files at a time; the output is the same
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Use this many threads for one file; the output is the same. Without it, as many as there are
    /// processors for each job, and four at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Compare payloads with these tables of the CLR's events
    #[arg(long, value_enum, default_value_t)]
    profile: ProfileArg,
    /// What a session was enabled with: a provider's GUID or name, its mask and its level, or a whole
    /// command line of xperf, logman or tracelog. May be given more than once
    #[arg(long, value_name = "PROVIDER:MASK:LEVEL")]
    enable: Vec<String>,
    /// What the sessions were enabled with, from the truth.jsonl that `etlkit synth` wrote beside the traces
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Read settings from this file; without it, from etlverify.toml in this directory or one above, up
    /// to the root of the repository
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look for no etlverify.toml
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
    /// How to print the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// When to colour the text: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: Color,
    /// Least share of addresses that have to resolve, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_coverage: Option<f64>,
    /// The same in each process
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_process_coverage: Option<f64>,
    /// Least share of samples that have to resolve: addresses weighted by the time spent there
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_sample_coverage: Option<f64>,
    /// Least share of the addresses in managed code whose method has to have a name
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_named: Option<f64>,
    /// Least share of the addresses in images whose image has to have a PDB identity
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_identified: Option<f64>,
    /// Make every finding of this rule, or family of rules, an error
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Leave out the findings of this rule, or family of rules
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Say what a rule means and how to repair a trace that breaks it; or list a family of rules
    #[arg(long, value_name = "RULE", conflicts_with = "files")]
    explain: Option<String>,
    /// Print the catalogue of rules
    #[arg(long, conflicts_with = "files")]
    rules: bool,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// One report, or an array of reports for several files; see docs/json-verify.md
    Json,
    /// SARIF 2.1.0, for tools that gather findings
    Sarif,
    /// JUnit XML, for build servers
    Junit,
    /// Annotations of a GitHub workflow run
    Github,
    /// One page that needs nothing else: timeline, coverage, findings
    Html,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    fn is_wanted(self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb(),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.trim_end_matches('%').parse().map_err(|_| "expected a percentage")?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err("expected 0 to 100".to_owned()) }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.rules {
        output::print(&etl_verify::rules_page())?;
        return Ok(Outcome::Fine);
    }
    if let Some(id) = &args.explain {
        output::print(&explain(id)?)?;
        return Ok(Outcome::Fine);
    }
    if args.files.iter().filter(|file| input::is_stdin(file)).count() > 1 {
        return Err(Failure::new("-", "standard input can be only one of the files")
            .hint("write the others to files"));
    }
    let settings = settings(args)?;
    let files = expand(&args.files)?;
    let truth = args.truth.as_deref().map(read_truth).transpose()?;
    let told = |files: &[PathBuf]| told(&settings, truth.as_ref(), files);
    if args.together || files.len() < 2 {
        let report = match files.as_slice() {
            [file] => judge(file, &told(&files)?, &args.input, false)?,
            files => judge_together(files, &told(files)?, &args.input)?,
        };
        return print(args, &[report], false);
    }
    let one = |file: &PathBuf| told(std::slice::from_ref(file));
    let settings = files.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for judged in judge_all(&files, usize::from(args.jobs), &settings, &args.input) {
        match judged {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    // One file that is no trace does not keep the others from being judged.
    match failures.pop() {
        None => print(args, &reports, true),
        Some(last) if reports.is_empty() => {
            failures.iter().for_each(|failure| tell!("error: {failure}"));
            Err(last)
        }
        Some(last) => {
            print(args, &reports, true)?;
            failures.iter().for_each(|failure| tell!("error: {failure}"));
            Err(last)
        }
    }
}

/// Prints the reports of one recording, or of several files.
fn print(args: &Args, reports: &[Report], several: bool) -> Result<Outcome, Failure> {
    let colour = args.format == Format::Text && args.color.is_wanted();
    let text = render(args.format, reports, several, colour);
    let printed = if colour { output::print_painted(&text) } else { output::print(&text) };
    output::unless_unread(printed)?;
    Ok(outcome(reports))
}

/// Judges files as they are and prints the reports, for commands that have just made them.
pub(crate) fn report_on(files: &[PathBuf]) -> Result<Outcome, Failure> {
    let settings = vec![Settings::default(); files.len()];
    let reports = judge_all(files, 1, &settings, &InputArgs::default());
    let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
    output::unless_unread(output::print(&render(Format::Text, &reports, files.len() > 1, false)))?;
    Ok(outcome(&reports))
}

fn outcome(reports: &[Report]) -> Outcome {
    let any = |verdict| reports.iter().any(|r| r.verdict == verdict);
    if any(Verdict::Broken) {
        Outcome::Findings
    } else if any(Verdict::Undecided) {
        Outcome::Undecided
    } else {
        Outcome::Fine
    }
}

/// `several`: whether more than one file was named, which makes a list of what is one report otherwise.
fn render(format: Format, reports: &[Report], several: bool, colour: bool) -> String {
    let each = |f: fn(&Report) -> String| reports.iter().map(f).collect::<Vec<_>>();
    match (format, reports) {
        (Format::Json, [report]) if !several => report.json(),
        (Format::Json, reports) => output::json(&reports),
        (Format::Text, reports) => {
            let text = if colour { Report::text_in_colour } else { Report::text };
            let summary = if colour { etl_verify::summary_in_colour } else { etl_verify::summary };
            let first = several.then(|| summary(reports));
            first.into_iter().chain(each(text)).collect::<Vec<_>>().join("\n")
        }
        (Format::Sarif, reports) => etl_verify::sarif(reports),
        (Format::Junit, reports) => etl_verify::junit(reports),
        (Format::Html, reports) => etl_verify::html(reports),
        (Format::Github, _) => each(Report::github).concat(),
    }
}

/// A rule, or what the rules of a family are.
fn explain(id: &str) -> Result<String, Failure> {
    if let Some(rule) = Rule::find(id) {
        return Ok(rule.explain());
    }
    let family = etl_verify::RULES.iter().filter(|rule| rule.family() == id);
    let lines: Vec<_> =
        family.map(|r| format!("{} ({})\n  {}\n", r.id, r.severity.name(), r.statement)).collect();
    if lines.is_empty() { Err(no_rule(id)) } else { Ok(lines.concat()) }
}

fn no_rule(id: &str) -> Failure {
    Failure::new(id, "there is no such rule").hint("`etlverify --rules` lists them")
}

/// Directories stand for the traces in them, in the order of their names.
fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    for file in files {
        if input::is_stdin(file) || !file.is_dir() {
            out.push(file.clone());
            continue;
        }
        let failure = |e: std::io::Error| Failure::new(input::display(file), e.to_string());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(file).map_err(failure)? {
            let path = entry.map_err(failure)?.path();
            if is_trace(&path) && path.is_file() {
                found.push(path);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(input::display(file), "holds no .etl file, packed or not")
                .hint("name the traces, or the directory they are in"));
        }
        found.sort();
        out.extend(found);
    }
    Ok(out)
}

/// Whether a file's name is that of a trace, packed or not.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name =
        [".zip", ".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".etl")
}

/// The settings of the file, and those of the command line on top.
fn settings(args: &Args) -> Result<Settings, Failure> {
    let file = match &args.config {
        Some(file) => Some(file.clone()),
        None if args.no_config => None,
        None => find_config(),
    };
    let mut settings = match file {
        Some(file) => read_config(&file)?,
        None => Settings::default(),
    };
    settings.profile = args.profile.into();
    settings.threads = args
        .threads
        .map_or_else(|| (cores() / usize::from(args.jobs)).min(MOST_THREADS), usize::from);
    let policy = &mut settings.policy;
    // What the command line allows is allowed, whatever the file denies.
    policy.deny.retain(|name| !args.allow.contains(name));
    policy.deny.extend(args.deny.iter().cloned());
    policy.allow.extend(args.allow.iter().cloned());
    let gates = Gates {
        coverage: args.min_coverage,
        process_coverage: args.min_process_coverage,
        sample_coverage: args.min_sample_coverage,
        named: args.min_named,
        identified: args.min_identified,
    };
    policy.gates = gates.or(policy.gates);
    if let Some(unknown) = policy.unknown() {
        return Err(no_rule(unknown));
    }
    for text in &args.enable {
        settings.enabled.extend(enabled(text)?);
    }
    Ok(settings)
}

fn read_truth(file: &Path) -> Result<Truth, Failure> {
    const HINT: &str = "--truth takes the truth.jsonl that `etlkit synth` writes";
    let opened = input::open_file(file).map_err(|failure| failure.hint(HINT))?;
    Truth::read(std::io::BufReader::new(opened))
        .map_err(|e| Failure::new(input::display(file), e).hint(HINT))
}

/// The settings for files, with what the truth says of their sessions.
fn told(
    settings: &Settings,
    truth: Option<&Truth>,
    files: &[PathBuf],
) -> Result<Settings, Failure> {
    let mut settings = settings.clone();
    let Some(truth) = truth else { return Ok(settings) };
    for file in files {
        let name = file.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
        let Some(enabled) = truth.of(&name) else {
            let known: Vec<_> = truth.files().collect();
            return Err(Failure::new(input::display(file), "the truth knows no such file")
                .hint(format!("it knows {}", known.join(", "))));
        };
        settings.enabled.extend(enabled);
    }
    Ok(settings)
}

/// Beyond these a file is not read any faster: one thread judges, and one orders what the others unpack.
const MOST_THREADS: usize = 4;

/// Threads that can run at the same time.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The nearest configuration file, in this directory or above, not beyond the root of a repository.
fn find_config() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    for directory in here.ancestors() {
        let file = directory.join(etl_verify::config::FILE_NAME);
        if file.is_file() {
            return Some(file);
        }
        if directory.join(".git").exists() {
            return None;
        }
    }
    None
}

fn read_config(file: &Path) -> Result<Settings, Failure> {
    let failure = |e: String| Failure::new(input::display(file), e);
    let hint = "--no-config leaves the file unread; docs/etlverify-toml.md describes it";
    let text = input::read_text(file, "a configuration").map_err(|failure| failure.hint(hint))?;
    etl_verify::config::parse(&text).map_err(|e| failure(e).hint(hint))
}

fn enabled(text: &str) -> Result<Vec<Enabled>, Failure> {
    Enabled::parse(text).map_err(|e| {
        Failure::new(text, e)
            .hint("--enable 'a669021c-c450-4609-a035-5af59af4df18:0x138:5', for one")
    })
}

/// Judges files one by one, several at a time; the reports come in the order of the files.
fn judge_all(
    files: &[PathBuf],
    jobs: usize,
    settings: &[Settings],
    input: &InputArgs,
) -> Vec<Result<Report, Failure>> {
    let jobs = jobs.min(files.len());
    if jobs <= 1 {
        return files.iter().zip(settings).map(|(f, s)| judge(f, s, input, false)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, file, settings)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            files.get(at).zip(settings.get(at)).map(|(file, settings)| (at, file, settings))
        } {
            done.push((at, judge(file, settings, input, true)));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let joined = workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect::<Vec<_>>()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, report)| report).collect()
}

/// Judges one file. `quiet` keeps the progress to itself: several files at a time would overwrite it.
fn judge(
    path: &Path,
    settings: &Settings,
    input: &InputArgs,
    quiet: bool,
) -> Result<Report, Failure> {
    struct Judge<'a>(String, &'a Settings, bool);
    impl WithSource for Judge<'_> {
        type Output = Result<Report, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            // How much a compressed trace unpacks to is not known yet; its stored bytes are a guess.
            let mut progress = (!self.2).then(|| Progress::new(source.size().unwrap_or(0), false));
            let watch = |r: &etl_format::read::Record<'_>| {
                if let Some(progress) = &mut progress {
                    progress.pass(r.bytes().len());
                }
            };
            let report = etl_verify::verify_with(&mut source, &self.0, self.1, watch)
                .map_err(|e| input::not_a_trace(&self.0, &e, &input::head(&mut source)))?;
            if report.records == 0
                && let Ok(mut trace) = Trace::open(&mut source, &Options::salvage())
            {
                headless::something(&self.0, &mut trace)?;
            }
            Ok(report)
        }
    }
    Input::open(path, input)?.with(Judge(input::display(path), settings, quiet))
}

/// Judges several files as one recording.
fn judge_together(
    files: &[PathBuf],
    settings: &Settings,
    args: &InputArgs,
) -> Result<Report, Failure> {
    if let Some(stdin) = files.iter().find(|f| input::is_stdin(f)) {
        return Err(Failure::new(input::display(stdin), "cannot be read beside other files")
            .hint("write it to a file first"));
    }
    // Everything in it would have happened twice.
    let mut seen = BTreeSet::new();
    let same = |file: &&PathBuf| file.canonicalize().is_ok_and(|whole| !seen.insert(whole));
    if let Some(file) = files.iter().find(same) {
        return Err(Failure::new(input::display(file), "is named twice")
            .hint("--together takes the different files of one recording"));
    }
    let mut inputs = files.iter().map(|f| Input::open(f, args)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = files.iter().map(|f| input::display(f)).collect();
    let heads: Vec<_> = inputs.iter_mut().map(Input::head).collect();
    // That a header event is lost stands in the report.
    for (input, name) in inputs.iter_mut().zip(&names) {
        headless::is_lost(name, input.any())?;
    }
    let sources: Vec<_> =
        inputs.iter_mut().map(Input::any).zip(names.iter().map(String::as_str)).collect();
    let all = sources.iter().filter_map(|(source, _)| source.size()).sum();
    let mut progress = Progress::new(all, false);
    let watch = |r: &etl_format::read::Record<'_>| progress.pass(r.bytes().len());
    etl_verify::verify_together(sources, settings, watch).map_err(|(at, e)| {
        let name = names.get(at).map_or("", String::as_str);
        input::not_a_trace(name, &e, heads.get(at).map_or(&[], Vec::as_slice))
    })
}
