//! An event with its own references to what it needs.

use std::sync::Arc;

use crate::blocks::{BlockId, BlockPool};
use crate::event::Event;
use crate::event_header::EventHeader;
use crate::guid::Guid;
use crate::header::TraceHeader;
use crate::labels::Label;
use crate::metadata::Metadata;
use crate::stacks::StackIndex;
use crate::tables::Tables;
use crate::threads::Thread;

/// An event that does not borrow. It has a reference to its block in the pool of blocks. Its stack
/// is in the table of stacks, which are forgotten at sequence points: no event is held across one.
#[derive(Debug)]
pub(crate) struct HeldEvent {
    pub header: EventHeader,
    pub block: BlockId,
    pub metadata: Arc<Metadata>,
    pub stack: Option<StackIndex>,
    pub thread: Option<Arc<Thread>>,
    pub labels: Option<Arc<[Label]>>,
}

/// The processor of an event whose writer does not know it.
const UNKNOWN_PROCESSOR: u32 = u32::MAX;

impl HeldEvent {
    pub fn lend<'a>(
        &'a self,
        blocks: &'a BlockPool,
        tables: &'a Tables,
        trace: &TraceHeader,
    ) -> Event<'a> {
        let header = &self.header;
        let labels = self.labels.as_deref().unwrap_or_default();
        let mut event = Event {
            offset: header.offset,
            metadata: &self.metadata,
            sequence_number: header.sequence_number,
            process_id: trace.process_id,
            thread_id: header.thread,
            capture_thread: header.capture_thread,
            processor: Some(header.processor).filter(|number| *number != UNKNOWN_PROCESSOR),
            timestamp: header.timestamp,
            activity_id: header.activity_id,
            related_activity_id: header.related_activity_id,
            stack_id: header.stack_id,
            stack: self.stack(tables),
            thread: self.thread.as_ref(),
            labels,
            is_barrier: header.is_barrier,
            payload: self.payload(blocks),
        };
        if let Some(thread) = &self.thread {
            event.thread_id = thread.thread_id.unwrap_or(header.thread);
            event.process_id = thread.process_id.or(trace.process_id);
        }
        event.activity_id = activity(labels).unwrap_or(event.activity_id);
        event.related_activity_id = related_activity(labels).unwrap_or(event.related_activity_id);
        event
    }

    fn stack<'a>(&self, tables: &'a Tables) -> &'a [u64] {
        match self.stack {
            Some(index) => tables.stacks.addresses(index),
            None => &[],
        }
    }

    fn payload<'a>(&self, blocks: &'a BlockPool) -> &'a [u8] {
        let bytes = blocks.bytes(self.block);
        let rest = bytes.get(self.header.payload_start..);
        let payload = rest.and_then(|rest| rest.get(..self.header.payload_len));
        payload.unwrap_or_default()
    }
}

/// The last activity among the labels.
fn activity(labels: &[Label]) -> Option<Guid> {
    labels.iter().rev().find_map(|label| match label {
        Label::Activity(id) => Some(*id),
        _ => None,
    })
}

/// The last related activity among the labels.
fn related_activity(labels: &[Label]) -> Option<Guid> {
    labels.iter().rev().find_map(|label| match label {
        Label::RelatedActivity(id) => Some(*id),
        _ => None,
    })
}
