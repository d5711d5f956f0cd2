//! Makes rows of records.

use std::io::Write;

use etl_format::Clock;
use etl_format::read::Record;
use etl_schema::decode::Decoder;
use etl_schema::render;
use etl_schema::store::SchemaStore;

use super::head::{Head, Heads};
use super::row::Row;
use crate::context::Context;
use crate::header_fields::HeaderFields;

/// Makes rows of records; keeps what consecutive records share.
#[derive(Clone, Debug)]
pub(super) struct RowModel<'c> {
    clock: Clock,
    /// The time that seconds count from.
    pub(super) start: i64,
    pub(super) store: SchemaStore,
    pub(super) context: Option<&'c Context<'c>>,
    /// The last second that was formatted.
    second: i64,
    /// UTC of the last record.
    time: Vec<u8>,
    /// Whether rows have seconds since the start, and those of the last record.
    pub(super) relative: bool,
    seconds: Vec<u8>,
    /// The name of the file, where rows have it.
    pub(super) file: Option<String>,
    /// What the last events have in common with others.
    heads: Heads,
    /// In place of a head that there always is.
    no_head: Head,
    /// The readable text of the last payload that was not decoded.
    payload_text: String,
}

impl<'c> RowModel<'c> {
    pub(super) fn new(clock: Clock, store: SchemaStore) -> Self {
        RowModel {
            clock,
            start: clock.start_time,
            store,
            context: None,
            second: i64::MIN,
            time: Vec::new(),
            relative: false,
            seconds: Vec::new(),
            file: None,
            heads: Heads::default(),
            no_head: Head::default(),
            payload_text: String::new(),
        }
    }

    /// The row of a record, with its schema where `decode` asks for it.
    #[inline]
    pub(super) fn row<'a>(&'a mut self, record: &'a Record<'a>, decode: bool) -> Row<'a> {
        self.format_time(record.timestamp());
        let RowModel { clock, store, heads, no_head, payload_text, context, .. } = self;
        let decoder = if decode { store.decoder(record) } else { None };
        let schema = decoder.map(Decoder::schema);
        payload_text.clear();
        let payload = record.payload();
        // A layout without any fields says nothing of a payload.
        let is_unknown = schema.is_none_or(|s| s.fields.is_empty()) && !payload.is_empty();
        let fields = match decoder {
            Some(decoder) if !is_unknown => {
                Some(decoder.fields(payload, decoder.pointers_of(record)))
            }
            _ => None,
        };
        if is_unknown && decode {
            render::readable_text(payload_text, payload);
        }
        let (process_id, thread_id) = match context {
            Some(context) => context.ids(record),
            None => (record.known_process_id(), record.known_thread_id()),
        };
        Row {
            record,
            process_id,
            thread_id,
            context: *context,
            clock,
            start: self.start,
            time: &self.time,
            seconds: self.relative.then_some(&*self.seconds),
            file: self.file.as_deref(),
            store,
            head: heads.of(record, schema).unwrap_or(no_head),
            activity: HeaderFields::activity(record),
            schema: schema.map(|schema| &**schema),
            fields,
            payload_text,
        }
    }

    /// Formats a time as UTC; all but the fraction only when the second changes.
    fn format_time(&mut self, timestamp: i64) {
        const PER_SECOND: i64 = 10_000_000;
        let filetime = self.clock.filetime(timestamp);
        if self.relative {
            let since = filetime.saturating_sub(self.start);
            let (whole, rest) = (
                since.unsigned_abs() / PER_SECOND as u64,
                since.unsigned_abs() % PER_SECOND as u64,
            );
            self.seconds.clear();
            // Writing to a vector does not fail.
            let _ = write!(self.seconds, "{}{whole}.{rest:07}", if since < 0 { "-" } else { "" });
        }
        let second = filetime.div_euclid(PER_SECOND);
        if second != self.second || self.time.is_empty() {
            self.second = second;
            let text = etl_format::clock::iso_utc(second.saturating_mul(PER_SECOND));
            self.time.clear();
            self.time.extend(text.as_bytes());
        }
        // Less than a second, so less than 2³² of these.
        let fraction = filetime.wrapping_sub(second.wrapping_mul(PER_SECOND)) as u32;
        let digit = |place: u32| b'0' + (fraction / place % 10) as u8;
        let places = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1].map(digit);
        let [a, b, c, d, e, f, g] = places;
        let digits = [a, b, c, d, e, f, g, b'Z'];
        if let Some(end) = self.time.last_chunk_mut() {
            *end = digits;
        }
    }
}
