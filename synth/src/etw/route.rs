//! From a provider to the buffers of the sessions that admit an event.

use etl_control::enable::{Enablement, EventKey, IdFilter};
use etl_format::constants::{ClockType, EventFlags, MessageFlags, PointerSize};
use etl_format::read::{EventHeader, FullHeader, PerfInfoHeader, SystemHeader};
use etl_format::write::record::{
    Event as EventRecord, Extended, Full, Message, PerfInfo, Record, System,
};
use etl_format::{EventDescriptor, Guid, ProcessId, Ticks};
use etl_schema::EventSchema;
use etl_schema::encode::{OwnedValue, encode_into};

use super::origin::Origin;
use super::session::failed;
use super::{Etw, ProviderIndex, Session};
use crate::error::{Error, Result};
use crate::model::{EnablePlan, Fault, KernelEvent};
use crate::truth::{EventOutcome, Fact, RaisedEvent, RecordFormat, SessionOutcome};
use etl_schema::providers::CLR_RUNDOWN;

/// Ids of DCStartComplete and DCEndComplete.
const COMPLETE_IDS: [u16; 2] = [145, 146];

/// An event as a provider raises it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub schema: &'a EventSchema,
    pub descriptor: EventDescriptor,
    pub format: RecordFormat,
    pub values: &'a [OwnedValue],
    /// The activity that started the activity of this event.
    pub related: Option<Guid>,
    /// Provider traits and TraceLogging metadata, for extended data items.
    pub traits: &'a [u8],
    pub metadata: &'a [u8],
    /// The stack of the thread, innermost frame first.
    pub stack: &'a [u64],
    /// The frames of the stack that are in managed code: EventPipe sessions record no others.
    pub managed_stack: &'a [u64],
}

/// The sessions in which the kernel logs an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogTarget {
    /// The sessions whose flags include it.
    Enabled(KernelEvent),
    /// One session, as in its rundown.
    Session(usize),
}

impl<'a> Event<'a> {
    /// A modern event as its schema describes it.
    pub fn new(schema: &'a EventSchema, values: &'a [OwnedValue]) -> Self {
        Event {
            schema,
            descriptor: schema.descriptor(),
            format: RecordFormat::Event,
            values,
            related: None,
            traits: &[],
            metadata: &[],
            stack: &[],
            managed_stack: &[],
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
        let Some(from) = self.providers.get(provider.0) else {
            return Ok(());
        };
        self.outcomes.clear();
        let key = EventKey {
            id: event.descriptor.id,
            level: event.descriptor.level,
            keyword: event.descriptor.keyword,
        };
        for (session, plan) in &from.enables {
            if is_of_other_process(&self.sessions, *session, origin.pid) {
                continue;
            }
            // Classic providers filter their events themselves.
            let outcome = if from.classic {
                EventOutcome::Recorded
            } else {
                apply_rule(plan, &key, origin.pid.into(), || {
                    self.names.get(&origin.pid).map_or("", String::as_str)
                })
            };
            self.outcomes.push(SessionOutcome::new(*session, outcome));
        }
        let excluded = if from.classic {
            EventOutcome::ClaimedByOtherSession
        } else {
            EventOutcome::Disabled
        };
        for session in &from.former {
            if !is_of_other_process(&self.sessions, *session, origin.pid) {
                self.outcomes.push(SessionOutcome::new(*session, excluded));
            }
        }
        let guid = from.guid;
        self.inject_loss(guid, COMPLETE_IDS.contains(&key.id));
        // The GUID of a message identifies its source file, not its provider.
        let of_message = matches!(event.format, RecordFormat::Message(_));
        let guid = if of_message {
            event.schema.provider
        } else {
            guid
        };
        self.deliver(guid, origin, event)
    }

    /// Applies the faults that remove events from sessions.
    fn inject_loss(&mut self, provider: Guid, is_complete: bool) {
        let rundown = provider == CLR_RUNDOWN;
        for SessionOutcome { session, outcome } in &mut self.outcomes {
            let Some(target) = self.sessions.get_mut(*session) else {
                continue;
            };
            if target.plan.faults.is_empty() || *outcome != EventOutcome::Recorded {
                continue;
            }
            target.seen += 1;
            target.enumerated += u32::from(rundown);
            for fault in &target.plan.faults {
                match *fault {
                    Fault::LostEvents(n) if target.seen.is_multiple_of(u64::from(n.max(1))) => {
                        *outcome = EventOutcome::Lost;
                    }
                    Fault::CutRundown(after) if rundown && target.enumerated > after => {
                        *outcome = EventOutcome::Disabled;
                    }
                    Fault::CompleteMissing if rundown && is_complete => {
                        *outcome = EventOutcome::Missing;
                    }
                    _ => {}
                }
            }
        }
    }

    /// The kernel logs an event. Its events have the pointer size of the machine.
    pub fn log(&mut self, to: LogTarget, origin: &Origin, event: &Event<'_>) -> Result<()> {
        self.outcomes.clear();
        match to {
            LogTarget::Session(session) => {
                self.outcomes
                    .push(SessionOutcome::new(session, EventOutcome::Recorded));
            }
            LogTarget::Enabled(kind) => {
                let running = self
                    .sessions
                    .iter()
                    .enumerate()
                    .filter(|(_, s)| s.is_running());
                for (index, session) in running {
                    if session.kernel.logs(kind) {
                        self.outcomes
                            .push(SessionOutcome::new(index, EventOutcome::Recorded));
                    } else if session.logged_before & kind.bit() != 0 {
                        self.outcomes
                            .push(SessionOutcome::new(index, EventOutcome::Disabled));
                    }
                }
            }
        }
        let pointer_size = self.machine.pointer_size;
        let origin = Origin {
            pointer_size,
            activity: Guid::ZERO,
            ..*origin
        };
        self.inject_loss(event.schema.provider, false);
        self.deliver(event.schema.provider, &origin, event)
    }

    /// Writes an event into the buffers of the sessions that admit it, and reports it.
    fn deliver(&mut self, provider: Guid, origin: &Origin, event: &Event<'_>) -> Result<()> {
        if self.outcomes.is_empty() {
            return Ok(());
        }
        self.payload.clear();
        encode_into(
            &event.schema.fields,
            event.values,
            origin.pointer_size,
            &mut self.payload,
        )
        .map_err(|source| Error::Payload {
            event: event.schema.name.to_string(),
            source,
        })?;
        let narrow = narrow_stack(origin.pointer_size, event.stack);
        let narrow_managed = narrow_stack(origin.pointer_size, event.managed_stack);
        let mut stack_sessions = self.stack_sessions(provider, event);
        let delivery = Delivery {
            origin,
            event,
            provider,
            items: extended_items(event, event.stack, &narrow),
            event_pipe_items: extended_items(event, event.managed_stack, &narrow_managed),
            stack_sessions: &stack_sessions,
            event_pipe_sessions: self.event_pipe_sessions(&stack_sessions),
        };
        self.claim_buffers(&delivery);
        let sealed = self.write_records(&delivery)?;
        stack_sessions.retain(|s| {
            self.outcomes
                .contains(&SessionOutcome::new(*s, EventOutcome::Recorded))
        });
        self.report_event(provider, origin, event, &stack_sessions)?;
        for session in sealed {
            self.keep_writing(session, origin.at);
        }
        Ok(())
    }

    /// Sessions that take a stack with this event of a provider.
    fn stack_sessions(&self, provider: Guid, event: &Event<'_>) -> Vec<usize> {
        // Most events have no stack, and there may be many providers.
        if event.stack.is_empty() {
            return Vec::new();
        }
        let Some(provider) = self.providers.iter().find(|p| p.guid == provider) else {
            return Vec::new();
        };
        let id = event.descriptor.id;
        let enables = provider.enables.iter();
        let with_stack = enables.filter(|(_, plan)| plan.stacks && plan.stack_ids.admits(id));
        with_stack.map(|(session, _)| *session).collect()
    }

    /// The EventPipe sessions among some sessions.
    fn event_pipe_sessions(&self, sessions: &[usize]) -> Vec<usize> {
        let mut event_pipe_sessions = Vec::new();
        for index in sessions {
            if let Some(session) = self.sessions.get(*index)
                && session.plan.event_pipe.is_some()
            {
                event_pipe_sessions.push(*index);
            }
        }
        event_pipe_sessions
    }

    /// Marks the event as lost in the sessions without a free buffer, or without one that is large
    /// enough. If one of them is not independent, all sessions that are not independent lose the
    /// event. A record of more than 64 KB cannot be written at all.
    fn claim_buffers(&mut self, delivery: &Delivery<'_>) {
        let mut lost_together = false;
        for SessionOutcome { session, outcome } in &mut self.outcomes {
            let Some(target) = self.sessions.get(*session) else {
                continue;
            };
            if *outcome != EventOutcome::Recorded {
                continue;
            }
            if delivery.record_size(*session, self.payload.len()) > MAX_RECORD {
                *outcome = EventOutcome::TooLarge;
                continue;
            }
            let len = delivery.record_len(*session, self.payload.len());
            if len > target.largest_record() {
                *outcome = EventOutcome::LargerThanBuffers;
            } else if !target.has_space(delivery.origin.processor, len) {
                *outcome = EventOutcome::Lost;
            } else {
                continue;
            }
            lost_together |= !target.is_independent();
        }
        if !lost_together {
            return;
        }
        for SessionOutcome { session, outcome } in &mut self.outcomes {
            let independent = self
                .sessions
                .get(*session)
                .is_some_and(Session::is_independent);
            if *outcome == EventOutcome::Recorded && !independent {
                *outcome = EventOutcome::Lost;
            }
        }
    }

    /// Writes the record of an event into each session that records it and counts it in those that
    /// lose it. Returns the sessions in which a buffer was sealed.
    fn write_records(&mut self, delivery: &Delivery<'_>) -> Result<Vec<usize>> {
        let origin = delivery.origin;
        let mut sealed = Vec::new();
        for &SessionOutcome { session, outcome } in &self.outcomes {
            let Some(target) = self.sessions.get_mut(session) else {
                continue;
            };
            match outcome {
                EventOutcome::Recorded => {
                    let record = SessionRecord {
                        delivery,
                        private: target.process.is_some() && target.plan.event_pipe.is_none(),
                        timestamp: target.timestamp(&self.clock, origin.at),
                        items: delivery.items(session),
                        payload: &self.payload,
                    };
                    let len = delivery.record_len(session, self.payload.len());
                    let written =
                        target.write(origin.at, origin.processor, self.raised, &record, len);
                    if written.map_err(|source| failed(&target.plan)(source))? {
                        sealed.push(session);
                    }
                    if !target.is_settled() {
                        self.unsettled.insert(session);
                    }
                }
                EventOutcome::Lost | EventOutcome::LargerThanBuffers => {
                    let dropped = target.drop_event(origin.processor);
                    dropped.map_err(|source| failed(&target.plan)(source))?;
                }
                _ => {}
            }
        }
        Ok(sealed)
    }

    /// Reports an event with its outcomes to the observer.
    fn report_event(
        &mut self,
        provider: Guid,
        origin: &Origin,
        event: &Event<'_>,
        stack_sessions: &[usize],
    ) -> Result<()> {
        let event = RaisedEvent {
            number: self.raised,
            at: origin.at,
            timestamp: self.clock.timestamp(ClockType::QPC, origin.at).into(),
            processor: origin.processor,
            pid: origin.pid.into(),
            tid: origin.tid.into(),
            pointer_size: origin.pointer_size,
            activity: origin.activity,
            related_activity: event.related,
            format: event.format,
            provider,
            descriptor: event.descriptor,
            schema: event.schema,
            values: event.values,
            stack: event.stack,
            stack_sessions,
            outcomes: &self.outcomes,
        };
        self.observer.observe(&Fact::Event(&event))?;
        self.raised += 1;
        Ok(())
    }
}

/// A stack with 32-bit addresses; empty in a 64-bit process.
fn narrow_stack(pointer_size: PointerSize, stack: &[u64]) -> Vec<u32> {
    match pointer_size {
        PointerSize::P8 => Vec::new(),
        PointerSize::P4 => stack.iter().map(|address| *address as u32).collect(),
    }
}

/// The extended data items of an event; the stack comes last. `narrow` is the stack with 32-bit
/// addresses, empty in a 64-bit process.
fn extended_items<'a>(event: &Event<'a>, stack: &'a [u64], narrow: &'a [u32]) -> Vec<Extended<'a>> {
    let stack = match (stack, narrow) {
        ([], _) => None,
        (addresses, []) => Some(Extended::Stack64 {
            match_id: 0,
            addresses,
        }),
        (_, addresses) => Some(Extended::Stack32 {
            match_id: 0,
            addresses,
        }),
    };
    let items = [
        event.related.map(Extended::RelatedActivity),
        (!event.traits.is_empty()).then_some(Extended::ProviderTraits(event.traits)),
        (!event.metadata.is_empty()).then_some(Extended::Schema(event.metadata)),
        stack,
    ];
    items.into_iter().flatten().collect()
}

/// An event on its way to the sessions.
struct Delivery<'a> {
    origin: &'a Origin,
    event: &'a Event<'a>,
    provider: Guid,
    items: Vec<Extended<'a>>,
    /// The items with the managed part of the stack.
    event_pipe_items: Vec<Extended<'a>>,
    stack_sessions: &'a [usize],
    /// The EventPipe sessions among `stack_sessions`.
    event_pipe_sessions: Vec<usize>,
}

impl<'a> Delivery<'a> {
    /// The extended data items in the record of a session.
    fn items(&self, session: usize) -> &[Extended<'a>] {
        if self.event_pipe_sessions.contains(&session) {
            return &self.event_pipe_items;
        }
        let no_stack = !self.event.stack.is_empty() && !self.stack_sessions.contains(&session);
        self.items
            .get(..self.items.len() - usize::from(no_stack))
            .unwrap_or_default()
    }

    /// Bytes of the record of a session.
    fn record_size(&self, session: usize, payload: usize) -> usize {
        record_size(self.event.format, self.items(session), payload)
    }

    /// Bytes of the record of a session in a buffer, including its alignment.
    fn record_len(&self, session: usize, payload: usize) -> usize {
        self.record_size(session, payload).next_multiple_of(8)
    }
}

/// Whether a session is private to another process.
fn is_of_other_process(sessions: &[Session], session: usize, pid: u32) -> bool {
    let process = sessions.get(session).and_then(|session| session.process);
    process.is_some_and(|process| process != pid)
}

/// The outcome of an event under the enablement of a session.
fn apply_rule<'n>(
    plan: &EnablePlan,
    key: &EventKey,
    pid: ProcessId,
    name: impl Fn() -> &'n str,
) -> EventOutcome {
    let Enablement { ids, .. } = &plan.rule;
    if !plan.rule.admits_level(key.level) {
        EventOutcome::Level
    } else if !plan.rule.admits_keyword(key.keyword) {
        EventOutcome::Keyword
    } else if *ids != IdFilter::Any && !plan.rule.admits(key) {
        EventOutcome::Id
    } else if !plan.reaches(pid, name) {
        EventOutcome::Process
    } else {
        EventOutcome::Recorded
    }
}

/// The optional fields of WPP messages.
const MESSAGE_FIELDS: MessageFlags =
    MessageFlags(MessageFlags::GUID.0 | MessageFlags::TIMESTAMP.0 | MessageFlags::SYSTEMINFO.0);

/// Bytes of the largest record: its header states them in 16 bits.
const MAX_RECORD: usize = u16::MAX as usize;

/// Bytes of a record.
fn record_size(format: RecordFormat, items: &[Extended<'_>], payload: usize) -> usize {
    let header = match format {
        RecordFormat::Event => EventHeader::SIZE,
        RecordFormat::Full => FullHeader::SIZE,
        RecordFormat::System(_) => SystemHeader::SIZE,
        RecordFormat::PerfInfo(_) => PerfInfoHeader::SIZE,
        RecordFormat::Message(_) => MESSAGE_FIELDS.header_len(),
    };
    header + items.iter().map(Extended::encoded_len).sum::<usize>() + payload
}

/// The record of an event in one session.
struct SessionRecord<'a> {
    delivery: &'a Delivery<'a>,
    private: bool,
    timestamp: i64,
    items: &'a [Extended<'a>],
    payload: &'a [u8],
}

impl Record for SessionRecord<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> etl_format::Result<()> {
        let Delivery {
            origin,
            event,
            provider,
            ..
        } = *self.delivery;
        let pointer_size = origin.pointer_size;
        let timestamp = self.timestamp;
        let process_id = origin.pid;
        let thread_id = origin.tid;
        let d = event.descriptor;
        let payload = self.payload;
        match event.format {
            RecordFormat::Event => EventRecord::new(provider, d, timestamp)
                .pointer_size(pointer_size)
                .flags(if self.private {
                    EventFlags::PRIVATE_SESSION
                } else {
                    EventFlags(0)
                })
                .process(process_id, thread_id)
                .cpu_times(0, origin.user_time)
                .activity(origin.activity)
                .extended(self.items)
                .payload(payload)
                .encode(out),
            RecordFormat::Full => Full::new(provider, d.opcode, timestamp)
                .pointer_size(pointer_size)
                .version(d.version.into())
                .level(d.level)
                .process(process_id, thread_id)
                .cpu_times(0, origin.user_time)
                .payload(payload)
                .encode(out),
            RecordFormat::System(hook) => System::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(d.version.into())
                .process(process_id, thread_id)
                .cpu_times(0, origin.user_time)
                .payload(payload)
                .encode(out),
            RecordFormat::Message(number) => Message::new(provider, number, timestamp)
                .process(process_id, thread_id)
                .flags(MESSAGE_FIELDS)
                .payload(payload)
                .encode(out),
            RecordFormat::PerfInfo(hook) => PerfInfo::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(d.version)
                .payload(payload)
                .encode(out),
        }
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.timestamp.into())
    }
}
