//! The machine as the kernel's configuration events describe it: its name, processors, memory.
//!
//! The kernel's session logs them when it stops.
//!
//! ```no_run
//! use etl_analysis::behavior::hardware::Hardware;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut hardware = Hardware::new();
//! let machine = Analysis::new().run(&mut recording, &mut hardware)?;
//! println!("{}: {:?} processors", hardware.name(), hardware.processors());
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_schema::views::FieldReader;

use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};

/// Bytes of the name of the machine in its event.
const NAME: usize = 2 * 256;

/// What is known of the machine.
#[derive(Clone, Debug)]
pub struct Hardware {
    name: Box<str>,
    processors: Option<u32>,
    megahertz: Option<u32>,
    megabytes: Option<u32>,
    fields: FieldReader<4>,
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware::new()
    }
}

impl Hardware {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        let names = ["ComputerName", "NumberOfProcessors", "MHz", "MemSize"];
        let fields = FieldReader::of_hook(hook::CPU_CONFIG, names);
        Hardware {
            name: Box::default(),
            processors: None,
            megahertz: None,
            megabytes: None,
            fields,
        }
    }

    /// Name of the machine; empty if no event states it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its processors.
    #[must_use]
    pub fn processors(&self) -> Option<u32> {
        self.processors
    }

    /// Their frequency in MHz.
    #[must_use]
    pub fn megahertz(&self) -> Option<u32> {
        self.megahertz
    }

    /// Its memory in MB.
    #[must_use]
    pub fn megabytes(&self) -> Option<u32> {
        self.megabytes
    }
}

impl Observer for Hardware {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        if event.kind.hook() != Some(hook::CPU_CONFIG) {
            return;
        }
        let Some(fields) = self.fields.read(record) else {
            return;
        };
        let [_, processors, megahertz, megabytes] =
            std::array::from_fn(|at| u32::try_from(fields.uint(at)?).ok());
        self.processors = processors;
        self.megahertz = megahertz;
        self.megabytes = megabytes;
        let name = fields
            .from(0)
            .map(|bytes| text(bytes.get(..NAME).unwrap_or(bytes)));
        self.name = name.unwrap_or_default().into();
    }

    fn restart(&mut self) {
        *self = Hardware::new();
    }
}
