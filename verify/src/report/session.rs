//! Sessions in the report: when they ran, what they lost, what they were enabled with.

use etl_analysis::loss::{Loss, LossKind};
use etl_control::enable::EventKey;
use etl_control::mask;
use etl_format::{FileTime, Guid};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{self, TableSet};
use serde::Serialize;

use super::timeline::Timeline;
use crate::checks::enablement::EnablementSource;
use crate::checks::{Facts, infer};
use crate::loss;

etl_schema::named! {
    /// How a session of the report is known.
    SessionKind {
        /// Its header is in a file.
        Session "session",
        /// An event of the trace names it.
        Recorded "recorded",
        /// It is a span of events.
        Events "events",
    }
}

/// A session, or the span of events of the kernel or of one of the CLR's providers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SessionReport {
    /// Its name.
    pub name: String,
    /// `session` if its header is in a file, `recorded` if an event of the trace names it, `events`
    /// for a span of events.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: SessionKind,
    /// Microseconds since the report's start of its start and its end.
    pub span_us: [i64; 2],
    /// Lost events that its header counts.
    pub events_lost: Option<u32>,
}

/// Sessions, then the spans of the kernel's and the CLR's events.
pub(super) fn sessions(facts: &Facts, timeline: &Timeline<'_>) -> Vec<SessionReport> {
    let own = facts
        .machine
        .files()
        .iter()
        .flat_map(|f| &f.sessions)
        .map(|s| SessionReport {
            name: if s.name.is_empty() {
                "(no name)".to_owned()
            } else {
                s.name.clone()
            },
            kind: SessionKind::Session,
            span_us: timeline.span(Some(s.from), s.to),
            events_lost: Some(s.events_lost),
        });
    let recorded = facts
        .admission
        .sessions
        .iter()
        .map(|(at, name)| SessionReport {
            name: name.clone(),
            kind: SessionKind::Recorded,
            span_us: timeline.span(Some(*at), None),
            events_lost: None,
        });
    let spans = [
        ("kernel events", facts.machine.kernel_span()),
        ("CLR runtime events", facts.machine.runtime_span()),
        ("CLR rundown events", facts.machine.rundown_span()),
    ];
    let spans = spans.into_iter().filter_map(|(name, span)| {
        let span_us = timeline.of(span)?;
        Some(SessionReport {
            name: name.to_owned(),
            kind: SessionKind::Events,
            span_us,
            events_lost: None,
        })
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
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub from: Option<FileTime>,
    /// The end of the span, as UTC, if it is known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub to: Option<FileTime>,
    /// The span in microseconds since the report's start.
    pub span_us: [i64; 2],
    /// The file.
    pub file: String,
}

impl LossReport {
    pub(super) fn new(facts: &Facts, timeline: &Timeline<'_>, lost: &Loss) -> Self {
        let clock = facts.machine.clock();
        LossReport {
            what: lost.what,
            message: loss::message(facts.machine.clock(), lost),
            processor: lost.processor,
            from: lost.from.map(|time| clock.time(time)),
            to: lost.to.map(|time| clock.time(time)),
            span_us: timeline.span(lost.from, lost.to),
            file: facts
                .machine
                .files()
                .get(lost.source)
                .map(|f| f.name.clone())
                .unwrap_or_default(),
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
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub source: EnablementSource,
    /// When, as UTC, if it is recorded.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub time: Option<FileTime>,
    /// The session, if it is recorded.
    pub session: Option<String>,
    /// What the mask does not enable, in words.
    pub remarks: Vec<String>,
}

impl EnabledReport {
    /// Whether it is one of the CLR's two providers.
    pub(super) fn is_clr(&self) -> bool {
        [CLR_RUNTIME, CLR_RUNDOWN]
            .iter()
            .any(|guid| guid.to_string() == self.provider_guid)
    }

    fn new(
        facts: &Facts,
        guid: Guid,
        with: Option<(u8, u64)>,
        knowledge: EnablementSource,
    ) -> Self {
        let table = tables::provider(TableSet::Shipped, guid).zip(with);
        let keywords = table.map_or_else(Vec::new, |(p, (_, any))| p.keyword_names(any).names);
        let declared = table.filter(|_| knowledge == EnablementSource::Declared);
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
            source: knowledge,
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
        report.time = e.at.map(|timestamp| facts.machine.clock().time(timestamp));
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
        let smallest = infer::smallest(provider, &events, facts.machine.processes());
        let with = Some((smallest.level, smallest.any));
        out.push(EnabledReport::new(
            facts,
            provider,
            with,
            EnablementSource::Inferred,
        ));
    }
    out
}
