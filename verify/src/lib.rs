//! Is a trace what its maker needed?
//!
//! [`verify`] reads a trace once, in time order, into the model of its machine (`etl-analysis`), has rules judge it, and gives
//! a [`Report`] with a verdict, a coverage table and findings. The report renders as text for
//! people ([`Report::text`]) and as JSON for machines ([`Report::json`]). [`verify_with`] takes
//! [`Settings`]: a policy for the findings, and what the sessions were enabled with.
//! [`verify_together`] judges several files as one recording: the runtime session's and the
//! rundown's, say, that have not been merged.
//!
//! [`config`] reads the file in which a user keeps settings; [`snapshot`] renders traces for snapshot tests
//! of decoders.
//!
//! Memory grows with what is alive in the traced machine (processes, modules, methods, distinct
//! addresses that are not resolved yet), not with the events of the trace.
//!
//! # Examples
//! Programs in `examples/`, each of which runs as it is: `judge` prints a report and looks at its findings, `snapshot` renders a trace
//! for a snapshot test, `pace` measures.
//!
//! # Features
//! `schema`: the function `report_schema`, the JSON Schema of the JSON report.
#![forbid(unsafe_code)]

mod checks;
pub mod config;
mod facts;
mod place;
mod policy;
mod reading;
mod report;
mod rules;
pub mod snapshot;
mod truth;

pub use checks::enablement::{Enabled, Knowledge};
pub use policy::{Gates, Policy, Weight};
pub use reading::{Settings, verify, verify_together, verify_with};
#[cfg(feature = "schema")]
pub use report::report_schema;
pub use report::{
    Answer, BracketReport, CauseReport, ClrReport, Counts, Coverage, CoverageTable, EnabledReport,
    Finding, LossReport, Offender, ProcessReport, Report, RuleReport, SCHEMA_VERSION,
    SessionReport, Severity, Verdict, html, junit, sarif, summary, summary_in_colour,
};
pub use rules::catalogue::{RULES, Rule, page as rules_page};
pub use truth::Truth;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
