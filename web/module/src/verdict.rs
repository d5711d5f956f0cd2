//! Verifies the opened traces as one recording: the report of `etlverify --no-config`.

use etl_events::Trace;
use etl_verify::{Format, RULES, TraceOrigin, Verifier};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The forms of the report, by their names in `etlverify --format`.
const FORMATS: [Named; 7] = [
    Named::new("json", Format::Json),
    Named::new("text", Format::Text),
    Named::new("html", Format::Html),
    Named::new("markdown", Format::Markdown),
    Named::new("sarif", Format::Sarif),
    Named::new("junit", Format::Junit),
    Named::new("github", Format::Github),
];

struct Named {
    name: &'static str,
    format: Format,
}

impl Named {
    const fn new(name: &'static str, format: Format) -> Self {
        Named { name, format }
    }
}

/// The report in a form; JSON if none is named.
pub fn verify(trace: &mut Trace, format: Option<&str>) -> Result<Vec<u8>> {
    let name = format.unwrap_or("json");
    let Some(named) = FORMATS.iter().find(|named| named.name == name) else {
        return Err(Error::new(format!("there is no report {name:?}")));
    };
    let mut files = Vec::new();
    for file in trace.sources() {
        files.push((file.source, file.name));
    }
    let report = Verifier::new().verify_together(files)?;
    Ok(report.render(named.format).into_bytes())
}

/// Every rule with what it means and what to do if it is broken, for traces of an origin.
pub fn rules(origin: &str) -> Value {
    let origin = if origin == TraceOrigin::EventPipe.name() {
        TraceOrigin::EventPipe
    } else {
        TraceOrigin::Etw
    };
    let mut rules = Vec::new();
    for rule in RULES {
        let texts = rule.texts(origin);
        rules.push(json!({
            "rule": rule.id,
            "statement": texts.statement,
            "meaning": texts.meaning,
            "remedy": texts.remedy,
            "commands": texts.commands,
        }));
    }
    Value::Array(rules)
}
