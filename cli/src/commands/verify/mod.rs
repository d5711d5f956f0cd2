//! `etlverify`, also `etlkit verify`: checks that traces are complete.

mod check;
mod new_baseline;
mod report;
mod report_file;
mod settings;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::ValueEnum;
use etl_schema::tables::TableSet;
use etl_verify::{Baseline, Format, Paint, Report, Severity};

use crate::Outcome;
use crate::choice::{Choice, EVENT_TABLES, one_of};
use crate::error::Failure;
use crate::input::{self, InputArgs};
use crate::output;
use crate::process_args::ProcessArgs;
use crate::trace_files::{self, Unreadable, expand};

use check::{Job, ShowProgress, verify_all, verify_one, verify_together};
use new_baseline::NewBaseline;
use report::{explain, outcome, render};
use report_file::{ReportFile, ReportFiles};
use settings::{Settings, read_baseline, read_truth, settings, with_truth};

/// Arguments of `etlverify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 complete, perhaps with warnings; 1 incomplete, or losses leave open whether it is
complete; 2 a trace cannot be read. With --deny warnings, warnings are errors.

Examples:
  etlverify merged.etl
  etlverify --format json merged.etl | jq .coverage
  etlverify --together clr1.etl clr2.etl kernel.etl
  etlverify --baseline known.json --quiet traces/
  etlverify --process devenv --children merged.etl
  etlverify --jobs 4 traces/
  etlverify --event-tables documented --threads 1 clr1.etl
  etlverify --enable 'Microsoft-Windows-DotNETRuntime:0x1CCBD:5' clr1.etl
  etlverify --truth out/truth.jsonl out/recipe.etl
  etlverify --min-coverage 99.5 --allow file.events-lost --deny stacks merged.etl
  etlverify --report sarif=out.sarif --report junit=out.xml --min-severity warning traces/
  etlverify --format html merged.etl > report.html
  etlverify --explain rundown.unclosed
  etlverify merged.etl.zip
  ssh box cat merged.etl.gz | etlverify -")]
pub(crate) struct Args {
    /// Traces, or directories of traces; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["explain", "rules"])]
    files: Vec<PathBuf>,
    /// Check the files as one recording, for example of a runtime session and its rundown session
    #[arg(long)]
    together: bool,
    /// Check N files at the same time; the output does not change
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Use N threads per file; the output does not change [default: processors per job, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Definitions of the CLR events to compare payloads with
    #[arg(long, value_parser = one_of(EVENT_TABLES), value_name = "TABLES", default_value = "shipped")]
    event_tables: TableSet,
    /// A provider that a session enabled, with mask and level, or the command line of xperf,
    /// logman, tracelog or dotnet-trace that started the session; may be repeated. No other session
    /// enabled it, unless --other-sessions is given
    #[arg(long, value_name = "PROVIDER:MASK:LEVEL")]
    enable: Vec<String>,
    /// Sessions that --enable, --truth and etlverify.toml do not name may have enabled the same
    /// providers: what these do not request is undecided instead of an error
    #[arg(long)]
    other_sessions: bool,
    /// Read what the sessions enabled from the truth.jsonl that `etlkit synth` wrote with the
    /// traces
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Read settings from FILE [default: etlverify.toml in this directory or the nearest parent, up
    /// to the root of the repository]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not read etlverify.toml
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
    /// Accept the findings in FILE, which --write-baseline wrote, and report new and worse ones
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write all findings to FILE and accept them
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    write_baseline: Option<PathBuf>,
    /// Print a line for each trace only: verdict, name and number of findings (text)
    #[arg(long, short)]
    quiet: bool,
    /// Output format
    #[arg(long, value_parser = one_of(FORMATS), default_value = "text")]
    format: Format,
    /// Write the report to a file as well, in its own format, for example sarif=out.sarif; may be
    /// repeated. Replaces FILE
    #[arg(long, value_name = "FORMAT=FILE", value_parser = ReportFile::parse, conflicts_with_all = ["explain", "rules"])]
    report: Vec<ReportFile>,
    /// Print findings of this severity and worse, and those that decide the verdict
    #[arg(long, value_parser = one_of(SEVERITIES), value_name = "SEVERITY", default_value = "note")]
    min_severity: Severity,
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
    /// Report findings of this rule or rule family as errors, or all `warnings`; may be repeated
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Omit findings of this rule or rule family, also of a rule whose family is denied; may be
    /// repeated
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Explain a rule and how to fix a trace that breaks it, or list the rules of a family
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "format"])]
    explain: Option<String>,
    /// Print all rules
    #[arg(long, conflicts_with_all = ["files", "format", "explain"])]
    rules: bool,
    /// Include stale records: a merge left them in the first buffer, and another buffer contains
    /// them again
    #[arg(long)]
    stale: bool,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// The findings that are accepted.
enum Accepted {
    /// The findings in the file of --baseline, if it is given.
    Read(Option<Baseline>),
    /// All findings, which --write-baseline writes.
    Written(NewBaseline),
}

/// The result of verifying one trace, or several as one recording.
struct Verified {
    /// The names of the files.
    name: String,
    report: Result<Report, Failure>,
}

/// The words of `--format`.
const FORMATS: &[Choice<Format>] = &[
    Choice::new("text", "Text for people", Format::Text),
    Choice::new(
        "json",
        "A report, or an array of reports for several files (docs/json.md)",
        Format::Json,
    ),
    Choice::new(
        "sarif",
        "SARIF 2.1.0, for code scanning tools",
        Format::Sarif,
    ),
    Choice::new("junit", "JUnit XML, for build servers", Format::Junit),
    Choice::new(
        "github",
        "Annotations of a GitHub Actions run",
        Format::Github,
    ),
    Choice::new(
        "markdown",
        "Markdown, for the summary of a job",
        Format::Markdown,
    ),
    Choice::new(
        "html",
        "One self-contained page: timeline, coverage, findings",
        Format::Html,
    ),
];

/// The words of `--min-severity`.
const SEVERITIES: &[Choice<Severity>] = &[
    Choice::new("note", "All findings", Severity::Note),
    Choice::new("warning", "No notes", Severity::Warning),
    Choice::new("error", "Errors only", Severity::Error),
];

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
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let no_color = std::env::var_os("NO_COLOR").unwrap_or_default();
                let term = std::env::var_os("TERM").unwrap_or_default();
                std::io::stdout().is_terminal() && no_color.is_empty() && term != "dumb"
            }
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text
        .trim_end_matches('%')
        .parse()
        .map_err(|_| "expected a percentage")?;
    if (0.0..=100.0).contains(&value) {
        Ok(value)
    } else {
        Err("expected 0 to 100".to_owned())
    }
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
    let settings_files = [&args.truth, &args.config, &args.baseline]
        .into_iter()
        .flatten();
    let read = args.files.iter().chain(settings_files);
    if read.filter(|file| input::is_stdin(file)).count() > 1 {
        return Err(input::stdin_twice());
    }
    let settings = settings(args)?;
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let truth = args.truth.as_deref().map(read_truth).transpose()?;
    let found = expand(&args.files, &args.input);
    if found.is_empty() {
        return Err(trace_files::none_found());
    }
    let accepted = match &args.write_baseline {
        Some(file) => Accepted::Written(NewBaseline::open(file, args, &found)?),
        None => Accepted::Read(baseline),
    };
    let report_files = ReportFiles::open(args, &found)?;
    let to = Destination {
        args,
        accepted,
        report_files,
    };
    if args.together {
        let mut files = Vec::new();
        for file in found {
            files.push(file.map_err(|unreadable| unreadable.reason)?);
        }
        let settings = with_truth(&settings, truth.as_ref(), &files)?;
        let verified = Verified {
            name: names(&files),
            report: match files.as_slice() {
                [file] => verify_one(file, &settings, &args.input, args.progress()),
                files => verify_together(files, &settings, &args.input),
            },
        };
        return to.print(vec![verified], false);
    }
    let mut jobs = Vec::new();
    for file in found.iter().flatten() {
        jobs.push(Job {
            file: file.clone(),
            settings: with_truth(&settings, truth.as_ref(), std::slice::from_ref(file))?,
        });
    }
    let several = found.len() > 1 || args.files.iter().any(|file| file.is_dir());
    let at_once = usize::from(args.jobs);
    let reports = verify_all(&jobs, at_once, &args.input, args.progress());
    let mut reports = reports.into_iter();
    let mut results = Vec::new();
    for found in found {
        match found {
            Ok(file) => {
                if let Some(report) = reports.next() {
                    let name = names(&[file]);
                    results.push(Verified { name, report });
                }
            }
            Err(Unreadable { path, reason }) => results.push(Verified {
                name: names(&[path]),
                report: Err(reason),
            }),
        }
    }
    to.print(results, several)
}

impl Args {
    fn progress(&self) -> ShowProgress {
        if self.quiet {
            ShowProgress::No
        } else {
            ShowProgress::Yes
        }
    }
}

/// The names of files in a report.
fn names(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| input::display(file)).collect();
    names.join(" + ")
}

/// Where the reports go.
struct Destination<'a> {
    args: &'a Args,
    accepted: Accepted,
    report_files: ReportFiles,
}

impl Destination<'_> {
    /// Prints the reports of one recording, or of `several` files. Unreadable traces are reported
    /// on standard error, and in the report unless that is the text about one file.
    fn print(self, results: Vec<Verified>, several: bool) -> Result<Outcome, Failure> {
        let args = self.args;
        let mut reports = Vec::new();
        let mut failures = Vec::new();
        for Verified { name, report } in results {
            match report {
                Ok(report) => reports.push(report),
                Err(failure) => {
                    let message = failure.message_about(&name);
                    reports.push(Report::unreadable(name, message));
                    failures.push(failure);
                }
            }
        }
        if let Some(baseline) = self.accepted.baseline(&reports, &failures)? {
            reports
                .iter_mut()
                .for_each(|report| baseline.accept(report));
        }
        for report in &mut reports {
            report.leave_out_below(args.min_severity);
        }
        if several || failures.is_empty() || args.format != Format::Text {
            output::ignore_broken_pipe(print_reports(args, &reports, several))?;
        }
        self.report_files.write(&reports, several)?;
        failures.iter().for_each(Failure::print);
        Ok(if failures.is_empty() {
            outcome(&reports)
        } else {
            Outcome::Unreadable
        })
    }
}

impl Accepted {
    /// The findings that are accepted; writes them if the user wants that.
    fn baseline(
        self,
        reports: &[Report],
        failures: &[Failure],
    ) -> Result<Option<Baseline>, Failure> {
        match self {
            Accepted::Read(baseline) => Ok(baseline),
            Accepted::Written(file) if failures.is_empty() => file.write(reports).map(Some),
            Accepted::Written(file) => {
                file.leave();
                Ok(None)
            }
        }
    }
}

/// Prints reports in the format that the user wants.
fn print_reports(args: &Args, reports: &[Report], several: bool) -> io::Result<()> {
    let color = args.format == Format::Text && args.color.is_enabled();
    let format = if color {
        Format::ColorText
    } else {
        args.format
    };
    let text = match args.format {
        Format::Text if args.quiet && color => etl_verify::lines(reports, Paint::Ansi),
        Format::Text if args.quiet => etl_verify::lines(reports, Paint::Plain),
        _ => render(format, reports, several),
    };
    if color {
        output::print_colored(&text)
    } else {
        output::print(&text)
    }
}

/// Verifies recordings and prints the reports, for commands that have just written them.
pub(crate) fn report_on(recordings: &[Vec<PathBuf>]) -> Result<Outcome, Failure> {
    let settings = Settings::default();
    let args = InputArgs::default();
    let mut reports = Vec::new();
    for files in recordings {
        reports.push(match files.as_slice() {
            [file] => verify_one(file, &settings, &args, ShowProgress::Yes)?,
            files => verify_together(files, &settings, &args)?,
        });
    }
    let text = render(Format::Text, &reports, recordings.len() > 1);
    output::ignore_broken_pipe(output::print(&text))?;
    Ok(outcome(&reports))
}
