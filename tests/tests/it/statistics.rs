//! Compares a simulated trace with the real one that it is modelled on: docs/statistics.md.

use std::collections::BTreeMap;

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::{Options, Records};
use etl_format::rewrite::repack::Repacker;
use etl_format::write::BufferCompressor;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::Script;
use etl_test_support::{needs, root, trace};

/// Figures of a trace.
#[derive(Debug)]
struct Statistics {
    records: u64,
    /// Bytes of its records, aligned to 8.
    bytes: u64,
    /// Number and bytes of records by kind.
    kinds: BTreeMap<String, (u64, u64)>,
    /// Number of records by group.
    groups: BTreeMap<&'static str, u64>,
    buffers: u64,
    buffer_size: u32,
    /// Bytes in use of all buffers.
    used: u64,
    /// Bytes of the compressed file, by our encoder at its default effort.
    packed: u64,
}

impl Statistics {
    fn of(stored: &[u8]) -> Self {
        let mut plain = Vec::new();
        let options = Options::default();
        let bytes =
            if Repacker::decompress().run(stored, &mut plain).is_ok() { &plain } else { stored };
        let mut trace = Records::stream(bytes, &options).unwrap();
        let buffer_size = trace.header().buffer_size;
        let mut found = Statistics {
            records: 0,
            bytes: 0,
            kinds: BTreeMap::new(),
            groups: BTreeMap::new(),
            buffers: 0,
            buffer_size,
            used: 0,
            packed: 0,
        };
        while let Some(record) = trace.next_record().unwrap() {
            let len = (record.bytes().len() as u64).next_multiple_of(8);
            found.records += 1;
            found.bytes += len;
            let kind = found.kinds.entry(record.kind().to_string()).or_default();
            *kind = (kind.0 + 1, kind.1 + len);
            let id = record.descriptor().map_or(0, |d| d.id);
            let provider = record.provider();
            let group = match (provider, record.hook()) {
                (_, Some(0x0f2e)) => "samples",
                (_, Some(hook)) if hook >> 8 == 0x18 => "kernel stacks",
                (_, Some(_)) => "other kernel events",
                (Some(CLR_RUNTIME), _) if id == 82 => "CLR stacks",
                (Some(CLR_RUNTIME), _) => "CLR runtime",
                (Some(CLR_RUNDOWN), _) => "CLR rundown",
                _ => "others",
            };
            *found.groups.entry(group).or_default() += 1;
        }
        let entries = etl_format::read::Trace::open(bytes, &options).unwrap();
        found.buffers = entries.buffers().len() as u64;
        found.used = entries.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut packed = Vec::new();
        let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default).unwrap();
        Repacker::compress(compressor).run(bytes, &mut packed).unwrap();
        found.packed = packed.len() as u64;
        found
    }

    /// Figures by name, as the page shows them.
    fn figures(&self) -> Vec<(String, f64)> {
        let mut all = vec![
            ("records".to_owned(), self.records as f64),
            ("bytes of a record, on average".to_owned(), self.bytes as f64 / self.records as f64),
            ("buffers".to_owned(), self.buffers as f64),
            ("KiB of a buffer".to_owned(), f64::from(self.buffer_size) / 1024.0),
            (
                "fill of a buffer, %".to_owned(),
                100.0 * self.used as f64 / (self.buffers as f64 * f64::from(self.buffer_size)),
            ),
            (
                "compressed to, % of what is used".to_owned(),
                100.0 * self.packed as f64 / self.used as f64,
            ),
        ];
        for kind in ["EVENT32", "EVENT64", "PERFINFO64", "SYSTEM64", "FULL64"] {
            let (count, bytes) = self.kinds.get(kind).copied().unwrap_or_default();
            all.push((format!("{kind}, % of records"), 100.0 * count as f64 / self.records as f64));
            all.push((format!("{kind}, bytes on average"), bytes as f64 / count.max(1) as f64));
        }
        for (group, count) in &self.groups {
            all.push((
                format!("{group}, % of records"),
                100.0 * *count as f64 / self.records as f64,
            ));
        }
        all
    }
}

/// Figures of the real trace net.4.5.2.x64.etl, and the accepted difference of the generated trace:
/// a share of the figure, or percentage points.
const REAL: &[(&str, f64, Within)] = &[
    ("records", 179_474.0, Within::Share(0.1)),
    ("bytes of a record, on average", 128.2, Within::Share(0.1)),
    ("buffers", 360.0, Within::Share(0.15)),
    ("KiB of a buffer", 64.0, Within::Share(0.0)),
    ("fill of a buffer, %", 97.7, Within::Points(3.0)),
    ("compressed to, % of what is used", 18.4, Within::Share(0.1)),
    ("EVENT32, % of records", 18.6, Within::Share(0.1)),
    ("EVENT32, bytes on average", 285.8, Within::Share(0.1)),
    ("EVENT64, % of records", 19.4, Within::Share(0.1)),
    ("EVENT64, bytes on average", 206.1, Within::Share(0.1)),
    ("PERFINFO64, % of records", 55.8, Within::Share(0.1)),
    ("PERFINFO64, bytes on average", 49.1, Within::Share(0.25)),
    ("SYSTEM64, % of records", 1.8, Within::Points(2.0)),
    ("FULL64, % of records", 4.4, Within::Share(0.15)),
    ("CLR rundown, % of records", 18.4, Within::Share(0.1)),
    ("CLR runtime, % of records", 9.9, Within::Share(0.2)),
    ("CLR stacks, % of records", 8.3, Within::Share(0.1)),
    ("samples, % of records", 44.3, Within::Points(9.0)),
];

/// How far a figure may be from another.
#[derive(Clone, Copy)]
enum Within {
    Share(f64),
    Points(f64),
}

impl Within {
    fn holds(self, real: f64, found: f64) -> bool {
        match self {
            Within::Share(share) => (found - real).abs() <= real * share,
            Within::Points(points) => (found - real).abs() <= points,
        }
    }

    fn text(self) -> String {
        match self {
            Within::Share(share) => format!("{:.0} %", share * 100.0),
            Within::Points(points) => format!("{points:.0} points"),
        }
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn statistics_of_the_real_trace_match_the_table() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let found = Statistics::of(&std::fs::read(path).unwrap()).figures();
    for (name, known, _) in REAL {
        let (_, figure) = found.iter().find(|(n, _)| n == name).unwrap();
        assert!((figure - known).abs() < 0.051, "{name}: {figure}, not {known}");
    }
}

#[test]
fn generated_trace_is_similar_to_the_real_one() {
    let text = std::fs::read_to_string(root().join("benches/scenarios/like-real.kdl")).unwrap();
    let scenario = Script::new("like-real", &text).parse().unwrap_or_else(|e| panic!("{:#?}", e));
    let files = etl_synth::Simulation::new(&scenario).run_in_memory().unwrap();
    let (_, bytes) = files.iter().find(|(name, _)| name == "merged.etl").unwrap();
    let found = Statistics::of(bytes).figures();
    let mut page = String::from(
        "# A generated trace compared with a real one\n\n\
        The real trace is net.4.5.2.x64.etl of PerfView's tests: Windows 8, eight processors, ten seconds\n\
        of 32-bit and 64-bit programs on .NET Framework 4.5 that allocate; kernel, CLR runtime and CLR\n\
        rundown, merged. `benches/scenarios/like-real.kdl` is modelled on it. Both are compressed by etlkit\n\
        (XPRESS, default level). A test computes these figures and fails if the generated trace differs by\n\
        more than the last column.\n\n\
        | figure | real | generated | may differ by |\n|---|---:|---:|---:|\n",
    );
    let mut wrong = Vec::new();
    for (name, real, within) in REAL {
        let figure = found.iter().find(|(n, _)| n == name).map_or(0.0, |(_, figure)| *figure);
        page.push_str(&format!("| {name} | {real:.1} | {figure:.1} | {} |\n", within.text()));
        if !within.holds(*real, figure) {
            wrong.push(format!("{name}: {figure:.1}, not near {real:.1}"));
        }
    }
    page.push_str(
        "\nThe real trace has PERFINFO64 records that the model lacks, and they are larger: names of 3,054\n\
        open files (213 bytes each), stacks by key (9,107 of 40 bytes), definitions of stack keys (2,921 of\n\
        196 bytes) and disk reads. The model has more samples in their place. Events of the private\n\
        provider of the CLR are not simulated.\n",
    );
    let path = root().join("docs/statistics.md");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(known == page, "docs/statistics.md is not up to date: run with ETLKIT_WRITE_DOCS=1");
}
