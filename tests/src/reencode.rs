//! Decoded records, encoded again by the write half.

use etl_format::Guid;
use etl_format::constants::{MARKER_EVENT_TRACE, MessageFlags, PointerSize};
use etl_format::read::{self, ExtendedItem, Header};
use etl_format::write::record::{
    Compact, Event, Extended, Full, Instance, Message, MessageMarker, PerfInfo, Raw, Record as _,
    System,
};

/// Appends a record, encoded from the fields that the read half decoded. Kinds without a struct are
/// copied.
///
/// # Panics
/// When the write half returns an error.
pub fn record(record: &read::Record<'_>, out: &mut Vec<u8>) {
    let payload = record.payload();
    let pointer_size = record.pointer_size().unwrap_or(PointerSize::P8);
    let full = |h: &read::FullHeader| Full {
        pointer_size,
        opcode: h.opcode,
        level: h.level,
        version: h.version,
        thread_id: h.thread_id,
        process_id: h.process_id,
        timestamp: h.timestamp,
        class: h.class,
        kernel_time: h.kernel_time,
        user_time: h.user_time,
        payload,
    };
    let done = match record.header() {
        Header::System(h) => match (h.kernel_time, h.user_time) {
            (Some(kernel_time), Some(user_time)) => System {
                pointer_size,
                version: h.version,
                hook: h.hook,
                thread_id: h.thread_id,
                process_id: h.process_id,
                timestamp: h.timestamp,
                kernel_time,
                user_time,
                payload,
            }
            .encode(out),
            _ => Compact {
                pointer_size,
                version: h.version,
                hook: h.hook,
                thread_id: h.thread_id,
                process_id: h.process_id,
                timestamp: h.timestamp,
                payload,
            }
            .encode(out),
        },
        Header::PerfInfo(h) => PerfInfo {
            pointer_size,
            version: h.version(),
            hook: h.hook,
            timestamp: h.timestamp,
            pebs_index: h.pebs_index,
            counters: &h.counters().collect::<Vec<_>>(),
            payload,
        }
        .encode(out),
        Header::Full(h) => full(&h).encode(out),
        Header::Instance(h) => Instance {
            full: full(&h.full),
            instance_id: h.instance_id,
            parent_instance_id: h.parent_instance_id,
            parent_class: h.parent_class,
        }
        .encode(out),
        Header::Message(h) => {
            let kind_form = record.bytes().get(3).is_some_and(|b| b & MARKER_EVENT_TRACE != 0);
            Message {
                marker: if kind_form { MessageMarker::Kind } else { MessageMarker::Wpp },
                number: h.number,
                flags: MessageFlags(h.flags.0),
                sequence: h.sequence.unwrap_or(0),
                component_id: h.component_id.unwrap_or(0),
                guid: h.guid.unwrap_or(Guid::ZERO),
                timestamp: h.timestamp.unwrap_or(0),
                thread_id: h.thread_id.unwrap_or(0),
                process_id: h.process_id.unwrap_or(0),
                payload,
            }
            .encode(out)
        }
        Header::Event(h) => event(record, &h, pointer_size, out),
        _ => Raw { bytes: record.bytes(), timestamp: None }.encode(out),
    };
    done.expect("the write half accepts what the read half decoded");
}

fn event(
    record: &read::Record<'_>,
    h: &read::EventHeader,
    pointer_size: PointerSize,
    out: &mut Vec<u8>,
) -> etl_format::Result<()> {
    let items: Vec<ExtendedItem<'_>> = record.extended().collect();
    // Extended items borrow the decoded addresses and counters.
    let words: Vec<Vec<u64>> = items
        .iter()
        .map(|item| match item {
            ExtendedItem::Stack(stack) => stack.addresses().collect(),
            ExtendedItem::PmcCounters(bytes) => bytes
                .chunks_exact(8)
                .filter_map(|c| c.try_into().ok().map(u64::from_le_bytes))
                .collect(),
            _ => Vec::new(),
        })
        .collect();
    let narrow: Vec<Vec<u32>> =
        words.iter().map(|w| w.iter().map(|&a| a as u32).collect()).collect();
    let container: Vec<[u8; 16]> = items
        .iter()
        .map(|item| match item {
            ExtendedItem::ContainerId(guid) => guid.to_bytes(),
            _ => [0; 16],
        })
        .collect();
    let extended: Vec<Extended<'_>> = items
        .iter()
        .zip(words.iter().zip(&narrow).zip(&container))
        .map(|(item, ((words, narrow), container))| match *item {
            ExtendedItem::RelatedActivity(guid) => Extended::RelatedActivity(guid),
            ExtendedItem::Sid(bytes) => Extended::Sid(bytes),
            ExtendedItem::TerminalSession(id) => Extended::TerminalSession(id),
            ExtendedItem::Instance { id, parent_id, parent } => Extended::InstanceInfo {
                instance_id: id,
                parent_instance_id: parent_id,
                parent_class: parent,
            },
            ExtendedItem::Stack(s) if s.wide => {
                Extended::Stack64 { match_id: s.match_id, addresses: words }
            }
            ExtendedItem::Stack(s) => Extended::Stack32 { match_id: s.match_id, addresses: narrow },
            ExtendedItem::StackKey { match_id, key, wide: true } => {
                Extended::StackKey64 { match_id, key }
            }
            ExtendedItem::StackKey { match_id, key, wide: false } => {
                Extended::StackKey32 { match_id, key: key as u32 }
            }
            ExtendedItem::PebsIndex(v) => Extended::PebsIndex(v),
            ExtendedItem::PmcCounters(_) => Extended::Counters(words),
            ExtendedItem::PsmKey(bytes) => Extended::PsmKey(bytes),
            ExtendedItem::EventKey(v) => Extended::EventKey(v),
            ExtendedItem::EventSchema(bytes) => Extended::Schema(bytes),
            ExtendedItem::ProviderTraits(bytes) => Extended::ProviderTraits(bytes),
            ExtendedItem::ProcessStartKey(v) => Extended::ProcessStartKey(v),
            ExtendedItem::ControlGuid(guid) => Extended::ControlGuid(guid),
            ExtendedItem::QpcDelta(v) => Extended::QpcDelta(v),
            ExtendedItem::ContainerId(_) => Extended::ContainerId(container),
            ExtendedItem::Unknown { kind, data } => Extended::Other(kind, data),
            _ => panic!("an extended item that the write half does not know: {item:?}"),
        })
        .collect();
    Event {
        pointer_size,
        flags: h.flags,
        properties: h.properties,
        thread_id: h.thread_id,
        process_id: h.process_id,
        timestamp: h.timestamp,
        provider: h.provider,
        descriptor: h.descriptor.into(),
        kernel_time: h.kernel_time,
        user_time: h.user_time,
        activity: h.activity,
        extended: &extended,
        payload: record.payload(),
    }
    .encode(out)
}
