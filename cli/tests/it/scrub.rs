//! `etlkit scrub`.

use crate::common::{directory, etlkit, etlkit_piped, etlverify, trace, trace_of};
use etl_test_support::needs;

/// A trace with a CLR exception whose message contains private data.
fn exception() -> Vec<u8> {
    let provider: etl_format::Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
    let mut payload: Vec<u8> = [
        "My.Exception",
        "C:\\Users\\Jane\\Falcon.txt of JANE is missing",
    ]
    .iter()
    .flat_map(|t| t.encode_utf16().chain([0]))
    .flat_map(u16::to_le_bytes)
    .collect();
    payload.extend([0; 8 + 4 + 2 + 2]);
    trace_of(provider.to_bytes(), 80, 1, &payload)
}

#[test]
fn scrub_removes_private_data() {
    let here = directory(&[("t.etl", &exception()), ("list.txt", b"Falcon\n\n")]);
    let usual = [
        "scrub",
        "t.etl",
        "-o",
        "s.etl",
        "--salt",
        "x",
        "--secrets-file",
        "list.txt",
    ];
    let said = etlkit(here.path(), &usual);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!("scrub_text", said.out);
    let said = etlkit(here.path(), &["dump", "s.etl"]);
    insta::assert_snapshot!("scrub_dumped", said.out);
    let json = [
        "scrub", "t.etl", "-o", "j.etl", "--salt", "x", "--secret", "falcon",
    ];
    let rest = [
        "--format",
        "json",
        "--field",
        "ExceptionMessage=drop",
        "--preset",
        "none",
    ];
    let said = etlkit(here.path(), &[&json[..], &rest].concat());
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("scrub_json", said.out);
}

#[test]
fn scrub_reports_invalid_arguments() {
    let here = directory(&[("t.etl", &trace())]);
    let mut said = String::new();
    for args in [
        &["--set", "user=hash"][..],
        &["--set", "users=hide"],
        &["--field", "=drop"],
        &["--secret", "ab"],
        &["--salt", ""],
        &["--secrets-file", "missing.txt"],
    ] {
        let one = etlkit(
            here.path(),
            &[&["scrub", "t.etl", "-o", "s.etl"], args].concat(),
        );
        assert_eq!((one.code, one.out.as_str()), (2, ""), "{args:?}");
        said.push_str(&one.err);
    }
    insta::assert_snapshot!("scrub_errors", said);
    assert!(!here.path().join("s.etl").exists());
    let said = etlkit(here.path(), &["scrub", "t.etl", "-o", "t.etl", "--force"]);
    assert_eq!(said.code, 2);
    assert_eq!(std::fs::read(here.path().join("t.etl")).unwrap(), trace());
}

/// A misspelled name would leave private data where it is.
#[test]
fn fields_that_no_event_has_are_noted() {
    let here = directory(&[("t.etl", &exception())]);
    let scrub = |field| {
        etlkit(
            here.path(),
            &["scrub", "t.etl", "-o", "s", "--force", "--field", field],
        )
    };
    let said = scrub("ExceptionMessag=drop");
    let note = "note: --field: no event has the field ExceptionMessag; the nearest names: ";
    let note = format!("{note}ExceptionMessage, ");
    assert!(
        said.code == 0 && said.err.starts_with(&note),
        "{}",
        said.err
    );
    for field in ["exceptionmessage=drop", "ExceptionHRESULT=keep"] {
        assert_eq!(scrub(field).err, "", "{field}");
    }
    let diff = |what| etlkit(here.path(), &["diff", "t.etl", "t.etl", "--ignore", what]);
    let said = diff("field:nosuch");
    assert_eq!(
        (said.code, &*said.err),
        (0, "note: --ignore: no event has the field nosuch\n")
    );
    assert_eq!(diff("field:EXCEPTIONMESSAGE").err, "");
}

#[test]
fn scrub_output_depends_on_salt() {
    let here = directory(&[("t.etl", &exception())]);
    let made = |name: &str, more: &[&str]| {
        let args = [&["scrub", "t.etl", "-o", name], more].concat();
        assert_eq!(etlkit(here.path(), &args).code, 0);
        std::fs::read(here.path().join(name)).unwrap()
    };
    let one = made("1.etl", &["--salt", "x"]);
    assert_eq!(made("2.etl", &["--salt", "x"]), one);
    assert_ne!(made("3.etl", &["--salt", "y"]), one);
    assert_ne!(made("4.etl", &[]), made("5.etl", &[]));
    assert!(made("6.etl", &["--salt", "x", "--compress"]).len() < one.len());
    let file = here.path().join("7.etl");
    let args = ["scrub", "-", "--salt", "x", "-o", file.to_str().unwrap()];
    assert_eq!(etlkit_piped(&exception(), &args).code, 0);
    assert_eq!(std::fs::read(file).unwrap(), one);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl", time)]
#[test]
fn scrubbed_real_trace_still_resolves() {
    let net = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let net = net.to_str().unwrap();
    let args = [
        "scrub",
        net,
        "-o",
        "s.etl",
        "--preset",
        "strict",
        "--set",
        "addresses=hash",
    ];
    let more = ["--salt", "x", "--compress", "--format", "json"];
    let said = etlkit(here.path(), &[&args[..], &more].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    // The counts grow with the number of known schemas.
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    for (category, least) in [
        ("users", 4),
        ("machines", 1),
        ("command-lines", 37),
        ("sids", 19),
        ("paths", 7_000),
        ("ips", 1_000),
        ("addresses", 600_000),
    ] {
        let count = report["categories"][category].as_u64().unwrap();
        assert!(count >= least, "{category}: {count}");
    }
    let report = |name: &str| {
        let said = etlverify(here.path(), &["--format", "json", name]);
        serde_json::from_str::<serde_json::Value>(&said.out).unwrap()
    };
    let (before, after) = (report(net), report("s.etl"));
    assert_eq!(before["verdict"], after["verdict"]);
    assert_eq!(before["coverage"], after["coverage"]);
}
