//! The differences as JSON: a contract, described in docs/json-diff.md.

use std::collections::BTreeMap;

use etl_format::clock::iso_utc;
use etl_tools::diff::{Change, Counted, Difference, Event, Summary};
use serde::Serialize;

use etl_schema::providers;

/// Raised when a field changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Default)]
pub(super) struct Json {
    differences: Vec<One>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    first: &'a str,
    second: &'a str,
    differs: bool,
    same: u64,
    changed: u64,
    missing: u64,
    extra: u64,
    header: Vec<Changed>,
    providers: Vec<Count>,
    counts: Vec<Count>,
    differences: &'a [One],
    differences_left_out: u64,
    damaged: [bool; 2],
}

#[derive(Debug, Serialize)]
struct Changed {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
struct Count {
    provider: String,
    provider_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Which>,
    before: u64,
    after: u64,
}

/// Which event of a provider.
#[derive(Debug, Serialize)]
struct Which {
    name: Option<String>,
    hook: Option<u16>,
    id: u16,
    opcode: u8,
}

#[derive(Debug, Serialize)]
struct One {
    kind: &'static str,
    time: String,
    provider: String,
    provider_name: Option<String>,
    event: Which,
    /// What differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Changed>>,
    /// The whole event, where only one side has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<BTreeMap<String, String>>,
}

impl Json {
    pub fn difference(&mut self, difference: &Difference<'_>) {
        let whole = |event: &Event| {
            let parts = event.parts().iter();
            Some(parts.map(|p| (p.name.to_string(), p.value.clone())).collect())
        };
        let one = match difference {
            Difference::Missing(event) => One { parts: whole(event), ..one("missing", event) },
            Difference::Extra(event) => One { parts: whole(event), ..one("extra", event) },
            Difference::Changed { before, changes, .. } => {
                One { changes: Some(changed(changes)), ..one("changed", before) }
            }
            _ => return,
        };
        self.differences.push(one);
    }

    pub fn finish(self, names: &[String; 2], summary: &Summary) -> String {
        let all = summary.changed + summary.missing + summary.extra;
        let [first, second] = names;
        let report = Report {
            schema_version: SCHEMA_VERSION,
            first,
            second,
            differs: summary.differs(),
            same: summary.same,
            changed: summary.changed,
            missing: summary.missing,
            extra: summary.extra,
            header: changed(&summary.header),
            providers: summary.providers.iter().map(|c| count(c, false)).collect(),
            counts: summary.counts.iter().map(|c| count(c, true)).collect(),
            differences: &self.differences,
            differences_left_out: all.saturating_sub(self.differences.len() as u64),
            damaged: summary.damage.each_ref().map(|d| !d.is_empty()),
        };
        // Strings, numbers and lists only: JSON can hold all of it.
        let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn one(kind: &'static str, event: &Event) -> One {
    One {
        kind,
        time: iso_utc(event.filetime()),
        provider: event.provider().to_string(),
        provider_name: super::provider_name(event).map(str::to_owned),
        event: Which {
            name: event.name().map(str::to_owned),
            hook: event.hook(),
            id: event.id(),
            opcode: event.opcode(),
        },
        changes: None,
        parts: None,
    }
}

fn changed(changes: &[Change]) -> Vec<Changed> {
    let one = |c: &Change| Changed {
        name: c.name.clone(),
        before: c.before.clone(),
        after: c.after.clone(),
    };
    changes.iter().map(one).collect()
}

fn count(c: &Counted, of_event: bool) -> Count {
    let known = || providers::name(c.provider).map(str::to_owned);
    Count {
        provider: c.provider.to_string(),
        provider_name: c.provider_name.clone().or_else(known),
        event: of_event.then(|| Which {
            name: c.name.clone(),
            hook: c.hook,
            id: c.id,
            opcode: c.opcode,
        }),
        before: c.before,
        after: c.after,
    }
}
