//! What is known of one process.

use std::collections::BTreeMap;

use etl_schema::decode::Sid;
use etl_schema::render;

use etl_schema::clr::Enumeration;
use etl_schema::views::clr::Method;
use etl_schema::views::{clr, kernel};
use foldhash::HashMap;
use serde::Serialize;

use super::counted::Counted;
use super::images::KernelHits;
use super::listed::Listed;
use super::names::text;
use super::runtime::{Bracket, Clr, Counts, Listing, listed_by};
use super::signs::{MethodSign, MethodSigns};
use crate::address::{
    Added, KERNEL_SPACE, Origin, PendingAddresses, Ranges, Sighting, Tag, Tallies, Tally,
};

/// Why an address does not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnresolvedCause {
    /// The process ran managed code and has no rundown.
    NoRundown,
    /// The process's rundown lacks its Init or its Complete event.
    IncompleteRundown,
    /// A method's code was there, but at another time.
    MethodAtOtherTime,
    /// An image was there, but at another time.
    ImageAtOtherTime,
    /// No known method, module or image was ever there.
    Unknown,
    /// The process has more distinct addresses than are tracked.
    TooManyAddresses,
}

impl UnresolvedCause {
    /// All of them.
    pub const ALL: [UnresolvedCause; 6] = [
        UnresolvedCause::NoRundown,
        UnresolvedCause::IncompleteRundown,
        UnresolvedCause::MethodAtOtherTime,
        UnresolvedCause::ImageAtOtherTime,
        UnresolvedCause::Unknown,
        UnresolvedCause::TooManyAddresses,
    ];

    /// In words.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            UnresolvedCause::NoRundown => "the process has no rundown",
            UnresolvedCause::IncompleteRundown => "the process's rundown is incomplete",
            UnresolvedCause::MethodAtOtherTime => "in the code of a method of another time",
            UnresolvedCause::ImageAtOtherTime => "in an image of another time",
            UnresolvedCause::Unknown => "not in any known method, module or image",
            UnresolvedCause::TooManyAddresses => "more distinct addresses than are tracked",
        }
    }
}

with_accessors! {
    /// What is known of one process.
    #[derive(Clone, Debug, Default)]
    pub struct Process {
        copy {
            /// Its id.
            pid: u32,
            /// The process that started it; `None` where no event states it.
            parent_pid: Option<u32>,
            /// Terminal session; `None` where no event states it.
            session_id: Option<u32>,
            /// Exit status, if it ended inside the trace.
            exit_status: Option<i32>,
            /// When it started, if that was inside the trace.
            started: Option<i64>,
            /// When it ended, if that was inside the trace.
            ended: Option<i64>,
            /// Timestamps of its first and last event of the CLR's two providers.
            clr_span: Option<(i64, i64)>,
            /// Timestamp of its last event of the runtime provider.
            last_runtime: Option<i64>,
            /// Events of the CLR's two providers.
            clr_events: u64,
            /// Rundown events outside every bracket of their kind and instance.
            outside: Counted,
            /// Rundown events of the one kind inside a bracket of the other.
            mixed: Counted,
            /// Enumerations under the runtime provider, loads and unloads under the rundown
            /// provider.
            wrong_provider: Counted,
            /// Events of enumerations of method code.
            methods_enumerated: u64,
            /// Events of loads of method code.
            methods_loaded: u64,
            /// Events of unloads of method code.
            methods_unloaded: u64,
            /// Distinct pieces of method code.
            methods: u64,
            /// Method code that began where other code still was: the first one's timestamp and
            /// address, and the address of what was there.
            overlap: Option<(i64, u64, u64)>,
            /// Loads of code that was there already.
            loaded_twice: Counted,
            /// Unloads of code whose load or enumeration was never seen.
            unloads_unknown: Counted,
            /// Events of methods whose code cannot be where they state it, or whose token is not
            /// one of such a method.
            implausible: Counted,
            /// Unloads of code under the id of another method than its load.
            unloads_as_other: Counted,
            /// Loads of compiled code without a beginning of its compilation, once those that the
            /// recording found under way are over.
            loads_without_jit: Counted,
            /// Loads of compiled code by another thread than the one that compiled it.
            loads_by_other_thread: Counted,
            /// Loads and listings of methods of a module that was unloaded.
            of_unloaded_module: Counted,
            /// Loads of compiled methods that have metadata.
            compiled: Counted,
            /// Maps of IL to native code of the runtime provider.
            maps: Counted,
            /// What the addresses resolved to.
            tallies: Tallies,
            /// Why addresses did not resolve, by [`UnresolvedCause`].
            causes: [u64; UnresolvedCause::ALL.len()],
            /// Timestamps of the first and the last unresolved address.
            unresolved_span: Option<(i64, i64)>,
            /// Addresses in native images of managed modules that no method covers.
            precompiled: u64,
            /// Those of them in an image without a known PDB identity.
            precompiled_unidentified: u64,
            /// Which lists of the kernel have it.
            listed: Listed,
        }
        borrow {
            /// File name of its image.
            name: String => str,
            /// Its user as a SID, `S-1-5-18`; empty where no event states it.
            user: Box<str> => str,
            /// Command line; empty where no event states it, and where names are not kept.
            command_line: Box<str> => str,
            /// Its CLRs, by instance.
            clrs: BTreeMap<u16, Clr> => BTreeMap<u16, Clr>,
            /// Brackets of rundowns, in the order in which they appeared.
            brackets: Vec<Bracket> => [Bracket],
            /// Managed code by address.
            code: Ranges => Ranges,
            /// Native images by address.
            images: Ranges => Ranges,
        }
        own {
            /// What the method events show of the sessions.
            signs: MethodSigns,
            /// Brackets that were not kept, since there were too many.
            brackets_beyond: u64,
            /// Methods being compiled, by id.
            jitting: HashMap<u64, Jitting>,
            /// Ticks of a second.
            second: i64,
            /// The addresses of its pointers: all below this.
            end_of_addresses: u64,
            /// Timestamp of the last load of method code, by thread.
            last_load: HashMap<u32, i64>,
            /// Addresses in kernel images.
            kernel_hits: KernelHits,
            /// Addresses that no named method covered yet.
            pending: PendingAddresses,
            /// Indices of the open brackets, by kind and instance.
            open: HashMap<(Enumeration, u16), Vec<usize>>,
            /// Index of the bracket that the last enumerated item stood in.
            inside: Option<usize>,
            /// The enumeration and the CLR that it is of, as long as no bracket begins or ends.
            inside_of: Option<(Enumeration, u16)>,
            /// A CLR that is there.
            last_clr: Option<u16>,
            /// The module that a method named last, its CLR, and whether the method had a name.
            last_module: Option<(u64, u16, bool)>,
        }
    }
}

impl Process {
    /// A process with this id; nothing else is known yet.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Process { pid, end_of_addresses: KERNEL_SPACE, ..Process::default() }
    }

    /// A process of a recording whose clock has so many ticks in a second.
    pub(super) fn with_clock(pid: u32, second: i64) -> Self {
        Process { second, ..Process::new(pid) }
    }

    /// Learns from an event how wide its pointers are.
    #[inline]
    pub(super) fn has_pointers(&mut self, wide: bool) {
        self.end_of_addresses = if wide { KERNEL_SPACE } else { 1 << 32 };
    }

    /// Takes over what an event states of the process; `texts` is whether long ones are kept.
    pub(crate) fn learn(&mut self, event: &kernel::Process<'_>, texts: bool) {
        if let Some(name) = event.name().filter(|name| !name.is_empty()) {
            self.name = String::from_utf8_lossy(name).into_owned();
            (self.parent_pid, self.session_id) = (event.parent(), event.session());
        }
        if let Some(user) = event.user().and_then(Sid::parse) {
            let mut text = Vec::new();
            render::sid(&mut text, user);
            self.user = String::from_utf8(text).unwrap_or_default().into();
        }
        if texts && let Some(line) = event.command_line().filter(|line| !line.is_empty()) {
            self.command_line = text(line).into();
        }
    }

    /// Counts of its method events, by what they show of the sessions.
    #[must_use]
    pub fn signs(&self) -> &[(MethodSign, Counted)] {
        self.signs.list()
    }

    /// Whether the process ran managed code, as far as the recording shows.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.clr_events > 0
    }

    /// The instance of the CLR that an event is of. Events that do not name their CLR (version 0)
    /// are those of a process's only one.
    #[must_use]
    pub fn instance_of(&self, from: &clr::Decoded<'_>) -> u16 {
        let only = || self.clrs.keys().next().copied().filter(|_| self.clrs.len() == 1);
        let instance = from.instance.or_else(only).unwrap_or(0);
        if self.clrs.len() >= Self::CLRS && !self.clrs.contains_key(&instance) {
            return u16::MAX;
        }
        instance
    }

    /// CLRs of a process that are kept apart; the others count as one. A process has a handful
    /// at the most.
    const CLRS: usize = 256;
    /// Bytes of code of a method. The largest methods are tables that programs generate; they have
    /// a few MiB.
    pub const MAX_CODE: u64 = 64 << 20;
    /// Brackets of a process that are kept; collectors ask for two or three.
    const BRACKETS: usize = 1 << 12;

    /// Counts an event of the CLR.
    #[inline]
    pub fn clr_seen(&mut self, rundown: bool, timestamp: i64) {
        self.clr_events += 1;
        let (first, _) = self.clr_span.unwrap_or((timestamp, timestamp));
        self.clr_span = Some((first, timestamp));
        if !rundown {
            self.last_runtime = Some(timestamp);
        }
    }

    /// Takes in an event of the CLR. The code of a method is kept under the number `code`, or under
    /// the method's id.
    pub fn clr_event(
        &mut self,
        from: &clr::Decoded<'_>,
        code: Option<u64>,
        timestamp: i64,
        tid: u32,
    ) {
        self.clr_seen(from.rundown, timestamp);
        let instance = self.instance_of(from);
        let is_known = from.instance.is_some()
            || !matches!(from.event, clr::Event::Other | clr::Event::IlMap(_));
        // Once it is there, a rundown's event changes nothing about it.
        if is_known && (!from.rundown || self.last_clr != Some(instance)) {
            self.last_clr = Some(instance);
            let clr = self.clrs.entry(instance).or_default();
            clr.runtime_events += u64::from(!from.rundown);
        }
        if let Some(via) = via_of(&from.event)
            && matches!(via, clr::Change::Rundown(_)) != from.rundown
        {
            self.wrong_provider.add(timestamp);
        }
        match from.event {
            clr::Event::Init(kind) => {
                let nested = self.open_bracket(kind, instance).is_some();
                self.push(kind, instance, (Some(timestamp), None), nested, (timestamp, tid));
            }
            clr::Event::Complete(kind) => self.complete(kind, instance, timestamp, tid),
            clr::Event::Runtime { version, sku } => {
                let clr = self.clrs.entry(instance).or_default();
                (clr.version, clr.sku) = (Some(version), Some(sku));
                // A rundown states the same of a CLR that is there.
                if from.rundown {
                    clr.is_listed = true;
                } else {
                    clr.started.get_or_insert(timestamp);
                }
            }
            clr::Event::Method(via, method) => {
                // Events under the other provider obey that one's mask.
                if matches!(via, clr::Change::Rundown(_)) == from.rundown {
                    self.signs.add(MethodSign::of(via, &method), timestamp);
                }
                let tag = Tag { id: code.unwrap_or(method.id), instance, ..Tag::default() };
                self.method(via, &method, tag, timestamp, tid);
            }
            clr::Event::Module(via, module) => {
                let clr = self.clrs.entry(instance).or_default();
                clr.module_facts.entry(module.id).or_default().learn(&module);
                let (id, owner) = (module.id, module.assembly);
                self.item(ItemKind::Module, via, instance, (id, owner), timestamp, tid);
            }
            clr::Event::DomainModule(via, part) => {
                let mark = self.inside(via, instance, timestamp, tid);
                let clr = self.clrs.entry(instance).or_default();
                if part.module != 0 {
                    clr.method_modules.insert(part.module);
                    clr.modules.note_domain(part.module, via);
                }
                if clr.domain_part(part, mark)
                    && let Some(bracket) = self.inside.and_then(|at| self.brackets.get_mut(at))
                {
                    bracket.twice += 1;
                }
            }
            clr::Event::Assembly(via, assembly) => {
                let ids = (assembly.id, assembly.domain);
                self.item(ItemKind::Assembly, via, instance, ids, timestamp, tid);
            }
            clr::Event::AppDomain(via, domain) => {
                self.item(ItemKind::Domain, via, instance, (domain.id, 0), timestamp, tid);
                if let (clr::Change::Unload, true) = (via, domain.is_default()) {
                    self.clrs.entry(instance).or_default().ended = Some(timestamp);
                }
            }
            clr::Event::JitStart(id) => {
                let is_shared = self.jitting.contains_key(&id);
                let jitting = Jitting { since: timestamp, tid, is_shared, is_listed: false };
                self.jitting.insert(id, jitting);
            }
            clr::Event::IlMap(_) => self.map_seen(from.rundown, timestamp),
            _ => {}
        }
    }

    /// Takes in an event about a module, an assembly or a domain, with the id of the assembly or
    /// the domain that it belongs to.
    fn item(
        &mut self,
        kind: ItemKind,
        via: clr::Change,
        instance: u16,
        (id, owner): (u64, u64),
        timestamp: i64,
        tid: u32,
    ) {
        let mark = self.inside(via, instance, timestamp, tid);
        let clr = self.clrs.entry(instance).or_default();
        let (items, owners) = match kind {
            ItemKind::Module => {
                (&mut clr.modules, Some((&mut clr.assemblies, &mut clr.module_assemblies)))
            }
            ItemKind::Assembly => {
                (&mut clr.assemblies, Some((&mut clr.domains, &mut clr.assembly_domains)))
            }
            ItemKind::Domain => (&mut clr.domains, None),
        };
        let mut listing = items.note(via, id, timestamp, mark);
        if let Some((owners, named)) = owners {
            if owner != 0 {
                named.insert(owner);
            }
            if let clr::Change::Rundown(kind) = via {
                listing.disordered |= owners.part_of(owner, kind, mark);
            }
        }
        if listing.again {
            self.loaded_twice.add(timestamp);
        }
        if listing.unknown {
            clr.unloads_unknown.add(timestamp);
        }
        if matches!(via, clr::Change::Unload) {
            self.last_module = None;
        }
        self.list(mark, timestamp, listing, |counts| match kind {
            ItemKind::Module => &mut counts.modules,
            ItemKind::Assembly => &mut counts.assemblies,
            ItemKind::Domain => &mut counts.app_domains,
        });
    }

    fn method(
        &mut self,
        via: clr::Change,
        method: &Method<'_>,
        mut tag: Tag,
        timestamp: i64,
        tid: u32,
    ) {
        let instance = tag.instance;
        let mark = self.inside(via, instance, timestamp, tid);
        tag.mark = mark;
        let mut set = |bit, on: bool| tag.bits |= if on { bit } else { 0 };
        set(Tag::NAMED, method.is_named());
        set(Tag::JITTED, method.is_jitted());
        // Helpers of the runtime have no metadata either.
        set(Tag::DYNAMIC, method.is_dynamic() || method.flags & 0x10 != 0);
        // Methods come module by module.
        let module = Some((method.module, instance, method.is_named()));
        if method.module != 0 && self.last_module != module {
            self.last_module = module;
            self.module_of_methods(via, method, instance, timestamp);
        }
        let (start, size) = (method.start, u64::from(method.size));
        // Code that was compiled, and belongs to a method with metadata.
        let is_compiled = method.is_jitted() && !tag.has(Tag::DYNAMIC);
        if via != clr::Change::Unload && !self.is_plausible(method, tag) {
            self.implausible.add(timestamp);
        }
        match via {
            clr::Change::Load => {
                self.methods_loaded += 1;
                if is_compiled {
                    self.compiled.add(timestamp);
                }
                if method.is_jitted() {
                    self.jitted(method.id, timestamp, tid);
                }
                self.last_load.insert(tid, timestamp);
                tag.bits |= Tag::LOADED;
                let added = self.code.add(start, size, Some(timestamp), tag);
                self.added(added, start, timestamp);
            }
            clr::Change::Unload => {
                self.methods_unloaded += 1;
                if is_compiled {
                    let clr = self.clrs.entry(instance).or_default();
                    let span = clr.method_unloads.entry(method.module);
                    span.or_insert((timestamp, timestamp)).1 = timestamp;
                }
                match self.code.remove(start, size, timestamp, tag) {
                    Some(known) if known.id != tag.id => self.unloads_as_other.add(timestamp),
                    None if size > 0 => {
                        self.unloads_unknown.add(timestamp);
                        self.methods += 1;
                    }
                    _ => {}
                }
            }
            clr::Change::Rundown(kind) => {
                self.methods_enumerated += 1;
                tag.bits |= listed_by(kind);
                if !self.jitting.is_empty()
                    && let Some(jitting) = self.jitting.get_mut(&method.id)
                {
                    jitting.is_listed = true;
                }
                if is_compiled
                    && mark != 0
                    && let Some(bracket) = self.inside.and_then(|at| self.brackets.get_mut(at))
                {
                    bracket.compiled += 1;
                }
                let added = self.code.add(start, size, None, tag);
                self.added(added, start, timestamp);
                let twice =
                    matches!(added, Added::Known(before) if mark != 0 && before.mark == mark);
                let listing = Listing { twice, ..Listing::default() };
                self.list(mark, timestamp, listing, |counts| &mut counts.methods);
            }
        }
    }

    /// Takes in the module of methods.
    fn module_of_methods(
        &mut self,
        via: clr::Change,
        method: &Method<'_>,
        instance: u16,
        timestamp: i64,
    ) {
        let clr = self.clrs.entry(instance).or_default();
        clr.method_modules.insert(method.module);
        if !method.is_named() {
            clr.unnamed_modules.insert(method.module);
        }
        let unloaded = clr.modules.get(method.module).and_then(|module| module.to);
        // A rundown goes on while modules are unloaded.
        let since = match via {
            clr::Change::Load => Some(timestamp),
            clr::Change::Unload => None,
            clr::Change::Rundown(_) => {
                self.inside.and_then(|at| self.brackets.get(at)).and_then(|b| b.opened)
            }
        };
        if unloaded.zip(since).is_some_and(|(unloaded, since)| unloaded < since) {
            self.of_unloaded_module.add(timestamp);
        }
    }

    /// Whether the code of a method can be where it is stated, and its token fits: methods without
    /// metadata have none.
    #[inline]
    fn is_plausible(&self, method: &Method<'_>, tag: Tag) -> bool {
        let (start, size) = (method.start, u64::from(method.size));
        // Precompiled code that was not prepared yet is nowhere.
        let is_nowhere = start == 0 && size == 0 && !method.is_jitted();
        let end = start.saturating_add(size);
        let has_code =
            start != 0 && (1..=Self::MAX_CODE).contains(&size) && end <= self.end_of_addresses;
        // Some runtimes write the kind of metadata without a number.
        let has_token = method.token().is_none_or(|token| token & 0x00ff_ffff != 0);
        (has_code || is_nowhere) && has_token != tag.has(Tag::DYNAMIC)
    }

    /// Takes in the load of code that was compiled.
    fn jitted(&mut self, id: u64, timestamp: i64, tid: u32) {
        match self.jitting.remove(&id) {
            Some(jitting) if jitting.tid != tid && !jitting.is_shared => {
                self.loads_by_other_thread.add(timestamp);
            }
            Some(_) => {}
            None => {
                // What was being compiled when the recording began is done after a while.
                let first = self.clr_span.map_or(timestamp, |(first, _)| first);
                let is_settled = timestamp.saturating_sub(first) > 2 * self.second;
                let is_new = || self.clrs.values().any(|clr| clr.started.is_some());
                if is_settled || (self.started.is_some() && is_new()) {
                    self.loads_without_jit.add(timestamp);
                }
            }
        }
    }

    /// Counts a map of IL to native code.
    #[inline]
    pub(super) fn map_seen(&mut self, rundown: bool, timestamp: i64) {
        if !rundown {
            self.maps.add(timestamp);
            return;
        }
        // The map comes right before its method.
        let last = self.brackets.len().checked_sub(1);
        let at = if self.inside_of.is_some() { self.inside } else { last };
        if let Some(bracket) = at.and_then(|at| self.brackets.get_mut(at))
            && bracket.closed.is_none()
        {
            bracket.maps += 1;
        }
    }

    fn added(&mut self, added: Added, start: u64, timestamp: i64) {
        match added {
            Added::New => self.methods += 1,
            Added::Again => self.loaded_twice.add(timestamp),
            Added::Overlaps(other) => {
                self.methods += u64::from(other != start);
                self.overlap.get_or_insert((timestamp, start, other));
            }
            Added::Empty | Added::Known(_) => {}
        }
    }

    fn push(
        &mut self,
        kind: Enumeration,
        instance: u16,
        (opened, closed): (Option<i64>, Option<i64>),
        nested: bool,
        (last, thread): (i64, u32),
    ) {
        self.inside_of = None;
        if self.brackets.len() >= Self::BRACKETS {
            self.brackets_beyond += 1;
            return;
        }
        if opened.is_some() && closed.is_none() {
            self.open.entry((kind, instance)).or_default().push(self.brackets.len());
        }
        self.brackets.push(Bracket {
            kind,
            instance,
            opened,
            closed,
            nested,
            thread,
            last,
            listed: Counts::default(),
            twice: 0,
            disordered: 0,
            first_disordered: None,
            other_threads: 0,
            compiled: 0,
            maps: 0,
        });
    }

    fn complete(&mut self, kind: Enumeration, instance: u16, timestamp: i64, tid: u32) {
        self.inside_of = None;
        if let Some(at) = self.open.get_mut(&(kind, instance)).and_then(Vec::pop) {
            if let Some(bracket) = self.brackets.get_mut(at) {
                bracket.closed = Some(timestamp);
                bracket.last = timestamp;
                bracket.other_threads += u64::from(bracket.thread != tid);
            }
            return;
        }
        if self.open_bracket(other(kind), instance).is_some() {
            self.mixed.add(timestamp);
        }
        self.push(kind, instance, (None, Some(timestamp)), false, (timestamp, tid));
    }

    /// Index of the open bracket of a kind: the last one opened.
    fn open_bracket(&self, kind: Enumeration, instance: u16) -> Option<usize> {
        self.open.get(&(kind, instance)).and_then(|open| open.last().copied())
    }

    /// An enumerated item should stand in a bracket: returns the bracket's ordinal as its low byte,
    /// 0 for none.
    fn inside(&mut self, via: clr::Change, instance: u16, timestamp: i64, tid: u32) -> u8 {
        let clr::Change::Rundown(kind) = via else { return 0 };
        let same = self.inside_of == Some((kind, instance));
        let at = if same { self.inside } else { self.open_bracket(kind, instance) };
        if let Some(at) = at
            && let Some(bracket) = self.brackets.get_mut(at)
        {
            bracket.last = timestamp;
            bracket.other_threads += u64::from(bracket.thread != tid);
            (self.inside, self.inside_of) = (Some(at), Some((kind, instance)));
            return u8::try_from(at % 255).map_or(1, |low| low + 1);
        }
        if self.open_bracket(other(kind), instance).is_some() {
            self.mixed.add(timestamp);
        } else if self.brackets_beyond == 0 {
            self.outside.add(timestamp);
        }
        0
    }

    /// Counts a listed item in its bracket.
    fn list(
        &mut self,
        mark: u8,
        timestamp: i64,
        listing: Listing,
        count: impl FnOnce(&mut Counts) -> &mut u64,
    ) {
        // The open one: a mark is only given while it is open.
        let open = if mark == 0 { None } else { self.inside };
        let Some(bracket) = open.and_then(|at| self.brackets.get_mut(at)) else { return };
        *count(&mut bracket.listed) += 1;
        bracket.twice += u64::from(listing.twice);
        if listing.disordered {
            bracket.disordered += 1;
            bracket.first_disordered.get_or_insert(timestamp);
        }
    }

    /// Modules that methods name and no event is about.
    #[must_use]
    pub fn unknown_modules(&self) -> usize {
        self.clrs.values().map(|clr| clr.unknown_modules().count()).sum()
    }

    /// Whether its CLRs started inside the recording, and their loads were recorded from then on:
    /// their domains, and code.
    #[must_use]
    pub fn is_recorded_from_start(&self) -> bool {
        let is_recorded = |clr: &Clr| clr.started.is_some() && clr.domains.loaded > 0;
        !self.clrs.is_empty() && self.clrs.values().all(is_recorded) && self.methods_loaded > 0
    }

    /// Counts an address that no managed code covers so far. `free` is how many more can be kept.
    pub(crate) fn pend(
        &mut self,
        address: u64,
        origin: Origin,
        sighting: Sighting,
        free: &mut usize,
    ) {
        let index = self.pending.index(address, sighting, free);
        self.pending.add(index, origin, sighting);
    }

    /// The tally of an origin.
    pub(crate) fn tally_mut(&mut self, origin: Origin) -> &mut Tally {
        let [clr, extended, kernel, sample, exception, entry] = &mut self.tallies;
        match origin {
            Origin::ClrStack => clr,
            Origin::ExtendedStack => extended,
            Origin::KernelStack => kernel,
            Origin::Sample => sample,
            Origin::Exception => exception,
            Origin::EntryPoint => entry,
        }
    }

    /// Methods that were being compiled at the end.
    pub fn unfinished_jits(&self) -> impl Iterator<Item = UnfinishedJit> + '_ {
        self.jitting.iter().map(|(&id, jitting)| UnfinishedJit {
            since: jitting.since,
            id,
            last_load: self.last_load.get(&jitting.tid).copied(),
            is_listed: jitting.is_listed,
        })
    }
}

/// A method whose compilation began, and whose load was not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedJit {
    /// When it began.
    pub since: i64,
    /// Id of the method.
    pub id: u64,
    /// When its thread loaded method code last.
    pub last_load: Option<i64>,
    /// Whether a rundown lists it later.
    pub is_listed: bool,
}

/// A method that is being compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitting {
    since: i64,
    tid: u32,
    /// Whether it was being compiled already, so that another thread may end it.
    is_shared: bool,
    /// Whether a rundown listed it since.
    is_listed: bool,
}

/// An item of a CLR that rundowns list.
#[derive(Clone, Copy, Debug)]
enum ItemKind {
    Module,
    Assembly,
    Domain,
}

fn other(kind: Enumeration) -> Enumeration {
    match kind {
        Enumeration::Start => Enumeration::End,
        Enumeration::End => Enumeration::Start,
    }
}

fn via_of(event: &clr::Event<'_>) -> Option<clr::Change> {
    match event {
        clr::Event::Method(via, _)
        | clr::Event::Module(via, _)
        | clr::Event::DomainModule(via, _)
        | clr::Event::Assembly(via, _)
        | clr::Event::AppDomain(via, _) => Some(*via),
        _ => None,
    }
}
