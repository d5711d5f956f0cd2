//! Threads: their samples in time order, and their markers.

use etl_format::{ProcessId, ThreadId, Ticks};
use std::collections::BTreeMap;
use std::io::{self, Write};

use etl_analysis::machine::Thread;
use etl_analysis::profile::{FrameKind, ProcessorInterrupt, Profile, Root, TimedSample};
use etl_analysis::{Machine, ProcessIndex};
use etl_schema::render::escaped_json;
use serde_json::json;

use super::json::Json;
use super::markers::{Describer, Marker};
use super::tables::{Texts, Twins, stack_of};
use super::times::{Times, to_millis};
use super::{Collector, ThreadKey};

/// The indices of the samples of each root, in time order, and the end of each root's samples.
#[derive(Debug, Default)]
struct ByRoot {
    order: Vec<u32>,
    ends: Vec<usize>,
}

impl ByRoot {
    fn new(profile: &Profile) -> Self {
        let mut ends = vec![0; profile.roots().len()];
        for sample in profile.samples() {
            if let Some(count) = ends.get_mut(root_of(profile, sample)) {
                *count += 1;
            }
        }
        // At first, `ends` has the begin of the samples of each root. Each placed sample moves it
        // by one, so that in the end it is the end.
        let mut next = 0;
        for end in &mut ends {
            next += std::mem::replace(end, next);
        }
        let mut order = vec![0; profile.samples().len()];
        for (index, sample) in profile.samples().iter().enumerate() {
            let Some(end) = ends.get_mut(root_of(profile, sample)) else {
                continue;
            };
            if let Some(place) = order.get_mut(*end) {
                *place = index as u32;
            }
            *end += 1;
        }
        ByRoot { order, ends }
    }

    /// The indices of the samples of a root.
    fn of(&self, root: usize) -> &[u32] {
        let begin = match root.checked_sub(1) {
            Some(previous) => self.end(previous),
            None => 0,
        };
        self.order.get(begin..self.end(root)).unwrap_or_default()
    }

    /// The end of the samples of a root in the order.
    fn end(&self, root: usize) -> usize {
        self.ends.get(root).copied().unwrap_or(0)
    }
}

/// The index of the root of a sample.
fn root_of(profile: &Profile, sample: &TimedSample) -> usize {
    profile
        .roots()
        .partition_point(|root| root.end <= sample.node)
}

/// A row of the table of samples.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// 100 ns after the row before.
    after: u64,
    stack: Option<u64>,
    /// Processor time in µs.
    cpu: u64,
}

/// The selected threads of a profile.
pub(super) struct Threads<'a> {
    collected: &'a Collector,
    machine: &'a Machine,
    profile: &'a Profile,
    times: &'a Times,
    by_root: ByRoot,
    /// When a thread was collecting garbage.
    collecting: BTreeMap<ThreadKey, Vec<(Ticks, Ticks)>>,
    /// Threads that began first in their processes.
    first: BTreeMap<ProcessIndex, ThreadId>,
    /// For each process, how many had its id before.
    earlier: Vec<usize>,
}

impl<'a> Threads<'a> {
    pub fn new(
        collected: &'a Collector,
        machine: &'a Machine,
        profile: &'a Profile,
        times: &'a Times,
    ) -> Self {
        let mut collecting: BTreeMap<ThreadKey, Vec<(Ticks, Ticks)>> = BTreeMap::new();
        for gc in collected.collections.list() {
            if let Some(ended) = gc.ended {
                let thread = (Some(gc.process), gc.tid);
                collecting
                    .entry(thread)
                    .or_default()
                    .push((gc.started, ended));
            }
        }
        let mut first = BTreeMap::new();
        for thread in machine.threads() {
            if let Some(process) = machine.process_of(thread) {
                first.entry(process).or_insert(thread.tid);
            }
        }
        let mut by_id: BTreeMap<ProcessId, usize> = BTreeMap::new();
        let mut earlier = Vec::with_capacity(machine.processes().len());
        for process in machine.processes() {
            let count = by_id.entry(process.pid()).or_default();
            earlier.push(*count);
            *count += 1;
        }
        let by_root = ByRoot::new(profile);
        Threads {
            collected,
            machine,
            profile,
            times,
            by_root,
            collecting,
            first,
            earlier,
        }
    }

    /// Writes all threads: first the threads with samples, most samples first, then the threads
    /// that only have markers. Returns how many there are.
    pub fn write<W: Write>(
        &self,
        json: &mut Json<W>,
        markers: &[Marker],
        twins: &mut Twins,
        texts: &mut Texts,
    ) -> io::Result<usize> {
        let mut of_threads: BTreeMap<ThreadKey, &[Marker]> = BTreeMap::new();
        for same in markers.chunk_by(|a, b| a.thread == b.thread) {
            of_threads.extend(same.first().map(|marker| (marker.thread, same)));
        }
        let describer = Describer::new(self.collected, self.machine, self.profile, self.times);
        let mut written = 0;
        let roots = self.profile.roots().iter().enumerate();
        let with_samples: Vec<(ThreadKey, Option<usize>)> =
            roots.map(|(at, root)| (key_of(root), Some(at))).collect();
        let mut rest: BTreeMap<ThreadKey, &[Marker]> = of_threads.clone();
        for root in self.profile.roots() {
            if root.interrupt.is_none() {
                rest.remove(&key_of(root));
            }
        }
        let without_samples = rest.keys().map(|&thread| (thread, None));
        for (thread, root) in with_samples.into_iter().chain(without_samples) {
            json.raw(if written > 0 { ",\n" } else { "\n" })?;
            let interrupt = root.and_then(|root| self.profile.roots().get(root)?.interrupt);
            match interrupt {
                Some(interrupt) => describe_interrupt(json, interrupt)?,
                None => self.describe(json, thread)?,
            }
            json.raw(",\"samples\":{")?;
            self.samples(json, root, thread, twins)?;
            json.raw(",\"markers\":{")?;
            let markers = match interrupt {
                Some(_) => &[],
                None => of_threads.get(&thread).copied().unwrap_or_default(),
            };
            describer.write(json, markers, texts)?;
            json.raw("}")?;
            written += 1;
        }
        Ok(written)
    }

    /// Writes the properties of a thread. The object stays open.
    fn describe<W: Write>(&self, json: &mut Json<W>, thread: ThreadKey) -> io::Result<()> {
        let (process, tid) = thread;
        let index = process;
        let process = process.and_then(|index| self.machine.process(index));
        let thread: Option<&Thread> = tid.and_then(|tid| self.machine.thread_of(index, tid));
        let label = match (thread.map_or("", |thread| &*thread.name), tid) {
            ("", Some(tid)) => format!("Thread {tid}"),
            ("", None) => "unknown thread".to_owned(),
            (name, _) => name.to_owned(),
        };
        let pid = match (process, index) {
            (Some(process), Some(index)) => self.pid(process.pid(), index),
            _ => thread.map_or("unknown".to_owned(), |thread| thread.pid.to_string()),
        };
        let is_main = index.is_some_and(|at| tid.is_some() && self.first.get(&at) == tid.as_ref());
        let process_started = process.and_then(|process| process.started());
        let process_started = process_started.map_or(0, |time| self.times.since_start(time));
        let process_ended = process.and_then(|process| process.ended());
        let process_ended = process_ended.map(|time| to_millis(self.times.since_start(time)));
        let thread_started = thread.and_then(|thread| thread.started);
        let thread_started = thread_started.map_or(0, |time| self.times.since_start(time));
        let thread_ended = thread.and_then(|thread| thread.ended);
        let thread_ended = thread_ended.map(|time| to_millis(self.times.since_start(time)));
        let name = process.map_or("", |process| process.name());
        let head = json!({
            "processType": "default",
            "processName": if name.is_empty() { "unknown process" } else { name },
            "processStartupTime": to_millis(process_started),
            "processShutdownTime": process_ended,
            "registerTime": to_millis(thread_started),
            "unregisterTime": thread_ended,
            "pausedRanges": [],
            "showMarkersInTimeline": true,
            "name": label,
            "isMainThread": is_main,
            "pid": pid,
            "tid": tid,
        });
        let head = escaped_json(&head.to_string());
        json.raw(head.strip_suffix('}').unwrap_or(&head))
    }

    /// The id of a process as a text. Later processes with the same id get a number after it.
    fn pid(&self, pid: ProcessId, index: ProcessIndex) -> String {
        match self.earlier.get(index.get()).copied().unwrap_or(0) {
            0 => pid.to_string(),
            earlier => format!("{pid}.{earlier}"),
        }
    }

    fn samples<W: Write>(
        &self,
        json: &mut Json<W>,
        root: Option<usize>,
        thread: ThreadKey,
        twins: &mut Twins,
    ) -> io::Result<()> {
        let rows = root
            .map(|root| self.rows(root, thread, twins))
            .unwrap_or_default();
        json.column("stack", &rows, |out, row| out.optional(row.stack))?;
        json.column("timeDeltas", &rows, |out, row| out.millis(row.after))?;
        if self.profile.has_times() {
            json.column("threadCPUDelta", &rows, |out, row| out.number(row.cpu))?;
        }
        json.raw("\"weight\":null,\"weightType\":\"samples\",")?;
        json.end(rows.len())
    }

    /// The samples of a root. The viewer shows a thread as busy until its next sample. If that
    /// comes late, a row without a stack ends the sample before it, and a second row without a
    /// stack ends the pause.
    fn rows(&self, root: usize, thread: ThreadKey, twins: &mut Twins) -> Vec<Row> {
        let samples = self.by_root.of(root);
        let mut rows = Vec::with_capacity(samples.len());
        let collecting = self.collecting.get(&thread).map_or(&[][..], Vec::as_slice);
        // The time of the last row, and the interval of the last sample.
        let mut now = 0u64;
        let mut last_interval = 0u64;
        for &index in samples {
            let Some(sample) = self.profile.samples().get(index as usize) else {
                continue;
            };
            let stack = stack_of(self.profile, root, sample.node);
            let stack = match stack {
                Some(stack) if is_within(collecting, sample.time) => {
                    Some(self.collecting_stack(root, sample, stack, twins))
                }
                stack => stack,
            };
            let interval = sample.weight.time;
            let time = self.times.since_start(sample.time).max(now);
            if interval > 0 && time - now > 2 * interval {
                if last_interval > 0 {
                    rows.push(Row {
                        after: last_interval,
                        stack: None,
                        cpu: 0,
                    });
                    now += last_interval;
                }
                let begin = time - interval;
                rows.push(Row {
                    after: begin.saturating_sub(now),
                    stack: None,
                    cpu: 0,
                });
                now = now.max(begin);
            }
            rows.push(Row {
                after: time.saturating_sub(now),
                stack,
                cpu: interval / 10,
            });
            now = time;
            last_interval = interval;
        }
        rows
    }

    /// The stack of a sample that was taken while its thread collected garbage. Native code at its
    /// end belongs to the collector.
    fn collecting_stack(
        &self,
        root: usize,
        sample: &TimedSample,
        stack: u64,
        twins: &mut Twins,
    ) -> u64 {
        let node = self.profile.nodes().get(sample.node);
        let frame = node.and_then(|node| node.frame);
        let kind = frame
            .and_then(|frame| self.profile.frames().get(frame))
            .map(|f| f.kind);
        match (node, frame, kind) {
            (Some(node), Some(frame), Some(FrameKind::Native)) => {
                let parent = node
                    .parent
                    .and_then(|parent| stack_of(self.profile, root, parent));
                twins.stack(stack, frame, parent)
            }
            _ => stack,
        }
    }
}

/// Writes the properties of what interrupted an idle processor, as a thread. The object stays open.
fn describe_interrupt<W: Write>(
    json: &mut Json<W>,
    interrupt: ProcessorInterrupt,
) -> io::Result<()> {
    let name = interrupt.kind.name();
    let head = json!({
        "processType": "default",
        "processName": name,
        "processStartupTime": 0.0,
        "processShutdownTime": null,
        "registerTime": 0.0,
        "unregisterTime": null,
        "pausedRanges": [],
        "showMarkersInTimeline": true,
        "name": interrupt.to_string(),
        "isMainThread": false,
        "pid": name,
        "tid": interrupt.processor,
    });
    let head = head.to_string();
    json.raw(head.strip_suffix('}').unwrap_or(&head))
}

fn key_of(root: &Root) -> ThreadKey {
    (root.process, root.tid.filter(|&tid| tid != u32::MAX))
}

/// Whether a time is in one of the spans, which are in the order of their beginnings.
fn is_within(spans: &[(Ticks, Ticks)], time: Ticks) -> bool {
    let after = spans.partition_point(|&(since, _)| since <= time);
    // A collection in the background is interrupted by others.
    let before = spans.get(..after).unwrap_or_default();
    before.iter().rev().take(2).any(|&(_, until)| time < until)
}
