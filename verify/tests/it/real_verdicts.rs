//! The verdict on every real trace, as `reports/real-trace-findings.md` lists them.
//! `ETLKIT_WRITE_DOCS=1` writes the table.

use std::collections::BTreeMap;
use std::fmt::Write;

use etl_test_support::{all_traces, needs, root, traces};
use etl_verify::{Finding, Report, Severity, Verifier};

const BEGIN: &str = "<!-- verdicts -->\n";
const END: &str = "<!-- end -->\n";

/// Findings above a note: the message of one, the number of several of a rule.
pub fn reasons(report: &Report) -> String {
    let mut by_rule: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in report
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Note)
    {
        by_rule.entry(finding.rule).or_default().push(finding);
    }
    let words = by_rule
        .into_iter()
        .map(|(rule, findings)| match findings.as_slice() {
            [one] => format!("`{rule}`: {}", one.message),
            several => format!("`{rule}`: {} findings", several.len()),
        });
    words.collect::<Vec<_>>().join("; ")
}

#[needs(traces)]
#[test]
fn verdict_on_each_real_trace_is_the_listed_one() {
    let mut rows = BEGIN.to_owned();
    rows += "| trace | .NET | verdict | exit code | because of |\n|---|---|---|---|---|\n";
    for path in all_traces() {
        // Further traces are not listed.
        let Ok(name) = path.strip_prefix(traces()) else {
            continue;
        };
        let name = name.to_str().unwrap().replace('\\', "/");
        let report = Verifier::new().verify(std::fs::read(&path).unwrap().as_slice(), &name);
        let report = report.unwrap();
        let managed = if report.processes.iter().any(|p| p.clr_events > 0) {
            "yes"
        } else {
            "no"
        };
        let (verdict, code) = (report.verdict.words(), u8::from(!report.verdict.passes()));
        let because = reasons(&report);
        writeln!(
            rows,
            "| {name} | {managed} | {verdict} | {code} | {because} |"
        )
        .unwrap();
    }
    rows += END;
    let page = root().join("reports/real-trace-findings.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{rows}{after}");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&page, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "ETLKIT_WRITE_DOCS=1 updates it");
    }
}
