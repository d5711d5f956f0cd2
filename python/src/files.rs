//! The traces of one `open`, and what they say of their machines.

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

/// The names for the events of one trace: its machine, and its place among the traces of that.
#[derive(Clone)]
pub struct Names {
    machine: Arc<Named>,
    file: usize,
    schemas: SchemaStore,
}

impl Names {
    /// The names.
    pub fn context(&self) -> Option<&Context<'_>> {
        self.machine.borrow_dependent().get(self.file)
    }

    /// The schemas for the events, known from the start.
    pub fn schemas(&self) -> SchemaStore {
        self.schemas.clone()
    }
}

/// Opened traces, read as one recording.
pub struct Files {
    pub inputs: Vec<Input>,
    /// For each trace the number of its machine: those of one machine since one start of it name
    /// each other's processes.
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
        let (names, reading) = (OnceLock::new(), Mutex::new(()));
        Files {
            inputs,
            machines,
            timeline,
            threads,
            limits,
            names,
            reading,
        }
    }

    /// The clock of each trace by which its times stand on one timeline with those of the others.
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

    /// What the names are, if they were read before.
    pub fn known_names(&self, file: usize) -> Option<&Option<Names>> {
        self.names.get()?.get(file)
    }

    /// The names for the events of each trace; reads the traces the first time. `None` where they
    /// cannot be read. Call it without holding the interpreter.
    ///
    /// # Errors
    /// When they need more memory than is allowed.
    pub fn names(&self) -> Result<&[Option<Names>], Fault> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = self.read_names()?;
        Ok(self.names.get_or_init(|| names))
    }

    fn read_names(&self) -> Result<Vec<Option<Names>>, Fault> {
        let mut all: Vec<Option<Names>> = self.inputs.iter().map(|_| None).collect();
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (file, &machine) in self.machines.iter().enumerate() {
            groups.entry(machine).or_default().push(file);
        }
        for group in groups.into_values() {
            let traces = group.iter().filter_map(|&file| self.inputs.get(file));
            let traces = traces.map(|input| (input.source(), input.name.clone()));
            let mut schemas = SchemasOfTraces::new(store());
            let (limits, threads) = (self.limits, self.threads);
            let machine = match context::machine(traces, limits, threads, Code::Skip, &mut schemas)
            {
                Ok(machine) => machine,
                Err(error) => {
                    let name = group
                        .get(error.file())
                        .and_then(|&file| self.inputs.get(file));
                    let name = name.map_or("", |input| &input.name);
                    let error = error.into_source();
                    if matches!(error.kind, ErrorKind::Budget { .. }) {
                        return Err(Fault::format(name, &error));
                    }
                    continue;
                }
            };
            let machine = Arc::new(Named::new(machine, |machine| {
                (0..group.len())
                    .map(|file| Context::new(machine).file(file))
                    .collect()
            }));
            for (place, file) in group.iter().enumerate() {
                if let Some(slot) = all.get_mut(*file) {
                    let (machine, schemas) = (Arc::clone(&machine), schemas.store(place));
                    *slot = Some(Names {
                        machine,
                        file: place,
                        schemas,
                    });
                }
            }
        }
        Ok(all)
    }
}

/// The schemas that every trace is read with.
pub fn store() -> SchemaStore {
    SchemaStore::default()
}
