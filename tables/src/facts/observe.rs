//! Tables of what happened: their rows are found in the records.

use etl_analysis::behavior::Histogram;
use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::io::Io;
use etl_analysis::loss::Loss;
use etl_analysis::profile::Intervals;
use etl_analysis::symbols::{Method, Symbol, Symbols};
use etl_analysis::{EventRef, Frames, Joins, Machine, Observer, Sample, Stack};
use etl_export::pcapng::Packets;
use etl_format::constants::hook;
use etl_format::read::Record;
use etl_schema::store::SchemaStore;
use etl_schema::views::FieldReader;
use foldhash::HashSet;

use super::machine::process;
use super::rows::{Rows, admits, admits_process, file_name, time};
use crate::builder::Cell;
use crate::events::micros;
use crate::options::Options;
use crate::recorded::Before;
use crate::stack_id::stack_id;
use crate::tables::{CONTEXT_SWITCHES, EVENT_STACKS, FRAMES, GCS, IO, PACKETS, SAMPLES, STACKS};

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
    collections: Option<Collections>,
    io: Option<Io>,
    packets: Option<(SchemaStore, Packets)>,
    switches: bool,
}

impl<'f, 'o> Facts<'f, 'o> {
    pub fn new(before: &'f Before, options: &'f Options, rows: &'f mut Rows<'o>) -> Self {
        let Before { machine, intervals, .. } = before;
        let packets = rows.wants(&PACKETS);
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
                ["NewThreadId", "OldThreadId", "OldThreadState", "OldThreadWaitReason"],
            ),
            collections: rows.wants(&GCS).then(Collections::new),
            io: rows.wants(&IO).then(|| Io::new().between(options.filter.from, options.filter.to)),
            packets: packets.then(|| (options.store.clone(), Packets::new())),
            switches: rows.wants(&CONTEXT_SWITCHES),
            rows,
        }
    }

    fn pid(&self, index: Option<usize>) -> Option<u32> {
        Some(self.machine.processes().get(index?)?.pid())
    }

    /// Id and name of a process.
    fn process(&self, index: Option<usize>) -> [Cell<'f>; 2] {
        index.map_or([Cell::Null, Cell::Null], |index| process(self.machine, index))
    }

    /// An event with its process, if any event of the recording names it.
    fn with_process(&self, event: &EventRef) -> EventRef {
        let first = || self.machine.first_process_of_thread(event.tid?);
        let mut known = *event;
        known.process = event.process.or_else(first);
        known
    }

    fn context_switch(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.switch.read(record) else { return };
        let (Some(new), Some(old)) = (fields.uint(0), fields.uint(1)) else { return };
        let (state, reason) = (fields.uint(2), fields.uint(3));
        let owner = |tid: u64| {
            let tid = u32::try_from(tid).ok()?;
            machine.process_of_thread(tid).or_else(|| self.machine.first_process_of_thread(tid))
        };
        let (old_process, new_process) = (owner(old), owner(new));
        let selected = [(old_process, old), (new_process, new)].iter().any(|&(process, tid)| {
            let tid = u32::try_from(tid).ok();
            admits(self.options, self.pid(process), tid, event.time)
        });
        if !selected {
            return;
        }
        let number = reason.map(|reason| reason.to_string()).unwrap_or_default();
        let reason = reason.and_then(|reason| self.switch.value_name(3, reason));
        let filetime = self.machine.clock().filetime(event.time);
        let [old_pid, old_name] = self.process(old_process);
        let [new_pid, new_name] = self.process(new_process);
        self.rows.add(
            &CONTEXT_SWITCHES,
            &[
                Cell::Text(&self.options.trace),
                Cell::int(Some(event.number)),
                Cell::Int(micros(filetime)),
                Cell::Int(filetime),
                Cell::int(Some(event.processor)),
                Cell::int(Some(old)),
                old_pid,
                old_name,
                Cell::int(state),
                Cell::text(reason.unwrap_or(&number)),
                Cell::int(Some(new)),
                new_pid,
                new_name,
            ],
        );
    }

    fn packet(&mut self, record: &Record<'_>, event: &EventRef) {
        let Some((store, packets)) = &mut self.packets else { return };
        store.learn(record);
        if !Packets::may_have(record) {
            return;
        }
        let Some(packet) = packets.record(store, record) else { return };
        let known = |id: Option<u32>| id.filter(|&id| id != u32::MAX);
        let (pid, tid) = (known(record.process_id()), known(record.thread_id()));
        if !admits(self.options, pid, tid, event.time) {
            return;
        }
        let filetime = self.machine.clock().filetime(event.time);
        let name = record.provider().and_then(etl_schema::providers::name).unwrap_or_default();
        self.rows.add(
            &PACKETS,
            &[
                Cell::Text(&self.options.trace),
                Cell::Int(micros(filetime)),
                Cell::Int(filetime),
                Cell::int(pid),
                Cell::int(tid),
                Cell::Text(name),
                Cell::Text(&packet.place),
                Cell::Text(packet.link),
                packet.is_sent.map_or(Cell::Null, Cell::Bool),
                Cell::int(Some(packet.length)),
                Cell::bits(packet.dropped.map(|dropped| dropped.0)),
                Cell::Bytes(&packet.bytes),
            ],
        );
    }

    /// Adds the stack of an event, and its rows where it is new; `own` is an instruction pointer
    /// that the stack lacks. Returns its id.
    fn stack(&mut self, event: &EventRef, frames: &Frames<'_>, own: Option<u64>) -> i64 {
        self.addresses.clear();
        self.addresses.extend(own.into_iter().chain(frames.iter()));
        let pid = self.pid(event.process);
        let id = stack_id(pid, self.addresses.iter().copied());
        let trace = &*self.options.trace;
        let [process_id, process] = self.process(event.process);
        self.rows.add(
            &EVENT_STACKS,
            &[
                Cell::Text(trace),
                Cell::int(Some(event.number)),
                time(self.machine.clock(), Some(event.time)),
                process_id,
                Cell::int(event.tid),
                Cell::Int(id),
            ],
        );
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
            .map(|&address| self.symbols.at(pid.unwrap_or(0), address, event.time))
            .collect();
        for symbol in symbols.iter().rev() {
            if !self.text.is_empty() {
                self.text.push(';');
            }
            self.text.push_str(&label(symbol.as_ref()));
        }
        self.rows.add(
            &STACKS,
            &[
                Cell::Text(trace),
                Cell::Int(id),
                process_id,
                process,
                Cell::int(Some(self.addresses.len())),
                Cell::int(Some(kernel)),
                Cell::Bool(frames.is_partial),
                Cell::Text(&self.text),
            ],
        );
        for (depth, (&address, symbol)) in self.addresses.iter().zip(&symbols).enumerate() {
            let (module, method, offset) = parts(symbol.as_ref(), address);
            self.rows.add(
                &FRAMES,
                &[
                    Cell::Text(trace),
                    Cell::Int(id),
                    Cell::int(Some(depth)),
                    Cell::bits(Some(address)),
                    Cell::text(module),
                    Cell::text(&method),
                    Cell::bits(offset),
                    Cell::Bool(depth < kernel),
                ],
            );
        }
        id
    }

    /// Adds what is known once all records were read.
    pub fn finish(mut self) {
        self.gcs();
        let Some(io) = self.io.take() else { return };
        for ((index, path, operation), total) in &io.by_path(self.machine) {
            let process = index.and_then(|index| self.machine.processes().get(index));
            if !admits_process(self.options, process) {
                continue;
            }
            let [process_id, process] = self.process(*index);
            let micros = |ticks: Option<u64>| {
                ticks.map_or(Cell::Null, |ticks| Cell::Float(ticks as f64 / 10.0))
            };
            let Histograms { count, total: sum, p50, p99, max } = (&total.latency).into();
            self.rows.add(
                &IO,
                &[
                    Cell::Text(&self.options.trace),
                    process_id,
                    process,
                    Cell::text(path),
                    Cell::Text(operation.name()),
                    Cell::bits(Some(total.count)),
                    Cell::bits(Some(total.bytes)),
                    Cell::bits(Some(count)),
                    micros(Some(sum)),
                    micros(p50),
                    micros(p99),
                    micros(max),
                ],
            );
        }
    }

    fn gcs(&mut self) {
        let Some(collections) = self.collections.take() else { return };
        let clock = self.machine.clock();
        for gc in collections.list() {
            let pid = self.pid(Some(gc.process));
            let threads = &self.options.filter.threads;
            let is_of_thread =
                threads.is_empty() || gc.started_by.is_some_and(|tid| threads.contains(&tid));
            if !is_of_thread || !admits(self.options, pid, None, gc.started) {
                continue;
            }
            let [process_id, process] = self.process(Some(gc.process));
            let named = |name: Option<&str>, number: u32| {
                name.map_or_else(|| number.to_string(), str::to_owned)
            };
            let reason = named(collections.reason_name(gc.reason), gc.reason);
            let kind = named(collections.type_name(gc.kind), gc.kind);
            let paused = gc.paused as f64 * 1e6 / clock.frequency.max(1) as f64;
            let mut cells = vec![
                Cell::Text(&self.options.trace),
                process_id,
                process,
                Cell::int(Some(gc.clr)),
                Cell::int(Some(gc.number)),
                Cell::int(Some(gc.generation)),
                Cell::Text(&reason),
                Cell::Text(&kind),
                time(clock, Some(gc.started)),
                time(clock, gc.ended),
                Cell::int(Some(gc.pauses)),
                Cell::Float(paused),
                Cell::bits(gc.promoted),
                Cell::bits(gc.heap_size()),
            ];
            cells.extend(gc.sizes().map(Cell::bits));
            cells.push(Cell::bits(Some(gc.allocated)));
            self.rows.add(&GCS, &cells);
        }
    }
}

/// What a row of `io` has of durations, in 100 ns.
struct Histograms {
    count: u64,
    total: u64,
    p50: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
}

impl From<&Histogram> for Histograms {
    fn from(of: &Histogram) -> Self {
        let (p50, p99) = (of.percentile(50), of.percentile(99));
        Histograms { count: of.count(), total: of.total(), p50, p99, max: of.max() }
    }
}

/// Type and name of a method, or its token.
fn method_name(method: &Method<'_>) -> String {
    match (method.namespace, method.name) {
        ("", "") => format!("{:#010x}", method.token),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}.{name}"),
    }
}

/// File name of the module, method, and offset in it.
fn parts<'s>(symbol: Option<&Symbol<'s>>, address: u64) -> (&'s str, String, Option<u64>) {
    match symbol {
        Some(Symbol::Method(method)) => {
            let module = method.module.map_or("", |module| file_name(module.path));
            let offset = address.saturating_sub(method.start);
            (module, method_name(method), Some(offset))
        }
        Some(Symbol::Image(image)) => (file_name(image.path), String::new(), Some(image.offset)),
        _ => ("", String::new(), None),
    }
}

/// Module and method, as profiles show them.
fn label(symbol: Option<&Symbol<'_>>) -> String {
    let known = |name: &str| if name.is_empty() { "?".to_owned() } else { name.to_owned() };
    match symbol {
        Some(Symbol::Image(image)) => format!("{}!?", known(file_name(image.path))),
        Some(Symbol::Method(method)) => {
            let module = method.module.map_or("", |module| file_name(module.path));
            format!("{}!{}", known(module), method_name(method))
        }
        _ => "?".to_owned(),
    }
}

impl Observer for Facts<'_, '_> {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.collections.record(machine, record, event);
        self.io.record(machine, record, event);
        if self.is_disordered {
            return;
        }
        if self.switches && record.hook() == Some(hook::CSWITCH) {
            self.context_switch(machine, record, event);
        }
        self.packet(record, event);
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        let Sample { event, address, frames, .. } = sample;
        let event = &self.with_process(event);
        let pid = self.pid(event.process);
        if self.is_disordered || !admits(self.options, pid, event.tid, event.time) {
            return;
        }
        let stack = (!frames.is_empty()).then(|| {
            // What is recorded of a stack may lack its innermost part.
            let own = (frames.iter().next() != Some(*address)).then_some(*address);
            self.stack(event, frames, own)
        });
        if !self.rows.wants(&SAMPLES) {
            return;
        }
        let symbol = self.symbols.at(pid.unwrap_or(0), *address, event.time);
        let (module, method, _) = parts(symbol.as_ref(), *address);
        let filetime = self.machine.clock().filetime(event.time);
        let [process_id, process] = self.process(event.process);
        self.rows.add(
            &SAMPLES,
            &[
                Cell::Text(&self.options.trace),
                Cell::int(Some(event.number)),
                Cell::Int(micros(filetime)),
                Cell::Int(filetime),
                Cell::int(Some(event.processor)),
                process_id,
                process,
                Cell::int(event.tid),
                Cell::bits(Some(*address)),
                Cell::text(module),
                Cell::text(&method),
                Cell::int(stack),
                Cell::Float(self.intervals.weight(event.time).time as f64 / 10.0),
            ],
        );
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        let event = &self.with_process(&stack.event);
        let pid = self.pid(event.process);
        if !self.is_disordered && admits(self.options, pid, event.tid, event.time) {
            Facts::stack(self, event, &stack.frames, None);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.collections.loss(loss);
        self.io.loss(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        Observer::finish(&mut self.collections, machine);
        Observer::finish(&mut self.io, machine);
    }

    fn restart(&mut self) {
        self.is_disordered = false;
        self.collections.restart();
        self.io.restart();
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
