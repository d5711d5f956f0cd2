//! What became slower between two profiles.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::profile::{FrameTotal, ModuleTotal, Profile, Total, Weight};

use super::PROCESS;
use super::profiles::CODE;
use crate::cell::Cell;
use crate::column::{Column, Kind, Style};
use crate::comparison::Renames;
use crate::report::ReportTable;
use crate::row::{Columns, Row};

/// A comparison of two profiles.
///
/// ```
/// use etl_analysis::profile::Profile;
/// use etl_tables::Report;
/// use etl_tables::rows::profile_changes::{ComparedPart, ProfileComparison};
///
/// fn print_slower_methods(before: &Profile, after: &Profile) {
///     let table = ProfileComparison::new(before, after).scaled().table(ComparedPart::Method);
///     let mut report = Report::new("cpu");
///     report.tables.push(table);
///     println!("{}", report.csv(Some(10)));
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProfileComparison<'p> {
    before: &'p Profile,
    after: &'p Profile,
    is_scaled: bool,
    renames: Option<&'p Renames>,
}

/// What a row of a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComparedPart {
    /// A method.
    Method,
    /// A module or an image.
    Module,
    /// All processes of a name.
    Process,
}

/// A method, a module or a process that is in both profiles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    name: String,
    code: &'static str,
}

/// The weights of both profiles.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    before: Total,
    after: Total,
}

impl<'p> ProfileComparison<'p> {
    /// Compares an earlier profile with a later one.
    #[must_use]
    pub fn new(before: &'p Profile, after: &'p Profile) -> Self {
        ProfileComparison {
            before,
            after,
            is_scaled: false,
            renames: None,
        }
    }

    /// Compares programs of the earlier profile with programs of the later one under other names.
    #[must_use]
    pub fn renamed(self, renames: &'p Renames) -> Self {
        ProfileComparison {
            renames: Some(renames),
            ..self
        }
    }

    /// Scales the earlier profile to the total of the later one.
    #[must_use]
    pub fn scaled(self) -> Self {
        ProfileComparison {
            is_scaled: true,
            ..self
        }
    }

    /// Whether both recordings state an interval of samples: else there are no times.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.before.has_times() && self.after.has_times()
    }

    /// The rows of both profiles. The largest growth of the rows themselves is first.
    #[must_use]
    pub fn table(&self, part: ComparedPart) -> ReportTable<'static> {
        let mut rows = self.rows(part);
        rows.sort_by_cached_key(|row| {
            let own = self.growth(&row.own);
            let total = self.growth(&row.total);
            (Reverse(own), Reverse(total), row.name.clone(), row.code)
        });
        let mut table = ReportTable::new("", rows).without(match part {
            ComparedPart::Method => &["module", "process"],
            ComparedPart::Module => &["name", "process", "code"],
            ComparedPart::Process => &["name", "module", "code"],
        });
        table = table.with_heading("code", "");
        if !self.has_times() {
            // Without intervals there are only numbers of samples.
            for (name, heading) in SAMPLE_HEADINGS {
                table = table.with_heading(name, heading);
            }
            for name in TIMES {
                table = table.with_heading(name, "");
            }
        }
        if part == ComparedPart::Process {
            // Processes have no samples of their own, apart from the samples of their methods.
            for name in OWN {
                table = table.with_heading(name, "");
            }
        }
        table
    }

    fn rows(&self, part: ComparedPart) -> Vec<ProfileChangeRow> {
        let mut pairs: BTreeMap<Key, Pair> = BTreeMap::new();
        for (key, total) in totals(self.before, part) {
            let pair = pairs.entry(self.new_key(key, part)).or_default();
            add(&mut pair.before, self.scale(total));
        }
        for (key, total) in totals(self.after, part) {
            pairs.entry(key).or_default().after = total;
        }
        let mut rows = Vec::new();
        for (key, Pair { before, after }) in pairs {
            rows.push(ProfileChangeRow {
                name: key.name,
                code: key.code,
                own: self.change(before.exclusive, after.exclusive),
                total: self.change(before.inclusive, after.inclusive),
                has_times: self.has_times(),
            });
        }
        rows
    }

    /// The key that a part of the earlier profile has in the later one.
    fn new_key(&self, mut key: Key, part: ComparedPart) -> Key {
        let Some(renames) = self.renames else {
            return key;
        };
        match (part, key.name.split_once('!')) {
            (ComparedPart::Method, Some((module, method))) => {
                key.name = format!("{}!{method}", renames.new_name(module));
            }
            (ComparedPart::Module, _) => {
                key.name = renames.new_name(&key.name).to_lowercase();
            }
            _ => key.name = renames.new_name(&key.name).into_owned(),
        }
        key
    }

    fn scale(&self, total: Total) -> Total {
        if !self.is_scaled {
            return total;
        }
        Total::new(
            self.scale_weight(total.inclusive),
            self.scale_weight(total.exclusive),
        )
    }

    fn scale_weight(&self, weight: Weight) -> Weight {
        let all = self.before.total();
        let wanted = self.after.total();
        Weight {
            samples: same_share(weight.samples, all.samples, wanted.samples),
            time: same_share(weight.time, all.time, wanted.time),
        }
    }

    fn change(&self, before: Weight, after: Weight) -> Change {
        let all_after = self.after.total();
        let all_before = if self.is_scaled {
            all_after
        } else {
            self.before.total()
        };
        Change {
            before,
            after,
            before_share: self.share(before, all_before),
            after_share: self.share(after, all_after),
        }
    }

    fn share(&self, weight: Weight, all: Weight) -> f64 {
        match self.size(all) {
            0 => 0.0,
            all => self.size(weight) as f64 / all as f64,
        }
    }

    fn growth(&self, change: &Change) -> i64 {
        let before = self.size(change.before).cast_signed();
        self.size(change.after).cast_signed().saturating_sub(before)
    }

    /// The measure of weights that both profiles have.
    fn size(&self, weight: Weight) -> u64 {
        if self.has_times() {
            weight.time
        } else {
            weight.samples
        }
    }
}

/// A part of a whole as the same share of another whole.
fn same_share(part: u64, whole: u64, other_whole: u64) -> u64 {
    let product = u128::from(part) * u128::from(other_whole);
    let scaled = product.checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(scaled).unwrap_or(0)
}

/// The weights of the parts of a profile.
fn totals(profile: &Profile, part: ComparedPart) -> BTreeMap<Key, Total> {
    let mut totals: BTreeMap<Key, Total> = BTreeMap::new();
    match part {
        ComparedPart::Method => {
            for FrameTotal { frame, total, .. } in profile.by_frame() {
                let code = profile
                    .frames()
                    .get(frame)
                    .map_or("", |frame| frame.kind.name());
                let key = Key {
                    name: profile.label(frame),
                    code,
                };
                add(totals.entry(key).or_default(), total);
            }
        }
        ComparedPart::Module => {
            // Paths have the case that each recording states.
            for ModuleTotal { module, total, .. } in profile.by_module() {
                let key = Key {
                    name: module.to_lowercase(),
                    code: "",
                };
                add(totals.entry(key).or_default(), total);
            }
        }
        ComparedPart::Process => {
            // Processes of two traces have other ids.
            for root in profile.roots() {
                let node = profile.nodes().get(root.first);
                let weight = node.map(|node| node.inclusive).unwrap_or_default();
                let name = if root.process_name.is_empty() {
                    "?"
                } else {
                    &root.process_name
                };
                let key = Key {
                    name: name.to_owned(),
                    code: "",
                };
                let total = Total::new(weight, Weight::default());
                add(totals.entry(key).or_default(), total);
            }
        }
    }
    totals
}

fn add(sum: &mut Total, total: Total) {
    sum.inclusive += total.inclusive;
    sum.exclusive += total.exclusive;
}

/// Headings of numbers of samples.
const SAMPLE_HEADINGS: [(&str, &str); 6] = [
    ("self_delta_samples", "self"),
    ("self_before_samples", "before"),
    ("self_after_samples", "after"),
    ("total_delta_samples", "total"),
    ("total_before_samples", "before"),
    ("total_after_samples", "after"),
];

const TIMES: [&str; 6] = [
    "self_delta_us",
    "self_before_us",
    "self_after_us",
    "total_delta_us",
    "total_before_us",
    "total_after_us",
];

/// Weights of a row itself, without the methods that it called.
const OWN: [&str; 7] = [
    "self_delta_us",
    "self_before_us",
    "self_after_us",
    "self_delta_samples",
    "self_before_samples",
    "self_after_samples",
    "self_delta_percent",
];

/// Weights before and after a change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// In the earlier recording.
    pub before: Weight,
    /// In the later recording.
    pub after: Weight,
    /// The share of the earlier recording, of one.
    pub before_share: f64,
    /// The share of the later recording, of one.
    pub after_share: f64,
}

impl Change {
    fn samples(&self) -> i64 {
        self.after
            .samples
            .cast_signed()
            .saturating_sub(self.before.samples.cast_signed())
    }

    /// In 100 ns.
    fn time(&self) -> i64 {
        self.after
            .time
            .cast_signed()
            .saturating_sub(self.before.time.cast_signed())
    }
}

/// A row of a comparison of two profiles.
#[derive(Clone, Debug)]
pub struct ProfileChangeRow {
    /// Method, module or process.
    pub name: String,
    /// The kind of code; empty if the row is not a method.
    pub code: &'static str,
    /// Weights of the row itself.
    pub own: Change,
    /// Weights of the row and of everything that it called.
    pub total: Change,
    /// Whether both recordings state an interval of samples.
    pub has_times: bool,
}

impl ProfileChangeRow {
    fn micros(&self, ticks: i64) -> Cell<'static> {
        if self.has_times {
            Cell::Float(ticks as f64 / 10.0)
        } else {
            Cell::Null
        }
    }
}

impl Row for ProfileChangeRow {
    const NAME: &'static str = "cpu.compare.rows";
    const ROW: &'static str = "One method, module or process of two recordings";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const OWN: Column = Column::micros("self_delta_us", "Growth of its own time");
        const OWN_BEFORE: Column = Column::micros("self_before_us", "Its own time before");
        const OWN_AFTER: Column = Column::micros("self_after_us", "Its own time after");
        const OWN_SHARE: Column = Column::percent(
            "self_delta_percent",
            "Growth of its own share, in points of percent",
        );
        const TOTAL: Column = Column::micros("total_delta_us", "Growth of its total time");
        const TOTAL_BEFORE: Column = Column::micros("total_before_us", "Its total time before");
        const TOTAL_AFTER: Column = Column::micros("total_after_us", "Its total time after");
        const TOTAL_SHARE: Column = Column::percent(
            "total_delta_percent",
            "Growth of its total share, in points of percent",
        );
        const SELF_DELTA: Column = Column::count("self_delta_samples", "Growth of its own samples");
        const TOTAL_DELTA: Column =
            Column::count("total_delta_samples", "Growth of its total samples");
        columns.add(
            OWN.or_null().style(Style::Signed).heading("self ms"),
            |row| row.micros(row.own.time()),
        );
        columns.add(OWN_BEFORE.or_null().heading("before"), |row| {
            row.micros(row.own.before.time.cast_signed())
        });
        columns.add(OWN_AFTER.or_null().heading("after"), |row| {
            row.micros(row.own.after.time.cast_signed())
        });
        columns.add(SELF_DELTA.style(Style::Signed), |row| {
            Cell::Int(row.own.samples())
        });
        columns.add(
            Column::count("self_before_samples", "Its own samples before"),
            |row| Cell::int(Some(row.own.before.samples)),
        );
        columns.add(
            Column::count("self_after_samples", "Its own samples after"),
            |row| Cell::int(Some(row.own.after.samples)),
        );
        columns.add(OWN_SHARE.heading("self % +"), |row| {
            Cell::Share(row.own.after_share - row.own.before_share)
        });
        columns.add(
            TOTAL.or_null().style(Style::Signed).heading("total ms"),
            |row| row.micros(row.total.time()),
        );
        columns.add(TOTAL_BEFORE.or_null().heading("before"), |row| {
            row.micros(row.total.before.time.cast_signed())
        });
        columns.add(TOTAL_AFTER.or_null().heading("after"), |row| {
            row.micros(row.total.after.time.cast_signed())
        });
        columns.add(TOTAL_DELTA.style(Style::Signed), |row| {
            Cell::Int(row.total.samples())
        });
        columns.add(
            Column::count("total_before_samples", "Its total samples before"),
            |row| Cell::int(Some(row.total.before.samples)),
        );
        columns.add(
            Column::count("total_after_samples", "Its total samples after"),
            |row| Cell::int(Some(row.total.after.samples)),
        );
        columns.add(TOTAL_SHARE.heading("total % +"), |row| {
            Cell::Share(row.total.after_share - row.total.before_share)
        });
        columns.add(
            Column::new("name", Kind::Text, "`module!method`").heading("method"),
            |row| Cell::Text(&row.name),
        );
        columns.add(
            Column::new("module", Kind::Word, "Module or image").heading("module"),
            |row| Cell::Text(&row.name),
        );
        columns.add(PROCESS, |row| Cell::Text(&row.name));
        columns.add(CODE, |row| Cell::text(row.code));
    }
}
