//! Traces without names, paths and other private data.
//!
//! Replacements are as long as what they replace ([`Lengths::Keep`]) or short ([`Lengths::Free`]).
//! Equal values get equal replacements, so addresses and names resolve as before. What is replaced:
//!
//! * **Fields** with a known schema, by name ([`Policy::with_field`]) and by content
//!   ([`Category`]).
//! * **Patterns** anywhere after the header of a record, decoded or not, in 8-bit text and UTF-16:
//!   owners of home directories, SIDs as text, and, as whole words, all names of users and machines
//!   that occur in the trace.
//! * **Listed texts** ([`Scrubber::secrets`]) in any byte of any record, the header event and
//!   extended items included, in UTF-8, Windows-1252 and UTF-16, in any case: none survives, not
//!   even one that two fields spell together. [`Summary::left`] counts occurrences in bytes that
//!   cannot be changed without breaking the record.
//!
//! The trace is read twice: for names and schemas, and to write. Memory grows with the schemas and
//! with the names, up to [`MAX_NAMES`].

mod fields;
mod mask;
mod matcher;
mod patterns;
mod policy;
mod record;
mod resize;
mod summary;
mod trie;

pub use mask::Mask;
pub use policy::{Action, Category, Policy};
pub use summary::Summary;

use std::collections::BTreeSet;

use etl_format::FileHeader;
use etl_format::constants::{BUFFER_HEADER_SIZE, PointerSize};
use etl_format::read::{Order, Record, Source, Trace};
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_format::write::record::Record as _;
use etl_format::write::{Finished, Output};
use etl_schema::decode::Value;
use etl_schema::store::SchemaStore;

use crate::compression::{self, Compression};
use crate::{Error, OnRecord, Result};
use fields::RecordScrubber;
use matcher::{Encoding, TextMatcher};

/// Names of users and machines that are searched everywhere; further ones are replaced only in
/// their own fields.
pub const MAX_NAMES: usize = 1 << 10;

/// Fields that are counted by name.
const MAX_FIELDS: usize = 1 << 12;

/// Characters of the shortest name that is searched: shorter ones are often words.
const MIN_NAME: usize = 3;

/// Whether what replaces a value is as long as the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// It is: no other byte of the trace moves.
    #[default]
    Keep,
    /// Text in fields becomes a short token, or nothing if it is dropped, and its record is encoded
    /// again, so lengths reveal nothing. Records without a known schema, and those that decoding
    /// and encoding would change, keep their lengths ([`Summary::lengths_kept`]).
    Free,
}

/// Replaces what is private in a trace.
#[derive(Debug)]
pub struct Scrubber<'f> {
    policy: Policy,
    secrets: Vec<String>,
    mask: Mask,
    lengths: Lengths,
    compression: Option<Compression>,
    schemas: SchemaStore,
    on_record: OnRecord<'f>,
}

impl<'f> Scrubber<'f> {
    /// A scrubber by the usual policy, with replacements from a salt.
    #[must_use]
    pub fn new(mask: Mask) -> Self {
        Scrubber {
            policy: Policy::usual(),
            secrets: Vec::new(),
            mask,
            lengths: Lengths::Keep,
            compression: None,
            schemas: SchemaStore::default(),
            on_record: OnRecord::default(),
        }
    }

    /// Sets the actions for fields and categories.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds texts that must not survive.
    #[must_use]
    pub fn secrets<T: Into<String>>(mut self, secrets: impl IntoIterator<Item = T>) -> Self {
        self.secrets.extend(secrets.into_iter().map(Into::into));
        self
    }

    /// Sets whether replacements keep the lengths of values.
    #[must_use]
    pub fn lengths(mut self, lengths: Lengths) -> Self {
        self.lengths = lengths;
        self
    }

    /// Compresses the new trace, on as many threads as the options of the source trace have.
    #[must_use]
    pub fn compression(mut self, compression: impl Into<Option<Compression>>) -> Self {
        self.compression = compression.into();
        self
    }

    /// Decodes events with these schemas beside those of the trace.
    #[must_use]
    pub fn schemas(mut self, known: SchemaStore) -> Self {
        self.schemas = known;
        self
    }

    /// Calls `f` for every record that is read: twice for each.
    #[must_use]
    pub fn on_record(mut self, f: impl FnMut(&Record<'_>) + 'f) -> Self {
        self.on_record = OnRecord::new(f);
        self
    }

    /// Writes the trace without what is private.
    ///
    /// # Errors
    /// Errors of reading and writing, with the side.
    pub fn run<S: Source, O: Output>(
        mut self,
        trace: &mut Trace<S>,
        output: O,
    ) -> Result<Finished<O, Summary>> {
        let secrets = TextMatcher::new(self.secrets.iter().map(String::as_str), false);
        let known = std::mem::take(&mut self.schemas);
        let (mut store, names) = learn(trace, known, &self.policy, &mut self.on_record)?;
        // The records in buffer 0 cannot move, so they keep their lengths.
        let fixed = RecordScrubber {
            policy: &self.policy,
            mask: &self.mask,
            secrets: &secrets,
            names: &names,
            max_size: None,
        };
        let mut summary = Summary::new(secrets.len());
        let mut plan = RelogPlan::changing(trace, |record, out| {
            fixed.record(record, &store, out, &mut summary);
            true
        })?;
        header(&fixed, &mut plan.header, &mut summary);
        let capacity = (plan.header.buffer_size as usize).saturating_sub(BUFFER_HEADER_SIZE);
        let scrubber = match self.lengths {
            Lengths::Keep => fixed,
            Lengths::Free => RecordScrubber {
                max_size: Some(capacity & !7),
                ..fixed
            },
        };
        let threads = trace.options().threads;
        let compressor = compression::compressor(self.compression, threads)?;
        let mut relog = Relogger::start(plan, output, compressor).map_err(Error::output)?;
        let threads = relog.reading_threads(threads);
        let mut records = trace.records(Order::Time)?.with_threads(threads);
        let mut bytes = Vec::new();
        records.parallel(|records| {
            while let Some(record) = records.next_record()? {
                self.on_record.call(&record);
                if relog.is_written(&record) {
                    continue;
                }
                store.learn(&record);
                bytes.clear();
                scrubber.record(&record, &store, &mut bytes, &mut summary);
                relog.replace(&record, &bytes).map_err(Error::output)?;
            }
            Ok::<_, Error>(())
        })?;
        while summary.fields.len() > MAX_FIELDS {
            summary.fields.pop_last();
        }
        summary.damage = records.damage().to_vec();
        let output = relog.finish(&summary.damage).map_err(Error::output)?.output;
        Ok(Finished {
            output,
            report: summary,
        })
    }
}

/// The first pass: schemas, and the names of users and machines.
fn learn<S: Source>(
    trace: &mut Trace<S>,
    mut store: SchemaStore,
    policy: &Policy,
    on_record: &mut OnRecord<'_>,
) -> etl_format::Result<(SchemaStore, TextMatcher)> {
    let mut found = BTreeSet::new();
    let users = policy.of(Category::Users) != Action::Keep;
    let machines = policy.of(Category::Machines) != Action::Keep;
    trace.records(Order::Time)?.for_each(|record| {
        on_record.call(&record);
        store.learn(&record);
        if found.len() >= MAX_NAMES {
            return Ok(());
        }
        if users {
            let payload = record.payload();
            let mut from = 0;
            while let Some((home, name)) = patterns::home(payload, from) {
                from = home.end.max(from + 1);
                found.insert(name.to_lowercase());
            }
        }
        if users || machines {
            add_names(&record, &store, users, machines, &mut found);
        }
        Ok::<_, etl_format::Error>(())
    })?;
    let names = found
        .iter()
        .map(String::as_str)
        .filter(|name| is_distinctive(name));
    Ok((store, TextMatcher::new(names.take(MAX_NAMES), true)))
}

/// Adds the names in fields of users and machines.
fn add_names(
    record: &Record<'_>,
    store: &SchemaStore,
    users: bool,
    machines: bool,
    found: &mut BTreeSet<String>,
) {
    let Some(decoder) = store.decoder(record) else {
        return;
    };
    let wanted = |field: &etl_schema::Field| match policy::category(field) {
        Some(Category::Users) => users,
        Some(Category::Machines) => machines,
        _ => false,
    };
    if !decoder.schema().fields.iter().any(wanted) {
        return;
    }
    let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
    for (field, value) in decoder.fields(record.payload(), pointers) {
        if !wanted(field) {
            continue;
        }
        let text = match value {
            Value::Utf16(text) => text.before_nul().to_string(),
            Value::Ansi(bytes) | Value::Utf8(bytes) => {
                let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                Encoding::Narrow.decoded(bytes.get(..end).unwrap_or_default())
            }
            _ => continue,
        };
        // `DOMAIN\user` holds two names.
        found.extend(text.split(['\\', '@']).map(str::to_lowercase));
    }
}

/// Whether a name identifies a user or machine, and is not a common word.
fn is_distinctive(name: &str) -> bool {
    match name {
        "system" | "user" | "users" | "admin" | "administrator" | "guest" | "public"
        | "default" | "service" | "local" | "network" | "workgroup" | "localhost"
        | "nt authority" | "builtin" | "none" => false,
        _ => name.chars().count() >= MIN_NAME && name.chars().any(char::is_alphabetic),
    }
}

/// Scrubs the names in the header event. Its numbers stay; listed texts in them are counted.
fn header(scrubber: &RecordScrubber<'_>, header: &mut FileHeader, summary: &mut Summary) {
    let mut text = |units: &mut [u16]| {
        let mut bytes: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
        scrubber.patterns(&mut bytes, summary);
        scrubber.erase(&mut bytes, &[], summary);
        for (unit, pair) in units.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *unit = u16::from_le_bytes(*pair);
        }
    };
    text(&mut header.logger_name);
    text(&mut header.log_file_name);
    text(&mut header.time_zone.standard_name);
    text(&mut header.time_zone.daylight_name);
    let mut bytes = Vec::new();
    if header.encode(&mut bytes).is_ok() {
        let mut from = 0;
        while let Some(found) = scrubber.secrets.find(&bytes, from) {
            summary.left += 1;
            from = found.start + 1;
        }
    }
}
