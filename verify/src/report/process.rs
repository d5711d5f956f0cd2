//! A process of the report.

use etl_analysis::ProcessIndex;
use etl_analysis::machine::{Counts, Items, Process, UnresolvedCause};
use etl_format::FileTime;
use etl_schema::clr::Enumeration;
use serde::{Serialize, Serializer};

use super::timeline::Timeline;
use super::{Coverage, Verdict};
use crate::checks::Facts;

/// A rundown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RundownReport {
    /// `start` or `end`.
    #[serde(serialize_with = "name_of_kind")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: Enumeration,
    /// Instance id of the CLR in its process.
    pub clr_instance: u16,
    /// The time of its Init event, as UTC; null if it is missing.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub init_time: Option<FileTime>,
    /// The time of its Complete event, as UTC; null if it is missing.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub complete_time: Option<FileTime>,
    /// Microseconds since the report's start of its first and its last event.
    pub span_us: [i64; 2],
    /// What it lists.
    pub listed: Counts,
}

fn name_of_kind<S: Serializer>(kind: &Enumeration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// A CLR in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ClrReport {
    /// Its instance id, unique in the process.
    pub id: u16,
    /// Its version, if it is known.
    pub version: Option<String>,
    /// `desktop` or `core`, if it is known.
    pub sku: Option<String>,
}

/// A process with managed code or with addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProcessReport {
    /// Its id.
    pub pid: u32,
    /// File name of its image; empty if it is unknown.
    pub name: String,
    /// Whether the trace is complete for it.
    pub verdict: Verdict,
    /// Its CLRs.
    pub clr_instances: Vec<ClrReport>,
    /// When it started, as UTC, if that was during the recording.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub start_time: Option<FileTime>,
    /// When it ended, as UTC, if that was during the recording.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub end_time: Option<FileTime>,
    /// Microseconds since the report's start of its start and its end.
    pub span_us: [i64; 2],
    /// Events of the CLR's two providers.
    pub clr_events: u64,
    /// Rundowns of its CLRs.
    pub rundowns: Vec<RundownReport>,
    /// Distinct pieces of method code with an event.
    pub methods: u64,
    /// Distinct modules.
    pub modules: u64,
    /// Distinct assemblies.
    pub assemblies: u64,
    /// Distinct application domains.
    pub app_domains: u64,
    /// Events of rundowns.
    pub listed: Counts,
    /// Events of loads.
    pub loaded: Counts,
    /// Events of unloads.
    pub unloaded: Counts,
    /// What its addresses resolve to.
    pub coverage: Coverage,
    /// Why addresses do not resolve, and how many.
    pub causes: Vec<CauseReport>,
    /// Its index among the processes of the trace.
    #[serde(skip)]
    pub(crate) index: ProcessIndex,
}

/// Why addresses do not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CauseReport {
    /// The cause.
    pub cause: UnresolvedCause,
    /// The cause in words.
    pub message: &'static str,
    /// How many addresses.
    pub addresses: u64,
}

impl ProcessReport {
    /// Whether it ran managed code.
    pub(super) fn is_managed(&self) -> bool {
        self.clr_events > 0
    }

    /// Its id, and its name if that is known.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() {
            self.pid.to_string()
        } else {
            format!("{} {}", self.pid, self.name)
        }
    }

    pub(super) fn new(
        facts: &Facts,
        timeline: &Timeline<'_>,
        p: &Process,
        index: ProcessIndex,
    ) -> Self {
        let clock = facts.machine.clock();
        let known = counts(p, p.methods(), |items| items.len() as u64);
        let clrs = p.clrs().iter().map(|(&id, clr)| ClrReport {
            id,
            version: clr
                .version()
                .map(|v| v.map(|part| part.to_string()).join(".")),
            sku: clr.sku().map(|sku| match sku {
                1 => "desktop".to_owned(),
                2 => "core".to_owned(),
                other => format!("{other:#x}"),
            }),
        });
        let rundowns = p.brackets().iter().map(|b| RundownReport {
            kind: b.kind,
            clr_instance: b.instance,
            init_time: b.opened.map(|time| clock.time(time)),
            complete_time: b.closed.map(|time| clock.time(time)),
            span_us: timeline.span(b.opened.or(b.closed), Some(b.last)),
            listed: b.listed,
        });
        let causes = UnresolvedCause::ALL.into_iter().zip(p.causes());
        let causes = causes
            .filter(|(_, addresses)| *addresses > 0)
            .map(|(cause, addresses)| CauseReport {
                cause,
                message: cause.message(),
                addresses,
            });
        ProcessReport {
            pid: p.pid().get(),
            name: p.name().to_owned(),
            verdict: Verdict::default(),
            clr_instances: clrs.collect(),
            start_time: p.started().map(|time| clock.time(time)),
            end_time: p.ended().map(|time| clock.time(time)),
            span_us: timeline.span(p.started(), p.ended()),
            clr_events: p.clr_events(),
            rundowns: rundowns.collect(),
            methods: known.methods,
            modules: known.modules,
            assemblies: known.assemblies,
            app_domains: known.app_domains,
            listed: counts(p, p.methods_enumerated(), |items| items.enumerated()),
            loaded: counts(p, p.methods_loaded(), |items| items.loaded()),
            unloaded: counts(p, p.methods_unloaded(), |items| items.unloaded()),
            coverage: Coverage::new(p.tallies()),
            causes: causes.collect(),
            index,
        }
    }
}

/// A number of methods, and what `count` returns for the modules, assemblies and domains of all
/// CLRs of a process.
fn counts(process: &Process, methods: u64, count: fn(&Items) -> u64) -> Counts {
    let mut counts = Counts {
        methods,
        ..Counts::default()
    };
    for clr in process.clrs().values() {
        counts.modules += count(clr.modules());
        counts.assemblies += count(clr.assemblies());
        counts.app_domains += count(clr.domains());
    }
    counts
}
