//! Compares a record with the event of the truth.

use etl_format::constants::{ClockType, PointerSize};
use etl_format::read::{ExtendedItem, Record};
use etl_format::{Clock, Guid};
use etl_schema::encode::OwnedValue;
use etl_schema::store::SchemaStore;
use etl_synth::model::{MachinePlan, NamedValue};
use etl_synth::truth::{KnownEvent, RecordFormat, SessionReport};

use crate::simulated::{ticks, timestamp};

/// A value for comparison: numbers and pointers are the same.
#[derive(Debug, PartialEq)]
enum Plain {
    Number(i128),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    Other(String),
}

impl Plain {
    /// Whether an encoder may have written the value by itself: a zero, or a count.
    fn is_filled_in(&self) -> bool {
        match self {
            Plain::Number(_) => true,
            Plain::Text(text) => text.is_empty(),
            Plain::Bytes(bytes) => bytes.iter().all(|b| *b == 0),
            Plain::List(list) => list.iter().all(Plain::is_filled_in),
            Plain::Other(_) => true,
        }
    }
}

fn plain(value: &OwnedValue) -> Plain {
    match value {
        OwnedValue::Auto | OwnedValue::Null => Plain::Number(0),
        OwnedValue::Bool(v) => Plain::Number((*v).into()),
        OwnedValue::Int(v) => Plain::Number((*v).into()),
        OwnedValue::UInt(v) | OwnedValue::Pointer(v) | OwnedValue::FileTime(v) => {
            Plain::Number((*v).into())
        }
        OwnedValue::Char(v) => Plain::Number((*v).into()),
        OwnedValue::Text(v) => Plain::Text(v.clone()),
        OwnedValue::Utf16(v) => Plain::Text(String::from_utf16_lossy(v)),
        OwnedValue::Ansi(v) | OwnedValue::Utf8(v) => {
            Plain::Text(String::from_utf8_lossy(v).into_owned())
        }
        OwnedValue::Binary(v) | OwnedValue::Sid(v) => Plain::Bytes(v.clone()),
        OwnedValue::Array(v) | OwnedValue::Struct(v) => Plain::List(v.iter().map(plain).collect()),
        other => Plain::Other(format!("{other:?}")),
    }
}

/// The context of a comparison of a record with its event.
pub struct Frame<'a> {
    pub machine: &'a MachinePlan,
    pub session: &'a SessionReport,
    pub clock: Clock,
    pub store: &'a SchemaStore,
    /// Whether buffers belong to processors.
    pub per_processor: bool,
}

impl Frame<'_> {
    /// Everything that a reader can know of the event.
    pub fn compare(&self, place: &str, event: &KnownEvent, record: &Record<'_>) {
        let place = format!(
            "{place}: {} number {} at {}",
            event.name, event.number, event.at
        );
        if self.per_processor {
            assert_eq!(record.processor(), event.processor, "{place}");
        }
        self.identity(&place, event, record);
        self.time(&place, event, record);
        self.stack(&place, event, record);
        self.fields(&place, event, record);
    }

    fn identity(&self, place: &str, event: &KnownEvent, record: &Record<'_>) {
        match event.format {
            RecordFormat::Event => {
                let (d, known) = (record.descriptor().unwrap(), &event.descriptor);
                let found = (
                    d.id, d.version, d.channel, d.level, d.opcode, d.task, d.keyword,
                );
                let (level, opcode) = (known.level, known.opcode);
                let known = (
                    known.id,
                    known.version,
                    known.channel,
                    level,
                    opcode,
                    known.task,
                    known.keyword,
                );
                assert_eq!(found, known, "{place}");
                assert_eq!(record.provider(), Some(event.provider), "{place}");
                assert_eq!(record.event().unwrap().activity, event.activity, "{place}");
                assert_eq!(record.pointer_size(), Some(event.pointer_size), "{place}");
            }
            RecordFormat::System(hook) | RecordFormat::PerfInfo(hook) => {
                assert_eq!(record.hook(), Some(hook), "{place}");
            }
            RecordFormat::Message(_) => {
                assert_eq!(record.provider(), Some(event.provider), "{place}");
            }
            RecordFormat::Full => {
                assert_eq!(record.provider(), Some(event.provider), "{place}");
                assert_eq!(
                    event.activity,
                    Guid::ZERO,
                    "{place}: a classic event has no activity"
                );
            }
        }
        let mut related = None;
        for item in record.extended() {
            if let ExtendedItem::RelatedActivity(id) = item {
                related = Some(id);
            }
        }
        assert_eq!(related, event.related_activity, "{place}");
        if !matches!(event.format, RecordFormat::PerfInfo(_)) {
            assert_eq!(record.process_id(), Some(event.pid), "{place}");
            assert_eq!(record.thread_id(), Some(event.tid), "{place}");
        }
    }

    fn time(&self, place: &str, event: &KnownEvent, record: &Record<'_>) {
        let (machine, session) = (self.machine, self.session);
        assert_eq!(
            event.timestamp.get(),
            ticks(machine, ClockType::QPC, event.at),
            "{place}"
        );
        assert_eq!(
            record.timestamp(),
            timestamp(machine, session, event.at),
            "{place}"
        );
        // The wall clock, to a tick of the clock and one of FILETIME on either side.
        let ticks = match session.clock {
            ClockType::SYSTEM_TIME => 10_000_000,
            ClockType::CPU_CYCLE => i64::from(machine.cpu_mhz) * 1_000_000,
            _ => i64::try_from(machine.frequency).unwrap(),
        };
        let wall = machine.start.get() + i64::try_from(event.at / 100).unwrap();
        let found = self.clock.time(record.timestamp()).get();
        let tolerance = 2 + 10_000_000 / ticks;
        assert!(
            (found - wall).abs() <= tolerance,
            "{place}: {found} instead of {wall}"
        );
    }

    fn stack(&self, place: &str, event: &KnownEvent, record: &Record<'_>) {
        let mut found = None;
        for item in record.extended() {
            if let ExtendedItem::Stack(stack) = item {
                assert_eq!(stack.match_id, 0, "{place}");
                found = Some(stack.addresses().collect::<Vec<u64>>());
            }
        }
        let narrow = event.pointer_size == PointerSize::P4;
        let frame = |a: &u64| if narrow { *a & 0xffff_ffff } else { *a };
        let taken = event.stack_sessions.contains(&self.session.index);
        let known = taken.then(|| event.stack.iter().map(frame).collect::<Vec<u64>>());
        assert_eq!(found, known, "{place}");
    }

    fn fields(&self, place: &str, event: &KnownEvent, record: &Record<'_>) {
        // The pieces of an EventSource's manifest are put together, not decoded.
        if event.descriptor.id == 0xfffe {
            let mut pieces = event.fields.iter().filter_map(|field| match &field.value {
                OwnedValue::Binary(bytes) => Some(bytes.as_slice()),
                _ => None,
            });
            let piece = pieces.next_back().expect("a manifest's piece");
            assert!(record.payload().ends_with(piece), "{place}");
            return;
        }
        let Some(fields) = self.store.fields(record) else {
            panic!("{place}: no schema");
        };
        let schema = fields.schema();
        let found: Vec<(String, Plain)> = fields
            .map(|(field, value)| (field.name.to_string(), plain(&OwnedValue::from(value))))
            .collect();
        assert_eq!(event.fields.len(), found.len(), "{place} {}", schema.name);
        // Texts in descriptions of the system have a fixed length.
        let padded = record.hook().is_some_and(|hook| hook >> 8 == 0x0b);
        let trimmed = |value: Plain| match value {
            Plain::Text(text) if padded => Plain::Text(text.trim_end_matches('\0').to_owned()),
            other => other,
        };
        let found: Vec<(String, Plain)> = found
            .into_iter()
            .map(|(name, value)| (name, trimmed(value)))
            .collect();
        for (NamedValue { name, value }, (found_name, found)) in event.fields.iter().zip(&found) {
            assert_eq!(name, found_name, "{place} {}", schema.name);
            if *value == OwnedValue::Auto {
                assert!(found.is_filled_in(), "{place}: {name}: {found:?}");
            } else {
                assert_eq!(&plain(value), found, "{place}: {name}");
            }
        }
    }
}
