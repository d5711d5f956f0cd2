//! The text of `etlkit diff`: `-` only in the first trace, `+` only in the second.

use std::fmt::{self, Write};
use std::io::IsTerminal;

use etl_tools::diff::{Change, CountDifference, Event, EventIdentity, ProviderIdentity, Summary};
use similar::{ChangeTag, TextDiff};

use super::{Kind, ListedDifference};
use crate::escape::one_line;
use crate::output;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Bytes of a value that are shown, at most.
const MAX_VALUE: usize = 400;

/// The text. Times are shown in seconds since `start`, the start of the first trace.
pub(super) fn render(
    [first, second]: [&str; 2],
    summary: &Summary,
    listed: &[ListedDifference],
    start: i64,
) -> String {
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    output::text(|out| {
        writeln!(out, "--- {}\n+++ {}", one_line(first), one_line(second))?;
        if !summary.header.is_empty() {
            out.push_str("\nheader\n");
        }
        for change in &summary.header {
            write_change(out, "", change, colours)?;
        }
        write_counts(out, "providers", &summary.providers)?;
        write_counts(out, "counts", &summary.counts)?;
        if !listed.is_empty() {
            out.push_str("\nevents\n");
        }
        for ListedDifference { event, kind } in listed {
            match kind {
                Kind::Missing => write_event(out, '-', event, start, colours)?,
                Kind::Extra => write_event(out, '+', event, start, colours)?,
                Kind::Changed(changes) => {
                    writeln!(out, "! {}", head(event, start))?;
                    for change in changes {
                        write_change(out, "    ", change, colours)?;
                    }
                }
            }
        }
        let all = summary.changed + summary.missing + summary.extra;
        let shown = listed.len() as u64;
        if all > shown {
            // As many are shown as the limit allows.
            writeln!(out, "... and {} more (--limit {shown})", all - shown)?;
        }
        writeln!(
            out,
            "\n{} changed, {} missing, {} extra, {} the same",
            summary.changed, summary.missing, summary.extra, summary.same
        )
    })
}

fn write_event(
    out: &mut String,
    sign: char,
    event: &Event,
    start: i64,
    colours: bool,
) -> fmt::Result {
    let fields: Vec<_> = event
        .payload()
        .iter()
        .map(|part| format!("{}={}", shown(&part.name), shown(&part.value)))
        .collect();
    let colour = if sign == '-' { RED } else { GREEN };
    let (on, off) = if colours { (colour, PLAIN) } else { ("", "") };
    writeln!(
        out,
        "{on}{sign} {} {}{off}",
        head(event, start),
        fields.join(" ")
    )
}

/// Time, name, process and thread of an event.
fn head(event: &Event, start: i64) -> String {
    let seconds = (i128::from(event.time().get()) - i128::from(start)) as f64 / 1e7;
    let provider = provider_name(event.provider());
    let name = event_name(event.identity());
    let mut out = format!("{seconds:.7}  {provider}/{name}");
    for name in ["pid", "tid"] {
        if let Some(value) = event.property(name) {
            out.push_str(&format!("  {name} {value}"));
        }
    }
    out
}

/// A change as two lines; on a terminal the differing words are bold.
fn write_change(out: &mut String, indent: &str, change: &Change, colours: bool) -> fmt::Result {
    let before = change.before.as_deref().map(shown);
    let after = change.after.as_deref().map(shown);
    let diff = TextDiff::from_words(
        before.as_deref().unwrap_or_default(),
        after.as_deref().unwrap_or_default(),
    );
    for (value, sign, own, colour) in [
        (&before, '-', ChangeTag::Delete, RED),
        (&after, '+', ChangeTag::Insert, GREEN),
    ] {
        if value.is_none() {
            continue;
        }
        let (on, off) = if colours { (colour, PLAIN) } else { ("", "") };
        write!(out, "{on}{indent}{sign} {}: ", shown(&change.name))?;
        for piece in diff.iter_all_changes() {
            match piece.tag() {
                ChangeTag::Equal => out.push_str(piece.value()),
                tag if tag == own && colours => write!(out, "{BOLD}{}{PLAIN}{on}", piece.value())?,
                tag if tag == own => out.push_str(piece.value()),
                _ => {}
            }
        }
        writeln!(out, "{off}")?;
    }
    Ok(())
}

fn provider_name(provider: &ProviderIdentity) -> String {
    match &provider.name {
        Some(name) => shown(name),
        None => provider.guid.to_string(),
    }
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

fn write_counts(out: &mut String, title: &str, counts: &[CountDifference]) -> fmt::Result {
    if !counts.is_empty() {
        writeln!(out, "\n{title:<60} {:>10} {:>10}", "-", "+")?;
    }
    for c in counts {
        let mut name = provider_name(&c.provider);
        if let Some(event) = &c.event {
            name.push('/');
            name.push_str(&event_name(event));
        }
        writeln!(out, "{name:<60} {:>10} {:>10}", c.before, c.after)?;
    }
    Ok(())
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
