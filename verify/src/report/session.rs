//! Sessions in the report: when they were, what they lost, what they were enabled with.

use std::fmt;

use etl_control::enable::EventKey;
use etl_control::mask;
use etl_format::Guid;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::Registry;
use etl_schema::tables::TableSet;
use serde::Serialize;

use crate::facts::enable::Knowledge;
use crate::facts::loss::Loss;
use crate::facts::{Facts, infer};

use super::{Scale, utc};

/// A session, or the events of one of the CLR's providers: what has a beginning and an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionReport {
    /// Its name.
    pub name: String,
    /// `session` for one whose header is in a file, `recorded` for one that the trace tells of by name,
    /// `events` for the events of a provider.
    pub kind: &'static str,
    /// Where it lies on the timeline, in microseconds since the report's start.
    pub span_us: [i64; 2],
    /// Events that its header counts as lost.
    pub events_lost: Option<u32>,
}

/// Sessions, then the spans of what the kernel and the CLR told.
pub(super) fn sessions(facts: &Facts, scale: &Scale<'_>) -> Vec<SessionReport> {
    let own = facts.files.iter().flat_map(|f| &f.sessions).map(|s| SessionReport {
        name: if s.name.is_empty() { "(no name)".to_owned() } else { s.name.clone() },
        kind: "session",
        span_us: scale.span(Some(s.from), s.to),
        events_lost: Some(s.events_lost),
    });
    let told = facts.admission.sessions.iter().map(|(at, name)| SessionReport {
        name: name.clone(),
        kind: "recorded",
        span_us: scale.span(Some(*at), None),
        events_lost: None,
    });
    let spans = [
        ("kernel events", facts.kernel_span),
        ("CLR runtime events", facts.runtime_span),
        ("CLR rundown events", facts.rundown_span),
    ];
    let spans = spans.into_iter().filter_map(|(name, span)| {
        Some(SessionReport {
            name: name.to_owned(),
            kind: "events",
            span_us: scale.of(span)?,
            events_lost: None,
        })
    });
    own.chain(told).chain(spans).collect()
}

/// Something that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossReport {
    /// In words.
    pub what: &'static str,
    /// The processor, where it is known.
    pub processor: Option<u16>,
    /// Not before, as UTC, where it is known.
    pub from: Option<String>,
    /// Not after, as UTC, where it is known.
    pub to: Option<String>,
    /// Where it lies on the timeline, in microseconds since the report's start.
    pub span_us: [i64; 2],
    /// The file.
    pub file: String,
}

impl LossReport {
    pub(super) fn new(facts: &Facts, loss: &Loss) -> Self {
        let at = |timestamp: Option<i64>| timestamp.map(|s| utc(&facts.clock, s));
        LossReport {
            what: loss.what.name(),
            processor: loss.processor,
            from: at(loss.from),
            to: at(loss.to),
            span_us: Scale::new(facts).span(loss.from, loss.to),
            file: facts.files.get(loss.source).map(|f| f.name.clone()).unwrap_or_default(),
        }
    }
}

impl fmt::Display for LossReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if let Some(processor) = self.processor {
            write!(f, " on processor {processor}")?;
        }
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => write!(f, " between {from} and {to}"),
            (Some(from), None) => write!(f, " after {from}"),
            (None, Some(to)) => write!(f, " before {to}"),
            (None, None) => f.write_str(", the file does not say when"),
        }
    }
}

/// What a provider was enabled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnabledReport {
    /// The provider's name, or its GUID again.
    pub name: String,
    /// The provider.
    pub provider: String,
    /// Level; null where only the fact is recorded. 0 is all.
    pub level: Option<u8>,
    /// Mask of any keywords, hexadecimal; null where only the fact is recorded. 0 is all.
    pub mask: Option<String>,
    /// Names of the mask's keywords, where the provider is known.
    pub keywords: Vec<String>,
    /// `told`, `recorded` or `inferred`.
    pub source: &'static str,
    /// When, as UTC, where it is recorded.
    pub at: Option<String>,
    /// The session, where it is recorded.
    pub session: Option<String>,
    /// What the mask will not give, for people.
    pub remarks: Vec<String>,
}

impl EnabledReport {
    /// Whether it is one of the CLR's two providers.
    #[must_use]
    pub fn is_clr(&self) -> bool {
        [CLR_RUNTIME, CLR_RUNDOWN].iter().any(|guid| guid.to_string() == self.provider)
    }
}

/// What is known, then what can be inferred for providers of which nothing is.
pub(super) fn enabled(facts: &Facts) -> Vec<EnabledReport> {
    let mut out = Vec::new();
    for e in &facts.admission.enabled {
        let with = e.with.as_ref().map(|with| (with.level, with.any));
        let mut report = one(facts, e.provider, with, e.knowledge);
        report.at = e.at.map(|s| utc(&facts.clock, s));
        report.session.clone_from(&e.session);
        out.push(report);
    }
    for (provider, kinds) in facts.admission.providers() {
        if facts.admission.of(provider).next().is_some() {
            continue;
        }
        let events: Vec<EventKey> = kinds.into_iter().map(|(event, _)| event).collect();
        let least = infer::smallest(provider, &events, &facts.processes);
        let with = Some((least.level, least.any));
        out.push(one(facts, provider, with, Knowledge::Inferred));
    }
    out
}

fn one(facts: &Facts, guid: Guid, with: Option<(u8, u64)>, knowledge: Knowledge) -> EnabledReport {
    let provider = Registry::builtin().provider(guid);
    let explained =
        provider.zip(with).map(|(p, (level, any))| mask::explain(TableSet::Shipped, p, any, level));
    let remarks = match &explained {
        Some(e) if knowledge == Knowledge::Told => e.remarks.clone(),
        _ => Vec::new(),
    };
    EnabledReport {
        name: facts.provider_name(guid),
        provider: guid.to_string(),
        level: with.map(|(level, _)| level),
        mask: with.map(|(_, any)| format!("{any:#x}")),
        keywords: explained
            .map_or_else(Vec::new, |e| e.names.into_iter().map(str::to_owned).collect()),
        source: knowledge.name(),
        at: None,
        session: None,
        remarks: remarks.into_iter().map(|r| r.message).collect(),
    }
}
