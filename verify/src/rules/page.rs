//! Rules as text: the page `docs/rules.md`, and what `etlverify --explain` prints.

use std::fmt::Write;

use super::{RULES, Rule};
use crate::wrap::wrap;

impl Rule {
    /// The rule as text for a terminal.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut out = format!("{} ({})\n\n", self.id, self.severity.name());
        // Writing into a String does not fail.
        let _ = wrap(&mut out, 0, 0, self.statement);
        out.push('\n');
        let _ = wrap(&mut out, 0, 9, &format!("Meaning  {}", self.meaning));
        let _ = wrap(&mut out, 0, 9, &format!("Remedy   {}", self.remedy));
        for command in self.commands {
            let _ = writeln!(out, "           {command}");
        }
        let _ = wrap(&mut out, 0, 9, &format!("Source   {}", self.citation()));
        out
    }
}

/// The page `docs/rules.md`: every rule with its texts.
#[must_use]
pub fn rules_page() -> String {
    let mut out = String::from(
        "# Rules of etlverify\n\n\
         Generated from the code: `etlverify --rules` prints this page, `etlverify --explain RULE` prints\n\
         one rule. Ids never change.\n\n\
         A rule has one of three outcomes: it holds; it is broken, and the report has a finding; or it is\n\
         undecided, since something was lost that could explain the finding.\n\n\
         For each rule, `corpus/rules/ID.kdl` is a scenario whose traces break it.\n\n\
         | rule | severity | what holds in a good trace |\n|---|---|---|\n",
    );
    // Writing into a String does not fail.
    for rule in RULES {
        let (id, severity) = (rule.id, rule.severity.name());
        let anchor = id.replace('.', "");
        let _ = writeln!(out, "| [`{id}`](#{anchor}) | {severity} | {} |", rule.statement);
    }
    let mut family = "";
    for rule in RULES {
        if rule.family() != family {
            family = rule.family();
            let _ = write!(out, "\n## {family}\n");
        }
        let _ = write!(out, "\n### {}\n\n", rule.id);
        paragraph(&mut out, "", &format!("{} ({})", rule.statement, rule.severity.name()));
        out.push('\n');
        let links: Vec<_> = rule
            .protocol
            .iter()
            .map(|id| format!("[{id}](protocol.md#{})", id.to_ascii_lowercase()))
            .collect();
        let links =
            if links.is_empty() { String::new() } else { format!(": {}", links.join(", ")) };
        paragraph(&mut out, "- ", &format!("**Meaning:** {}", rule.meaning));
        paragraph(&mut out, "- ", &format!("**Source:** {}{links}", rule.source));
        paragraph(&mut out, "- ", &format!("**Remedy:** {}", rule.remedy));
        if !rule.commands.is_empty() {
            let _ = write!(out, "\n  ```\n  {}\n  ```\n", rule.commands.join("\n  "));
        }
    }
    out
}

/// A paragraph in lines of at most 100 columns, or an item of a list.
fn paragraph(out: &mut String, bullet: &str, text: &str) {
    let mut line = bullet.to_owned();
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(bullet.len());
        }
        if line.len() > bullet.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}
