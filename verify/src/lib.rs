//! Checks whether a Windows event trace (`.etl`) is complete.
//!
//! [`Verifier`] reads a trace once, in time order, into a model of its machine (`etl-analysis`),
//! applies the [`RULES`] to it and returns a [`Report`]: a [`Verdict`], what the addresses of
//! stacks and samples resolve to, and findings with causes and remedies. A report renders as text,
//! JSON, SARIF, JUnit XML, GitHub annotations and HTML ([`Format`]).
//!
//! A [`Policy`] sets severities and minimum shares; [`Config`] reads it from a file. [`Enabled`]
//! states how sessions enabled providers, so that rules can find events that a filter removed;
//! [`Truth`] reads it for simulated traces.
//!
//! Memory grows with the number of processes, modules, methods and distinct unresolved addresses of
//! the traced machine, not with the number of events.
//!
//! # Features
//! `schema`: the function `report_schema`, the JSON Schema of the JSON report.
#![forbid(unsafe_code)]

mod baseline;
mod checks;
mod config;
mod error;
mod finding;
mod gates;
mod locate;
mod policy;
mod report;
mod rules;
mod truth;
mod verifier;
mod wrap;

pub use baseline::Baseline;
pub use checks::enablement::{Enabled, EnablementSource};
pub use config::Config;
pub use error::{Error, Result};
pub use etl_analysis::ProcessSelector;
pub use etl_analysis::address::Tally;
pub use etl_analysis::loss::LossKind;
pub use etl_analysis::machine::{Counts, UnresolvedCause};
pub use etl_schema::clr::Enumeration;
pub use finding::{Finding, Outcome, Severity};
pub use gates::Gates;
pub use policy::{Policy, SeverityOverride};
#[cfg(feature = "schema")]
pub use report::report_schema;
pub use report::{
    CauseReport, ClrReport, Coverage, CoverageRow, EnabledReport, EventCount, Format, LossReport,
    MachineReport, Paint, ProcessReport, ProviderCount, Report, RuleReport, RundownReport,
    SCHEMA_VERSION, SessionKind, SessionReport, UnresolvedAddress, Verdict, lines, render,
};
pub use rules::{RULES, Rule, RuleTexts, TraceOrigin, rules_page};
pub use truth::Truth;
pub use verifier::Verifier;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
