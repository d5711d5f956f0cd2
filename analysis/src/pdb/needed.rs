//! The PDBs that a recording needs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use etl_format::constants::hook;
use etl_format::cursor::Cursor;
use etl_format::read::Record;
use etl_format::{ProcessId, Ticks, file_name};
use etl_schema::views::merge::ImageStamp;
use etl_schema::views::{Pdb, kernel};

use super::{PdbId, image_server_path};
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::machine::images::ImageId;
use crate::observe::{EventRef, Observer, Sample, Stack};
use crate::symbols::{ModuleLife, Symbol};

/// Collects how often each address is in samples and stacks, and finds the PDBs of their code.
///
/// ```no_run
/// use etl_analysis::pdb::CodeAddresses;
/// use etl_analysis::{Analysis, Recording};
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let mut addresses = CodeAddresses::default();
/// let machine = Analysis::new().run(&mut recording, &mut addresses)?;
/// for needed in addresses.needed_pdbs(&machine, None).list {
///     let path = needed.server_path(&machine);
///     println!("{} addresses: {}", needed.addresses, path.unwrap_or_default());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CodeAddresses {
    counts: HashMap<CodeAddress, Occurrences>,
    message_pdbs: BTreeSet<PdbId>,
}

/// An address of a process, given by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CodeAddress {
    process: Option<ProcessIndex>,
    address: u64,
}

/// How often an address is in samples and stacks, and when last.
#[derive(Clone, Copy, Debug, Default)]
struct Occurrences {
    count: u64,
    last: Ticks,
}

/// The PDBs of a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NeededPdbs {
    /// The PDBs of all images and modules, the ones with the most addresses first. PDBs without
    /// addresses are not needed to name the code of samples and stacks.
    pub list: Vec<NeededPdb>,
    /// The PDBs of the programs that logged WPP messages, as the trace names them (`DbgIdRSDS`).
    /// Private ones have the formats of the messages ([`message_formats`](super::message_formats)).
    pub messages: Vec<PdbId>,
    /// Addresses of samples and stacks in images whose PDB is unknown.
    pub unidentified_addresses: u64,
}

/// A PDB, and the image or module whose code it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeededPdb {
    /// Identity of the PDB.
    pub pdb: Pdb,
    /// Path of the image or module, as the traced machine has it.
    pub path: String,
    /// Whether it describes .NET code.
    pub is_managed: bool,
    /// Addresses of samples and stacks in the code.
    pub addresses: u64,
    /// The identity of the image's file.
    stamp: Option<ImageStamp>,
}

impl CodeAddresses {
    fn add(&mut self, event: &EventRef, addresses: impl Iterator<Item = u64>) {
        for address in addresses {
            let key = CodeAddress {
                process: event.process,
                address,
            };
            let occurrences = self.counts.entry(key).or_default();
            occurrences.count += 1;
            occurrences.last = event.time;
        }
    }

    /// The PDBs of the images and modules of selected processes, by index, or of all processes.
    #[must_use]
    pub fn needed_pdbs(
        &self,
        machine: &Machine,
        processes: Option<&BTreeSet<ProcessIndex>>,
    ) -> NeededPdbs {
        let mut pdbs = Pdbs {
            machine,
            processes,
            by_id: BTreeMap::new(),
        };
        pdbs.add_images();
        pdbs.add_modules();
        let unidentified_addresses = pdbs.count(&self.counts);
        let mut list: Vec<NeededPdb> = pdbs.by_id.into_values().collect();
        list.sort_by_cached_key(|needed| {
            let path = machine.pdb_path(needed.pdb).to_lowercase();
            (Reverse(needed.addresses), path, needed.pdb)
        });
        NeededPdbs {
            list,
            messages: self.message_pdbs.iter().cloned().collect(),
            unidentified_addresses,
        }
    }
}

/// Most PDBs of WPP messages that are kept.
const MAX_MESSAGE_PDBS: usize = 1 << 12;

/// The PDB that an event of the trace names, for the formats of WPP messages.
fn message_pdb(record: &Record<'_>) -> Option<PdbId> {
    if kernel::hook_of(record)? != hook::DBGID_RSDS {
        return None;
    }
    let mut payload = Cursor::new(record.payload());
    let guid = payload.guid()?;
    let age = payload.u32()?;
    let name = payload.rest();
    let end = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(name.len());
    let name = String::from_utf8_lossy(name.get(..end)?);
    Some(PdbId::new(&name, guid, age))
}

impl Observer for CodeAddresses {
    fn record(&mut self, _: &Machine, record: &Record<'_>, _: &EventRef) {
        if let Some(pdb) = message_pdb(record)
            && self.message_pdbs.len() < MAX_MESSAGE_PDBS
        {
            self.message_pdbs.insert(pdb);
        }
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        if sample.frames.iter().next() != Some(sample.address) {
            self.add(&sample.event, std::iter::once(sample.address));
        }
        self.add(&sample.event, sample.frames.iter());
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        self.add(&stack.event, stack.frames.iter());
    }

    fn restart(&mut self) {
        self.counts.clear();
        self.message_pdbs.clear();
    }
}

impl NeededPdb {
    fn new(pdb: Pdb) -> Self {
        NeededPdb {
            pdb,
            path: String::new(),
            is_managed: false,
            addresses: 0,
            stamp: None,
        }
    }

    /// Path of the PDB below the address of a symbol server; `None` if its name is unknown.
    #[must_use]
    pub fn server_path(&self, machine: &Machine) -> Option<String> {
        let id = PdbId::of_machine(machine, self.pdb);
        if id.name().is_empty() {
            None
        } else {
            Some(id.server_path())
        }
    }

    /// Path of the portable PDB below the address of a symbol server, if it may be a portable PDB.
    #[must_use]
    pub fn portable_server_path(&self, machine: &Machine) -> Option<String> {
        // Compilers of .NET write the age 1 for a portable PDB.
        if !self.is_managed || self.pdb.age != 1 {
            return None;
        }
        let id = PdbId::of_machine(machine, self.pdb);
        if id.name().is_empty() {
            None
        } else {
            Some(id.portable_server_path())
        }
    }

    /// Path of the image below the address of a symbol server, if the recording states when it was
    /// linked.
    #[must_use]
    pub fn image_server_path(&self) -> Option<String> {
        let ImageStamp { link_time, size } = self.stamp?;
        let image = file_name(&self.path);
        if image.is_empty() {
            None
        } else {
            Some(image_server_path(image, link_time, size))
        }
    }
}

/// The PDBs of the selected processes.
struct Pdbs<'m> {
    machine: &'m Machine,
    processes: Option<&'m BTreeSet<ProcessIndex>>,
    by_id: BTreeMap<Pdb, NeededPdb>,
}

impl Pdbs<'_> {
    fn is_selected(&self, process: ProcessIndex) -> bool {
        self.processes
            .is_none_or(|processes| processes.contains(&process))
    }

    /// Adds the PDB of an image or module.
    fn add(&mut self, pdb: Pdb, path: &str) -> &mut NeededPdb {
        let needed = self.by_id.entry(pdb).or_insert_with(|| NeededPdb::new(pdb));
        if needed.path.is_empty() {
            needed.path = self.machine.user_path(path).into_owned();
        }
        needed
    }

    fn add_images(&mut self) {
        for image in self.machine.image_lives() {
            let Some(ImageId::Pdb(pdb)) = image.id else {
                continue;
            };
            if self.is_selected(image.process) {
                let needed = self.add(pdb, image.path);
                needed.stamp = needed.stamp.or(image.stamp);
            }
        }
    }

    fn add_modules(&mut self) {
        let symbols = self.machine.symbols();
        for ModuleLife { clr, module, .. } in symbols.modules() {
            if !self.is_selected(clr.process) {
                continue;
            }
            if let Some(pdb) = module.il_pdb {
                self.add(pdb, module.path).is_managed = true;
            }
            if let Some(pdb) = module.native_pdb {
                self.add(pdb, module.native_path);
            }
        }
    }

    /// Adds the addresses to the PDBs of their code. Returns how many are in images whose PDB is
    /// unknown.
    fn count(&mut self, counts: &HashMap<CodeAddress, Occurrences>) -> u64 {
        let symbols = self.machine.symbols();
        let mut unidentified = 0;
        for (code, occurrences) in counts {
            if code
                .process
                .is_some_and(|process| !self.is_selected(process))
            {
                continue;
            }
            let process = code.process.and_then(|index| self.machine.process(index));
            let pid = process.map_or(ProcessId::UNKNOWN, |process| process.pid());
            let pdb = match symbols.at(pid, code.address, occurrences.last) {
                Some(Symbol::Image(image)) => {
                    if image.pdb.is_none() {
                        unidentified += occurrences.count;
                    }
                    image.pdb
                }
                Some(Symbol::Method(method)) => method.module.and_then(|module| module.il_pdb),
                _ => None,
            };
            if let Some(pdb) = pdb
                && let Some(needed) = self.by_id.get_mut(&pdb)
            {
                needed.addresses += occurrences.count;
            }
        }
        unidentified
    }
}
