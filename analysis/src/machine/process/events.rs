//! What the events of the CLR change in a process.

use etl_format::{ThreadId, Ticks};
use etl_schema::views::clr::{self, Method};

use super::{CodeOverlap, Jitting, Process};
use crate::address::{Added, Tag};
use crate::counted::Span;
use crate::machine::runtime::{Listing, listed_by};
use crate::machine::signs::MethodSign;

/// An item of a CLR that rundowns list.
#[derive(Clone, Copy, Debug)]
enum ItemKind {
    Module,
    Assembly,
    Domain,
}

impl Process {
    /// Takes in an event of the CLR. The code of a method is kept under the number `code`, or under
    /// the method's id.
    #[doc(hidden)]
    pub fn clr_event(
        &mut self,
        from: &clr::Decoded<'_>,
        code: Option<u64>,
        timestamp: Ticks,
        tid: ThreadId,
    ) {
        self.clr_seen(from.provider.is_rundown(), timestamp);
        let instance = self.instance_of(from);
        let is_known = from.instance.is_some()
            || !matches!(from.event, clr::Event::Other | clr::Event::IlMap(_));
        // Once it is there, a rundown's event changes nothing about it.
        if is_known && (!from.provider.is_rundown() || self.last_clr != Some(instance)) {
            self.last_clr = Some(instance);
            let clr = self.clrs.entry(instance).or_default();
            clr.runtime_events += u64::from(!from.provider.is_rundown());
        }
        if let Some(via) = via_of(&from.event)
            && matches!(via, clr::Change::Rundown(_)) != from.provider.is_rundown()
        {
            self.wrong_provider.add(timestamp);
        }
        match from.event {
            clr::Event::Init(kind) => {
                let nested = self.open_bracket(kind, instance).is_some();
                self.push(
                    kind,
                    instance,
                    (Some(timestamp), None),
                    nested,
                    (timestamp, tid),
                );
            }
            clr::Event::Complete(kind) => self.complete(kind, instance, timestamp, tid),
            clr::Event::Runtime { version, sku } => {
                let clr = self.clrs.entry(instance).or_default();
                (clr.version, clr.sku) = (Some(version), Some(sku));
                // A rundown states the same of a CLR that is there.
                if from.provider.is_rundown() {
                    clr.is_listed = true;
                } else {
                    clr.started.get_or_insert(timestamp);
                    // It starts before it loads anything.
                    if clr.has_loaded() {
                        self.listing = Some(tid);
                    }
                }
            }
            clr::Event::Method(via, method) => {
                // Events under the other provider obey that one's mask.
                if matches!(via, clr::Change::Rundown(_)) == from.provider.is_rundown() {
                    self.signs.add(MethodSign::of(via, &method), timestamp);
                }
                let tag = Tag {
                    id: code.unwrap_or(method.id),
                    instance,
                    ..Tag::default()
                };
                self.method(via, &method, tag, timestamp, tid);
            }
            clr::Event::Module(via, module) => {
                let clr = self.clrs.entry(instance).or_default();
                clr.module_facts
                    .entry(module.id)
                    .or_default()
                    .learn(&module);
                let (id, owner) = (module.id, module.assembly);
                self.item(ItemKind::Module, via, instance, (id, owner), timestamp, tid);
            }
            clr::Event::DomainModule(via, part) => {
                let mark = self.inside(via, instance, timestamp, tid);
                let clr = self.clrs.entry(instance).or_default();
                if part.module != 0 {
                    clr.method_modules.entry(part.module).or_default();
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
                self.item(
                    ItemKind::Domain,
                    via,
                    instance,
                    (domain.id, 0),
                    timestamp,
                    tid,
                );
                if let (clr::Change::Unload, true) = (via, domain.is_default()) {
                    self.clrs.entry(instance).or_default().ended = Some(timestamp);
                }
            }
            clr::Event::JitStart(id) => {
                let is_shared = self.jitting.contains_key(&id);
                let (is_listed, unloaded) = (false, None);
                let jitting = Jitting {
                    since: timestamp,
                    tid,
                    is_shared,
                    is_listed,
                    unloaded,
                };
                self.jitting.insert(id, jitting);
                self.listing = self.listing.filter(|listing| *listing != tid);
            }
            clr::Event::IlMap(_) => self.map_seen(from.provider.is_rundown(), timestamp),
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
        timestamp: Ticks,
        tid: ThreadId,
    ) {
        let mark = self.inside(via, instance, timestamp, tid);
        let clr = self.clrs.entry(instance).or_default();
        if let (ItemKind::Module, clr::Change::Load | clr::Change::Unload) = (kind, via) {
            clr.module_changed(id, via);
        }
        let (items, owners) = match kind {
            ItemKind::Module => (
                &mut clr.modules,
                Some((&mut clr.assemblies, &mut clr.module_assemblies)),
            ),
            ItemKind::Assembly => (
                &mut clr.assemblies,
                Some((&mut clr.domains, &mut clr.assembly_domains)),
            ),
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
        timestamp: Ticks,
        tid: ThreadId,
    ) {
        let instance = tag.instance;
        let mark = self.inside(via, instance, timestamp, tid);
        tag.mark = mark;
        let mut set = |bit, on: bool| tag.bits |= if on { bit } else { 0 };
        set(Tag::NAMED, method.is_named());
        set(Tag::JITTED, method.is_jitted());
        // Helpers of the runtime have no metadata either.
        set(
            Tag::DYNAMIC,
            method.is_dynamic() || method.flags & 0x10 != 0,
        );
        // Methods come module by module.
        let module = Some((method.module, instance, method.is_named()));
        if method.module != 0 && self.last_module != module {
            self.last_module = module;
            self.module_of_methods(via, method, instance, timestamp);
        }
        let (start, size) = (method.start, u64::from(method.size));
        // Code that was compiled, and belongs to a method with metadata.
        let is_compiled = method.is_jitted() && !tag.has(Tag::DYNAMIC);
        let is_precompiled = !method.is_jitted() && !tag.has(Tag::DYNAMIC);
        if via != clr::Change::Unload && !self.is_plausible(method, tag) {
            self.implausible.add(timestamp);
        }
        match via {
            clr::Change::Load => {
                self.methods_loaded += 1;
                if is_compiled {
                    self.compiled.add(timestamp);
                }
                // What is listed was there before.
                let is_listed = self.listing == Some(tid);
                if method.is_jitted() && !is_listed {
                    self.jitted(method.id, timestamp, tid);
                }
                self.last_load.insert(tid, timestamp);
                tag.bits |= Tag::LOADED;
                let added = self
                    .code
                    .add(start, size, (!is_listed).then_some(timestamp), tag);
                self.added(added, start, timestamp);
                let is_again = match added {
                    Added::Known(before) => before.has(Tag::LOADED),
                    Added::Empty => true,
                    Added::New | Added::Again | Added::Overlaps(_) => false,
                };
                if method.is_jitted() && !is_again {
                    self.clrs
                        .entry(instance)
                        .or_default()
                        .method_changed(method.module, via);
                }
            }
            clr::Change::Unload => {
                self.methods_unloaded += 1;
                let clr = self.clrs.entry(instance).or_default();
                if method.is_jitted() {
                    clr.method_changed(method.module, via);
                }
                if is_compiled {
                    let span = clr.method_unloads.entry(method.module);
                    span.or_insert(Span::at(timestamp)).last = timestamp;
                }
                match self.code.remove(start, size, timestamp, tag) {
                    Some(known) if known.id != tag.id => self.unloads_as_other.add(timestamp),
                    None if size > 0 => {
                        self.unloads_unknown.add(timestamp);
                        self.methods += 1;
                        if method.is_jitted() {
                            clr.method_unloads_unknown.add(timestamp);
                        }
                        if let Some(jitting) = self.jitting.get_mut(&method.id) {
                            jitting.unloaded = Some(timestamp);
                        }
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
                if mark != 0
                    && let Some(bracket) = self.inside.and_then(|at| self.brackets.get_mut(at))
                {
                    bracket.compiled += u64::from(is_compiled);
                    bracket.precompiled += u64::from(is_precompiled);
                }
                let added = self.code.add(start, size, None, tag);
                self.added(added, start, timestamp);
                let twice =
                    matches!(added, Added::Known(before) if mark != 0 && before.mark == mark);
                let listing = Listing {
                    twice,
                    ..Listing::default()
                };
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
        timestamp: Ticks,
    ) {
        let clr = self.clrs.entry(instance).or_default();
        clr.method_modules.entry(method.module).or_default();
        if !method.is_named() {
            clr.unnamed_modules.insert(method.module);
        }
        let unloaded = clr.modules.get(method.module).and_then(|module| module.to);
        // A rundown goes on while modules are unloaded.
        let since = match via {
            clr::Change::Load => Some(timestamp),
            clr::Change::Unload => None,
            clr::Change::Rundown(_) => self
                .inside
                .and_then(|at| self.brackets.get(at))
                .and_then(|b| b.opened),
        };
        if unloaded
            .zip(since)
            .is_some_and(|(unloaded, since)| unloaded < since)
        {
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
    fn jitted(&mut self, id: u64, timestamp: Ticks, tid: ThreadId) {
        match self.jitting.remove(&id) {
            Some(jitting) if jitting.tid != tid && !jitting.is_shared => {
                self.loads_by_other_thread.add(timestamp);
            }
            Some(_) => {}
            None => {
                // What was being compiled when the recording began is done after a while.
                let first = self.clr_span.map_or(timestamp, |span| span.first);
                let settling = self.second.saturating_mul(2);
                let is_settled = timestamp.saturating_since(first) > settling;
                let is_new = || self.clrs.values().any(|clr| clr.started.is_some());
                if is_settled || (self.started.is_some() && is_new()) {
                    self.loads_without_jit.add(timestamp);
                }
            }
        }
    }

    fn added(&mut self, added: Added, start: u64, timestamp: Ticks) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use etl_format::ProcessId;

    #[test]
    fn jitted_takes_a_clock_of_any_rate() {
        for second in [0, 1, i64::MAX / 4, i64::MAX] {
            let mut process = Process::with_clock(ProcessId::new(1), second);
            process.clr_span = Some(Span::new(Ticks::MIN, Ticks::new(0)));
            process.jitted(7, Ticks::MAX, ThreadId::new(1));
            // Only where two seconds fit into the time since the first event was it settled.
            assert_eq!(
                process.loads_without_jit.count,
                u64::from(second < i64::MAX)
            );
        }
    }
}
