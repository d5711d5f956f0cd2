//! What is known of one CLR in a process: its domains, assemblies and modules, and the brackets of
//! its rundowns.

use etl_schema::clr::Enumeration;
use etl_schema::views::Pdb;
use etl_schema::views::clr::{self, Module};
use std::collections::{BTreeMap, BTreeSet};

use crate::address::Tag;

/// An event was about it.
const KNOWN: u8 = 0x80;

/// What is known of a module, an assembly or a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
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

impl Known {
    /// Whether all of `bits` are set.
    #[must_use]
    pub const fn has(&self, bits: u8) -> bool {
        self.bits & bits == bits
    }
}

impl Known {
    fn is_known(&self) -> bool {
        self.bits & KNOWN != 0
    }
}

/// How an enumerated thing stands to the others of its bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// It was listed by this bracket already.
    pub twice: bool,
    /// It came before an item that has to precede it, or after one that has to follow it.
    pub disordered: bool,
    /// It is loaded though it was there.
    pub again: bool,
}

/// Things of one kind, by id.
#[derive(Clone, Debug, Default)]
pub struct Things {
    known: BTreeMap<u64, Known>,
    /// Those that an event was about; the others are only named as the whole of a part.
    noted: usize,
    /// Events of enumerations.
    pub enumerated: u64,
    /// Events of loads.
    pub loaded: u64,
    /// Events of unloads.
    pub unloaded: u64,
}

impl Things {
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
        self.known.get(&id).is_some_and(Known::is_known)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Known)> {
        self.known.iter().filter(|(_, known)| known.is_known()).map(|(&id, known)| (id, known))
    }

    /// Takes in an event about one. `mark` is the ordinal of the open bracket, 0 for none.
    pub fn note(&mut self, via: clr::Change, id: u64, timestamp: i64, mark: u8) -> Listing {
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
    pub fn part_of(&mut self, id: u64, kind: Enumeration, mark: u8) -> bool {
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

    fn learn(&mut self, module: &Module<'_>) {
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

/// The file name of a path in UTF-16, in lower case.
#[must_use]
pub fn file_name(path: &[u8]) -> Box<str> {
    let units = path.chunks_exact(2).map(|u| {
        u16::from(u.first().copied().unwrap_or(0)) | u16::from(u.get(1).copied().unwrap_or(0)) << 8
    });
    let is_separator = |u: &u16| *u == u16::from(b'\\') || *u == u16::from(b'/');
    let skip = units.clone().rposition(|u| is_separator(&u));
    let name = units.skip(skip.map_or(0, |at| at + 1)).take_while(|&u| u != 0);
    let name: String =
        char::decode_utf16(name).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    name.to_lowercase().into()
}

/// A CLR in a process.
#[derive(Clone, Debug, Default)]
pub struct Clr {
    /// Its version, where an event states it.
    pub version: Option<[u16; 4]>,
    /// 1 for the desktop framework, 2 for Core.
    pub sku: Option<u16>,
    /// When it started, where that was inside the recording.
    pub started: Option<i64>,
    /// Events of the runtime provider.
    pub runtime_events: u64,
    /// Modules.
    pub modules: Things,
    /// Assemblies.
    pub assemblies: Things,
    /// Application domains.
    pub domains: Things,
    /// What else is known of the modules.
    pub module_facts: BTreeMap<u64, ModuleFacts>,
    /// Modules that methods and domains name, 0 left out.
    pub method_modules: BTreeSet<u64>,
    /// Modules of methods that no event names.
    pub unnamed_modules: BTreeSet<u64>,
    /// Assemblies that modules name, and domains that assemblies name.
    pub module_assemblies: BTreeSet<u64>,
    /// Domains that assemblies name, 0 left out.
    pub assembly_domains: BTreeSet<u64>,
}

impl Clr {
    /// A method names its module.
    pub fn names_module(&mut self, module: u64, named: bool) {
        self.method_modules.insert(module);
        if !named {
            self.unnamed_modules.insert(module);
        }
    }

    /// Keeps what a module's event states.
    pub fn learn_module(&mut self, module: &Module<'_>) {
        self.module_facts.entry(module.id).or_default().learn(module);
    }

    /// Modules that methods or domains name and no event is about.
    pub fn unknown_modules(&self) -> impl Iterator<Item = u64> + '_ {
        self.method_modules.iter().copied().filter(|&id| !self.modules.contains(id))
    }

    /// Assemblies that modules name and no event is about.
    pub fn unknown_assemblies(&self) -> impl Iterator<Item = u64> + '_ {
        self.module_assemblies.iter().copied().filter(|&id| !self.assemblies.contains(id))
    }

    /// Domains that assemblies name and no event is about.
    pub fn unknown_domains(&self) -> impl Iterator<Item = u64> + '_ {
        self.assembly_domains.iter().copied().filter(|&id| !self.domains.contains(id))
    }
}

/// How many things of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pieces of method code.
    pub methods: u64,
    /// Modules.
    pub modules: u64,
    /// Assemblies.
    pub assemblies: u64,
    /// Application domains.
    pub domains: u64,
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
    /// Things listed more than once.
    pub twice: u64,
    /// Things out of order, and the first one's timestamp.
    pub disordered: u64,
    /// Timestamp of the first thing out of order.
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

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn file_name_drops_the_path() {
        assert_eq!(&*file_name(&utf16(r"C:\Windows\A.NI.dll")), "a.ni.dll");
        assert_eq!(&*file_name(&utf16("B.dll")), "b.dll");
        assert_eq!(&*file_name(b""), "");
    }

    #[test]
    fn whole_is_listed_before_its_parts_at_the_start_and_after_them_at_the_end() {
        let start = clr::Change::Rundown(Enumeration::Start);
        let mut domains = Things::default();
        assert!(!domains.note(start, 1, 0, 1).disordered);
        assert!(!domains.part_of(1, Enumeration::Start, 1));
        domains.part_of(2, Enumeration::Start, 1);
        assert!(domains.note(start, 2, 0, 1).disordered);
        assert!(domains.note(start, 2, 0, 1).twice);
        assert_eq!(domains.len(), 2);

        let end = clr::Change::Rundown(Enumeration::End);
        let mut domains = Things::default();
        assert!(!domains.part_of(1, Enumeration::End, 1));
        assert!(!domains.contains(1));
        assert!(!domains.note(end, 1, 0, 1).disordered);
        assert!(domains.part_of(1, Enumeration::End, 1));
        // In the next bracket it may come first again.
        assert!(!domains.part_of(1, Enumeration::End, 2));
    }
}
