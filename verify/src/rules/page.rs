//! Rules as text: the page `docs/rules.md`, and what `etlverify --explain` prints.

use askama::Template;

use super::{RULES, Rule};
use crate::wrap::{wrap, wrap_at};

impl Rule {
    /// The rule as text for a terminal.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut lines = vec![
            format!("{} ({})\n", self.id, self.severity.name()),
            format!("{}\n", wrap(0, 0, self.statement)),
            titled("Meaning", self.meaning),
            titled("Remedy", self.remedy),
        ];
        for command in self.commands {
            lines.push(format!("           {command}"));
        }
        lines.push(titled("Source", &self.citation()));
        lines.join("\n") + "\n"
    }
}

/// A paragraph in a column, with its title in the column before it.
fn titled(title: &str, text: &str) -> String {
    wrap(0, 9, &format!("{title:<9}{text}"))
}

#[derive(Template)]
#[template(path = "rules.md", escape = "none")]
struct Page {
    rules: &'static [Rule],
}

/// The page `docs/rules.md`: every rule with its texts.
#[must_use]
pub fn rules_page() -> String {
    Page { rules: RULES }.render().unwrap_or_default()
}

fn begins_family(rule: &Rule) -> bool {
    RULES
        .iter()
        .find(|r| r.family() == rule.family())
        .is_some_and(|first| first.id == rule.id)
}

/// Where a rule comes from, with links to the page on the protocol.
fn source(rule: &Rule) -> String {
    let links: Vec<_> = rule
        .protocol
        .iter()
        .map(|id| format!("[{id}](protocol.md#{})", id.to_ascii_lowercase()))
        .collect();
    let colon = if links.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", rule.source, links.join(", "))
}

/// A paragraph, or an item of a list, in lines of at most 100 columns.
fn paragraph(text: &str) -> String {
    wrap_at(101, 0, if text.starts_with("- ") { 2 } else { 0 }, text)
}
