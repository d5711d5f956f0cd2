//! A process in the report.

use serde::Serialize;

use super::{Coverage, Scale, utc};
use crate::facts::{Cause, Facts, Process};

/// A rundown's bracket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BracketReport {
    /// `start` or `end`.
    pub kind: &'static str,
    /// The CLR of the process.
    pub clr_instance: u16,
    /// Whether its Init is there.
    pub opened: bool,
    /// Whether its Complete is there.
    pub closed: bool,
    /// When it was opened, as UTC.
    pub opened_at: Option<String>,
    /// When it was closed, as UTC.
    pub closed_at: Option<String>,
    /// Where it lies on the timeline: microseconds since the report's start, of Init or the first thing
    /// known of it, and of the last.
    pub span_us: [i64; 2],
    /// What it lists.
    pub listed: Counts,
}

/// A CLR in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClrReport {
    /// Its instance id.
    pub id: u16,
    /// Its version, where it told.
    pub version: Option<String>,
    /// `desktop` or `core`, where it told.
    pub sku: Option<String>,
}

/// A process that ran managed code, or that addresses were seen in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessReport {
    /// Its id.
    pub pid: u32,
    /// File name of its image; empty when the trace does not tell.
    pub name: String,
    /// Its CLRs.
    pub clr_instances: Vec<ClrReport>,
    /// When it started, as UTC, where that is inside the trace.
    pub started_at: Option<String>,
    /// When it ended, as UTC, where that is inside the trace.
    pub ended_at: Option<String>,
    /// Where its life lies on the timeline, in microseconds since the report's start.
    pub span_us: [i64; 2],
    /// Events of the CLR's two providers.
    pub clr_events: u64,
    /// Brackets of rundowns.
    pub brackets: Vec<BracketReport>,
    /// Distinct pieces of method code that the trace tells of.
    pub methods: u64,
    /// Distinct modules.
    pub modules: u64,
    /// Distinct assemblies.
    pub assemblies: u64,
    /// Distinct application domains.
    pub app_domains: u64,
    /// Events by which they became known.
    pub enumerated: Counts,
    /// Events of loads.
    pub loaded: Counts,
    /// Events of unloads.
    pub unloaded: Counts,
    /// What its addresses resolved to.
    pub coverage: Coverage,
    /// Why addresses did not resolve, and how many.
    pub causes: Vec<CauseReport>,
}

/// Why addresses did not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseReport {
    /// In words.
    pub cause: &'static str,
    /// How many.
    pub addresses: u64,
}

/// Numbers of events by what they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Method code.
    pub methods: u64,
    /// Modules.
    pub modules: u64,
    /// Assemblies.
    pub assemblies: u64,
    /// Application domains.
    pub app_domains: u64,
}

/// What the report says of a process.
pub(super) fn process(facts: &Facts, scale: &Scale<'_>, p: &Process) -> ProcessReport {
    let at = |timestamp: Option<i64>| timestamp.map(|s| utc(&facts.clock, s));
    let things = |of: fn(&crate::facts::Things) -> u64| {
        let sum = |pick: fn(&crate::facts::Clr) -> &crate::facts::Things| {
            p.clrs.values().map(|clr| of(pick(clr))).sum()
        };
        Counts {
            methods: 0,
            modules: sum(|c| &c.modules),
            assemblies: sum(|c| &c.assemblies),
            app_domains: sum(|c| &c.domains),
        }
    };
    let known = things(|t| t.len() as u64);
    ProcessReport {
        pid: p.pid,
        name: p.name.clone(),
        clr_instances: p
            .clrs
            .iter()
            .map(|(&id, clr)| ClrReport {
                id,
                version: clr.version.map(|v| v.map(|part| part.to_string()).join(".")),
                sku: clr.sku.map(|sku| match sku {
                    1 => "desktop".to_owned(),
                    2 => "core".to_owned(),
                    other => format!("{other:#x}"),
                }),
            })
            .collect(),
        started_at: at(p.started),
        ended_at: at(p.ended),
        span_us: scale.span(p.started, p.ended),
        clr_events: p.clr_events,
        brackets: p
            .brackets
            .iter()
            .map(|b| BracketReport {
                kind: b.kind.name(),
                clr_instance: b.instance,
                opened: b.opened.is_some(),
                closed: b.closed.is_some(),
                opened_at: at(b.opened),
                closed_at: at(b.closed),
                span_us: scale.span(b.opened.or(b.closed), Some(b.last)),
                listed: Counts {
                    methods: b.listed.methods,
                    modules: b.listed.modules,
                    assemblies: b.listed.assemblies,
                    app_domains: b.listed.domains,
                },
            })
            .collect(),
        methods: p.methods,
        modules: known.modules,
        assemblies: known.assemblies,
        app_domains: known.app_domains,
        enumerated: Counts { methods: p.methods_enumerated, ..things(|t| t.enumerated) },
        loaded: Counts { methods: p.methods_loaded, ..things(|t| t.loaded) },
        unloaded: Counts { methods: p.methods_unloaded, ..things(|t| t.unloaded) },
        coverage: Coverage::new(p.tallies),
        causes: Cause::ALL
            .into_iter()
            .zip(p.causes)
            .filter(|(_, n)| *n > 0)
            .map(|(cause, addresses)| CauseReport { cause: cause.name(), addresses })
            .collect(),
    }
}
