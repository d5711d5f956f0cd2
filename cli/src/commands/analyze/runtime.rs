//! `etlkit analyze jit`, `exceptions` and `contention`: the CLRs of a recording.

use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::contention::{Contention, StackedContention};
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::symbols::{FunctionNames, Symbol};
use etl_format::TimeRange;

use super::waits::{StackArgs, ensure_stacks};
use super::{PROCESS, ReportArgs, note_given_up, process_cells, report, span_facts, ticks};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::{Analyzed, Between};
use crate::symbols::SymbolArgs;
use crate::table::{Cell, Column, Table};

pub(super) fn columns(own: &[Column]) -> Vec<Column> {
    PROCESS.iter().chain(own).copied().collect()
}

/// Count, sum, mean, percentiles and maximum of durations, which are in 100 ns.
pub(super) fn distribution(all: &Distribution) -> [Cell; 6] {
    let cell = |value: Option<u64>| value.map_or(Cell::None, Cell::Duration);
    [
        Cell::Duration(all.total()),
        cell(all.mean()),
        cell(all.percentile(50)),
        cell(all.percentile(95)),
        cell(all.percentile(99)),
        cell(all.max()),
    ]
}

/// The columns of [`distribution`].
pub(super) const DISTRIBUTION: [Column; 6] = [
    ("total_us", "total ms"),
    ("mean_us", "mean"),
    ("p50_us", "p50"),
    ("p95_us", "p95"),
    ("p99_us", "p99"),
    ("max_us", "max"),
];

/// Prints the methods that were compiled, those that took longest first.
pub(super) fn jit(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|range| Compilations::new().within(range))?;
    let (machine, compiled) = (&analyzed.machine, &analyzed.observer);
    let selected = &analyzed.selected;
    let clock = machine.clock();
    let own = [
        ("duration_us", "ms"),
        ("tier", "tier"),
        ("il_bytes", "IL"),
        ("code_bytes", "code"),
        ("loaded", "time"),
        ("tid", "tid"),
        ("method", "method"),
    ];
    let mut table = Table::new("methods", "methods", &columns(&own));
    let mut by_process: BTreeMap<usize, (u64, Vec<u64>)> = BTreeMap::new();
    let mut list: Vec<_> = (compiled.list().iter())
        .filter(|c| selected.as_ref().is_none_or(|s| s.contains(&c.process)))
        .filter(|c| args.has_thread(c.tid))
        .collect();
    list.sort_by_key(|c| (std::cmp::Reverse(c.duration), c.loaded));
    for one in list {
        let duration = one.duration.map(|d| ticks(clock, d));
        let (count, durations) = by_process.entry(one.process).or_default();
        *count += 1;
        durations.extend(duration);
        let mut row = process_cells(machine, one.process).to_vec();
        row.extend([
            duration.map_or(Cell::None, Cell::Duration),
            Cell::text(one.tier_name()),
            Cell::count(one.il_size),
            Cell::Count(one.code_size.into()),
            Cell::time(clock, Some(one.loaded)),
            Cell::count(one.tid),
            Cell::text(&*one.method),
        ]);
        table.rows.push(row);
    }
    let mut sums = Table::new("processes", "by process", &columns(&[("methods", "methods")]));
    sums.columns.extend(DISTRIBUTION);
    for (process, (count, durations)) in by_process {
        let mut row = process_cells(machine, process).to_vec();
        row.push(Cell::Count(count));
        row.extend(distribution(&Distribution::new(durations)));
        sums.rows.push(row);
    }
    let mut report = report("jit", &analyzed);
    report.facts.extend(span_facts(machine));
    let methods = plural(table.rows.len() as u64, "method", "methods");
    report.headline.push(format!("{methods} compiled at run time"));
    if compiled.list().is_empty() {
        report.missing.push(
            "events of compiled methods: enable Microsoft-Windows-DotNETRuntime with the keywords \
             Jit and NGen (0x30) at level 5"
                .to_owned(),
        );
    }
    note_given_up(&mut report, compiled.given_up(), "compilations without a time");
    report.tables = vec![table, sums];
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&report, analyzed.outcome)
}

/// The exceptions of one type that a method threw.
struct ThrownIn<'a> {
    count: u64,
    first: i64,
    last: i64,
    /// The message of the first.
    message: &'a str,
}

/// Arguments of `etlkit analyze exceptions`.
#[derive(Debug, clap::Args)]
pub(super) struct ExceptionArgs {
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// What is at an address: a method of .NET, or a function of an image.
fn label(
    machine: &Machine,
    symbol: Option<Symbol<'_>>,
    functions: Option<&dyn FunctionNames>,
) -> String {
    match symbol {
        Some(symbol @ Symbol::Method(_)) => symbol.to_string(),
        Some(symbol @ Symbol::Image(image)) => {
            let function = functions.and_then(|functions| functions.function(machine, &image));
            let name = function.as_ref().map_or("?", |function| &function.name);
            format!("{}!{name}", symbol.file_name())
        }
        _ => "?".to_owned(),
    }
}

/// Prints exceptions by process, type and throwing method.
pub(super) fn exceptions(args: &ExceptionArgs) -> Result<Outcome, Failure> {
    let pdbs = args.symbols.open()?;
    let args = &args.report;
    let threads = &args.recording.thread;
    let analyzed =
        args.recording.analyze(|span| Between::new(span, Exceptions::new()).threads(threads))?;
    let (machine, exceptions) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = &analyzed.selected;
    let (clock, symbols) = (machine.clock(), machine.symbols());
    let own = [
        ("count", "count"),
        ("type", "type"),
        ("method", "thrown in"),
        ("first", "first"),
        ("last", "last"),
        ("message", "first message"),
    ];
    // Addresses of one method are one row.
    let mut rows: BTreeMap<(usize, &str, String), ThrownIn<'_>> = BTreeMap::new();
    let admitted =
        exceptions.list().filter(|e| selected.as_ref().is_none_or(|s| s.contains(&e.process)));
    for thrown in admitted {
        let pid = machine.processes().get(thrown.process).map_or(u32::MAX, |p| p.pid());
        let symbol = symbols.at(pid, thrown.address, thrown.first);
        let method = label(machine, symbol, pdbs.functions());
        let key = (thrown.process, &*thrown.exception, method);
        let (first, last, message) = (thrown.first, thrown.last, &*thrown.message);
        let row = rows.entry(key).or_insert(ThrownIn { count: 0, first, last, message });
        row.count += thrown.count;
        row.last = last.max(row.last);
        if first < row.first {
            (row.first, row.message) = (first, message);
        }
    }
    let total: u64 = rows.values().map(|row| row.count).sum();
    let mut sorted: Vec<_> = rows.into_iter().collect();
    sorted.sort_by_key(|(_, row)| (std::cmp::Reverse(row.count), row.first));
    let mut table = Table::new("exceptions", "", &columns(&own));
    for ((process, kind, method), ThrownIn { count, first, last, message }) in sorted {
        let mut row = process_cells(machine, process).to_vec();
        row.extend([
            Cell::Count(count),
            Cell::text(kind),
            Cell::text(method),
            Cell::time(clock, Some(first)),
            Cell::time(clock, Some(last)),
            Cell::text(message),
        ]);
        table.rows.push(row);
    }
    pdbs.note_missing();
    let mut report = report("exceptions", &analyzed);
    report.facts.extend(span_facts(machine));
    report.facts.push(("count", Cell::Count(total)));
    report.headline.push(plural(total, "exception", "exceptions"));
    if exceptions.list().next().is_none() {
        report.missing.push(
            "exceptions, or their events: enable Microsoft-Windows-DotNETRuntime with the keyword \
             Exception (0x8000) at level 2"
                .to_owned(),
        );
    }
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}

/// Arguments of `etlkit analyze contention`.
#[derive(Debug, clap::Args)]
pub(super) struct ContentionArgs {
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints the waits for locks by thread, or by the stacks of their beginnings.
pub(super) fn contention(args: &ContentionArgs) -> Result<Outcome, Failure> {
    let ContentionArgs { stacks, report: args } = args;
    let (mut report, table, given_up, outcome) = if stacks.is_empty() {
        let analyzed = args.recording.analyze(|range| Contention::new().within(range))?;
        let waits = &analyzed.observer;
        let table = lock_waits(args, &analyzed, waits);
        let mut report = report("contention", &analyzed);
        report.facts.extend(span_facts(&analyzed.machine));
        (report, table, waits.given_up(), analyzed.outcome)
    } else {
        let observer = |range: TimeRange| StackedContention::new().within(range);
        let (analyzed, profile) =
            stacks.profile(&args.recording, observer, StackedContention::costs)?;
        let waits = analyzed.observer.waits();
        let (table, given_up) = (lock_waits(args, &analyzed, waits), waits.given_up());
        let mut report = report("contention", &analyzed);
        ensure_stacks(
            &mut report,
            &profile,
            "stacks of waits for locks: enable Microsoft-Windows-DotNETRuntime with the keywords \
             Contention and Stack (0x40004000) at level 4",
        );
        let outcome = analyzed.outcome;
        report.facts.extend(span_facts(&analyzed.machine));
        report.tables.push(stacks.table(&profile)?);
        (report, table, given_up, outcome)
    };
    note_given_up(&mut report, given_up, "waits for locks that are not counted");
    let threads = plural(table.rows.len() as u64, "thread", "threads");
    report.headline.push(format!("{threads} waited for locks"));
    if table.rows.is_empty() {
        report.missing.push(
            "waits for locks, or their events: enable Microsoft-Windows-DotNETRuntime with the \
             keyword Contention (0x4000) at level 4"
                .to_owned(),
        );
    }
    if stacks.is_empty() {
        report.tables.push(table);
    }
    args.print(&report, outcome)
}

/// The waits for locks of each thread, those that waited longest first.
fn lock_waits<O>(args: &ReportArgs, analyzed: &Analyzed<O>, contention: &Contention) -> Table {
    let Analyzed { machine, selected, .. } = analyzed;
    let clock = machine.clock();
    let own =
        [("tid", "tid"), ("thread_name", "thread"), ("count", "waits"), ("unended", "unended")];
    let mut table = Table::new("threads", "", &columns(&own));
    table.columns.extend(DISTRIBUTION);
    table.columns.push(("longest_at", "longest at"));
    let mut rows = Vec::new();
    for (&(process, tid), waits) in contention.threads() {
        if !args.has_thread(Some(tid)) || selected.as_ref().is_some_and(|s| !s.contains(&process)) {
            continue;
        }
        let all = Distribution::new(waits.durations.iter().map(|&d| ticks(clock, d)));
        let name = machine.thread_of(Some(process), tid).map_or("", |thread| &thread.name);
        let mut row = process_cells(machine, process).to_vec();
        row.extend([
            Cell::Count(tid.into()),
            Cell::text(name),
            Cell::Count(all.count()),
            Cell::Count(waits.unended),
        ]);
        row.extend(distribution(&all));
        row.push(Cell::time(clock, waits.longest.map(|(_, at)| at)));
        rows.push((std::cmp::Reverse(all.total()), row));
    }
    rows.sort_by_key(|(total, _)| *total);
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    table
}

#[cfg(test)]
mod tests {
    use etl_analysis::symbols::{FunctionNames, FunctionOffset, Image, Symbol};
    use etl_analysis::{Analysis, Machine, Recording};

    use super::label;

    #[derive(Debug)]
    struct Named;

    impl FunctionNames for Named {
        fn function(&self, _: &Machine, image: &Image<'_>) -> Option<FunctionOffset> {
            let is_inside = image.offset >= 0x100;
            is_inside.then(|| FunctionOffset { name: "Cart::add".into(), offset: 4 })
        }
    }

    #[test]
    fn throwing_code_of_images_has_its_function() {
        let image = |offset| Image {
            path: r"C:\App\a+b.dll",
            start: 0x1000,
            end: 0x2000,
            offset,
            kernel: false,
            pdb: None,
        };
        let of = |offset| Some(Symbol::Image(image(offset)));
        let mut recording = Recording::open([] as [(&[u8], &str); 0]).unwrap();
        let machine = Analysis::new().run(&mut recording, &mut ()).unwrap();
        assert_eq!(label(&machine, of(0x104), Some(&Named)), "a+b.dll!Cart::add");
        assert_eq!(label(&machine, of(4), Some(&Named)), "a+b.dll!?");
        assert_eq!(label(&machine, of(0x104), None), "a+b.dll!?");
        assert_eq!(label(&machine, None, Some(&Named)), "?");
    }
}
