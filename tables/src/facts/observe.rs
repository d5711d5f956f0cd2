//! Tables whose rows are found in the records.

use etl_analysis::loss::Loss;
use etl_analysis::profile::Intervals;
use etl_analysis::symbols::{Symbol, Symbols};
use etl_analysis::{EventRef, Frames, Joins, Machine, Observer, ProcessIndex, Sample, Stack};
use etl_events::EventDecoder;
use etl_export::pcapng::Packets;
use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ProcessId, ThreadId};
use etl_schema::views::FieldReader;
use foldhash::HashSet;

use super::behaviors::Behaviors;
use super::rows::Rows;
use super::select::admits;
use crate::options::Options;
use crate::recorded::Before;
use crate::rows::context_switches::ContextSwitchRow;
use crate::rows::packets::PacketRow;
use crate::rows::samples::SampleRow;
use crate::rows::stacks::{EventStackRow, FrameRow, StackRow};
use crate::rows::{file_name, process_label};
use crate::stack_id::stack_id;

/// An observer of an analysis that makes rows.
pub(super) struct Facts<'f, 'o> {
    /// The whole machine, with names.
    machine: &'f Machine,
    symbols: Symbols<'f>,
    intervals: &'f Intervals,
    options: &'f Options,
    rows: &'f mut Rows<'o>,
    /// Whether the records are out of order: then the analysis restarts, and all come again.
    is_disordered: bool,
    /// Ids of stacks that have their rows.
    stacks: HashSet<i64>,
    addresses: Vec<u64>,
    text: String,
    switch: FieldReader<4>,
    behaviors: Behaviors,
    packets: Option<PacketReader>,
    /// Whether the table of context switches is requested.
    wants_switches: bool,
}

/// Reads the packets in records.
struct PacketReader {
    decoder: EventDecoder<'static>,
    packets: Packets,
}

/// A thread at a context switch.
#[derive(Clone, Copy)]
struct SwitchedThread {
    tid: u64,
    process: Option<ProcessIndex>,
}

impl<'f, 'o> Facts<'f, 'o> {
    pub fn new(before: &'f Before, options: &'f Options, rows: &'f mut Rows<'o>) -> Self {
        let Before {
            machine, intervals, ..
        } = before;
        let mut packets = None;
        if rows.wants::<PacketRow<'_>>() {
            packets = Some(PacketReader {
                decoder: EventDecoder::new(*machine.clock(), options.store.clone()),
                packets: Packets::new(),
            });
        }
        Facts {
            machine,
            symbols: machine.symbols(),
            intervals,
            options,
            is_disordered: !machine.is_ordered(),
            stacks: HashSet::default(),
            addresses: Vec::new(),
            text: String::new(),
            switch: FieldReader::of_hook(
                hook::CSWITCH,
                [
                    "NewThreadId",
                    "OldThreadId",
                    "OldThreadState",
                    "OldThreadWaitReason",
                ],
            ),
            behaviors: Behaviors::new(options, rows),
            packets,
            wants_switches: rows.wants::<ContextSwitchRow<'_>>(),
            rows,
        }
    }

    fn pid(&self, index: Option<ProcessIndex>) -> Option<ProcessId> {
        Some(self.machine.process(index?)?.pid())
    }

    /// An event with its process, if any event of the recording names it.
    fn with_process(&self, event: &EventRef) -> EventRef {
        let mut event = *event;
        if event.process.is_none()
            && let Some(tid) = event.tid
        {
            event.process = self.machine.first_process_of_thread(tid);
        }
        event
    }

    fn context_switch(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.switch.read(record) else {
            return;
        };
        let Some(new_tid) = fields.uint(0) else {
            return;
        };
        let Some(old_tid) = fields.uint(1) else {
            return;
        };
        let old_state = fields.uint(2);
        let reason = fields.uint(3);
        let old = self.switched_thread(machine, old_tid);
        let new = self.switched_thread(machine, new_tid);
        if !self.admits_switched(old, event) && !self.admits_switched(new, event) {
            return;
        }
        let number = reason.map(|reason| reason.to_string()).unwrap_or_default();
        let wait_reason = match reason {
            Some(reason) => self.switch.value_name(3, reason).unwrap_or(&number),
            None => "",
        };
        self.rows.add(&ContextSwitchRow {
            sequence: event.number,
            time: self.machine.clock().time(event.time),
            cpu: event.processor,
            old_tid,
            old_process: process_label(self.machine, old.process),
            old_state,
            wait_reason,
            new_tid,
            new_process: process_label(self.machine, new.process),
        });
    }

    /// A thread with its process: at this time, or else in the whole recording.
    fn switched_thread(&self, machine: &Machine, tid: u64) -> SwitchedThread {
        let mut process = None;
        if let Ok(id) = u32::try_from(tid) {
            let id = ThreadId::new(id);
            process = machine
                .process_of_thread(id)
                .or_else(|| self.machine.first_process_of_thread(id));
        }
        SwitchedThread { tid, process }
    }

    fn admits_switched(&self, thread: SwitchedThread, event: &EventRef) -> bool {
        let pid = self.pid(thread.process);
        let tid = u32::try_from(thread.tid).ok().map(ThreadId::new);
        admits(self.options, pid, tid, event.time)
    }

    fn packet(&mut self, record: &Record<'_>, event: &EventRef) {
        let Some(PacketReader { decoder, packets }) = &mut self.packets else {
            return;
        };
        let Some(packet) = packets.record(decoder, record) else {
            return;
        };
        let pid = record.known_process_id();
        let tid = record.known_thread_id();
        if !admits(self.options, pid, tid, event.time) {
            return;
        }
        let provider = record.provider().and_then(etl_schema::providers::name);
        self.rows.add(&PacketRow {
            time: self.machine.clock().time(event.time),
            pid,
            tid,
            provider: provider.unwrap_or_default(),
            packet: &packet,
        });
    }

    /// Adds the stack of an event, and the rows of a new stack; `innermost` is an instruction
    /// pointer that the stack lacks. Returns its id.
    fn add_stack(&mut self, event: &EventRef, frames: &Frames<'_>, innermost: Option<u64>) -> i64 {
        self.addresses.clear();
        self.addresses.extend(innermost);
        self.addresses.extend(frames.iter());
        let pid = self.pid(event.process);
        let id = stack_id(pid, self.addresses.iter().copied());
        let process = process_label(self.machine, event.process);
        self.rows.add(&EventStackRow {
            sequence: event.number,
            time: self.machine.clock().time(event.time),
            process,
            tid: event.tid,
            stack_id: id,
        });
        if !self.stacks.insert(id) {
            return id;
        }
        let mut kernel = frames.kernel.len();
        if let Some(address) = innermost
            && (kernel > 0 || address >= self.machine.kernel_begins())
        {
            kernel += 1;
        }
        let pid = pid.unwrap_or_default();
        let mut symbols = Vec::with_capacity(self.addresses.len());
        for &address in &self.addresses {
            symbols.push(self.symbols.at(pid, address, event.time));
        }
        self.text.clear();
        for symbol in symbols.iter().rev() {
            if !self.text.is_empty() {
                self.text.push(';');
            }
            self.text.push_str(&label(symbol.as_ref()));
        }
        self.rows.add(&StackRow {
            stack_id: id,
            process,
            depth: self.addresses.len(),
            kernel,
            is_partial: frames.is_partial,
            text: &self.text,
        });
        for (depth, (&address, symbol)) in self.addresses.iter().zip(&symbols).enumerate() {
            let location = Location::new(symbol.as_ref(), address);
            self.rows.add(&FrameRow {
                stack_id: id,
                depth,
                address,
                module: location.module,
                method: &location.method,
                offset: location.offset,
                is_kernel: depth < kernel,
            });
        }
        id
    }

    /// Adds the rows that are known once all records were read.
    pub fn finish(self) {
        self.behaviors.write(self.machine, self.options, self.rows);
    }
}

/// The code at an address.
#[derive(Default)]
struct Location<'s> {
    /// File name of the module or image.
    module: &'s str,
    method: String,
    /// The offset in the method or image.
    offset: Option<u64>,
}

impl<'s> Location<'s> {
    fn new(symbol: Option<&Symbol<'s>>, address: u64) -> Self {
        match symbol {
            Some(Symbol::Method(method)) => Location {
                module: method.module.map_or("", |module| file_name(module.path)),
                method: method.label().to_string(),
                offset: Some(address.saturating_sub(method.start)),
            },
            Some(Symbol::Image(image)) => Location {
                module: file_name(image.path),
                method: image
                    .function
                    .map_or(String::new(), |function| function.name.to_owned()),
                offset: match image.function {
                    Some(function) => Some(address.saturating_sub(function.start)),
                    None => Some(image.offset),
                },
            },
            _ => Location::default(),
        }
    }
}

/// Module and method, as profiles show them.
fn label(symbol: Option<&Symbol<'_>>) -> String {
    match symbol {
        Some(Symbol::Image(image)) => {
            let function = image.function.map_or("?", |function| function.name);
            format!("{}!{function}", or_unknown(file_name(image.path)))
        }
        Some(Symbol::Method(method)) => {
            let module = method.module.map_or("", |module| file_name(module.path));
            format!("{}!{}", or_unknown(module), method.label())
        }
        _ => "?".to_owned(),
    }
}

/// The name, or a question mark.
fn or_unknown(name: &str) -> &str {
    if name.is_empty() { "?" } else { name }
}

impl Observer for Facts<'_, '_> {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.behaviors.record(machine, record, event, self.options);
        if self.is_disordered {
            return;
        }
        if self.wants_switches && record.hook() == Some(hook::CSWITCH) {
            self.context_switch(machine, record, event);
        }
        self.packet(record, event);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        self.behaviors.sample(machine, sample);
        let Sample {
            event,
            address,
            interrupt,
            frames,
            ..
        } = sample;
        let event = &self.with_process(event);
        let pid = self.pid(event.process);
        if self.is_disordered || !admits(self.options, pid, event.tid, event.time) {
            return;
        }
        let stack_id = match frames.iter().next() {
            Some(first) if first == *address => Some(self.add_stack(event, frames, None)),
            // A recorded stack may lack its innermost part.
            Some(_) => Some(self.add_stack(event, frames, Some(*address))),
            None => None,
        };
        if !self.rows.wants::<SampleRow<'_>>() {
            return;
        }
        let pid = pid.unwrap_or_default();
        let symbol = self.symbols.at(pid, *address, event.time);
        let location = Location::new(symbol.as_ref(), *address);
        self.rows.add(&SampleRow {
            sequence: event.number,
            time: self.machine.clock().time(event.time),
            cpu: event.processor,
            process: process_label(self.machine, event.process),
            tid: event.tid,
            address: *address,
            interrupt: *interrupt,
            module: location.module,
            method: &location.method,
            stack_id,
            weight: self.intervals.weight(event.time).time,
        });
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        let event = &self.with_process(&stack.event);
        let pid = self.pid(event.process);
        if !self.is_disordered && admits(self.options, pid, event.tid, event.time) {
            self.add_stack(event, &stack.frames, None);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.behaviors.loss(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.behaviors.finish(machine);
    }

    fn restart(&mut self) {
        self.is_disordered = false;
        self.behaviors.restart();
    }
}

/// The same for tables that need no stacks: joining stacks takes half of the time.
pub(super) struct WithoutStacks<'a, 'f, 'o>(pub &'a mut Facts<'f, 'o>);

impl Observer for WithoutStacks<'_, '_, '_> {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.0.record(machine, record, event);
    }

    fn loss(&mut self, loss: &Loss) {
        self.0.loss(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        Observer::finish(self.0, machine);
    }

    fn restart(&mut self) {
        self.0.restart();
    }
}
