//! Options of `etlverify` about its reports: files of several formats, severities, unknown rules.

use crate::common::etlverify;
use crate::verdicts::made;

#[test]
fn report_writes_each_format_to_its_file() {
    let here = made(&["sound", "rundown.missing"]);
    let traces = ["sound.etl", "rundown.missing.etl"];
    for (format, file) in [
        ("text", "out.txt"),
        ("json", "out.json"),
        ("sarif", "out.sarif"),
        ("junit", "out.xml"),
        ("github", "out.github"),
        ("markdown", "out.md"),
        ("html", "out.html"),
    ] {
        let report = format!("{format}={file}");
        let args = [
            "--no-config",
            "--report",
            &report,
            "--quiet",
            traces[0],
            traces[1],
        ];
        let said = etlverify(here.path(), &args);
        assert_eq!((said.code, said.err.as_str()), (1, ""), "{format}");
        let written = std::fs::read_to_string(here.path().join(file)).unwrap();
        let args = ["--no-config", "--format", format, traces[0], traces[1]];
        assert_eq!(written, etlverify(here.path(), &args).out, "{format}");
    }
}

#[test]
fn report_refuses_inputs_and_unknown_formats() {
    let here = made(&["sound"]);
    let refused = |report: &str| {
        let said = etlverify(
            here.path(),
            &["--no-config", "--report", report, "sound.etl"],
        );
        assert_eq!(said.code, 2, "{report}: {}", said.err);
        said.err
    };
    let before = std::fs::read(here.path().join("sound.etl")).unwrap();
    assert!(refused("json=sound.etl").contains("never overwritten"));
    assert_eq!(
        std::fs::read(here.path().join("sound.etl")).unwrap(),
        before
    );
    assert!(refused("yaml=out.yaml").contains("sarif"));
    assert!(refused("sarif").contains("FORMAT=FILE"));
    assert!(refused("sarif=-").contains("--format"));
}

#[test]
fn min_severity_leaves_out_findings_but_not_their_verdict() {
    let here = made(&["file.clock", "file.events-lost"]);
    for trace in ["file.clock.etl", "file.events-lost.etl"] {
        let all = etlverify(here.path(), &["--no-config", "--format", "json", trace]);
        let args = [
            "--no-config",
            "--format",
            "json",
            "--min-severity",
            "error",
            trace,
        ];
        let errors = etlverify(here.path(), &args);
        assert_eq!(errors.code, all.code, "{trace}");
        let all: serde_json::Value = serde_json::from_str(&all.out).unwrap();
        let errors: serde_json::Value = serde_json::from_str(&errors.out).unwrap();
        assert_eq!(errors["verdict"], all["verdict"], "{trace}");
        let count = |report: &serde_json::Value| report["findings"].as_array().unwrap().len();
        let left_out = errors["findings_left_out"].as_u64().unwrap() as usize;
        assert_eq!(count(&errors) + left_out, count(&all), "{trace}");
        let decides = all["verdict"] == "cannot_tell";
        assert_eq!(count(&errors) > 0, decides, "{trace}: {errors}");
    }
}

#[test]
fn unknown_rules_are_answered_with_the_nearest() {
    let here = made(&["sound"]);
    let said = etlverify(
        here.path(),
        &["--no-config", "--deny", "rundwn", "sound.etl"],
    );
    assert_eq!(said.code, 2);
    assert!(said.err.contains("rundown"), "{}", said.err);
}
