//! Is a trace what its maker needed?
//!
//! [`verify`] reads a trace once, in time order, gathers [`Facts`], has rules judge them, and gives
//! a [`Report`] with a verdict, a coverage table and findings. The report renders as text for
//! people ([`Report::text`]) and as JSON for machines ([`Report::json`]).
//!
//! Memory grows with what is alive in the traced machine (processes, modules, methods, distinct
//! addresses that are not resolved yet), not with the events of the trace.
#![forbid(unsafe_code)]

pub mod facts;
mod policy;
mod report;
mod rules;

pub use facts::Facts;
pub use policy::Policy;
pub use report::{
    BracketReport, ClrReport, Coverage, CoverageTable, Finding, Offender, ProcessReport, Report,
    SCHEMA_VERSION, Severity, Verdict, junit, sarif,
};
pub use rules::catalogue::{RULES, Rule, page as rules_page};

use etl_format::Result;
use etl_format::read::{Mode, Options, OrderCheck, Record, Source, Trace};

/// Reads a trace and judges it. `file` is the name that the report shows.
///
/// Damage does not end the reading: what can be read is judged, and the damage is a finding.
///
/// # Errors
/// When the bytes are no trace at all, or the medium fails.
pub fn verify<S: Source>(source: S, file: &str) -> Result<Report> {
    verify_with(source, file, &Policy::default(), |_| {})
}

/// As [`verify`], with a policy for the findings; calls `watch` with every record before it is taken
/// in, for showing progress.
///
/// # Errors
/// As [`verify`].
pub fn verify_with<S: Source>(
    mut source: S,
    file: &str,
    policy: &Policy,
    mut watch: impl FnMut(&Record<'_>),
) -> Result<Report> {
    // Windows writes buffers in order, so the quick check nearly always does; only where something
    // came too late is the trace read again with every record looked at first.
    match attempt(&mut source, file, OrderCheck::Ahead, policy, &mut watch)? {
        Some(report) => Ok(report),
        None => {
            Ok(attempt(&mut source, file, OrderCheck::Full, policy, &mut watch)?
                .unwrap_or_default())
        }
    }
}

/// One pass; `None` when records came out of order, which only [`OrderCheck::Ahead`] lets happen.
fn attempt<S: Source>(
    source: &mut S,
    file: &str,
    order: OrderCheck,
    policy: &Policy,
    watch: &mut impl FnMut(&Record<'_>),
) -> Result<Option<Report>> {
    let options = Options { mode: Mode::Salvage, order, ..Options::default() };
    let mut trace = Trace::open(source, &options)?;
    let mut facts = Facts::new(&trace);
    let mut records = trace.ordered()?;
    while let Some(record) = records.next_record()? {
        watch(&record);
        facts.record(&record);
    }
    if records.report().late > 0 && order == OrderCheck::Ahead {
        return Ok(None);
    }
    for damage in records.damage() {
        facts.damage(damage);
    }
    facts.finish();
    let (findings, left_out) = rules::judge(&facts, policy);
    Ok(Some(Report::new(file, &facts, findings, left_out)))
}
