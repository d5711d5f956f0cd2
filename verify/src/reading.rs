//! From files to facts to a report.

use etl_analysis::{Analysis, Recording};
use etl_format::Result;
use etl_format::read::{Record, Source};
use etl_schema::tables::TableSet;

use crate::checks::enablement::Enabled;
use crate::checks::{Facts, RecordChecks, StackChecks};
use crate::place;
use crate::policy::Policy;
use crate::report::Report;
use crate::rules;

/// What a judgement goes by besides the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How findings are weighed.
    pub policy: Policy,
    /// What the sessions were enabled with, as far as the user tells it.
    pub enabled: Vec<Enabled>,
    /// Threads that work on one trace: with two or more, one reads and another one judges. What is
    /// found does not depend on it. 0 counts as 1.
    pub threads: usize,
    /// Which tables payloads are compared with: those of the shipped runtimes, or of the pages.
    pub profile: TableSet,
}

/// Reads a trace and judges it. `file` is the name that the report shows.
///
/// Damage does not end the reading: what can be read is judged, and the damage is a finding.
///
/// # Errors
/// When the bytes are no trace at all, or the medium fails.
pub fn verify<S: Source>(source: S, file: &str) -> Result<Report> {
    verify_with(source, file, &Settings::default(), |_| {})
}

/// As [`verify`], with settings; calls `watch` with every record before it is taken in, for showing
/// progress.
///
/// # Errors
/// As [`verify`].
pub fn verify_with<S: Source>(
    source: S,
    file: &str,
    settings: &Settings,
    watch: impl FnMut(&Record<'_>),
) -> Result<Report> {
    let reports = verify_together(vec![(source, file)], settings, watch).map_err(|(_, e)| e);
    reports.map(|report| Report { file: file.to_owned(), ..report })
}

/// Judges several files as one recording: their records are read side by side, in time order.
///
/// # Errors
/// As [`verify`], with the index of the file that could not be read.
pub fn verify_together<S: Source>(
    sources: Vec<(S, &str)>,
    settings: &Settings,
    watch: impl FnMut(&Record<'_>),
) -> std::result::Result<Report, (usize, etl_format::Error)> {
    judge(sources, settings, watch).map_err(|error| (error.file(), error.into_source()))
}

fn judge<S: Source>(
    sources: Vec<(S, &str)>,
    settings: &Settings,
    watch: impl FnMut(&Record<'_>),
) -> etl_analysis::Result<Report> {
    let mut recording = Recording::open(sources)?;
    let clock = recording.timeline().clock();
    let mut records = RecordChecks::new(&settings.enabled, &clock, settings.profile, watch);
    let mut stacks = StackChecks::new(settings.profile);
    let analysis = Analysis::new().threads(settings.threads);
    let machine = analysis.run_with_records(&mut recording, &mut records, &mut stacks)?;
    let facts = Facts::new(machine, records, stacks);
    let mut judgement = rules::judge(&facts, &settings.policy);
    place::find(&mut recording, &facts, &mut judgement.findings)?;
    Ok(Report::new(&facts, judgement))
}
