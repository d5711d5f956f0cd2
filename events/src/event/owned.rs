//! An event that can be kept.

use etl_format::{ProcessId, ThreadId};
use std::sync::Arc;

use etl_format::read::{Record, RecordInfo};
use etl_schema::decode::Decoder;

use super::head::Head;
use super::origin::Origin;
use super::view::{Event, OwnerNames};

/// An event that can be kept: a copy of its record, with its schema and its names.
///
/// ```
/// # use etl_events::testing::trace;
/// let mut trace = etl_events::from_bytes(trace())?;
/// let events: Vec<_> = trace.events().event("GC*").into_owned().collect::<Result<_, _>>()?;
/// assert_eq!(events.len(), 2);
/// assert_eq!(events[1].event().name(), "GCEnd_V1");
/// assert_eq!(events[1].event().process(), Some("app.exe"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OwnedEvent {
    bytes: Box<[u8]>,
    info: RecordInfo,
    origin: Origin<'static>,
    head: Arc<Head>,
    decoder: Option<Decoder>,
    has_fields: bool,
    learned_provider: Option<String>,
    pid: Option<ProcessId>,
    tid: Option<ThreadId>,
    payload_text: String,
    names: OwnerNames,
}

impl OwnedEvent {
    /// The event. The values of its fields do not have the names of the trace.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let record = Record::with_info(&self.bytes, self.info);
        let fields = match &self.decoder {
            Some(decoder) if self.has_fields => {
                let pointers = decoder.pointers_of(&record);
                Some(decoder.fields(record.payload(), pointers))
            }
            _ => None,
        };
        Event {
            record,
            origin: &self.origin,
            head: &self.head,
            shared_head: &self.head,
            decoder: self.decoder.as_ref(),
            fields,
            learned_provider: self.learned_provider.as_deref(),
            pid: self.pid,
            tid: self.tid,
            payload_text: &self.payload_text,
            kept_names: Some(&self.names),
        }
    }
}

impl Event<'_> {
    /// A copy that can be kept.
    #[must_use]
    pub fn to_owned(&self) -> OwnedEvent {
        let Origin {
            clock, start, file, ..
        } = self.origin;
        OwnedEvent {
            bytes: self.record.bytes().into(),
            info: self.record.info(),
            origin: Origin {
                clock: *clock,
                start: *start,
                file: file.clone(),
                context: None,
            },
            head: Arc::clone(self.shared_head),
            decoder: self.decoder.cloned(),
            has_fields: self.fields.is_some(),
            learned_provider: self.learned_provider.map(str::to_owned),
            pid: self.pid,
            tid: self.tid,
            payload_text: self.payload_text.to_owned(),
            names: OwnerNames {
                process: self.process().unwrap_or_default().to_owned(),
                thread: self.thread().unwrap_or_default().to_owned(),
            },
        }
    }
}
