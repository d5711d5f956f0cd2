//! What is known of one process.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::clr::{ClrEvent, FromClr, Rundown, Via};
use super::ranges::Ranges;

/// Where addresses come from. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Stacks that the CLR logs after its events.
    ClrStack,
    /// Stacks in extended data items.
    ExtendedStack,
    /// Stacks that the kernel logs.
    KernelStack,
    /// Sampled instruction pointers.
    Sample,
}

impl Origin {
    /// All of them, in the order of the report.
    pub const ALL: [Origin; 4] =
        [Origin::ClrStack, Origin::ExtendedStack, Origin::KernelStack, Origin::Sample];
}

/// What addresses resolved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stacks, or samples.
    pub stacks: u64,
    /// Addresses in them.
    pub frames: u64,
    /// Addresses in a managed method.
    pub managed: u64,
    /// Addresses in a native image of the process or of the kernel.
    pub image: u64,
    /// Addresses in neither.
    pub unresolved: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.stacks += other.stacks;
        self.frames += other.frames;
        self.managed += other.managed;
        self.image += other.image;
        self.unresolved += other.unresolved;
    }
}

/// Tallies by origin.
pub type Tallies = [Tally; 4];

/// An address that no managed code was known to cover when it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// How often it was seen inside an image, by origin. Code of a precompiled method is told of
    /// later and lies in an image, too.
    pub in_image: [u64; 4],
    /// How often it was seen outside all images, by origin.
    pub nowhere: [u64; 4],
    /// Stamp of the first time.
    pub first: i64,
    /// Stamp of the last time.
    pub last: i64,
}

/// When and how often an address was seen.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// How often.
    pub count: u64,
    /// Stamp of the first time.
    pub first: i64,
    /// Stamp of the last time.
    pub last: i64,
    /// Whether an image covered it.
    pub in_image: bool,
}

/// A rundown's bracket: from its Init to its Complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// Which enumeration.
    pub kind: Rundown,
    /// The CLR.
    pub instance: u16,
    /// Stamp of Init, if there was one.
    pub opened: Option<i64>,
    /// Stamp of Complete, if there was one.
    pub closed: Option<i64>,
    /// Whether another bracket of its kind was open already.
    pub nested: bool,
}

/// What is known of one kind of thing in a process.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// All that were told of, by id and instance (and place, for code).
    pub known: BTreeSet<(u64, u64)>,
    /// Events of enumerations.
    pub enumerated: u64,
    /// Events of loads.
    pub loaded: u64,
    /// Events of unloads.
    pub unloaded: u64,
}

impl Seen {
    fn note(&mut self, via: Via, key: (u64, u64)) {
        match via {
            Via::Load => self.loaded += 1,
            Via::Unload => self.unloaded += 1,
            Via::Enumerated(_) => self.enumerated += 1,
        }
        self.known.insert(key);
    }
}

/// A CLR in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clr {
    /// Its version, where it told.
    pub version: Option<[u16; 4]>,
    /// 1 for the desktop framework, 2 for Core.
    pub sku: Option<u16>,
}

/// What is known of one process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// File name of its image.
    pub name: String,
    /// When it started, if that was inside the trace.
    pub started: Option<i64>,
    /// When it ended, if that was inside the trace.
    pub ended: Option<i64>,
    /// Its CLRs, by instance.
    pub clrs: BTreeMap<u16, Clr>,
    /// Events of the CLR's two providers.
    pub clr_events: u64,
    /// Brackets of rundowns, in the order in which they appeared.
    pub brackets: Vec<Bracket>,
    /// Rundown events outside every bracket of their kind and instance, and the first one's stamp.
    pub outside: u64,
    /// Stamp of the first rundown event outside.
    pub first_outside: Option<i64>,
    /// Code of methods.
    pub methods: Seen,
    /// Modules.
    pub modules: Seen,
    /// Assemblies.
    pub assemblies: Seen,
    /// Application domains.
    pub app_domains: Seen,
    /// Methods whose module is not 0 and has not been told of, resolved at the end.
    pub method_modules: BTreeSet<(u16, u64)>,
    /// Managed code by address.
    pub code: Ranges,
    /// Native images by address.
    pub images: Ranges,
    /// What the addresses resolved to.
    pub tallies: Tallies,
    /// Addresses that nothing covered yet.
    pub pending: HashMap<u64, Pending>,
}

impl Process {
    /// Whether the process ran managed code, as far as the trace tells.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.clr_events > 0
    }

    /// Takes in an event of the CLR.
    pub fn clr_event(&mut self, from: &FromClr, stamp: i64) {
        self.clr_events += 1;
        // Events that do not name their CLR (version 0) are those of a process's only one.
        let instance = from.instance.unwrap_or(0);
        if from.instance.is_some() || from.event != ClrEvent::Other {
            self.clrs.entry(instance).or_default();
        }
        let keyed = |id: u64| (id, u64::from(instance));
        match from.event {
            ClrEvent::Init(kind) => {
                let nested = self.open_bracket(kind, instance).is_some();
                let opened = Some(stamp);
                self.brackets.push(Bracket { kind, instance, opened, closed: None, nested });
            }
            ClrEvent::Complete(kind) => match self.open_bracket(kind, instance) {
                Some(bracket) => bracket.closed = Some(stamp),
                None => {
                    let closed = Some(stamp);
                    self.brackets.push(Bracket {
                        kind,
                        instance,
                        opened: None,
                        closed,
                        nested: false,
                    });
                }
            },
            ClrEvent::Runtime { version, sku } => {
                let clr = self.clrs.entry(instance).or_default();
                (clr.version, clr.sku) = (Some(version), Some(sku));
            }
            ClrEvent::Method(via, method) => {
                self.methods.note(via, (method.id, method.start));
                if method.module != 0 {
                    self.method_modules.insert((instance, method.module));
                }
                let (start, size) = (method.start, u64::from(method.size));
                match via {
                    Via::Load => self.code.add(start, size, Some(stamp)),
                    Via::Unload => self.code.remove(start, size, stamp),
                    Via::Enumerated(_) => self.code.add(start, size, None),
                }
                self.inside(via, instance, stamp);
            }
            ClrEvent::Module(via, module, _) => {
                self.modules.note(via, keyed(module));
                self.inside(via, instance, stamp);
            }
            ClrEvent::DomainModule(via, _) => self.inside(via, instance, stamp),
            ClrEvent::Assembly(via, assembly) => {
                self.assemblies.note(via, keyed(assembly));
                self.inside(via, instance, stamp);
            }
            ClrEvent::AppDomain(via, domain) => {
                self.app_domains.note(via, keyed(domain));
                self.inside(via, instance, stamp);
            }
            ClrEvent::Stack | ClrEvent::Other => {}
        }
    }

    fn open_bracket(&mut self, kind: Rundown, instance: u16) -> Option<&mut Bracket> {
        self.brackets.iter_mut().rev().find(|b| {
            b.kind == kind && b.instance == instance && b.opened.is_some() && b.closed.is_none()
        })
    }

    /// An enumerated thing should stand in a bracket.
    fn inside(&mut self, via: Via, instance: u16, stamp: i64) {
        if let Via::Enumerated(kind) = via
            && self.open_bracket(kind, instance).is_none()
        {
            self.outside += 1;
            self.first_outside.get_or_insert(stamp);
        }
    }

    /// Methods whose module has not been told of, by module.
    #[must_use]
    pub fn unknown_modules(&self) -> usize {
        let known = |&&(instance, module): &&(u16, u64)| {
            self.modules.known.contains(&(module, instance.into()))
        };
        self.method_modules.iter().filter(|m| !known(m)).count()
    }

    /// An address was seen that no managed code covers so far.
    pub fn pend(&mut self, address: u64, origin: Origin, sight: Sight) {
        let Sight { count, first, last, in_image } = sight;
        let pending = self.pending.entry(address).or_insert(Pending {
            in_image: [0; 4],
            nowhere: [0; 4],
            first,
            last,
        });
        pending.first = pending.first.min(first);
        pending.last = pending.last.max(last);
        let counts = if in_image { &mut pending.in_image } else { &mut pending.nowhere };
        if let Some(n) = counts.get_mut(origin as usize) {
            *n += count;
        }
    }

    /// The tally of an origin.
    pub fn tally(&mut self, origin: Origin) -> &mut Tally {
        let [clr, extended, kernel, sample] = &mut self.tallies;
        match origin {
            Origin::ClrStack => clr,
            Origin::ExtendedStack => extended,
            Origin::KernelStack => kernel,
            Origin::Sample => sample,
        }
    }
}
