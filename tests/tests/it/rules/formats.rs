//! Validates reports on the corpus: JSON and SARIF by their schemas, JUnit with another project's
//! reader.

use std::path::PathBuf;

use etl_test_support::{needs, root};
use etl_tests::foreign;
use etl_verify::{Format, Outcome, Report, Severity, render};

use super::catalogue::judged;

fn schema() -> PathBuf {
    root().join(format!("docs/schema/verify-{}.json", etl_verify::SCHEMA_VERSION))
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

/// Numbers of failed and skipped tests.
fn junit(report: &Report) -> (u64, u64) {
    let mut sums = (0, 0);
    for rule in &report.rules {
        let graver = |f: &&etl_verify::Finding| {
            f.rule == rule.rule && f.severity > Severity::Note && f.outcome == Outcome::Broken
        };
        if report.findings.iter().any(|f| graver(&f)) {
            sums.0 += 1;
        } else if [Outcome::Undecided, Outcome::NotApplicable].contains(&rule.outcome) {
            sums.1 += 1;
        }
    }
    sums.0 += report.processes.iter().filter(|p| !p.verdict.passes()).count() as u64;
    sums
}

#[needs(python)]
#[test]
fn other_readers_accept_reports() {
    let here = tempfile::tempdir().unwrap();
    let (mut paths, mut reports) = (vec![schema()], Vec::new());
    for (simulated, report) in judged() {
        let Ok(report) = report else { continue };
        let name = simulated.name.replace('/', "-");
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
        let (failures, skipped) = junit(report);
        let expected = [1, report.rules.len() as u64, failures, skipped];
        let keys = ["suites", "tests", "failures", "skipped"];
        let counted = keys.map(|key| answers[2][key].as_u64().unwrap_or(u64::MAX));
        if counted != expected {
            wrong.push(format!("{}: JUnit has {counted:?}, not {expected:?}", report.file));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(reports.len() > 100);
}
