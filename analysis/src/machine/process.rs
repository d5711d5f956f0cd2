//! A process: its names, its code and images, its CLRs and their rundowns.

mod brackets;
mod events;

use etl_format::{ProcessId, ThreadId, Ticks};
use std::collections::BTreeMap;

use etl_schema::decode::{Sid, Utf16, ansi_text};
use etl_schema::render;

use etl_schema::clr::Enumeration;
use etl_schema::views::{clr, kernel};
use foldhash::HashMap;
use serde::Serialize;

use super::images::KernelHits;
use super::names::text;
use super::runtime::{Bracket, Clr};
use super::signs::{MethodSigns, SignCount};
use crate::address::{
    END_OF_USER_SPACE, Origin, PendingAddresses, Ranges, Sighting, Tag, Tallies, Tally,
};
use crate::counted::{Counted, Span};

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
    /// No event lists an image of the process, so its native code has no names. If no event of the
    /// recording lists an image, and the kernel recorded no address, the address is counted as not
    /// recorded ([`Tally::not_recorded`]) instead of unresolved.
    NoImages,
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
    /// All causes, in the order of reports.
    pub const ALL: [UnresolvedCause; 7] = [
        UnresolvedCause::NoRundown,
        UnresolvedCause::IncompleteRundown,
        UnresolvedCause::NoImages,
        UnresolvedCause::MethodAtOtherTime,
        UnresolvedCause::ImageAtOtherTime,
        UnresolvedCause::Unknown,
        UnresolvedCause::TooManyAddresses,
    ];

    /// The cause in words.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            UnresolvedCause::NoRundown => "the process has no rundown",
            UnresolvedCause::IncompleteRundown => "the process's rundown is incomplete",
            UnresolvedCause::NoImages => "the process has no image events",
            UnresolvedCause::MethodAtOtherTime => "in the code of a method of another time",
            UnresolvedCause::ImageAtOtherTime => "in an image of another time",
            UnresolvedCause::Unknown => "not in any known method, module or image",
            UnresolvedCause::TooManyAddresses => "more distinct addresses than are tracked",
        }
    }
}

/// Which lists of the kernel have a process, and when threads of it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The list at the start of the session has it.
    pub at_start: bool,
    /// The list at its end has it.
    pub at_end: bool,
    /// Its place in the first list that has it. The kernel lists processes in the order in which
    /// they were created.
    pub place: Option<u64>,
    /// Times of the first and the last start of a thread of it.
    pub threads: Option<Span>,
}

with_accessors! {
    /// A process of the machine.
    #[derive(Clone, Debug, Default)]
    pub struct Process {
        copy {
            /// Its id.
            pid: ProcessId,
            /// The process that started it; `None` if no event states it.
            parent_pid: Option<ProcessId>,
            /// Terminal session; `None` if no event states it.
            session_id: Option<u32>,
            /// Exit status, if it ended inside the trace.
            exit_status: Option<i32>,
            /// When it started, if that was inside the trace.
            started: Option<Ticks>,
            /// When it ended, if that was inside the trace.
            ended: Option<Ticks>,
            /// Timestamps of its first and last event of the CLR's two providers.
            clr_span: Option<Span>,
            /// Timestamp of its first event of the runtime provider.
            first_runtime: Option<Ticks>,
            /// Timestamp of its last event of the runtime provider.
            last_runtime: Option<Ticks>,
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
            /// The first method code that began where other code still was.
            overlap: Option<CodeOverlap>,
            /// Loads of code that was there already.
            loaded_twice: Counted,
            /// Unloads of modules, assemblies and domains that were unloaded already.
            unloaded_twice: Counted,
            /// Events that state another kind of runtime than earlier events of the CLR.
            contradictions: Counted,
            /// Events with other flags of a method, module, assembly or domain than earlier events
            /// of it.
            flag_contradictions: Counted,
            /// Loads of code, modules, assemblies and domains that a rundown listed long before.
            loaded_after_listing: Counted,
            /// Unloads of code whose load or enumeration was never seen.
            unloads_unknown: Counted,
            /// Events of methods whose code cannot be where they state it, or whose token is not
            /// one of such a method.
            implausible: Counted,
            /// Unloads of code under the id of another method than its load.
            unloads_as_other: Counted,
            /// Loads of compiled code without a beginning of its compilation, once the
            /// compilations that had begun before the recording are over.
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
            unresolved_span: Option<Span>,
            /// Addresses in native images of managed modules that no method covers.
            precompiled: u64,
            /// Of these, addresses in an image without a known PDB identity.
            precompiled_unidentified: u64,
            /// Which lists of the kernel have it.
            listed: Listed,
        }
        borrow {
            /// File name of its image.
            name: String => str,
            /// Its user as a SID, `S-1-5-18`; empty if no event states it.
            user: Box<str> => str,
            /// Command line; empty if no event states it, or names are not kept.
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
            /// Code that was left when the process ended, as of [`Process::compiled_left`].
            left_at_end: u64,
            /// Brackets that were not kept, since there were too many.
            brackets_beyond: u64,
            /// The thread on which a CLR lists what it has, under the provider of loads, since a
            /// session requested its state; until that thread compiles something.
            listing: Option<ThreadId>,
            /// Methods being compiled, by id.
            jitting: HashMap<u64, Jitting>,
            /// Ticks of a second.
            second: i64,
            /// The addresses of its pointers: all below this.
            end_of_addresses: u64,
            /// Timestamp of the last load of method code, by thread.
            last_load: HashMap<ThreadId, Ticks>,
            /// Addresses in kernel images.
            kernel_hits: KernelHits,
            /// Addresses that no named method covered yet.
            pending: PendingAddresses,
            /// Indices of the open brackets, by kind and instance.
            open: HashMap<(Enumeration, u16), Vec<usize>>,
            /// Index of the bracket in which the last item was enumerated.
            inside: Option<usize>,
            /// The enumeration and the CLR of this bracket, as long as no bracket begins or ends.
            inside_of: Option<(Enumeration, u16)>,
            /// A CLR that is there.
            last_clr: Option<u16>,
            /// The module that a method named last.
            last_module: Option<LastModule>,
        }
    }
}

impl Process {
    /// A process with this id; nothing else is known yet.
    #[must_use]
    #[doc(hidden)]
    pub fn new(pid: ProcessId) -> Self {
        Process {
            pid,
            end_of_addresses: END_OF_USER_SPACE,
            ..Process::default()
        }
    }

    /// A process of a recording whose clock has so many ticks in a second.
    pub(super) fn with_clock(pid: ProcessId, second: i64) -> Self {
        Process {
            second,
            ..Process::new(pid)
        }
    }

    /// Learns from an event how wide its pointers are.
    #[inline]
    pub(super) fn has_pointers(&mut self, wide: bool) {
        self.end_of_addresses = if wide { END_OF_USER_SPACE } else { 1 << 32 };
    }

    /// Keeps what an event states of the process. `keeps_texts` is whether long texts are kept.
    pub(crate) fn learn(&mut self, event: &kernel::Process<'_>, keeps_texts: bool) {
        if let Some(name) = event.name().filter(|name| !name.is_empty()) {
            self.name = ansi_text(name).into_owned();
            self.parent_pid = event.parent().map(ProcessId::new);
            self.session_id = event.session();
        }
        if let Some(user) = event.user().and_then(Sid::parse) {
            let mut text = Vec::new();
            render::sid(&mut text, user);
            self.user = String::from_utf8(text).unwrap_or_default().into();
        }
        if keeps_texts && let Some(line) = event.command_line().filter(|line| !line.is_empty()) {
            self.command_line = text(line).into();
        }
    }

    /// Keeps who started it, and the file name of its image.
    pub(crate) fn describe(&mut self, parent: ProcessId, image: Utf16<'_>) {
        let path = text(image.bytes());
        let name = etl_format::file_name(&path);
        if !name.is_empty() {
            name.clone_into(&mut self.name);
            self.parent_pid = Some(parent);
        }
    }

    /// Keeps a file name that may be cut, if none is known.
    pub(crate) fn name_if_unknown(&mut self, name: &[u8]) {
        if self.name.is_empty() {
            self.name = ansi_text(name).into_owned();
        }
    }

    /// The process ended, and its code and images are gone.
    pub(super) fn end(&mut self, timestamp: Ticks, exit_status: Option<i32>) {
        self.ended = Some(timestamp);
        self.exit_status = exit_status;
        self.left_at_end = self.compiled_left();
        self.code.clear(timestamp);
        self.images.clear(timestamp);
    }

    /// Pieces of code of compiled methods with metadata whose load was seen, and no unload until
    /// the process or the recording ended.
    #[must_use]
    pub fn compiled_left(&self) -> u64 {
        let left = self.code.alive().filter(|range| {
            range.tag.has(Tag::LOADED | Tag::JITTED) && !range.tag.has(Tag::DYNAMIC)
        });
        self.left_at_end + left.count() as u64
    }

    /// Counts of its method events, by what they show of the sessions.
    #[must_use]
    pub fn signs(&self) -> &[SignCount] {
        self.signs.list()
    }

    /// Whether the process ran managed code, as far as the recording shows.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.clr_events > 0
    }

    /// The number of the CLR that logged an event. An event that does not name its CLR (version 0)
    /// belongs to the only CLR of the process.
    pub(crate) fn instance_of(&self, decoded: &clr::Decoded<'_>) -> u16 {
        let instance = match (decoded.instance, self.clrs.first_key_value()) {
            (Some(instance), _) => instance,
            (None, Some((&only, _))) if self.clrs.len() == 1 => only,
            (None, _) => 0,
        };
        if self.clrs.len() >= Self::CLRS && !self.clrs.contains_key(&instance) {
            return u16::MAX;
        }
        instance
    }

    /// CLRs of a process that are kept apart; the others are counted as one. A process has a
    /// handful at most.
    const CLRS: usize = 256;
    /// Bytes of code of a method. The largest methods are tables that programs generate; they have
    /// a few MiB.
    pub const MAX_CODE: u64 = 64 << 20;
    /// Brackets of a process that are kept; collectors ask for two or three.
    const BRACKETS: usize = 1 << 12;

    /// Counts an event of the CLR.
    #[inline]
    pub(crate) fn clr_seen(&mut self, is_rundown: bool, timestamp: Ticks) {
        self.clr_events += 1;
        let first = self.clr_span.map_or(timestamp, |span| span.first);
        self.clr_span = Some(Span::new(first, timestamp));
        if !is_rundown {
            self.first_runtime.get_or_insert(timestamp);
            self.last_runtime = Some(timestamp);
        }
    }

    /// Modules that methods name and no event is about.
    #[must_use]
    pub fn unknown_modules(&self) -> usize {
        self.clrs
            .values()
            .map(|clr| clr.unknown_modules().count())
            .sum()
    }

    /// Whether its CLRs started inside the recording, and their loads were recorded from then on:
    /// their domains, and code.
    #[must_use]
    pub fn is_recorded_from_start(&self) -> bool {
        let mut clrs = self.clrs.values();
        let are_recorded = clrs.all(|clr| clr.started.is_some() && clr.domains.loaded > 0);
        are_recorded && !self.clrs.is_empty() && self.methods_loaded > 0
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
            unloaded: jitting.unloaded,
        })
    }
}

/// Method code that began where other code still was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOverlap {
    /// When it began.
    pub time: Ticks,
    /// Its first address.
    pub start: u64,
    /// The first address of the code that was there.
    pub other: u64,
}

/// A method whose compilation began, and whose load was not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedJit {
    /// When it began.
    pub since: Ticks,
    /// Id of the method.
    pub id: u64,
    /// When its thread loaded method code last.
    pub last_load: Option<Ticks>,
    /// Whether a rundown lists it later.
    pub is_listed: bool,
    /// When code of it was unloaded that was never loaded or listed.
    pub unloaded: Option<Ticks>,
}

/// The module that a method named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastModule {
    id: u64,
    /// The CLR of the process.
    instance: u16,
    /// Whether the event named the method.
    has_names: bool,
}

/// A method that is being compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitting {
    since: Ticks,
    tid: ThreadId,
    /// Whether it was being compiled already, so that another thread may end it.
    is_shared: bool,
    /// Whether a rundown listed it since.
    is_listed: bool,
    /// When unknown code of it was unloaded.
    unloaded: Option<Ticks>,
}

impl Process {
    /// Whether an event of the kernel is about the process itself.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        let has_life = self.started.is_some() || self.ended.is_some();
        has_life || self.listed.at_start || self.listed.at_end
    }
}
