//! A record that can be changed.

use std::collections::HashMap;
use std::sync::Arc;

use etl_format::constants::PointerSize;
use etl_format::constants::offset::{event, kernel};
use etl_format::cursor::Bytes;
use etl_format::read::{Header, Record};
use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::encode::{OwnedValue, encode};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, Identity};

use super::Problem;
use crate::model::{Changes, FieldValue, NamedValue};

/// The header of a record, as far as the layout matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderKind {
    Event,
    System,
    PerfInfo,
    Other,
}

impl HeaderKind {
    fn is_kernel(self) -> bool {
        matches!(self, HeaderKind::System | HeaderKind::PerfInfo)
    }

    /// Offset of the size of the record.
    fn size_at(self) -> usize {
        if self.is_kernel() { kernel::SIZE } else { 0 }
    }
}

/// Schemas that records share.
pub(super) type Schemas = HashMap<(Guid, Identity, String), Arc<EventSchema>>;

/// The buffer that a record is in: one of the file by its offset, or a new one of a processor that
/// has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Home {
    At(u64),
    New(u16),
}

/// A record: its bytes, and its decoded fields.
#[derive(Clone, Debug)]
pub(super) struct EditableRecord {
    /// Up to the end of the payload.
    bytes: Vec<u8>,
    form: HeaderKind,
    /// The buffer that it is in, and that buffer's processor.
    pub home: Home,
    pub processor: u16,
    payload_at: usize,
    pointers: PointerSize,
    provider: Option<Guid>,
    pid: Option<u32>,
    tid: Option<u32>,
    schema: Option<Arc<EventSchema>>,
    values: Vec<OwnedValue>,
}

impl EditableRecord {
    pub fn new(record: &Record<'_>, store: &SchemaStore, schemas: &mut Schemas) -> Self {
        let form = match record.header() {
            Header::Event(_) => HeaderKind::Event,
            Header::System(_) => HeaderKind::System,
            Header::PerfInfo(_) => HeaderKind::PerfInfo,
            _ => HeaderKind::Other,
        };
        let size = record
            .bytes()
            .u16_at(form.size_at())
            .map_or(record.bytes().len(), usize::from);
        let bytes = record
            .bytes()
            .get(..size)
            .unwrap_or(record.bytes())
            .to_vec();
        let (schema, values) = match store.fields(record) {
            Some(fields) => {
                let schema = fields.schema();
                let key = (schema.provider, schema.identity, schema.name.to_string());
                let shared = schemas
                    .entry(key)
                    .or_insert_with(|| Arc::new(schema.clone()));
                (Some(Arc::clone(shared)), OwnedValue::collect(fields))
            }
            None => (None, Vec::new()),
        };
        EditableRecord {
            payload_at: bytes.len().saturating_sub(record.payload().len()),
            bytes,
            form,
            home: Home::At(record.location().buffer_offset),
            processor: record.processor(),
            pointers: record.pointer_size().unwrap_or(PointerSize::P8),
            provider: record.provider(),
            pid: record.process_id().map(ProcessId::get),
            tid: record.thread_id().map(ThreadId::get),
            schema,
            values,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name of its event without the version; empty if its schema is unknown.
    pub fn name(&self) -> &str {
        let name = self.schema.as_ref().map_or("", |s| &s.name);
        match name.rsplit_once("_V") {
            Some((base, version))
                if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) =>
            {
                base
            }
            _ => name,
        }
    }

    pub fn is_event(&self) -> bool {
        self.form == HeaderKind::Event
    }

    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    pub fn provider(&self) -> Option<Guid> {
        self.provider
    }

    pub fn tid(&self) -> Option<u32> {
        self.tid
    }

    fn timestamp_at(&self) -> usize {
        if self.form == HeaderKind::PerfInfo {
            kernel::PERFINFO_TIMESTAMP
        } else {
            event::TIMESTAMP
        }
    }

    pub fn timestamp(&self) -> i64 {
        self.bytes.i64_at(self.timestamp_at()).unwrap_or(0)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at.saturating_add(bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }

    fn put_some<const N: usize>(&mut self, at: usize, bytes: Option<[u8; N]>) {
        bytes.iter().for_each(|bytes| self.put(at, bytes));
    }

    /// Takes the time and the buffer of another record.
    pub fn take_time_of(&mut self, other: &EditableRecord) {
        let timestamp = other.timestamp();
        self.put(self.timestamp_at(), &timestamp.to_le_bytes());
        self.home = other.home;
        self.processor = other.processor;
    }

    /// A numeric field; the first element of an array.
    pub fn field(&self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    /// The value of a field; of an array its first element.
    pub fn value(&self, name: &str) -> Option<&OwnedValue> {
        let at = self
            .schema
            .as_ref()?
            .fields
            .iter()
            .position(|f| *f.name == *name)?;
        match self.values.get(at)? {
            OwnedValue::Array(elements) => elements.first(),
            value => Some(value),
        }
    }

    /// The record with changes; `fields` are the new values of fields, looked up.
    pub fn changed(
        &self,
        changes: &Changes,
        fields: &[NamedValue<FieldValue>],
    ) -> Result<EditableRecord, Problem> {
        let mut new = self.clone();
        let event_only = changes.provider.is_some()
            || changes.id.is_some()
            || changes.version.is_some()
            || changes.level.is_some()
            || changes.opcode.is_some()
            || changes.keyword.is_some();
        if event_only && self.form != HeaderKind::Event {
            return Err(format!("{} is not a manifest event", self.name()).into());
        }
        let owner = changes.pid.is_some() || changes.tid.is_some();
        if owner && self.form == HeaderKind::PerfInfo {
            return Err(format!("{} has neither process nor thread", self.name()).into());
        }
        new.pid = changes.pid.map(ProcessId::get).or(self.pid);
        new.tid = changes.tid.map(ThreadId::get).or(self.tid);
        new.provider = changes.provider.or(self.provider);
        new.put_some(
            event::PROCESS,
            changes.pid.map(|pid| pid.get().to_le_bytes()),
        );
        new.put_some(
            event::THREAD,
            changes.tid.map(|tid| tid.get().to_le_bytes()),
        );
        new.put_some(event::PROVIDER, changes.provider.map(Guid::to_bytes));
        new.put_some(event::ID, changes.id.map(u16::to_le_bytes));
        new.put_some(event::VERSION, changes.version.map(u8::to_le_bytes));
        new.put_some(event::LEVEL, changes.level.map(u8::to_le_bytes));
        new.put_some(event::OPCODE, changes.opcode.map(u8::to_le_bytes));
        new.put_some(event::KEYWORD, changes.keyword.map(u64::to_le_bytes));
        if let Some(hook) = changes.hook {
            if !self.form.is_kernel() {
                return Err(format!("{} has no hook", self.name()).into());
            }
            new.put(kernel::HOOK, &hook.to_le_bytes());
        }
        let timestamp = self.timestamp().wrapping_add(changes.shift);
        new.put(new.timestamp_at(), &timestamp.to_le_bytes());
        let mut payload = self
            .bytes
            .get(self.payload_at..)
            .unwrap_or_default()
            .to_vec();
        if !fields.is_empty() {
            payload = new.encoded(fields)?;
        }
        let kept = payload.len().checked_sub(changes.cut);
        payload.truncate(changes.keep.unwrap_or(usize::MAX));
        payload.truncate(kept.ok_or("the payload is shorter than what is cut from it")?);
        payload.resize(payload.len().saturating_add(changes.grow), 0);
        new.set_payload(&payload)?;
        Ok(new)
    }

    fn encoded(&mut self, fields: &[NamedValue<FieldValue>]) -> Result<Vec<u8>, Problem> {
        let Some(schema) = self.schema.clone() else {
            return Err("the fields of this record are not known".into());
        };
        for NamedValue { name, value } in fields {
            let at = schema.fields.iter().position(|f| f.name == **name);
            let Some(slot) = at.and_then(|at| self.values.get_mut(at)) else {
                let names: Vec<_> = schema.fields.iter().map(|f| &*f.name).collect();
                let names = names.join(", ");
                return Err(format!("{} has no {name}, but {names}", schema.name).into());
            };
            let value = match value {
                FieldValue::Number(n) => OwnedValue::UInt(*n),
                FieldValue::Text(text) => match text.parse::<Guid>() {
                    Ok(guid) => OwnedValue::Guid(guid),
                    Err(_) => OwnedValue::Text(text.clone()),
                },
                FieldValue::Of { .. } => return Err(format!("{name} was not looked up").into()),
            };
            match slot {
                OwnedValue::Array(elements) => match elements.first_mut() {
                    Some(first) => *first = value,
                    None => return Err(format!("{name} of this {} is empty", schema.name).into()),
                },
                slot => *slot = value,
            }
        }
        let encoded = encode(&schema, &self.values, self.pointers);
        Ok(encoded.map_err(|e| format!("{}: {e}", schema.name))?)
    }

    fn set_payload(&mut self, payload: &[u8]) -> Result<(), Problem> {
        self.bytes.truncate(self.payload_at);
        self.bytes.extend_from_slice(payload);
        let size = u16::try_from(self.bytes.len()).map_err(|_| "the record grows too large")?;
        self.put(self.form.size_at(), &size.to_le_bytes());
        Ok(())
    }
}
