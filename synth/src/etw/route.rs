//! From a provider to the buffers of the sessions that admit an event.

use etl_control::enable::{Enablement, EventKey, IdFilter};
use etl_format::Guid;
use etl_format::constants::{EventFlags, EventProperties, MessageFlags, PointerSize};
use etl_format::write::record::{
    Descriptor, Event as EventRecord, Extended, Full, Message, MessageMarker, PerfInfo, Record,
    System,
};
use etl_schema::EventSchema;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::providers::CLR_RUNDOWN;

use super::event::{Form, Origin, Outcome, Raised};
use super::{Etw, ProviderIndex};
use crate::error::{Error, Result};
use crate::model::{EnablePlan, Fault, KernelEvent};

/// DCStartComplete and DCEndComplete.
const COMPLETE: [u16; 2] = [145, 146];

/// What a provider raises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub schema: &'a EventSchema,
    pub descriptor: Descriptor,
    pub form: Form,
    pub values: &'a [OwnedValue],
    /// The activity that this event's was started from.
    pub related: Option<Guid>,
    /// TraceLogging metadata, or the provider's traits.
    pub traits: &'a [u8],
    pub metadata: &'a [u8],
    /// The stack at this moment, innermost first.
    pub stack: &'a [u64],
}

impl<'a> Event<'a> {
    /// A modern event as its schema describes it.
    pub fn new(schema: &'a EventSchema, values: &'a [OwnedValue]) -> Self {
        Event {
            schema,
            descriptor: schema.descriptor().into(),
            form: Form::Event,
            values,
            related: None,
            traits: &[],
            metadata: &[],
            stack: &[],
        }
    }
}

impl Etw<'_> {
    /// A provider raises an event.
    pub fn raise(
        &mut self,
        provider: ProviderIndex,
        origin: &Origin,
        event: &Event<'_>,
    ) -> Result<()> {
        let Some(from) = self.providers.get(provider.0) else { return Ok(()) };
        self.outcomes.clear();
        let key = EventKey {
            id: event.descriptor.id,
            level: event.descriptor.level,
            keyword: event.descriptor.keyword,
        };
        let sessions = &self.sessions;
        let elsewhere = |session: usize| {
            let process = sessions.get(session).and_then(|s| s.process);
            process.is_some_and(|pid| pid != origin.pid)
        };
        for (session, plan) in &from.enables {
            if elsewhere(*session) {
                continue;
            }
            // Classic providers filter themselves: ETW only routes.
            let outcome = if from.classic {
                Outcome::Recorded
            } else {
                let name = || self.names.get(&origin.pid).map_or("", String::as_str);
                judge(plan, &key, origin.pid, name)
            };
            self.outcomes.push((*session, outcome));
        }
        let off = if from.classic { Outcome::Taken } else { Outcome::Off };
        let former = from.former.iter().filter(|session| !elsewhere(**session));
        self.outcomes.extend(former.map(|session| (*session, off)));
        let guid = from.guid;
        self.spoil(guid, &key);
        // Messages are told by their source file, not by who controls them.
        let of_message = matches!(event.form, Form::Message(_));
        let guid = if of_message { event.schema.provider } else { guid };
        self.deliver(guid, origin, event)
    }

    /// Faults that keep events of providers from their sessions.
    fn spoil(&mut self, provider: Guid, key: &EventKey) {
        let rundown = provider == CLR_RUNDOWN;
        for (session, outcome) in &mut self.outcomes {
            let Some(target) = self.sessions.get_mut(*session) else { continue };
            if target.plan.faults.is_empty() || *outcome != Outcome::Recorded {
                continue;
            }
            target.seen += 1;
            target.enumerated += u32::from(rundown);
            for fault in &target.plan.faults {
                match *fault {
                    Fault::LostEvents(n) if target.seen.is_multiple_of(u64::from(n.max(1))) => {
                        *outcome = Outcome::Lost;
                    }
                    Fault::CutRundown(after) if rundown && target.enumerated > after => {
                        *outcome = Outcome::Off;
                    }
                    Fault::CompleteMissing if rundown && COMPLETE.contains(&key.id) => {
                        *outcome = Outcome::Missing;
                    }
                    _ => {}
                }
            }
        }
    }

    /// The kernel logs an event: to every session that asks for its kind. Those that run and ask for it no
    /// more do without it.
    pub fn log(&mut self, origin: &Origin, event: &Event<'_>, kind: KernelEvent) -> Result<()> {
        self.outcomes.clear();
        for (index, session) in self.sessions.iter().enumerate() {
            if !session.is_running() {
                continue;
            }
            if session.kernel.logs(kind) {
                self.outcomes.push((index, Outcome::Recorded));
            } else if session.logged_before & kind.bit() != 0 {
                self.outcomes.push((index, Outcome::Off));
            }
        }
        self.deliver(event.schema.provider, origin, event)
    }

    /// The kernel logs an event for one session: its rundown.
    pub fn log_to(&mut self, session: usize, origin: &Origin, event: &Event<'_>) -> Result<()> {
        self.outcomes.clear();
        self.outcomes.push((session, Outcome::Recorded));
        self.deliver(event.schema.provider, origin, event)
    }

    /// Puts an event into the buffers of those sessions whose outcome says so.
    fn deliver(&mut self, provider: Guid, origin: &Origin, event: &Event<'_>) -> Result<()> {
        if self.outcomes.is_empty() {
            return Ok(());
        }
        self.payload.clear();
        encode_into(&event.schema.fields, event.values, origin.pointer_size, &mut self.payload)
            .map_err(|source| Error::Payload { event: event.schema.name.to_string(), source })?;
        let wide = origin.pointer_size == PointerSize::P8;
        let narrow: Vec<u32> =
            if wide { Vec::new() } else { event.stack.iter().map(|a| *a as u32).collect() };
        let stack = match (event.stack, wide) {
            ([], _) => None,
            (addresses, true) => Some(Extended::Stack64 { match_id: 0, addresses }),
            (_, false) => Some(Extended::Stack32 { match_id: 0, addresses: &narrow }),
        };
        let mut items = [Extended::QpcDelta(0); 4];
        let mut count = 0;
        let mut add = |item| {
            if let Some(slot) = items.get_mut(count) {
                *slot = item;
                count += 1;
            }
        };
        if let Some(related) = event.related {
            add(Extended::RelatedActivity(related));
        }
        if !event.traits.is_empty() {
            add(Extended::ProviderTraits(event.traits));
        }
        if !event.metadata.is_empty() {
            add(Extended::Schema(event.metadata));
        }
        let plain = count;
        if let (Some(slot), Some(stack)) = (items.get_mut(count), stack) {
            *slot = stack;
            count += 1;
        }
        let full = items.get(..count).unwrap_or_default();
        let bare = items.get(..plain).unwrap_or_default();

        let len = |items: &[Extended<'_>]| length(event.form, items, self.payload.len());
        // Most events have no stack, and there may be many providers.
        let with_stack = if event.stack.is_empty() { None } else { Some(provider) };
        let asking = with_stack.and_then(|guid| self.providers.iter().find(|p| p.guid == guid));
        let mut asking: Vec<usize> = asking.map_or_else(Vec::new, |p| {
            let id = event.descriptor.id;
            let takes = |e: &EnablePlan| e.stacks && e.stack_ids.admits(id);
            p.enables.iter().filter(|(_, e)| takes(e)).map(|(s, _)| *s).collect()
        });
        let pick = |index: usize| if asking.contains(&index) { full } else { bare };
        // All or nothing: where one session has no room, none of those that stand together gets it.
        let mut together = true;
        for (session, outcome) in &mut self.outcomes {
            if *outcome != Outcome::Recorded {
                continue;
            }
            let items = pick(*session);
            let Some(target) = self.sessions.get(*session) else { continue };
            if !target.has_room(origin.processor, len(items)) {
                if target.is_independent() {
                    *outcome = Outcome::Lost;
                } else {
                    together = false;
                }
            }
        }
        let mut to_write = Vec::new();
        for at in 0..self.outcomes.len() {
            let Some(&(session, outcome)) = self.outcomes.get(at) else { continue };
            let items = pick(session);
            let Some(target) = self.sessions.get_mut(session) else { continue };
            match outcome {
                Outcome::Recorded if together || target.is_independent() => {
                    let timestamp = target.timestamp(&self.clock, origin.at);
                    let size = len(items);
                    let payload = &self.payload;
                    let private = target.process.is_some();
                    let record =
                        RecordOf { origin, event, provider, private, timestamp, items, payload };
                    if target.write(origin.processor, self.raised, &record, size)? {
                        to_write.push(session);
                    }
                }
                Outcome::Recorded | Outcome::Lost => {
                    target.lose(origin.processor)?;
                    if let Some((_, outcome)) = self.outcomes.get_mut(at) {
                        *outcome = Outcome::Lost;
                    }
                }
                _ => {}
            }
        }
        asking.retain(|session| self.outcomes.contains(&(*session, Outcome::Recorded)));
        let raised = Raised {
            number: self.raised,
            at: origin.at,
            timestamp: self.clock.timestamp(etl_format::constants::ClockType::QPC, origin.at),
            processor: origin.processor,
            pid: origin.pid,
            tid: origin.tid,
            pointer_size: origin.pointer_size,
            activity: origin.activity,
            related: event.related,
            form: event.form,
            provider,
            descriptor: event.descriptor,
            schema: event.schema,
            values: event.values,
            stack: event.stack,
            stacked: &asking,
            outcomes: &self.outcomes,
        };
        self.witness.event(&raised)?;
        self.raised += 1;
        for session in to_write {
            self.keep_writing(session, origin.at);
        }
        Ok(())
    }
}

/// The rule, and which part of it kept an event out.
fn judge<'n>(plan: &EnablePlan, key: &EventKey, pid: u32, name: impl Fn() -> &'n str) -> Outcome {
    let Enablement { ids, .. } = &plan.rule;
    if !plan.rule.admits_level(key.level) {
        Outcome::Level
    } else if !plan.rule.admits_keyword(key.keyword) {
        Outcome::Keyword
    } else if *ids != IdFilter::Any && !plan.rule.admits(key) {
        Outcome::Id
    } else if !plan.processes.is_empty() && !plan.processes.contains(&pid)
        || !plan.executables.is_empty() && !plan.is_of(name())
    {
        Outcome::Process
    } else {
        Outcome::Recorded
    }
}

/// Bytes that a record takes in a buffer.
fn length(form: Form, items: &[Extended<'_>], payload: usize) -> usize {
    let header = match form {
        Form::Event => 0x50,
        Form::Full => 0x30,
        Form::System(_) => 0x20,
        Form::PerfInfo(_) => 0x10,
        Form::Message(_) => 0x28,
    };
    let item = |item: &Extended<'_>| {
        let data = match item {
            Extended::Stack64 { addresses, .. } => 8 + 8 * addresses.len(),
            Extended::Stack32 { addresses, .. } => 8 + 4 * addresses.len(),
            Extended::RelatedActivity(_) => 16,
            Extended::Schema(bytes) | Extended::ProviderTraits(bytes) => bytes.len(),
            _ => 8,
        };
        8 + data.next_multiple_of(8)
    };
    (header + items.iter().map(item).sum::<usize>() + payload).next_multiple_of(8)
}

/// The record of an event in one session.
struct RecordOf<'a> {
    origin: &'a Origin,
    event: &'a Event<'a>,
    provider: Guid,
    private: bool,
    timestamp: i64,
    items: &'a [Extended<'a>],
    payload: &'a [u8],
}

impl Record for RecordOf<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> etl_format::Result<()> {
        let (origin, event) = (self.origin, self.event);
        let (pointer_size, timestamp) = (origin.pointer_size, self.timestamp);
        let (process_id, thread_id) = (origin.pid, origin.tid);
        let d = event.descriptor;
        let payload = self.payload;
        match event.form {
            Form::Event => EventRecord {
                pointer_size,
                flags: if self.private { EventFlags::PRIVATE_SESSION } else { EventFlags(0) },
                properties: EventProperties(0),
                thread_id,
                process_id,
                timestamp,
                provider: self.provider,
                descriptor: d,
                kernel_time: 0,
                user_time: origin.user_time,
                activity: origin.activity,
                extended: self.items,
                payload,
            }
            .encode(out),
            Form::Full => Full {
                pointer_size,
                opcode: d.opcode,
                level: d.level,
                version: d.version.into(),
                thread_id,
                process_id,
                timestamp,
                class: self.provider,
                kernel_time: 0,
                user_time: origin.user_time,
                payload,
            }
            .encode(out),
            Form::System(hook) => System {
                pointer_size,
                version: d.version.into(),
                hook,
                thread_id,
                process_id,
                timestamp,
                kernel_time: 0,
                user_time: origin.user_time,
                payload,
            }
            .encode(out),
            Form::Message(number) => Message {
                marker: MessageMarker::Wpp,
                number,
                flags: MessageFlags::GUID | MessageFlags::TIMESTAMP | MessageFlags::SYSTEMINFO,
                sequence: 0,
                component_id: 0,
                guid: self.provider,
                timestamp,
                thread_id,
                process_id,
                payload,
            }
            .encode(out),
            Form::PerfInfo(hook) => PerfInfo {
                pointer_size,
                version: d.version,
                hook,
                timestamp,
                pebs_index: None,
                counters: &[],
                payload,
            }
            .encode(out),
        }
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
