//! A trace as text that does not change from run to run: for snapshot tests of decoders.
//!
//! A test of a decoder compares the events of a trace, but not when and where they were recorded.
//! [`Snapshot`] renders records in time order, one block of lines each, and replaces values that
//! vary: times by microseconds since the first record, processes and threads by ordinals (`P1`,
//! `T1`), addresses by ordinals (`@1`), all in the order in which they appear. The text fits
//! `insta::assert_snapshot!`, and two texts compare line by line.
//!
//! ```
//! use etl_schema::testing::snapshot::Snapshot;
//!
//! # fn trace() -> Vec<u8> { etl_schema::testing::snapshot::example() }
//! let trace: Vec<u8> = trace(); // or std::fs::read("trace.etl")?
//! let text = Snapshot::new().render(trace.as_slice())?;
//! assert_eq!(text, "\
//! ###1 +0us P1/T1 Microsoft-Windows-DotNETRuntime AppDomainLoad_V1 id=156 v1 op=41 \
//!     level=4 keywords=0x8
//!   AppDomainID=@1
//!   AppDomainFlags=0x2(Executable)
//!   AppDomainName=\"app.exe\"
//!   AppDomainIndex=1
//!   ClrInstanceID=9
//! ");
//! # Ok::<(), etl_format::Error>(())
//! ```

use std::collections::HashMap;
use std::fmt::Write;

use crate::decode::Value;
use crate::model::{Field, FieldKind, Identity, InType};
use crate::providers::CLR_RUNTIME;
use crate::render;
use crate::store::SchemaStore;
use crate::tables::Registry;
use etl_format::constants::PointerSize;
use etl_format::read::{ExtendedItem, Header, Mode, Options, Order, Record, Source, Trace};
use etl_format::{FileTime, Guid, Result, Ticks};

/// How to render a trace. By default everything that varies between recordings is replaced.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    providers: Vec<Guid>,
    keep_times: bool,
    keep_ids: bool,
    keep_addresses: bool,
    keep_order: bool,
    limit: Option<usize>,
}

impl Snapshot {
    /// Everything that varies is replaced; all events are rendered, kernel records are not.
    #[must_use]
    pub fn new() -> Self {
        Snapshot::default()
    }

    /// Only records of this provider, or class; may be called for several. Kernel records are
    /// rendered only if their class is named.
    #[must_use]
    pub fn provider(mut self, provider: Guid) -> Self {
        self.providers.push(provider);
        self
    }

    /// Times as UTC.
    #[must_use]
    pub fn keep_times(mut self) -> Self {
        self.keep_times = true;
        self
    }

    /// Process and thread ids as they are.
    #[must_use]
    pub fn keep_ids(mut self) -> Self {
        self.keep_ids = true;
        self
    }

    /// Pointers, and ids as wide as pointers, as they are.
    #[must_use]
    pub fn keep_addresses(mut self) -> Self {
        self.keep_addresses = true;
        self
    }

    /// Leaves out ordinals and times: the text of a record does not depend on the records before
    /// it.
    #[must_use]
    pub fn without_ordinals(mut self) -> Self {
        self.keep_order = true;
        self
    }

    /// At most so many records.
    #[must_use]
    pub fn limit(mut self, records: usize) -> Self {
        self.limit = Some(records);
        self
    }

    /// Renders a trace. The same bytes always give the same text, on every system.
    ///
    /// # Errors
    /// When the bytes are not a trace, or reading fails. Damaged regions are skipped; a last line
    /// reports them.
    pub fn render<S: Source>(&self, source: S) -> Result<String> {
        let options = Options {
            mode: Mode::Salvage,
            ..Options::default()
        };
        let mut trace = Trace::open(source, &options)?;
        let clock = trace.clock();
        let mut records = trace.records(Order::Time)?;
        let mut renderer = Renderer {
            how: self.clone(),
            ..Renderer::default()
        };
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut out = String::new();
        let mut rendered = 0;
        while rendered < limit
            && let Some(record) = records.next_record()?
        {
            renderer.store.learn(&record);
            if renderer.wants(&record) {
                rendered += 1;
                let at = clock.time(record.timestamp()).get();
                // Writing into a String does not fail.
                let _ = renderer.record(&mut out, &record, rendered, at);
            }
        }
        if rendered < limit && !records.damage().is_empty() {
            let _ = writeln!(out, "## damaged in {} places", records.damage().len());
        }
        Ok(out)
    }
}

/// Assigns ordinals to what varies.
#[derive(Debug, Default)]
struct Ordinals(HashMap<u64, usize>);

impl Ordinals {
    fn of(&mut self, value: u64) -> usize {
        let next = self.0.len() + 1;
        *self.0.entry(value).or_insert(next)
    }
}

#[derive(Default)]
struct Renderer {
    how: Snapshot,
    store: SchemaStore,
    first: Option<i64>,
    processes: Ordinals,
    threads: Ordinals,
    addresses: Ordinals,
}

impl Renderer {
    fn wants(&self, record: &Record<'_>) -> bool {
        let Some(provider) = record.provider() else {
            return false;
        };
        match self.how.providers.as_slice() {
            [] => !record.is_kernel(),
            some => some.contains(&provider),
        }
    }

    fn record(
        &mut self,
        out: &mut String,
        record: &Record<'_>,
        ordinal: usize,
        filetime: i64,
    ) -> std::fmt::Result {
        self.head(out, record, ordinal, filetime)?;
        let store = std::mem::take(&mut self.store);
        if let Some(mut fields) = store.fields(record) {
            for (field, value) in fields.by_ref() {
                self.field(out, field, value)?;
            }
            let note = fields.note();
            if !note.is_exact() {
                let missing = note.missing;
                let left = note.trailing.len();
                writeln!(out, "  ! {missing} fields missing, {left} bytes left over")?;
            }
        } else {
            out.push_str("  payload=");
            rendered(out, |out| render::hex_bytes(out, record.payload()));
            out.push('\n');
        }
        self.store = store;
        for item in record.extended() {
            match item {
                ExtendedItem::Stack(stack) => writeln!(out, "  [stack] {} frames", stack.len())?,
                ExtendedItem::RelatedActivity(parent) => writeln!(out, "  [related] {parent}")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn head(
        &mut self,
        out: &mut String,
        record: &Record<'_>,
        ordinal: usize,
        filetime: i64,
    ) -> std::fmt::Result {
        out.push_str("##");
        if !self.how.keep_order {
            write!(out, "{ordinal} ")?;
            let first = *self.first.get_or_insert(filetime);
            if self.how.keep_times {
                write!(out, "{} ", etl_format::FileTime::new(filetime))?;
            } else {
                write!(out, "+{}us ", filetime.saturating_sub(first) / 10)?;
            }
        }
        if let Some(pid) = record.process_id()
            && let Some(tid) = record.thread_id()
        {
            if self.how.keep_ids {
                write!(out, "{pid}/{tid} ")?;
            } else if self.how.keep_order {
                out.push(' ');
            } else {
                let process = self.processes.of(pid.get().into());
                let thread = self.threads.of(tid.get().into());
                write!(out, "P{process}/T{thread} ")?;
            }
        }
        let id = record.identity();
        match self.store.provider_name(id.provider) {
            Some(name) => escaped(out, name),
            None => write!(out, "{}", id.provider)?,
        }
        let name = self
            .store
            .decoder(record)
            .map(|d| d.schema().name.to_string());
        if let Some(name) = name.filter(|n| !n.is_empty()) {
            out.push(' ');
            escaped(out, &name);
        }
        match record.header() {
            Header::Event(h) => {
                let d = h.descriptor;
                write!(
                    out,
                    " id={} v{} op={} level={} keywords={:#x}",
                    d.id, d.version, d.opcode, d.level, d.keyword
                )?;
                if h.activity != Guid::ZERO {
                    write!(out, " activity={}", h.activity)?;
                }
            }
            _ => write!(out, " v{} op={} level={}", id.version, id.opcode, id.level)?,
        }
        out.push('\n');
        Ok(())
    }

    fn field(&mut self, out: &mut String, field: &Field, value: Value<'_>) -> std::fmt::Result {
        out.push_str("  ");
        escaped(out, &field.name);
        out.push('=');
        match value {
            Value::Pointer(address) if !self.how.keep_addresses => self.address(out, address)?,
            Value::UInt(id) if !self.how.keep_addresses && is_identity(field) => {
                self.address(out, id)?;
            }
            value => rendered(out, |out| {
                render::Renderer::new().text_value(out, field, value)
            }),
        }
        out.push('\n');
        Ok(())
    }

    fn address(&mut self, out: &mut String, address: u64) -> std::fmt::Result {
        match address {
            // Zero means none everywhere.
            0 => write!(out, "0"),
            _ if self.how.keep_order => write!(out, "@"),
            _ => write!(out, "@{}", self.addresses.of(address)),
        }
    }
}

/// Appends the output of a function.
fn rendered(out: &mut String, render: impl FnOnce(&mut Vec<u8>)) {
    let mut text = Vec::new();
    render(&mut text);
    out.push_str(&String::from_utf8_lossy(&text));
}

/// Appends a name of the trace, escaped so that it stays on its line.
fn escaped(out: &mut String, name: &str) {
    rendered(out, |out| render::escape_line(out, name));
}

/// Whether a field holds an id that is an address in the CLR: 64 bits wide and named so.
fn is_identity(field: &Field) -> bool {
    let name = &*field.name;
    let wide = matches!(
        field.kind,
        FieldKind::Value(InType::UInt64 | InType::HexInt64)
    );
    wide && (name.ends_with("ID") || name.ends_with("Address"))
}

/// A trace of one event, for the examples.
#[doc(hidden)]
#[must_use]
pub fn example() -> Vec<u8> {
    use crate::encode::PayloadBuilder;
    use etl_format::FileHeader;
    use etl_format::constants::EventFlags;
    use etl_format::write::Session;
    use etl_format::write::record::Event;

    let load = Identity::Modern {
        id: 156,
        version: 1,
    };
    let Some(load) = Registry::builtin().event(CLR_RUNTIME, load) else {
        return Vec::new();
    };
    let payload = PayloadBuilder::new(&load.schema)
        .set("AppDomainID", 0x7f00_1000u64)
        .set("AppDomainFlags", 2u32)
        .set("AppDomainName", "app.exe")
        .set("AppDomainIndex", 1u32)
        .set("ClrInstanceID", 9u16)
        .encode(PointerSize::P8)
        .unwrap_or_default();
    let event = Event::new(CLR_RUNTIME, load.schema.descriptor(), 2_000)
        .flags(EventFlags(0x40))
        .process(4, 8)
        .payload(&payload);
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(132_000_000_000_000_000),
        ..FileHeader::new()
    };
    let written = Session::in_memory(header).and_then(|mut session| {
        session.write(0, &event)?;
        session.finish()
    });
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_keeps_times_ids_and_addresses_on_request() {
        let trace = example();
        let kept = Snapshot::new().keep_times().keep_ids().keep_addresses();
        let text = kept.render(trace.as_slice()).unwrap();
        assert!(
            text.starts_with("##1 2019-04-17T18:40:00.0001000Z 4/8 Microsoft-"),
            "{text}"
        );
        assert!(text.contains("  AppDomainID=0x7f001000\n"), "{text}");
        let unordered = Snapshot::new()
            .without_ordinals()
            .render(trace.as_slice())
            .unwrap();
        assert!(unordered.starts_with("## Microsoft-"), "{unordered}");
        let none = Snapshot::new()
            .provider(Guid::ZERO)
            .render(trace.as_slice())
            .unwrap();
        assert_eq!(none, "");
        assert_eq!(
            Snapshot::new().limit(0).render(trace.as_slice()).unwrap(),
            ""
        );
    }
}
