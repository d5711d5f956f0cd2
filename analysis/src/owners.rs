//! A quick pass: which process has which events, and what ids and volumes are called.
//!
//! It looks at few records: those about processes, threads and volumes. Of the others, which are
//! nearly all, it only needs whose they are.

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

/// What of a record names processes, threads or volumes. `threads` has those of the last events, by
/// their lowest bits: the machine knows their process.
#[inline]
fn step<'r>(
    record: &'r Record<'r>,
    threads: &mut DirectMapped<Option<ThreadId>>,
) -> Option<Step<'r>> {
    if is_read(record) {
        return Some(Step::Record(record));
    }
    let (true, Some(pid), Some(tid)) = (record.is_event(), record.process_id(), record.thread_id())
    else {
        return None;
    };
    let slot = threads.slot_mut(tid.get() as usize >> 2);
    let is_known = slot.is_some_and(|thread| thread.replace(tid) == Some(tid));
    (!is_known).then_some(Step::Words(Words::Thread { pid, tid }))
}

impl Analysis {
    /// Reads a recording for its processes, threads and volumes alone, which takes a fraction of
    /// the time of [`Analysis::run`]. The machine has no images, code and addresses. Of the methods
    /// of `records`, [`RecordObserver::record`] alone is called.
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
        match counted.finish(recording) {
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
        let mut machine = self.names(true).read(recording, |pass, readers| {
            counts = Counts::default();
            let mut threads = DirectMapped::new(THREADS);
            let Pass {
                timeline,
                machine,
                is_second,
                ..
            } = pass;
            if is_second {
                records.restart();
            }
            let mut take = |record: &Record<'_>, file: usize, time: Ticks| {
                records.record(record, file);
                if let Some(step) = step(record, &mut threads) {
                    machine.apply(step, time, file, &mut ());
                }
                if count {
                    counts.add(machine, record);
                }
            };
            match readers {
                [reader] => each_record_of(reader, timeline, |record, time| take(record, 0, time)),
                _ => each_record(readers, timeline, take),
            }
        })?;
        let counts = counts.finish(&mut machine);
        Ok(EventsByProcess::new(machine, counts))
    }
}
