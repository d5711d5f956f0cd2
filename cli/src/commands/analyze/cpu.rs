//! `etlkit analyze cpu`: the CPU samples of a recording.

mod compare;

use std::path::PathBuf;

use clap::ValueEnum;
use etl_analysis::profile::{
    Detail, Focus, IlMaps, Measure, Profile, ProfileOptions, Root, SampleCollector, Total, Weight,
};

use super::{ReportArgs, report, span_facts};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs};
use crate::symbols::SymbolArgs;
use crate::table::{Cell, Column, Table, TableReport};

/// Arguments of `etlkit analyze cpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`self` counts the samples in a method, `total` those in it and in what it called; a sample counts
once for a method that calls itself. Native code is named by its image (ntdll.dll!?), and with
--symbols by its function and source line (docs/symbols.md).

Needs the kernel's samples (`xperf -on PROFILE`, WPR profile CPU), with stacks for totals and trees
(`-stackwalk Profile`), images (LOADER), and for managed code the CLR's rundown
(`etlverify` checks it).

Exit codes: 0 success, 1 the trace is damaged or lacks buffers and what is left was read, 2 error.

Examples:
  etlkit analyze cpu trace.etl
  etlkit analyze cpu --process Orders --group-by module trace.etl
  etlkit analyze cpu --from 2 --to 2.5 --tree trace.etl
  etlkit analyze cpu --focus Orders.Cart.Add trace.etl
  etlkit analyze cpu --symbols bin/Release --lines trace.etl
  etlkit analyze cpu --compare before.etl --normalize after.etl
  etlkit analyze cpu --format csv --group-by thread kernel.etl clr.etl > threads.csv")]
pub(crate) struct Args {
    /// What a row is
    #[arg(long, value_enum, default_value_t)]
    group_by: GroupBy,
    /// Print the call tree
    #[arg(long, conflicts_with_all = ["focus", "group_by"])]
    tree: bool,
    /// Print only the parts of the tree with at least PERCENT of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    #[arg(value_parser = super::percent, conflicts_with_all = ["focus", "group_by"])]
    min_percent: f64,
    /// Print each call of a method that calls itself, alone or through a few others
    #[arg(long, requires = "tree", conflicts_with_all = ["focus", "group_by"])]
    unfold: bool,
    /// Print the callers and the callees of the methods whose names contain TEXT
    #[arg(long, value_name = "TEXT", conflicts_with = "group_by")]
    focus: Option<String>,
    /// Print what became slower since this trace: rows of both, those whose own time grew most
    /// first
    #[arg(long, value_name = "BEFORE", conflicts_with_all = ["tree", "focus"])]
    compare: Option<PathBuf>,
    /// With --compare, scale the earlier trace to the time of the later one
    #[arg(long, requires = "compare", conflicts_with_all = ["tree", "focus"])]
    normalize: bool,
    /// Include the samples of idle processors
    #[arg(long)]
    idle: bool,
    /// Count each source line of a method by itself, where --symbols has lines
    #[arg(long, requires = "symbols")]
    lines: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
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

/// The columns of weights, with which each row begins.
const WEIGHTS: [Column; 6] = [
    ("total_samples", "total"),
    ("total_us", "total ms"),
    ("total_percent", "total %"),
    ("self_samples", "self"),
    ("self_us", "self ms"),
    ("self_percent", "self %"),
];

/// The columns of the weights of durations: of waits.
const DURATIONS: [Column; 6] = [
    ("total_count", "total"),
    ("total_us", "total ms"),
    ("total_percent", "total %"),
    ("self_count", "self"),
    ("self_us", "self ms"),
    ("self_percent", "self %"),
];

/// A recording that was read, and the profile of its samples.
struct Profiled {
    analyzed: Analyzed<(SampleCollector, Option<IlMaps>)>,
    profile: Profile,
}

/// Reads files as a recording, and makes the profile of the samples that are selected.
fn profile(args: &Args, files: &[PathBuf], options: ProfileOptions) -> Result<Profiled, Failure> {
    let recording = &args.report.recording;
    let symbols = args.symbols.open()?;
    let analyzed = recording
        .analyze_files(files, |range| (SampleCollector::new().within(range), symbols.maps()))?;
    let options = profile_options(recording, &analyzed, options);
    let (samples, maps) = &analyzed.observer;
    let profile = samples.profile(&analyzed.machine, &symbols.apply(options, maps.as_ref()));
    symbols.note_missing();
    Ok(Profiled { analyzed, profile })
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    if let Some(before) = &args.compare {
        return compare::run(args, before);
    }
    let recording = &args.report.recording;
    let by_thread = args.group_by == GroupBy::Thread;
    let options = ProfileOptions::new().by_thread(by_thread).idle(args.idle);
    let options = options.detail(if args.lines { Detail::Lines } else { Detail::Methods });
    let Profiled { analyzed, profile } = profile(args, &recording.files, options)?;
    let mut report = report("cpu", &analyzed);
    describe(&mut report, &profile, &analyzed);
    let table = if args.tree {
        tree(&profile, args.min_percent, args.unfold)
    } else if let Some(text) = &args.focus {
        focus(&profile, text)?
    } else {
        grouped(&profile, args.group_by, args.lines)
    };
    report.tables.push(table);
    args.report.print(&report, analyzed.outcome)
}

/// The options with the selection of processes and threads.
pub(crate) fn profile_options<O>(
    args: &RecordingArgs,
    analyzed: &Analyzed<O>,
    options: ProfileOptions,
) -> ProfileOptions {
    let options = options.threads(args.thread.clone());
    match &analyzed.selected {
        Some(selected) => options.processes(selected.clone()),
        None => options,
    }
}

/// What is known of the samples as a whole.
fn describe<O>(report: &mut TableReport, profile: &Profile, analyzed: &Analyzed<O>) {
    let (total, idle) = (profile.total(), profile.idle());
    report.facts.extend(span_facts(&analyzed.machine));
    report.facts.extend([
        ("interval_us", interval(profile)),
        ("samples", Cell::Count(total.samples)),
        ("cpu_us", time(profile, total)),
        ("idle_samples", Cell::Count(idle.samples)),
        ("samples_with_stack", Cell::Count(profile.with_stack())),
    ]);
    let span = if profile.has_times() {
        let total = total.time as f64 / 1e7;
        let millis = profile.intervals().iter().map(|&i| (f64::from(i) / 1e4).to_string());
        let millis: Vec<_> = millis.collect();
        format!("{total:.3} s of CPU time, one sample per {} ms", millis.join(" or "))
    } else {
        "the recording states no interval".to_owned()
    };
    let mut line = format!("{}: {span}", plural(total.samples, "sample", "samples"));
    if idle.samples > 0 {
        line += &format!("; {} of idle processors", plural(idle.samples, "sample", "samples"));
    }
    report.headline.push(line);
    if total.samples + idle.samples == 0 {
        report.missing.push(
            "CPU samples: record them with `xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk \
             Profile`, or the WPR profile CPU"
                .to_owned(),
        );
    } else if profile.with_stack() == 0 {
        report.missing.push(
            "stacks of samples, so totals are those of the method itself: record them with \
             `-stackwalk Profile`"
                .to_owned(),
        );
    }
}

/// The rows of a profile that was made for them.
pub(super) fn grouped(profile: &Profile, group_by: GroupBy, has_lines: bool) -> Table {
    match group_by {
        GroupBy::Method => methods(profile, has_lines),
        GroupBy::Module => modules(profile),
        GroupBy::Process | GroupBy::Thread => roots(profile, group_by == GroupBy::Thread),
    }
}

fn is_of_durations(profile: &Profile) -> bool {
    profile.measure() == Measure::Durations
}

pub(super) fn time(profile: &Profile, weight: Weight) -> Cell {
    if profile.has_times() { Cell::Duration(weight.time) } else { Cell::None }
}

/// The interval between samples, if there is one.
pub(super) fn interval(profile: &Profile) -> Cell {
    match profile.intervals() {
        [interval] => Cell::Duration((*interval).into()),
        _ => Cell::None,
    }
}

/// The cells of [`WEIGHTS`].
fn weights(profile: &Profile, total: Total) -> [Cell; 6] {
    let all = profile.size(profile.total());
    let cells = |weight: Weight| {
        let share = Cell::share(profile.size(weight), all);
        [Cell::Count(weight.samples), time(profile, weight), share]
    };
    let [a, b, c] = cells(total.inclusive);
    let [d, e, f] = cells(total.exclusive);
    [a, b, c, d, e, f]
}

fn weight_columns(profile: &Profile) -> [Column; 6] {
    if is_of_durations(profile) { DURATIONS } else { WEIGHTS }
}

fn table(profile: &Profile, names: &[Column]) -> Table {
    let columns: Vec<Column> = weight_columns(profile).iter().chain(names).copied().collect();
    Table::new("rows", "", &columns)
}

fn methods(profile: &Profile, has_lines: bool) -> Table {
    let names = [("name", "method"), ("module", ""), ("method", ""), ("code", "code")];
    let mut table = table(profile, &names);
    if has_lines {
        table.columns.extend([("source", "source"), ("file", ""), ("line", "")]);
    }
    for (frame, total) in profile.by_frame() {
        let mut row = weights(profile, total).to_vec();
        row.extend(frame_cells(profile, frame));
        if has_lines {
            row.extend(line_cells(profile, frame));
        }
        table.rows.push(row);
    }
    table
}

/// Name, module, method and kind of code.
fn frame_cells(profile: &Profile, frame: usize) -> [Cell; 4] {
    let name = Cell::text(profile.label(frame));
    let Some(frame) = profile.frames().get(frame) else {
        return [name, Cell::None, Cell::None, Cell::None];
    };
    let module = Cell::text(profile.module_name(frame.module));
    [name, module, Cell::text(&*frame.method), Cell::text(frame.kind.name())]
}

/// File name with the line, path of the source file, and line.
fn line_cells(profile: &Profile, frame: usize) -> [Cell; 3] {
    let known = profile.frames().get(frame);
    [
        Cell::text(profile.source(frame).unwrap_or_default()),
        Cell::text(known.and_then(|frame| frame.file.as_deref()).unwrap_or_default()),
        Cell::count(known.and_then(|frame| frame.line)),
    ]
}

/// The label of a frame, with its source line if frames have one.
fn label(profile: &Profile, frame: usize) -> String {
    match profile.source(frame) {
        Some(source) => format!("{} ({source})", profile.label(frame)),
        None => profile.label(frame),
    }
}

fn modules(profile: &Profile) -> Table {
    let mut table = table(profile, &[("module", "module")]);
    for (name, total) in profile.by_module() {
        let mut row = weights(profile, total).to_vec();
        row.push(Cell::text(name));
        table.rows.push(row);
    }
    table
}

/// Processes or threads: nothing calls them, so their totals are all that they have.
fn roots(profile: &Profile, by_thread: bool) -> Table {
    let process = [("process", "process"), ("process_name", ""), ("pid", "")];
    let thread = [("thread", "thread"), ("thread_name", ""), ("tid", "")];
    let [total, time, share, ..] = weight_columns(profile);
    let mut columns = vec![total, time, share];
    columns.extend(process);
    columns.extend(thread.iter().filter(|_| by_thread));
    let mut table = Table::new("rows", "", &columns);
    for root in profile.roots() {
        let weight = profile.nodes().get(root.first).map(|node| node.inclusive);
        let total = weights(profile, Total::new(weight.unwrap_or_default(), Weight::default()));
        let mut row = total.into_iter().take(3).collect::<Vec<_>>();
        row.extend(root_cells(root).into_iter().take(if by_thread { 6 } else { 3 }));
        table.rows.push(row);
    }
    table
}

fn root_cells(root: &Root) -> [Cell; 6] {
    [
        Cell::text(root.process_label()),
        Cell::text(&*root.process_name),
        Cell::count(root.pid),
        Cell::text(root.thread_label().unwrap_or_default()),
        Cell::text(&*root.thread_name),
        Cell::count(root.tid),
    ]
}

/// The call tree, without the parts that have less than so many percent of all samples. What calls
/// itself stands once, unless it is to be unfolded.
pub(super) fn tree(profile: &Profile, min_percent: f64, unfold: bool) -> Table {
    let folded = if unfold { None } else { Some(profile.fold_recursion()) };
    let profile = folded.as_ref().unwrap_or(profile);
    let names = [("name", "call tree"), ("depth", ""), ("process", ""), ("code", "")];
    let mut table = table(profile, &names);
    let least = profile.size(profile.total()) as f64 * min_percent / 100.0;
    for root in profile.roots() {
        let nodes = profile.nodes().get(root.first..root.end).unwrap_or_default();
        for node in nodes {
            if (profile.size(node.inclusive) as f64) < least {
                continue;
            }
            let mut row = weights(profile, Total::new(node.inclusive, node.exclusive)).to_vec();
            let label = match node.frame {
                Some(frame) => label(profile, frame),
                None => root.process_label(),
            };
            let kind = node.frame.and_then(|at| profile.frames().get(at)).map(|f| f.kind.name());
            row.extend([
                Cell::Text(format!("{}{label}", "  ".repeat(node.depth as usize))),
                Cell::Count(node.depth.into()),
                Cell::text(root.process_label()),
                Cell::text(kind.unwrap_or_default()),
            ]);
            table.rows.push(row);
        }
    }
    table
}

/// Callers and callees of the methods whose names contain a text.
pub(super) fn focus(profile: &Profile, text: &str) -> Result<Table, Failure> {
    let wanted = text.to_lowercase();
    let labels: Vec<String> =
        (0..profile.frames().len()).map(|frame| label(profile, frame)).collect();
    let is_focus =
        |frame: usize| labels.get(frame).is_some_and(|l| l.to_lowercase().contains(&wanted));
    if !(0..labels.len()).any(is_focus) {
        return Err(Failure::new(text, "no method of the stacks has this in its name")
            .hint("`--group-by method --top 0` lists all methods"));
    }
    let Focus { total, callers, callees, .. } = profile.focus(is_focus);
    let mut table = table(profile, &[("relation", "relation"), ("name", "method")]);
    let mut push = |total: Total, relation: &str, name: String| {
        let mut row = weights(profile, total).to_vec();
        row.extend([Cell::text(relation), Cell::text(name)]);
        table.rows.push(row);
    };
    let none = Weight::default();
    for (caller, weight) in callers {
        let name = caller.map_or("(start of a thread)".to_owned(), |f| label(profile, f));
        push(Total::new(weight, none), "caller", name);
    }
    push(total, "focus", text.to_owned());
    for (callee, weight) in callees {
        push(Total::new(weight, none), "callee", label(profile, callee));
    }
    Ok(table)
}
