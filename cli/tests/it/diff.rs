//! `etlkit diff`.

use crate::common::{buffer, directory, etlkit, etlkit_piped, event, header_event, trace};
use etl_test_support::needs;

/// The usual trace with one changed payload, one event removed and one added.
fn other() -> Vec<u8> {
    let mut changed = event(1_010, 1, 4, 0x8, None);
    let end = changed.len();
    changed[end - 8..end - 1].copy_from_slice(b"changed");
    let more = event(1_045, 3, 4, 0x8, None);
    let mut whole = trace();
    // The second buffer contains two events; the last one of the third is a WPP message.
    let first = buffer(1, 0, 0, &[changed, more]);
    whole[crate::common::BUFFER..2 * crate::common::BUFFER].copy_from_slice(&first);
    let mut header = header_event(3);
    header[0x20 + 0x08..][..4].copy_from_slice(&22_631u32.to_le_bytes());
    let head = buffer(0, 0, 4, &[header]);
    whole[..crate::common::BUFFER].copy_from_slice(&head);
    whole
}

#[test]
fn diff_prints_text_and_json() {
    let here = directory(&[("a.etl", &trace()), ("b.etl", &other())]);
    let said = etlkit(here.path(), &["diff", "a.etl", "b.etl"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert!(!said.out.contains('\x1b'));
    insta::assert_snapshot!("diff_text", said.out);
    let said = etlkit(here.path(), &["diff", "a.etl", "b.etl", "--format", "json"]);
    assert_eq!(said.code, 1);
    insta::assert_snapshot!("diff_json", said.out);
    let said = etlkit(here.path(), &["diff", "a.etl", "b.etl", "--limit", "1"]);
    assert!(
        said.out.contains("... and 2 more (--limit 1)"),
        "{}",
        said.out
    );
}

#[test]
fn diff_of_equal_traces_is_empty() {
    let here = directory(&[("a.etl", &trace())]);
    let said = etlkit(here.path(), &["diff", "a.etl", "a.etl"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("diff_none", said.out);
    let said = etlkit_piped(&trace(), &["diff", "-", "-"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("standard input"));
    let file = here.path().join("a.etl");
    let said = etlkit_piped(&trace(), &["diff", "-", file.to_str().unwrap()]);
    assert_eq!(said.code, 0);
}

#[test]
fn diff_ignores_selected_parts() {
    let here = directory(&[("a.etl", &trace()), ("b.etl", &other())]);
    let provider = "provider:5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a";
    let ignore = [
        "diff",
        "a.etl",
        "b.etl",
        "--ignore",
        "header:os",
        "--ignore",
        provider,
    ];
    assert_eq!(etlkit(here.path(), &ignore).code, 0);
    assert_eq!(etlkit(here.path(), &ignore[..5]).code, 1);
    let said = etlkit(
        here.path(),
        &["diff", "a.etl", "b.etl", "--ignore", "nonsense"],
    );
    assert_eq!(said.code, 2);
    insta::assert_snapshot!("diff_unknown_ignore", said.err);
    let said = etlkit(here.path(), &["diff", "a.etl", "missing.etl"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn diff_of_real_traces_counts_every_event() {
    let net = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let other = etl_test_support::trace("perfview/gcrundownevents.etl");
    let here = directory(&[]);
    let (net, other) = (net.to_str().unwrap(), other.to_str().unwrap());
    let said = etlkit(here.path(), &["diff", net, net]);
    assert_eq!(said.code, 0);
    assert!(
        said.out
            .contains("0 changed, 0 missing, 0 extra, 179473 the same"),
        "{}",
        said.out
    );
    // All times differ: no events are paired, and every event is counted.
    let said = etlkit(
        here.path(),
        &["diff", other, net, "--limit", "0", "--format", "json"],
    );
    assert_eq!(said.code, 1);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        report["extra"].as_u64().unwrap() + report["changed"].as_u64().unwrap(),
        179_473
    );
}
