//! CPU samples with their stacks: names, frames and mappings are interned.

use etl_format::ThreadId;
use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::profile::{FrameKind, Profile, Root, SampleStack, Weight};
use etl_schema::views::Pdb;
use foldhash::HashMap;

use super::fields::{callstack, frame, interned, mapping, packet, sample, string};
use super::packets::Packets;
use super::spool::KeptSample;
use super::storage::Storage;
use super::time::TraceTime;
use super::tracks::{Count, Owner, Tracks};
use crate::protobuf::Message;

/// Bytes of interned data in a packet, about.
const CHUNK: usize = 1 << 14;

/// Time for which a value of the CPU counter stands, in ns.
const BUCKET: u64 = 100_000_000;

/// What frames become.
#[derive(Debug)]
struct Frames {
    /// The interned id of each frame of the profile: all addresses of a method have one.
    ids: Vec<u64>,
}

/// Writes samples.
#[derive(Debug)]
pub(super) struct SampleWriter<'p> {
    profile: &'p Profile,
    frames: Frames,
    /// Whether the stack of a node was written.
    written: Vec<bool>,
    /// Ids of frames from the outermost on.
    path: Vec<u64>,
    message: Message,
    interned: Message,
    part: Message,
    usage: Usage,
    /// Samples that were written.
    pub samples: u64,
}

impl<'p> SampleWriter<'p> {
    /// Writes names, mappings and frames.
    pub fn new<S: Storage>(
        machine: &Machine,
        profile: &'p Profile,
        packets: &mut Packets<S>,
    ) -> Self {
        let frames = intern(machine, profile, packets);
        SampleWriter {
            profile,
            frames,
            written: vec![false; profile.nodes().len()],
            path: Vec::new(),
            message: Message::default(),
            interned: Message::default(),
            part: Message::default(),
            usage: Usage::default(),
            samples: 0,
        }
    }

    /// Writes a sample, if it is part of the profile.
    pub fn sample<S: Storage>(
        &mut self,
        (machine, time): (&Machine, TraceTime),
        kept: KeptSample,
        weight: Weight,
        (tracks, packets): (&mut Tracks, &mut Packets<S>),
    ) {
        let Some(node) = self.profile.node_of(SampleStack(kept.stack)) else {
            return;
        };
        let Some(root) = self.root(node) else { return };
        let nanos = time.nanos(kept.time);
        let process = root.process.and_then(|index| machine.process(index));
        let tid = root.tid;
        if let Some(process) = process {
            self.usage
                .add((process.pid().get(), nanos, weight), (tracks, packets));
        }
        self.interned.clear();
        if self
            .written
            .get_mut(node)
            .is_some_and(|written| !std::mem::replace(written, true))
        {
            self.callstack(node);
        }
        self.message.clear();
        self.message.uint(sample::CPU, kept.processor.into());
        if let Some(process) = process {
            self.message.uint(sample::PID, process.pid().get().into());
        }
        self.message
            .uint(sample::TID, tid.unwrap_or(ThreadId::new(0)).get().into());
        self.message.uint(sample::CALLSTACK, node as u64 + 1);
        let mode = if kept.in_kernel {
            sample::KERNEL
        } else {
            sample::USER
        };
        self.message.uint(sample::MODE, mode);
        packets.write_with(
            Some(nanos),
            packet::PERF_SAMPLE,
            &self.message,
            &self.interned,
        );
        self.samples += 1;
    }

    /// Writes the rest of the counters.
    pub fn finish<S: Storage>(&mut self, (tracks, packets): (&mut Tracks, &mut Packets<S>)) {
        self.usage.close((tracks, packets));
        self.usage.close((tracks, packets));
    }

    /// The root above a node.
    fn root(&self, node: usize) -> Option<&'p Root> {
        let roots = self.profile.roots();
        let after = roots.partition_point(|root| root.first <= node);
        roots
            .get(after.checked_sub(1)?)
            .filter(|root| node < root.end)
    }

    /// The stack that ends in a node, as interned data.
    fn callstack(&mut self, node: usize) {
        self.path.clear();
        let mut at = Some(node);
        while let Some(node) = at.and_then(|at| self.profile.nodes().get(at)) {
            self.path.extend(
                node.frame
                    .and_then(|frame| self.frames.ids.get(frame))
                    .copied(),
            );
            at = node.parent;
        }
        self.part.clear();
        self.part.uint(callstack::ID, node as u64 + 1);
        for &id in self.path.iter().rev() {
            self.part.uint(callstack::FRAMES, id);
        }
        self.interned.message(interned::CALLSTACKS, &self.part);
    }
}

/// Interned data that are being collected.
struct Interning<'p, S: Storage> {
    data: Message,
    packets: &'p mut Packets<S>,
}

impl<S: Storage> Interning<'_, S> {
    fn string(&mut self, field: u32, id: u64, text: &[u8]) {
        let mut message = Message::default();
        message.uint(string::ID, id);
        message.bytes_of(string::TEXT, text);
        self.message(field, &message);
    }

    fn message(&mut self, field: u32, message: &Message) {
        self.data.message(field, message);
        if self.data.bytes().len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.data.bytes().is_empty() {
            self.packets.write(None, packet::INTERNED_DATA, &self.data);
            self.data.clear();
        }
    }
}

/// Writes the names, mappings and frames of a profile.
fn intern<S: Storage>(machine: &Machine, profile: &Profile, packets: &mut Packets<S>) -> Frames {
    let mut out = Interning {
        data: Message::default(),
        packets,
    };
    let mut names: HashMap<String, u64> = HashMap::default();
    for (index, module) in profile.modules().iter().enumerate() {
        let id = index as u64 + 1;
        let path = if module.path.is_empty() {
            &module.name
        } else {
            &module.path
        };
        out.string(
            interned::MAPPING_PATHS,
            id,
            machine.user_path(path).as_bytes(),
        );
        let build = module.pdb.map(build_id).unwrap_or_default();
        out.string(interned::BUILD_IDS, id, &build);
        let mut message = Message::default();
        message.uint(mapping::ID, id);
        message.uint(mapping::BUILD_ID, id);
        let addresses = module.addresses.clone().unwrap_or_default();
        message.uint(mapping::START, addresses.start);
        message.uint(mapping::END, addresses.end);
        message.uint(mapping::PATH, id);
        out.message(interned::MAPPINGS, &message);
    }
    let mut sources: HashMap<&str, u64> = HashMap::default();
    let mut known: HashMap<_, u64> = HashMap::default();
    let mut ids = Vec::with_capacity(profile.frames().len());
    for (index, of) in profile.frames().iter().enumerate() {
        let label = profile.label(index);
        let next = names.len() as u64 + 1;
        let name = match names.get(&label) {
            Some(&name) => name,
            None => {
                out.string(interned::FUNCTION_NAMES, next, label.as_bytes());
                names.insert(label, next);
                next
            }
        };
        let module = profile.modules().get(of.module);
        let addresses = module.and_then(|module| module.addresses.as_ref());
        let start = addresses.map(|addresses| addresses.start);
        let rel_pc = match (of.kind.is_managed(), of.address) {
            (false, Some(address)) => address.saturating_sub(start.unwrap_or(0)),
            _ => 0,
        };
        let kind = match of.kind {
            FrameKind::Kernel => frame::KERNEL,
            FrameKind::Jitted | FrameKind::Managed => frame::JITTED,
            _ => frame::NATIVE,
        };
        let source = of.file.as_deref().map_or(0, |file| {
            let next = sources.len() as u64 + 1;
            let source = *sources.entry(file).or_insert(next);
            if source == next {
                out.string(interned::SOURCE_PATHS, next, file.as_bytes());
            }
            source
        });
        let next = known.len() as u64 + 1;
        let id = *known
            .entry((name, of.module, rel_pc, kind, source, of.line))
            .or_insert(next);
        if id == next {
            let mut message = Message::default();
            message.uint(frame::ID, id);
            message.uint(frame::FUNCTION, name);
            message.uint(frame::MAPPING, of.module as u64 + 1);
            message.uint(frame::REL_PC, rel_pc);
            if let (1.., Some(line)) = (source, of.line) {
                message.uint(frame::SOURCE_PATH, source);
                message.uint(frame::LINE, line.into());
            }
            message.uint(frame::KIND, kind);
            out.message(interned::FRAMES, &message);
        }
        ids.push(id);
    }
    out.flush();
    Frames { ids }
}

/// Signature and age of a PDB, as the digits that symbol servers know it by, in bytes.
fn build_id(pdb: Pdb) -> Vec<u8> {
    let digits = pdb.signature.to_string().replace('-', "");
    let value = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [&value.to_be_bytes()[..], &pdb.age.to_be_bytes()].concat()
}

/// How much of a processor each process used, by samples.
#[derive(Debug, Default)]
struct Usage {
    /// When the current bucket began.
    bucket: u64,
    /// By process id: what was sampled in the bucket, in 100 ns, and before.
    processes: BTreeMap<u32, (u64, u64)>,
}

impl Usage {
    /// Adds a sample; they come in time order.
    fn add<S: Storage>(
        &mut self,
        (pid, nanos, weight): (u32, u64, Weight),
        to: (&mut Tracks, &mut Packets<S>),
    ) {
        if weight.time == 0 {
            return;
        }
        let bucket = nanos - nanos % BUCKET;
        if bucket > self.bucket {
            let (tracks, packets) = to;
            self.close((tracks, packets));
            // Nothing may have been sampled for a while.
            if bucket > self.bucket {
                self.close((tracks, packets));
                self.bucket = bucket;
            }
        }
        self.processes.entry(pid).or_default().0 += weight.time;
    }

    /// Writes the values that differ from those before, and begins the next bucket.
    fn close<S: Storage>(&mut self, (tracks, packets): (&mut Tracks, &mut Packets<S>)) {
        for (&pid, (sampled, before)) in &mut self.processes {
            if sampled != before {
                let owner = Owner {
                    pid,
                    ..Owner::default()
                };
                let percent = *sampled as f64 * 100.0 * 100.0 / BUCKET as f64;
                tracks.percent(packets, (owner, Count::Cpu), self.bucket, percent);
            }
            (*before, *sampled) = (*sampled, 0);
        }
        self.processes.retain(|_, (_, before)| *before != 0);
        self.bucket += BUCKET;
    }
}
