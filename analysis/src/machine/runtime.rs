//! A CLR in a process: its domains, assemblies and modules, and the brackets of its rundowns.

use etl_format::{ThreadId, Ticks};
use etl_schema::clr::Enumeration;
use etl_schema::views::Pdb;
use etl_schema::views::clr::{self, Module};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

use super::names::file_name;
use crate::address::Tag;
use crate::counted::{Counted, Span};

/// The bit of a module's flags that states that it has ready-to-run code.
pub(super) const READY_TO_RUN: u32 = 0x20;
/// The bits that state that it has any code that was compiled before it ran: in a native image,
/// ready-to-run, or partly so.
const PRECOMPILED: u32 = 0x2 | READY_TO_RUN | 0x40;

/// An event was about it.
const KNOWN: u8 = 0x80;

/// A module, an assembly or a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// How it is known: [`Tag::LOADED`], [`Tag::AT_START`], [`Tag::AT_END`].
    pub bits: u8,
    /// Ordinal of the bracket that listed it last.
    mark: u8,
    /// Ordinal of the bracket that listed a part of it last.
    parts: u8,
    /// How a domain with it is known, in the same way as `bits`: modules only.
    pub in_domain: u8,
    /// Timestamp of the load, if it was seen.
    pub from: Option<Ticks>,
    /// Timestamp of the unload, if it was seen.
    pub to: Option<Ticks>,
    /// Its flags, which do not change while it exists.
    flags: Option<u32>,
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

/// What is wrong with an event about an item, compared with the events before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// It was listed by this bracket already.
    pub twice: bool,
    /// It came before an item that has to precede it, or after an item that has to follow it.
    pub disordered: bool,
    /// It is loaded although it was there.
    pub again: bool,
    /// It is unloaded although nothing showed before that it was there.
    pub unknown: bool,
    /// It is unloaded a second time, without a load between.
    pub unloaded_again: bool,
    /// It is loaded, although a rundown listed it before and no load came before that.
    pub late: bool,
    /// It has other flags than in the events before.
    pub contradicts: bool,
}

/// A module in a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DomainPart {
    /// Ordinal of the bracket that listed it last.
    mark: u8,
    /// When it was loaded last.
    loaded: Option<Ticks>,
}

/// What an event states about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub change: clr::Change,
    pub id: u64,
    /// Its flags that do not change.
    pub flags: u32,
    pub timestamp: Ticks,
    /// The ordinal of the open bracket, 0 for none.
    pub mark: u8,
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
            /// Items that an event was about; the others are only named as the whole of a part.
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.noted == 0
    }

    /// Whether an event was about it.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.known.get(&id).is_some_and(Item::is_known)
    }

    /// The items with their ids, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Item)> {
        self.known
            .iter()
            .filter(|(_, known)| known.is_known())
            .map(|(&id, known)| (id, known))
    }

    /// Notes an event about an item.
    pub(crate) fn note(&mut self, event: Note) -> Listing {
        let known = self.known.entry(event.id).or_default();
        // Another item has the id of one that was unloaded.
        if event.change == clr::Change::Load && known.to.is_some() {
            known.flags = None;
        }
        let before = known.flags.replace(event.flags);
        let contradicts = before.is_some_and(|flags| flags != event.flags);
        Listing {
            contradicts,
            ..self.note_change(event)
        }
    }

    fn note_change(&mut self, event: Note) -> Listing {
        let Note {
            timestamp, mark, ..
        } = event;
        let known = self.known.entry(event.id).or_default();
        if !known.is_known() {
            known.bits |= KNOWN;
            self.noted += 1;
        }
        match event.change {
            clr::Change::Load => {
                self.loaded += 1;
                let again = known.has(Tag::LOADED) && known.to.is_none();
                let is_listed = known.bits & (Tag::AT_START | Tag::AT_END) != 0;
                let late = is_listed && !known.has(Tag::LOADED) && known.to.is_none();
                // Its id is used again: rundowns listed the item that had the id before.
                if known.to.is_some() {
                    let listed = Tag::AT_START | Tag::AT_END;
                    known.bits &= !listed;
                    known.in_domain &= !listed;
                }
                known.bits |= Tag::LOADED;
                known.from = Some(timestamp);
                known.to = None;
                Listing {
                    again,
                    late,
                    ..Listing::default()
                }
            }
            clr::Change::Unload => {
                self.unloaded += 1;
                let unloaded_again = known.to.replace(timestamp).is_some();
                let unknown = known.bits & (Tag::LOADED | Tag::AT_START | Tag::AT_END) == 0;
                Listing {
                    unknown,
                    unloaded_again,
                    ..Listing::default()
                }
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
                Listing {
                    twice,
                    disordered,
                    ..Listing::default()
                }
            }
        }
    }

    /// An item by its id, if an event was about it.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Item> {
        self.known.get(&id).filter(|known| known.is_known())
    }

    /// Notes that a domain with it is loaded or listed.
    pub(crate) fn note_domain(&mut self, id: u64, via: clr::Change) {
        self.known.entry(id).or_default().in_domain |= match via {
            clr::Change::Load => Tag::LOADED,
            clr::Change::Rundown(kind) => listed_by(kind),
            clr::Change::Unload => 0,
        };
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

/// What events state of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Its assembly.
    pub assembly: u64,
    /// Flags, as [`Module::flags`].
    pub flags: u32,
    /// File name of its IL, without the path.
    pub name: Box<str>,
    /// File name of its native image, without the path; empty if it has none.
    pub native_name: Box<str>,
    /// Whether any of its events can hold the identities of PDBs.
    pub has_identity: bool,
    /// PDB of its IL.
    pub il_pdb: Option<Pdb>,
    /// PDB of its native image.
    pub native_pdb: Option<Pdb>,
}

impl ModuleFacts {
    /// Whether all domains share it: then no event names its domain.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it was made at run time and has no file.
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        self.flags & 4 != 0
    }

    /// Whether it has code that was compiled before it ran.
    #[must_use]
    pub const fn is_precompiled(&self) -> bool {
        self.flags & PRECOMPILED != 0
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
            /// Its version, if an event states it.
            version: Option<[u16; 4]>,
            /// 1 for the desktop framework, 2 for Core.
            sku: Option<u16>,
            /// When an event of the runtime provider first stated what it is: it started, or a
            /// session requested its state (capture state). Both log the same event.
            started: Option<Ticks>,
            /// When its default domain was unloaded, with which it ends.
            ended: Option<Ticks>,
            /// Events of the runtime provider.
            runtime_events: u64,
            /// Whether a rundown states what it is.
            is_listed: bool,
            /// Unloads of modules, assemblies and domains that were never loaded or listed.
            unloads_unknown: Counted,
            /// The same of compiled methods.
            method_unloads_unknown: Counted,
        }
        borrow {
            /// Modules.
            modules: Items => Items,
            /// Assemblies.
            assemblies: Items => Items,
            /// Application domains.
            domains: Items => Items,
            /// What events state of the modules.
            module_facts: BTreeMap<u64, ModuleFacts> => BTreeMap<u64, ModuleFacts>,
            /// Modules of methods that no event names.
            unnamed_modules: BTreeSet<u64> => BTreeSet<u64>,
            /// Modules of the methods that end rundowns list.
            listed_method_modules: BTreeSet<u64> => BTreeSet<u64>,
        }
        own {
            /// Modules that methods and domains name, 0 left out, with the number of their compiled
            /// methods that were loaded and not unloaded.
            method_modules: BTreeMap<u64, u64>,
            /// Compiled methods that were loaded and not unloaded, of modules that were unloaded.
            methods_of_unloaded: u64,
            /// Assemblies that modules name, 0 left out.
            module_assemblies: BTreeSet<u64>,
            /// Domains that assemblies name, 0 left out.
            assembly_domains: BTreeSet<u64>,
            /// When code of the methods of a module was unloaded, first and last, by module.
            method_unloads: BTreeMap<u64, Span>,
            /// The same of modules whose id another module has now.
            past_method_unloads: Vec<MethodUnloads>,
            /// Whether it stated what it is after it had loaded something.
            is_stated_late: bool,
            /// Modules whose use in a domain was logged before their load, since it stated what it
            /// is: only a list has this order.
            used_first: u64,
            /// Modules whose load was logged first.
            loaded_first: u64,
            /// Modules in their domains, with the ordinal of the bracket that listed them last.
            domain_parts: BTreeMap<(u64, u64), DomainPart>,
        }
    }
}

impl Clr {
    /// Modules whose id another module has now, and that are kept for [`method_unloads`].
    ///
    /// [`method_unloads`]: Clr::method_unloads
    const MAX_PAST: usize = 1 << 12;

    /// Whether events show that a session requested its state (capture state): it had loaded
    /// something before it stated what it is, or most of its modules come after their domains.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.is_stated_late || self.used_first > self.loaded_first
    }

    /// Modules that methods or domains name and no event is about.
    pub fn unknown_modules(&self) -> impl Iterator<Item = u64> + '_ {
        unknown(self.method_modules.keys(), &self.modules)
    }

    /// When compiled code of the methods of each module was unloaded.
    pub fn method_unloads(&self) -> impl Iterator<Item = MethodUnloads> + '_ {
        let current = self
            .method_unloads
            .iter()
            .map(|(&module, &span)| MethodUnloads {
                module,
                span,
                module_unloaded: self.modules.get(module).and_then(|item| item.to),
            });
        self.past_method_unloads.iter().copied().chain(current)
    }

    /// Compiled methods that were loaded, and that may have gone without an event of their own:
    /// the methods of modules that were unloaded, or that no end rundown lists.
    #[must_use]
    pub fn methods_maybe_gone(&self) -> u64 {
        let mut sum = self.methods_of_unloaded;
        for (&id, methods) in &self.method_modules {
            let module = self.modules.get(id);
            if module.is_none_or(|module| !module.has(Tag::AT_END)) {
                sum += methods;
            }
        }
        sum
    }

    /// A module is loaded or unloaded: the known methods under its id may be the methods of a
    /// module that has gone.
    pub(super) fn module_changed(&mut self, id: u64, via: clr::Change) {
        if let Some(methods) = self.method_modules.get_mut(&id) {
            self.methods_of_unloaded += std::mem::take(methods);
        }
        let unloaded = self.modules.get(id).and_then(|item| item.to);
        if via == clr::Change::Load
            && unloaded.is_some()
            && let Some(span) = self.method_unloads.remove(&id)
            && self.past_method_unloads.len() < Self::MAX_PAST
        {
            let past = MethodUnloads {
                module: id,
                span,
                module_unloaded: unloaded,
            };
            self.past_method_unloads.push(past);
        }
    }

    /// A compiled method of a module is loaded or unloaded.
    pub(super) fn method_changed(&mut self, module: u64, via: clr::Change) {
        if let Some(methods) = self.method_modules.get_mut(&module) {
            *methods = match via {
                clr::Change::Load => *methods + 1,
                clr::Change::Unload => methods.saturating_sub(1),
                clr::Change::Rundown(_) => *methods,
            };
        }
    }

    /// Whether it has loaded code before.
    pub(super) fn has_loaded(&self) -> bool {
        !self.modules.is_empty() || !self.method_modules.is_empty()
    }

    /// Notes a module of a domain. Returns whether the open bracket listed it before.
    pub(super) fn domain_part(&mut self, part: clr::DomainModule, mark: u8) -> bool {
        let known = self.domain_parts.entry((part.module, part.domain));
        let known = known.or_default();
        let before = std::mem::replace(&mut known.mark, mark);
        mark != 0 && before == mark
    }

    /// Notes that a module is loaded into a domain. Returns whether it is there already: no load of
    /// either came after its last load into the domain.
    pub(super) fn domain_part_loaded(&mut self, part: clr::DomainModule, timestamp: Ticks) -> bool {
        let known = self.domain_parts.entry((part.module, part.domain));
        let Some(before) = known.or_default().loaded.replace(timestamp) else {
            return false;
        };
        let whole = [self.modules.get(part.module), self.domains.get(part.domain)];
        whole.into_iter().flatten().all(|item| {
            let is_loaded_since = item.from.is_some_and(|from| from > before);
            item.to.is_none() && !is_loaded_since
        })
    }

    /// Assemblies that modules name and no event is about.
    pub fn unknown_assemblies(&self) -> impl Iterator<Item = u64> + '_ {
        unknown(self.module_assemblies.iter(), &self.assemblies)
    }

    /// Domains that assemblies name and no event is about.
    pub fn unknown_domains(&self) -> impl Iterator<Item = u64> + '_ {
        unknown(self.assembly_domains.iter(), &self.domains)
    }
}

fn unknown<'a>(
    named: impl Iterator<Item = &'a u64> + 'a,
    items: &'a Items,
) -> impl Iterator<Item = u64> + 'a {
    named.copied().filter(|&id| !items.contains(id))
}

/// When compiled code of the methods of a module was unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodUnloads {
    /// The module.
    pub module: u64,
    /// When the first and the last of it was unloaded.
    pub span: Span,
    /// When the module itself was unloaded.
    pub module_unloaded: Option<Ticks>,
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
    pub opened: Option<Ticks>,
    /// Timestamp of Complete, if there was one.
    pub closed: Option<Ticks>,
    /// Whether another bracket of its kind was open already.
    pub nested: bool,
    /// The thread of its first event.
    pub thread: ThreadId,
    /// Timestamp of its last event.
    pub last: Ticks,
    /// What it lists.
    pub listed: Counts,
    /// Items listed more than once.
    pub twice: u64,
    /// Items out of order.
    pub disordered: u64,
    /// Timestamp of the first item out of order.
    pub first_disordered: Option<Ticks>,
    /// Events from another thread than the first one's.
    pub other_threads: u64,
    /// Code of compiled methods that have metadata, which it lists.
    pub compiled: u64,
    /// Code that it lists and that was compiled before it ran: of native images, or ready-to-run.
    pub precompiled: u64,
    /// Maps of IL to native code that it lists.
    pub maps: u64,
}

impl Bracket {
    /// A bracket with its first event, which neither opened nor closed it.
    pub(super) fn new(kind: Enumeration, instance: u16, thread: ThreadId, time: Ticks) -> Self {
        Bracket {
            kind,
            instance,
            opened: None,
            closed: None,
            nested: false,
            thread,
            last: time,
            listed: Counts::default(),
            twice: 0,
            disordered: 0,
            first_disordered: None,
            other_threads: 0,
            compiled: 0,
            precompiled: 0,
            maps: 0,
        }
    }

    /// Whether its beginning and its end were recorded.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.opened.is_some() && self.closed.is_some()
    }

    /// Code that it lists and that was compiled at run time, dynamic methods included.
    #[must_use]
    pub const fn jitted(&self) -> u64 {
        self.listed.methods.saturating_sub(self.precompiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(change: clr::Change, id: u64, timestamp: i64, mark: u8) -> Note {
        Note {
            change,
            id,
            flags: 0,
            timestamp: Ticks::new(timestamp),
            mark,
        }
    }

    #[test]
    fn note_and_part_of_find_items_on_the_wrong_side() {
        let start = clr::Change::Rundown(Enumeration::Start);
        let mut domains = Items::default();
        assert!(!domains.note(event(start, 1, 0, 1)).disordered);
        assert!(!domains.part_of(1, Enumeration::Start, 1));
        domains.part_of(2, Enumeration::Start, 1);
        assert!(domains.note(event(start, 2, 0, 1)).disordered);
        assert!(domains.note(event(start, 2, 0, 1)).twice);
        assert_eq!(domains.len(), 2);

        let end = clr::Change::Rundown(Enumeration::End);
        let mut domains = Items::default();
        assert!(!domains.part_of(1, Enumeration::End, 1));
        assert!(!domains.contains(1));
        assert!(!domains.note(event(end, 1, 0, 1)).disordered);
        assert!(domains.part_of(1, Enumeration::End, 1));
        // In the next bracket it may come first again.
        assert!(!domains.part_of(1, Enumeration::End, 2));
    }

    #[test]
    fn note_knows_unloads_of_what_was_never_there() {
        let mut modules = Items::default();
        assert!(modules.note(event(clr::Change::Unload, 1, 10, 0)).unknown);
        modules.note(event(clr::Change::Load, 2, 10, 0));
        assert!(!modules.note(event(clr::Change::Unload, 2, 20, 0)).unknown);
        // A domain alone does not make it known.
        modules.note_domain(3, clr::Change::Load);
        assert!(modules.get(3).is_none());
        modules.note(event(clr::Change::Rundown(Enumeration::End), 3, 30, 1));
        assert_eq!(
            modules.get(3).map(|module| module.in_domain),
            Some(Tag::LOADED)
        );
        assert!(!modules.note(event(clr::Change::Unload, 3, 40, 0)).unknown);
    }

    #[test]
    fn note_forgets_listings_of_what_had_the_id_before() {
        let end = clr::Change::Rundown(Enumeration::End);
        let mut modules = Items::default();
        modules.note(event(end, 1, 10, 1));
        modules.note_domain(1, end);
        modules.note(event(clr::Change::Unload, 1, 20, 0));
        assert_eq!(modules.get(1).map(|m| m.has(Tag::AT_END)), Some(true));
        modules.note(event(clr::Change::Load, 1, 30, 0));
        let module = modules.get(1).unwrap();
        assert!(module.has(Tag::LOADED) && !module.has(Tag::AT_END) && module.in_domain == 0);
        // A second load without an unload is of the same one.
        modules.note(event(end, 1, 40, 2));
        modules.note(event(clr::Change::Load, 1, 50, 0));
        assert_eq!(modules.get(1).map(|m| m.has(Tag::AT_END)), Some(true));
    }

    #[test]
    fn method_unloads_are_kept_for_each_module_that_had_an_id() {
        let mut clr = Clr::default();
        for (loaded, unloaded) in [(10, 20), (30, 40)] {
            for (via, at) in [(clr::Change::Load, loaded), (clr::Change::Unload, unloaded)] {
                clr.module_changed(1, via);
                clr.modules.note(event(via, 1, at, 0));
            }
            clr.method_unloads.insert(1, Span::at(Ticks::new(unloaded)));
        }
        let known: Vec<_> = clr
            .method_unloads()
            .map(|known| (known.span, known.module_unloaded))
            .collect();
        let expected = [20, 40].map(Ticks::new).map(|at| (Span::at(at), Some(at)));
        assert_eq!(known, expected);
    }

    #[test]
    fn methods_may_be_gone_if_their_module_may_be_unloaded() {
        let mut clr = Clr::default();
        let end = clr::Change::Rundown(Enumeration::End);
        for (module, methods) in [(1, 3), (2, 4), (3, 5)] {
            clr.method_modules.entry(module).or_default();
            (0..methods).for_each(|_| clr.method_changed(module, clr::Change::Load));
        }
        clr.method_changed(2, clr::Change::Unload);
        // The end rundown lists the first, the second is unloaded, nothing is about the third.
        clr.modules.note(event(end, 1, 20, 1));
        clr.module_changed(2, clr::Change::Unload);
        clr.modules.note(event(clr::Change::Unload, 2, 10, 0));
        assert_eq!(clr.methods_maybe_gone(), 3 + 5);
        // Another module has the id, and the rundown lists that one.
        clr.module_changed(2, clr::Change::Load);
        clr.modules.note(event(clr::Change::Load, 2, 15, 0));
        clr.method_changed(2, clr::Change::Load);
        clr.modules.note(event(end, 2, 20, 1));
        assert_eq!(clr.methods_maybe_gone(), 3 + 5);
    }

    #[test]
    fn note_finds_other_flags_of_the_same_item() {
        let end = clr::Change::Rundown(Enumeration::End);
        let mut modules = Items::default();
        let with_flags = |flags, event: Note| Note { flags, ..event };
        let loaded = event(clr::Change::Load, 1, 10, 0);
        assert!(!modules.note(with_flags(8, loaded)).contradicts);
        let listed = event(end, 1, 20, 1);
        assert!(!modules.note(with_flags(8, listed)).contradicts);
        assert!(modules.note(with_flags(4, listed)).contradicts);
        // Another module has the id.
        modules.note(with_flags(4, event(clr::Change::Unload, 1, 30, 0)));
        let loaded = event(clr::Change::Load, 1, 40, 0);
        assert!(!modules.note(with_flags(9, loaded)).contradicts);
    }

    #[test]
    fn domain_part_loaded_finds_loads_without_an_unload() {
        let mut clr = Clr::default();
        let part = clr::DomainModule {
            module: 1,
            assembly: 2,
            domain: 3,
        };
        clr.modules.note(event(clr::Change::Load, 1, 10, 0));
        assert!(!clr.domain_part_loaded(part, Ticks::new(11)));
        assert!(clr.domain_part_loaded(part, Ticks::new(12)));
        // The module is there in another domain already.
        let other = clr::DomainModule { domain: 4, ..part };
        assert!(!clr.domain_part_loaded(other, Ticks::new(13)));
        clr.modules.note(event(clr::Change::Unload, 1, 20, 0));
        clr.modules.note(event(clr::Change::Load, 1, 30, 0));
        assert!(!clr.domain_part_loaded(part, Ticks::new(31)));
    }

    #[test]
    fn domain_part_knows_what_its_bracket_listed_before() {
        let mut clr = Clr::default();
        let part = clr::DomainModule {
            module: 1,
            assembly: 2,
            domain: 3,
        };
        assert!(!clr.domain_part(part, 1));
        assert!(clr.domain_part(part, 1));
        assert!(!clr.domain_part(part, 2));
        // Outside of brackets it is a load.
        assert!(!clr.domain_part(part, 0) && !clr.domain_part(part, 0));
    }
}
