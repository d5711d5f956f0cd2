//! The reports of `etlverify` in all formats, and the descriptions of rules.

use etl_control::nearest_names;
use etl_verify::{Format, Report, Rule};

use crate::Outcome;
use crate::error::Failure;
use crate::escape::{Style, escape_controls};
use crate::missing::nearest;

pub(super) fn outcome(reports: &[Report]) -> Outcome {
    if reports.iter().all(|report| report.verdict.passes()) {
        Outcome::Success
    } else {
        Outcome::Findings
    }
}

/// The reports in a format. `several`: whether several files were named, so that JSON is a list.
pub(super) fn render(format: Format, reports: &[Report], several: bool) -> String {
    let text = match reports {
        [report] if !several => report.render(format),
        reports => etl_verify::render(reports, format),
    };
    match format {
        Format::Json | Format::Sarif => escape_controls(&text, Style::Json).into_owned(),
        _ => text,
    }
}

/// The description of a rule, or the list of a family of rules.
pub(super) fn explain(id: &str) -> Result<String, Failure> {
    if let Some(rule) = Rule::find(id) {
        return Ok(rule.explain());
    }
    let family = etl_verify::RULES.iter().filter(|rule| rule.family() == id);
    let lines: Vec<_> = family
        .map(|r| format!("{} ({})\n  {}\n", r.id, r.severity.name(), r.statement))
        .collect();
    if lines.is_empty() {
        Err(no_rule(id))
    } else {
        Ok(lines.concat())
    }
}

/// An unknown rule or family, with the names that are most like it.
pub(super) fn no_rule(id: &str) -> Failure {
    let mut names = Vec::new();
    for rule in etl_verify::RULES {
        names.extend([rule.id, rule.family()]);
    }
    names.sort_unstable();
    names.dedup();
    let nearest = nearest(&nearest_names(id, names));
    Failure::new(id, format!("unknown rule{nearest}")).hint("`etlverify --rules` lists all rules")
}
