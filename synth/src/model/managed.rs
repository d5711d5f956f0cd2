//! CLRs, app domains, assemblies, modules and methods.

use etl_format::Guid;

use crate::distribution::{Distribution, RandomRange};

/// The product of a CLR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sku {
    /// .NET Framework.
    Desktop,
    /// .NET Core and .NET 5 and later.
    #[default]
    Core,
}

/// A CLR in a process.
///
/// ```
/// use etl_synth::model::{AppDomainPlan, AssemblyPlan, ClrPlan, CodeKind, MethodPlan};
/// use etl_synth::model::{ModuleKind, ModulePlan, Sku};
///
/// let methods = MethodPlan::named("Shop.Program::Main", CodeKind::Precompiled);
/// let module = ModulePlan::new("C:\\Shop\\Shop.exe", ModuleKind::NGen).with_methods(methods);
/// let assembly = AssemblyPlan { signed: true, ..AssemblyPlan::new("Shop").with_module(module) };
/// let clr = ClrPlan::new(Sku::Desktop, [4, 8, 4000, 0])
///     .with_domain(AppDomainPlan::new("Shop.exe").with_assembly(assembly));
/// assert_eq!(clr.domains[0].assemblies[0].modules[0].methods[0].count, 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClrPlan {
    /// The product.
    pub sku: Sku,
    /// Its version: major, minor, build, revision.
    pub version: [u16; 4],
    /// Its instance id; chosen by the simulation when 0.
    pub instance: u16,
    /// Its app domains. Assemblies are loaded domain-neutral only in a domain that is
    /// [`AppDomainPlan::shared`].
    pub domains: Vec<AppDomainPlan>,
    /// Nanoseconds that an enumeration needs for each item.
    pub enumeration_cost: u64,
    /// Heaps: 1, or more with the server garbage collector.
    pub heaps: u32,
    /// Number of managed methods in a stack.
    pub stack_depth: RandomRange,
}

impl ClrPlan {
    /// A CLR of this product with no domain yet.
    #[must_use]
    pub fn new(sku: Sku, version: [u16; 4]) -> Self {
        ClrPlan {
            sku,
            version,
            instance: 0,
            domains: Vec::new(),
            enumeration_cost: 2_000,
            heaps: 1,
            stack_depth: RandomRange::new(2, 14, Distribution::Uniform),
        }
    }

    /// Adds an app domain.
    #[must_use]
    pub fn with_domain(mut self, domain: AppDomainPlan) -> Self {
        self.domains.push(domain);
        self
    }
}

/// An app domain.
#[derive(Clone, Debug, PartialEq)]
pub struct AppDomainPlan {
    /// Its name.
    pub name: String,
    /// Whether it is the shared domain of .NET Framework, whose assemblies belong to all domains.
    pub shared: bool,
    /// Whether it is created only by [`super::Work::LoadDomain`].
    pub late: bool,
    /// Its assemblies, in the order in which they are loaded.
    pub assemblies: Vec<AssemblyPlan>,
}

impl AppDomainPlan {
    /// A domain without assemblies that is created when the CLR starts.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        AppDomainPlan {
            name: name.into(),
            shared: false,
            late: false,
            assemblies: Vec::new(),
        }
    }

    /// Adds an assembly.
    #[must_use]
    pub fn with_assembly(mut self, assembly: AssemblyPlan) -> Self {
        self.assemblies.push(assembly);
        self
    }
}

/// An assembly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssemblyPlan {
    /// Its simple name.
    pub name: String,
    /// Its version.
    pub version: [u16; 4],
    /// Whether it is loaded only by [`super::Work::LoadAssembly`].
    pub late: bool,
    /// Whether it can be unloaded before its domain.
    pub collectible: bool,
    /// Whether it has a strong name, which .NET Framework verifies.
    pub signed: bool,
    /// Whether .NET Framework verifies the publisher of its file.
    pub authenticode: bool,
    /// Its modules; the first is the one with the manifest.
    pub modules: Vec<ModulePlan>,
}

impl AssemblyPlan {
    /// An assembly without modules.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        AssemblyPlan {
            name: name.into(),
            version: [1, 0, 0, 0],
            ..AssemblyPlan::default()
        }
    }

    /// Adds a module.
    #[must_use]
    pub fn with_module(mut self, module: ModulePlan) -> Self {
        self.modules.push(module);
        self
    }
}

/// How the code of a module was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleKind {
    /// IL only: everything is jitted.
    #[default]
    Il,
    /// It has a native image of .NET Framework.
    NGen,
    /// It contains ReadyToRun code of .NET Core.
    ReadyToRun,
    /// Created at run time, without a file.
    Dynamic,
}

/// Identity of a PDB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PdbPlan {
    /// Its signature; drawn by the simulation when zero.
    pub signature: Guid,
    /// Its age.
    pub age: u32,
    /// The path to which the compiler wrote it.
    pub path: String,
}

/// A module of an assembly.
#[derive(Clone, Debug, PartialEq)]
pub struct ModulePlan {
    /// Path of its IL.
    pub path: String,
    /// How its code was made.
    pub kind: ModuleKind,
    /// Identity of the compiler's PDB; `None`: the module has none.
    pub pdb: Option<PdbPlan>,
    /// Its methods.
    pub methods: Vec<MethodPlan>,
}

impl ModulePlan {
    /// A module with a PDB and no methods.
    #[must_use]
    pub fn new(path: impl Into<String>, kind: ModuleKind) -> Self {
        ModulePlan {
            path: path.into(),
            kind,
            pdb: Some(PdbPlan {
                age: 1,
                ..PdbPlan::default()
            }),
            methods: Vec::new(),
        }
    }

    /// Adds methods.
    #[must_use]
    pub fn with_methods(mut self, methods: MethodPlan) -> Self {
        self.methods.push(methods);
        self
    }
}

/// The origin of the code of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeKind {
    /// The JIT compiles it.
    #[default]
    Jitted,
    /// It is in the native image or the ReadyToRun code of its module.
    Precompiled,
    /// It is emitted at run time, and collected when it is unreachable.
    Dynamic,
    /// A generic instantiation, compiled by the JIT.
    Generic,
    /// A helper of the runtime itself.
    Helper,
}

/// One method, or a number of them.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodPlan {
    /// Full name, `Namespace.Type::Name`, of a single method; else the namespace of random names.
    pub name: String,
    /// Number of methods; 1 with a full name.
    pub count: u32,
    /// Number of methods that have code as soon as their module is loaded; the others wait for
    /// [`super::Work::Jit`].
    pub ready: u32,
    /// The origin of their code.
    pub kind: CodeKind,
    /// Size of their code in bytes.
    pub size: RandomRange,
    /// Whether they, or their types, are generic instances, whose events contain names at every
    /// level.
    pub generic: bool,
    /// Whether its precompiled code has a cold part far from the hot one. Compiled code has none.
    pub cold: bool,
}

impl MethodPlan {
    /// `count` methods with random names, all of them ready.
    ///
    /// ```
    /// use etl_synth::model::{CodeKind, MethodPlan};
    ///
    /// // Five of twenty wait for `Work::Jit`.
    /// let methods = MethodPlan { ready: 15, ..MethodPlan::many(20, CodeKind::Jitted) };
    /// assert_eq!(methods.count - methods.ready, 5);
    /// ```
    #[must_use]
    pub fn many(count: u32, kind: CodeKind) -> Self {
        MethodPlan {
            name: String::new(),
            count,
            ready: count,
            kind,
            generic: kind == CodeKind::Generic,
            size: RandomRange::new(32, 2048, Distribution::MostlyLow),
            cold: false,
        }
    }

    /// One method of this name, ready.
    #[must_use]
    pub fn named(name: impl Into<String>, kind: CodeKind) -> Self {
        MethodPlan {
            name: name.into(),
            ..MethodPlan::many(1, kind)
        }
    }
}
