//! `etlkit slice`.

use crate::common::{directory, etlkit, etlkit_piped, trace};
use etl_test_support::needs;

fn timestamps(directory: &std::path::Path, file: &str) -> Vec<i64> {
    let said = etlkit(directory, &["dump", "--format", "jsonl", file]);
    assert_eq!(said.code, 0, "{}", said.err);
    let timestamp = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["timestamp"]
            .as_i64()
            .unwrap()
    };
    said.out.lines().map(timestamp).collect()
}

#[test]
fn slice_by_process() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(
        here.path(),
        &["slice", "t.etl", "--pid", "100", "-o", "s.etl"],
    );
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!("slice_text", said.out);
    assert_eq!(timestamps(here.path(), "s.etl"), [1_000, 1_010, 1_030]);
    let json = [
        "slice", "t.etl", "--from", "0.000003", "-o", "j.etl", "--format", "json",
    ];
    let said = etlkit(here.path(), &json);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("slice_json", said.out);
    assert_eq!(
        timestamps(here.path(), "j.etl"),
        [1_000, 1_030, 1_040, 1_050]
    );
}

#[test]
fn slice_rejects_unsafe_paths() {
    let here = directory(&[("t.etl", &trace()), ("there.etl", b"keep me")]);
    let said = etlkit(here.path(), &["slice", "t.etl", "-o", "there.etl"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("--force"), "{}", said.err);
    assert_eq!(
        std::fs::read(here.path().join("there.etl")).unwrap(),
        b"keep me"
    );
    let said = etlkit(here.path(), &["slice", "t.etl", "-o", "t.etl", "--force"]);
    assert_eq!(said.code, 2);
    assert_eq!(std::fs::read(here.path().join("t.etl")).unwrap(), trace());
    let said = etlkit(
        here.path(),
        &["slice", "t.etl", "-o", "there.etl", "--force"],
    );
    assert_eq!(said.code, 0);
    // A failure leaves no file.
    std::fs::write(here.path().join("no.etl"), b"no trace").unwrap();
    assert_eq!(
        etlkit(here.path(), &["slice", "no.etl", "-o", "new.etl"]).code,
        2
    );
    assert!(!here.path().join("new.etl").exists());
}

#[test]
fn slice_reads_pipes_and_compresses() {
    let here = directory(&[("t.etl", &trace())]);
    let plain = etlkit(here.path(), &["slice", "t.etl", "--id", "1", "-o", "s.etl"]);
    assert_eq!(plain.code, 0);
    let file = here.path().join("p.etl");
    let args = ["slice", "-", "--id", "1", "-o", file.to_str().unwrap()];
    assert_eq!(etlkit_piped(&trace(), &args).code, 0);
    let read = |name: &str| std::fs::read(here.path().join(name)).unwrap();
    assert_eq!(read("s.etl"), read("p.etl"));
    let packed = ["slice", "t.etl", "--compress", "-o", "c.etl"];
    assert_eq!(etlkit(here.path(), &packed).code, 0);
    assert!(read("c.etl").len() < read("t.etl").len());
    assert_eq!(
        etlkit(
            here.path(),
            &["diff", "--ignore", "header", "t.etl", "c.etl"]
        )
        .code,
        0
    );
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn slice_of_real_trace_by_process() {
    let net = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let net = net.to_str().unwrap();
    let said = etlkit(
        here.path(),
        &["slice", net, "--pid", "3676", "-o", "s.etl", "--compress"],
    );
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("slice_real", said.out);
}
