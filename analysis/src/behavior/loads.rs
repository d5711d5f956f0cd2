//! What the CLRs of a recording loaded and when: domains, assemblies, modules.
//!
//! Needs the events of the CLR's runtime provider with the keyword Loader (0x8) at level 4. How
//! long the load of an assembly took is stated since .NET 5, with the keyword Fusion (0x4).
//! [`Machine::image_lives`] has the images, which are events of the kernel.
//!
//! ```no_run
//! use etl_analysis::behavior::loads::Loads;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut loads = Loads::new();
//! let machine = Analysis::new().run(&mut recording, &mut loads)?;
//! for load in loads.list() {
//!     println!("{}: {:?} {}", load.loaded, load.kind, load.name);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use super::{runtime_event, ticks_since};
use crate::keys::{ClrKey, ProcessIndex};
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};

pub(super) const MODULE_LOADED: u16 = 152;
const MODULE_UNLOADED: u16 = 153;
const ASSEMBLY_LOADED: u16 = 154;
const ASSEMBLY_UNLOADED: u16 = 155;
const DOMAIN_LOADED: u16 = 156;
const DOMAIN_UNLOADED: u16 = 157;
const SEARCH_STARTED: u16 = 290;
const SEARCH_ENDED: u16 = 291;

/// Searches of a thread that can be open at the same time: one assembly needs another.
const MAX_SEARCHES: usize = 256;

/// What was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LoadKind {
    /// An application domain.
    Domain,
    /// An assembly.
    Assembly,
    /// A module.
    Module,
}

impl LoadKind {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoadKind::Domain => "domain",
            LoadKind::Assembly => "assembly",
            LoadKind::Module => "module",
        }
    }
}

/// Something that a CLR loaded, or failed to load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// The process.
    pub process: ProcessIndex,
    /// The CLR of the process.
    pub clr: u16,
    /// What it is.
    pub kind: LoadKind,
    /// Its id in the CLR; `None` if only the search for an assembly was recorded.
    pub id: Option<u64>,
    /// The thread that loaded it.
    pub tid: Option<ThreadId>,
    /// When it was loaded, in ticks. For an assembly without an event of its load: when the search
    /// ended.
    pub loaded: Ticks,
    /// When it was unloaded; `None` if it was there to the end.
    pub unloaded: Option<Ticks>,
    /// Ticks from the beginning of the search for an assembly until it was loaded; `None` if no
    /// event has it.
    pub duration: Option<u64>,
    /// Name of a domain or of an assembly; path of the native image of a module.
    pub name: Box<str>,
    /// Path of a module, or of the file that was found for an assembly.
    pub path: Box<str>,
    /// Whether no assembly was found.
    pub has_failed: bool,
}

/// A search for an assembly that a thread began.
#[derive(Clone, Debug)]
struct Search {
    name: Box<[u8]>,
    since: Ticks,
}

/// What an event of a load or an unload is about.
#[derive(Clone, Debug)]
struct Item {
    id: u64,
    clr: u16,
    name: Box<str>,
    path: Box<str>,
}

impl Item {
    fn key(&self, process: ProcessIndex, kind: LoadKind) -> LoadKey {
        LoadKey {
            clr: ClrKey::new(process, self.clr),
            kind,
            id: self.id,
        }
    }
}

/// What distinguishes the loaded items of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LoadKey {
    clr: ClrKey,
    kind: LoadKind,
    id: u64,
}

/// An assembly of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AssemblyName {
    process: ProcessIndex,
    name: Box<str>,
}

/// A thread that searches for assemblies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Searcher {
    process: ProcessIndex,
    tid: Option<ThreadId>,
}

/// Collects what the CLRs of a recording loaded.
#[derive(Clone, Debug)]
pub struct Loads {
    list: Vec<Load>,
    /// Indices of what is loaded.
    alive: HashMap<LoadKey, usize>,
    /// Indices of the assemblies that lack a load or a search.
    halves: HashMap<AssemblyName, usize>,
    searches: HashMap<Searcher, Vec<Search>>,
    module: FieldReader<4>,
    assembly: FieldReader<3>,
    domain: FieldReader<3>,
    started: FieldReader<2>,
    ended: FieldReader<6>,
}

impl Default for Loads {
    fn default() -> Self {
        Loads::new()
    }
}

impl Loads {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        const CLR: &str = "ClrInstanceID";
        Loads {
            list: Vec::new(),
            alive: HashMap::default(),
            halves: HashMap::default(),
            searches: HashMap::default(),
            module: FieldReader::of_event(
                CLR_RUNTIME,
                MODULE_LOADED,
                ["ModuleID", CLR, "ModuleNativePath", "ModuleILPath"],
            ),
            assembly: FieldReader::of_event(
                CLR_RUNTIME,
                ASSEMBLY_LOADED,
                ["AssemblyID", CLR, "FullyQualifiedAssemblyName"],
            ),
            domain: FieldReader::of_event(
                CLR_RUNTIME,
                DOMAIN_LOADED,
                ["AppDomainID", CLR, "AppDomainName"],
            ),
            started: FieldReader::of_event(CLR_RUNTIME, SEARCH_STARTED, [CLR, "AssemblyName"]),
            ended: FieldReader::of_event(
                CLR_RUNTIME,
                SEARCH_ENDED,
                [
                    CLR,
                    "AssemblyName",
                    "Success",
                    "ResultAssemblyName",
                    "ResultAssemblyPath",
                    "Cached",
                ],
            ),
        }
    }

    /// What was loaded, in the order in which it was.
    #[must_use]
    pub fn list(&self) -> &[Load] {
        &self.list
    }

    /// The item that an event of a load is about.
    fn item(&mut self, kind: LoadKind, record: &Record<'_>) -> Option<Item> {
        let reader = match kind {
            LoadKind::Module => {
                let fields = self.module.read(record)?;
                return Some(Item {
                    id: fields.uint(0)?,
                    clr: fields.uint(1).unwrap_or(0) as u16,
                    name: text(fields.text(2).unwrap_or_default()).into(),
                    path: text(fields.text(3).unwrap_or_default()).into(),
                });
            }
            LoadKind::Assembly => &mut self.assembly,
            LoadKind::Domain => &mut self.domain,
        };
        let fields = reader.read(record)?;
        Some(Item {
            id: fields.uint(0)?,
            clr: fields.uint(1).unwrap_or(0) as u16,
            name: text(fields.text(2).unwrap_or_default()).into(),
            path: Box::default(),
        })
    }

    fn loaded(
        &mut self,
        kind: LoadKind,
        process: ProcessIndex,
        record: &Record<'_>,
        event: &EventRef,
    ) {
        let Some(item) = self.item(kind, record) else {
            return;
        };
        let key = item.key(process, kind);
        let half = (kind == LoadKind::Assembly).then(|| AssemblyName {
            process,
            name: item.name.clone(),
        });
        // The search for it may have ended before.
        let found = half.as_ref().and_then(|half| self.halves.remove(half));
        if let Some(load) = found.and_then(|at| self.list.get_mut(at))
            && load.id.is_none()
        {
            load.id = Some(item.id);
            load.loaded = event.time;
            self.alive.insert(key, found.unwrap_or(0));
            return;
        }
        let index = self.list.len();
        self.list.push(Load {
            process,
            clr: item.clr,
            kind,
            id: Some(item.id),
            tid: event.tid,
            loaded: event.time,
            unloaded: None,
            duration: None,
            name: item.name,
            path: item.path,
            has_failed: false,
        });
        self.alive.insert(key, index);
        if let Some(half) = half {
            self.halves.insert(half, index);
        }
    }

    fn unloaded(
        &mut self,
        kind: LoadKind,
        process: ProcessIndex,
        record: &Record<'_>,
        time: Ticks,
    ) {
        let Some(item) = self.item(kind, record) else {
            return;
        };
        let index = self.alive.remove(&item.key(process, kind));
        if let Some(load) = index.and_then(|index| self.list.get_mut(index)) {
            load.unloaded = Some(time);
        }
    }

    fn search(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.started.read(record) else {
            return;
        };
        let name = fields.text(1).unwrap_or_default().into();
        let searcher = Searcher {
            process,
            tid: event.tid,
        };
        let open = self.searches.entry(searcher).or_default();
        if open.len() < MAX_SEARCHES {
            open.push(Search {
                name,
                since: event.time,
            });
        }
    }

    fn searched(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.ended.read(record) else {
            return;
        };
        let name = fields.text(1).unwrap_or_default();
        let searcher = Searcher {
            process,
            tid: event.tid,
        };
        let search = self.searches.get_mut(&searcher).and_then(|open| {
            let at = open.iter().rposition(|search| *search.name == *name)?;
            open.drain(at..).next()
        });
        // The assembly was loaded before.
        if fields.uint(5).unwrap_or(0) != 0 {
            return;
        }
        let since = search.map(|search| search.since);
        let duration = since.map(|since| ticks_since(since, event.time));
        let has_failed = fields.uint(2) == Some(0);
        let found = fields.text(3).filter(|found| !found.is_empty());
        let name: Box<str> = text(found.unwrap_or(name)).into();
        let path: Box<str> = text(fields.text(4).unwrap_or_default()).into();
        let key = AssemblyName { process, name };
        let known = self.halves.remove(&key).filter(|_| !has_failed);
        if let Some(load) = known.and_then(|at| self.list.get_mut(at))
            && since.is_none_or(|since| since <= load.loaded)
        {
            load.duration = duration;
            load.path = path;
            return;
        }
        let index = self.list.len();
        self.list.push(Load {
            process,
            clr: fields.uint(0).unwrap_or(0) as u16,
            kind: LoadKind::Assembly,
            id: None,
            tid: event.tid,
            loaded: event.time,
            unloaded: None,
            duration,
            name: key.name.clone(),
            path,
            has_failed,
        });
        if !has_failed {
            self.halves.insert(key, index);
        }
    }
}

impl Observer for Loads {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        let Some(process) = event.process else {
            return;
        };
        match id {
            MODULE_LOADED => self.loaded(LoadKind::Module, process, record, event),
            MODULE_UNLOADED => self.unloaded(LoadKind::Module, process, record, event.time),
            ASSEMBLY_LOADED => self.loaded(LoadKind::Assembly, process, record, event),
            ASSEMBLY_UNLOADED => self.unloaded(LoadKind::Assembly, process, record, event.time),
            DOMAIN_LOADED => self.loaded(LoadKind::Domain, process, record, event),
            DOMAIN_UNLOADED => self.unloaded(LoadKind::Domain, process, record, event.time),
            SEARCH_STARTED => self.search(process, record, event),
            SEARCH_ENDED => self.searched(process, record, event),
            _ => {}
        }
    }

    fn restart(&mut self) {
        *self = Loads::new();
    }
}
