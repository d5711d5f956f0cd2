//! Explains keyword masks.

use std::fmt::Write;

use etl_control::mask::{Raised, Remark, explain};
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
    let row = |raised: &Raised<'_>| raised_row(provider, raised);
    let (raised, raised_json) = rows(explained.raised.iter().map(row));
    let (excluded, excluded_json) = rows(explained.too_verbose.iter().map(row));
    let (suppressed, suppressed_json) = rows(explained.suppressed.iter().map(|suppressed| {
        let id = id(suppressed.event).0;
        let name = &suppressed.event.schema.name;
        let instead = hex(suppressed.suggested_mask);
        let how = match &instead {
            Some(mask) => format!("{mask} enables it"),
            None => "no mask of this provider enables it".to_owned(),
        };
        let json = json!({"id": id, "event": name, "suggested_mask": instead});
        (format!("    {id:>4} {name}  {how}\n"), json)
    }));
    let lines = text(|out| {
        writeln!(out, "{} {mask:#x} at level {level}", provider.name)?;
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
        write!(
            out,
            "  enables    {} events\n{raised}",
            explained.raised.len()
        )?;
        if !explained.suppressed.is_empty() {
            let count = explained.suppressed.len();
            writeln!(
                out,
                "  suppresses {count} events of these keywords, by the rules of the CLR"
            )?;
            out.push_str(&suppressed);
        }
        if !explained.too_verbose.is_empty() {
            let count = explained.too_verbose.len();
            write!(out, "  excludes   {count} events, by its level\n{excluded}")?;
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
        "events": raised_json,
        "suppressed": suppressed_json,
        "excluded_by_level": excluded_json,
    });
    Ok((lines, json))
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

/// An event that a mask enables, as text and as JSON.
fn raised_row(provider: &Provider, raised: &Raised<'_>) -> (String, Value) {
    let ((id, _), event) = (id(raised.event), raised.event);
    let line = format!(
        "    {id:>4} {}  {}  version{} {}{}{}\n",
        event.schema.name,
        levels(&raised.levels),
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
        "level": event.schema.level.value,
        "keywords": provider.keyword_names(event.schema.keywords).names,
        "stack": event.stack,
        "errata": event.errata(),
    });
    (line, json)
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

fn join(numbers: &[u8]) -> String {
    numbers
        .iter()
        .map(u8::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
