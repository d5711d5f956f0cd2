//! Findings as JUnit XML, which build servers show as test results.

use std::fmt::{self, Write};

use crate::{RULES, Rule};

use super::words::answer;
use super::{Finding, Report, Severity};

pub(super) fn render(reports: &[Report]) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(reports, &mut out);
    out
}

fn write(reports: &[Report], out: &mut String) -> fmt::Result {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites>")?;
    for (id, report) in reports.iter().enumerate() {
        suite(id, report, out)?;
    }
    writeln!(out, "</testsuites>")
}

/// What became of a rule in a suite.
enum Case<'a> {
    Passed,
    Failed(Vec<&'a Finding>),
    Open(&'a Finding),
}

fn case<'a>(report: &'a Report, rule: &Rule) -> Case<'a> {
    let own = report.findings.iter().filter(|f| f.rule == rule.id);
    let (decided, open): (Vec<_>, Vec<_>) = own.partition(|f| f.is_decided());
    // Notes are findings, too, and no failures; with one that is decided the rule is.
    let noted = !decided.is_empty();
    let broken: Vec<_> = decided.into_iter().filter(|f| f.severity > Severity::Note).collect();
    match open.first() {
        _ if !broken.is_empty() => Case::Failed(broken),
        Some(open) if !noted => Case::Open(open),
        _ => Case::Passed,
    }
}

/// A suite with every attribute that the strictest of the schemas in use, that of Ant, asks for. Times are 0 and the host
/// is nobody's: the same trace gives the same document.
fn suite(id: usize, report: &Report, out: &mut String) -> fmt::Result {
    let cases: Vec<_> = RULES.iter().map(|rule| (*rule, case(report, rule))).collect();
    let failures = cases.iter().filter(|(_, case)| matches!(case, Case::Failed(_))).count();
    let skipped = cases.iter().filter(|(_, case)| matches!(case, Case::Open(_))).count();
    let file = Xml(if report.file.is_empty() { "trace" } else { &report.file });
    // Ant's times have neither a fraction nor a zone.
    let start = report.start_time.split('.').next().unwrap_or_default();
    writeln!(
        out,
        "  <testsuite name=\"{file}\" package=\"etlverify\" id=\"{id}\" tests=\"{}\" failures=\"{failures}\" \
         errors=\"0\" skipped=\"{skipped}\" time=\"0\" timestamp=\"{start}\" hostname=\"localhost\">",
        RULES.len()
    )?;
    writeln!(out, "    <properties>")?;
    writeln!(out, "      <property name=\"verdict\" value=\"{}\"/>", report.verdict.name())?;
    writeln!(out, "    </properties>")?;
    for (rule, case) in cases {
        write!(out, "    <testcase classname=\"{file}\" name=\"{}\" time=\"0\"", Xml(rule.id))?;
        match case {
            Case::Passed => {
                writeln!(out, "/>")?;
                continue;
            }
            Case::Open(finding) => {
                let because = finding.because.as_deref().unwrap_or("undecided");
                writeln!(out, ">")?;
                writeln!(out, "      <skipped message=\"undecided: {}\"/>", Xml(because))?;
            }
            Case::Failed(findings) => {
                let gravest = findings.iter().map(|f| f.severity).max();
                let kind = gravest.map_or("", Severity::name);
                writeln!(out, ">")?;
                writeln!(
                    out,
                    "      <failure type=\"{kind}\" message=\"{}\">",
                    Xml(rule.statement)
                )?;
                for finding in findings {
                    let about = finding.pid.map_or(String::new(), |pid| format!("process {pid}: "));
                    let place = finding.place(report);
                    let place = place.map_or(String::new(), |place| format!(" ({place})"));
                    writeln!(out, "{}{}{}", Xml(&about), Xml(&finding.message), Xml(&place))?;
                }
                writeln!(out, "{}", Xml(&rule.repair_lines()))?;
                writeln!(out, "      </failure>")?;
            }
        }
        writeln!(out, "    </testcase>")?;
    }
    let (holds, broken, undecided) = report.answers();
    writeln!(
        out,
        "    <system-out>{}: {}; {holds} rules hold, {broken} are broken, {undecided} undecided</system-out>",
        report.verdict.name(),
        Xml(&answer(report))
    )?;
    writeln!(out, "    <system-err></system-err>")?;
    writeln!(out, "  </testsuite>")
}

/// Text in XML: markup escaped, and what XML cannot hold at all replaced.
#[derive(Clone, Copy)]
struct Xml<'a>(&'a str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' => f.write_char(c)?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(Xml("a<b>&\"\x1b\0").to_string(), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}");
    }
}
