//! The opened files of a trace, and the machines that they describe.

use etl_analysis::Machine;
use etl_analysis::files::{MachineClock, Timeline, machines};
use etl_format::read::{Damage, Limits, Mode, Note, Options, Order, OrderCheck, Records};
use etl_format::{Clock, FileHeader};
use etl_schema::store::SchemaStore;

use crate::Result;
use crate::context::{self, Code};
use crate::error::Error;
use crate::input::{AnySource, Input};
use crate::schemas::SchemasOfTraces;

/// How the files are read.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub mode: Mode,
    pub limits: Limits,
    pub threads: usize,
    /// The schemas that are known without the files.
    pub store: SchemaStore,
    pub names: Naming,
}

/// Which names of the trace events have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Naming {
    /// None.
    None,
    /// Names of processes and threads, and the drives in paths.
    #[default]
    Names,
    /// Also what is at addresses.
    Addresses,
}

impl Settings {
    pub fn options(&self, order_check: OrderCheck) -> Options {
        Options {
            mode: self.mode,
            order_check,
            limits: self.limits,
            threads: self.threads,
        }
    }
}

/// An opened file.
#[derive(Debug)]
pub(super) struct TraceFile {
    pub name: String,
    pub input: Input,
    pub header: FileHeader,
    pub clock: Clock,
    /// The number of its machine.
    pub machine: usize,
    /// Its index among the files of its machine.
    pub index_on_machine: usize,
}

impl TraceFile {
    /// Opens the trace in an input.
    pub fn new(name: String, mut input: Input, settings: &Settings) -> Result<Self> {
        input.ensure_records(settings.limits)?;
        let trace = match input.trace(&settings.options(OrderCheck::Lookahead)) {
            Ok(trace) => trace,
            Err(error) if settings.mode == Mode::Strict => return Err(Error::Trace(error)),
            Err(error) => return Err(Error::Input(input.head().not_a_trace(&name, &error))),
        };
        let header = trace.header().clone();
        let clock = trace.clock();
        drop(trace);
        Ok(TraceFile {
            name,
            input,
            header,
            clock,
            machine: 0,
            index_on_machine: 0,
        })
    }

    /// Its records in time order.
    pub fn records(&mut self, options: &Options) -> Result<Records<AnySource<'_>>> {
        let trace = self.input.trace(options)?;
        Ok(trace.into_records(Order::Time)?)
    }
}

/// The processes, threads, code and schemas in the files of one machine.
#[derive(Debug)]
pub(super) struct MachineData {
    pub machine: Machine,
    pub schemas: SchemasOfTraces,
}

/// The opened files, and what was read of them as a whole.
#[derive(Debug)]
pub(super) struct Files {
    pub files: Vec<TraceFile>,
    pub settings: Settings,
    pub timeline: Timeline,
    /// By the number of the machine; `None` if its files cannot be read as a whole.
    pub machines: Vec<Option<MachineData>>,
    /// Which names the machines have, once they were read.
    prepared: Option<Naming>,
    /// The findings of the last pass that was completed.
    pub damage: Vec<Damage>,
    pub notes: Vec<Note>,
}

impl Files {
    /// Relates the files to each other: by their machines and their clocks.
    pub fn new(mut files: Vec<TraceFile>, settings: Settings) -> Self {
        let numbers = machines(files.iter().map(|file| &file.header));
        let mut counts: Vec<usize> = Vec::new();
        let mut clocks = Vec::new();
        for (file, machine) in files.iter_mut().zip(numbers) {
            if counts.len() <= machine {
                counts.resize(machine + 1, 0);
            }
            file.machine = machine;
            if let Some(count) = counts.get_mut(machine) {
                file.index_on_machine = *count;
                *count += 1;
            }
            clocks.push(MachineClock {
                machine,
                clock: file.clock,
            });
        }
        Files {
            files,
            settings,
            timeline: Timeline::of_machines(&clocks),
            machines: Vec::new(),
            prepared: None,
            damage: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads the files for their schemas and names, unless this was done before. A machine whose
    /// files cannot be read as a whole has none.
    pub fn prepare(&mut self, naming: Naming) {
        if self.prepared.is_some_and(|prepared| prepared >= naming) {
            return;
        }
        self.prepared = Some(naming);
        let last = self.files.iter().map(|file| file.machine).max();
        self.machines.clear();
        for number in 0..=last.unwrap_or(0) {
            let machine = self.read_machine(number, naming);
            self.machines.push(machine);
        }
    }

    fn read_machine(&mut self, number: usize, naming: Naming) -> Option<MachineData> {
        let Settings {
            limits,
            threads,
            store,
            ..
        } = &self.settings;
        let mut traces = Vec::new();
        for file in self.files.iter_mut().filter(|file| file.machine == number) {
            traces.push((file.input.source(), file.name.clone()));
        }
        let mut schemas = SchemasOfTraces::new(store.clone());
        let code = if naming == Naming::Addresses {
            Code::Read
        } else {
            Code::Skip
        };
        let machine = context::machine(traces, *limits, *threads, code, &mut schemas).ok()?;
        Some(MachineData { machine, schemas })
    }
}
