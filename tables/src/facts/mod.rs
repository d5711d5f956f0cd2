//! Fills the tables about the machine.

mod behaviors;
mod machine;
mod observe;
mod rows;
mod select;

use arrow_array::RecordBatch;
use etl_analysis::{Analysis, Recording};
use etl_format::Clock;
use etl_format::read::Source;
use etl_verify::Verifier;

use crate::Result;
use crate::options::Options;
use crate::recorded::{Recorded, WithCode};
use crate::rows::findings::FindingRow;
use crate::tables::{CONTEXT_SWITCHES, EVENT_STACKS, FRAMES, PACKETS, SAMPLES, STACKS, Table};

use observe::Facts;
use rows::Rows;

/// Where batches go.
pub(crate) type Out<'o> = dyn FnMut(&'static Table, RecordBatch) -> Result<()> + 'o;

/// Tables whose rows are found in the records and need joined stacks.
const WITH_STACKS: &[&Table] = &[&EVENT_STACKS, &STACKS, &FRAMES, &SAMPLES];

/// Tables whose rows are found in the records alone.
const WITHOUT_STACKS: &[&Table] = &[&CONTEXT_SWITCHES, &PACKETS];

/// Passes the batches of tables about the machine to `out`.
pub(crate) fn write<S: Source>(
    recorded: &mut Recorded<S>,
    tables: &[&'static Table],
    out: &mut Out<'_>,
) -> Result<()> {
    let mut rows = Rows::new(tables, &recorded.options, out)?;
    let WithCode {
        source,
        options,
        before,
    } = recorded.with_code()?;
    machine::write(before, options, &mut rows);
    let joins = wants_any(&rows, WITH_STACKS) || wants_any(&rows, behaviors::WITH_SAMPLES);
    if joins || wants_any(&rows, WITHOUT_STACKS) || wants_any(&rows, behaviors::TABLES) {
        let name = options.trace.clone();
        let mut recording = Recording::open_within([(&mut *source, name)], options.limits)?;
        let mut facts = Facts::new(before, options, &mut rows);
        let analysis = Analysis::new().without_addresses().threads(options.threads);
        if joins {
            analysis.run(&mut recording, &mut facts)?;
        } else {
            analysis.run(&mut recording, &mut observe::WithoutStacks(&mut facts))?;
        }
        facts.finish();
    }
    if rows.wants::<FindingRow<'_>>() {
        findings(source, options, before.machine.clock(), &mut rows)?;
    }
    rows.finish()
}

fn wants_any(rows: &Rows<'_>, tables: &[&Table]) -> bool {
    tables.iter().any(|table| rows.wants_table(table.name))
}

fn findings<S: Source>(
    source: &mut S,
    options: &Options,
    clock: &Clock,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let verifier = Verifier::new()
        .limits(options.limits)
        .threads(options.threads);
    let report = { verifier }.verify(source, &options.trace);
    for finding in &report.map_err(crate::Error::Verify)?.findings {
        rows.add(&FindingRow { clock, finding });
    }
    Ok(())
}
