//! Traces without names, paths and other private data.
//!
//! Replacements are as long as the values ([`Lengths::Keep`]) or short ([`Lengths::Free`]). Equal
//! values get equal replacements, so addresses and names resolve as before. What is replaced:
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
use etl_schema::Field;
use etl_schema::decode::Value;
use etl_schema::store::SchemaStore;

use crate::compression::{self, Compression};
use crate::{Error, OnRecord, Result};
use fields::RecordScrubber;
use matcher::{Encoding, TextMatcher};

/// The most names of users and machines that are searched everywhere. Further names are replaced
/// only in their own fields.
pub const MAX_NAMES: usize = 1 << 10;

/// The most fields that are counted by name.
const MAX_FIELDS: usize = 1 << 12;

/// Characters of the shortest name that is searched: shorter names are often words.
const MIN_NAME: usize = 3;

/// Whether a replacement is as long as the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// It is: no other byte of the trace moves.
    #[default]
    Keep,
    /// Text in fields becomes a short token, or nothing if it is dropped, and its record is encoded
    /// again, so lengths reveal nothing. Records without a known schema, and records that decoding
    /// and encoding would change, keep their lengths ([`Summary::lengths_kept`]).
    Free,
}

/// Replaces private data in a trace.
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

    /// Decodes events with these schemas in addition to the schemas of the trace.
    #[must_use]
    pub fn schemas(mut self, schemas: SchemaStore) -> Self {
        self.schemas = schemas;
        self
    }

    /// Calls `f` for every record that is read: twice for each.
    #[must_use]
    pub fn on_record(mut self, f: impl FnMut(&Record<'_>) + 'f) -> Self {
        self.on_record = OnRecord::new(f);
        self
    }

    /// Writes the trace without private data.
    ///
    /// # Errors
    /// Errors of reading and writing, with the side.
    pub fn run<S: Source, O: Output>(
        mut self,
        trace: &mut Trace<S>,
        output: O,
    ) -> Result<Finished<O, Summary>> {
        let secrets = TextMatcher::new(self.secrets.iter().map(String::as_str));
        let schemas = std::mem::take(&mut self.schemas);
        let Learned { mut store, names } =
            learn(trace, schemas, &self.policy, &mut self.on_record)?;
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
        scrub_header(&fixed, &mut plan.header, &mut summary);
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

/// The result of the first pass.
struct Learned {
    /// All schemas.
    store: SchemaStore,
    /// The names of users and machines.
    names: TextMatcher,
}

/// The first pass: learns schemas, and the names of users and machines.
fn learn<S: Source>(
    trace: &mut Trace<S>,
    mut store: SchemaStore,
    policy: &Policy,
    on_record: &mut OnRecord<'_>,
) -> etl_format::Result<Learned> {
    let mut names = BTreeSet::new();
    trace.records(Order::Time)?.for_each(|record| {
        on_record.call(&record);
        store.learn(&record);
        if names.len() < MAX_NAMES {
            add_homes(&record, policy, &mut names);
            add_names(&record, &store, policy, &mut names);
        }
        Ok::<_, etl_format::Error>(())
    })?;
    names.retain(|name| is_distinctive(name));
    let names = names.iter().map(String::as_str).take(MAX_NAMES);
    Ok(Learned {
        store,
        names: TextMatcher::new(names).only_words(),
    })
}

/// Adds the owners of home directories.
fn add_homes(record: &Record<'_>, policy: &Policy, names: &mut BTreeSet<String>) {
    if policy.of(Category::Users) == Action::Keep {
        return;
    }
    let mut from = 0;
    while let Some(home) = patterns::home(record.payload(), from) {
        from = home.owner.end.max(from + 1);
        names.insert(home.name.to_lowercase());
    }
}

/// Whether a field contains the name of a user or machine that is replaced.
fn is_private_name(field: &Field, policy: &Policy) -> bool {
    match policy::category(field) {
        Some(category @ (Category::Users | Category::Machines)) => {
            policy.of(category) != Action::Keep
        }
        _ => false,
    }
}

/// Adds the names in fields of users and machines.
fn add_names(
    record: &Record<'_>,
    store: &SchemaStore,
    policy: &Policy,
    names: &mut BTreeSet<String>,
) {
    if policy.of_names() == Action::Keep {
        return;
    }
    let Some(decoder) = store.decoder(record) else {
        return;
    };
    let mut fields = decoder.schema().fields.iter();
    if !fields.any(|field| is_private_name(field, policy)) {
        return;
    }
    let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
    for (field, value) in decoder.fields(record.payload(), pointers) {
        if !is_private_name(field, policy) {
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
        // `DOMAIN\user` contains two names.
        names.extend(text.split(['\\', '@']).map(str::to_lowercase));
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
fn scrub_header(scrubber: &RecordScrubber<'_>, header: &mut FileHeader, summary: &mut Summary) {
    scrub_units(scrubber, &mut header.logger_name, summary);
    scrub_units(scrubber, &mut header.log_file_name, summary);
    scrub_units(scrubber, &mut header.time_zone.standard_name, summary);
    scrub_units(scrubber, &mut header.time_zone.daylight_name, summary);
    let mut bytes = Vec::new();
    if header.encode(&mut bytes).is_ok() {
        summary.left += scrubber.secrets.find_all(&bytes).len() as u64;
    }
}

/// Scrubs a text in UTF-16.
fn scrub_units(scrubber: &RecordScrubber<'_>, units: &mut [u16], summary: &mut Summary) {
    let mut bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    scrubber.patterns(&mut bytes, summary);
    scrubber.erase(&mut bytes, &[], summary);
    for (unit, pair) in units.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *unit = u16::from_le_bytes(*pair);
    }
}
