//! Explains keyword masks.

use std::fmt::{self, Write};

use etl_control::mask::{Explanation, Raised, Remark, Suppressed, explain};
use etl_schema::tables::{Provider, TableSet};
use serde_json::{Value, json};

use super::list::{id, in_brackets};
use super::{Printed, find, rows, without_keywords};
use crate::error::Failure;
use crate::output::text;

pub(super) fn mask(
    profile: TableSet,
    provider: &str,
    mask: u64,
    level: u8,
) -> Result<Printed, Failure> {
    let name = provider;
    let provider = find(profile, provider)?;
    if let Some(message) = without_keywords(provider) {
        return Err(Failure::new(name, message)
            .hint(format!("`etlkit spec events {name}` lists its events")));
    }
    let explained = explain(profile, provider, mask, level);
    let errata = explained.errata(provider, mask);
    let raised = raised_rows(provider, &explained.raised);
    let excluded = raised_rows(provider, &explained.too_verbose);
    let suppressed = rows(explained.suppressed.iter().map(suppressed_row));
    let heading = format!("{} {mask:#x} at level {level}\n", provider.name);
    let lines = text(|out| {
        out.push_str(&heading);
        describe_keywords(out, mask, &explained, &errata)?;
        let count = explained.raised.len();
        write!(out, "  enables    {count} events\n{}", raised.text)?;
        let count = explained.suppressed.len();
        if count > 0 {
            writeln!(
                out,
                "  suppresses {count} events of these keywords, by the rules of the CLR"
            )?;
            out.push_str(&suppressed.text);
        }
        let count = explained.too_verbose.len();
        if count > 0 {
            writeln!(out, "  excludes   {count} events, by its level")?;
            out.push_str(&excluded.text);
        }
        Ok(())
    });
    let json = json!({
        "provider": provider.name,
        "provider_guid": provider.guid.to_string(),
        "mask": mask,
        "mask_hex": format!("{mask:#x}"),
        "level": level,
        "keywords": explained.names,
        "unnamed": explained.unnamed,
        "remarks": explained.remarks.iter().map(remark_json).collect::<Vec<_>>(),
        "errata": errata,
        "events": raised.json,
        "suppressed": suppressed.json,
        "excluded_by_level": excluded.json,
    });
    Ok(Printed { text: lines, json })
}

/// The keywords of a mask, and the remarks and errata on them.
fn describe_keywords(
    out: &mut String,
    mask: u64,
    explained: &Explanation<'_>,
    errata: &[&str],
) -> fmt::Result {
    let names = match explained.names.as_slice() {
        _ if mask == 0 => "all keywords".to_owned(),
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    writeln!(out, "  keywords   {names}")?;
    if explained.unnamed != 0 {
        writeln!(out, "  unnamed    {:#x}", explained.unnamed)?;
    }
    for remark in &explained.remarks {
        writeln!(out, "  note       {}", self::remark(remark))?;
    }
    if !errata.is_empty() {
        let ids = errata.join(" ");
        writeln!(out, "  errata     {ids} (`etlkit errata ID` describes one)")?;
    }
    Ok(())
}

/// A remark with the mask that it suggests, and its errata.
pub(super) fn remark(remark: &Remark) -> String {
    let instead = match remark.suggested_mask {
        Some(mask) if !remark.message.contains(&format!("{mask:#x}")) => {
            format!(" (try {mask:#x})")
        }
        _ => String::new(),
    };
    format!("{}{instead}{}", remark.message, in_brackets(&remark.errata))
}

pub(super) fn remark_json(remark: &Remark) -> Value {
    json!({
        "message": remark.message,
        "suggested_mask": hex(remark.suggested_mask),
        "errata": remark.errata,
    })
}

fn hex(mask: Option<u64>) -> Option<String> {
    mask.map(|m| format!("{m:#x}"))
}

/// An event that the rules of the CLR suppress.
fn suppressed_row(suppressed: &Suppressed<'_>) -> Printed {
    let id = id(suppressed.event).number;
    let name = &suppressed.event.schema.name;
    let suggested_mask = hex(suppressed.suggested_mask);
    let advice = match &suggested_mask {
        Some(mask) => format!("{mask} enables it"),
        None => "no mask of this provider enables it".to_owned(),
    };
    Printed {
        text: format!("    {id:>4} {name}  {advice}\n"),
        json: json!({"id": id, "event": name, "suggested_mask": suggested_mask}),
    }
}

/// Events that a mask enables at a level.
fn raised_rows(provider: &Provider, raised: &[Raised<'_>]) -> Printed {
    rows(raised.iter().map(|raised| raised_row(provider, raised)))
}

fn raised_row(provider: &Provider, raised: &Raised<'_>) -> Printed {
    let event = raised.event;
    let id = id(event).number;
    let line = format!(
        "    {id:>4} {}  {}{}  version{} {}{}{}\n",
        event.schema.name,
        levels(&raised.levels),
        core_levels(raised),
        if raised.versions.len() == 1 { "" } else { "s" },
        join(&raised.versions),
        if event.stack { "  +stack" } else { "" },
        in_brackets(&event.errata()),
    );
    let json = json!({
        "id": id,
        "event": event.schema.name,
        "versions": raised.versions,
        "levels": raised.levels,
        "core_levels": raised.core_levels,
        "level": event.schema.level.value,
        "keywords": provider.keyword_names(event.schema.keywords).names,
        "stack": event.stack,
        "errata": event.errata(),
    });
    Printed { text: line, json }
}

/// The levels of a session at which an event is written.
fn levels(levels: &[u8]) -> String {
    match levels {
        [1, .., 5] => "any level".to_owned(),
        [first, .., 5] => format!("from level {first}"),
        [5] => "from level 5".to_owned(),
        [only] => format!("level {only} only"),
        some => format!("levels {}", join(some)),
    }
}

/// The levels of .NET Core, if they differ.
fn core_levels(raised: &Raised<'_>) -> String {
    if raised.core_levels == raised.levels {
        return String::new();
    }
    match raised.core_levels.as_slice() {
        [] => " (.NET Framework only)".to_owned(),
        some => format!(" (.NET Core: {})", levels(some)),
    }
}

fn join(numbers: &[u8]) -> String {
    numbers
        .iter()
        .map(u8::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
