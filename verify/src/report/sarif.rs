//! Findings as SARIF 2.1.0.

use serde_json::json;

use crate::RULES;

use super::{Finding, Report, Severity};

pub(super) fn render(reports: &[Report]) -> String {
    let rules: Vec<_> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.statement},
                "fullDescription": {"text": rule.meaning},
                "help": {"text": rule.repair_lines()},
                "defaultConfiguration": {"level": level(rule.severity)},
            })
        })
        .collect();
    let runs: Vec<_> = reports
        .iter()
        .map(|report| {
            json!({
                "tool": {"driver": {
                    "name": "etlverify",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                }},
                "results": results(report),
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

fn results(report: &Report) -> Vec<serde_json::Value> {
    report
        .findings
        .iter()
        .map(|f| {
            let file = f.file.as_deref().unwrap_or(&report.file);
            let mut place = json!({"artifactLocation": {"uri": uri(file)}});
            if let (Some(offset), Some(place)) = (f.offset, place.as_object_mut()) {
                place.insert("region".to_owned(), json!({"byteOffset": offset}));
            }
            json!({
                "ruleId": f.rule,
                "ruleIndex": RULES.iter().position(|rule| rule.id == f.rule),
                // What cannot be decided is open, and has no level then.
                "kind": if f.is_decided() { "fail" } else { "open" },
                "level": if f.is_decided() { level(f.severity) } else { "none" },
                "message": {"text": message(f)},
                "locations": [{"physicalLocation": place}],
                "properties": {"pid": f.pid, "timestamp": f.timestamp, "processor": f.processor},
            })
        })
        .collect()
}

fn message(finding: &Finding) -> String {
    match &finding.because {
        Some(because) => format!("{} (undecided: {because})", finding.message),
        None => finding.message.clone(),
    }
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

/// A path as the relative URI that SARIF asks for.
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
