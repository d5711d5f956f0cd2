//! The traces of one `open`, and the names of their machines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use etl_analysis::Machine;
use etl_analysis::files::{MachineClock, Timeline, machines};
use etl_events::context::{self, Code, Context};
use etl_events::schemas::SchemasOfTraces;
use etl_format::read::{Limits, Options};
use etl_format::{Clock, ErrorKind};
use etl_schema::store::SchemaStore;
use self_cell::self_cell;

use crate::error::Fault;
use crate::input::Input;

type Contexts<'m> = Vec<Context<'m>>;

self_cell!(
    /// A machine, and the names that it has for the values of each of its traces.
    pub struct Named {
        owner: Machine,
        #[covariant]
        dependent: Contexts,
    }
);

/// The names for the events of one trace.
#[derive(Clone)]
pub struct Names {
    machine: Arc<Named>,
    /// The index of the trace among the traces of the machine.
    file: usize,
    schemas: SchemaStore,
}

impl Names {
    /// The names.
    pub fn context(&self) -> Option<&Context<'_>> {
        self.machine.borrow_dependent().get(self.file)
    }

    /// The schemas of the whole trace.
    pub fn schemas(&self) -> SchemaStore {
        self.schemas.clone()
    }
}

/// Opened traces, read as one recording.
pub struct Files {
    pub inputs: Vec<Input>,
    /// For each trace the number of its machine. Traces of one machine and boot name each other's
    /// processes.
    machines: Vec<usize>,
    /// How their times relate.
    pub timeline: Timeline,
    /// Threads that read.
    pub threads: usize,
    /// Bounds on memory.
    pub limits: Limits,
    names: OnceLock<Vec<Option<Names>>>,
    /// Held while the names are read.
    reading: Mutex<()>,
}

impl Files {
    pub fn new(inputs: Vec<Input>, threads: usize, limits: Limits) -> Self {
        let machines = machines(inputs.iter().map(|input| &input.header));
        let mut clocks = Vec::new();
        for (input, &machine) in inputs.iter().zip(&machines) {
            let clock = input.clock;
            clocks.push(MachineClock { machine, clock });
        }
        let timeline = Timeline::of_machines(&clocks);
        Files {
            inputs,
            machines,
            timeline,
            threads,
            limits,
            names: OnceLock::new(),
            reading: Mutex::new(()),
        }
    }

    /// The clock of each trace on the timeline of all traces.
    pub fn clocks(&self) -> impl Iterator<Item = Clock> {
        (0..self.inputs.len()).map(|file| self.timeline.clock_of(file))
    }

    /// How a trace is read.
    pub fn options(&self) -> Options {
        Options {
            threads: self.threads,
            limits: self.limits,
            ..Options::salvage()
        }
    }

    /// The names for the events of each trace; reads the traces the first time. A trace that cannot
    /// be read has no names. Call it without holding the interpreter.
    ///
    /// # Errors
    /// If they need more memory than is allowed.
    pub fn names(&self) -> Result<&[Option<Names>], Fault> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = self.read_names()?;
        Ok(self.names.get_or_init(|| names))
    }

    fn read_names(&self) -> Result<Vec<Option<Names>>, Fault> {
        let mut machines: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (file, &machine) in self.machines.iter().enumerate() {
            machines.entry(machine).or_default().push(file);
        }
        let mut all: Vec<Option<Names>> = vec![None; self.inputs.len()];
        for files in machines.values() {
            for (file, names) in files.iter().zip(self.read_names_of(files)?) {
                if let Some(slot) = all.get_mut(*file) {
                    *slot = Some(names);
                }
            }
        }
        Ok(all)
    }

    /// Reads the names of the traces of a machine. Returns none if the traces cannot be read.
    fn read_names_of(&self, files: &[usize]) -> Result<Vec<Names>, Fault> {
        let mut traces = Vec::new();
        for &file in files {
            if let Some(input) = self.inputs.get(file) {
                traces.push((input.source(), input.name.clone()));
            }
        }
        let mut schemas = SchemasOfTraces::new(store());
        let machine =
            match context::machine(traces, self.limits, self.threads, Code::Skip, &mut schemas) {
                Ok(machine) => machine,
                Err(error) => {
                    let file = files.get(error.file());
                    let input = file.and_then(|&file| self.inputs.get(file));
                    let name = input.map_or("", |input| &input.name);
                    let error = error.into_source();
                    if matches!(error.kind, ErrorKind::Budget { .. }) {
                        return Err(Fault::format(name, &error));
                    }
                    return Ok(Vec::new());
                }
            };
        let machine = Arc::new(Named::new(machine, |machine| {
            let indices = 0..files.len();
            indices
                .map(|file| Context::new(machine).file(file))
                .collect()
        }));
        let mut names = Vec::new();
        for file in 0..files.len() {
            names.push(Names {
                machine: Arc::clone(&machine),
                file,
                schemas: schemas.store(file),
            });
        }
        Ok(names)
    }
}

/// The schemas that every trace is read with.
pub fn store() -> SchemaStore {
    SchemaStore::default()
}
