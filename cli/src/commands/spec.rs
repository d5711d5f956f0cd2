//! `etlkit spec`: what the tables say.

mod line;

use std::fmt::{self, Write};

use clap::{Subcommand, ValueEnum};
use etl_schema::mask;
use etl_schema::tables::{Provider, Registry, TableEvent};
use etl_schema::{Count, Field, FieldKind, FieldRef, Identity, Length};
use serde_json::{Value, json};

use crate::Outcome;
use crate::error::Failure;
use crate::filter::number;
use crate::output;

/// Arguments of `etlkit spec`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A provider is named by its name, the end of it (runtime, rundown) or its GUID.

Examples:
  etlkit spec events runtime method
  etlkit spec mask rundown 0xB8
  etlkit spec mask runtime 0x1CCBD --level 4 --format json
  etlkit spec line 'xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl'")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// How to print
    #[arg(long, value_enum, default_value_t, global = true)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For machines
    Json,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the providers that are described
    Providers,
    /// List the keywords of a provider
    Keywords {
        /// The provider
        provider: String,
    },
    /// List the events of a provider, with their fields
    Events {
        /// The provider
        provider: String,
        /// Only events with this id, or with this text in their symbol
        search: Option<String>,
    },
    /// Take a mask apart: its keywords, the events it gives, and what it will not give
    Mask {
        /// The provider
        provider: String,
        /// The mask, decimal or 0x and hexadecimal; 0 stands for all keywords
        #[arg(value_parser = number::<u64>)]
        mask: u64,
        /// The level of the session; 0 stands for all levels
        #[arg(long, default_value_t = 5)]
        level: u8,
    },
    /// Read a command line of xperf, logman or tracelog: what it asks for, and what it will not give
    Line(line::LineArgs),
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (text, json) = match &args.what {
        What::Providers => providers(),
        What::Keywords { provider } => keywords(find(provider)?),
        What::Events { provider, search } => events(find(provider)?, search.as_deref())?,
        What::Mask { provider, mask, level } => explain(find(provider)?, *mask, *level),
        What::Line(args) => line::run(args)?,
    };
    match args.format {
        Format::Text => output::print(&text)?,
        Format::Json => {
            let mut json = serde_json::to_string_pretty(&json).unwrap_or_default();
            json.push('\n');
            output::print(&json)?;
        }
    }
    Ok(Outcome::Fine)
}

fn find(name: &str) -> Result<&'static Provider, Failure> {
    Registry::builtin().find(name).ok_or_else(|| {
        Failure::new(name, "no provider of this name is described")
            .hint("`etlkit spec providers` lists those that are")
    })
}

/// Collects text; writing into a String does not fail.
fn text(f: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut out = String::new();
    let _ = f(&mut out);
    out
}

fn providers() -> (String, Value) {
    let all = Registry::builtin().providers();
    let lines = text(|out| {
        for p in all {
            writeln!(out, "{}  {} ({} events)", p.guid, p.name, p.events.len())?;
        }
        Ok(())
    });
    let json = all
        .iter()
        .map(|p| json!({"name": p.name, "guid": p.guid.to_string(), "events": p.events.len()}))
        .collect();
    (lines, json)
}

fn keywords(provider: &Provider) -> (String, Value) {
    let lines = text(|out| {
        for (mask, name) in &provider.keywords {
            writeln!(out, "{mask:#18x}  {name}")?;
        }
        Ok(())
    });
    let json = provider
        .keywords
        .iter()
        .map(|(mask, name)| json!({"name": name, "mask": mask, "mask_hex": format!("{mask:#x}")}))
        .collect();
    (lines, json)
}

fn events(provider: &Provider, search: Option<&str>) -> Result<(String, Value), Failure> {
    let wanted = |e: &&TableEvent| match search {
        None => true,
        Some(text) => {
            let symbol = e.schema.name.to_ascii_lowercase().contains(&text.to_ascii_lowercase());
            symbol || text == id(e).0.to_string()
        }
    };
    let found: Vec<_> = provider.events.iter().filter(wanted).collect();
    if found.is_empty() {
        let search = search.unwrap_or_default();
        return Err(Failure::new(search, format!("no event of {} is called so", provider.name))
            .hint("without a text to search for all events are listed"));
    }
    let lines = text(|out| {
        for event in &found {
            headline(out, provider, event)?;
            for field in &event.schema.fields {
                write!(out, "      ")?;
                describe(out, field, &event.schema.fields)?;
                writeln!(out)?;
            }
        }
        Ok(())
    });
    Ok((lines, found.iter().map(|e| event_json(provider, e)).collect()))
}

/// A field as people write it: `Values Struct[Count] { Address Pointer, Size UInt64 }`.
fn describe(out: &mut String, field: &Field, level: &[Field]) -> fmt::Result {
    let name_at = |field: FieldRef| match field {
        FieldRef::Here(at) | FieldRef::Top(at) => {
            level.get(usize::from(at)).map_or("?", |f| &*f.name)
        }
    };
    match &field.kind {
        FieldKind::Struct(_) => write!(out, "{} Struct", field.name)?,
        FieldKind::Value(kind) => write!(out, "{} {}", field.name, kind.name())?,
    }
    match field.length {
        Length::Fixed(n) => write!(out, "({n})")?,
        Length::Field(at) => write!(out, "({})", name_at(at))?,
        _ => {}
    }
    match field.count {
        Count::One => {}
        Count::Const(n) => write!(out, "[{n}]")?,
        Count::Field(at) => write!(out, "[{}]", name_at(at))?,
        Count::Prefixed => write!(out, "[counted]")?,
        Count::Rest => write!(out, "[to the end]")?,
    }
    if let Some(map) = &field.map {
        write!(out, " ({})", map.name())?;
    }
    if let FieldKind::Struct(members) = &field.kind {
        write!(out, " {{")?;
        for (i, member) in members.iter().enumerate() {
            write!(out, "{} ", if i > 0 { "," } else { "" })?;
            describe(out, member, members)?;
        }
        write!(out, " }}")?;
    }
    Ok(())
}

fn id(event: &TableEvent) -> (u16, u16) {
    match event.schema.identity {
        Identity::Modern { id, version } => (id, version.into()),
        Identity::Classic { opcode, version } => (opcode.into(), version),
        Identity::Message { number } => (number, 0),
        Identity::SelfDescribing => (0, 0),
    }
}

fn headline(out: &mut String, provider: &Provider, event: &TableEvent) -> fmt::Result {
    let schema = &event.schema;
    let ((id, version), (names, _)) = (id(event), provider.keyword_names(schema.keywords));
    writeln!(
        out,
        "{id:>5} v{version} {}  task {} {}  opcode {} {}  level {}  {}{}",
        schema.name,
        schema.task.value,
        schema.task.name,
        schema.opcode.value,
        schema.opcode.name,
        schema.level.value,
        if names.is_empty() { "no keyword".to_owned() } else { names.join("|") },
        if event.stack { "  +stack" } else { "" },
    )
}

fn event_json(provider: &Provider, event: &TableEvent) -> Value {
    let (id, version) = id(event);
    let schema = &event.schema;
    json!({
        "id": id,
        "version": version,
        "symbol": schema.name,
        "task": schema.task.value,
        "task_name": schema.task.name,
        "opcode": schema.opcode.value,
        "opcode_name": schema.opcode.name,
        "level": schema.level.value,
        "keyword": schema.keywords,
        "keywords": provider.keyword_names(schema.keywords).0,
        "stack": event.stack,
        "source": event.origin,
        "fields": schema.fields.iter().map(|f| json!({
            "name": f.name,
            "type": text(|out| describe(out, f, &event.schema.fields)).split_once(' ').map(|(_, kind)| kind),
            "map": f.map.as_ref().map(|m| m.name()),
        })).collect::<Vec<_>>(),
    })
}

fn explain(provider: &Provider, mask: u64, level: u8) -> (String, Value) {
    let explanation = mask::explain(provider, mask, level);
    let lines = text(|out| {
        writeln!(out, "{} {mask:#x} at level {level}", provider.name)?;
        let all = if mask == 0 { vec!["all keywords"] } else { explanation.names.clone() };
        writeln!(out, "  keywords  {}", all.join(", "))?;
        if explanation.unnamed != 0 {
            writeln!(out, "  unnamed   {:#x}", explanation.unnamed)?;
        }
        for remark in &explanation.remarks {
            writeln!(out, "  note      {remark}")?;
        }
        writeln!(out, "  events    {}", explanation.raised.len())?;
        for event in &explanation.raised {
            headline(out, provider, event)?;
        }
        Ok(())
    });
    let json = json!({
        "provider": provider.name,
        "guid": provider.guid.to_string(),
        "mask": mask,
        "level": level,
        "keywords": explanation.names,
        "unnamed": explanation.unnamed,
        "remarks": explanation.remarks,
        "events": explanation.raised.iter().map(|e| event_json(provider, e)).collect::<Vec<_>>(),
    });
    (lines, json)
}
