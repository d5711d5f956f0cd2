//! Prints on several threads.
//!
//! One thread reads. Batches of records go to helpers, which format their lines; if all helpers are
//! busy, the reader formats lines itself. The texts are written in the order of the batches. Each
//! helper learns schemas at the same position of the trace as one thread would: records that may
//! contain schemas are sent to all helpers.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Scope, ScopedJoinHandle};

use etl_format::Error;
use etl_format::read::{Record, RecordBatch, Records, Source};
use etl_tools::filter::Filter;
use etl_tools::rows::RowWriter;

use crate::error::Failure;

use super::printer::Printer;

/// Bytes of records in a batch.
const BATCH: usize = 64 << 10;

/// Batches queued for a helper, including the one that it formats.
const MAX_QUEUED: usize = 2;

/// Texts per thread that wait for an earlier one.
const MAX_WAITING: usize = 4;

/// Records for a helper.
#[derive(Default)]
struct Work {
    /// Earlier records that may contain schemas, and that other threads print.
    lessons: RecordBatch,
    records: RecordBatch,
}

/// A thread that formats lines.
struct Helper<'scope> {
    work: Sender<Work>,
    done: Receiver<(Vec<u8>, RecordBatch)>,
    /// Batches whose text has not been received.
    in_flight: usize,
    /// Records to learn from before its next batch.
    lessons: RecordBatch,
    thread: ScopedJoinHandle<'scope, RowWriter>,
}

impl<'scope> Helper<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, filter: Filter, mut rows: RowWriter) -> Self {
        let (work, take) = mpsc::channel::<Work>();
        let (give, done) = mpsc::channel();
        let thread = scope.spawn(move || {
            for Work { lessons, mut records } in take {
                lessons.records().for_each(|record| rows.learn(&record));
                let mut text = Vec::with_capacity(8 * BATCH);
                for record in records.records() {
                    rows.learn(&record);
                    rows.write_if(&filter, &mut text, &record);
                }
                records.clear();
                if give.send((text, records)).is_err() {
                    break;
                }
            }
            rows
        });
        Helper { work, done, in_flight: 0, lessons: RecordBatch::default(), thread }
    }
}

/// A piece of the output.
enum Piece {
    Text(Vec<u8>),
    /// The next text of this helper.
    Pending(usize),
}

/// Prints the remaining records on `threads` threads. Returns the error that ended reading, if any,
/// after printing everything before it.
pub(super) fn print<S: Source>(
    records: &mut Records<S>,
    printer: &mut Printer,
    threads: usize,
) -> Result<Option<Error>, Failure> {
    std::thread::scope(|scope| {
        let start = |_| Helper::start(scope, printer.filter.clone(), printer.rows.clone());
        let mut helpers: Vec<_> = (1..threads).map(start).collect();
        let mut pieces = VecDeque::new();
        let mut spare: Vec<RecordBatch> = Vec::new();
        let end = loop {
            let in_flight = helpers.iter().map(|helper| helper.in_flight).enumerate();
            let free = in_flight.filter(|(_, n)| *n < MAX_QUEUED).min_by_key(|(_, n)| *n);
            let free = free.map(|(index, _)| index);
            let mut batch = if free.is_some() { spare.pop() } else { None }.unwrap_or_default();
            let mut text = Vec::new();
            let mut bytes = 0;
            let mut end = None;
            while bytes < BATCH {
                let record = match records.next_record() {
                    Ok(Some(record)) => record,
                    Ok(None) => {
                        end = Some(None);
                        break;
                    }
                    Err(error) => {
                        end = Some(Some(error));
                        break;
                    }
                };
                bytes += record.bytes().len();
                printer.progress.pass(record.bytes().len());
                teach(&record, printer, &mut helpers, free);
                match free {
                    Some(_) => batch.push(&record),
                    None => {
                        printer.rows.write_if(&printer.filter, &mut text, &record);
                    }
                }
            }
            match free.and_then(|n| Some((n, helpers.get_mut(n)?))) {
                Some((n, helper)) => {
                    let lessons = std::mem::take(&mut helper.lessons);
                    if helper.work.send(Work { lessons, records: batch }).is_ok() {
                        helper.in_flight += 1;
                        pieces.push_back(Piece::Pending(n));
                    }
                }
                None => pieces.push_back(Piece::Text(text)),
            }
            let limit = if end.is_some() { 0 } else { MAX_WAITING * threads };
            write_out(&mut pieces, &mut helpers, &mut spare, printer, limit)?;
            if let Some(end) = end {
                break end;
            }
        };
        for Helper { work, thread, .. } in helpers {
            drop(work);
            match thread.join() {
                Ok(rows) => printer.rows.merge_columns(&rows),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(end)
    })
}

/// Passes a record that may contain schemas to all threads but the helper that prints it.
fn teach(
    record: &Record<'_>,
    printer: &mut Printer,
    helpers: &mut [Helper<'_>],
    prints: Option<usize>,
) {
    if !printer.rows.store().may_learn(record) {
        return;
    }
    printer.rows.learn(record);
    for (n, helper) in helpers.iter_mut().enumerate() {
        if Some(n) != prints {
            // There are few of them: the number of texts that wait for a helper is limited.
            helper.lessons.push(record);
        }
    }
}

/// Writes the texts that are next; blocks while more than `limit` pieces wait.
fn write_out(
    pieces: &mut VecDeque<Piece>,
    helpers: &mut [Helper<'_>],
    spare: &mut Vec<RecordBatch>,
    printer: &mut Printer,
    limit: usize,
) -> Result<(), Failure> {
    while let Some(piece) = pieces.pop_front() {
        match piece {
            Piece::Text(text) => printer.out.write_after(&text)?,
            Piece::Pending(n) => {
                let Some(helper) = helpers.get_mut(n) else { continue };
                let done = match pieces.len() < limit {
                    true => helper.done.try_recv().ok(),
                    // A helper that has ended has panicked: joining it reports that.
                    false => helper.done.recv().ok(),
                };
                match done {
                    Some((text, batch)) => {
                        helper.in_flight = helper.in_flight.saturating_sub(1);
                        printer.out.write_after(&text)?;
                        spare.push(batch);
                    }
                    None if pieces.len() < limit => {
                        pieces.push_front(Piece::Pending(n));
                        return Ok(());
                    }
                    None => {}
                }
            }
        }
    }
    Ok(())
}
