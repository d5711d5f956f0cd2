//! Frames: what addresses of stacks are, by name.

use std::ops::Range;
use std::sync::Arc;

use etl_format::file_name;
use etl_schema::views::Pdb;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::symbols::{Function, SourceLine, Symbol};

/// The name of what is not in any known method, module or image.
pub(super) const UNKNOWN: &str = "?";

/// What a frame is.
///
/// ```
/// use etl_analysis::profile::FrameKind;
///
/// assert!(FrameKind::Jitted.is_managed());
/// assert_eq!(FrameKind::Kernel.name(), "kernel");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// A method of a CLR; only with [`Detail::Methods`].
    Managed,
    /// Code of a method that was compiled at run time; not with [`Detail::Methods`].
    Jitted,
    /// Code of a method that was compiled before; not with [`Detail::Methods`].
    Precompiled,
    /// An image of the process, and no known method.
    Native,
    /// An image of the kernel.
    Kernel,
    /// In no known method, module or image.
    Unknown,
}

impl FrameKind {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FrameKind::Managed => "managed",
            FrameKind::Jitted => "jitted",
            FrameKind::Precompiled => "precompiled",
            FrameKind::Native => "native",
            FrameKind::Kernel => "kernel",
            FrameKind::Unknown => "unknown",
        }
    }

    /// Whether it is a method of the CLR.
    #[must_use]
    pub const fn is_managed(self) -> bool {
        matches!(
            self,
            FrameKind::Managed | FrameKind::Jitted | FrameKind::Precompiled
        )
    }
}

/// A module or an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ModuleInfo {
    /// File name; `?` where it is not known.
    pub name: Box<str>,
    /// Path; not with [`Detail::Methods`], like the others.
    pub path: Box<str>,
    /// PDB, where it is known.
    pub pdb: Option<Pdb>,
    /// The addresses of an image; `None` for a module of a CLR.
    pub addresses: Option<Range<u64>>,
}

/// What an address of a stack is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// Index of its module in [`Profile::modules`](super::Profile::modules).
    pub module: usize,
    /// Namespace, type and name of a method; `?` where no method is known.
    pub method: Box<str>,
    /// What it is.
    pub kind: FrameKind,
    /// Tier of jitted code, as [`Method::tier`](crate::symbols::Method::tier); 0 of all else.
    pub tier: u8,
    /// Its address, where frames have one: see [`Detail`].
    pub address: Option<u64>,
    /// Path of its source file, where that is known and frames have one: see [`Detail::Lines`].
    pub file: Option<Arc<str>>,
    /// Line in the source file, from 1.
    pub line: Option<u32>,
}

/// What is one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// All addresses of a method, by its name and the name of its module; all addresses of an image
    /// that are in no method. Addresses of one image that follow each other in a stack, without a
    /// known method, are one frame.
    #[default]
    Methods,
    /// As [`Detail::Methods`], with a frame for each source line of a method that
    /// PDBs have.
    Lines,
    /// Each address, with its source line. Where functions were inlined, an address is several
    /// frames.
    Addresses,
    /// Each address that is in no method; all addresses of a method with one tier, by its name and
    /// its module.
    NativeAddresses,
}

/// Where a text of the machine lies: it keeps each text once, and texts do not move while a profile
/// is made.
type TextKey = (usize, usize);

fn text_key(text: &str) -> TextKey {
    (text.as_ptr() as usize, text.len())
}

/// A method of a module: namespace, name, token.
type MethodKey = (usize, TextKey, TextKey, u32);

/// A module by its path: PDB, addresses, and whether these count.
type ModuleKey = (TextKey, Option<Pdb>, Option<Range<u64>>, bool);

/// What a frame is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameKey<'a> {
    pub symbol: Option<&'a Symbol<'a>>,
    pub address: u64,
    /// Whether the address is an address of the kernel.
    pub is_kernel: bool,
    /// The function in the image there, from a PDB.
    pub function: Option<&'a Function>,
    /// The source line in the method, from a PDB.
    pub line: Option<&'a SourceLine>,
}

/// Frames and modules, each kept once.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    pub frames: IndexSet<Frame, RandomState>,
    pub modules: Vec<ModuleInfo>,
    module_numbers: HashMap<ModuleInfo, usize>,
    /// Modules and methods that were asked for before: names are made once.
    known_modules: HashMap<ModuleKey, usize>,
    known_methods: HashMap<MethodKey, usize>,
}

impl FrameTable {
    /// The number of a frame.
    pub fn number(&mut self, key: &FrameKey<'_>, detail: Detail) -> usize {
        let FrameKey {
            symbol,
            address,
            is_kernel,
            function,
            line,
        } = *key;
        let is_exact = matches!(detail, Detail::Addresses | Detail::NativeAddresses);
        let (mut tier, mut known) = (0, None);
        let (module, method, kind) = match symbol {
            Some(Symbol::Method(method)) => {
                let (path, pdb) = method.module.map_or(("", None), |m| (m.path, m.il_pdb));
                let module = self.module(path, pdb, None, is_exact);
                if is_exact && method.jitted {
                    tier = method.tier;
                }
                if detail == Detail::Methods {
                    let texts = (text_key(method.namespace), text_key(method.name));
                    let key = (module, texts.0, texts.1, method.token);
                    if let Some(&number) = self.known_methods.get(&key) {
                        return number;
                    }
                    known = Some(key);
                }
                let kind = match (is_exact, method.jitted) {
                    (false, _) => FrameKind::Managed,
                    (true, true) => FrameKind::Jitted,
                    (true, false) => FrameKind::Precompiled,
                };
                (module, method.label().to_string(), kind)
            }
            Some(Symbol::Image(image)) => {
                let range = Some(image.start..image.end);
                let module = self.module(image.path, image.pdb, range, is_exact);
                let kind = if is_kernel {
                    FrameKind::Kernel
                } else {
                    FrameKind::Native
                };
                let name = function.map_or(UNKNOWN, |function| &function.name);
                (module, name.to_owned(), kind)
            }
            None => (
                self.module("", None, None, false),
                UNKNOWN.to_owned(),
                FrameKind::Unknown,
            ),
        };
        let has_address = match detail {
            Detail::Methods | Detail::Lines => false,
            Detail::Addresses => true,
            Detail::NativeAddresses => !kind.is_managed(),
        };
        let address = has_address.then_some(address);
        let line = line.or(function.and_then(|function| function.source.as_ref()));
        let line = line.filter(|_| detail == Detail::Lines || address.is_some());
        let (file, line) = (
            line.map(|line| Arc::clone(&line.file)),
            line.map(|line| line.line),
        );
        let frame = Frame {
            module,
            method: method.into(),
            kind,
            tier,
            address,
            file,
            line,
        };
        let (number, _) = self.frames.insert_full(frame);
        if let Some(key) = known {
            self.known_methods.insert(key, number);
        }
        number
    }

    /// The number of a module: by its file name alone unless it `is_exact`.
    fn module(
        &mut self,
        path: &str,
        pdb: Option<Pdb>,
        addresses: Option<Range<u64>>,
        is_exact: bool,
    ) -> usize {
        let parts = if is_exact {
            (pdb, addresses)
        } else {
            (None, None)
        };
        let key = (text_key(path), parts.0, parts.1.clone(), is_exact);
        if let Some(&number) = self.known_modules.get(&key) {
            return number;
        }
        let number = self.new_module(path, parts, is_exact);
        self.known_modules.insert(key, number);
        number
    }

    fn new_module(
        &mut self,
        path: &str,
        (pdb, addresses): (Option<Pdb>, Option<Range<u64>>),
        is_exact: bool,
    ) -> usize {
        let name: Box<str> = match file_name(path) {
            "" => UNKNOWN.into(),
            name => name.into(),
        };
        let path = if is_exact { path } else { "" };
        let module = ModuleInfo {
            name,
            path: path.into(),
            pdb,
            addresses,
        };
        let mut key = module.clone();
        if !is_exact {
            key.name = key.name.to_lowercase().into();
        }
        if let Some(&number) = self.module_numbers.get(&key) {
            return number;
        }
        self.modules.push(module);
        self.module_numbers.insert(key, self.modules.len() - 1);
        self.modules.len() - 1
    }
}
