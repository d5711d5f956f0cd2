//! Decoded records, encoded again by the write half.

use etl_format::constants::{MARKER_EVENT_TRACE, MessageFlags, PointerSize};
use etl_format::read::{self, ExtendedItem, Header, RawItem};
use etl_format::write::record::{
    Event, Extended, Full, Instance, Message, MessageMarker, PerfInfo, Raw, Record as _, System,
};
use etl_format::{Guid, ProcessId, ThreadId, Ticks};

/// Appends a record, encoded from the fields that the read half decoded. Kinds without a struct are
/// copied.
pub fn record(record: &read::Record<'_>, out: &mut Vec<u8>) {
    let payload = record.payload();
    let pointer_size = record.pointer_size().unwrap_or(PointerSize::P8);
    let full = |h: &read::FullHeader| {
        Full::new(h.class, h.opcode, h.timestamp.get())
            .pointer_size(pointer_size)
            .version(h.version)
            .level(h.level)
            .process(h.process_id.get(), h.thread_id.get())
            .cpu_times(h.kernel_time, h.user_time)
            .payload(payload)
    };
    let done = match record.header() {
        Header::System(h) => {
            let system = System::new(h.hook, h.timestamp.get())
                .pointer_size(pointer_size)
                .version(h.version)
                .process(h.process_id.get(), h.thread_id.get())
                .payload(payload);
            match (h.kernel_time, h.user_time) {
                (Some(kernel), Some(user)) => system.cpu_times(kernel, user).encode(out),
                _ => system.compact().encode(out),
            }
        }
        Header::PerfInfo(h) => {
            let counters: Vec<u64> = h.counters().collect();
            let mut sample = PerfInfo::new(h.hook, h.timestamp.get())
                .pointer_size(pointer_size)
                .version(h.version())
                .counters(&counters)
                .payload(payload);
            if let Some(index) = h.pebs_index {
                sample = sample.pebs_index(index);
            }
            sample.encode(out)
        }
        Header::Full(h) => full(&h).encode(out),
        Header::Instance(h) => Instance::new(full(&h.full), h.instance_id)
            .parent(h.parent_class, h.parent_instance_id)
            .encode(out),
        Header::Message(h) => {
            let kind_form = record
                .bytes()
                .get(3)
                .is_some_and(|b| b & MARKER_EVENT_TRACE != 0);
            Message::new(
                h.guid.unwrap_or(Guid::ZERO),
                h.number,
                h.timestamp.unwrap_or(Ticks::new(0)).get(),
            )
            .marker(if kind_form {
                MessageMarker::Kind
            } else {
                MessageMarker::Wpp
            })
            .sequence(h.sequence.unwrap_or(0))
            .component(h.component_id.unwrap_or(0))
            .process(
                h.process_id.unwrap_or(ProcessId::new(0)).get(),
                h.thread_id.unwrap_or(ThreadId::new(0)).get(),
            )
            .flags(MessageFlags(h.flags.0))
            .payload(payload)
            .encode(out)
        }
        Header::Event(h) => event(record, &h, pointer_size, out),
        _ => Raw {
            bytes: record.bytes(),
            timestamp: None,
        }
        .encode(out),
    };
    done.expect("the write half accepts what the read half decoded");
}

fn event(
    record: &read::Record<'_>,
    h: &read::EventHeader,
    pointer_size: PointerSize,
    out: &mut Vec<u8>,
) -> etl_format::Result<()> {
    // Addresses are decoded to integers, which the items borrow.
    let words: Vec<Vec<u64>> = record
        .extended()
        .map(|item| match item {
            ExtendedItem::Stack(stack) => stack.addresses().collect(),
            _ => Vec::new(),
        })
        .collect();
    let narrow: Vec<Vec<u32>> = words
        .iter()
        .map(|w| w.iter().map(|&a| a as u32).collect())
        .collect();
    let (mut items, mut extended) = (record.extended(), Vec::new());
    let typed = record.extended().zip(words.iter().zip(&narrow));
    for (item, (words, narrow)) in typed {
        let RawItem { kind, data } = items.next_raw().expect("as many as typed ones");
        extended.push(match item {
            ExtendedItem::RelatedActivity(guid) => Extended::RelatedActivity(guid),
            ExtendedItem::Stack(s) if s.wide => Extended::Stack64 {
                match_id: s.match_id,
                addresses: words,
            },
            ExtendedItem::Stack(s) => Extended::Stack32 {
                match_id: s.match_id,
                addresses: narrow,
            },
            ExtendedItem::EventSchema(bytes) => Extended::Schema(bytes),
            ExtendedItem::ProviderTraits(bytes) => Extended::ProviderTraits(bytes),
            _ => Extended::Other(kind, data),
        });
    }
    Event::new(h.provider, h.descriptor, h.timestamp.get())
        .pointer_size(pointer_size)
        .flags(h.flags)
        .properties(h.properties)
        .process(h.process_id.get(), h.thread_id.get())
        .cpu_times(h.kernel_time, h.user_time)
        .activity(h.activity)
        .extended(&extended)
        .payload(record.payload())
        .encode(out)
}
