//! The table of docs/performance.md: the same work on traces of several sizes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use etl_format::read::{FileSource, Options, Trace};

use crate::slope::slope;
use crate::tasks::{Job, Task, Took};

/// Bytes that a simulated second of the scenario comes to.
const BYTES_A_SECOND: f64 = 2_062e6 / 1_290.0;

/// Files up to this size are measured several times, and read by others.
const SMALL: u64 = 128 << 20;
/// Readers by others take minutes for more.
const FOREIGN: u64 = 16 << 20;

/// What one kind of work came to on one trace.
struct Row {
    what: &'static str,
    packed: bool,
    /// Bytes of the buffers, decompressed, that went through.
    bytes: u64,
    one: Took,
    two: Option<Took>,
}

/// All rows of one size.
struct Size {
    label: String,
    bytes: u64,
    packed: u64,
    records: u64,
    /// Processor time of a plain pass over the bytes, for each of them.
    plain: f64,
    rows: Vec<Row>,
    foreign: Vec<(&'static str, Option<f64>)>,
}

/// Measures everything for each of the sizes (label, bytes) and gives the table as Markdown.
pub fn table(scenario: &Path, directory: &Path, sizes: &[(String, u64)], others: bool) -> String {
    let load_before = load();
    let start = Instant::now();
    let measured: Vec<_> = sizes
        .iter()
        .map(|(label, bytes)| size(scenario, directory, label, *bytes, others))
        .collect();
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = preface(&mut out, &load_before, start.elapsed().as_secs());
    for size in &measured {
        let _ = size.render(&mut out);
    }
    let _ = slopes(&mut out, &measured);
    out
}

/// Makes the traces of a size, measures all work on them, and removes them.
fn size(scenario: &Path, directory: &Path, label: &str, bytes: u64, others: bool) -> Size {
    let runs = if bytes <= SMALL { 3 } else { 1 };
    let here = directory.join(label);
    let until = 1.0 + bytes as f64 / BYTES_A_SECOND;
    let set = vec![format!("until={until:.3}s"), format!("stop={:.3}s", until + 10.0)];
    let job = |task, input| Job { task, input, output: None, threads: 1, set: Vec::new() };
    let say = |task: Task, took: Took| eprintln!("{label}: {}: {:.3} s", task.name(), took.cpu);

    let made =
        Job { output: Some(here.clone()), set: set.clone(), ..job(Task::SynthFile, scenario) };
    let to_file = made.measure(1);
    let thrown_away = Job { set, ..job(Task::Synth, scenario) }.measure(runs);
    let (plain, packed) = (here.join("big.etl"), here.join("packed.etl"));
    let (bytes, records) = known(&plain);
    let limit = job(Task::Plain, &plain).measure(runs.max(3));
    let compress = Job { output: Some(packed.clone()), ..job(Task::Compress, &plain) };
    let compress_two = Job { output: Some(here.join("again.etl")), threads: 2, ..compress.clone() };
    let (compress, compress_two) = (compress.measure(1), compress_two.measure(1));

    let mut rows =
        vec![Row { what: Task::Plain.name(), packed: false, bytes, one: limit, two: None }];
    for (file, is_packed) in [(&plain, false), (&packed, true)] {
        for task in [
            Task::Walk,
            Task::Ordered,
            Task::Info,
            Task::Json,
            Task::Csv,
            Task::Verify,
            Task::Merge,
        ] {
            let job = job(task, file);
            let one = job.measure(runs);
            say(task, one);
            // Where other threads have nothing to do, none is started.
            let helps = match task {
                Task::Walk => false,
                Task::Verify | Task::Json | Task::Csv => true,
                _ => is_packed,
            };
            let two = helps.then(|| Job { threads: 2, ..job }.measure(runs));
            let bytes = if task == Task::Merge { 2 * bytes } else { bytes };
            rows.push(Row { what: task.name(), packed: is_packed, bytes, one, two });
        }
    }
    for (task, one, two) in [
        (Task::Compress, compress, Some(compress_two)),
        (Task::Synth, thrown_away, None),
        (Task::SynthFile, to_file, None),
    ] {
        say(task, one);
        rows.push(Row { what: task.name(), packed: false, bytes, one, two });
    }
    let foreign = match others && bytes <= FOREIGN {
        true => vec![
            ("dissect.etl 3.14", crate::foreign(&plain, "dissect_counts.py")),
            ("etl-parser 1.0.1", crate::foreign(&plain, "etl_parser_counts.py")),
        ],
        false => Vec::new(),
    };
    let packed = std::fs::metadata(&packed).map_or(0, |m| m.len());
    std::fs::remove_dir_all(&here).expect("what was made can be removed");
    let label = label.to_owned();
    Size { label, bytes, packed, records, plain: limit.cpu / bytes as f64, rows, foreign }
}

/// Bytes in use and records of a trace.
fn known(path: &PathBuf) -> (u64, u64) {
    let file = std::fs::File::open(path).expect("the trace was made");
    let source = FileSource::new(file).expect("it can seek");
    let mut trace = Trace::open(source, &Options::default()).expect("it is a trace");
    let bytes = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
    let mut records = trace.file_order().expect("it is a trace");
    while records.next_record().expect("it is whole").is_some() {}
    (bytes, records.records())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Size {
    fn render(&self, out: &mut String) -> std::fmt::Result {
        let Size { label, bytes, packed, records, .. } = self;
        writeln!(
            out,
            "\n### {label}\n\n{records} records in {:.1} MiB; {:.1} MiB compressed.\n",
            mib(*bytes),
            mib(*packed)
        )?;
        writeln!(
            out,
            "| what | trace | CPU s | wall s | MB/s | × plain pass | peak MiB | two threads: CPU s | wall s | peak MiB |"
        )?;
        writeln!(out, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        for row in &self.rows {
            let kind = if row.packed { "compressed" } else { "plain" };
            let Took { cpu, wall, peak } = row.one;
            let rate = row.bytes as f64 / cpu / 1e6;
            let ratio = cpu / (self.plain * row.bytes as f64);
            write!(
                out,
                "| {} | {kind} | {cpu:.3} | {wall:.3} | {rate:.0} | {ratio:.1} | {:.1} |",
                row.what,
                mib(peak)
            )?;
            match row.two {
                Some(Took { cpu, wall, peak }) => {
                    writeln!(out, " {cpu:.3} | {wall:.3} | {:.1} |", mib(peak))?;
                }
                None => writeln!(out, " | | |")?,
            }
        }
        for (name, seconds) in &self.foreign {
            if let Some(seconds) = seconds {
                let rate = self.bytes as f64 / seconds / 1e6;
                let ratio = seconds / (self.plain * self.bytes as f64);
                writeln!(
                    out,
                    "| {name}, records | plain | | {seconds:.3} | {rate:.2} | {ratio:.0} | | | | |"
                )?;
            } else {
                writeln!(
                    out,
                    "| {name} | plain | does not read it, or is not installed | | | | | | | |"
                )?;
            }
        }
        Ok(())
    }
}

fn slopes(out: &mut String, sizes: &[Size]) -> std::fmt::Result {
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return Ok(()) };
    if sizes.len() < 2 {
        return Ok(());
    }
    writeln!(out, "\n### How cost grows\n")?;
    writeln!(
        out,
        "Slope of the processor time over the bytes, both as logarithms, by least squares over all sizes: 1 is linear. \
         Beside it the time for a megabyte at {} and at {}, and the heap's peak there.\n",
        first.label, last.label
    )?;
    writeln!(
        out,
        "| what | trace | slope | ms/MB at {} | at {} | peak MiB at {} | at {} |",
        first.label, last.label, first.label, last.label
    )?;
    writeln!(out, "|---|---|---:|---:|---:|---:|---:|")?;
    for (n, row) in first.rows.iter().enumerate() {
        let same = || sizes.iter().filter_map(|size| size.rows.get(n));
        let points: Vec<_> = same().map(|row| (row.bytes as f64, row.one.cpu)).collect();
        let Some(end) = same().next_back() else { continue };
        let each = |row: &Row| row.one.cpu * 1e9 / row.bytes as f64;
        writeln!(
            out,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} |",
            row.what,
            if row.packed { "compressed" } else { "plain" },
            slope(&points),
            each(row),
            each(end),
            mib(row.one.peak),
            mib(end.one.peak)
        )?;
    }
    Ok(())
}

fn preface(out: &mut String, before: &str, seconds: u64) -> std::fmt::Result {
    let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    writeln!(
        out,
        "{cores} processors ({model}), {}; load of the machine {before} before and {} after the {seconds} s that all this took. \
         CPU s is the time on processors, the system's part included, and what MB/s and ratios are made of: others at work beside \
         change it little, while wall s is whatever they left over. Where the load was above {cores}, two threads could not show what they gain \
         by the wall: their CPU s says what the second one costs.",
        crate::compiler(),
        load()
    )
}

/// The load of the machine over a minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Replaces what stands between the marks in a document.
pub fn put_in(document: &str, table: &str) -> Option<String> {
    const BEGIN: &str = "<!-- table: begin -->\n";
    const END: &str = "<!-- table: end -->";
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}\n{END}{after}", table.trim_end()))
}

/// A list of sizes, with M or G behind the number for powers of 1000: the label and the bytes.
pub fn parse(text: &str) -> Result<(String, u64), String> {
    let (number, unit) = match text.to_ascii_uppercase() {
        t if t.ends_with('G') => (t.trim_end_matches('G').to_owned(), 1_000_000_000),
        t => (t.trim_end_matches('M').to_owned(), 1_000_000),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number with M or G behind it")?;
    let name = if unit == 1_000_000 { "MB" } else { "GB" };
    let bytes = number.checked_mul(unit).filter(|b| *b > 0).ok_or("too large, or nothing")?;
    Ok((format!("{number} {name}"), bytes))
}

#[cfg(test)]
mod tests {
    use super::{parse, put_in};

    #[test]
    fn the_table_takes_the_place_of_the_last_one() {
        let text = "a\n<!-- table: begin -->\nold\n<!-- table: end -->\nb\n";
        let new = "a\n<!-- table: begin -->\nnew\n<!-- table: end -->\nb\n";
        assert_eq!(put_in(text, "new\n\n").as_deref(), Some(new));
        assert_eq!(put_in("no marks", "new"), None);
    }

    #[test]
    fn sizes_are_powers_of_a_thousand() {
        assert_eq!(parse("10M"), Ok(("10 MB".to_owned(), 10_000_000)));
        assert_eq!(parse("4g"), Ok(("4 GB".to_owned(), 4_000_000_000)));
        assert!(parse("0M").is_err() && parse("x").is_err() && parse("99999999999G").is_err());
    }
}
