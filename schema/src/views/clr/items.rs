//! The objects of events of the CLR: methods, modules, assemblies and domains.

use etl_format::Guid;
use etl_format::constants::PointerSize;

use super::Enumeration;
use crate::decode::Decoder;
use crate::views::Pdb;
use crate::views::layout::{Layout, Position, view};

/// What happened to a domain, an assembly, a module or a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It was loaded at the time of the event.
    Load,
    /// It was unloaded at the time of the event.
    Unload,
    /// A rundown lists it.
    Rundown(Enumeration),
}

view! {
    /// Code of a method.
    Method, MethodLayout {
        /// Identifies the method within its CLR.
        id: u64 = "MethodID",
        /// The module, 0 for helpers.
        module: u64 = "ModuleID",
        /// First address of the code.
        start: u64 = "MethodStartAddress",
        /// Bytes of the code.
        size: u32 = "MethodSize",
        /// Flags: 1 dynamic, 2 generic, 4 shared generic, 8 jitted, 0x10 helper.
        flags: u32 = "MethodFlags",
    }
    /// Metadata token; 0 for methods without metadata.
    pub fn token: u32 = "MethodToken";
    fn version: u64 = "ReJITID";
    ;
    namespace = "MethodNamespace";
    name = "MethodName";
    signature = "MethodSignature";
}

/// Names of a method, and the version of its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodText<'a> {
    /// Metadata token.
    pub token: u32,
    /// Namespace and type, UTF-16; empty if the event has no names.
    pub namespace: &'a [u8],
    /// Name, UTF-16.
    pub name: &'a [u8],
    /// Signature, UTF-16.
    pub signature: &'a [u8],
    /// ReJIT id: the version of the method's code; `None` before version 2 of the event.
    pub version: Option<u64>,
}

impl<'a> Method<'a> {
    /// Whether it was created at run time (`DynamicMethod`).
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it was compiled at run time.
    #[must_use]
    pub const fn is_jitted(&self) -> bool {
        self.flags & 8 != 0
    }

    /// Whether the runtime names it at every level: dynamic, generic, or a helper.
    #[must_use]
    pub const fn is_always_named(&self) -> bool {
        self.flags & 0x17 != 0
    }

    /// Whether the event has the method's names (`MethodLoadVerbose` and the like).
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.at.name.is_known()
    }

    /// The names; `None` if the payload ends before the end of a name.
    #[must_use]
    pub fn text(&self) -> Option<MethodText<'a>> {
        let token = self.token()?;
        if !self.is_named() {
            return Some(MethodText {
                token,
                version: self.version(),
                ..MethodText::default()
            });
        }
        let positions = self.at;
        let mut walk = positions.layout.walk(self.payload);
        Some(MethodText {
            token,
            namespace: walk.text(positions.namespace)?,
            name: walk.text(positions.name)?,
            signature: walk.text(positions.signature)?,
            version: match positions.version.is_known() {
                true => walk.u64(positions.version),
                false => None,
            },
        })
    }
}

view! {
    /// A module. Its texts are read on demand.
    Module, ModuleLayout {
        /// Identifies it within its CLR.
        id: u64 = "ModuleID",
        /// Its assembly.
        assembly: u64 = "AssemblyID",
        /// Flags: 1 shared by domains, 2 has a native image, 4 dynamic, 8 manifest module, 0x20
        /// ready to run.
        flags: u32 = "ModuleFlags",
    }
    fn il_path: &'a [u8] = "ModuleILPath";
    pub(super) fn native_path: &'a [u8] = "ModuleNativePath";
    fn il_signature: Guid = "ManagedPdbSignature";
    fn il_age: u32 = "ManagedPdbAge";
    fn native_signature: Guid = "NativePdbSignature";
    fn native_age: u32 = "NativePdbAge";
    fn il_pdb_path: &'a [u8] = "ManagedPdbBuildPath";
    fn native_pdb_path: &'a [u8] = "NativePdbBuildPath";
}

/// Paths of a module and identities of its PDBs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleText<'a> {
    /// Path of its IL file, UTF-16.
    pub il_path: &'a [u8],
    /// Path of its native image, UTF-16; empty if it has none.
    pub native_path: &'a [u8],
    /// PDB of its IL, unless zero.
    pub il_pdb: Option<Pdb>,
    /// PDB of its native image, unless zero.
    pub native_pdb: Option<Pdb>,
    /// Path of the PDB of its IL, UTF-16; empty if the event does not have it.
    pub il_pdb_path: &'a [u8],
    /// Path of the PDB of its native image, UTF-16; empty if the event does not have it.
    pub native_pdb_path: &'a [u8],
}

impl<'a> Module<'a> {
    /// Whether this version of the event has identities of PDBs (version 2 and later).
    #[must_use]
    pub fn has_identity(&self) -> bool {
        self.at.il_signature.is_known()
    }

    /// Paths and PDBs; empty if the payload ends before the end of a path.
    #[must_use]
    pub fn text(&self) -> ModuleText<'a> {
        let Some(il_path) = self.il_path() else {
            return ModuleText::default();
        };
        let Some(native_path) = self.native_path() else {
            return ModuleText::default();
        };
        ModuleText {
            il_path,
            native_path,
            il_pdb: pdb(self.il_signature(), self.il_age()),
            native_pdb: pdb(self.native_signature(), self.native_age()),
            il_pdb_path: self.il_pdb_path().unwrap_or_default(),
            native_pdb_path: self.native_pdb_path().unwrap_or_default(),
        }
    }
}

/// The PDB of a module, unless its signature is missing or zero.
fn pdb(signature: Option<Guid>, age: Option<u32>) -> Option<Pdb> {
    let signature = signature?;
    let age = age?;
    if signature == Guid::ZERO {
        None
    } else {
        Some(Pdb { signature, age })
    }
}

view! {
    /// An assembly.
    Assembly, AssemblyLayout {
        /// Identifies it within its CLR.
        id: u64 = "AssemblyID",
        /// Its application domain.
        domain: u64 = "AppDomainID",
        /// Flags: 1 shared by domains, 2 dynamic, 4 has a native image, 8 collectible.
        flags: u32 = "AssemblyFlags",
    }
    /// Its full name, UTF-16.
    pub fn name: &'a [u8] = "FullyQualifiedAssemblyName";
}

view! {
    /// An application domain.
    AppDomain, AppDomainLayout {
        /// Identifies it within its CLR.
        id: u64 = "AppDomainID",
        /// Bits of `AppDomainFlags`.
        flags: u32 = "AppDomainFlags",
    }
    /// Its name, UTF-16.
    pub fn name: &'a [u8] = "AppDomainName";
}

impl AppDomain<'_> {
    /// Whether it is the one that lives as long as its CLR.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// A module as part of an application domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainModule {
    /// The module.
    pub module: u64,
    /// Its assembly.
    pub assembly: u64,
    /// The domain.
    pub domain: u64,
}
