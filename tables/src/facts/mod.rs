//! The rows of the tables about the machine.

mod machine;
mod observe;
mod rows;

use arrow_array::RecordBatch;
use etl_analysis::{Analysis, Recording};
use etl_format::read::Source;
use etl_verify::Verifier;

use crate::Result;
use crate::builder::Cell;
use crate::recorded::Recorded;
use crate::tables::{
    CONTEXT_SWITCHES, EVENT_STACKS, FINDINGS, FRAMES, GCS, IO, PACKETS, SAMPLES, STACKS, Table,
};

use observe::Facts;
use rows::Rows;

/// Where batches go.
pub(crate) type Out<'o> = dyn FnMut(&'static Table, RecordBatch) -> Result<()> + 'o;

/// Tables whose rows are found in the records, and whether they need joined stacks.
const OF_RECORDS: &[(&Table, bool)] = &[
    (&EVENT_STACKS, true),
    (&STACKS, true),
    (&FRAMES, true),
    (&SAMPLES, true),
    (&CONTEXT_SWITCHES, false),
    (&GCS, false),
    (&IO, false),
    (&PACKETS, false),
];

/// Passes the batches of tables about the machine to `out`.
pub(crate) fn write<S: Source>(
    recorded: &mut Recorded<S>,
    tables: &[&'static Table],
    out: &mut Out<'_>,
) -> Result<()> {
    let mut rows = Rows::new(tables, &recorded.options, out)?;
    let (source, options, before) = recorded.with_code()?;
    machine::write(before, options, &mut rows);
    let wanted: Vec<_> = OF_RECORDS.iter().filter(|(table, _)| rows.wants(table)).collect();
    if !wanted.is_empty() {
        let name = options.trace.clone();
        let mut recording = Recording::open_within([(&mut *source, name)], options.limits)?;
        let mut facts = Facts::new(before, options, &mut rows);
        let analysis = Analysis::new().addresses(false).threads(options.threads);
        if wanted.iter().any(|(_, joins)| *joins) {
            analysis.run(&mut recording, &mut facts)?;
        } else {
            analysis.run(&mut recording, &mut observe::WithoutStacks(&mut facts))?;
        }
        facts.finish();
    }
    if rows.wants(&FINDINGS) {
        findings(source, options, before.machine.clock(), &mut rows)?;
    }
    rows.finish()
}

fn findings<S: Source>(
    source: &mut S,
    options: &crate::Options,
    clock: &etl_format::Clock,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let verifier = Verifier::new().limits(options.limits).threads(options.threads);
    let report = { verifier }.verify(source, &options.trace).map_err(crate::Error::Verify)?;
    for finding in &report.findings {
        rows.add(
            &FINDINGS,
            &[
                Cell::Text(&options.trace),
                Cell::Text(finding.rule),
                Cell::Text(finding.severity.name()),
                Cell::Text(finding.outcome.name()),
                Cell::int(finding.pid),
                rows::time(clock, finding.timestamp()),
                Cell::int(finding.processor),
                Cell::int(finding.offset),
                Cell::Text(&finding.message),
                Cell::text(finding.because.as_deref().unwrap_or_default()),
            ],
        );
    }
    Ok(())
}
