//! The JSON of `etlverify` matches docs/json.md, its SARIF and JUnit match their schemas.

use etl_test_support::needs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{BUFFER, directory, etlkit, etlverify, trace, trace_of};
use serde_json::Value;

/// Microsoft-Windows-Kernel-EventTracing and Microsoft-Windows-DotNETRuntime, as bytes of a file.
const EVENT_TRACING: [u8; 16] =
    *b"\x37\xec\x75\xb6\xb6\xbd\x48\x46\xbc\x92\xf3\xfd\xc7\x4d\x3c\xa2";
const RUNTIME: [u8; 16] = *b"\x23\x0d\x3c\xe1\xbc\xcc\x12\x4e\x93\x1b\xd9\xcc\x2e\xee\x27\xe4";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// A directory with traces whose reports contain every part that a report can have.
fn traces() -> (tempfile::TempDir, Vec<String>) {
    let here = directory(&[
        ("cut.etl", &trace()[..2 * BUFFER + 0x60]),
        ("small.etl", &trace()),
    ]);
    let mut names = vec!["cut.etl".to_owned(), "small.etl".to_owned()];
    for scenario in [
        "recipe",
        "lost-events",
        "lost-buffers",
        "truncated",
        "not-closed",
        "many-processes",
        "rules/file.overwritten",
        "rules/symbols.unresolved",
        "rules/rundown.none",
        "rules/rundown.no-init",
    ] {
        let script = root().join(format!("corpus/{scenario}.kdl"));
        let out = scenario.replace('/', "-");
        let said = etlkit(
            here.path(),
            &["synth", script.to_str().unwrap(), "-o", &out],
        );
        assert_eq!(said.code, 0, "{}", said.err);
        let files = std::fs::read_dir(here.path().join(&out)).unwrap();
        let mut files: Vec<_> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let traces = files.iter().filter(|name| name.ends_with(".etl"));
        names.extend(traces.map(|name| format!("{out}/{name}")));
    }
    // Windows records that a session enabled the runtime provider, but not the mask.
    let mut payload = RUNTIME.to_vec();
    payload.extend("clr\0".encode_utf16().flat_map(u16::to_le_bytes));
    let enabled = trace_of(EVENT_TRACING, 14, 0, &payload);
    std::fs::write(here.path().join("enabled.etl"), enabled).unwrap();
    names.push("enabled.etl".to_owned());
    (here, names)
}

/// The same, with a real trace: some parts of a report occur in none that is generated.
fn traces_with_a_real_one() -> (tempfile::TempDir, Vec<String>) {
    let (here, mut names) = traces();
    let real = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    names.push(real.to_str().unwrap().to_owned());
    (here, names)
}

fn json(here: &Path, args: &[&str]) -> Value {
    let said = etlverify(here, &[&["--no-config", "--format", "json"], args].concat());
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err))
}

/// The section on `etlverify` of docs/json.md.
fn page() -> String {
    let pages = std::fs::read_to_string(root().join("docs/json.md"))
        .unwrap()
        .replace("\r\n", "\n");
    let (_, section) = pages.split_once("\n## etlverify\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    section.to_owned()
}

/// The tables of the page: type by key, with composite types expanded.
fn documented() -> BTreeMap<String, String> {
    let page = page();
    let mut tables: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    let mut table = "";
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", head, "type", "meaning", ""] => table = head,
            ["", key, kind, meaning, ""] if key.starts_with('`') => {
                assert!(!meaning.is_empty(), "{key} has no meaning");
                let key = key.trim_matches('`').to_owned();
                let twice = tables
                    .entry(table)
                    .or_default()
                    .insert(key.clone(), (*kind).to_owned());
                assert_eq!(twice, None, "{key} is there twice");
            }
            _ => {}
        }
    }
    let names: Vec<_> = tables.keys().copied().collect();
    assert_eq!(
        names,
        ["key", "key of a table", "key of counts", "key of coverage"]
    );
    let mut all = tables["key"].clone();
    for (kind, table) in [
        ("coverage", "key of coverage"),
        ("table", "key of a table"),
        ("counts", "key of counts"),
    ] {
        for (parent, is) in all.clone() {
            if is == kind {
                all.insert(parent.clone(), "object".to_owned());
                for (key, of) in &tables[table] {
                    all.insert(format!("{parent}.{key}"), of.clone());
                }
            }
        }
    }
    all
}

/// Every key of a report with the JSON types of its values.
fn seen(value: &Value, path: &str, out: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Object(_) => "object",
        Value::Array(items) if items.len() == 2 && items.iter().all(Value::is_i64) => "span",
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            "array of strings"
        }
        Value::Array(_) => "array",
    };
    if !path.is_empty() {
        out.entry(path.to_owned()).or_default().insert(kind);
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                seen(value, &path, out);
            }
        }
        Value::Array(items) if kind == "array" => {
            items
                .iter()
                .for_each(|item| seen(item, &format!("{path}[]"), out));
        }
        _ => {}
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn verify_json_matches_its_page() {
    let (here, names) = traces_with_a_real_one();
    let mut all = BTreeMap::new();
    for name in &names {
        seen(&json(here.path(), &[name]), "", &mut all);
    }
    let args = ["--enable", "rundown:0xB8:5", &names[2]];
    seen(&json(here.path(), &args), "", &mut all);
    std::fs::write(here.path().join("none.etl"), b"no trace").unwrap();
    let unreadable = etlverify(here.path(), &["--format", "json", "none.etl"]);
    seen(
        &serde_json::from_str(&unreadable.out).unwrap(),
        "",
        &mut all,
    );
    // Items of an array.
    all.retain(|key, _| !key.ends_with("[]"));
    let documented = documented();
    for (key, kinds) in &all {
        let Some(kind) = documented.get(key) else {
            panic!("{key} is not documented")
        };
        for seen in kinds {
            let is = match *seen {
                "null" => kind.ends_with(" or null"),
                // An empty array has no item type.
                "array" => kind.starts_with("array"),
                seen => kind.trim_end_matches(" or null") == seen,
            };
            assert!(is, "{key} is documented as {kind}, and was {seen}");
        }
        // Every documented null occurs.
        assert_eq!(
            kind.ends_with(" or null"),
            kinds.contains("null"),
            "{key}: {kind}, {kinds:?}"
        );
    }
    for key in documented.keys() {
        assert!(
            all.contains_key(key),
            "{key} is documented and was never seen"
        );
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn verify_json_codes_match_their_page() {
    let (here, names) = traces_with_a_real_one();
    let page = page();
    let verdicts = std::fs::read_to_string(root().join("docs/verify.md")).unwrap();
    let row = |key: &str| {
        let line = page
            .lines()
            .find(|l| l.starts_with(&format!("| `{key}` |")));
        line.unwrap_or_else(|| panic!("{key}")).to_owned()
    };
    let mut found = 0;
    for name in &names {
        let report = json(here.path(), &[name]);
        let items = |list: &str, key: &str| {
            let items = report[list].as_array().unwrap().iter();
            items
                .map(|i| i[key].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        for (list, key) in [
            ("losses", "what"),
            ("sessions", "kind"),
            ("enabled", "source"),
            ("findings", "severity"),
            ("findings", "outcome"),
            ("rules", "outcome"),
            ("unresolved", "cause"),
        ] {
            let row = row(&format!("{list}[].{key}"));
            for word in items(list, key) {
                assert!(
                    row.contains(&format!("`{word}`")),
                    "{list}[].{key} was {word}: {row}"
                );
                found += 1;
            }
        }
        let verdict = format!("- `{}`, exit code ", report["verdict"].as_str().unwrap());
        assert!(verdicts.contains(&verdict), "{verdict}");
        assert_eq!(report["schema_version"], 3);
    }
    assert!(found > 500, "{found}");
}

/// An array if several files or a directory were named. A file that is no trace is in it.
#[test]
fn verify_json_is_a_list_for_several_files() {
    let here = directory(&[
        ("a.etl", &trace()),
        ("b.etl", b"no trace"),
        ("c.etl", &trace()),
    ]);
    let list = |args: &[&str]| {
        let said = etlverify(here.path(), &[&["--format", "json"], args].concat());
        (
            said.code,
            serde_json::from_str::<Value>(&said.out).unwrap(),
            said.err,
        )
    };
    let (_, report, _) = list(&["a.etl"]);
    assert_eq!(report["file"], "a.etl");
    let (code, reports, err) = list(&["a.etl", "b.etl"]);
    assert_eq!((code, reports.as_array().unwrap().len()), (2, 2));
    assert!(err.starts_with("error: b.etl: "), "{err}");
    assert_eq!(reports[1]["file"], "b.etl");
    assert_eq!(reports[1]["verdict"], "cannot_tell");
    assert!(err.contains(reports[1]["error"].as_str().unwrap()), "{err}");
    let (code, report, _) = list(&["b.etl"]);
    assert_eq!((code, report["error"].is_string()), (2, true));
    let (_, reports, _) = list(&["."]);
    let files: Vec<_> = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["file"].clone())
        .collect();
    let below = |name| Path::new(".").join(name).display().to_string();
    assert_eq!(files, [below("a.etl"), below("b.etl"), below("c.etl")]);
}

/// An object has only keys of the SARIF 2.1.0 schema, and all required ones.
fn keys(value: &Value, demanded: &[&str], allowed: &[&str]) {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"));
    for key in demanded {
        assert!(object.contains_key(*key), "{key} is missing: {value}");
    }
    for key in object.keys() {
        assert!(
            demanded.contains(&&**key) || allowed.contains(&&**key),
            "{key} is not of SARIF"
        );
    }
}

fn text(value: &Value) {
    keys(
        value,
        &["text"],
        &["markdown", "arguments", "id", "properties"],
    );
    assert!(
        value["text"].as_str().is_some_and(|t| !t.is_empty()),
        "{value}"
    );
}

/// A relative reference or a URI by RFC 3986, without a colon in the first segment.
fn is_uri_reference(uri: &str) -> bool {
    let first = uri.split('/').next().unwrap_or_default();
    let unescaped = uri
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-._~/%!$&'()*+,;=:@?#".contains(&b));
    let escaped = uri
        .split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit()));
    !uri.is_empty() && unescaped && escaped && !first.contains(':')
}

#[test]
fn sarif_matches_its_schema() {
    let (here, names) = traces();
    let mut args = vec!["--no-config", "--format", "sarif"];
    args.extend(names.iter().map(String::as_str));
    let said = etlverify(here.path(), &args);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let log: Value = serde_json::from_str(&said.out).unwrap();
    keys(&log, &["version", "runs"], &["$schema"]);
    assert_eq!(log["version"], "2.1.0");
    let runs = log["runs"].as_array().unwrap();
    // GitHub refuses files with several runs of a tool.
    assert_eq!(runs.len(), 1);
    let mut kinds = BTreeSet::new();
    let mut offsets = 0;
    let mut fingerprints = BTreeSet::new();
    for run in runs {
        let parts = ["automationDetails", "results", "invocations", "properties"];
        keys(run, &["tool"], &parts);
        keys(&run["automationDetails"], &[], &["id"]);
        let invocation = &run["invocations"][0];
        keys(
            invocation,
            &["executionSuccessful"],
            &["toolExecutionNotifications"],
        );
        assert_eq!(invocation["executionSuccessful"], true);
        let traces = run["properties"]["traces"].as_array().unwrap();
        assert_eq!(traces.len(), names.len());
        for trace in traces {
            assert!(trace["file"].is_string() && trace["verdict"].is_string());
        }
        keys(&run["tool"], &["driver"], &[]);
        let driver = &run["tool"]["driver"];
        keys(
            driver,
            &["name"],
            &["version", "semanticVersion", "informationUri", "rules"],
        );
        let rules = driver["rules"].as_array().unwrap();
        let ids: BTreeSet<&str> = rules.iter().map(|r| r["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), rules.len(), "ids are unique");
        for rule in rules {
            let parts = [
                "shortDescription",
                "fullDescription",
                "help",
                "defaultConfiguration",
            ];
            keys(rule, &["id"], &parts);
            parts[..3].iter().for_each(|part| text(&rule[part]));
            keys(&rule["defaultConfiguration"], &[], &["enabled", "level"]);
            let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
            assert!(["none", "note", "warning", "error"].contains(&level));
        }
        for result in run["results"].as_array().unwrap() {
            keys(
                result,
                &["message"],
                &[
                    "ruleId",
                    "ruleIndex",
                    "kind",
                    "level",
                    "locations",
                    "partialFingerprints",
                    "suppressions",
                    "properties",
                ],
            );
            text(&result["message"]);
            let index = usize::try_from(result["ruleIndex"].as_i64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            // A result that is not a failure has no level.
            let (kind, level) = (
                result["kind"].as_str().unwrap(),
                result["level"].as_str().unwrap(),
            );
            match kind {
                "fail" => assert!(["note", "warning", "error"].contains(&level)),
                "open" => assert_eq!(level, "none"),
                other => panic!("{other}"),
            }
            kinds.insert(kind);
            let locations = result["locations"].as_array().unwrap();
            assert_eq!(locations.len(), 1);
            keys(&locations[0], &[], &["physicalLocation"]);
            let place = &locations[0]["physicalLocation"];
            keys(place, &["artifactLocation", "region"], &[]);
            let region = &place["region"];
            keys(region, &["startLine"], &["byteOffset"]);
            assert_eq!(
                region["startLine"], 1,
                "GitHub shows no result without a line"
            );
            offsets += u32::from(region["byteOffset"].is_u64());
            let fingerprint = &result["partialFingerprints"]["primaryLocationLineHash"];
            let fingerprint = fingerprint.as_str().unwrap().to_owned();
            assert!(fingerprints.insert(fingerprint), "{result}");
            let artifact = &place["artifactLocation"];
            keys(artifact, &["uri"], &[]);
            let uri = artifact["uri"].as_str().unwrap();
            assert!(is_uri_reference(uri), "{uri}");
            assert!(result["properties"].is_object());
        }
    }
    assert!(offsets > 10, "{offsets}");
    assert_eq!(kinds, BTreeSet::from(["fail", "open"]), "both were shown");
}

/// The XML schemas of the JUnit reports of Ant and Jenkins; the stricter one where they differ.
#[test]
fn junit_matches_its_schemas() {
    let (here, names) = traces();
    let mut args = vec!["--no-config", "--format", "junit"];
    args.extend(names.iter().map(String::as_str));
    let said = etlverify(here.path(), &args);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let document = roxmltree::Document::parse(&said.out).unwrap();
    let has = |node: roxmltree::Node<'_, '_>, demanded: &[&str]| {
        let there: BTreeSet<_> = node.attributes().map(|a| a.name()).collect();
        assert_eq!(
            there,
            demanded.iter().copied().collect(),
            "{}",
            node.tag_name().name()
        );
    };
    let children = |node: roxmltree::Node<'_, '_>| {
        let elements = node.children().filter(roxmltree::Node::is_element);
        elements
            .map(|c| c.tag_name().name().to_owned())
            .collect::<Vec<_>>()
    };
    let number = |node: roxmltree::Node<'_, '_>, name: &str| {
        node.attribute(name).unwrap().parse::<usize>().unwrap()
    };
    let top = document.root_element();
    assert_eq!(top.tag_name().name(), "testsuites");
    let suites: Vec<_> = top.children().filter(roxmltree::Node::is_element).collect();
    assert_eq!(suites.len(), names.len());
    let (mut all_failures, mut all_skipped) = (0, 0);
    for (id, suite) in suites.into_iter().enumerate() {
        assert_eq!(suite.tag_name().name(), "testsuite");
        has(
            suite,
            &[
                "name",
                "package",
                "id",
                "tests",
                "failures",
                "errors",
                "skipped",
                "time",
                "timestamp",
                "hostname",
            ],
        );
        assert_eq!(number(suite, "id"), id, "they count from 0");
        let timestamp: Vec<u8> = suite.attribute("timestamp").unwrap().bytes().collect();
        let form = b"0000-00-00T00:00:00";
        let fits = timestamp.iter().zip(form).all(|(s, f)| {
            if *f == b'0' {
                s.is_ascii_digit()
            } else {
                s == f
            }
        });
        assert!(
            timestamp.len() == form.len() && fits,
            "{}",
            String::from_utf8_lossy(&timestamp)
        );
        // The order is fixed.
        let order = children(suite);
        assert_eq!(order.first().map(String::as_str), Some("properties"));
        assert_eq!(order[order.len() - 2..], ["system-out", "system-err"]);
        assert!(
            order[1..order.len() - 2]
                .iter()
                .all(|name| name == "testcase")
        );
        let cases: Vec<_> = suite
            .children()
            .filter(|n| n.has_tag_name("testcase"))
            .collect();
        assert_eq!(number(suite, "tests"), cases.len());
        let of = |name: &str| cases.iter().filter(|c| children(**c) == [name]).count();
        assert_eq!(number(suite, "failures"), of("failure"));
        assert_eq!(number(suite, "skipped"), of("skipped"));
        assert_eq!((number(suite, "errors"), of("error")), (0, 0));
        (all_failures, all_skipped) = (all_failures + of("failure"), all_skipped + of("skipped"));
        for case in cases {
            has(case, &["name", "classname", "time"]);
            for child in case.children().filter(roxmltree::Node::is_element) {
                match child.tag_name().name() {
                    "failure" => has(child, &["type", "message"]),
                    "skipped" => has(child, &["message"]),
                    other => panic!("{other}"),
                }
                assert!(child.children().all(|c| c.is_text()));
            }
        }
    }
    assert!(
        all_failures > 5 && all_skipped > 1,
        "{all_failures} and {all_skipped} were shown"
    );
}
