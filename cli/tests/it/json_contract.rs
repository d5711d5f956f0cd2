//! JSON contains the fields that its page promises.

use crate::common::{directory, etlkit, etlverify, trace};
use etl_test_support::needs;
use serde_json::Value;

#[test]
fn info_json_has_required_fields() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(here.path(), &["info", "--format", "json", "t.etl"]);
    let info: Value = serde_json::from_str(&said.out).unwrap();
    for field in [
        "schema_version",
        "file",
        "bytes",
        "buffers",
        "records",
        "kinds",
        "events",
        "events_lost",
        "buffers_lost",
        "logger_name",
        "log_file_name",
        "pointer_size",
        "processors",
        "perf_freq",
        "ticks_per_second",
        "clock",
        "start_time",
        "end_time",
        "compressed",
        "problems",
    ] {
        assert!(info.get(field).is_some(), "{field}");
    }
    for field in [
        "provider_guid",
        "provider",
        "hook",
        "id",
        "version",
        "opcode",
        "task",
        "level",
        "keyword",
        "count",
    ] {
        assert!(info["events"][0].get(field).is_some(), "{field}");
    }
    assert_eq!(info["records"], 6);
    assert_eq!(info["kinds"]["EVENT64"], 2);
    assert_eq!(info["kinds"]["MESSAGE"], 1);
    let several = etlkit(here.path(), &["info", "--format", "json", "t.etl", "t.etl"]);
    let several: Value = serde_json::from_str(&several.out).unwrap();
    assert_eq!(several.as_array().map(Vec::len), Some(2));
    assert_eq!(several[1], info);
}

#[test]
fn info_json_fields_are_documented() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(here.path(), &["info", "--format", "json", "t.etl"]);
    let info: Value = serde_json::from_str(&said.out).unwrap();
    let page = include_str!("../../../docs/json.md");
    for field in info
        .as_object()
        .unwrap()
        .keys()
        .chain(info["events"][0].as_object().unwrap().keys())
    {
        assert!(
            page.contains(&format!("`{field}`")),
            "docs/json.md does not say {field}"
        );
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn verify_json_has_required_fields() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let said = etlverify(here.path(), &["--format", "json", path.to_str().unwrap()]);
    // A few unresolved addresses are notes.
    assert_eq!(said.code, 0);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    for field in [
        "schema_version",
        "verdict",
        "processes",
        "coverage",
        "findings",
    ] {
        assert!(report.get(field).is_some(), "{field}");
    }
    let process = report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["pid"] == 3988)
        .unwrap();
    for field in [
        "pid",
        "name",
        "clr_instances",
        "rundowns",
        "methods",
        "modules",
        "assemblies",
        "app_domains",
    ] {
        assert!(process.get(field).is_some(), "{field}");
    }
    for field in ["kind", "init_time", "complete_time"] {
        assert!(process["rundowns"][0].get(field).is_some(), "{field}");
    }
    for table in ["clr_stacks", "extended_stacks", "kernel_stacks", "samples"] {
        for field in ["stacks", "frames", "managed", "image", "unresolved"] {
            assert!(report["coverage"][table][field].is_u64(), "{table}.{field}");
        }
    }
    for field in [
        "rule",
        "severity",
        "message",
        "pid",
        "time",
        "processor",
        "offset",
        "file",
    ] {
        assert!(report["findings"][0].get(field).is_some(), "{field}");
    }
    let page = include_str!("../../../docs/rules.md");
    for finding in report["findings"].as_array().unwrap() {
        let rule = finding["rule"].as_str().unwrap();
        assert!(
            page.contains(&format!("### {rule}\n")),
            "docs/rules.md does not say {rule}"
        );
    }
}
