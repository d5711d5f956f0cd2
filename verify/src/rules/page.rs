//! Rules as text: the page `docs/rules.md`, and what `etlverify --explain` prints.

use askama::Template;

use super::commands::{
    END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING, RECORDING_WITH_KERNEL, RUNTIME_LARGE,
};
use super::{RULES, Rule, TraceOrigin, event_pipe};
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
    SharedCommands {
        title: "EventPipe recording",
        commands: event_pipe::RECORD,
    },
    SharedCommands {
        title: "EventPipe recording to the end",
        commands: event_pipe::RECORD_TO_THE_END,
    },
    SharedCommands {
        title: "EventPipe recording with a large buffer",
        commands: event_pipe::RECORD_LARGE,
    },
    SharedCommands {
        title: "EventPipe recording from the start",
        commands: event_pipe::RECORD_FROM_START,
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
        self.explain_event_pipe(&mut lines);
        lines.join("\n") + "\n"
    }
}

impl Rule {
    /// Adds what differs for EventPipe, if anything does.
    fn explain_event_pipe(&self, lines: &mut Vec<String>) {
        let origin = TraceOrigin::EventPipe;
        if let Some(absence) = self.absence(origin) {
            lines.push(titled("EventPipe", &format!("Not applicable: {absence}.")));
            return;
        }
        let texts = self.texts(origin);
        if texts.remedy == self.remedy && texts.commands == self.commands {
            return;
        }
        lines.push("\nFor traces of EventPipe (.nettrace)".to_owned());
        if texts.statement != self.statement {
            lines.push(titled("Rule", texts.statement));
        }
        if texts.meaning != self.meaning {
            lines.push(titled("Meaning", texts.meaning));
        }
        lines.push(titled("Remedy", texts.remedy));
        for command in texts.commands {
            lines.push(format!("           {command}"));
        }
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

fn shared_block(commands: &[&str]) -> Option<&'static SharedCommands> {
    SHARED.iter().find(|shared| shared.commands == commands)
}

/// The command lines of a rule that the page shows with the rule.
fn own_commands(rule: &Rule) -> &'static [&'static str] {
    match shared_block(rule.commands) {
        Some(_) => &[],
        None => rule.commands,
    }
}

/// The remedy, with a link to its command lines if other rules have the same.
fn remedy(rule: &Rule) -> String {
    remedy_with_link(rule.remedy, rule.commands)
}

fn remedy_with_link(remedy: &str, commands: &[&str]) -> String {
    match shared_block(commands) {
        Some(shared) => {
            let anchor = shared.title.to_lowercase().replace(' ', "-");
            format!("{remedy} [{}](#{anchor}).", shared.title)
        }
        None => remedy.to_owned(),
    }
}

/// What differs for EventPipe; empty if nothing does.
fn for_event_pipe(rule: &Rule) -> String {
    let origin = TraceOrigin::EventPipe;
    if let Some(absence) = rule.absence(origin) {
        return format!("- **EventPipe:** not applicable: {absence}.");
    }
    let texts = rule.texts(origin);
    if texts.remedy == rule.remedy && texts.commands == rule.commands {
        return String::new();
    }
    let mut parts = vec!["- **EventPipe:**"];
    if texts.statement != rule.statement {
        parts.push(texts.statement);
    }
    if texts.meaning != rule.meaning {
        parts.push(texts.meaning);
    }
    let remedy = remedy_with_link(texts.remedy, texts.commands);
    parts.push(&remedy);
    parts.join(" ")
}

/// The command lines of the remedy for EventPipe that the page shows with the rule.
fn event_pipe_commands(rule: &Rule) -> &'static [&'static str] {
    let origin = TraceOrigin::EventPipe;
    let texts = rule.texts(origin);
    let is_shown = rule.absence(origin).is_some()
        || texts.commands == rule.commands
        || shared_block(texts.commands).is_some();
    if is_shown { &[] } else { texts.commands }
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
