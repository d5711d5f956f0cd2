//! What a recording contains: kinds of events, failures, and the commands that show more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use etl_analysis::Machine;
use etl_events::contents::{Contents, EventKey, EventKind, EventTotal, FailureKey};
use etl_format::Ticks;

use crate::cell::Cell;
use crate::column::{Column, Kind, Style};
use crate::row::{Columns, Row};
use crate::selection::Selection;

const COUNT: Column = Column::count("count", "How many");
const PROVIDER: Column = Column::new("provider", Kind::Word, "Name of the provider, or its GUID");
const EVENT: Column = Column::new("event", Kind::Word, "Name of the event, or its number");
const LEVEL: Column = Column::new(
    "level_name",
    Kind::Word,
    "`critical`, `error`, `warning`, `information` or `verbose`; null if the event has no level",
)
.or_null();
const FIRST: Column = Column::time("first", "Time of the first");
const LAST: Column = Column::time("last", "Time of the last");
const EXAMPLE: Column = Column::new(
    "example",
    Kind::Text,
    "Message of the first event, or its fields; null if its schema is not known",
)
.or_null();

/// Names of the levels of ETW, from 1.
const LEVELS: [&str; 5] = ["critical", "error", "warning", "information", "verbose"];

/// The name of a level; empty if it has none.
fn level_name(level: u8) -> &'static str {
    let index = usize::from(level).checked_sub(1);
    let name = index.and_then(|index| LEVELS.get(index));
    name.copied().unwrap_or_default()
}

/// A row of the kinds of events of `analyze summary`.
#[derive(Clone, Debug)]
pub struct EventKindRow<'m> {
    machine: &'m Machine,
    kind: &'m EventKind,
    total: EventTotal,
}

impl EventKindRow<'_> {
    /// The kind of the events.
    #[must_use]
    pub fn kind(&self) -> &EventKind {
        self.kind
    }

    /// How many events there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total.count
    }

    fn time(&self, time: Ticks) -> Cell<'static> {
        Cell::time(self.machine.clock(), Some(time))
    }
}

impl<'m> EventKindRow<'m> {
    /// Adds events with the same names.
    fn add(&mut self, other: Self) {
        if other.total.first < self.total.first {
            self.kind = other.kind;
        }
        self.total = self.total.and(other.total);
    }
}

/// What the events of a row have in common: versions and keywords may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KindName<'m> {
    provider: &'m str,
    event: &'m str,
    level: u8,
}

impl<'m> KindName<'m> {
    fn of(kind: &'m EventKind) -> Self {
        KindName {
            provider: &kind.provider,
            event: &kind.event,
            level: kind.level,
        }
    }
}

/// What the events of a row of failures have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FailureName<'m> {
    kind: KindName<'m>,
    field: &'m str,
    code: Option<u32>,
}

impl Row for EventKindRow<'_> {
    const NAME: &'static str = "summary.event_kinds";
    const ROW: &'static str = "The events of one kind, the most frequent first";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        columns.add(COUNT.heading("count"), |row| {
            Cell::int(Some(row.total.count))
        });
        columns.add(LEVEL.heading("level"), |row| {
            Cell::text(level_name(row.kind.level))
        });
        columns.add(FIRST.heading("first"), |row| row.time(row.total.first));
        columns.add(LAST, |row| row.time(row.total.last));
        columns.add(PROVIDER.heading("provider"), |row| {
            Cell::text(&row.kind.provider)
        });
        columns.add(EVENT.heading("event"), |row| Cell::text(&row.kind.event));
        columns.add(EXAMPLE.heading("first event"), |row| {
            Cell::text(&row.kind.example)
        });
    }
}

/// A row for each kind of events of the selected processes, the most frequent first.
#[must_use]
pub fn event_kinds<'m>(
    machine: &'m Machine,
    contents: &'m Contents,
    selection: &Selection,
) -> Vec<EventKindRow<'m>> {
    let mut rows: BTreeMap<KindName<'m>, EventKindRow<'m>> = BTreeMap::new();
    // In a fixed order: of kinds that began at the same time, the first one is the example.
    let mut events: Vec<_> = contents.events().collect();
    events.sort_by_key(|(key, _)| **key);
    for (EventKey { kind, process }, &total) in events {
        let Some(kind) = contents.kind(*kind) else {
            continue;
        };
        if !selection.has_process(*process) {
            continue;
        }
        let row = EventKindRow {
            machine,
            kind,
            total,
        };
        match rows.entry(KindName::of(kind)) {
            Entry::Vacant(place) => {
                place.insert(row);
            }
            Entry::Occupied(mut place) => place.get_mut().add(row),
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| Reverse(row.total.count));
    rows
}

/// A row of the failures of `analyze summary`.
#[derive(Clone, Debug)]
pub struct FailureRow<'m> {
    machine: &'m Machine,
    kind: &'m EventKind,
    key: &'m FailureKey,
    total: EventTotal,
    example: &'m str,
}

impl<'m> FailureRow<'m> {
    /// Adds events with the same failure.
    fn add(&mut self, other: &FailureRow<'m>) {
        if other.total.first < self.total.first {
            self.kind = other.kind;
            self.example = other.example;
        }
        self.total = self.total.and(other.total);
    }

    /// The kind of the first event that reports it.
    #[must_use]
    pub fn kind(&self) -> &EventKind {
        self.kind
    }

    /// How many events report it.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total.count
    }
}

impl Row for FailureRow<'_> {
    const NAME: &'static str = "summary.failures";
    const ROW: &'static str = "One failure that events report: by a status code in one of their \
        fields, or by their level";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const CODE: Column =
            Column::count("status_code", "The status code; null if the level says it")
                .or_null()
                .style(Style::Hexadecimal);
        const NAME: Column = Column::new(
            "status_name",
            Kind::Word,
            "Its name as NTSTATUS, HRESULT or Win32 error",
        )
        .or_null();
        const FIELD: Column = Column::new("field", Kind::Word, "The field with the code").or_null();
        columns.add(COUNT.heading("count"), |row| {
            Cell::int(Some(row.total.count))
        });
        columns.add(CODE.heading("code"), |row| Cell::int(row.key.code));
        columns.add(NAME.heading("name"), |row| {
            Cell::text(row.key.name.unwrap_or_default())
        });
        columns.add(LEVEL.heading("level"), |row| {
            Cell::text(level_name(row.kind.level))
        });
        columns.add(FIRST.heading("first"), |row| {
            Cell::time(row.machine.clock(), Some(row.total.first))
        });
        columns.add(LAST, |row| {
            Cell::time(row.machine.clock(), Some(row.total.last))
        });
        columns.add(PROVIDER, |row| Cell::text(&row.kind.provider));
        columns.add(EVENT.heading("event"), |row| Cell::text(&row.kind.event));
        columns.add(FIELD.heading("field"), |row| Cell::text(&row.key.field));
        columns.add(EXAMPLE.heading("first event"), |row| {
            Cell::text(row.example)
        });
    }
}

/// A row for each failure that events of the selected processes report, the most frequent first.
#[must_use]
pub fn failures<'m>(
    machine: &'m Machine,
    contents: &'m Contents,
    selection: &Selection,
) -> Vec<FailureRow<'m>> {
    let mut rows: BTreeMap<FailureName<'m>, FailureRow<'m>> = BTreeMap::new();
    for (key, failure) in contents.failures() {
        let Some(kind) = contents.kind(key.events.kind) else {
            continue;
        };
        if !selection.has_process(key.events.process) {
            continue;
        }
        let name = FailureName {
            kind: KindName::of(kind),
            field: &key.field,
            code: key.code,
        };
        let row = FailureRow {
            machine,
            kind,
            key,
            total: failure.events,
            example: &failure.example,
        };
        match rows.entry(name) {
            Entry::Vacant(place) => {
                place.insert(row);
            }
            Entry::Occupied(mut place) => place.get_mut().add(&row),
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| Reverse(row.total.count));
    rows
}

/// A row of the commands of `analyze summary`.
#[derive(Clone, Debug)]
pub struct CommandRow {
    /// The command line.
    pub command: String,
    /// What it shows.
    pub shows: String,
}

impl Row for CommandRow {
    const NAME: &'static str = "summary.commands";
    const ROW: &'static str = "One command that shows more";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const COMMAND: Column = Column::new("command", Kind::Word, "What shows them");
        const SHOWS: Column = Column::new("shows", Kind::Text, "What the command shows");
        columns.add(COMMAND.heading("command"), |row| Cell::text(&row.command));
        columns.add(SHOWS.heading("shows"), |row| Cell::text(&row.shows));
    }
}
