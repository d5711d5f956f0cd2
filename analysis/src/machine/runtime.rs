//! What is known of one CLR in a process: its domains, assemblies and modules, and the brackets of
//! its rundowns.

use etl_schema::clr::Enumeration;
use etl_schema::views::Pdb;
use etl_schema::views::clr::{self, Module};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

use super::names::file_name;
use crate::address::Tag;

/// An event was about it.
const KNOWN: u8 = 0x80;

/// What is known of a module, an assembly or a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// How it is known: [`Tag::LOADED`], [`Tag::AT_START`], [`Tag::AT_END`].
    pub bits: u8,
    /// Ordinal of the bracket that listed it last.
    mark: u8,
    /// Ordinal of the bracket that listed a part of it last.
    parts: u8,
    /// Timestamp of the load, where it was seen.
    pub from: Option<i64>,
    /// Timestamp of the unload, where it was seen.
    pub to: Option<i64>,
}

impl Item {
    /// Whether all of `bits` are set.
    #[must_use]
    pub const fn has(&self, bits: u8) -> bool {
        self.bits & bits == bits
    }

    fn is_known(&self) -> bool {
        self.bits & KNOWN != 0
    }
}

/// How an enumerated item stands to the others of its bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// It was listed by this bracket already.
    pub twice: bool,
    /// It came before an item that has to precede it, or after one that has to follow it.
    pub disordered: bool,
    /// It is loaded though it was there.
    pub again: bool,
}

with_accessors! {
    /// Modules, assemblies or domains, by id.
    #[derive(Clone, Debug, Default)]
    pub struct Items {
        copy {
            /// Events of enumerations.
            enumerated: u64,
            /// Events of loads.
            loaded: u64,
            /// Events of unloads.
            unloaded: u64,
        }
        borrow {}
        own {
            known: BTreeMap<u64, Item>,
            /// Those that an event was about; the others are only named as the whole of a part.
            noted: usize,
        }
    }
}

impl Items {
    /// How many distinct ones there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.noted
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.noted == 0
    }

    /// Whether an event was about it.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.known.get(&id).is_some_and(Item::is_known)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Item)> {
        self.known.iter().filter(|(_, known)| known.is_known()).map(|(&id, known)| (id, known))
    }

    /// Takes in an event about one. `mark` is the ordinal of the open bracket, 0 for none.
    pub(crate) fn note(&mut self, via: clr::Change, id: u64, timestamp: i64, mark: u8) -> Listing {
        let known = self.known.entry(id).or_default();
        if !known.is_known() {
            known.bits |= KNOWN;
            self.noted += 1;
        }
        match via {
            clr::Change::Load => {
                self.loaded += 1;
                let again = known.has(Tag::LOADED) && known.to.is_none();
                known.bits |= Tag::LOADED;
                known.from = Some(timestamp);
                known.to = None;
                Listing { again, ..Listing::default() }
            }
            clr::Change::Unload => {
                self.unloaded += 1;
                known.to = Some(timestamp);
                Listing::default()
            }
            clr::Change::Rundown(kind) => {
                self.enumerated += 1;
                known.bits |= listed_by(kind);
                if mark == 0 {
                    return Listing::default();
                }
                let twice = known.mark == mark;
                known.mark = mark;
                // A start rundown lists the whole before its parts.
                let disordered = kind == Enumeration::Start && known.parts == mark && !twice;
                Listing { twice, disordered, again: false }
            }
        }
    }

    /// A part of the item is listed: returns whether that is out of order.
    pub(crate) fn part_of(&mut self, id: u64, kind: Enumeration, mark: u8) -> bool {
        if mark == 0 || id == 0 {
            return false;
        }
        let known = self.known.entry(id).or_default();
        known.parts = mark;
        // An end rundown lists the whole after its parts.
        kind == Enumeration::End && known.mark == mark
    }
}

/// The bit of the enumeration that listed an item.
#[must_use]
pub const fn listed_by(kind: Enumeration) -> u8 {
    match kind {
        Enumeration::Start => Tag::AT_START,
        Enumeration::End => Tag::AT_END,
    }
}

/// What the rules look at of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Its assembly.
    pub assembly: u64,
    /// Flags, as [`Module::flags`].
    pub flags: u32,
    /// File name of its IL, without the path.
    pub name: Box<str>,
    /// File name of its native image, without the path; empty where it has none.
    pub native_name: Box<str>,
    /// Whether any of its events can hold the identities of PDBs.
    pub has_identity: bool,
    /// PDB of its IL.
    pub il_pdb: Option<Pdb>,
    /// PDB of its native image.
    pub native_pdb: Option<Pdb>,
}

impl ModuleFacts {
    /// Whether it was made at run time and has no file.
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        self.flags & 4 != 0
    }

    pub(super) fn learn(&mut self, module: &Module<'_>) {
        self.assembly = module.assembly;
        self.flags |= module.flags;
        let text = module.text();
        if self.name.is_empty() {
            self.name = file_name(text.il_path);
        }
        if self.native_name.is_empty() {
            self.native_name = file_name(text.native_path);
        }
        self.has_identity |= module.has_identity();
        self.il_pdb = self.il_pdb.or(text.il_pdb);
        self.native_pdb = self.native_pdb.or(text.native_pdb);
    }
}

with_accessors! {
    /// A CLR in a process.
    #[derive(Clone, Debug, Default)]
    pub struct Clr {
        copy {
            /// Its version, where an event states it.
            version: Option<[u16; 4]>,
            /// 1 for the desktop framework, 2 for Core.
            sku: Option<u16>,
            /// When it started, where that was inside the recording.
            started: Option<i64>,
            /// Events of the runtime provider.
            runtime_events: u64,
        }
        borrow {
            /// Modules.
            modules: Items => Items,
            /// Assemblies.
            assemblies: Items => Items,
            /// Application domains.
            domains: Items => Items,
            /// What else is known of the modules.
            module_facts: BTreeMap<u64, ModuleFacts> => BTreeMap<u64, ModuleFacts>,
            /// Modules of methods that no event names.
            unnamed_modules: BTreeSet<u64> => BTreeSet<u64>,
        }
        own {
            /// Modules that methods and domains name, 0 left out.
            method_modules: BTreeSet<u64>,
            /// Assemblies that modules name, 0 left out.
            module_assemblies: BTreeSet<u64>,
            /// Domains that assemblies name, 0 left out.
            assembly_domains: BTreeSet<u64>,
        }
    }
}

impl Clr {
    /// Modules that methods or domains name and no event is about.
    pub fn unknown_modules(&self) -> impl Iterator<Item = u64> + '_ {
        unknown(&self.method_modules, &self.modules)
    }

    /// Assemblies that modules name and no event is about.
    pub fn unknown_assemblies(&self) -> impl Iterator<Item = u64> + '_ {
        unknown(&self.module_assemblies, &self.assemblies)
    }

    /// Domains that assemblies name and no event is about.
    pub fn unknown_domains(&self) -> impl Iterator<Item = u64> + '_ {
        unknown(&self.assembly_domains, &self.domains)
    }
}

fn unknown<'a>(named: &'a BTreeSet<u64>, items: &'a Items) -> impl Iterator<Item = u64> + 'a {
    named.iter().copied().filter(|&id| !items.contains(id))
}

/// Numbers of events by what they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Method code.
    pub methods: u64,
    /// Modules.
    pub modules: u64,
    /// Assemblies.
    pub assemblies: u64,
    /// Application domains.
    pub app_domains: u64,
}

/// A rundown's bracket: from its Init to its Complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// Which enumeration.
    pub kind: Enumeration,
    /// The CLR.
    pub instance: u16,
    /// Timestamp of Init, if there was one.
    pub opened: Option<i64>,
    /// Timestamp of Complete, if there was one.
    pub closed: Option<i64>,
    /// Whether another bracket of its kind was open already.
    pub nested: bool,
    /// The thread of its first event.
    pub thread: u32,
    /// Timestamp of its last event.
    pub last: i64,
    /// What it lists.
    pub listed: Counts,
    /// Items listed more than once.
    pub twice: u64,
    /// Items out of order.
    pub disordered: u64,
    /// Timestamp of the first item out of order.
    pub first_disordered: Option<i64>,
    /// Events from another thread than the first one's.
    pub other_threads: u64,
}

impl Bracket {
    /// Whether it is there from its beginning to its end.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.opened.is_some() && self.closed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_and_part_of_find_items_on_the_wrong_side() {
        let start = clr::Change::Rundown(Enumeration::Start);
        let mut domains = Items::default();
        assert!(!domains.note(start, 1, 0, 1).disordered);
        assert!(!domains.part_of(1, Enumeration::Start, 1));
        domains.part_of(2, Enumeration::Start, 1);
        assert!(domains.note(start, 2, 0, 1).disordered);
        assert!(domains.note(start, 2, 0, 1).twice);
        assert_eq!(domains.len(), 2);

        let end = clr::Change::Rundown(Enumeration::End);
        let mut domains = Items::default();
        assert!(!domains.part_of(1, Enumeration::End, 1));
        assert!(!domains.contains(1));
        assert!(!domains.note(end, 1, 0, 1).disordered);
        assert!(domains.part_of(1, Enumeration::End, 1));
        // In the next bracket it may come first again.
        assert!(!domains.part_of(1, Enumeration::End, 2));
    }
}
