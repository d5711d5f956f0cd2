//! Measures reading and writing side by side and prints a table: `cargo run --release -p etl-bench`.
//!
//! Every row is the best of several runs in one process, from the page cache, on one core. Ratios are
//! to a plain pass over the same file: reading it into one reused buffer and looking at each word.
//!
//! `--table` measures by size, each piece of work in a process of its own, and `--callgrind` counts the
//! instructions of the hot loops; docs/performance.md tells of both.

mod decode;
mod hot;
mod inputs;
mod making;
mod measure;
mod sizes;
mod slope;
mod table;
mod tasks;
mod writing;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use etl_format::read::{FileOrder, FileSource, Options, OrderCheck, Record, Trace};
use etl_schema::store::SchemaStore;
use etl_verify::Verifier;

use measure::{best, best_on_the_wall, peak_memory, plain_pass};
use table::Row;
use tasks::{Job, Task};

/// Counts the bytes of the heap.
#[global_allocator]
static PEAK: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// Measures reading of traces, side by side with the limit and with readers by others.
#[derive(Parser)]
struct Args {
    /// Small inputs, one run, no foreign readers, and `etlkit` as a part of this program: shows that everything
    /// still runs. Its figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Megabytes of the generated plain trace
    #[arg(long, default_value_t = 256)]
    megabytes: usize,
    /// Runs of each row
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Measure this trace instead of the built-in choice
    #[arg(long)]
    file: Vec<PathBuf>,
    /// Measure only rows with this text in their name; may be given again
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Make the table of docs/performance.md: all kinds of work on traces of several sizes, in processes of
    /// their own
    #[arg(long)]
    table: bool,
    /// Sizes of the table's traces
    #[arg(long, value_delimiter = ',', value_parser = sizes::parse, default_value = "10M,100M,1G,4G", requires = "table")]
    sizes: Vec<(String, u64)>,
    /// Put the table into this document, between its marks, instead of printing it
    #[arg(long, value_name = "FILE", requires = "table")]
    write: Option<PathBuf>,
    /// Where the table's traces are made, which takes one and a half times the largest size [default: a
    /// temporary directory]
    #[arg(long, value_name = "DIRECTORY", requires = "table")]
    directory: Option<PathBuf>,
    /// Count the instructions of the hot loops and hold them against benches/callgrind.json; exit code 1 where
    /// one takes more
    #[arg(long)]
    callgrind: bool,
    /// Take the counts as the new figures for this compiler
    #[arg(long, requires = "callgrind")]
    update: bool,
    /// Used by the program itself: do one piece of the table's work
    #[arg(long, hide = true, requires = "input")]
    task: Option<Task>,
    /// Used by the program itself: go through a hot loop
    #[arg(long, hide = true, requires = "input")]
    hot: Option<hot::Loop>,
    /// Used by the program itself: so many times
    #[arg(long, hide = true, default_value_t = 1)]
    times: u32,
    /// Used by the program itself: of this file
    #[arg(long, hide = true)]
    input: Option<PathBuf>,
    /// Used by the program itself: into this one
    #[arg(long, hide = true)]
    output: Option<PathBuf>,
    /// Used by the program itself: on so many threads
    #[arg(long, hide = true, default_value_t = 1)]
    threads: usize,
    /// Used by the program itself: with these settings of the scenario
    #[arg(long, hide = true)]
    set: Vec<String>,
    /// Used by the program itself: put so many methods in a symbol index and print the peak memory
    #[arg(long, hide = true)]
    index: Option<u64>,
    /// Used by the program itself: read one trace in time order and print the peak memory
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
    /// Used by the program itself: judge one trace and print the peak memory
    #[arg(long, hide = true)]
    judge: Option<PathBuf>,
}

const PLAIN: &str = "plain pass over the bytes";
const LOOK_UP: &str = "file order, look-up";
const LOOK_UP_FIELDS: &str = "file order, look-up, fields";
const FIELDS: &str = "fields of known events";
const DUMP: &str = "dump to JSON lines";
const WALK: &str = "time order, slice";
const VERIFY: &str = "etlverify";
const INDEX: &str = "symbol index";

impl Args {
    /// Whether a row is to be measured.
    fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| row.contains(name.as_str()))
    }
}

/// The compiler that this is built with, as far as can be told: that of the path.
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "an unknown compiler".to_owned()) + ", " + std::env::consts::ARCH
}

/// Does what the arguments ask of a process that this program has started.
fn is_part(args: &Args) -> bool {
    let Some(input) = &args.input else { return false };
    if let Some(task) = args.task {
        let (output, threads, set) = (args.output.clone(), args.threads, args.set.clone());
        Job { task, input, output, threads, set }.run_here();
    } else if let Some(hot) = args.hot {
        hot.run(input, args.times);
    }
    true
}

fn main() -> ExitCode {
    let args = Args::parse();
    if is_part(&args) {
        return ExitCode::SUCCESS;
    }
    let scenario = etl_test_support::root().join("benches/scenarios/big.kdl");
    let directory = match &args.directory {
        Some(there) => tempfile::tempdir_in(there),
        None => tempfile::tempdir(),
    };
    let directory = directory.expect("a temporary directory");
    if args.callgrind {
        let figures = etl_test_support::root().join("benches/callgrind.json");
        let sound = hot::check(&scenario, directory.path(), &figures, args.update);
        return if sound { ExitCode::SUCCESS } else { ExitCode::from(1) };
    }
    if args.table {
        let table = sizes::table(&scenario, directory.path(), &args.sizes, true);
        let Some(file) = &args.write else {
            println!("{table}");
            return ExitCode::SUCCESS;
        };
        let document = std::fs::read_to_string(file).expect("the document is readable");
        let document = sizes::put_in(&document, &table).expect("the document has the marks");
        std::fs::write(file, document).expect("the document can be written");
        return ExitCode::SUCCESS;
    }
    side_by_side(&args, directory.path());
    if args.quick && args.only.is_empty() {
        let sizes = [("1 MB".to_owned(), 1_000_000), ("2 MB".to_owned(), 2_000_000)];
        println!("{}", sizes::table(&scenario, directory.path(), &sizes, false));
    }
    ExitCode::SUCCESS
}

/// The rows beside each other, printed.
fn side_by_side(args: &Args, directory: &Path) {
    if let Some(path) = &args.child {
        let file = std::fs::File::open(path).expect("the trace opens");
        let mut trace =
            Trace::open(FileSource::new(file).expect("it can seek"), &Options::default())
                .expect("it is a trace");
        let mut records = trace.ordered().expect("it is in order");
        while records.next_record().expect("it reads").is_some() {}
        println!("{}", peak_memory());
        return;
    }
    if let Some(path) = &args.judge {
        judge(path, 2);
        println!("{}", peak_memory());
        return;
    }
    if let Some(methods) = args.index {
        let seconds = index(methods);
        println!("{} {seconds}", peak_memory());
        return;
    }
    if args.wants(DUMP) && !args.quick {
        build_the_tool();
    }
    let mut files = args.file.clone();
    if files.is_empty() {
        let megabytes = if args.quick { 4 } else { args.megabytes };
        // A small one as well, for the readers that take seconds for a megabyte.
        files.push(inputs::generated(directory, 2));
        files.push(inputs::generated(directory, megabytes));
        files.extend(inputs::unpacked(directory, if args.quick { 4 } else { megabytes }));
        files.extend(inputs::real("perfview/net.4.5.2.x64.etl"));
    }
    let mut rows = Vec::new();
    for file in &files {
        rows.extend(measure_file(file, args));
    }
    if args.file.is_empty() {
        // Three traces whose records take turns: real ones, where there are some.
        let megabytes = if args.quick { 4 } else { args.megabytes / 4 };
        let plain = inputs::unpacked(directory, megabytes)
            .unwrap_or_else(|| inputs::generated(directory, megabytes));
        let plain = [plain.as_path(); 3];
        let real = inputs::real("perfview/net.4.5.2.x64.etl");
        let megabytes = if args.quick { 4 } else { args.megabytes };
        let runs = if args.quick { 1 } else { args.runs };
        let wants = |row: &str| args.wants(row);
        rows.extend(writing::rows(&plain, real.as_deref(), megabytes, runs, wants));
    }
    if args.wants(INDEX) {
        rows.extend(symbol_index(if args.quick { 100_000 } else { 10_000_000 }));
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows are numbers and names"));
    } else {
        table::print(&rows);
    }
}

/// Builds `etlkit` as it is now, beside this program: cargo builds for a program only the libraries of
/// other packages.
fn build_the_tool() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--locked", "-p", "etlkit"])
        .current_dir(etl_test_support::root())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "etlkit does not build");
}

fn measure_file(path: &Path, args: &Args) -> Vec<Row> {
    let runs = if args.quick { 1 } else { args.runs };
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let bytes = std::fs::read(path).expect("the input is readable");
    let mut trace = Trace::open(bytes.as_slice(), &Options::default()).expect("it is a trace");
    let unpacked: u64 = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
    let mut records = 0;
    trace
        .file_order()
        .expect("it is a trace")
        .for_each(|_| {
            records += 1;
            Ok::<_, etl_format::Error>(())
        })
        .expect("it is whole");

    let limit = best(runs, || plain_pass(path));
    let mut rows = Vec::new();
    let row = |what: &str, seconds: f64| Row {
        file: name.clone(),
        what: what.to_owned(),
        seconds,
        stored: bytes.len() as u64,
        unpacked,
        output: 0,
        records,
        ratio: Some(seconds / limit),
        peak: None,
    };
    if args.wants(PLAIN) {
        rows.push(row(PLAIN, limit));
    }
    if args.wants("file order, slice") {
        rows.push(row("file order, slice", best(runs, || file_order(&bytes))));
    }
    for (what, order) in [
        (WALK, OrderCheck::Ahead),
        ("time order, heads only", OrderCheck::Heads),
        ("time order, all checked first", OrderCheck::Full),
    ] {
        if args.wants(what) {
            rows.push(row(what, best(runs, || time_order(&bytes, order))));
        }
    }
    if args.wants(VERIFY) {
        rows.extend(verify_rows(path, &bytes, runs, row));
    }
    if args.wants("time order, file") {
        let mut from_file = row("time order, file", best(runs, || time_order_of_file(path)));
        from_file.peak = child_peak("--child", path);
        rows.push(from_file);
    }
    let store = SchemaStore::default();
    if args.wants(LOOK_UP) {
        rows.push(row(LOOK_UP, best(runs, || decode::look_up(&bytes, &store))));
    }
    if args.wants(LOOK_UP_FIELDS) {
        rows.push(row(LOOK_UP_FIELDS, best(runs, || decode::look_up_and_decode(&bytes, &store))));
    }
    if args.wants(FIELDS) {
        let payloads = decode::Payloads::of(&bytes, &store);
        let seconds = best(runs, || payloads.decode());
        rows.push(Row {
            unpacked: payloads.bytes(),
            records: payloads.len(),
            ..row(FIELDS, seconds)
        });
    }
    if args.wants(DUMP)
        && let Some((seconds, output)) = dump(path, runs, args.quick)
    {
        rows.push(Row { output, ..row(DUMP, seconds) });
    }
    if !args.quick && bytes.len() < 32 << 20 {
        for (what, script) in
            [("dissect.etl", "dissect_counts.py"), ("etl-parser", "etl_parser_counts.py")]
        {
            if args.wants(what) {
                rows.extend(foreign(path, script).map(|seconds| row(what, seconds)));
            }
        }
    }
    rows
}

/// Tells a process of methods, in no order of their addresses, and of a module for each hundred of them, as a rundown does,
/// and finds all methods again; seconds.
fn index(methods: u64) -> f64 {
    use etl_analysis::events::clr::{ClrEvent, FromClr, Method, Module, Rundown, Via};
    let start = Instant::now();
    let mut process = etl_analysis::machine::Process::new(4);
    let mut tell = |event| {
        let from = FromClr { instance: Some(9), event, rundown: true, whole: true };
        process.clr_event(&from, None, 5, 77);
    };
    // A step that has no factor in common with the number visits each place once.
    let place = |i: u64| 0x7ff0_0000_0000 + i.wrapping_mul(7_368_787) % methods * 256;
    // The path of the IL, and none of a native image.
    let paths: Vec<u8> =
        "C:\\App\\Some.Library.dll\0\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    tell(ClrEvent::Init(Rundown::End));
    for i in 0..methods {
        let module = i / 100 + 1;
        let method = Method { id: i, module, start: place(i), size: 200, flags: 8, named: true };
        tell(ClrEvent::Method(Via::Enumerated(Rundown::End), method));
        if i % 100 == 99 {
            let module = Module::new(module, module, 0, 2, &paths);
            tell(ClrEvent::Module(Via::Enumerated(Rundown::End), module));
        }
    }
    tell(ClrEvent::Complete(Rundown::End));
    assert_eq!(process.methods, methods, "each is known once");
    let modules = process.clrs.values().map(|clr| clr.modules.len() as u64).sum::<u64>();
    assert_eq!(modules, methods / 100, "and each module");
    let history = process.code.history();
    for i in 0..methods {
        let found = history.range(place(i) + 100, 2, 2).map(|range| range.start);
        assert_eq!(found, Some(place(i)), "an address finds its method");
    }
    start.elapsed().as_secs_f64()
}

/// Time and peak memory of a symbol index, in a process of its own.
fn symbol_index(methods: u64) -> Option<Row> {
    let child = Command::new(std::env::current_exe().ok()?)
        .args(["--index", &methods.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8(child.stdout).ok()?;
    let (peak, seconds) = said.trim().split_once(' ')?;
    Some(Row {
        file: INDEX.to_owned(),
        what: format!("{methods} methods, and a module for each hundred, put in and found again"),
        seconds: seconds.parse().ok()?,
        stored: 0,
        unpacked: 0,
        output: 0,
        records: methods,
        ratio: None,
        peak: peak.parse().ok(),
    })
}

/// What a reader does with every record here: enough that nothing can be left out.
fn look(sum: &mut i64, record: &Record<'_>) {
    *sum ^= record.timestamp() ^ record.bytes().len() as i64;
}

fn file_order(bytes: &[u8]) -> i64 {
    let mut sum = 0;
    let mut records = FileOrder::open(bytes, &Options::default()).expect("it is a trace");
    while let Some(record) = records.next_record().expect("it is whole") {
        look(&mut sum, &record);
    }
    sum
}

fn time_order(bytes: &[u8], order: OrderCheck) -> i64 {
    let mut sum = 0;
    let options = Options { order, ..Options::default() };
    let mut trace = Trace::open(bytes, &options).expect("it is a trace");
    let mut records = trace.ordered().expect("it is whole");
    while let Some(record) = records.next_record().expect("it is whole") {
        look(&mut sum, &record);
    }
    sum
}

fn time_order_of_file(path: &Path) -> i64 {
    let mut sum = 0;
    let file = std::fs::File::open(path).expect("the input opens");
    let source = FileSource::new(file).expect("it can seek");
    let mut trace = Trace::open(source, &Options::default()).expect("it is a trace");
    let mut records = trace.ordered().expect("it is whole");
    while let Some(record) = records.next_record().expect("it is whole") {
        look(&mut sum, &record);
    }
    sum
}

/// Judging, with the speed as a share of the ordered walk's over the same bytes by the same clock.
fn verify_rows(path: &Path, bytes: &[u8], runs: usize, row: impl Fn(&str, f64) -> Row) -> Vec<Row> {
    let walk = || time_order(bytes, OrderCheck::Ahead);
    let judge = |threads| {
        Verifier::new().threads(threads).verify(bytes, "").expect("it is a trace").records
    };
    let mut rows = Vec::new();
    for (threads, walk, seconds) in [
        (1, best(runs, walk), best(runs, || judge(1))),
        (2, best_on_the_wall(runs, walk), best_on_the_wall(runs, || judge(2))),
    ] {
        let clock = if threads == 1 { "one thread" } else { "two threads, wall" };
        rows.push(row(&format!("{VERIFY}, {clock}: {:.2} of the walk", walk / seconds), seconds));
    }
    if let Some(last) = rows.last_mut() {
        last.peak = child_peak("--judge", path);
    }
    rows
}

fn judge(path: &Path, threads: usize) {
    let file = std::fs::File::open(path).expect("the trace opens");
    let source = FileSource::new(file).expect("it can seek");
    Verifier::new().threads(threads).verify(source, "").expect("it is a trace");
}

/// Peak memory of a process that does nothing else.
fn child_peak(what: &str, path: &Path) -> Option<u64> {
    let output = Command::new(std::env::current_exe().ok()?).arg(what).arg(path).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Runs the tool as a whole process. What it prints is counted once, and then goes nowhere: a pipe
/// would measure whoever reads it as well. A `quick` look takes this program for the tool.
fn dump(path: &Path, runs: usize, quick: bool) -> Option<(f64, u64)> {
    use std::process::Stdio;
    let here = std::env::current_exe().ok()?;
    let (tool, args) = match quick {
        true => (here, &["--task", "json", "--input"][..]),
        false => (here.with_file_name("etlkit"), &["dump", "--format", "jsonl"][..]),
    };
    let start = |out: Stdio| {
        Command::new(&tool)
            .args(args)
            .arg(path)
            .stdout(out)
            .stderr(Stdio::null())
            .spawn()
            .expect("etlkit stands beside this program")
    };
    let mut child = start(Stdio::piped());
    let mut out = child.stdout.take().expect("its output is piped");
    let printed = std::io::copy(&mut out, &mut std::io::sink()).expect("its output is read");
    child.wait().expect("it ends");
    let seconds = best_on_the_wall(runs, || {
        start(Stdio::null()).wait().expect("it ends");
    });
    Some((seconds, printed))
}

/// Seconds that a reader by others takes, its start included; none where it is not installed or does
/// not read the file.
fn foreign(path: &Path, script: &str) -> Option<f64> {
    let start = Instant::now();
    if !etl_test_support::root().join(".venv/bin/python").is_file() {
        return None;
    }
    let results = etl_tests::foreign(script, &[path.to_owned()]);
    let seconds = start.elapsed().as_secs_f64();
    let read = results.first()?.get("records")?.as_u64()?;
    (read > 0).then_some(seconds)
}
