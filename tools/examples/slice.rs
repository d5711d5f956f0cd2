//! A piece of a trace, with the state that it needs: `cargo run --example slice [FILE.etl PID
//! OUT.etl]`.
//!
//! Without a file it extracts the garbage collections of one process from a trace that it makes.
//! The records that describe the code of the process are kept as well: addresses need them.

mod input;

use etl_events::Subject;
use etl_format::ProcessId;
use etl_format::read::{Options, Order, Record, Trace};
use etl_tools::slice::{Slicer, Summary};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // Under test the command line is the test runner's.
    let mut args = std::env::args().skip(1).filter(|_| !cfg!(test));
    match (args.next(), args.next(), args.next()) {
        (Some(trace), Some(pid), Some(out)) => {
            let pid: u32 = pid.parse()?;
            let about = |_: &Record<'_>, subject: &Subject| subject.processes().any(|p| p == pid);
            std::fs::write(out, cut(&std::fs::read(trace)?, about)?.0)?;
        }
        (None, ..) => {
            let collections = |record: &Record<'_>, _: &Subject| {
                record.process_id() == Some(ProcessId::new(100))
                    && record.descriptor().is_some_and(|d| d.id == 1)
            };
            let (piece, summary) = cut(&input::trace()?, collections)?;
            assert_eq!(
                (summary.records, summary.selected, summary.kept_as_state),
                (8, 2, 2)
            );
            // The piece is a complete trace.
            let mut piece = Trace::open(piece.as_slice(), &Options::default())?;
            let mut records = piece.records(Order::Time)?;
            while records.next_record()?.is_some() {}
            assert_eq!(records.count(), 5, "the header event as well");
        }
        _ => return Err("usage: slice [FILE.etl PID OUT.etl]".into()),
    }
    Ok(())
}

/// Extracts the records that `wanted` selects.
fn cut(
    trace: &[u8],
    wanted: impl FnMut(&Record<'_>, &Subject) -> bool,
) -> Outcome<(Vec<u8>, Summary)> {
    let mut trace = Trace::open(trace, &Options::default())?;
    let finished = Slicer::new().run(&mut trace, wanted, Vec::new())?;
    let output = finished.output;
    let summary = finished.report;
    println!(
        "{} of {} records are selected",
        summary.selected, summary.records
    );
    for (reason, count) in summary.kept.iter().filter(|(_, count)| **count > 0) {
        println!("{count} are kept for them: {}", reason.name());
    }
    Ok((output, summary))
}

#[test]
fn runs() {
    main().unwrap();
}
