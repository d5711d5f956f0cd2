//! Findings as JUnit XML, which build servers show as test results.

use std::fmt::{self, Write};

use super::words::{counts, sentence};
use super::{Report, Severity};
use crate::finding::{Finding, Outcome};
use crate::rules::{RULES, Rule};

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

/// The outcome of a rule in a suite.
enum Case<'a> {
    Passed,
    Failed(Vec<&'a Finding>),
    Open(&'a Finding),
}

fn case<'a>(report: &'a Report, rule: &Rule) -> Case<'a> {
    let own = report.findings.iter().filter(|f| f.rule == rule.id);
    let (decided, open): (Vec<_>, Vec<_>) = own.partition(|f| f.is_decided());
    // Notes are no failures, but a decided note decides the rule.
    let noted = !decided.is_empty();
    let broken: Vec<_> = decided.into_iter().filter(|f| f.severity > Severity::Note).collect();
    match open.first() {
        _ if !broken.is_empty() => Case::Failed(broken),
        Some(open) if !noted => Case::Open(open),
        _ => Case::Passed,
    }
}

/// A suite with every attribute that Ant's schema requires, the strictest in use. Times are 0 and
/// the host is `localhost`: the same trace makes the same document.
fn suite(id: usize, report: &Report, out: &mut String) -> fmt::Result {
    let cases: Vec<_> = RULES.iter().map(|rule| (rule, case(report, rule))).collect();
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
                let worst = findings.iter().map(|f| f.severity).max();
                let kind = worst.map_or("", Severity::name);
                writeln!(out, ">")?;
                writeln!(
                    out,
                    "      <failure type=\"{kind}\" message=\"{}\">",
                    Xml(rule.statement)
                )?;
                for finding in findings {
                    let about = finding.pid.map_or(String::new(), |pid| format!("process {pid}: "));
                    let location = finding.location(&report.file);
                    let location = location.map_or(String::new(), |l| format!(" ({l})"));
                    writeln!(out, "{}{}{}", Xml(&about), Xml(&finding.message), Xml(&location))?;
                }
                writeln!(out, "{}", Xml(&rule.remedy_lines()))?;
                writeln!(out, "      </failure>")?;
            }
        }
        writeln!(out, "    </testcase>")?;
    }
    let [holds, broken, undecided] =
        [Outcome::Holds, Outcome::Broken, Outcome::Undecided].map(|outcome| report.count(outcome));
    let counts = counts(report);
    writeln!(
        out,
        "    <system-out>{}. {}{}{holds} rules hold, {broken} are broken, {undecided} undecided\
         </system-out>",
        report.verdict.name(),
        sentence(report),
        if counts.is_empty() { " ".to_owned() } else { format!(" {counts}; ") },
    )?;
    writeln!(out, "    <system-err></system-err>")?;
    writeln!(out, "  </testsuite>")
}

/// Text in XML: markup is escaped, characters that XML cannot hold are replaced.
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
    fn xml_escapes_markup_and_control_characters() {
        assert_eq!(Xml("a<b>&\"\x1b\0").to_string(), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}");
    }
}
