//! Findings as JUnit XML, which build servers show as test results.

use std::fmt::{self, Write};

use crate::RULES;

use super::{Report, Severity};

pub(super) fn render(reports: &[Report]) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(reports, &mut out);
    out
}

fn write(reports: &[Report], out: &mut String) -> fmt::Result {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites>")?;
    for report in reports {
        suite(report, out)?;
    }
    writeln!(out, "</testsuites>")
}

fn suite(report: &Report, out: &mut String) -> fmt::Result {
    let broken = |id: &'static str| {
        let grave = report.findings.iter().filter(|f| f.severity > Severity::Note);
        grave.filter(move |f| f.rule == id && f.is_decided())
    };
    let open =
        |id: &str| report.findings.iter().find(|f| f.rule == id && f.severity > Severity::Note);
    let failures = RULES.iter().filter(|rule| broken(rule.id).next().is_some()).count();
    let skipped = RULES.iter().filter(|r| broken(r.id).next().is_none() && open(r.id).is_some());
    let skipped = skipped.count();
    let file = Xml(&report.file);
    writeln!(
        out,
        "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">",
        RULES.len()
    )?;
    for rule in RULES {
        let id = Xml(rule.id);
        if broken(rule.id).next().is_none()
            && let Some(undecided) = open(rule.id)
        {
            let because = undecided.because.as_deref().unwrap_or("undecided");
            writeln!(out, "    <testcase classname=\"{file}\" name=\"{id}\">")?;
            writeln!(out, "      <skipped message=\"undecided: {}\"/>", Xml(because))?;
            writeln!(out, "    </testcase>")?;
            continue;
        }
        if broken(rule.id).next().is_none() {
            writeln!(out, "    <testcase classname=\"{file}\" name=\"{id}\"/>")?;
            continue;
        }
        writeln!(out, "    <testcase classname=\"{file}\" name=\"{id}\">")?;
        writeln!(out, "      <failure message=\"{}\">", Xml(rule.statement))?;
        for finding in broken(rule.id) {
            let about = finding.pid.map_or(String::new(), |pid| format!("process {pid}: "));
            writeln!(out, "{}{}", Xml(&about), Xml(&finding.message))?;
        }
        writeln!(out, "{}", Xml(rule.repair))?;
        writeln!(out, "      </failure>")?;
        writeln!(out, "    </testcase>")?;
    }
    writeln!(out, "  </testsuite>")
}

/// Text in XML: markup escaped, and what XML cannot hold at all replaced.
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
