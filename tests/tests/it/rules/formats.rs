//! Validates reports on the corpus: JSON and SARIF by their schemas, JUnit with another project's
//! reader.

use etl_format::ProcessId;
use std::path::PathBuf;

use etl_test_support::{foreign, needs, root};
use etl_verify::{Finding, Format, Outcome, ProcessReport, Report, Severity, render};

use super::catalogue::judged;

fn schema() -> PathBuf {
    root().join(format!(
        "docs/schema/verify-{}.json",
        etl_verify::SCHEMA_VERSION
    ))
}

#[test]
fn json_schema_is_up_to_date() {
    let made = etl_verify::report_schema();
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::create_dir_all(schema().parent().unwrap()).unwrap();
        std::fs::write(schema(), &made).unwrap();
    }
    let found = std::fs::read_to_string(schema()).unwrap_or_default();
    assert!(
        found == made,
        "{} is not up to date: run with ETLKIT_WRITE_DOCS=1",
        schema().display()
    );
}

/// Processes with a test: those with managed code, and those with a finding above a note.
fn judged_processes(report: &Report) -> impl Iterator<Item = &ProcessReport> {
    let own = |p: &ProcessReport| {
        report
            .findings
            .iter()
            .any(|f| f.severity > Severity::Note && f.pid == Some(ProcessId::new(p.pid)))
    };
    report
        .processes
        .iter()
        .filter(move |p| p.clr_events > 0 || own(p))
}

/// Errors fail a test, and so do losses that are warnings.
fn fails(finding: &Finding) -> bool {
    let losses = [
        "unclosed",
        "events-lost",
        "buffers-lost",
        "sequence-gap",
        "overwritten",
    ];
    let is_loss = losses
        .map(|name| format!("file.{name}"))
        .iter()
        .any(|id| id == finding.rule);
    let is_open = finding.outcome == Outcome::Undecided;
    match finding.severity {
        Severity::Error => true,
        Severity::Warning => is_loss && !is_open,
        Severity::Note => false,
    }
}

/// Numbers of tests, and of those that failed, ended with an error, or were skipped.
fn junit(report: &Report) -> [u64; 4] {
    if report.error.is_some() {
        return [1, 0, 1, 0];
    }
    let mut sums = (0, 0);
    for rule in &report.rules {
        let own: Vec<_> = report
            .findings
            .iter()
            .filter(|f| f.rule == rule.rule)
            .collect();
        let is_open = |f: &&Finding| f.outcome == Outcome::Undecided;
        if own.iter().any(|f| fails(f)) {
            sums.0 += 1;
        } else if rule.outcome == Outcome::NotApplicable
            || !own.is_empty() && own.iter().all(is_open)
        {
            sums.1 += 1;
        }
    }
    sums.0 += judged_processes(report)
        .filter(|p| !p.verdict.passes())
        .count() as u64;
    let tests = report.rules.len() + judged_processes(report).count();
    [tests as u64, sums.0, 0, sums.1]
}

#[needs(python)]
#[test]
fn other_readers_accept_reports() {
    let here = tempfile::tempdir().unwrap();
    let (mut paths, mut reports) = (vec![schema()], Vec::new());
    let unreadable =
        Report::unreadable("in/<notes> & more.etl", "not a trace: \u{1b}[31m \"text\"");
    let all = judged().iter().filter_map(|(simulated, report)| {
        Some((simulated.name.replace('/', "-"), report.as_ref().ok()?))
    });
    for (name, report) in all.chain([("unreadable".to_owned(), &unreadable)]) {
        for (ending, text) in [
            ("json", report.json()),
            ("sarif", report.render(Format::Sarif)),
            ("xml", report.render(Format::Junit)),
        ] {
            let file = here.path().join(format!("{name}.{ending}"));
            std::fs::write(&file, text).unwrap();
            paths.push(file);
        }
        reports.push(report.clone());
    }
    // Several reports in one document; and invalid documents.
    let list = serde_json::to_string(&reports).unwrap();
    let broken = list.replace("\"verdict\":\"complete\"", "\"verdict\":\"good\"");
    let sarif = render(&reports, Format::Sarif);
    let level = sarif.replace("\"level\": \"note\"", "\"level\": \"remark\"");
    for (name, text) in [
        ("all.json", list),
        ("all.sarif", sarif),
        ("all.xml", render(&reports, Format::Junit)),
        ("broken.json", broken),
        ("broken.sarif", level),
        ("broken.xml", "<testsuites><testsuite>".to_owned()),
    ] {
        let file = here.path().join(name);
        std::fs::write(&file, text).unwrap();
        paths.push(file);
    }
    let found = foreign("report_formats.py", &paths);
    assert_eq!(found.len() + 1, paths.len());
    let mut wrong = Vec::new();
    for (path, found) in paths.iter().skip(1).zip(&found) {
        let name = path.file_name().unwrap().to_string_lossy();
        if found["problem"].is_null() == name.starts_with("broken.") {
            wrong.push(format!("{name}: {found}"));
        }
    }
    let texts = found.chunks(3).zip(&reports);
    for (answers, report) in texts {
        let [tests, failures, errors, skipped] = junit(report);
        assert_eq!(
            failures + errors > 0,
            !report.verdict.passes(),
            "{}",
            report.file
        );
        let expected = [1, tests, failures, errors, skipped];
        let keys = ["suites", "tests", "failures", "errors", "skipped"];
        let counted = keys.map(|key| answers[2][key].as_u64().unwrap_or(u64::MAX));
        if counted != expected {
            wrong.push(format!(
                "{}: JUnit has {counted:?}, not {expected:?}",
                report.file
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(reports.len() > 100);
}
