//! Cuts a piece out of a trace, with the state that the piece needs.
//!
//! # The rule
//! An event is **selected** if the condition of the caller admits it. Its stacks are selected with
//! it: kernel stacks, which name the event by time and thread, and the CLR's stack event that
//! follows an event of the CLR on the same thread. A stack that the condition admits is selected as
//! well.
//!
//! Unless [`Slicer::without_state`] is called, a record that is not selected is kept if selected
//! records need it to be decoded or resolved, anywhere in the trace: a rundown at the end describes
//! code that ran at the beginning. [`KeepReason`] lists the kinds; `docs/rewrite.md` has the whole
//! rule.
//!
//! Addresses of selected events resolve in the slice as in the whole trace, and their payloads
//! decode alike.
//!
//! The trace is read twice: for the needed state, and to write. Memory grows with processes,
//! threads, stack keys and providers, each up to 2^20, and with the 2^20 latest selected events;
//! `docs/rewrite.md` says what is kept if there are more.

mod clr;
mod dependencies;
mod kernel;
mod owners;
mod selected_events;

pub(crate) use clr::ClrEvent;
pub use dependencies::KeepReason;

use std::collections::BTreeMap;

use etl_events::Subject;
use etl_format::ThreadId;
use etl_format::constants::{BUFFER_HEADER_SIZE, LogFileMode};
use etl_format::read::{Damage, Order, Record, Source, Trace};
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_format::write::{Finished, Output};
use foldhash::{HashMap, HashMapExt as _};
use serde::Serialize;

use crate::compression::{self, Compression};
use crate::damage::is_damaged;
use crate::{Error, OnRecord, Result};
use dependencies::Dependencies;
use kernel::{KernelEvent, ThreadProcess, group};
use owners::ThreadOwners;
use selected_events::SelectedEvents;

/// Selected events that are remembered for their stacks.
const MAX_SELECTED: usize = 1 << 20;

/// Threads whose last event of the CLR is remembered.
const MAX_THREADS: usize = 1 << 20;

/// The result of a cut. `docs/rewrite.md` describes its JSON.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Records of the source, without its header event.
    pub records: u64,
    /// Selected records, their stacks included.
    pub selected: u64,
    /// Records that are kept because selected records need them.
    pub kept_as_state: u64,
    /// These records by reason; every reason is there.
    pub kept: BTreeMap<KeepReason, u64>,
    /// Parts of the source that could not be read.
    #[serde(rename = "damaged", serialize_with = "is_damaged")]
    pub damage: Vec<Damage>,
}

impl Default for Summary {
    fn default() -> Self {
        let kept = KeepReason::ALL.map(|reason| (reason, 0)).into();
        Summary {
            records: 0,
            selected: 0,
            kept_as_state: 0,
            kept,
            damage: Vec::new(),
        }
    }
}

/// Cuts a piece out of a trace.
#[derive(Debug)]
pub struct Slicer<'f> {
    keep_state: bool,
    compression: Option<Compression>,
    on_record: OnRecord<'f>,
}

impl Default for Slicer<'_> {
    fn default() -> Self {
        Slicer {
            keep_state: true,
            compression: None,
            on_record: OnRecord::default(),
        }
    }
}

impl<'f> Slicer<'f> {
    /// A slicer that keeps the state that selected events need, and does not compress.
    #[must_use]
    pub fn new() -> Self {
        Slicer::default()
    }

    /// Writes only the selected events, without the records that they need to be decoded and
    /// resolved.
    #[must_use]
    pub fn without_state(mut self) -> Self {
        self.keep_state = false;
        self
    }

    /// Compresses the new trace, on as many threads as the options of the source trace have.
    #[must_use]
    pub fn compression(mut self, compression: impl Into<Option<Compression>>) -> Self {
        self.compression = compression.into();
        self
    }

    /// Calls `f` for every record that is read: twice for each if state is kept.
    #[must_use]
    pub fn on_record(mut self, f: impl FnMut(&Record<'_>) + 'f) -> Self {
        self.on_record = OnRecord::new(f);
        self
    }

    /// Writes the slice. `select` decides which records are selected. If state is kept, it is
    /// called twice for each record, and must return the same both times.
    ///
    /// # Errors
    /// Errors of reading and writing, with the side.
    pub fn run<S: Source, O: Output>(
        mut self,
        trace: &mut Trace<S>,
        mut select: impl FnMut(&Record<'_>, &Subject) -> bool,
        output: O,
    ) -> Result<Finished<O, Summary>> {
        let mut dependencies = None;
        if self.keep_state {
            dependencies = Some(gather(trace, &mut select, &mut self.on_record)?);
        }
        let threads = trace.options().threads;
        let mut plan = RelogPlan::copying(trace)?;
        plan.header.mode = plan.header.mode | LogFileMode::ADD_HEADER;
        let compressor = compression::compressor(self.compression, threads)?;
        let mut relog = Relogger::start(plan, output, compressor).map_err(Error::output)?;
        let threads = relog.reading_threads(threads);
        let mut records = trace.records(Order::Time)?.with_threads(threads);
        let mut selector = Selector::default();
        let mut summary = Summary::default();
        records.parallel(|records| {
            while let Some(record) = records.next_record()? {
                self.on_record.call(&record);
                // The header event is always written, from its fields.
                if relog.is_written(&record)
                    && record.location().in_buffer as usize == BUFFER_HEADER_SIZE
                {
                    continue;
                }
                summary.records += 1;
                let candidate = selector.select(&record, &mut select);
                if candidate.is_selected {
                    summary.selected += 1;
                    relog.copy(&record).map_err(Error::output)?;
                    continue;
                }
                let mut reason = None;
                if let Some(dependencies) = &dependencies {
                    let kernel = candidate.kernel.as_ref();
                    reason = dependencies.reason(&record, kernel, &candidate.subject);
                }
                // The other records in the buffer of the header event stay in it.
                if reason.is_none() && relog.is_written(&record) {
                    reason = Some(KeepReason::System);
                }
                let Some(reason) = reason else {
                    relog.skip(&record).map_err(Error::output)?;
                    continue;
                };
                summary.kept_as_state += 1;
                *summary.kept.entry(reason).or_default() += 1;
                relog.copy(&record).map_err(Error::output)?;
            }
            Ok::<_, Error>(())
        })?;
        summary.damage = records.damage().to_vec();
        let output = relog.finish(&summary.damage).map_err(Error::output)?.output;
        Ok(Finished {
            output,
            report: summary,
        })
    }
}

/// The first pass: the state that the selected events need.
fn gather<S: Source>(
    trace: &mut Trace<S>,
    select: &mut impl FnMut(&Record<'_>, &Subject) -> bool,
    on_record: &mut OnRecord<'_>,
) -> etl_format::Result<Dependencies> {
    let mut dependencies = Dependencies::default();
    let mut selector = Selector::default();
    trace.records(Order::Time)?.for_each(|record| {
        on_record.call(&record);
        let candidate = selector.select(&record, select);
        let subject = &candidate.subject;
        if let Some(mention) = candidate.first_mention {
            dependencies.add_first_mention(mention, record.location());
        }
        if let Some(kernel) = &candidate.kernel
            && kernel.group() == group::THREAD
            && let Some(thread) = subject.threads().next()
            && let Some(process) = subject.processes().next()
        {
            dependencies.add_owner(thread, process);
        }
        if candidate.is_selected {
            dependencies.add(&record, candidate.kernel.as_ref(), subject);
        }
        Ok::<_, etl_format::Error>(())
    })?;
    dependencies.finish();
    Ok(dependencies)
}

/// The decision on a record, and the parts of the record that were decoded for it.
struct Candidate<'a> {
    is_selected: bool,
    kernel: Option<KernelEvent<'a>>,
    subject: Subject,
    /// The thread, if the header of this record is the first that names its process.
    first_mention: Option<ThreadProcess>,
}

/// Selects records, in time order. Two passes over a trace select the same records.
struct Selector {
    threads: ThreadOwners,
    selected: SelectedEvents,
    /// Whether the last event of the CLR was selected, by thread.
    clr: HashMap<ThreadId, bool>,
}

impl Default for Selector {
    fn default() -> Self {
        Selector {
            threads: ThreadOwners::default(),
            selected: SelectedEvents::new(MAX_SELECTED),
            clr: HashMap::new(),
        }
    }
}

impl Selector {
    fn select<'a>(
        &mut self,
        record: &Record<'a>,
        select: &mut impl FnMut(&Record<'_>, &Subject) -> bool,
    ) -> Candidate<'a> {
        let kernel = KernelEvent::of(record);
        let first_mention = self.threads.learn(record, kernel.as_ref());
        let subject = self.threads.subject(record, kernel.as_ref());
        let stack = kernel.as_ref().and_then(KernelEvent::stack_owner);
        let clr = match kernel {
            None => ClrEvent::of(record),
            Some(_) => None,
        };
        let is_clr_stack = clr.is_some_and(ClrEvent::is_stack);
        let mut is_selected = select(record, &subject);
        if let Some(owner) = stack {
            is_selected |= self.selected.contains(owner.timestamp, owner.thread);
        }
        if let Some(thread) = record.thread_id() {
            if is_clr_stack {
                is_selected |= self.clr.get(&thread) == Some(&true);
            } else if clr.is_some()
                && (self.clr.len() < MAX_THREADS || self.clr.contains_key(&thread))
            {
                self.clr.insert(thread, is_selected);
            }
        }
        if is_selected && stack.is_none() {
            self.selected.add(record.timestamp(), subject.threads());
        }
        Candidate {
            is_selected,
            kernel,
            subject,
            first_mention,
        }
    }
}
