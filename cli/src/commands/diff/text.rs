//! The text of `etlkit diff`: `-` only in the first trace, `+` only in the second.

use std::fmt::Write;
use std::io::IsTerminal;

use etl_tools::diff::{
    Change, CountDifference, Difference, Event, EventIdentity, ProviderIdentity, Summary,
};
use similar::{ChangeTag, TextDiff};

use crate::escape::one_line;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Bytes of a value that are shown.
const MAX_VALUE: usize = 400;

pub(super) struct Text {
    events: String,
    shown: u64,
    start: i64,
    colours: bool,
}

impl Text {
    /// Times are shown in seconds since `start`, the start of the first trace.
    pub fn new(start: i64) -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Text { events: String::new(), shown: 0, start, colours }
    }

    pub fn difference(&mut self, difference: &Difference<'_>) {
        self.shown += 1;
        match difference {
            Difference::Missing(event) => self.event('-', event),
            Difference::Extra(event) => self.event('+', event),
            Difference::Changed { before, changes, .. } => {
                let head = self.head(before);
                let _ = writeln!(self.events, "! {head}");
                for change in *changes {
                    let lines = self.change("    ", change);
                    self.events.push_str(&lines);
                }
            }
            _ => {}
        }
    }

    pub fn finish(self, names: &[String; 2], summary: &Summary, limit: u64) -> String {
        let mut out = String::new();
        let [first, second] = names;
        let _ = writeln!(out, "--- {}\n+++ {}", one_line(first), one_line(second));
        if !summary.header.is_empty() {
            out.push_str("\nheader\n");
            for change in &summary.header {
                out.push_str(&self.change("", change));
            }
        }
        counts(&mut out, "providers", &summary.providers);
        counts(&mut out, "counts", &summary.counts);
        if !self.events.is_empty() {
            out.push_str("\nevents\n");
            out.push_str(&self.events);
        }
        let all = summary.changed + summary.missing + summary.extra;
        if all > self.shown {
            let _ = writeln!(out, "... and {} more (--limit {limit})", all - self.shown);
        }
        let _ = writeln!(
            out,
            "\n{} changed, {} missing, {} extra, {} the same",
            summary.changed, summary.missing, summary.extra, summary.same
        );
        out
    }

    fn event(&mut self, sign: char, event: &Event) {
        let head = self.head(event);
        let fields: Vec<_> = event
            .payload()
            .iter()
            .map(|part| format!("{}={}", shown(&part.name), shown(&part.value)))
            .collect();
        let colour = if sign == '-' { RED } else { GREEN };
        let (on, off) = if self.colours { (colour, PLAIN) } else { ("", "") };
        let _ = writeln!(self.events, "{on}{sign} {head} {}{off}", fields.join(" "));
    }

    /// Time, name, process and thread of an event.
    fn head(&self, event: &Event) -> String {
        let seconds = (i128::from(event.filetime()) - i128::from(self.start)) as f64 / 1e7;
        let mut out = format!("{seconds:.7}  ");
        let (provider, event_name) =
            (provider_name(event.provider()), event_name(event.identity()));
        let _ = write!(out, "{provider}/{event_name}");
        for (name, short) in [("process", "pid"), ("thread", "tid")] {
            if let Some(value) = event.property(name) {
                let _ = write!(out, "  {short} {value}");
            }
        }
        out
    }

    /// A change as two lines; on a terminal the differing words are bold.
    fn change(&self, indent: &str, change: &Change) -> String {
        let before = change.before.as_deref().map(shown);
        let after = change.after.as_deref().map(shown);
        let mut out = String::new();
        let diff = TextDiff::from_words(
            before.as_deref().unwrap_or_default(),
            after.as_deref().unwrap_or_default(),
        );
        for (value, sign, own, colour) in
            [(&before, '-', ChangeTag::Delete, RED), (&after, '+', ChangeTag::Insert, GREEN)]
        {
            if value.is_none() {
                continue;
            }
            let (on, off) = if self.colours { (colour, PLAIN) } else { ("", "") };
            let _ = write!(out, "{on}{indent}{sign} {}: ", shown(&change.name));
            for piece in diff.iter_all_changes() {
                match piece.tag() {
                    ChangeTag::Equal => out.push_str(piece.value()),
                    tag if tag == own && self.colours => {
                        let _ = write!(out, "{BOLD}{}{PLAIN}{on}", piece.value());
                    }
                    tag if tag == own => out.push_str(piece.value()),
                    _ => {}
                }
            }
            let _ = writeln!(out, "{off}");
        }
        out
    }
}

fn provider_name(provider: &ProviderIdentity) -> String {
    provider.name.as_deref().map_or_else(|| provider.guid.to_string(), shown)
}

/// The name of an event, or its numbers.
fn event_name(event: &EventIdentity) -> String {
    match (&event.name, event.hook) {
        (Some(name), _) => shown(name),
        (None, Some(hook)) => format!("hook {hook:#06x}"),
        (None, None) if event.id != 0 => format!("id {}", event.id),
        (None, None) => format!("opcode {}", event.opcode),
    }
}

fn counts(out: &mut String, title: &str, counts: &[CountDifference]) {
    if counts.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title:<60} {:>10} {:>10}", "-", "+");
    for c in counts {
        let mut name = provider_name(&c.provider);
        if let Some(event) = &c.event {
            name.push('/');
            name.push_str(&event_name(event));
        }
        let _ = writeln!(out, "{name:<60} {:>10} {:>10}", c.before, c.after);
    }
}

/// Text of a trace on one line, escaped and shortened.
fn shown(text: &str) -> String {
    let (head, rest) = text.split_at(text.floor_char_boundary(MAX_VALUE));
    let mut out = one_line(head);
    if !rest.is_empty() {
        let _ = write!(out, "... ({} bytes)", text.len());
    }
    out
}
