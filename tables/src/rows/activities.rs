//! Activities: what starts and stops by events of any provider.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::activities::{Activities, Activity, ActivityName};
use etl_analysis::{Machine, ProcessIndex};
use etl_format::{Guid, Ticks};

use super::{
    Durations, ENDED, HasDurations, OfProcess, STARTED, TID, add_durations, add_process,
    process_label, ticks,
};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

const PROVIDER: Column =
    Column::new("provider", Kind::Word, "Name of the provider, or its GUID").key();
const OPERATION: Column = Column::new(
    "operation",
    Kind::Word,
    "Name of the start event without `Start`",
)
.key();
const VALUE: Column = Column::new(
    "value",
    Kind::Text,
    "Value of the field of `--by` in the start event",
)
.key();

/// A row of `activities`.
#[derive(Clone, Debug)]
pub struct ActivityRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    activity: &'m Activity,
    name: Arc<ActivityName>,
    enclosing: Option<Arc<ActivityName>>,
    value: &'m str,
    id: String,
}

impl ActivityRow<'_> {
    /// How long it lasted, in 100 ns; `None` if its stop was not recorded.
    #[must_use]
    pub fn duration(&self) -> Option<u64> {
        Some(ticks(self.machine.clock(), self.activity.duration()?))
    }

    /// The part of its duration outside of the activities directly in it, in 100 ns.
    #[must_use]
    pub fn own_duration(&self) -> Option<u64> {
        let own = self
            .activity
            .duration()?
            .saturating_sub(self.activity.nested);
        Some(ticks(self.machine.clock(), own))
    }
}

impl OfProcess for ActivityRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ActivityRow<'_> {
    const NAME: &'static str = "activities";
    const ROW: &'static str = "What lies between a start event of any provider and its stop event, in the order of starts";
    const ABOUT: &'static str = "`analyze activities` prints the same rows, the longest first.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const DURATION: Column = Column::micros(
            "duration_us",
            "How long it lasted; null if its stop was not recorded",
        );
        const OWN: Column = Column::micros(
            "self_us",
            "The part of it outside of the activities directly in it",
        );
        const ENCLOSING: Column = Column::new(
            "enclosing",
            Kind::Word,
            "`operation` of the activity in which it started",
        );
        const ID: Column = Column::new("activity", Kind::Text, "Activity, a GUID");
        add_process(columns);
        columns.add(DURATION.or_null().heading("ms"), |row| {
            Cell::micros(row.duration())
        });
        columns.add(OWN.or_null().heading("self ms"), |row| {
            Cell::micros(row.own_duration())
        });
        columns.add(STARTED.meaning("When it started").heading("start"), |row| {
            Cell::time(row.machine.clock(), Some(row.activity.started))
        });
        columns.add(
            ENDED.meaning("When it stopped; null if its stop was not recorded"),
            |row| Cell::time(row.machine.clock(), row.activity.stopped),
        );
        columns.add(TID.heading("tid"), |row| Cell::int(row.activity.tid));
        columns.add(ID.or_null(), |row| Cell::text(&row.id));
        columns.add(PROVIDER.heading("provider"), |row| {
            Cell::text(&row.name.provider)
        });
        columns.add(OPERATION.heading("operation"), |row| {
            Cell::text(&row.name.event)
        });
        columns.add(VALUE.or_null().heading("value"), |row| {
            Cell::text(row.value)
        });
        columns.add(ENCLOSING.or_null().heading("in"), |row| {
            row.enclosing
                .as_ref()
                .map_or(Cell::Null, |name| Cell::text(&name.event))
        });
    }
}

/// The names of activities by their numbers, each made once.
#[derive(Debug)]
struct ActivityNames<'m> {
    activities: &'m Activities,
    names: HashMap<u32, Arc<ActivityName>>,
}

impl ActivityNames<'_> {
    fn name(&mut self, number: u32) -> Arc<ActivityName> {
        let name = self
            .names
            .entry(number)
            .or_insert_with(|| Arc::new(self.activities.name(number)));
        Arc::clone(name)
    }
}

/// A row for each selected activity that started at a selected time, in the order of starts.
#[must_use]
pub fn activities<'m>(
    machine: &'m Machine,
    activities: &'m Activities,
    selection: &Selection,
) -> Vec<ActivityRow<'m>> {
    let mut names = ActivityNames {
        activities,
        names: HashMap::new(),
    };
    let list = activities.list();
    let mut rows = Vec::new();
    for activity in list {
        let is_selected = selection.has_process(activity.process)
            && selection.has_thread(activity.tid)
            && selection.has_time(activity.started);
        if !is_selected {
            continue;
        }
        let enclosing = activity
            .enclosing
            .and_then(|index| list.get(index as usize))
            .map(|enclosing| names.name(enclosing.name));
        let process = match activity.process {
            Some(_) => process_label(machine, activity.process),
            None => Label::Process {
                name: "",
                pid: Some(activity.pid),
            },
        };
        rows.push(ActivityRow {
            machine,
            process,
            activity,
            name: names.name(activity.name),
            enclosing,
            value: activity.value.map_or("", |number| activities.value(number)),
            id: if activity.id == Guid::ZERO {
                String::new()
            } else {
                activity.id.to_string()
            },
        });
    }
    rows
}

/// Sorts rows of activities by their durations, the longest first.
pub fn sort_by_duration(rows: &mut [ActivityRow<'_>]) {
    rows.sort_by_key(|row| Reverse(row.activity.duration()));
}

/// A row of the sums of `analyze activities`.
#[derive(Clone, Debug)]
pub struct OperationRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    name: Arc<ActivityName>,
    value: &'m str,
    count: u64,
    unended: u64,
    own: u64,
    durations: Durations,
    longest: Option<Ticks>,
}

impl OfProcess for OperationRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for OperationRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for OperationRow<'_> {
    const NAME: &'static str = "activities.operations";
    const ROW: &'static str =
        "The activities of one process with one name, the longest in sum first";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "activities.compare.operations",
        counted: "",
        largest: "total_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const COUNT: Column = Column::count("count", "Activities that stopped").sum(
            "count_delta",
            "count_before",
            "count_after",
        );
        const UNENDED: Column = Column::count("unended", "Activities whose stop was not recorded")
            .sum("unended_delta", "unended_before", "unended_after");
        const OWN: Column = Column::micros(
            "self_us",
            "Sum of their time outside of the activities directly in them",
        )
        .sum("self_delta_us", "self_before_us", "self_after_us");
        const LONGEST: Column =
            Column::time("longest_at", "When the longest one started").or_null();
        add_process(columns);
        columns.add(COUNT.heading("count"), |row| Cell::int(Some(row.count)));
        columns.add(UNENDED.heading("unended"), |row| {
            Cell::int(Some(row.unended))
        });
        add_durations(columns);
        columns.add(OWN.heading("self ms"), |row| Cell::micros(Some(row.own)));
        columns.add(LONGEST.heading("longest at"), |row| {
            Cell::time(row.machine.clock(), row.longest)
        });
        columns.add(PROVIDER.heading("provider"), |row| {
            Cell::text(&row.name.provider)
        });
        columns.add(OPERATION.heading("operation"), |row| {
            Cell::text(&row.name.event)
        });
        columns.add(VALUE.or_null().heading("value"), |row| {
            Cell::text(row.value)
        });
    }
}

/// What the activities of an [`OperationRow`] have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OperationKey<'m> {
    process: Option<ProcessIndex>,
    pid: Option<u32>,
    provider: &'m str,
    event: &'m str,
    value: &'m str,
}

/// The sums of rows by process, name and value, the longest first.
#[must_use]
pub fn operations<'m>(rows: &[ActivityRow<'m>]) -> Vec<OperationRow<'m>> {
    let mut groups: BTreeMap<OperationKey<'_>, Vec<&ActivityRow<'m>>> = BTreeMap::new();
    for row in rows {
        let key = OperationKey {
            process: row.activity.process,
            pid: row.process.pid().map(|pid| pid.get()),
            provider: &row.name.provider,
            event: &row.name.event,
            value: row.value,
        };
        groups.entry(key).or_default().push(row);
    }
    let mut sums: Vec<OperationRow<'m>> = groups.into_values().filter_map(|g| sum_of(&g)).collect();
    sums.sort_by_key(|row| Reverse((row.durations.total, row.count)));
    sums
}

/// The sum of the rows of one operation; `None` if there are none.
fn sum_of<'m>(rows: &[&ActivityRow<'m>]) -> Option<OperationRow<'m>> {
    let first = rows.first()?;
    let durations = Distribution::new(rows.iter().filter_map(|row| row.duration()));
    let own = rows.iter().filter_map(|row| row.own_duration()).sum();
    let longest = rows
        .iter()
        .filter(|row| row.activity.stopped.is_some())
        .max_by_key(|row| (row.activity.duration(), Reverse(row.activity.started)));
    Some(OperationRow {
        machine: first.machine,
        process: first.process,
        name: Arc::clone(&first.name),
        value: first.value,
        count: durations.count(),
        unended: rows.len() as u64 - durations.count(),
        own,
        durations: Durations::of_distribution(&durations),
        longest: longest.map(|row| row.activity.started),
    })
}
