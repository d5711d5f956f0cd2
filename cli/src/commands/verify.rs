//! `etlverify`, also `etlkit verify`: checks that traces are complete.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueEnum;
use etl_format::read::{Options, Source, Trace};
use etl_schema::tables::TableSet;
use etl_verify::{Config, Enabled, Error, Gates, Report, Rule, Truth, Verdict, Verifier};

use crate::Outcome;
use crate::commands::spec::EventTables;
use crate::error::Failure;
use crate::escape::{Style, escape_controls};
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output;
use crate::progress::Progress;
use crate::threads::{MAX_USEFUL, processors};

/// Arguments of `etlverify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 no errors or warnings, 1 errors or warnings, 2 the trace cannot be checked or read.

Examples:
  etlverify merged.etl
  etlverify --format json merged.etl | jq .coverage
  etlverify --together clr1.etl clr2.etl kernel.etl
  etlverify --jobs 4 traces/
  etlverify --event-tables documented --threads 1 clr1.etl
  etlverify --enable 'Microsoft-Windows-DotNETRuntime:0x1CCBD:5' clr1.etl
  etlverify --truth out/truth.jsonl out/recipe.etl
  etlverify --min-coverage 99.5 --allow file.events-lost --deny stacks merged.etl
  etlverify --format html merged.etl > report.html
  etlverify --explain rundown.unclosed
  etlverify merged.etl.zip
  ssh box cat merged.etl.gz | etlverify -")]
pub(crate) struct Args {
    /// Traces, or directories of traces; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["explain", "rules"])]
    files: Vec<PathBuf>,
    /// Check the files as one recording, for example those of the runtime and the rundown session
    #[arg(long)]
    together: bool,
    /// Check N files at the same time; the output does not change
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Use N threads per file; the output does not change [default: processors per job, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Definitions of the CLR events to compare payloads with
    #[arg(long, value_enum, value_name = "TABLES", default_value_t)]
    event_tables: EventTables,
    /// A provider that a session enabled, with mask and level, or the command line of xperf, logman or
    /// tracelog that started the session; may be repeated
    #[arg(long, value_name = "PROVIDER:MASK:LEVEL")]
    enable: Vec<String>,
    /// Read what the sessions enabled from the truth.jsonl that `etlkit synth` wrote with the traces
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Read settings from FILE [default: etlverify.toml in this directory or the nearest parent, up to the
    /// root of the repository]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not read etlverify.toml
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// When to color the text
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: Color,
    /// Fail unless at least PERCENT of addresses resolve
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_coverage: Option<f64>,
    /// Fail unless at least PERCENT of the addresses of each process resolve
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_process_coverage: Option<f64>,
    /// Fail unless at least PERCENT of CPU samples resolve
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_sample_coverage: Option<f64>,
    /// Fail unless at least PERCENT of the addresses in managed code have a method name
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_named_methods: Option<f64>,
    /// Fail unless at least PERCENT of the addresses in images have a PDB identity
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_pdb_identity: Option<f64>,
    /// Report findings of this rule or rule family as errors; may be repeated
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Omit findings of this rule or rule family; may be repeated
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Explain a rule and how to fix a trace that breaks it, or list the rules of a family
    #[arg(long, value_name = "RULE", conflicts_with = "files")]
    explain: Option<String>,
    /// Print all rules
    #[arg(long, conflicts_with = "files")]
    rules: bool,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people
    #[default]
    Text,
    /// A report, or an array of reports for several files (docs/json-verify.md)
    Json,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// JUnit XML, for build servers
    Junit,
    /// Annotations of a GitHub Actions run
    Github,
    /// One self-contained page: timeline, coverage, findings
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
    fn is_enabled(self) -> bool {
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
        return Ok(Outcome::Success);
    }
    if let Some(id) = &args.explain {
        output::print(&explain(id)?)?;
        return Ok(Outcome::Success);
    }
    if args.files.iter().filter(|file| input::is_stdin(file)).count() > 1 {
        return Err(Failure::new("-", "only one of the files can be standard input")
            .hint("write the others to files"));
    }
    let settings = settings(args)?;
    let files = expand(&args.files)?;
    let truth = args.truth.as_deref().map(read_truth).transpose()?;
    let for_files = |files: &[PathBuf]| with_truth(&settings, truth.as_ref(), files);
    if args.together || files.len() < 2 {
        let report = match files.as_slice() {
            [file] => verify_one(file, &for_files(&files)?, &args.input, false)?,
            files => verify_together(files, &for_files(files)?, &args.input)?,
        };
        return print(args, &[report], false);
    }
    let one = |file: &PathBuf| for_files(std::slice::from_ref(file));
    let settings = files.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for result in verify_all(&files, usize::from(args.jobs), &settings, &args.input) {
        match result {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    // An unreadable file does not hide the reports of the others.
    let last = failures.pop();
    let outcome =
        if reports.is_empty() { Outcome::Undecided } else { print(args, &reports, true)? };
    failures.iter().for_each(|failure| stderr_line!("error: {failure}"));
    last.map_or(Ok(outcome), Err)
}

/// Prints the reports of one recording, or of several files.
fn print(args: &Args, reports: &[Report], several: bool) -> Result<Outcome, Failure> {
    let color = args.format == Format::Text && args.color.is_enabled();
    let text = render(args.format, reports, several, color);
    let printed = if color { output::print_colored(&text) } else { output::print(&text) };
    output::ignore_broken_pipe(printed)?;
    Ok(outcome(reports))
}

/// Verifies files and prints the reports, for commands that have just written them.
pub(crate) fn report_on(files: &[PathBuf]) -> Result<Outcome, Failure> {
    let settings = vec![Settings::default(); files.len()];
    let reports = verify_all(files, 1, &settings, &InputArgs::default());
    let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
    output::ignore_broken_pipe(output::print(&render(
        Format::Text,
        &reports,
        files.len() > 1,
        false,
    )))?;
    Ok(outcome(&reports))
}

fn outcome(reports: &[Report]) -> Outcome {
    let any = |verdict| reports.iter().any(|r| r.verdict == verdict);
    if any(Verdict::Broken) {
        Outcome::Findings
    } else if any(Verdict::Undecided) {
        Outcome::Undecided
    } else {
        Outcome::Success
    }
}

/// The reports in a format. `several`: whether several files were named, so that JSON is a list.
fn render(format: Format, reports: &[Report], several: bool, color: bool) -> String {
    use etl_verify::Format as To;
    let format = match format {
        Format::Text if color => To::ColorText,
        Format::Text => To::Text,
        Format::Json => To::Json,
        Format::Sarif => To::Sarif,
        Format::Junit => To::Junit,
        Format::Github => To::Github,
        Format::Html => To::Html,
    };
    let text = match reports {
        [report] if !several => report.render(format),
        reports => etl_verify::render(reports, format),
    };
    match format {
        To::Json | To::Sarif => escape_controls(&text, Style::Json).into_owned(),
        _ => text,
    }
}

/// The description of a rule, or the list of a family of rules.
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
    Failure::new(id, "unknown rule").hint("`etlverify --rules` lists all rules")
}

/// Replaces directories by the traces in them, in the order of their names.
fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    for file in files {
        if input::is_stdin(file) || !file.is_dir() {
            out.push(file.clone());
            continue;
        }
        let failure = |e: std::io::Error| Failure::io(input::display(file), &e);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(file).map_err(failure)? {
            let path = entry.map_err(failure)?.path();
            if is_trace(&path) && path.is_file() {
                found.push(path);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(input::display(file), "contains no .etl file, packed or not")
                .hint("name the traces, or the directory that contains them"));
        }
        found.sort();
        out.extend(found);
    }
    Ok(out)
}

/// Whether the name of a file is that of a trace, packed or not.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name =
        [".zip", ".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".etl")
}

/// What the configuration file and the command line choose.
#[derive(Clone, Default)]
struct Settings {
    config: Config,
    threads: usize,
    tables: TableSet,
}

impl Settings {
    fn verifier(&self) -> Verifier<'static> {
        Verifier::new()
            .policy(self.config.policy.clone())
            .enabled(self.config.enabled.iter().cloned())
            .threads(self.threads)
            .tables(self.tables)
    }
}

/// The settings of the configuration file, overridden by the command line.
fn settings(args: &Args) -> Result<Settings, Failure> {
    let file = match &args.config {
        Some(file) => Some(file.clone()),
        None if args.no_config => None,
        None => find_config(),
    };
    let mut config = match file {
        Some(file) => read_config(&file)?,
        None => Config::default(),
    };
    let threads = args
        .threads
        .map_or_else(|| (processors() / usize::from(args.jobs)).min(MAX_USEFUL), usize::from);
    let policy = &mut config.policy;
    // --allow overrides the configuration file.
    policy.deny.retain(|name| !args.allow.contains(name));
    policy.deny.extend(args.deny.iter().cloned());
    policy.allow.extend(args.allow.iter().cloned());
    let mut gates = Gates::default();
    gates.coverage = args.min_coverage;
    gates.process_coverage = args.min_process_coverage;
    gates.sample_coverage = args.min_sample_coverage;
    gates.named_methods = args.min_named_methods;
    gates.pdb_identity = args.min_pdb_identity;
    policy.gates = gates.or(policy.gates);
    if let Some(unknown) = policy.unknown() {
        return Err(no_rule(unknown));
    }
    for text in &args.enable {
        config.enabled.extend(enabled(text)?);
    }
    Ok(Settings { config, threads, tables: args.event_tables.into() })
}

fn read_truth(file: &Path) -> Result<Truth, Failure> {
    const HINT: &str = "--truth takes the truth.jsonl that `etlkit synth` writes";
    let opened = input::open_file(file).map_err(|failure| failure.hint(HINT))?;
    Truth::read(std::io::BufReader::new(opened))
        .map_err(|e| Failure::new(input::display(file), e.to_string()).hint(HINT))
}

/// The settings for files, with what their sessions enabled according to the truth.
fn with_truth(
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
            return Err(Failure::new(input::display(file), "is not described by the truth file")
                .hint(format!("it describes {}", known.join(", "))));
        };
        settings.config.enabled.extend(enabled);
    }
    Ok(settings)
}

/// The configuration file in this directory or the nearest parent, up to the root of the repository.
fn find_config() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    for directory in here.ancestors() {
        let file = directory.join(Config::FILE_NAME);
        if file.is_file() {
            return Some(file);
        }
        if directory.join(".git").exists() {
            return None;
        }
    }
    None
}

fn read_config(file: &Path) -> Result<Config, Failure> {
    let hint = "docs/etlverify-toml.md describes the file; --no-config ignores it";
    let text = input::read_text(file, "a configuration").map_err(|failure| failure.hint(hint))?;
    Config::parse(&text).map_err(|e| Failure::new(input::display(file), e.to_string()).hint(hint))
}

fn enabled(text: &str) -> Result<Vec<Enabled>, Failure> {
    Enabled::parse(text).map_err(|e| {
        let reason = match e {
            Error::Enable { reason, .. } => reason,
            e => e.to_string(),
        };
        Failure::new(text, reason)
            .hint("an example: --enable Microsoft-Windows-DotNETRuntimeRundown:0x138:5")
    })
}

/// Verifies files, `jobs` at the same time. Returns the reports in the order of the files.
fn verify_all(
    files: &[PathBuf],
    jobs: usize,
    settings: &[Settings],
    input: &InputArgs,
) -> Vec<Result<Report, Failure>> {
    let jobs = jobs.min(files.len());
    if jobs <= 1 {
        return files.iter().zip(settings).map(|(f, s)| verify_one(f, s, input, false)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, file, settings)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            files.get(at).zip(settings.get(at)).map(|(file, settings)| (at, file, settings))
        } {
            done.push((at, verify_one(file, settings, input, true)));
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

/// Verifies one file. `quiet` hides the progress bar, for several files at the same time.
fn verify_one(
    path: &Path,
    settings: &Settings,
    input: &InputArgs,
    quiet: bool,
) -> Result<Report, Failure> {
    struct Verify<'a>(String, &'a Settings, bool);
    impl WithSource for Verify<'_> {
        type Output = Result<Report, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            // The decompressed size is not known yet; the stored size is an estimate.
            let mut progress = (!self.2).then(|| Progress::new(source.size().unwrap_or(0), false));
            let on_progress = |bytes| {
                if let Some(progress) = &mut progress {
                    progress.add(bytes);
                }
            };
            let report = self.1.verifier().on_progress(on_progress).verify(&mut source, &self.0);
            let report = report.map_err(|e| not_a_trace(&self.0, e, &input::head(&mut source)))?;
            if report.records == 0
                && let Ok(mut trace) = Trace::open(&mut source, &Options::salvage())
            {
                missing_header::ensure_records(&self.0, &mut trace)?;
            }
            Ok(report)
        }
    }
    Input::open(path, input)?.with(Verify(input::display(path), settings, quiet))
}

/// Verifies several files as one recording.
fn verify_together(
    files: &[PathBuf],
    settings: &Settings,
    args: &InputArgs,
) -> Result<Report, Failure> {
    if let Some(stdin) = files.iter().find(|f| input::is_stdin(f)) {
        return Err(Failure::new(input::display(stdin), "cannot be used with --together")
            .hint("write it to a file first"));
    }
    let mut seen = BTreeSet::new();
    let same = |file: &&PathBuf| file.canonicalize().is_ok_and(|whole| !seen.insert(whole));
    if let Some(file) = files.iter().find(same) {
        return Err(Failure::new(input::display(file), "is named twice")
            .hint("--together needs different files of one recording"));
    }
    let mut inputs = files.iter().map(|f| Input::open(f, args)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = files.iter().map(|f| input::display(f)).collect();
    let heads: Vec<_> = inputs.iter_mut().map(Input::head).collect();
    // The report mentions a lost header event.
    for (input, name) in inputs.iter_mut().zip(&names) {
        missing_header::is_missing(name, input.any())?;
    }
    let sources: Vec<_> = inputs.iter_mut().map(Input::any).zip(names.iter().cloned()).collect();
    let all = sources.iter().filter_map(|(source, _)| source.size()).sum();
    let mut progress = Progress::new(all, false);
    let mut verifier = settings.verifier().on_progress(|bytes| progress.add(bytes));
    verifier.verify_together(sources).map_err(|e| {
        let file = if let Error::Trace(e) = &e { e.file() } else { 0 };
        let name = names.get(file).map_or("", String::as_str);
        not_a_trace(name, e, heads.get(file).map_or(&[], Vec::as_slice))
    })
}

fn not_a_trace(name: &str, error: Error, head: &[u8]) -> Failure {
    match error {
        Error::Trace(error) => input::not_a_trace(name, &error.into_source(), head),
        error => Failure::new(name, error.to_string()),
    }
}
