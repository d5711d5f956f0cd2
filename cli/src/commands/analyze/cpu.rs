//! `etlkit analyze cpu`: the CPU samples of a recording.

mod changes;

use std::path::PathBuf;

use clap::ValueEnum;
use etl_analysis::ProcessSelector;
use etl_analysis::behavior::missing::MissingData;
use etl_analysis::profile::{Detail, Profile, ProfileOptions, SampleCollector, Weight};
use etl_tables::rows::profiles;
use etl_tables::{Cell, Column, Report, ReportTable};

use super::compare::ComparableArgs;
use super::report;
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::profile::{ProfileRequest, Profiled};
use crate::symbols::SymbolArgs;

/// Arguments of `etlkit analyze cpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`self` is the number of samples in a method, `total` the number in it and in the methods that it
called; recursive calls are counted once. Native code is named by its image (ntdll.dll!?), and with
--symbols by its function and source line (docs/analyze.md).

Needs the kernel's samples (`xperf -on PROFILE`, WPR profile CPU), with stacks for totals and trees
(`-stackwalk Profile`), images (LOADER), and for managed code the CLR's rundown
(`etlverify` checks it).

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit analyze cpu trace.etl
  etlkit analyze cpu --process Orders --group-by module trace.etl
  etlkit analyze cpu --from 2 --to 2.5 --tree trace.etl
  etlkit analyze cpu --focus Orders.Cart.Add trace.etl
  etlkit analyze cpu --symbols bin/Release --lines trace.etl
  etlkit analyze cpu --compare before.etl --normalize after.etl
  etlkit analyze cpu --format csv --group-by thread kernel.etl clr.etl > threads.csv")]
pub(crate) struct Args {
    /// Contents of a row
    #[arg(long, value_enum, default_value_t)]
    group_by: GroupBy,
    /// Print the call tree
    #[arg(long, conflicts_with_all = ["focus", "group_by", "compare", "normalize", "renamed"])]
    tree: bool,
    /// Print only the parts of the tree with at least PERCENT of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    #[arg(value_parser = super::percent, conflicts_with_all = ["focus", "group_by"])]
    min_percent: f64,
    /// Print each call of a method that calls itself, alone or through a few others
    #[arg(long, requires = "tree", conflicts_with_all = ["focus", "group_by"])]
    unfold: bool,
    /// Print the callers and the callees of the methods whose names contain TEXT
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with_all = ["group_by", "compare", "normalize", "renamed"]
    )]
    focus: Option<String>,
    /// Include the samples of idle processors
    #[arg(long)]
    idle: bool,
    /// Count each source line of a method separately, if --symbols has lines
    #[arg(long, requires = "symbols")]
    lines: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    comparable: ComparableArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum GroupBy {
    /// A process
    Process,
    /// A thread
    Thread,
    /// A module or an image
    Module,
    /// A method
    #[default]
    Method,
}

/// Reads files as a recording, and makes the profile of the selected samples.
fn profile(
    args: &Args,
    files: &[PathBuf],
    selector: ProcessSelector,
    options: ProfileOptions,
) -> Result<Profiled<SampleCollector>, Failure> {
    let symbols = args.symbols.open()?;
    let request = ProfileRequest {
        files,
        selector,
        ..ProfileRequest::new(&args.comparable.report.recording, &symbols, options)
    };
    request.run(
        |range| SampleCollector::new().within(range),
        |samples| samples.profile_bytes(),
        |samples, machine, options| samples.profile(machine, options),
    )
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    if let Some(before) = &args.comparable.compare.compare {
        return changes::run(args, before);
    }
    let detail = if args.lines {
        Detail::Lines
    } else {
        Detail::Methods
    };
    let mut options = ProfileOptions::new().detail(detail);
    if args.group_by == GroupBy::Thread {
        options = options.by_thread();
    }
    if args.idle {
        options = options.with_idle();
    }
    let report_args = &args.comparable.report;
    let recording = &report_args.recording;
    let Profiled {
        analyzed,
        mut profile,
    } = profile(
        args,
        &recording.files,
        recording.processes.selector(),
        options,
    )?;
    if args.tree && !args.unfold {
        profile = profile.fold_recursion();
    }
    let mut report = report("cpu", &analyzed);
    describe(&mut report, &profile);
    report.add_missing(MissingData::of_stacks(&analyzed.machine, &profile));
    add_unnamed(&mut report, &profile, &args.symbols);
    let table = if args.tree {
        profiles::tree(&profile, args.min_percent)
    } else if let Some(text) = &args.focus {
        focus(&profile, text)?
    } else {
        grouped(&profile, args.group_by, detail)
    };
    report.tables.push(table);
    report_args.print(&mut report, analyzed.outcome)
}

pub(super) const INTERVAL: Column = Column::micros(
    "interval_us",
    "Interval between samples of a processor; null if it changed",
);
pub(super) const SAMPLES: Column = Column::count("samples", "Selected samples");
pub(super) const IDLE_SAMPLES: Column = Column::count("idle_samples", "Samples of idle processors");

/// Adds the samples as a whole.
fn describe(report: &mut Report<'_>, profile: &Profile) {
    const CPU: Column = Column::micros("cpu_us", "Time of the selected samples");
    const WITH_STACK: Column = Column::count(
        "samples_with_stack",
        "Samples of all processes with a stack",
    );
    let total = profile.total();
    let idle = profile.idle();
    report.fact(INTERVAL, interval(profile));
    report.fact(SAMPLES, Cell::int(Some(total.samples)));
    report.fact(CPU, time(profile, total));
    report.fact(IDLE_SAMPLES, Cell::int(Some(idle.samples)));
    report.fact(WITH_STACK, Cell::int(Some(profile.with_stack())));
    let span = if profile.has_times() {
        let total = total.time as f64 / 1e7;
        let mut millis = Vec::new();
        for &interval in profile.intervals() {
            millis.push((f64::from(interval) / 1e4).to_string());
        }
        // The sampling thread of .NET also samples threads that wait.
        let what = if profile.is_thread_time() {
            "of thread time, one sample of each thread"
        } else {
            "of CPU time, one sample"
        };
        format!("{total:.3} s {what} per {} ms", millis.join(" or "))
    } else {
        "the recording states no interval".to_owned()
    };
    let mut line = format!("{}: {span}", plural(total.samples, "sample", "samples"));
    if idle.samples > 0 {
        line += &format!(
            "; {} of idle processors",
            plural(idle.samples, "sample", "samples")
        );
    }
    report.headline.push(line);
    report.add_missing(MissingData::of_samples(profile));
}

/// Adds how functions of native code get their names, if PDBs were not named and some have none.
pub(super) fn add_unnamed(report: &mut Report<'_>, profile: &Profile, symbols: &SymbolArgs) {
    if symbols.is_asked() {
        return;
    }
    let mut images = 0u64;
    let mut size = 0;
    for frame in profile.by_frame() {
        let label = profile.label(frame.frame);
        if label.ends_with("!?") {
            images += 1;
            size += profile.size(frame.total.exclusive);
        }
    }
    if images == 0 {
        return;
    }
    let all = profile.size(profile.total());
    let share = size as f64 / all.max(1) as f64 * 100.0;
    let images = plural(images, "image", "images");
    report.missing.push(format!(
        "names of functions in {images}, shown as `image!?` ({share:.1} % of all): \
         `etlkit symbols list` lists their PDBs, --symbols reads them"
    ));
}

/// The rows of a profile that was made for them.
pub(super) fn grouped(profile: &Profile, group_by: GroupBy, detail: Detail) -> ReportTable<'_> {
    match group_by {
        GroupBy::Method => profiles::by_method(profile, detail),
        GroupBy::Module => profiles::by_module(profile),
        GroupBy::Process => profiles::by_process(profile),
        GroupBy::Thread => profiles::by_thread(profile),
    }
}

fn time(profile: &Profile, weight: Weight) -> Cell<'static> {
    Cell::micros(if profile.has_times() {
        Some(weight.time)
    } else {
        None
    })
}

/// The interval between samples, if there is one.
pub(super) fn interval(profile: &Profile) -> Cell<'static> {
    match profile.intervals() {
        [interval] => Cell::micros(Some((*interval).into())),
        _ => Cell::Null,
    }
}

/// Callers and callees of the methods whose names contain a text.
pub(super) fn focus<'p>(profile: &'p Profile, text: &str) -> Result<ReportTable<'p>, Failure> {
    profiles::focus(profile, text).ok_or_else(|| {
        Failure::new(text, "no method of the stacks has this in its name")
            .hint("`--group-by method --top 0` lists all methods")
    })
}
