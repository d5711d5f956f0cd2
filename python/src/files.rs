//! The traces of one `open`, and what they say of their machines.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use etl_format::read::Limits;
use etl_schema::store::SchemaStore;
use etl_tools::context::{self, Context, Machine};
use self_cell::self_cell;

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
}

impl Names {
    /// The names.
    pub fn context(&self) -> Option<&Context<'_>> {
        self.machine.borrow_dependent().get(self.file)
    }
}

/// Opened traces, read as one recording.
pub struct Files {
    pub inputs: Vec<Input>,
    /// Threads that read.
    pub threads: usize,
    names: OnceLock<Vec<Option<Names>>>,
    /// Held while the names are read.
    reading: Mutex<()>,
}

impl Files {
    pub fn new(inputs: Vec<Input>, threads: usize) -> Self {
        Files { inputs, threads, names: OnceLock::new(), reading: Mutex::new(()) }
    }

    /// What the names are, if they were read before.
    pub fn known_names(&self, file: usize) -> Option<&Option<Names>> {
        self.names.get()?.get(file)
    }

    /// The names for the events of each trace; reads the traces the first time. `None` where they
    /// cannot be read. Call it without holding the interpreter.
    pub fn names(&self) -> &[Option<Names>] {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.names.get_or_init(|| self.read_names())
    }

    fn read_names(&self) -> Vec<Option<Names>> {
        let mut all: Vec<Option<Names>> = self.inputs.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..self.inputs.len()).collect();
        while let Some(&first) = left.first() {
            // Traces of one machine since one start of it name each other's processes.
            let of = |file: usize| self.inputs.get(file).map(|input| input.machine);
            let same = |file: &usize| {
                *file == first || of(*file) == of(first) && of(first).is_some_and(|m| m.0 != 0)
            };
            let group: Vec<usize> = left.iter().copied().filter(same).collect();
            left.retain(|file| !group.contains(file));
            let traces = group.iter().filter_map(|&file| self.inputs.get(file));
            let traces = traces.map(|input| (input.source(), input.name.clone()));
            let Ok(machine) = context::machine(traces, Limits::default(), self.threads, false)
            else {
                continue;
            };
            let machine = Arc::new(Named::new(machine, |machine| {
                (0..group.len()).map(|file| Context::new(machine).file(file)).collect()
            }));
            for (place, file) in group.iter().enumerate() {
                if let Some(slot) = all.get_mut(*file) {
                    *slot = Some(Names { machine: Arc::clone(&machine), file: place });
                }
            }
        }
        all
    }
}

/// The schemas that every trace is read with.
pub fn store() -> SchemaStore {
    SchemaStore::default().with_windows_tables()
}
