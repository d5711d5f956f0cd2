//! The verdict on every recorded EventPipe stream, as `reports/real-trace-findings.md` lists them.
//! `ETLKIT_WRITE_DOCS=1` writes the table.

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use etl_events::eventpipe::{ConvertOptions, convert};
use etl_test_support::{needs, root, traces};
use etl_verify::{Enabled, Outcome, Report, TraceOrigin, Verdict, Verifier};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::real_verdicts::reasons;

const BEGIN: &str = "<!-- streams -->\n";
const END: &str = "<!-- end of streams -->\n";
const ENDING: &str = ".nettrace.gz";

fn directory() -> PathBuf {
    traces().join("nettrace")
}

fn stream(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(directory().join(format!("{name}{ENDING}"))).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn converted(stream: &[u8]) -> Vec<u8> {
    let finished = convert(stream, Vec::new(), &ConvertOptions::default()).unwrap();
    finished.output
}

fn verify(stream: &[u8]) -> Report {
    let trace = converted(stream);
    Verifier::new()
        .verify(trace.as_slice(), "app.nettrace")
        .unwrap()
}

/// How a stream was recorded, by the manifest of the streams.
fn recorded(manifest: &[Value], name: &str) -> String {
    let file = format!("{name}{ENDING}");
    let row = manifest.iter().find(|row| row["file"] == file.as_str());
    let row = row.unwrap_or_else(|| panic!("{file} is not in the manifest"));
    let text = |key: &str| row[key].as_str().unwrap_or_default().replace('|', ",");
    let rundown = text("rundown");
    let rundown = rundown.split(':').next().unwrap_or_default();
    let end = match text("end") {
        end if end.is_empty() => "stopped".to_owned(),
        end => end,
    };
    format!("{}; rundown {rundown}; {end}", text("providers"))
}

fn names() -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        names.extend(name.strip_suffix(ENDING).map(str::to_owned));
    }
    names.sort();
    names
}

#[needs(traces)]
#[test]
fn verdict_on_each_stream_is_the_listed_one() {
    let manifest = std::fs::read_to_string(directory().join("manifest.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_str(&manifest).unwrap();
    let mut rows = BEGIN.to_owned();
    rows += "| stream | recorded with | verdict | because of |\n|---|---|---|---|\n";
    let names = names();
    assert_eq!(names.len(), manifest.len());
    for name in &names {
        let report = verify(&stream(name));
        assert_eq!(report.origin, TraceOrigin::EventPipe, "{name}");
        let verdict = report.verdict.words();
        let recorded = recorded(&manifest, name);
        let because = reasons(&report);
        writeln!(rows, "| {name} | {recorded} | {verdict} | {because} |").unwrap();
    }
    rows += END;
    compare(&root().join("reports/real-trace-findings.md"), &rows);
}

/// Compares the table of a page, or writes it.
fn compare(page: &Path, rows: &str) {
    let text = std::fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{rows}{after}");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(page, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "ETLKIT_WRITE_DOCS=1 updates it");
    }
}

/// Ids of the rules with decided findings above a note.
fn broken(report: &Report) -> Vec<&'static str> {
    let findings = report.findings.iter();
    let serious = findings.filter(|f| f.severity > etl_verify::Severity::Note && f.is_decided());
    let mut rules: Vec<_> = serious.map(|f| f.rule).collect();
    rules.dedup();
    rules
}

#[needs(traces)]
#[test]
fn cut_streams_are_incomplete_without_their_rundown() {
    let whole = stream("8.0-1CCBD-5");
    let mut without_rundown = 0;
    for part in 2..10 {
        let report = verify(&whole[..whole.len() / 10 * part]);
        assert_eq!(report.verdict, Verdict::Incomplete, "{part} tenths");
        let broken = broken(&report);
        assert!(broken.contains(&"file.unclosed"), "{part}: {broken:?}");
        // The last part of the stream is its rundown.
        if broken.contains(&"rundown.none") {
            without_rundown += 1;
        } else {
            assert!(broken.contains(&"rundown.unclosed"), "{part}: {broken:?}");
        }
    }
    assert!((2..8).contains(&without_rundown), "{without_rundown}");
    // Without the last bytes the rundown is there, and the end is not.
    let report = verify(&whole[..whole.len() - 1]);
    assert!(!broken(&report).contains(&"rundown.none"));
    assert!(broken(&report).contains(&"file.unclosed"));
    assert_eq!(report.verdict, Verdict::CannotTell);
}

#[needs(traces)]
#[test]
fn damaged_part_of_a_stream_is_a_finding() {
    let mut bytes = stream("8.0-1CCBD-5");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xff);
    let report = verify(&bytes);
    let finding = report
        .findings
        .iter()
        .find(|f| f.rule == "file.buffers-lost")
        .unwrap();
    assert!(
        finding.message.contains("of the stream"),
        "{}",
        finding.message
    );
    assert_eq!(report.verdict, Verdict::CannotTell);
}

#[needs(traces)]
#[test]
fn lost_events_of_a_stream_are_a_finding() {
    let report = verify(&stream("3.1-dropped"));
    let finding = report
        .findings
        .iter()
        .find(|f| f.rule == "file.events-lost");
    assert!(finding.unwrap().message.starts_with("786 events"));
    assert!(report.text().contains("dotnet-trace collect"));
    assert!(!report.text().contains("xperf"));
}

#[needs(traces)]
#[test]
fn mask_0_of_a_stream_requests_no_keywords() {
    let trace = converted(&stream("10.0-rundown-138"));
    let count = |declared: &str| {
        let mut verifier = Verifier::new().enabled(Enabled::parse(declared).unwrap());
        let report = verifier.verify(trace.as_slice(), "app.nettrace").unwrap();
        report
            .findings
            .iter()
            .filter(|f| f.rule == "filter.not-enabled")
            .count()
    };
    assert_eq!(count("rundown:0x138:5"), 0);
    // The same mask requests all events of ETW.
    assert!(count("rundown:0:5") > 0);
}

#[needs(traces)]
#[test]
fn rules_of_the_kernel_are_not_applicable_to_streams() {
    let report = verify(&stream("v6-one_collect"));
    for rule in ["kernel.no-start", "merge.no-image-ids", "stacks.missing"] {
        let outcome = report.rules.iter().find(|r| r.rule == rule).unwrap();
        assert_eq!(outcome.outcome, Outcome::NotApplicable, "{rule}");
        let because = outcome.because.as_deref().unwrap();
        assert!(because.contains("EventPipe"), "{because}");
    }
}
