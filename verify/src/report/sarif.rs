//! Findings as SARIF 2.1.0.
//!
//! All reports are in one run. GitHub accepts one run of a tool and category in a file, and at most
//! 25,000 results in a run; it shows only results whose location has a line.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Report;
use crate::finding::Finding;
use crate::rules::{RULES, TraceOrigin};

/// The number of results in a run that GitHub accepts.
const MAX_RESULTS: usize = 25_000;

pub(super) fn render(reports: &[Report]) -> String {
    let mut findings: Vec<_> = reports.iter().flat_map(findings_of).collect();
    let count = findings.len();
    // The sort is stable: the order of reports remains.
    findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
    findings.truncate(MAX_RESULTS);
    let mut ordinals = Ordinals::default();
    let results: Vec<_> = findings
        .iter()
        .map(|(report, finding)| result(report, finding, &mut ordinals))
        .collect();
    let origin = common_origin(reports);
    let rules: Vec<_> = RULES
        .iter()
        .map(|rule| {
            let texts = rule.texts(origin);
            json!({
                "id": rule.id,
                "shortDescription": {"text": texts.statement},
                "fullDescription": {"text": texts.meaning},
                "help": {"text": texts.remedy_lines()},
                "defaultConfiguration": {"level": rule.severity.name()},
            })
        })
        .collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "etlverify",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "automationDetails": {"id": "etlverify/"},
            "invocations": [invocation(reports, count - results.len())],
            "results": results,
            "properties": {"traces": reports.iter().map(trace).collect::<Vec<_>>()},
        }],
    });
    // Strings and numbers only: JSON can hold all of it.
    let mut text = serde_json::to_string_pretty(&sarif).unwrap_or_default();
    text.push('\n');
    text
}

/// What recorded the traces: EventPipe if it recorded all of them. A run has one list of rules.
fn common_origin(reports: &[Report]) -> TraceOrigin {
    let mut origins = reports.iter().map(|report| report.origin);
    if !reports.is_empty() && origins.all(|origin| origin == TraceOrigin::EventPipe) {
        TraceOrigin::EventPipe
    } else {
        TraceOrigin::Etw
    }
}

fn findings_of(report: &Report) -> impl Iterator<Item = (&Report, &Finding)> {
    report.findings.iter().map(move |finding| (report, finding))
}

/// The verdicts on a trace and on its processes.
fn trace(report: &Report) -> Value {
    let processes: Vec<_> = report
        .processes
        .iter()
        .map(|p| json!({"pid": p.pid, "name": p.name, "verdict": p.verdict}))
        .collect();
    json!({"file": report.file, "verdict": report.verdict, "processes": processes})
}

/// Whether the traces were read, and why not; and how many results are left out.
fn invocation(reports: &[Report], left_out: usize) -> Value {
    let mut notifications = Vec::new();
    for report in reports {
        if let Some(error) = &report.error {
            notifications.push(json!({
                "level": "error",
                "message": {"text": error},
                "locations": [{"physicalLocation": location(&report.file, None)}],
            }));
        }
    }
    let is_successful = notifications.is_empty();
    if left_out > 0 {
        let message = format!("{left_out} findings are left out, the least severe ones");
        notifications.push(json!({"level": "warning", "message": {"text": message}}));
    }
    json!({
        "executionSuccessful": is_successful,
        "toolExecutionNotifications": notifications,
    })
}

fn result(report: &Report, finding: &Finding, ordinals: &mut Ordinals) -> Value {
    let file = finding.file.as_deref().unwrap_or(&report.file);
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule),
        // Undecided findings are open and have no level.
        "kind": if finding.is_decided() { "fail" } else { "open" },
        "level": if finding.is_decided() { finding.severity.name() } else { "none" },
        "message": {"text": message(finding)},
        "locations": [{"physicalLocation": location(file, finding.offset)}],
        "partialFingerprints": {"primaryLocationLineHash": ordinals.fingerprint(report, finding)},
        "suppressions": suppressions(finding),
        "properties": {
            "trace": report.file,
            "pid": finding.pid,
            "time": finding.time,
            "processor": finding.processor,
        },
    });
    if report.has_baseline
        && let Some(result) = result.as_object_mut()
    {
        let state = if finding.is_known { "unchanged" } else { "new" };
        result.insert("baselineState".to_owned(), json!(state));
    }
    result
}

/// A place in a file. Traces have no lines, and viewers need one: the first.
fn location(file: &str, offset: Option<u64>) -> Value {
    let region = match offset {
        Some(offset) => json!({"startLine": 1, "byteOffset": offset}),
        None => json!({"startLine": 1}),
    };
    json!({"artifactLocation": {"uri": uri(file)}, "region": region})
}

/// The number of findings so far with the same trace, rule and process.
#[derive(Default)]
struct Ordinals(BTreeMap<String, u64>);

impl Ordinals {
    /// What identifies a finding from run to run; GitHub makes it from the lines of a source file,
    /// which a trace does not have.
    fn fingerprint(&mut self, report: &Report, finding: &Finding) -> String {
        let trace = etl_format::file_name(&report.file);
        let key = format!("{trace}:{}:{}", finding.rule, finding.process_name);
        let ordinal = self.0.entry(key.clone()).or_default();
        *ordinal += 1;
        format!("{key}:{ordinal}")
    }
}

/// Known findings are shown, but need no action.
fn suppressions(finding: &Finding) -> Vec<Value> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn render_keeps_the_most_severe_findings_within_githubs_limit() {
        let mut many = Report::unreadable("many.etl", "");
        many.error = None;
        many.findings = (0..MAX_RESULTS)
            .map(|_| Finding::new("file.gap", Severity::Note, "a note".into()))
            .collect();
        let mut other = Report::unreadable("other.etl", "");
        other.error = None;
        other.findings = vec![Finding::new(
            "file.damaged",
            Severity::Error,
            "an error".into(),
        )];
        let sarif: Value = serde_json::from_str(&render(&[many, other])).unwrap();
        let run = &sarif["runs"][0];
        assert_eq!(run["results"].as_array().map(Vec::len), Some(MAX_RESULTS));
        assert_eq!(run["results"][0]["ruleId"], "file.damaged");
        let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
        let text = notification["message"]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("1 findings"), "{text}");
    }

    #[test]
    fn fingerprints_differ_for_findings_of_one_rule() {
        let report = Report::unreadable("a/app.etl", "");
        let finding = Finding::new("file.damaged", Severity::Error, "bytes 4 to 8".into());
        let mut ordinals = Ordinals::default();
        let first = ordinals.fingerprint(&report, &finding);
        assert_eq!(first, "app.etl:file.damaged::1");
        assert_ne!(first, ordinals.fingerprint(&report, &finding));
    }
}
