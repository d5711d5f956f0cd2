//! The state of a CLR.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use etl_format::Guid;
use etl_schema::encode::OwnedValue;

use super::names;
use crate::distribution::RandomRange;
use crate::etw::ProviderIndex;
use crate::machine::{CodeHeap, Space};
use crate::model::{ClrPlan, CodeKind, MethodPlan, ModuleKind, Sku};
use crate::rng::{Rng, Source};
use crate::time::{MICROSECOND, Nanos};

/// Code runs this long after its load event: longer than a tick of the clocks, so that no stack
/// with it has the timestamp of that event.
const CALLED_AFTER: Nanos = MICROSECOND;

/// The token of the key that signed assemblies of the programs here are signed with.
const KEY_TOKEN: &str = "31bf3856ad364e35";
/// The flag of a module whose native image was optimized with a profile.
const IBC_OPTIMIZED: u32 = 0x10;
/// Offset of the first code in an image.
pub(super) const CODE_OFFSET: u64 = 0x1000;

/// An app domain.
#[derive(Clone, Debug)]
pub(crate) struct AppDomain {
    pub id: u64,
    pub index: u32,
    pub name: String,
    pub flags: u32,
    pub shared: bool,
    pub late: bool,
    pub loaded: bool,
    /// Whether its load event was raised.
    pub announced: bool,
    pub assemblies: Vec<usize>,
}

/// An assembly.
#[derive(Clone, Debug)]
pub(crate) struct Assembly {
    pub id: u64,
    pub binding: u64,
    pub domain: usize,
    pub simple_name: String,
    /// Whether its strong name, and the publisher of its file, are verified when it is loaded.
    pub signed: bool,
    pub authenticode: bool,
    /// The version in its files.
    pub file_version: String,
    /// The name with version, culture and key.
    pub name: String,
    pub flags: u32,
    pub late: bool,
    pub collectible: bool,
    pub loaded: bool,
    /// Whether the search for it ends only after its modules are loaded.
    pub is_searched: bool,
    pub modules: Vec<usize>,
}

/// Identity of a PDB, all zero where there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pdb {
    pub signature: Guid,
    pub age: u32,
    pub path: String,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub id: u64,
    pub assembly: usize,
    pub kind: ModuleKind,
    pub flags: u32,
    pub path: String,
    pub native_path: String,
    pub pdb: Pdb,
    pub native_pdb: Pdb,
    pub loaded: bool,
    pub methods: Vec<usize>,
    /// The image with its precompiled code, and how much of it is used.
    pub image: u64,
    pub image_used: u64,
    pub image_size: u64,
    /// Bytes of hot code in it, and bytes used of the cold code after it.
    pub hot_size: u64,
    pub cold_used: u64,
}

/// Code of a method: compiled once, and perhaps again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeBody {
    pub start: u64,
    pub size: u32,
    /// The cold part of precompiled code, far from the hot one.
    pub cold: Option<(u64, u32)>,
    /// 0 for the first code of a method; later code has an id in its events.
    pub rejit: u64,
    /// Tier bits of the flags.
    pub tier: u32,
    /// Offsets of IL and of native code that belong together.
    pub map_entries: u16,
    /// The time after its load event; until that event, the end of time.
    pub since: Nanos,
}

/// A method.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub id: u64,
    pub module: usize,
    pub token: u32,
    pub kind: CodeKind,
    pub generic: bool,
    pub namespace: String,
    pub name: String,
    pub signature: String,
    pub size: u32,
    pub il_size: u32,
    pub has_cold: bool,
    pub ready: bool,
    /// Whether calls of the script run a loop in it.
    pub has_loop: bool,
    /// Its code, oldest first; none before it ran, and none when its module is gone.
    pub bodies: Vec<CodeBody>,
    /// Its precompiled code in the image.
    pub precompiled: Option<CodeBody>,
    /// How often it was compiled again.
    pub later_versions: u64,
}

impl Method {
    /// Namespace, name and signature as fields of events.
    pub fn names(&self) -> [OwnedValue; 3] {
        [&self.namespace, &self.name, &self.signature].map(|text| text.as_str().into())
    }

    /// The id in its events. A helper is not a method of the program: its id is its start address.
    pub fn id_with(&self, body: &CodeBody) -> u64 {
        if self.kind == CodeKind::Helper {
            body.start
        } else {
            self.id
        }
    }

    /// Whether its events contain names at every level (rule E4).
    pub fn always_verbose(&self) -> bool {
        self.generic || matches!(self.kind, CodeKind::Dynamic | CodeKind::Helper)
    }

    /// The code that runs at a time: not what other processors are still compiling.
    pub fn body_at(&self, at: Nanos) -> Option<&CodeBody> {
        self.bodies
            .iter()
            .rfind(|body| body.since.saturating_add(CALLED_AFTER) <= at)
    }

    pub fn is_precompiled(&self) -> bool {
        self.kind == CodeKind::Precompiled
    }
}

/// A lock that threads have waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub id: u64,
    pub object: u64,
}

/// The thread pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    /// Threads that work.
    pub workers: u32,
    /// Threads that wait for input and output to end.
    pub io: u32,
    /// Threads that have no work and may end.
    pub retired_workers: u32,
    /// The same for the I/O threads.
    pub retired_io: u32,
    /// Threads that do not run because the processors are busy.
    pub suspended: Vec<u32>,
    /// Work that waits for a thread.
    pub waiting: u32,
    /// Whether its limits were reported.
    pub begun: bool,
}

/// A CLR.
#[derive(Debug, Default)]
pub(crate) struct Clr {
    pub sku: Sku,
    pub version: [u16; 4],
    pub instance: u16,
    pub enumeration_cost: Nanos,
    /// How often it has enumerated what it has, by the kind of enumeration.
    pub enumerations: [u64; 3],
    /// Number of managed methods in a stack.
    pub stack_depth: RandomRange,
    pub process: usize,
    /// Its index among all CLRs.
    pub index: usize,
    pub runtime: ProviderIndex,
    pub rundown: ProviderIndex,
    pub private: ProviderIndex,
    /// Whether its providers are registered and it is not stopping.
    pub started: bool,
    /// Whether it has reported its exit: what it unloads now has had its event.
    pub has_reported_exit: bool,
    pub domains: Vec<AppDomain>,
    pub assemblies: Vec<Assembly>,
    pub modules: Vec<Module>,
    pub methods: Vec<Method>,
    /// Methods that have not run yet, in the order in which they will.
    pub waiting: VecDeque<usize>,
    /// Methods that were compiled quickly and may be compiled again.
    pub quick: VecDeque<usize>,
    /// Methods that have code, for stacks.
    pub live: Vec<usize>,
    pub code: CodeHeap,
    /// Bytes of the runtime's image that helpers have taken.
    pub helpers_used: u64,
    pub dll: String,
    pub next_rejit: u64,
    pub heap: super::heap::Heap,
    pub pool: Pool,
    /// Managed threads, by index of the thread.
    pub threads: Vec<usize>,
    /// Their ids for the system.
    pub thread_ids: BTreeMap<usize, u32>,
    /// Stubs between managed and native code, by the method that they are for.
    pub stubs: BTreeMap<u64, u64>,
    pub locks: Vec<Lock>,
    /// Address of the handle table.
    pub handle_table: u64,
    /// Types that are loaded, by a hash of their names.
    pub types: BTreeSet<u64>,
    /// Methods compiled without optimization while background compilation waits; `None` if it does
    /// not.
    pub tiering_waits: Option<u32>,
    /// Methods that are compiled again when they were called often enough.
    pub tiering: super::call_counts::Tiering,
}

impl Clr {
    /// A CLR that has not started and has loaded nothing.
    pub fn new(
        plan: &ClrPlan,
        instance: u16,
        process: usize,
        index: usize,
        space: &mut Space,
        source: Source,
    ) -> Self {
        let mut clr = Clr {
            sku: plan.sku,
            version: plan.version,
            instance,
            enumeration_cost: plan.enumeration_cost,
            enumerations: [0; 3],
            stack_depth: plan.stack_depth,
            process,
            index,
            next_rejit: 1,
            heap: super::heap::Heap::new(plan.heaps, false),
            ..Clr::default()
        };
        clr.heap.pinned_heap = clr.is_core(5);
        clr.heap.rng = source.named("heap").rng();
        clr.dll = match plan.sku {
            Sku::Desktop => {
                "C:\\Windows\\Microsoft.NET\\Framework64\\v4.0.30319\\clr.dll".to_owned()
            }
            Sku::Core => {
                let [major, minor, build, _] = plan.version;
                format!(
                    "C:\\Program Files\\dotnet\\shared\\Microsoft.NETCore.App\\{major}.{minor}.{build}\\coreclr.dll"
                )
            }
        };
        clr.fill(plan, space, &mut source.named("program").rng());
        clr
    }

    fn fill(&mut self, plan: &ClrPlan, space: &mut Space, rng: &mut Rng) {
        let mut first = true;
        for domain_plan in &plan.domains {
            let domain = self.domains.len();
            let flags = if domain_plan.shared {
                4
            } else {
                2 | u32::from(std::mem::take(&mut first))
            };
            let index = self.domains.iter().filter(|d| !d.shared).count() as u32;
            self.domains.push(AppDomain {
                id: space.heap(0x400),
                index: if domain_plan.shared { 0 } else { index + 1 },
                name: domain_plan.name.clone(),
                flags,
                shared: domain_plan.shared,
                late: domain_plan.late,
                loaded: false,
                announced: false,
                assemblies: Vec::new(),
            });
            for assembly_plan in &domain_plan.assemblies {
                let assembly = self.assemblies.len();
                let [a, b, c, d] = assembly_plan.version;
                let modules = &assembly_plan.modules;
                let dynamic = modules.iter().any(|m| m.kind == ModuleKind::Dynamic);
                let native = modules.iter().any(|m| m.kind == ModuleKind::NGen);
                self.assemblies.push(Assembly {
                    id: space.heap(0x100),
                    binding: 0,
                    domain,
                    simple_name: assembly_plan.name.clone(),
                    file_version: format!("{a}.{b}.{c}.{d}"),
                    signed: assembly_plan.signed,
                    authenticode: assembly_plan.authenticode,
                    name: format!(
                        "{}, Version={a}.{b}.{c}.{d}, Culture=neutral, PublicKeyToken={}",
                        assembly_plan.name,
                        if assembly_plan.signed {
                            KEY_TOKEN
                        } else {
                            "null"
                        },
                    ),
                    flags: u32::from(domain_plan.shared)
                        | u32::from(dynamic) << 1
                        | u32::from(native) << 2
                        | u32::from(assembly_plan.collectible) << 3,
                    late: assembly_plan.late,
                    collectible: assembly_plan.collectible,
                    loaded: false,
                    is_searched: false,
                    modules: Vec::new(),
                });
                for (position, plan) in assembly_plan.modules.iter().enumerate() {
                    let module = self.modules.len();
                    let neutral = domain_plan.shared;
                    self.add_module(plan, assembly, position == 0, neutral, space, rng);
                    if let Some(owner) = self.assemblies.get_mut(assembly) {
                        owner.modules.push(module);
                    }
                    for methods in &plan.methods {
                        self.add_methods(methods, module, &assembly_plan.name, space, rng);
                    }
                    self.optimize_image(module);
                }
                if let Some(owner) = self.domains.get_mut(domain) {
                    owner.assemblies.push(assembly);
                }
            }
        }
    }

    fn add_module(
        &mut self,
        plan: &crate::model::ModulePlan,
        assembly: usize,
        manifest: bool,
        neutral: bool,
        space: &mut Space,
        rng: &mut Rng,
    ) {
        let stem = etl_format::file_name(&plan.path);
        let stem = stem
            .rsplit_once('.')
            .map_or(stem, |(stem, _)| stem)
            .to_owned();
        let native_path = match plan.kind {
            ModuleKind::NGen => {
                format!(
                    "C:\\Windows\\assembly\\NativeImages_v4.0.30319_64\\{stem}\\{:032x}\\{stem}.ni.dll",
                    u128::from(rng.bits()) << 64 | u128::from(rng.bits())
                )
            }
            _ => String::new(),
        };
        let flags = u32::from(neutral)
            | if manifest { 8 } else { 0 }
            | match plan.kind {
                ModuleKind::Il => 0,
                ModuleKind::NGen => 2,
                ModuleKind::ReadyToRun => 0x20,
                ModuleKind::Dynamic => 4,
            };
        let pdb = plan
            .pdb
            .as_ref()
            .filter(|_| plan.kind != ModuleKind::Dynamic)
            .map(|pdb| Pdb {
                signature: if pdb.signature.is_zero() {
                    rng.guid()
                } else {
                    pdb.signature
                },
                age: pdb.age.max(1),
                path: if pdb.path.is_empty() {
                    format!("C:\\build\\obj\\{stem}.pdb")
                } else {
                    pdb.path.clone()
                },
            });
        let native_pdb = if plan.kind == ModuleKind::NGen {
            Pdb {
                signature: rng.guid(),
                age: 1,
                path: format!("{stem}.ni.pdb"),
            }
        } else {
            Pdb::default()
        };
        self.modules.push(Module {
            id: space.region(0x1000),
            assembly,
            kind: plan.kind,
            flags,
            path: plan.path.clone(),
            native_path,
            pdb: pdb.unwrap_or_default(),
            native_pdb,
            image_used: CODE_OFFSET,
            ..Module::default()
        });
    }

    /// An image with cold code was optimized with a profile (IBC).
    fn optimize_image(&mut self, module: usize) {
        let Some(found) = self
            .modules
            .get_mut(module)
            .filter(|m| m.kind == ModuleKind::NGen)
        else {
            return;
        };
        let mut methods = found.methods.iter().filter_map(|m| self.methods.get(*m));
        if methods.any(|m| m.has_cold && m.is_precompiled()) {
            found.flags |= IBC_OPTIMIZED;
        }
    }

    fn add_methods(
        &mut self,
        plan: &MethodPlan,
        module: usize,
        assembly: &str,
        space: &mut Space,
        rng: &mut Rng,
    ) {
        let table = space.region(u64::from(plan.count) * 0x20);
        let named = plan.name.split_once("::").filter(|_| plan.count == 1);
        let root = if plan.name.is_empty() || named.is_some() {
            assembly
        } else {
            &plan.name
        };
        for number in 0..plan.count {
            let (namespace, name, signature) = match named {
                Some((namespace, name)) => {
                    (namespace.to_owned(), name.to_owned(), names::signature(rng))
                }
                None => names::method(root, plan.kind, number, rng),
            };
            let size = plan.size.draw(rng);
            let index = self.methods.len();
            let Some(owner) = self.modules.get_mut(module) else {
                return;
            };
            // Neither has metadata.
            let token = match plan.kind {
                CodeKind::Dynamic | CodeKind::Helper => 0,
                _ => 0x0600_0001 + owner.methods.len() as u32,
            };
            owner.methods.push(index);
            if plan.kind == CodeKind::Precompiled {
                let code = u64::from(size).next_multiple_of(16);
                owner.hot_size += code;
                owner.image_size += code * if plan.cold { 2 } else { 1 };
            }
            self.methods.push(Method {
                id: table + u64::from(number) * 0x20,
                module,
                token,
                kind: plan.kind,
                generic: plan.generic || plan.kind == CodeKind::Generic,
                namespace,
                name,
                signature,
                size: size.max(1),
                il_size: (size / 4).max(1),
                has_cold: plan.cold,
                ready: number < plan.ready,
                has_loop: false,
                bodies: Vec::new(),
                precompiled: None,
                later_versions: 0,
            });
        }
    }

    /// Whether it is .NET Core of this major version or a later one.
    pub fn is_core(&self, from: u16) -> bool {
        let [major, ..] = self.version;
        self.sku == Sku::Core && major >= from
    }

    /// Whether it is .NET Framework of this version or a later one.
    pub fn is_desktop(&self, major: u16, minor: u16) -> bool {
        let [has_major, has_minor, ..] = self.version;
        self.sku == Sku::Desktop && (has_major, has_minor) >= (major, minor)
    }

    /// The id of the first domain that is not shared.
    pub fn own_domain(&self) -> u64 {
        self.domains.iter().find(|d| !d.shared).map_or(0, |d| d.id)
    }

    /// Whether its thread pool raises the events from before the release of .NET Framework 4. The
    /// reference pages list them together with the later events.
    pub fn has_older_pool(&self) -> bool {
        let [major, minor, build, _] = self.version;
        self.sku == Sku::Desktop && (major, minor, build) < (4, 0, 30_319)
    }

    /// Whether it is .NET Framework 4.5 or later, or .NET Core.
    pub fn is_4_5(&self) -> bool {
        self.is_core(0) || self.is_desktop(4, 5)
    }

    /// Whether method events report rejit ids: since .NET Framework 4.6.
    pub fn counts_rejits(&self) -> bool {
        self.is_core(0) || self.is_desktop(4, 6)
    }

    /// Whether code is compiled quickly first and better later: since .NET Core 3.
    pub fn is_tiered(&self) -> bool {
        self.is_core(3)
    }

    /// Whether its EventPipe sessions end after the unloads of an exit, as in .NET 8 and .NET 10.
    /// .NET Core 3.1 ends them first, and unloads nothing while one runs.
    pub fn reports_exit_to_event_pipe(&self) -> bool {
        self.is_core(8)
    }

    /// A method of the program: none for helpers of the runtime.
    pub fn program_method(&self, index: usize) -> Option<&Method> {
        self.methods
            .get(index)
            .filter(|m| m.kind != CodeKind::Helper)
    }

    /// The id of a module, 0 for helpers.
    pub fn module_id(&self, method: &Method) -> u64 {
        match method.kind {
            CodeKind::Helper => 0,
            _ => self.modules.get(method.module).map_or(0, |m| m.id),
        }
    }
}
