//! Sessions in the report: when they ran, what they lost, what they were enabled with.

use etl_control::enable::EventKey;
use etl_control::mask;
use etl_format::Guid;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{self, TableSet};
use serde::Serialize;

use super::timeline::Timeline;
use crate::facts::enable::Knowledge;
use crate::facts::loss::{Loss, LossKind};
use crate::facts::{Facts, infer};
use crate::finding::utc;
use crate::loss;

/// A session, or the span of events of the kernel or of one of the CLR's providers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SessionReport {
    /// Its name.
    pub name: String,
    /// `session` if its header is in a file, `recorded` if an event of the trace names it, `events`
    /// for a span of events.
    pub kind: &'static str,
    /// Microseconds since the report's start of its start and its end.
    pub span_us: [i64; 2],
    /// Lost events that its header counts.
    pub events_lost: Option<u32>,
}

/// Sessions, then the spans of the kernel's and the CLR's events.
pub(super) fn sessions(facts: &Facts, timeline: &Timeline<'_>) -> Vec<SessionReport> {
    let own = facts.files().iter().flat_map(|f| &f.sessions).map(|s| SessionReport {
        name: if s.name.is_empty() { "(no name)".to_owned() } else { s.name.clone() },
        kind: "session",
        span_us: timeline.span(Some(s.from), s.to),
        events_lost: Some(s.events_lost),
    });
    let recorded = facts.admission.sessions.iter().map(|(at, name)| SessionReport {
        name: name.clone(),
        kind: "recorded",
        span_us: timeline.span(Some(*at), None),
        events_lost: None,
    });
    let spans = [
        ("kernel events", facts.kernel_span()),
        ("CLR runtime events", facts.runtime_span()),
        ("CLR rundown events", facts.rundown_span()),
    ];
    let spans = spans.into_iter().filter_map(|(name, span)| {
        let span_us = timeline.of(span)?;
        Some(SessionReport { name: name.to_owned(), kind: "events", span_us, events_lost: None })
    });
    own.chain(recorded).chain(spans).collect()
}

/// Something that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LossReport {
    /// What was lost.
    pub what: LossKind,
    /// What was lost, where and when, in words.
    pub message: String,
    /// The processor, if it is known.
    pub processor: Option<u16>,
    /// The beginning of the span in which it was lost, as UTC, if it is known.
    pub from: Option<String>,
    /// The end of the span, as UTC, if it is known.
    pub to: Option<String>,
    /// The span in microseconds since the report's start.
    pub span_us: [i64; 2],
    /// The file.
    pub file: String,
}

impl LossReport {
    pub(super) fn new(facts: &Facts, timeline: &Timeline<'_>, lost: &Loss) -> Self {
        let at = |timestamp: Option<i64>| timestamp.map(|t| utc(facts.clock(), t));
        LossReport {
            what: lost.what,
            message: loss::message(facts.clock(), lost),
            processor: lost.processor,
            from: at(lost.from),
            to: at(lost.to),
            span_us: timeline.span(lost.from, lost.to),
            file: facts.files().get(lost.source).map(|f| f.name.clone()).unwrap_or_default(),
        }
    }
}

/// What a provider was enabled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EnabledReport {
    /// Name of the provider; its GUID if the name is unknown.
    pub provider: String,
    /// GUID of the provider.
    pub provider_guid: String,
    /// Level; null if only the fact is recorded. 0 enables all levels.
    pub level: Option<u8>,
    /// Match-any keyword mask, hexadecimal; null if only the fact is recorded. 0 enables all
    /// keywords.
    pub mask: Option<String>,
    /// Match-all keyword mask, hexadecimal, if there is one: events must have all of it, too.
    pub match_all: Option<String>,
    /// Names of the mask's keywords, if the provider is known.
    pub keywords: Vec<String>,
    /// `declared`, `recorded` or `inferred`.
    pub source: &'static str,
    /// When, as UTC, if it is recorded.
    pub time: Option<String>,
    /// The session, if it is recorded.
    pub session: Option<String>,
    /// What the mask does not enable, in words.
    pub remarks: Vec<String>,
}

impl EnabledReport {
    /// Whether it is one of the CLR's two providers.
    pub(super) fn is_clr(&self) -> bool {
        [CLR_RUNTIME, CLR_RUNDOWN].iter().any(|guid| guid.to_string() == self.provider_guid)
    }

    fn new(facts: &Facts, guid: Guid, with: Option<(u8, u64)>, knowledge: Knowledge) -> Self {
        let table = tables::provider(TableSet::Shipped, guid).zip(with);
        let keywords = table.map_or_else(Vec::new, |(p, (_, any))| p.keyword_names(any).names);
        let declared = table.filter(|_| knowledge == Knowledge::Declared);
        let remarks = declared.map_or_else(Vec::new, |(p, (level, any))| {
            mask::explain(TableSet::Shipped, p, any, level).remarks
        });
        EnabledReport {
            provider: facts.provider_name(guid),
            provider_guid: guid.to_string(),
            level: with.map(|(level, _)| level),
            mask: with.map(|(_, any)| format!("{any:#x}")),
            match_all: None,
            keywords: keywords.into_iter().map(str::to_owned).collect(),
            source: knowledge.name(),
            time: None,
            session: None,
            remarks: remarks.into_iter().map(|r| r.message).collect(),
        }
    }
}

/// Known enablements, then inferred ones of providers without a known one.
pub(super) fn enabled(facts: &Facts) -> Vec<EnabledReport> {
    let mut out = Vec::new();
    for e in &facts.admission.enabled {
        let with = e.with.as_ref().map(|with| (with.level, with.any));
        let mut report = EnabledReport::new(facts, e.provider, with, e.knowledge);
        report.time = e.at.map(|timestamp| utc(facts.clock(), timestamp));
        report.session.clone_from(&e.session);
        let all = e.with.as_ref().map_or(0, |with| with.all);
        report.match_all = (all != 0).then(|| format!("{all:#x}"));
        out.push(report);
    }
    for (provider, kinds) in facts.admission.providers() {
        if facts.admission.of(provider).next().is_some() {
            continue;
        }
        let events: Vec<EventKey> = kinds.into_iter().map(|(event, _)| event).collect();
        let smallest = infer::smallest(provider, &events, facts.processes());
        let with = Some((smallest.level, smallest.any));
        out.push(EnabledReport::new(facts, provider, with, Knowledge::Inferred));
    }
    out
}
