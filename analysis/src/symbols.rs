//! What is at an address of a process at a time: a method with its module, or an image.
//!
//! A rundown at the end of a recording explains the samples before it, so addresses are looked up
//! after the recording was read: [`Machine::symbols`] finds the owner of an address at a time. Code
//! that was unloaded and the code that was loaded there later are two owners. The owner is a
//! method, if an event places one there at that time; else an image of the process, else an image
//! of the kernel.
//!
//! ```no_run
//! use etl_analysis::symbols::Symbol;
//! use etl_analysis::{Analysis, Recording};
//! use etl_format::read::FileSource;
//! use etl_format::{ProcessId, Ticks};
//!
//! let file = FileSource::new(std::fs::File::open("trace.etl")?)?;
//! let mut recording = Recording::open([(file, "trace.etl")])?;
//! let machine = Analysis::new().with_names().run(&mut recording, &mut ())?;
//! // A process id, an address, and the time of the record that names it.
//! match machine.symbols().at(ProcessId::new(4312), 0x7ffd_1234_5678, Ticks::new(15_223_344)) {
//!     Some(Symbol::Method(method)) => {
//!         let module = method.module.map_or("?", |m| m.path);
//!         println!("{module}!{}.{} version {:?}", method.namespace, method.name, method.version);
//!     }
//!     Some(Symbol::Image(image)) => println!("{}+{:#x}", image.path, image.offset),
//!     _ => println!("not in any known method, module or image"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod functions;

use std::fmt;

use etl_format::{ProcessId, Ticks, file_name};
use etl_schema::views::Pdb;

use crate::Machine;
use crate::address::{History, Range, Tag};
use crate::keys::{ClrKey, ProcessIndex};
use crate::machine::Holders;
use crate::machine::images::ImageId;
use crate::machine::names::{ModuleNames, Names, tier_of};

pub use crate::machine::names::{ImageFunction, tier_name};
pub use functions::{Function, FunctionNames, FunctionOffset, SourceLine};

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Symbol<'a> {
    /// Code of a method.
    Method(Method<'a>),
    /// A native image, and no known method.
    Image(Image<'a>),
}

/// Code of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method<'a> {
    /// The CLR of the process that it belongs to.
    pub clr: u16,
    /// Identifies the method within its CLR (`MethodID`).
    pub id: u64,
    /// Metadata token; 0 for a method without metadata.
    pub token: u32,
    /// Namespace and type; empty if no event names the method.
    pub namespace: &'a str,
    /// Name; empty if no event names the method. The token and the module identify it then.
    pub name: &'a str,
    /// Signature; empty if no event names the method.
    pub signature: &'a str,
    /// The version of the method's code (`ReJITID`): 0 for the first, another number for code that
    /// a tier or a profiler had compiled later. `None` if the events are too old to have it.
    pub version: Option<u64>,
    /// Whether the code was compiled at run time.
    pub jitted: bool,
    /// Number of the tier of its code, for [`tier_name`]; 0 if none is stated.
    pub tier: u8,
    /// Whether the method was made at run time and has no metadata.
    pub dynamic: bool,
    /// First address of this piece of code: a method may have a hot and a cold one.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Timestamp of its load; `None` if only a rundown lists it.
    pub from: Option<Ticks>,
    /// Timestamp of its unload; `None` if it was there to the end.
    pub to: Option<Ticks>,
    /// Its module; `None` for helpers of the runtime, and if no event is about the module.
    pub module: Option<Module<'a>>,
}

/// A module of a CLR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// Identifies it within its CLR (`ModuleID`).
    pub id: u64,
    /// Path of its IL; the name if the module was made at run time.
    pub path: &'a str,
    /// Path of its native image; empty if it has none.
    pub native_path: &'a str,
    /// PDB of its IL.
    pub il_pdb: Option<Pdb>,
    /// PDB of its native image.
    pub native_pdb: Option<Pdb>,
    /// Full name of its assembly; empty if no event is about the assembly.
    pub assembly: &'a str,
    /// Name of its application domain; empty if no event is about the domain.
    pub domain: &'a str,
}

/// A module of a CLR with its lifetime, from [`Symbols::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleLife<'a> {
    /// Its CLR.
    pub clr: ClrKey,
    /// The module.
    pub module: Module<'a>,
    /// Time of its load; `None` if it was there when the recording began.
    pub loaded: Option<Ticks>,
    /// Time of its unload; `None` if it was there to the end.
    pub unloaded: Option<Ticks>,
}

/// Code of a method with its process, from [`Symbols::methods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessMethod<'a> {
    /// The process.
    pub process: ProcessIndex,
    /// The code.
    pub method: Method<'a>,
}

/// A native image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Path of its file; empty if no event states it.
    pub path: &'a str,
    /// Its first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Offset of the looked-up address from its first address.
    pub offset: u64,
    /// Whether it is an image of the kernel, which all processes see.
    pub kernel: bool,
    /// Its PDB, if a merge recorded it, or a stream of `collect-linux`.
    pub pdb: Option<Pdb>,
    /// The function at the looked-up address, if the recording names it.
    pub function: Option<ImageFunction<'a>>,
}

impl<'a> Method<'a> {
    /// Its full name, `Namespace.Type.Method`; its metadata token if no event names it.
    #[must_use]
    pub fn label(&self) -> MethodLabel<'a> {
        MethodLabel {
            namespace: self.namespace,
            name: self.name,
            token: self.token,
        }
    }
}

/// The full name of a method, from [`Method::label`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodLabel<'a> {
    namespace: &'a str,
    name: &'a str,
    token: u32,
}

impl fmt::Display for MethodLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.namespace, self.name) {
            ("", "") => write!(f, "{:#010x}", self.token),
            ("", name) => f.write_str(name),
            (namespace, name) => write!(f, "{namespace}.{name}"),
        }
    }
}

impl<'a> Symbol<'a> {
    /// File name of the module or of the image; `?` if it is not known.
    #[must_use]
    pub fn file_name(&self) -> &'a str {
        let path = match self {
            Symbol::Method(method) => method.module.map_or("", |module| module.path),
            Symbol::Image(image) => image.path,
        };
        match file_name(path) {
            "" => "?",
            name => name,
        }
    }
}

impl fmt::Display for Symbol<'_> {
    /// `module!Namespace.Type.Method`, `image!function` if the recording names the function, or
    /// `image+0x1234`; files without their paths.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file_name();
        match self {
            Symbol::Method(method) => write!(f, "{file}!{}", method.label()),
            Symbol::Image(image) => match image.function {
                Some(function) => write!(f, "{file}!{}", function.name),
                None => write!(f, "{file}+{:#x}", image.offset),
            },
        }
    }
}

impl Machine {
    /// Finds what is at addresses. Names are empty unless
    /// [`Analysis::names`](crate::Analysis::with_names) keeps them.
    #[must_use]
    pub fn symbols(&self) -> Symbols<'_> {
        let mut spaces = Vec::with_capacity(self.processes.len());
        for process in &self.processes {
            spaces.push(AddressSpace {
                code: process.code.history(),
                images: process.images.history(),
            });
        }
        Symbols {
            machine: self,
            by_pid: Holders::new(self.processes.iter().map(|p| (p.pid, p.started))),
            spaces,
            kernel: self.kernel_images().history(),
        }
    }
}

/// Finds the method, module or image at an address.
///
/// ```
/// use etl_analysis::{Machine, ProcessIndex};
///
/// /// The methods of a process, by the addresses at which their code begins.
/// fn methods(machine: &Machine, process: ProcessIndex) -> Vec<(u64, String)> {
///     let symbols = machine.symbols();
///     let methods = symbols.methods().filter(|code| code.process == process);
///     methods.map(|code| (code.method.start, code.method.label().to_string())).collect()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    machine: &'a Machine,
    /// Who had the ids of processes.
    by_pid: Holders<ProcessId>,
    /// By process.
    spaces: Vec<AddressSpace<'a>>,
    kernel: History<'a>,
}

/// What was ever at the addresses of a process.
#[derive(Clone, Debug)]
struct AddressSpace<'a> {
    code: History<'a>,
    images: History<'a>,
}

impl<'a> Symbols<'a> {
    /// What was at an address of a process at a time; `None` if no method and no image was there.
    #[must_use]
    pub fn at(&self, pid: ProcessId, address: u64, timestamp: Ticks) -> Option<Symbol<'a>> {
        if let Some(index) = self.by_pid.at(pid, timestamp)
            && let Some(space) = self.spaces.get(index)
        {
            if let Some(range) = space.code.range(address, timestamp, timestamp) {
                let process = ProcessIndex::new(index);
                return Some(Symbol::Method(self.method(process, &range, timestamp)?));
            }
            if let Some(range) = space.images.range(address, timestamp, timestamp) {
                return Some(Symbol::Image(self.image(address, &range)));
            }
        }
        let range = self.kernel.range(address, timestamp, timestamp)?;
        Some(Symbol::Image(self.image(address, &range)))
    }

    /// All code of methods: by process, in the order of the times of the loads.
    pub fn methods(&self) -> impl Iterator<Item = ProcessMethod<'a>> + '_ {
        let processes = self.machine.indexed_processes();
        processes.flat_map(move |(index, process)| {
            let mut ranges: Vec<_> = process.code.all().collect();
            ranges.sort_unstable_by_key(|range| (range.from, range.start, range.to));
            ranges.into_iter().filter_map(move |range| {
                let time = range.from.or(range.to).unwrap_or(Ticks::MAX);
                let method = self.method(index, &range, time)?;
                Some(ProcessMethod {
                    process: index,
                    method,
                })
            })
        })
    }

    /// All modules that events state, by CLR and id.
    pub fn modules(&self) -> impl Iterator<Item = ModuleLife<'a>> + '_ {
        let all = self.names().map(Names::modules).into_iter().flatten();
        all.filter_map(|(clr, id, names)| {
            Some(ModuleLife {
                clr,
                module: self.module_of(clr, id, names)?,
                loaded: names.from,
                unloaded: names.to,
            })
        })
    }

    fn names(&self) -> Option<&'a Names> {
        self.machine.names.as_ref()
    }

    fn method(&self, process: ProcessIndex, range: &Range, timestamp: Ticks) -> Option<Method<'a>> {
        let names = self.names()?;
        let clr = ClrKey::new(process, range.tag.instance);
        let method = names.method_at(range.tag.id)?;
        let [namespace, name, signature] = names.names_of(method);
        Some(Method {
            clr: clr.clr,
            id: method.id,
            token: method.token,
            namespace,
            name,
            signature,
            version: method.version,
            jitted: range.tag.has(Tag::JITTED),
            tier: tier_of(method.flags),
            dynamic: range.tag.has(Tag::DYNAMIC),
            start: range.start,
            end: range.end,
            from: range.from,
            to: range.to,
            module: self.module(clr, method.module, timestamp),
        })
    }

    fn module(&self, clr: ClrKey, id: u64, timestamp: Ticks) -> Option<Module<'a>> {
        self.module_of(clr, id, self.names()?.module_at(clr, id, timestamp)?)
    }

    fn module_of(&self, clr: ClrKey, id: u64, module: &ModuleNames) -> Option<Module<'a>> {
        let names = self.names()?;
        let [path, native_path] = names.paths_of(module);
        let assembly = names.assembly(clr, module.assembly).unwrap_or_default();
        Some(Module {
            id,
            path,
            native_path,
            il_pdb: module.il_pdb,
            native_pdb: module.native_pdb,
            assembly: assembly.name,
            domain: names.domain(clr, assembly.domain).unwrap_or_default(),
        })
    }

    fn image(&self, address: u64, range: &Range) -> Image<'a> {
        let image = self.machine.images.get(range.tag.id);
        let pdb = match image.and_then(|image| image.id) {
            Some(ImageId::Pdb(pdb)) => Some(pdb),
            _ => None,
        };
        let names = self.names();
        Image {
            path: names.map_or("", |names| names.image_path(range.tag.id)),
            start: range.start,
            end: range.end,
            offset: address.saturating_sub(range.start),
            kernel: image.is_some_and(crate::machine::images::Image::is_kernel),
            pdb,
            function: names.and_then(|names| names.function_at(range.tag.id, address)),
        }
    }
}
