//! Rules as text: the page `docs/rules.md`, and what `etlverify --explain` prints.

use askama::Template;

use super::commands::{
    END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING, RECORDING_WITH_KERNEL, RUNTIME_LARGE,
};
use super::{RULES, Rule};
use crate::wrap::{wrap, wrap_at};

/// Command lines that several rules share. The page shows them once, at its end.
struct SharedCommands {
    title: &'static str,
    commands: &'static [&'static str],
}

const SHARED: &[SharedCommands] = &[
    SharedCommands {
        title: "Recording of the CLR",
        commands: RECORDING,
    },
    SharedCommands {
        title: "Recording of the CLR and the kernel",
        commands: RECORDING_WITH_KERNEL,
    },
    SharedCommands {
        title: "End rundown",
        commands: END_RUNDOWN,
    },
    SharedCommands {
        title: "End rundown of large processes",
        commands: LARGE_END_RUNDOWN,
    },
    SharedCommands {
        title: "Runtime session with more buffers",
        commands: &[RUNTIME_LARGE],
    },
];

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
    shared: &'static [SharedCommands],
}

/// The page `docs/rules.md`: every rule with its texts.
#[must_use]
pub fn rules_page() -> String {
    let page = Page {
        rules: RULES,
        shared: SHARED,
    };
    page.render().unwrap_or_default()
}

fn begins_family(rule: &Rule) -> bool {
    RULES
        .iter()
        .find(|r| r.family() == rule.family())
        .is_some_and(|first| first.id == rule.id)
}

fn shared_commands(rule: &Rule) -> Option<&'static SharedCommands> {
    SHARED
        .iter()
        .find(|shared| shared.commands == rule.commands)
}

/// The command lines of a rule that the page shows with the rule.
fn own_commands(rule: &Rule) -> &'static [&'static str] {
    match shared_commands(rule) {
        Some(_) => &[],
        None => rule.commands,
    }
}

/// The remedy, with a link to its command lines if other rules have the same.
fn remedy(rule: &Rule) -> String {
    match shared_commands(rule) {
        Some(shared) => {
            let anchor = shared.title.to_lowercase().replace(' ', "-");
            format!("{} [{}](#{anchor}).", rule.remedy, shared.title)
        }
        None => rule.remedy.to_owned(),
    }
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
