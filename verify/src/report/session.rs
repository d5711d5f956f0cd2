//! Sessions of the report: when they ran, what they lost, how they enabled providers.

use etl_analysis::loss::{Loss, LossKind};
use etl_analysis::machine::Span;
use etl_control::enable::{Enablement, EventKey};
use etl_control::mask;
use etl_format::{FileTime, Guid};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{self, TableSet};
use serde::Serialize;

use super::timeline::Timeline;
use crate::TraceOrigin;
use crate::checks::enablement::EnablementSource;
use crate::checks::{Facts, infer};
use crate::finding::loss_message;

etl_schema::named! {
    /// How a session of the report is known.
    SessionKind {
        /// The header of a file describes it.
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
    let mut out = Vec::new();
    for session in facts.machine.files().iter().flat_map(|file| &file.sessions) {
        let name = match session.name.as_str() {
            "" => "(no name)",
            name => name,
        };
        out.push(SessionReport {
            name: name.to_owned(),
            kind: SessionKind::Session,
            span_us: timeline.span(Some(session.from), session.to),
            events_lost: Some(session.events_lost),
        });
    }
    for session in &facts.admission.sessions {
        out.push(SessionReport {
            name: session.name.clone(),
            kind: SessionKind::Recorded,
            span_us: timeline.span(Some(session.time), None),
            events_lost: None,
        });
    }
    let spans = [
        ("kernel events", facts.machine.kernel_span()),
        ("CLR runtime events", facts.machine.runtime_span()),
        ("CLR rundown events", facts.machine.rundown_span()),
    ];
    for (name, span) in spans {
        if let Some(Span { first, last }) = span {
            out.push(SessionReport {
                name: name.to_owned(),
                kind: SessionKind::Events,
                span_us: timeline.span(Some(first), Some(last)),
                events_lost: None,
            });
        }
    }
    out
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
    pub(super) fn new(facts: &Facts, timeline: &Timeline<'_>, loss: &Loss) -> Self {
        let clock = facts.machine.clock();
        let file = facts.machine.files().get(loss.source);
        LossReport {
            what: loss.what,
            message: loss_message(clock, loss),
            processor: loss.processor,
            from: loss.from.map(|time| clock.time(time)),
            to: loss.to.map(|time| clock.time(time)),
            span_us: timeline.span(loss.from, loss.to),
            file: file.map(|file| file.name.clone()).unwrap_or_default(),
        }
    }
}

/// How a session enabled a provider.
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
    /// Match-all keyword mask, hexadecimal, if there is one: events must also have all its bits.
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

    fn new(facts: &Facts, provider: Guid, source: EnablementSource) -> Self {
        EnabledReport {
            provider: facts.provider_name(provider),
            provider_guid: provider.to_string(),
            level: None,
            mask: None,
            match_all: None,
            keywords: Vec::new(),
            source,
            time: None,
            session: None,
            remarks: Vec::new(),
        }
    }

    /// Adds level and masks, the names of keywords, and for a declared enablement the remarks.
    fn set_enablement(&mut self, provider: Guid, with: &Enablement) {
        self.level = Some(with.level);
        self.mask = Some(format!("{:#x}", with.any));
        if with.all != 0 {
            self.match_all = Some(format!("{:#x}", with.all));
        }
        let Some(table) = tables::provider(TableSet::Shipped, provider) else {
            return;
        };
        for name in table.keyword_names(with.any).names {
            self.keywords.push(name.to_owned());
        }
        if self.source == EnablementSource::Declared {
            let explained = mask::explain(TableSet::Shipped, table, with.any, with.level);
            for remark in explained.remarks {
                self.remarks.push(remark.message);
            }
        }
    }
}

/// Known enablements, then inferred ones of providers without a known one.
pub(super) fn enabled(facts: &Facts) -> Vec<EnabledReport> {
    let mut out = Vec::new();
    for enabled in &facts.admission.enabled {
        let mut report = EnabledReport::new(facts, enabled.provider, enabled.source);
        if let Some(with) = &enabled.with {
            report.set_enablement(enabled.provider, with);
        }
        report.time = enabled.from.map(|from| facts.machine.clock().time(from));
        report.session.clone_from(&enabled.session);
        out.push(report);
    }
    for (provider, kinds) in facts.admission.providers() {
        if facts.admission.source(provider).is_some() {
            continue;
        }
        let events: Vec<EventKey> = kinds.into_iter().map(|(event, _)| event).collect();
        let processes = facts.machine.processes();
        let smallest = match facts.origin() {
            TraceOrigin::Etw => infer::smallest(provider, &events, processes),
            TraceOrigin::EventPipe => infer::smallest_of_event_pipe(provider, &events, processes),
        };
        let mut report = EnabledReport::new(facts, provider, EnablementSource::Inferred);
        report.set_enablement(provider, &smallest);
        out.push(report);
    }
    out
}
