//! CPU samples with their stacks: names, frames and mappings are interned.

use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::profile::{Frame, FrameKind, ModuleInfo, Profile, Root, SampleStack, Weight};
use etl_format::ThreadId;
use etl_schema::views::Pdb;
use foldhash::HashMap;

use super::Context;
use super::fields::{callstack, frame, interned, mapping, packet, sample, string};
use super::interrupts;
use super::packets::Packets;
use super::spool::KeptSample;
use super::storage::Storage;
use super::tracks::{Count, Owner, TraceWriter};
use crate::protobuf::Message;

/// Bytes of interned data in a packet, about.
const CHUNK: usize = 1 << 14;

/// Bytes of memory for each address of the profile, at most: an interned frame, its id, and the
/// name of its function.
pub(super) const ADDRESS_BYTES: u64 = 384;

/// Time between values of the CPU counter, in ns.
const BUCKET: u64 = 100_000_000;

/// Writes samples.
#[derive(Debug)]
pub(super) struct SampleWriter<'p> {
    context: Context<'p>,
    profile: &'p Profile,
    /// The interned id of each frame of the profile: all addresses of a method have one.
    frame_ids: Vec<u64>,
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
        context: Context<'p>,
        profile: &'p Profile,
        packets: &mut Packets<S>,
    ) -> Self {
        interrupts::write(&context, profile, packets);
        SampleWriter {
            context,
            profile,
            frame_ids: intern(context.machine, profile, packets),
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
        kept: KeptSample,
        weight: Weight,
        writer: &mut TraceWriter<S>,
    ) {
        let Some(node) = self.profile.node_of(SampleStack(kept.stack)) else {
            return;
        };
        let Some(root) = self.root(node) else { return };
        let nanos = self.context.time.nanos(kept.time);
        let machine = self.context.machine;
        let process = root.process.and_then(|index| machine.process(index));
        let mut pid = process.map(|process| process.pid().get());
        let mut tid = root.tid.map_or(0, ThreadId::get);
        if let Some(interrupt) = root.interrupt {
            pid = Some(interrupts::process_id(interrupt.kind));
            tid = interrupts::thread_id(interrupt);
        }
        if let Some(pid) = pid {
            self.usage.add(pid, nanos, weight, writer);
        }
        self.interned.clear();
        if let Some(is_written) = self.written.get_mut(node)
            && !*is_written
        {
            *is_written = true;
            self.callstack(node);
        }
        self.message.clear();
        self.message.uint(sample::CPU, kept.processor.into());
        if let Some(pid) = pid {
            self.message.uint(sample::PID, pid.into());
        }
        self.message.uint(sample::TID, tid.into());
        self.message.uint(sample::CALLSTACK, node as u64 + 1);
        let mode = if kept.in_kernel {
            sample::KERNEL
        } else {
            sample::USER
        };
        self.message.uint(sample::MODE, mode);
        writer.packets.write_with(
            Some(nanos),
            packet::PERF_SAMPLE,
            &self.message,
            &self.interned,
        );
        self.samples += 1;
    }

    /// Writes the rest of the counters.
    pub fn finish<S: Storage>(&mut self, writer: &mut TraceWriter<S>) {
        // The values of the last bucket, and zeros after it.
        self.usage.close(writer);
        self.usage.close(writer);
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
        let nodes = self.profile.nodes();
        self.path.clear();
        let mut next = nodes.get(node);
        while let Some(node) = next {
            if let Some(frame) = node.frame {
                self.path.extend(self.frame_ids.get(frame));
            }
            next = node.parent.and_then(|parent| nodes.get(parent));
        }
        self.part.clear();
        self.part.uint(callstack::ID, node as u64 + 1);
        for &id in self.path.iter().rev() {
            self.part.uint(callstack::FRAMES, id);
        }
        self.interned.message(interned::CALLSTACKS, &self.part);
    }
}

/// A frame as Perfetto has it. Ids are from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct InternedFrame {
    name: u64,
    module: usize,
    /// Offset in the image, of native code.
    rel_pc: u64,
    kind: u64,
    /// 0 if the source file is unknown.
    source: u64,
    line: Option<u32>,
}

/// Writes interned data, each once, and numbers them.
struct Interner<'p, S: Storage> {
    data: Message,
    packets: &'p mut Packets<S>,
    names: HashMap<String, u64>,
    sources: HashMap<&'p str, u64>,
    frames: HashMap<InternedFrame, u64>,
}

impl<'p, S: Storage> Interner<'p, S> {
    fn write_string(&mut self, field: u32, id: u64, text: &[u8]) {
        let mut message = Message::default();
        message.uint(string::ID, id);
        message.bytes_of(string::TEXT, text);
        self.write(field, &message);
    }

    fn write(&mut self, field: u32, message: &Message) {
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

    /// Writes a module with its path and the id of its PDB.
    fn module(&mut self, id: u64, module: &ModuleInfo, machine: &Machine) {
        let path = if module.path.is_empty() {
            &module.name
        } else {
            &module.path
        };
        let path = machine.user_path(path);
        self.write_string(interned::MAPPING_PATHS, id, path.as_bytes());
        let build = module.pdb.map(build_id).unwrap_or_default();
        self.write_string(interned::BUILD_IDS, id, &build);
        let addresses = module.addresses.clone().unwrap_or_default();
        let mut message = Message::default();
        message.uint(mapping::ID, id);
        message.uint(mapping::BUILD_ID, id);
        message.uint(mapping::START, addresses.start);
        message.uint(mapping::END, addresses.end);
        message.uint(mapping::PATH, id);
        self.write(interned::MAPPINGS, &message);
    }

    /// The id of a function.
    fn name(&mut self, name: String) -> u64 {
        if let Some(&id) = self.names.get(&name) {
            return id;
        }
        let id = self.names.len() as u64 + 1;
        self.write_string(interned::FUNCTION_NAMES, id, name.as_bytes());
        self.names.insert(name, id);
        id
    }

    /// The id of the path of a source file.
    fn source(&mut self, path: &'p str) -> u64 {
        let next = self.sources.len() as u64 + 1;
        let id = *self.sources.entry(path).or_insert(next);
        if id == next {
            self.write_string(interned::SOURCE_PATHS, id, path.as_bytes());
        }
        id
    }

    /// The id of a frame.
    fn frame(&mut self, frame: InternedFrame) -> u64 {
        let next = self.frames.len() as u64 + 1;
        let id = *self.frames.entry(frame).or_insert(next);
        if id == next {
            let mut message = Message::default();
            message.uint(frame::ID, id);
            message.uint(frame::FUNCTION, frame.name);
            message.uint(frame::MAPPING, frame.module as u64 + 1);
            message.uint(frame::REL_PC, frame.rel_pc);
            if let (1.., Some(line)) = (frame.source, frame.line) {
                message.uint(frame::SOURCE_PATH, frame.source);
                message.uint(frame::LINE, line.into());
            }
            message.uint(frame::KIND, frame.kind);
            self.write(interned::FRAMES, &message);
        }
        id
    }
}

/// Writes the names, mappings and frames of a profile. Returns the ids of its frames.
fn intern<S: Storage>(machine: &Machine, profile: &Profile, packets: &mut Packets<S>) -> Vec<u64> {
    let mut interner = Interner {
        data: Message::default(),
        packets,
        names: HashMap::default(),
        sources: HashMap::default(),
        frames: HashMap::default(),
    };
    for (id, module) in (1..).zip(profile.modules()) {
        interner.module(id, module, machine);
    }
    let mut ids = Vec::with_capacity(profile.frames().len());
    for (index, frame) in profile.frames().iter().enumerate() {
        let interned = InternedFrame {
            name: interner.name(profile.label(index)),
            module: frame.module,
            rel_pc: rel_pc(profile, frame),
            kind: match frame.kind {
                FrameKind::Kernel => frame::KERNEL,
                FrameKind::Jitted | FrameKind::Managed => frame::JITTED,
                _ => frame::NATIVE,
            },
            source: match &frame.file {
                Some(path) => interner.source(path),
                None => 0,
            },
            line: frame.line,
        };
        ids.push(interner.frame(interned));
    }
    interner.flush();
    ids
}

/// The offset of a frame in its image; 0 of managed code.
fn rel_pc(profile: &Profile, frame: &Frame) -> u64 {
    let Some(address) = frame.address.filter(|_| !frame.kind.is_managed()) else {
        return 0;
    };
    let module = profile.modules().get(frame.module);
    match module.and_then(|module| module.addresses.as_ref()) {
        Some(addresses) => address.saturating_sub(addresses.start),
        None => address,
    }
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
    /// By process id.
    processes: BTreeMap<u32, ProcessUsage>,
}

/// Sampled time of a process, in 100 ns.
#[derive(Debug, Default)]
struct ProcessUsage {
    in_bucket: u64,
    in_previous_bucket: u64,
}

impl Usage {
    /// Adds a sample; they come in time order.
    fn add<S: Storage>(
        &mut self,
        pid: u32,
        nanos: u64,
        weight: Weight,
        writer: &mut TraceWriter<S>,
    ) {
        if weight.time == 0 {
            return;
        }
        let bucket = nanos - nanos % BUCKET;
        if bucket > self.bucket {
            self.close(writer);
            // Nothing may have been sampled for a while.
            if bucket > self.bucket {
                self.close(writer);
                self.bucket = bucket;
            }
        }
        self.processes.entry(pid).or_default().in_bucket += weight.time;
    }

    /// Writes the values that differ from the previous ones, and begins the next bucket.
    fn close<S: Storage>(&mut self, writer: &mut TraceWriter<S>) {
        for (&pid, usage) in &mut self.processes {
            if usage.in_bucket != usage.in_previous_bucket {
                let owner = Owner {
                    pid,
                    ..Owner::default()
                };
                let percent = usage.in_bucket as f64 * 100.0 * 100.0 / BUCKET as f64;
                writer.percent(owner, Count::Cpu, self.bucket, percent);
            }
            usage.in_previous_bucket = usage.in_bucket;
            usage.in_bucket = 0;
        }
        self.processes
            .retain(|_, usage| usage.in_previous_bucket != 0);
        self.bucket += BUCKET;
    }
}
