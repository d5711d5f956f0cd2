//! A quick pass: how many events each process has, and the names of ids and volumes.
//!
//! It reads few records: the records about processes, threads and volumes. Of the others, nearly
//! all, it only needs the process and the thread.

use etl_format::read::{Record, Source};
use etl_format::{ThreadId, Ticks};

use crate::Result;
use crate::address::DirectMapped;
use crate::machine::Machine;
use crate::observe::RecordObserver;
use crate::owner::{Counts, is_read};
use crate::owner_counts::{EventsByProcess, OwnerCounts};
use crate::run::{Analysis, Pass, Recording, each_record, each_record_of};
use crate::steps::{Step, Words};

/// Slots for threads; a power of two.
const THREADS: usize = 1 << 10;

/// The step of a record that names processes, threads or volumes. `threads` has the threads of the
/// last events, by their lowest bits: the machine knows their process.
#[inline]
fn step<'r>(
    record: &'r Record<'r>,
    threads: &mut DirectMapped<Option<ThreadId>>,
) -> Option<Step<'r>> {
    if is_read(record) {
        return Some(Step::Record(record));
    }
    if !record.is_event() {
        return None;
    }
    let pid = record.process_id()?;
    let tid = record.thread_id()?;
    let slot = threads.slot_mut(tid.get() as usize >> 2);
    let is_known = slot.is_some_and(|thread| thread.replace(tid) == Some(tid));
    if is_known {
        None
    } else {
        Some(Step::Words(Words::Thread { pid, tid }))
    }
}

/// What a quick pass does with each record.
struct OwnerPass<'p, O> {
    machine: &'p mut Machine,
    /// The threads of the last events.
    threads: DirectMapped<Option<ThreadId>>,
    observer: &'p mut O,
    /// Counts of events, if they are wanted.
    counts: Option<&'p mut Counts>,
}

impl<O: RecordObserver> OwnerPass<'_, O> {
    #[inline]
    fn record(&mut self, record: &Record<'_>, file: usize, time: Ticks) {
        self.observer.record(record, file);
        if let Some(step) = step(record, &mut self.threads) {
            self.machine.apply(step, time, file, &mut ());
        }
        if let Some(counts) = &mut self.counts {
            counts.add(self.machine, record);
        }
    }
}

impl Analysis {
    /// Reads a recording only for its processes, threads and volumes, which takes a fraction of the
    /// time of [`Analysis::run`]. The machine has no images, code and addresses. Of the methods of
    /// `records`, only [`RecordObserver::record`] is called.
    ///
    /// # Errors
    /// As [`Analysis::run`].
    #[doc(hidden)]
    pub fn run_for_owners<S: Source>(
        &self,
        recording: &mut Recording<S>,
        records: &mut impl RecordObserver,
    ) -> Result<Machine> {
        Ok(self.owners(recording, records, false)?.machine)
    }

    /// The same, and how many events each process has. `counted` are all records of the recording.
    /// The recording is read again only if one id belonged to several processes or threads.
    ///
    /// # Errors
    /// As [`Analysis::run`].
    pub fn count_by_owner<S: Source>(
        &self,
        recording: &mut Recording<S>,
        counted: OwnerCounts,
    ) -> Result<EventsByProcess> {
        match counted.finish(recording)? {
            Some(counts) => Ok(counts),
            None => self.owners(recording, &mut (), true),
        }
    }

    pub(crate) fn owners<S: Source>(
        &self,
        recording: &mut Recording<S>,
        records: &mut impl RecordObserver,
        count: bool,
    ) -> Result<EventsByProcess> {
        let mut counts = Counts::default();
        // Names of threads are kept with the others.
        let mut machine = self.with_names().read(recording, |pass, readers| {
            counts = Counts::default();
            let Pass {
                timeline,
                machine,
                is_second,
                ..
            } = pass;
            if is_second {
                records.restart();
            }
            let mut owners = OwnerPass {
                machine,
                threads: DirectMapped::new(THREADS),
                observer: &mut *records,
                counts: if count { Some(&mut counts) } else { None },
            };
            if let [reader] = readers {
                return each_record_of(reader, timeline, |record, time| {
                    owners.record(record, 0, time);
                });
            }
            each_record(readers, timeline, |record, file, time| {
                owners.record(record, file, time);
            })
        })?;
        let counts = counts.finish(&mut machine);
        Ok(EventsByProcess::new(machine, counts))
    }
}
