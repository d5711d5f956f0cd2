//! Tables of what happened: their rows are found in the records.

use etl_analysis::loss::Loss;
use etl_analysis::profile::Intervals;
use etl_analysis::symbols::{Symbol, Symbols};
use etl_analysis::{EventRef, Frames, Joins, Machine, Observer, ProcessIndex, Sample, Stack};
use etl_events::EventDecoder;
use etl_export::pcapng::Packets;
use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ProcessId, ThreadId, Ticks};
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

/// Makes rows of what an analysis shows.
pub(super) struct Facts<'f, 'o> {
    /// The whole machine, with names.
    machine: &'f Machine,
    symbols: Symbols<'f>,
    intervals: &'f Intervals,
    options: &'f Options,
    rows: &'f mut Rows<'o>,
    /// Whether the records come out of order, and all over again.
    is_disordered: bool,
    /// Ids of stacks that have their rows.
    stacks: HashSet<i64>,
    addresses: Vec<u64>,
    text: String,
    switch: FieldReader<4>,
    behaviors: Behaviors,
    packets: Option<(EventDecoder<'static>, Packets)>,
    switches: bool,
}

impl<'f, 'o> Facts<'f, 'o> {
    pub fn new(before: &'f Before, options: &'f Options, rows: &'f mut Rows<'o>) -> Self {
        let Before {
            machine, intervals, ..
        } = before;
        let packets = rows.wants::<PacketRow<'_>>();
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
            packets: packets.then(|| {
                (
                    EventDecoder::new(*machine.clock(), options.store.clone()),
                    Packets::new(),
                )
            }),
            switches: rows.wants::<ContextSwitchRow<'_>>(),
            rows,
        }
    }

    fn pid(&self, index: Option<ProcessIndex>) -> Option<u32> {
        Some(self.machine.process(index?)?.pid().get())
    }

    /// An event with its process, if any event of the recording names it.
    fn with_process(&self, event: &EventRef) -> EventRef {
        let first = || self.machine.first_process_of_thread(event.tid?);
        let mut known = *event;
        known.process = event.process.or_else(first);
        known
    }

    fn context_switch(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.switch.read(record) else {
            return;
        };
        let (Some(new), Some(old)) = (fields.uint(0), fields.uint(1)) else {
            return;
        };
        let state = fields.uint(2);
        let reason = fields.uint(3);
        let owner = |tid: u64| {
            let tid = u32::try_from(tid).ok()?;
            machine
                .process_of_thread(ThreadId::new(tid))
                .or_else(|| self.machine.first_process_of_thread(ThreadId::new(tid)))
        };
        let old_process = owner(old);
        let new_process = owner(new);
        let selected = [(old_process, old), (new_process, new)]
            .iter()
            .any(|&(process, tid)| {
                let tid = u32::try_from(tid).ok().map(ThreadId::new);
                admits(
                    self.options,
                    self.pid(process).map(ProcessId::new),
                    tid,
                    event.time,
                )
            });
        if !selected {
            return;
        }
        let number = reason.map(|reason| reason.to_string()).unwrap_or_default();
        let reason = reason.and_then(|reason| self.switch.value_name(3, reason));
        self.rows.add(&ContextSwitchRow {
            sequence: event.number,
            time: Ticks::new(self.machine.clock().time(event.time).get()),
            cpu: event.processor,
            old_tid: old,
            old_process: process_label(self.machine, old_process),
            old_state: state,
            wait_reason: reason.unwrap_or(&number),
            new_tid: new,
            new_process: process_label(self.machine, new_process),
        });
    }

    fn packet(&mut self, record: &Record<'_>, event: &EventRef) {
        let Some((decoder, packets)) = &mut self.packets else {
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
            time: Ticks::new(self.machine.clock().time(event.time).get()),
            pid,
            tid,
            provider: provider.unwrap_or_default(),
            packet: &packet,
        });
    }

    /// Adds the stack of an event, and its rows where it is new; `own` is an instruction pointer
    /// that the stack lacks. Returns its id.
    fn stack(&mut self, event: &EventRef, frames: &Frames<'_>, own: Option<u64>) -> i64 {
        self.addresses.clear();
        self.addresses.extend(own.into_iter().chain(frames.iter()));
        let pid = self.pid(event.process);
        let id = stack_id(pid, self.addresses.iter().copied());
        let process = process_label(self.machine, event.process);
        self.rows.add(&EventStackRow {
            sequence: event.number,
            time: Ticks::new(self.machine.clock().time(event.time).get()),
            process,
            tid: event.tid,
            stack_id: id,
        });
        if !self.stacks.insert(id) {
            return id;
        }
        let is_kernel = |address: u64| address >= self.machine.kernel_begins();
        let own_kernel = own.is_some_and(|own| !frames.kernel.is_empty() || is_kernel(own));
        let kernel = frames.kernel.len() + usize::from(own_kernel);
        self.text.clear();
        let symbols: Vec<_> = self
            .addresses
            .iter()
            .map(|&address| {
                self.symbols
                    .at(ProcessId::new(pid.unwrap_or(0)), address, event.time)
            })
            .collect();
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
            let (module, method, offset) = parts(symbol.as_ref(), address);
            self.rows.add(&FrameRow {
                stack_id: id,
                depth,
                address,
                module,
                method: &method,
                offset,
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

/// File name of the module, method, and offset in it.
fn parts<'s>(symbol: Option<&Symbol<'s>>, address: u64) -> (&'s str, String, Option<u64>) {
    match symbol {
        Some(Symbol::Method(method)) => {
            let module = method.module.map_or("", |module| file_name(module.path));
            let offset = address.saturating_sub(method.start);
            (module, method.label().to_string(), Some(offset))
        }
        Some(Symbol::Image(image)) => (file_name(image.path), String::new(), Some(image.offset)),
        _ => ("", String::new(), None),
    }
}

/// Module and method, as profiles show them.
fn label(symbol: Option<&Symbol<'_>>) -> String {
    let known = |name: &str| {
        if name.is_empty() {
            "?".to_owned()
        } else {
            name.to_owned()
        }
    };
    match symbol {
        Some(Symbol::Image(image)) => format!("{}!?", known(file_name(image.path))),
        Some(Symbol::Method(method)) => {
            let module = method.module.map_or("", |module| file_name(module.path));
            format!("{}!{}", known(module), method.label())
        }
        _ => "?".to_owned(),
    }
}

impl Observer for Facts<'_, '_> {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.behaviors.record(machine, record, event, self.options);
        if self.is_disordered {
            return;
        }
        if self.switches && record.hook() == Some(hook::CSWITCH) {
            self.context_switch(machine, record, event);
        }
        self.packet(record, event);
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        let Sample {
            event,
            address,
            frames,
            ..
        } = sample;
        let event = &self.with_process(event);
        let pid = self.pid(event.process);
        if self.is_disordered
            || !admits(self.options, pid.map(ProcessId::new), event.tid, event.time)
        {
            return;
        }
        let stack = (!frames.is_empty()).then(|| {
            // What is recorded of a stack may lack its innermost part.
            let own = (frames.iter().next() != Some(*address)).then_some(*address);
            self.stack(event, frames, own)
        });
        if !self.rows.wants::<SampleRow<'_>>() {
            return;
        }
        let symbol = self
            .symbols
            .at(ProcessId::new(pid.unwrap_or(0)), *address, event.time);
        let (module, method, _) = parts(symbol.as_ref(), *address);
        self.rows.add(&SampleRow {
            sequence: event.number,
            time: Ticks::new(self.machine.clock().time(event.time).get()),
            cpu: event.processor,
            process: process_label(self.machine, event.process),
            tid: event.tid,
            address: *address,
            module,
            method: &method,
            stack_id: stack,
            weight: self.intervals.weight(event.time).time,
        });
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        let event = &self.with_process(&stack.event);
        let pid = self.pid(event.process);
        if !self.is_disordered
            && admits(self.options, pid.map(ProcessId::new), event.tid, event.time)
        {
            Facts::stack(self, event, &stack.frames, None);
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

/// The same for tables that need no stacks: to join them takes as long as all the rest.
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
