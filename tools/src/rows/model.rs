//! Makes rows of records.

use std::io::Write;

use etl_format::read::Record;
use etl_format::{Clock, Guid};
use etl_schema::store::SchemaStore;
use etl_schema::{providers, render};

use super::json;
use super::row::Row;
use crate::context::Context;
use crate::header_fields::HeaderFields;

/// Makes rows of records; keeps what consecutive records share.
#[derive(Clone, Debug)]
pub(super) struct RowModel<'c> {
    clock: Clock,
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
    /// The last provider, and its name where one is known without the trace.
    provider: Guid,
    provider_name: Option<&'static str>,
    /// The JSON members of that provider.
    provider_json: Vec<u8>,
    /// What the last event is called that no schema describes.
    number_name: String,
    /// The readable text of the last payload that was not decoded.
    payload_text: String,
}

impl<'c> RowModel<'c> {
    pub(super) fn new(clock: Clock, store: SchemaStore) -> Self {
        RowModel {
            clock,
            store,
            context: None,
            second: i64::MIN,
            time: Vec::new(),
            relative: false,
            seconds: Vec::new(),
            file: None,
            provider: Guid::ZERO,
            provider_name: None,
            provider_json: Vec::new(),
            number_name: String::new(),
            payload_text: String::new(),
        }
    }

    /// The row of a record, with its schema where `decode` asks for it.
    #[inline]
    pub(super) fn row<'a>(&'a mut self, record: &'a Record<'a>, decode: bool) -> Row<'a> {
        self.format_time(record.timestamp());
        let provider = record.provider();
        if let Some(provider) = provider {
            self.look_up(provider);
        }
        let RowModel { store, number_name, payload_text, context, .. } = self;
        let header = HeaderFields::of(record);
        let described = if decode { store.fields(record) } else { None };
        let (schema, mut fields) = described.unzip();
        number_name.clear();
        payload_text.clear();
        if schema.is_none() {
            header.write_number_name(number_name, record);
        }
        // A layout without any fields says nothing of a payload.
        if schema.is_none_or(|s| s.fields.is_empty()) && !record.payload().is_empty() {
            fields = None;
            if decode {
                render::readable_text(payload_text, record.payload());
            }
        }
        // With all bits set, an id is unknown.
        let known = |id: Option<u32>| id.filter(|&id| id != u32::MAX);
        let (process_id, thread_id) = match context {
            Some(context) => context.ids(record),
            None => (known(record.process_id()), known(record.thread_id())),
        };
        Row {
            record,
            process_id,
            thread_id,
            context: *context,
            time: &self.time,
            seconds: self.relative.then_some(&*self.seconds),
            file: self.file.as_deref(),
            provider,
            provider_name: provider.and(self.provider_name),
            store,
            provider_json: &self.provider_json,
            header,
            schema,
            fields,
            number_name,
            payload_text,
        }
    }

    /// Formats a time as UTC; all but the fraction only when the second changes.
    fn format_time(&mut self, timestamp: i64) {
        const PER_SECOND: i64 = 10_000_000;
        let filetime = self.clock.filetime(timestamp);
        if self.relative {
            let since = filetime.saturating_sub(self.clock.start_time);
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
        let mut fraction = filetime.rem_euclid(PER_SECOND);
        let mut digits = *b"0000000Z";
        for digit in digits.iter_mut().rev().skip(1) {
            *digit = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
        if let Some(end) = self.time.last_chunk_mut() {
            *end = digits;
        }
    }

    fn look_up(&mut self, provider: Guid) {
        if provider != self.provider || self.provider_json.is_empty() {
            (self.provider, self.provider_name) = (provider, providers::name(provider));
            self.provider_json.clear();
            json::write_provider(&mut self.provider_json, provider, self.provider_name);
        }
    }
}
