//! What the events of the CLR change in a process.

use etl_format::{ThreadId, Ticks};
use etl_schema::clr::Enumeration;
use etl_schema::views::clr::{self, Change, Method};

use super::{CodeOverlap, Jitting, LastModule, Process};
use crate::address::{Added, Tag};
use crate::counted::Span;
use crate::machine::runtime::{Listing, Note, listed_by};
use crate::machine::signs::MethodSign;

/// An item of a CLR that rundowns list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Module,
    Assembly,
    Domain,
}

/// An event about a module, an assembly or a domain.
#[derive(Clone, Copy, Debug)]
struct ItemEvent {
    kind: ItemKind,
    change: Change,
    id: u64,
    /// Id of the assembly or the domain that it belongs to; 0 for a domain.
    owner: u64,
    /// Its flags that do not change.
    flags: u32,
}

/// The CLR that logged an event, and when and on which thread it did.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogContext {
    pub instance: u16,
    pub time: Ticks,
    pub tid: ThreadId,
}

impl Process {
    /// Changes the process by an event of the CLR. The code of a method is kept under the number
    /// `code`, or under the id of the method.
    #[doc(hidden)]
    pub fn clr_event(
        &mut self,
        decoded: &clr::Decoded<'_>,
        code: Option<u64>,
        timestamp: Ticks,
        tid: ThreadId,
    ) {
        let is_rundown = decoded.provider.is_rundown();
        self.clr_seen(is_rundown, timestamp);
        let instance = self.instance_of(decoded);
        self.count_runtime_event(decoded, instance);
        let context = LogContext {
            instance,
            time: timestamp,
            tid,
        };
        if let Some(change) = change_of(&decoded.event)
            && is_listing(change) != is_rundown
        {
            self.wrong_provider.add(timestamp);
        }
        match decoded.event {
            clr::Event::Init(kind) => self.init(kind, context),
            clr::Event::Complete(kind) => self.complete(kind, context),
            clr::Event::Runtime { version, sku } => {
                let clr = self.clrs.entry(instance).or_default();
                if clr.sku.is_some_and(|before| before != sku) {
                    self.contradictions.add(timestamp);
                }
                clr.version = Some(version);
                clr.sku = Some(sku);
                self.runtime_event(is_rundown, context);
            }
            clr::Event::Method(change, method) => {
                // Events under the other provider obey the mask of that provider.
                if is_listing(change) == is_rundown {
                    self.signs.add(MethodSign::of(change, &method), timestamp);
                }
                let tag = Tag {
                    id: code.unwrap_or(method.id),
                    instance,
                    ..Tag::default()
                };
                self.method(change, &method, tag, context);
            }
            clr::Event::JitStart(id) => self.jit_start(id, context),
            clr::Event::IlMap(_) => self.map_seen(is_rundown, timestamp),
            _ => self.item_event(&decoded.event, context),
        }
    }

    /// Changes the process by an event of a module, an assembly or an application domain.
    fn item_event(&mut self, event: &clr::Event<'_>, context: LogContext) {
        match *event {
            clr::Event::Module(change, module) => {
                let clr = self.clrs.entry(context.instance).or_default();
                let facts = clr.module_facts.entry(module.id).or_default();
                facts.learn(&module);
                let item = ItemEvent {
                    kind: ItemKind::Module,
                    change,
                    id: module.id,
                    owner: module.assembly,
                    flags: module.flags,
                };
                self.item(item, context);
            }
            clr::Event::DomainModule(change, part) => self.domain_module(change, part, context),
            clr::Event::Assembly(change, assembly) => {
                let item = ItemEvent {
                    kind: ItemKind::Assembly,
                    change,
                    id: assembly.id,
                    owner: assembly.domain,
                    flags: assembly.flags,
                };
                self.item(item, context);
            }
            clr::Event::AppDomain(change, domain) => {
                let item = ItemEvent {
                    kind: ItemKind::Domain,
                    change,
                    id: domain.id,
                    owner: 0,
                    // The others may be set later.
                    flags: u32::from(domain.is_default()),
                };
                self.item(item, context);
                // The default domain is unloaded when the CLR ends.
                if change == Change::Unload && domain.is_default() {
                    let clr = self.clrs.entry(context.instance).or_default();
                    clr.ended = Some(context.time);
                }
            }
            _ => {}
        }
    }

    /// Adds the CLR of an event, and counts the event if it is the runtime provider's.
    fn count_runtime_event(&mut self, decoded: &clr::Decoded<'_>, instance: u16) {
        let is_rundown = decoded.provider.is_rundown();
        let names_clr = decoded.instance.is_some()
            || !matches!(decoded.event, clr::Event::Other | clr::Event::IlMap(_));
        // Once the CLR is there, an event of a rundown changes nothing about it.
        if names_clr && (!is_rundown || self.last_clr != Some(instance)) {
            self.last_clr = Some(instance);
            let clr = self.clrs.entry(instance).or_default();
            clr.runtime_events += u64::from(!is_rundown);
        }
    }

    /// A CLR states what it is: when it starts, in a rundown, or when a session requests its state.
    fn runtime_event(&mut self, is_rundown: bool, context: LogContext) {
        let clr = self.clrs.entry(context.instance).or_default();
        if is_rundown {
            clr.is_listed = true;
            return;
        }
        clr.started.get_or_insert(context.time);
        // It starts before it loads anything.
        if clr.has_loaded() {
            clr.is_stated_late = true;
            self.listing = Some(context.tid);
        }
    }

    fn jit_start(&mut self, id: u64, context: LogContext) {
        let jitting = Jitting {
            since: context.time,
            tid: context.tid,
            is_shared: self.jitting.contains_key(&id),
            is_listed: false,
            unloaded: None,
        };
        self.jitting.insert(id, jitting);
        if self.listing == Some(context.tid) {
            self.listing = None;
        }
    }

    /// An event about a module in a domain.
    fn domain_module(&mut self, change: Change, part: clr::DomainModule, context: LogContext) {
        let mark = self.inside(change, context);
        let clr = self.clrs.entry(context.instance).or_default();
        if part.module != 0 {
            // A module is loaded before it is used in a domain.
            let is_first = !clr.modules.contains(part.module);
            if is_first && change == Change::Load && clr.started.is_some() {
                clr.used_first += 1;
            }
            clr.method_modules.entry(part.module).or_default();
            clr.modules.note_domain(part.module, change);
        }
        if change == Change::Load && clr.domain_part_loaded(part, context.time) {
            self.loaded_twice.add(context.time);
        }
        if clr.domain_part(part, mark)
            && let Some(index) = self.inside
            && let Some(bracket) = self.brackets.get_mut(index)
        {
            bracket.twice += 1;
        }
    }

    /// An event about a module, an assembly or a domain.
    fn item(&mut self, item: ItemEvent, context: LogContext) {
        let ItemEvent {
            kind,
            change,
            id,
            owner,
            flags,
        } = item;
        let mark = self.inside(change, context);
        let clr = self.clrs.entry(context.instance).or_default();
        if kind == ItemKind::Module && !is_listing(change) {
            let is_used = clr
                .domain_parts
                .range((id, 0)..=(id, u64::MAX))
                .next()
                .is_some();
            if change == Change::Load && !is_used {
                clr.loaded_first += 1;
            }
            clr.module_changed(id, change);
        }
        let items = match kind {
            ItemKind::Module => &mut clr.modules,
            ItemKind::Assembly => &mut clr.assemblies,
            ItemKind::Domain => &mut clr.domains,
        };
        let mut listing = items.note(Note {
            change,
            id,
            flags,
            timestamp: context.time,
            mark,
        });
        let named = match kind {
            ItemKind::Module => Some(&mut clr.module_assemblies),
            ItemKind::Assembly => Some(&mut clr.assembly_domains),
            ItemKind::Domain => None,
        };
        if let Some(named) = named
            && owner != 0
        {
            named.insert(owner);
        }
        let owners = match kind {
            ItemKind::Module => Some(&mut clr.assemblies),
            ItemKind::Assembly => Some(&mut clr.domains),
            ItemKind::Domain => None,
        };
        if let (Some(owners), Change::Rundown(enumeration)) = (owners, change) {
            listing.disordered |= owners.part_of(owner, enumeration, mark);
        }
        if listing.again {
            self.loaded_twice.add(context.time);
        }
        if listing.contradicts {
            self.flag_contradictions.add(context.time);
        }

        if listing.unknown {
            clr.unloads_unknown.add(context.time);
        }
        if listing.unloaded_again {
            self.unloaded_twice.add(context.time);
        }
        if listing.late {
            self.note_late_load(context);
        }
        if change == Change::Unload {
            self.last_module = None;
        }
        self.list(mark, context.time, listing, |counts| match kind {
            ItemKind::Module => &mut counts.modules,
            ItemKind::Assembly => &mut counts.assemblies,
            ItemKind::Domain => &mut counts.app_domains,
        });
    }

    /// An event about the code of a method.
    fn method(&mut self, change: Change, method: &Method<'_>, mut tag: Tag, context: LogContext) {
        tag.mark = self.inside(change, context);
        tag.bits |= method_bits(method);
        // Methods come module by module.
        let module = LastModule {
            id: method.module,
            instance: context.instance,
            has_names: has_name(method),
        };
        if method.module != 0 && self.last_module != Some(module) {
            self.last_module = Some(module);
            self.module_of_methods(change, method, context);
        }
        if change != Change::Unload && !self.is_plausible(method, tag) {
            self.implausible.add(context.time);
        }
        match change {
            Change::Load => self.method_loaded(method, tag, context),
            Change::Unload => self.method_unloaded(method, tag, context),
            Change::Rundown(kind) => self.method_listed(kind, method, tag, context),
        }
    }

    fn method_loaded(&mut self, method: &Method<'_>, mut tag: Tag, context: LogContext) {
        self.methods_loaded += 1;
        if is_compiled(tag) {
            self.compiled.add(context.time);
        }
        // What is listed was there before.
        let is_listed = self.listing == Some(context.tid);
        if method.is_jitted() && !is_listed {
            self.jitted(method.id, context);
        }
        self.last_load.insert(context.tid, context.time);
        tag.bits |= Tag::LOADED;
        let from = if is_listed { None } else { Some(context.time) };
        // Precompiled code is listed before it is prepared, which is its load.
        if method.is_jitted()
            && !is_listed
            && let Some(known) = self.code.now(method.start)
            && known.id == tag.id
            && known.bits & (Tag::AT_START | Tag::AT_END) != 0
            && !known.has(Tag::LOADED)
        {
            self.note_late_load(context);
        }
        let added = self.code.add(method.start, method.size.into(), from, tag);
        self.added(added, method.start, tag, context.time);
        let was_loaded = match added {
            Added::Known(before) => before.has(Tag::LOADED),
            Added::Empty => true,
            Added::New | Added::Again | Added::Overlaps(_) => false,
        };
        if method.is_jitted() && !was_loaded {
            let clr = self.clrs.entry(context.instance).or_default();
            clr.method_changed(method.module, Change::Load);
        }
    }

    fn method_unloaded(&mut self, method: &Method<'_>, tag: Tag, context: LogContext) {
        self.methods_unloaded += 1;
        let clr = self.clrs.entry(context.instance).or_default();
        if method.is_jitted() {
            clr.method_changed(method.module, Change::Unload);
        }
        if is_compiled(tag) {
            let span = clr.method_unloads.entry(method.module);
            span.or_insert(Span::at(context.time)).last = context.time;
        }
        let size = u64::from(method.size);
        match self.code.remove(method.start, size, context.time, tag) {
            Some(known) if known.id != tag.id => self.unloads_as_other.add(context.time),
            None if size > 0 => {
                self.unloads_unknown.add(context.time);
                self.methods += 1;
                if method.is_jitted() {
                    clr.method_unloads_unknown.add(context.time);
                }
                if let Some(jitting) = self.jitting.get_mut(&method.id) {
                    jitting.unloaded = Some(context.time);
                }
            }
            _ => {}
        }
    }

    fn method_listed(
        &mut self,
        kind: Enumeration,
        method: &Method<'_>,
        mut tag: Tag,
        context: LogContext,
    ) {
        let mark = tag.mark;
        self.methods_enumerated += 1;
        tag.bits |= listed_by(kind);
        if !self.jitting.is_empty()
            && let Some(jitting) = self.jitting.get_mut(&method.id)
        {
            jitting.is_listed = true;
        }
        if mark != 0
            && let Some(index) = self.inside
            && let Some(bracket) = self.brackets.get_mut(index)
        {
            bracket.compiled += u64::from(is_compiled(tag));
            bracket.precompiled += u64::from(is_precompiled(tag));
        }
        let added = self.code.add(method.start, method.size.into(), None, tag);
        self.added(added, method.start, tag, context.time);
        let is_twice = match added {
            Added::Known(before) => mark != 0 && before.mark == mark,
            _ => false,
        };
        let listing = Listing {
            twice: is_twice,
            ..Listing::default()
        };
        self.list(mark, context.time, listing, |counts| &mut counts.methods);
    }

    /// Something is loaded that a rundown listed before. Loads that race with the rundown, and what
    /// a CLR lists when its state is requested, are not noted.
    fn note_late_load(&mut self, context: LogContext) {
        if self.listing == Some(context.tid) {
            return;
        }
        if let Some(clr) = self.clrs.get(&context.instance)
            && clr.is_requested()
        {
            return;
        }
        let race = self.second / 100;
        let is_late = self.brackets.iter().any(|bracket| {
            bracket.instance == context.instance
                && bracket
                    .closed
                    .is_some_and(|closed| context.time.saturating_since(closed) > race)
        });
        if is_late {
            self.loaded_after_listing.add(context.time);
        }
    }

    /// The module of methods, at the first of its methods that come one after the other.
    fn module_of_methods(&mut self, change: Change, method: &Method<'_>, context: LogContext) {
        let clr = self.clrs.entry(context.instance).or_default();
        clr.method_modules.entry(method.module).or_default();
        if change == Change::Rundown(Enumeration::End) {
            clr.listed_method_modules.insert(method.module);
        }
        if !has_name(method) {
            clr.unnamed_modules.insert(method.module);
        }
        let unloaded = clr.modules.get(method.module).and_then(|module| module.to);
        let since = match change {
            Change::Load => Some(context.time),
            Change::Unload => None,
            // A rundown goes on while modules are unloaded.
            Change::Rundown(_) => {
                let bracket = self.inside.and_then(|index| self.brackets.get(index));
                bracket.and_then(|bracket| bracket.opened)
            }
        };
        if let (Some(unloaded), Some(since)) = (unloaded, since)
            && unloaded < since
        {
            self.of_unloaded_module.add(context.time);
        }
    }

    /// Whether the code of a method can be where it is stated, and its token fits: methods without
    /// metadata have none.
    #[inline]
    fn is_plausible(&self, method: &Method<'_>, tag: Tag) -> bool {
        let start = method.start;
        let size = u64::from(method.size);
        // Precompiled code that was not prepared yet is nowhere.
        let is_nowhere = start == 0 && size == 0 && !method.is_jitted();
        let end = start.saturating_add(size);
        let has_code =
            start != 0 && (1..=Self::MAX_CODE).contains(&size) && end <= self.end_of_addresses;
        // Some runtimes write the kind of metadata without a number.
        let has_token = method.token().is_none_or(|token| token & 0x00ff_ffff != 0);
        (has_code || is_nowhere) && has_token != tag.has(Tag::DYNAMIC)
    }

    /// The load of code that was compiled at run time.
    fn jitted(&mut self, id: u64, context: LogContext) {
        match self.jitting.remove(&id) {
            Some(jitting) if jitting.tid != context.tid && !jitting.is_shared => {
                self.loads_by_other_thread.add(context.time);
            }
            Some(_) => {}
            None => {
                // What was being compiled when the provider was enabled is done after a while.
                let first = self.first_runtime.unwrap_or(context.time);
                let settling = self.second.saturating_mul(2);
                let is_settled = context.time.saturating_since(first) > settling;
                if is_settled || self.is_seen_from_start() {
                    self.loads_without_jit.add(context.time);
                }
            }
        }
    }

    /// Whether the recording shows the start of the process and of a CLR in it.
    fn is_seen_from_start(&self) -> bool {
        self.started.is_some() && self.clrs.values().any(|clr| clr.started.is_some())
    }

    fn added(&mut self, added: Added, start: u64, tag: Tag, timestamp: Ticks) {
        if let Added::Known(before) = added
            && before.id == tag.id
            && (before.bits ^ tag.bits) & (Tag::JITTED | Tag::DYNAMIC) != 0
        {
            self.flag_contradictions.add(timestamp);
        }
        match added {
            Added::New => self.methods += 1,
            Added::Again => self.loaded_twice.add(timestamp),
            Added::Overlaps(other) => {
                self.methods += u64::from(other != start);
                self.overlap.get_or_insert(CodeOverlap {
                    time: timestamp,
                    start,
                    other,
                });
            }
            Added::Empty | Added::Known(_) => {}
        }
    }
}

/// Whether a rundown lists an item, which is neither loaded nor unloaded.
fn is_listing(change: Change) -> bool {
    matches!(change, Change::Rundown(_))
}

/// Whether an event has a name of the method that is not empty.
fn has_name(method: &Method<'_>) -> bool {
    method.is_named() && method.text().is_none_or(|text| !text.name.is_empty())
}

/// The facts about the code of a method in an event.
fn method_bits(method: &Method<'_>) -> u8 {
    let mut bits = 0;
    if has_name(method) {
        bits |= Tag::NAMED;
    }
    if method.is_jitted() {
        bits |= Tag::JITTED;
    }
    // Helpers of the runtime (0x10) have no metadata either.
    if method.is_dynamic() || method.flags & 0x10 != 0 {
        bits |= Tag::DYNAMIC;
    }
    bits
}

/// Whether code was compiled at run time, and belongs to a method with metadata.
fn is_compiled(tag: Tag) -> bool {
    tag.has(Tag::JITTED) && !tag.has(Tag::DYNAMIC)
}

/// Whether code was compiled before it ran.
fn is_precompiled(tag: Tag) -> bool {
    !tag.has(Tag::JITTED) && !tag.has(Tag::DYNAMIC)
}

fn change_of(event: &clr::Event<'_>) -> Option<Change> {
    match event {
        clr::Event::Method(change, _)
        | clr::Event::Module(change, _)
        | clr::Event::DomainModule(change, _)
        | clr::Event::Assembly(change, _)
        | clr::Event::AppDomain(change, _) => Some(*change),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_format::ProcessId;

    #[test]
    fn jitted_takes_a_clock_of_any_rate() {
        for second in [0, 1, i64::MAX / 4, i64::MAX] {
            let mut process = Process::with_clock(ProcessId::new(1), second);
            process.first_runtime = Some(Ticks::MIN);
            let context = LogContext {
                instance: 0,
                time: Ticks::MAX,
                tid: ThreadId::new(1),
            };
            process.jitted(7, context);
            // It was settled only if two seconds fit into the time since the first event.
            assert_eq!(
                process.loads_without_jit.count,
                u64::from(second < i64::MAX)
            );
        }
    }
}
