//! Frames: what addresses of stacks are, by name.

use std::ops::Range;
use std::sync::Arc;

use etl_format::file_name;
use etl_schema::views::Pdb;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::symbols::{Function, Image, Method, SourceLine, Symbol};

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
    /// The type of allocated objects, as the innermost frame.
    Type,
    /// Not in any known method, module or image.
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
            FrameKind::Type => "type",
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
    /// File name; `?` if it is not known.
    pub name: Box<str>,
    /// Path; with [`Detail::Methods`] empty, like the other fields.
    pub path: Box<str>,
    /// PDB, if it is known.
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
    /// Namespace, type and name of a method; `?` if no method is known.
    pub method: Box<str>,
    /// What it is.
    pub kind: FrameKind,
    /// Tier of jitted code, as [`Method::tier`](crate::symbols::Method::tier); 0 for other frames.
    pub tier: u8,
    /// Its address, if frames have one: see [`Detail`].
    pub address: Option<u64>,
    /// Path of its source file, if it is known and frames have one: see [`Detail::Lines`].
    pub file: Option<Arc<str>>,
    /// Line in the source file, from 1.
    pub line: Option<u32>,
}

/// Which code is one frame.
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
    /// Each address, with its source line. An address with inlined functions is several frames.
    Addresses,
    /// Each address that is in no method; all addresses of a method with one tier, by its name and
    /// its module.
    NativeAddresses,
}

/// The place of a text in memory: the machine keeps each text once, and texts do not move while a
/// profile is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TextKey {
    address: usize,
    len: usize,
}

impl TextKey {
    fn new(text: &str) -> Self {
        TextKey {
            address: text.as_ptr() as usize,
            len: text.len(),
        }
    }
}

/// A method of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct MethodKey {
    module: usize,
    namespace: TextKey,
    name: TextKey,
    token: u32,
}

/// A module, as [`FrameTable::module`] looks it up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ModuleKey {
    path: TextKey,
    pdb: Option<Pdb>,
    addresses: Option<Range<u64>>,
    is_exact: bool,
}

/// The first part of a frame: its module, method and kind.
struct Code {
    module: usize,
    method: String,
    kind: FrameKind,
    tier: u8,
}

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

impl<'a> FrameKey<'a> {
    /// The source line of the method, or of the function.
    fn source_line(&self) -> Option<&'a SourceLine> {
        match (self.line, self.function) {
            (Some(line), _) => Some(line),
            (None, Some(function)) => function.source.as_ref(),
            (None, None) => None,
        }
    }
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
        let is_exact = matches!(detail, Detail::Addresses | Detail::NativeAddresses);
        let mut method_key = None;
        let code = match key.symbol {
            Some(Symbol::Method(method)) => {
                let (path, pdb) = method.module.map_or(("", None), |m| (m.path, m.il_pdb));
                let module = self.module(path, pdb, None, is_exact);
                if detail == Detail::Methods {
                    let key = MethodKey {
                        module,
                        namespace: TextKey::new(method.namespace),
                        name: TextKey::new(method.name),
                        token: method.token,
                    };
                    if let Some(&number) = self.known_methods.get(&key) {
                        return number;
                    }
                    method_key = Some(key);
                }
                method_code(method, module, is_exact)
            }
            Some(Symbol::Image(image)) => self.image_code(image, key, is_exact),
            None => Code {
                module: self.module("", None, None, false),
                method: UNKNOWN.to_owned(),
                kind: FrameKind::Unknown,
                tier: 0,
            },
        };
        let has_address = match detail {
            Detail::Methods | Detail::Lines => false,
            Detail::Addresses => true,
            Detail::NativeAddresses => !code.kind.is_managed(),
        };
        let line = if has_address || detail == Detail::Lines {
            key.source_line()
        } else {
            None
        };
        let frame = Frame {
            module: code.module,
            method: code.method.into(),
            kind: code.kind,
            tier: code.tier,
            address: if has_address { Some(key.address) } else { None },
            file: line.map(|line| Arc::clone(&line.file)),
            line: line.map(|line| line.line),
        };
        let (number, _) = self.frames.insert_full(frame);
        if let Some(key) = method_key {
            self.known_methods.insert(key, number);
        }
        number
    }

    /// The number of the frame of a type of objects.
    pub fn type_number(&mut self, name: &str) -> usize {
        let frame = Frame {
            module: self.module("", None, None, false),
            method: if name.is_empty() { UNKNOWN } else { name }.into(),
            kind: FrameKind::Type,
            tier: 0,
            address: None,
            file: None,
            line: None,
        };
        let (number, _) = self.frames.insert_full(frame);
        number
    }

    /// The code of a function in an image.
    fn image_code(&mut self, image: &Image<'_>, key: &FrameKey<'_>, is_exact: bool) -> Code {
        let addresses = Some(image.start..image.end);
        let name = match (key.function, image.function) {
            (Some(function), _) => &function.name,
            (None, Some(function)) => function.name,
            (None, None) => UNKNOWN,
        };
        Code {
            module: self.module(image.path, image.pdb, addresses, is_exact),
            method: name.to_owned(),
            kind: if key.is_kernel {
                FrameKind::Kernel
            } else {
                FrameKind::Native
            },
            tier: 0,
        }
    }

    /// The number of a module: by its file name alone unless it `is_exact`.
    fn module(
        &mut self,
        path: &str,
        pdb: Option<Pdb>,
        addresses: Option<Range<u64>>,
        is_exact: bool,
    ) -> usize {
        let key = ModuleKey {
            path: TextKey::new(path),
            pdb: pdb.filter(|_| is_exact),
            addresses: addresses.filter(|_| is_exact),
            is_exact,
        };
        if let Some(&number) = self.known_modules.get(&key) {
            return number;
        }
        let number = self.new_module(path, &key);
        self.known_modules.insert(key, number);
        number
    }

    fn new_module(&mut self, path: &str, key: &ModuleKey) -> usize {
        let name: Box<str> = match file_name(path) {
            "" => UNKNOWN.into(),
            name => name.into(),
        };
        let module = ModuleInfo {
            name,
            path: if key.is_exact { path.into() } else { "".into() },
            pdb: key.pdb,
            addresses: key.addresses.clone(),
        };
        let mut folded = module.clone();
        if !key.is_exact {
            folded.name = folded.name.to_lowercase().into();
        }
        if let Some(&number) = self.module_numbers.get(&folded) {
            return number;
        }
        let number = self.modules.len();
        self.modules.push(module);
        self.module_numbers.insert(folded, number);
        number
    }
}

/// The code of a method. Exact frames have its tier and how it was compiled.
fn method_code(method: &Method<'_>, module: usize, is_exact: bool) -> Code {
    let kind = match (is_exact, method.jitted) {
        (false, _) => FrameKind::Managed,
        (true, true) => FrameKind::Jitted,
        (true, false) => FrameKind::Precompiled,
    };
    let tier = match kind {
        FrameKind::Jitted => method.tier,
        _ => 0,
    };
    Code {
        module,
        method: method.label().to_string(),
        kind,
        tier,
    }
}
