//! Prints on several threads.
//!
//! The calling thread reads. Batches of records go to the other threads in turn, which format their
//! lines; the texts are written in the order of the batches. Each thread learns schemas at the same
//! position of the trace as one thread would: records that may contain schemas are sent to all.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{Scope, ScopedJoinHandle};

use etl_format::Error;
use etl_format::read::{RecordBatch, Records, Source};

use crate::error::Failure;

use super::lines::Lines;
use super::printer::Printer;

/// Bytes of records in a batch.
const BATCH: usize = 64 << 10;

/// A thread passes text on when it has so many bytes. Rows may be a thousand times as long as their
/// records: each has the name of its process.
const MAX_TEXT: usize = 256 << 10;

/// Batches queued for a thread, including the one that it formats.
const MAX_QUEUED: usize = 2;

/// Records for a thread.
struct Work {
    /// Earlier records that may contain schemas, and that other threads print.
    lessons: RecordBatch,
    batch: Batch,
    /// Receives the texts of the batch, each when the one before was taken.
    texts: SyncSender<Text>,
}

/// A part of the text of a batch.
enum Text {
    /// Rows; more follow.
    Rows(Vec<u8>),
    /// The batch with its last rows.
    Last(Batch),
}

/// Records and their text. Its memory is used again.
#[derive(Default)]
struct Batch {
    records: RecordBatch,
    text: Vec<u8>,
    /// Records that were selected.
    matched: u64,
}

/// A thread that formats lines.
struct Helper<'scope> {
    work: Sender<Work>,
    /// Records to learn from before its next batch.
    lessons: RecordBatch,
    thread: ScopedJoinHandle<'scope, Lines<'scope>>,
}

impl<'scope> Helper<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, mut lines: Lines<'scope>) -> Self {
        let (work, take) = mpsc::channel();
        let thread = scope.spawn(move || {
            for work in take {
                format(work, &mut lines);
            }
            lines
        });
        Helper {
            work,
            lessons: RecordBatch::default(),
            thread,
        }
    }
}

/// Formats the records of a batch. The texts have no receiver if writing failed.
fn format(work: Work, lines: &mut Lines<'_>) {
    let Work {
        lessons,
        mut batch,
        texts,
    } = work;
    lessons
        .records()
        .for_each(|record| lines.decoder.learn(&record));
    for record in batch.records.records() {
        let matched = lines.write(&mut batch.text, &record);
        batch.matched += u64::from(matched);
        if batch.text.len() >= MAX_TEXT {
            let rows = std::mem::take(&mut batch.text);
            let _ = texts.send(Text::Rows(rows));
        }
    }
    let _ = texts.send(Text::Last(batch));
}

/// Prints the texts of a batch. Returns the batch, or `None` if its thread has panicked.
fn print_batch(
    texts: &Receiver<Text>,
    printer: &mut Printer<'_>,
) -> Result<Option<Batch>, Failure> {
    for text in texts {
        match text {
            Text::Rows(rows) => printer.out.write_after(&rows)?,
            Text::Last(batch) => {
                printer.out.write_after(&batch.text)?;
                return Ok(Some(batch));
            }
        }
    }
    Ok(None)
}

/// Prints the remaining records, formatted by `threads` threads. Returns the error that ended
/// reading, if any, after printing everything before it.
pub(super) fn print<S: Source>(
    records: &mut Records<S>,
    printer: &mut Printer<'_>,
    threads: usize,
) -> Result<Option<Error>, Failure> {
    std::thread::scope(|scope| {
        let mut helpers = VecDeque::new();
        for _ in 0..threads {
            helpers.push_back(Helper::start(scope, printer.lines.clone()));
        }
        let mut texts: VecDeque<Receiver<Text>> = VecDeque::new();
        let mut batch = Batch::default();
        let mut end = None;
        while end.is_none()
            && let Some(mut helper) = helpers.pop_front()
        {
            while batch.records.bytes() < BATCH {
                match records.next_record() {
                    Ok(Some(record)) => {
                        printer.progress.pass(record.bytes().len());
                        if printer.lines.decoder.store().may_learn(&record) {
                            for other in &mut helpers {
                                other.lessons.push(&record);
                            }
                        }
                        batch.records.push(&record);
                    }
                    Ok(None) => end = Some(None),
                    Err(error) => end = Some(Some(error)),
                }
                if end.is_some() {
                    break;
                }
            }
            let lessons = std::mem::take(&mut helper.lessons);
            let (sender, receiver) = mpsc::sync_channel(1);
            // A thread that has ended has panicked: joining it reports that.
            let _ = helper.work.send(Work {
                lessons,
                batch: std::mem::take(&mut batch),
                texts: sender,
            });
            texts.push_back(receiver);
            helpers.push_back(helper);
            let max_queued = if end.is_some() {
                0
            } else {
                MAX_QUEUED * threads
            };
            while texts.len() > max_queued
                && let Some(oldest) = texts.pop_front()
            {
                if let Some(done) = print_batch(&oldest, printer)? {
                    batch = done;
                    printer.session.add(batch.matched);
                    batch.records.clear();
                    batch.text.clear();
                    batch.matched = 0;
                }
            }
        }
        for Helper { work, thread, .. } in helpers {
            drop(work);
            match thread.join() {
                Ok(lines) => printer.lines.rows.merge_columns(&lines.rows),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(end.flatten())
    })
}
