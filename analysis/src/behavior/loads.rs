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

use super::runtime_event;
use crate::keys::ProcessIndex;
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

/// Searches of a thread that can be open at the same time: one assembly needs another one.
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
    /// Its id in the CLR; `None` where only the search for an assembly was recorded.
    pub id: Option<u64>,
    /// The thread that loaded it.
    pub tid: Option<ThreadId>,
    /// When it was loaded, in ticks; of an assembly without an event of its load, when
    /// the search ended.
    pub loaded: Ticks,
    /// When it was unloaded; `None` where it was there to the end.
    pub unloaded: Option<Ticks>,
    /// Ticks from the beginning of the search for an assembly until it was loaded; `None` where no
    /// event states it.
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

/// Collects what the CLRs of a recording loaded.
#[derive(Clone, Debug)]
pub struct Loads {
    list: Vec<Load>,
    /// Indices of what is loaded, by process, CLR, kind and id.
    alive: HashMap<(ProcessIndex, u16, LoadKind, u64), usize>,
    /// Indices of the assemblies by process and name that lack a load or a search.
    halves: HashMap<(ProcessIndex, Box<str>), usize>,
    searches: HashMap<(ProcessIndex, Option<ThreadId>), Vec<Search>>,
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
        let reader = |id, names| FieldReader::of_event(CLR_RUNTIME, id, names);
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
            assembly: reader(
                ASSEMBLY_LOADED,
                ["AssemblyID", CLR, "FullyQualifiedAssemblyName"],
            ),
            domain: reader(DOMAIN_LOADED, ["AppDomainID", CLR, "AppDomainName"]),
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

    /// Something that the events of loads are about: its id, CLR, name and path.
    fn item(
        &mut self,
        kind: LoadKind,
        record: &Record<'_>,
    ) -> Option<(u64, u16, Box<str>, Box<str>)> {
        let reader = match kind {
            LoadKind::Module => {
                let fields = self.module.read(record)?;
                let (name, path) = (fields.text(2), fields.text(3));
                let [name, path] = [name, path].map(|t| text(t.unwrap_or_default()).into());
                return Some((
                    fields.uint(0)?,
                    fields.uint(1).unwrap_or(0) as u16,
                    name,
                    path,
                ));
            }
            LoadKind::Assembly => &mut self.assembly,
            LoadKind::Domain => &mut self.domain,
        };
        let fields = reader.read(record)?;
        let name = text(fields.text(2).unwrap_or_default()).into();
        Some((
            fields.uint(0)?,
            fields.uint(1).unwrap_or(0) as u16,
            name,
            Box::default(),
        ))
    }

    fn loaded(
        &mut self,
        kind: LoadKind,
        process: ProcessIndex,
        record: &Record<'_>,
        event: &EventRef,
    ) {
        let Some((id, clr, name, path)) = self.item(kind, record) else {
            return;
        };
        let half = (kind == LoadKind::Assembly).then(|| (process, name.clone()));
        // The search for it may have ended before.
        let found = half.as_ref().and_then(|half| self.halves.remove(half));
        if let Some(load) = found.and_then(|at| self.list.get_mut(at))
            && load.id.is_none()
        {
            (load.id, load.loaded) = (Some(id), event.time);
            self.alive
                .insert((process, clr, kind, id), found.unwrap_or(0));
            return;
        }
        let index = self.list.len();
        self.list.push(Load {
            process,
            clr,
            kind,
            id: Some(id),
            tid: event.tid,
            loaded: event.time,
            unloaded: None,
            duration: None,
            name,
            path,
            has_failed: false,
        });
        self.alive.insert((process, clr, kind, id), index);
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
        let Some((id, clr, ..)) = self.item(kind, record) else {
            return;
        };
        let index = self.alive.remove(&(process, clr, kind, id));
        if let Some(load) = index.and_then(|index| self.list.get_mut(index)) {
            load.unloaded = Some(time);
        }
    }

    fn search(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.started.read(record) else {
            return;
        };
        let name = fields.text(1).unwrap_or_default().into();
        let open = self.searches.entry((process, event.tid)).or_default();
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
        let search = self
            .searches
            .get_mut(&(process, event.tid))
            .and_then(|open| {
                let at = open.iter().rposition(|search| *search.name == *name)?;
                open.drain(at..).next()
            });
        // One that was loaded before is no load.
        if fields.uint(5).unwrap_or(0) != 0 {
            return;
        }
        let since = search.map(|search| search.since);
        let duration = since.map(|at| u64::try_from(event.time.saturating_since(at)).unwrap_or(0));
        let has_failed = fields.uint(2) == Some(0);
        let found = fields.text(3).filter(|found| !found.is_empty());
        let name: Box<str> = text(found.unwrap_or(name)).into();
        let path: Box<str> = text(fields.text(4).unwrap_or_default()).into();
        let key = (process, name);
        let known = self.halves.remove(&key).filter(|_| !has_failed);
        if let Some(load) = known.and_then(|at| self.list.get_mut(at))
            && since.is_none_or(|since| since <= load.loaded)
        {
            (load.duration, load.path) = (duration, path);
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
            name: key.1.clone(),
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
        let (Some(id), Some(process)) = (runtime_event(event), event.process) else {
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
