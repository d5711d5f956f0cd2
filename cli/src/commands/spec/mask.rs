//! Explains keyword masks.

use std::fmt::{self, Write};

use etl_control::mask::{Explanation, Raised, Remark, explain};
use etl_schema::tables::{Provider, Registry, TableSet};
use serde_json::{Value, json};

use super::list::{id, in_brackets};
use super::{Printed, find};
use crate::error::Failure;
use crate::output::text;

/// A provider with keywords: classes of kernel events have none.
fn provider_with_keywords(profile: TableSet, name: &str) -> Result<&'static Provider, Failure> {
    let provider = find(profile, name)?;
    if Registry::of(profile).provider(provider.guid).is_none() {
        let message = "a class of kernel events has no keywords: it is enabled by kernel flags";
        return Err(Failure::new(name, message).hint("`etlkit spec providers` lists the providers"));
    }
    Ok(provider)
}

pub(super) fn mask(
    profile: TableSet,
    provider: &str,
    mask: u64,
    level: u8,
) -> Result<Printed, Failure> {
    let provider = provider_with_keywords(profile, provider)?;
    let explanation = explain(profile, provider, mask, level);
    let lines = text(|out| print(out, provider, mask, level, &explanation));
    Ok((lines, to_json(provider, mask, level, &explanation)))
}

fn print(
    out: &mut String,
    provider: &Provider,
    mask: u64,
    level: u8,
    explanation: &Explanation<'_>,
) -> fmt::Result {
    writeln!(out, "{} {mask:#x} at level {level}", provider.name)?;
    let all = if mask == 0 { vec!["all keywords"] } else { explanation.names.clone() };
    let all = if all.is_empty() { vec!["none"] } else { all };
    writeln!(out, "  keywords   {}", all.join(", "))?;
    if explanation.unnamed != 0 {
        writeln!(out, "  unnamed    {:#x}", explanation.unnamed)?;
    }
    for remark in &explanation.remarks {
        writeln!(out, "  note       {}", self::remark(remark))?;
    }
    let errata = explanation.errata(provider, mask);
    if !errata.is_empty() {
        writeln!(out, "  errata     {} (`etlkit errata ID` describes one)", errata.join(" "))?;
    }
    writeln!(out, "  enables    {} events", explanation.raised.len())?;
    for raised in &explanation.raised {
        line(out, raised)?;
    }
    if !explanation.suppressed.is_empty() {
        let count = explanation.suppressed.len();
        writeln!(out, "  suppresses {count} events of these keywords, by the rules of the CLR")?;
        for suppressed in &explanation.suppressed {
            let (id, _) = id(suppressed.event);
            let how = match suppressed.suggested_mask {
                Some(mask) => format!("{mask:#x} enables it"),
                None => "no mask of this provider enables it".to_owned(),
            };
            writeln!(out, "    {id:>4} {}  {how}", suppressed.event.schema.name)?;
        }
    }
    if !explanation.too_verbose.is_empty() {
        let count = explanation.too_verbose.len();
        writeln!(out, "  excludes   {count} events, by its level")?;
        for raised in &explanation.too_verbose {
            line(out, raised)?;
        }
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

fn line(out: &mut String, raised: &Raised<'_>) -> fmt::Result {
    let (id, _) = id(raised.event);
    writeln!(
        out,
        "    {id:>4} {}  {}  version{} {}{}{}",
        raised.event.schema.name,
        levels(&raised.levels),
        if raised.versions.len() == 1 { "" } else { "s" },
        join(&raised.versions),
        if raised.event.stack { "  +stack" } else { "" },
        in_brackets(&raised.event.errata()),
    )
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
    numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

fn to_json(provider: &Provider, mask: u64, level: u8, e: &Explanation<'_>) -> Value {
    let raised = |r: &Raised<'_>| {
        let (id, _) = id(r.event);
        json!({
            "id": id,
            "event": r.event.schema.name,
            "versions": r.versions,
            "levels": r.levels,
            "level": r.event.schema.level.value,
            "keywords": provider.keyword_names(r.event.schema.keywords).0,
            "stack": r.event.stack,
            "errata": r.event.errata(),
        })
    };
    json!({
        "provider": provider.name,
        "provider_guid": provider.guid.to_string(),
        "mask": mask,
        "mask_hex": format!("{mask:#x}"),
        "level": level,
        "keywords": e.names,
        "unnamed": e.unnamed,
        "remarks": e.remarks.iter().map(remark_json).collect::<Vec<_>>(),
        "errata": e.errata(provider, mask),
        "events": e.raised.iter().map(raised).collect::<Vec<_>>(),
        "suppressed": e.suppressed.iter().map(|w| json!({
            "id": id(w.event).0,
            "event": w.event.schema.name,
            "suggested_mask": hex(w.suggested_mask),
        })).collect::<Vec<_>>(),
        "excluded_by_level": e.too_verbose.iter().map(raised).collect::<Vec<_>>(),
    })
}
