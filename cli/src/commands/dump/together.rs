//! Printing on several threads.
//!
//! One thread reads. Whole batches of records go to helpers, which write their lines; while all of them have
//! enough to do, the reader writes lines itself. The texts come out in the order of the batches. What
//! records tell of others' schemas each helper learns at the same place of the trace as one thread would: records
//! that may tell something and are printed elsewhere go to it beside its own.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Scope, ScopedJoinHandle};

use etl_format::Error;
use etl_format::read::{Batch, Ordered, Record, Source};

use crate::error::Failure;
use crate::filter::Filter;

use super::Printer;
use super::lines::Lines;

/// Bytes of records that are printed at a time.
const BATCH: usize = 64 << 10;

/// Batches that a helper has before it; one of them it is at work on.
const BEFORE_IT: usize = 2;

/// Texts that wait for one before them, for each thread.
const WAITING: usize = 4;

/// Records for a helper.
#[derive(Default)]
struct Work {
    /// Those before them that others print, and that may tell of schemas.
    lessons: Batch,
    records: Batch,
}

/// A thread that writes lines.
struct Helper<'scope> {
    work: Sender<Work>,
    done: Receiver<(Vec<u8>, Batch)>,
    /// Batches whose text has not been taken.
    under_way: usize,
    /// What it has to learn before its next batch.
    lessons: Batch,
    thread: ScopedJoinHandle<'scope, Lines>,
}

impl<'scope> Helper<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, filter: Filter, mut lines: Lines) -> Self {
        let (work, take) = mpsc::channel::<Work>();
        let (give, done) = mpsc::channel();
        let thread = scope.spawn(move || {
            for Work { lessons, mut records } in take {
                lessons.records().for_each(|record| lines.learn(&record));
                let mut text = Vec::with_capacity(8 * BATCH);
                for record in records.records() {
                    lines.learn(&record);
                    lines.line_if(&filter, &mut text, &record);
                }
                records.clear();
                if give.send((text, records)).is_err() {
                    break;
                }
            }
            lines
        });
        Helper { work, done, under_way: 0, lessons: Batch::default(), thread }
    }
}

/// A piece of the output, in its turn.
enum Piece {
    Text(Vec<u8>),
    /// The next one of this helper.
    Of(usize),
}

/// Prints all records that are left, on so many threads. Returns what ended the reading; what could be
/// read before that has been printed.
pub(super) fn print<S: Source>(
    records: &mut Ordered<S>,
    printer: &mut Printer,
    threads: usize,
) -> Result<Option<Error>, Failure> {
    std::thread::scope(|scope| {
        let start = |_| Helper::start(scope, printer.filter.clone(), printer.lines.clone());
        let mut helpers: Vec<_> = (1..threads).map(start).collect();
        let mut pieces = VecDeque::new();
        let mut spare: Vec<Batch> = Vec::new();
        let end = loop {
            let under_way = helpers.iter().map(|helper| helper.under_way).enumerate();
            let free = under_way.filter(|(_, n)| *n < BEFORE_IT).min_by_key(|(_, n)| *n);
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
                        printer.lines.line_if(&printer.filter, &mut text, &record);
                    }
                }
            }
            match free.and_then(|n| Some((n, helpers.get_mut(n)?))) {
                Some((n, helper)) => {
                    let lessons = std::mem::take(&mut helper.lessons);
                    if helper.work.send(Work { lessons, records: batch }).is_ok() {
                        helper.under_way += 1;
                        pieces.push_back(Piece::Of(n));
                    }
                }
                None => pieces.push_back(Piece::Text(text)),
            }
            let most = if end.is_some() { 0 } else { WAITING * threads };
            write_out(&mut pieces, &mut helpers, &mut spare, printer, most)?;
            if let Some(end) = end {
                break end;
            }
        };
        for Helper { work, thread, .. } in helpers {
            drop(work);
            match thread.join() {
                Ok(lines) => printer.lines.columns.take_seen(&lines.columns),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(end)
    })
}

/// Lets everybody learn from a record but the helper that is going to print it.
fn teach(
    record: &Record<'_>,
    printer: &mut Printer,
    helpers: &mut [Helper<'_>],
    prints: Option<usize>,
) {
    if !printer.lines.store.may_learn(record) {
        return;
    }
    printer.lines.learn(record);
    for (n, helper) in helpers.iter_mut().enumerate() {
        if Some(n) != prints {
            // These do not become many: a helper gets its next batch as soon as it has printed one, and no more
            // than some pieces wait for that.
            helper.lessons.push(record);
        }
    }
}

/// Writes the texts whose turn has come; waits while more than `most` pieces are waiting.
fn write_out(
    pieces: &mut VecDeque<Piece>,
    helpers: &mut [Helper<'_>],
    spare: &mut Vec<Batch>,
    printer: &mut Printer,
    most: usize,
) -> Result<(), Failure> {
    while let Some(piece) = pieces.pop_front() {
        match piece {
            Piece::Text(text) => printer.out.pass(&text)?,
            Piece::Of(n) => {
                let Some(helper) = helpers.get_mut(n) else { continue };
                let done = match pieces.len() < most {
                    true => helper.done.try_recv().ok(),
                    // A thread that is gone has panicked, which its end tells.
                    false => helper.done.recv().ok(),
                };
                match done {
                    Some((text, batch)) => {
                        helper.under_way = helper.under_way.saturating_sub(1);
                        printer.out.pass(&text)?;
                        spare.push(batch);
                    }
                    None if pieces.len() < most => {
                        pieces.push_front(Piece::Of(n));
                        return Ok(());
                    }
                    None => {}
                }
            }
        }
    }
    Ok(())
}
