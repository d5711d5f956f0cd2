//! Findings as SARIF 2.1.0.

use serde_json::json;

use super::Report;
use crate::finding::Finding;
use crate::rules::RULES;

pub(super) fn render(reports: &[Report]) -> String {
    let runs: Vec<_> = reports
        .iter()
        .map(|report| {
            json!({
                "tool": {"driver": {
                    "name": "etlverify",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules(report),
                }},
                "invocations": [invocation(report)],
                "results": results(report),
                "properties": {"verdict": report.verdict, "processes": processes(report)},
            })
        })
        .collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": runs,
    });
    // Strings and numbers only: JSON can hold all of it.
    let mut text = serde_json::to_string_pretty(&sarif).unwrap_or_default();
    text.push('\n');
    text
}

/// The rules, with their texts for the origin of the trace.
fn rules(report: &Report) -> Vec<serde_json::Value> {
    let mut rules = Vec::new();
    for rule in RULES {
        let texts = report.texts(rule);
        rules.push(json!({
            "id": rule.id,
            "shortDescription": {"text": texts.statement},
            "fullDescription": {"text": texts.meaning},
            "help": {"text": texts.remedy_lines()},
            "defaultConfiguration": {"level": rule.severity.name()},
        }));
    }
    rules
}

/// The verdicts on the processes.
fn processes(report: &Report) -> Vec<serde_json::Value> {
    let processes = report.processes.iter();
    processes
        .map(|p| json!({"pid": p.pid, "name": p.name, "verdict": p.verdict}))
        .collect()
}

/// Whether the trace was read, and why not.
fn invocation(report: &Report) -> serde_json::Value {
    let mut notifications = Vec::new();
    if let Some(error) = &report.error {
        let uri = uri(&report.file);
        notifications.push(json!({
            "level": "error",
            "message": {"text": error},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}}],
        }));
    }
    json!({
        "executionSuccessful": report.error.is_none(),
        "toolExecutionNotifications": notifications,
    })
}

fn results(report: &Report) -> Vec<serde_json::Value> {
    report
        .findings
        .iter()
        .map(|f| {
            let file = f.file.as_deref().unwrap_or(&report.file);
            let mut location = json!({"artifactLocation": {"uri": uri(file)}});
            if let (Some(offset), Some(location)) = (f.offset, location.as_object_mut()) {
                location.insert("region".to_owned(), json!({"byteOffset": offset}));
            }
            let mut result = json!({
                "ruleId": f.rule,
                "ruleIndex": RULES.iter().position(|rule| rule.id == f.rule),
                // Undecided findings are open and have no level.
                "kind": if f.is_decided() { "fail" } else { "open" },
                "level": if f.is_decided() { f.severity.name() } else { "none" },
                "message": {"text": message(f)},
                "locations": [{"physicalLocation": location}],
                "suppressions": suppressions(f),
                "properties": {"pid": f.pid, "time": f.time, "processor": f.processor},
            });
            if report.has_baseline
                && let Some(result) = result.as_object_mut()
            {
                let state = if f.is_known { "unchanged" } else { "new" };
                result.insert("baselineState".to_owned(), json!(state));
            }
            result
        })
        .collect()
}

/// Known findings are shown, but need no action.
fn suppressions(finding: &Finding) -> Vec<serde_json::Value> {
    if finding.is_known {
        vec![json!({"kind": "external", "status": "accepted"})]
    } else {
        Vec::new()
    }
}

fn message(finding: &Finding) -> String {
    match &finding.because {
        Some(because) => format!("{} (undecided: {because})", finding.message),
        None => finding.message.clone(),
    }
}

/// A path as the relative URI that SARIF requires.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(byte.into());
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
