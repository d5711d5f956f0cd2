//! Profiles of CPU samples, and of waits: methods, modules, processes and threads, call trees,
//! callers and callees.

use etl_analysis::profile::{
    Detail, Focus, Frame, FrameTotal, Measure, ModuleTotal, Profile, Root, Total, Weight,
};
use etl_format::ThreadId;

use super::{OfProcess, PROCESS, THREAD, TID, add_process};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::report::ReportTable;
use crate::row::{Columns, Row};

/// The weights of a row, of all samples or waits.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    /// In the row and in everything that it called.
    total: Weight,
    /// In the row itself.
    own: Weight,
    total_size: u64,
    own_size: u64,
    all_size: u64,
    has_times: bool,
}

impl Weights {
    fn new(profile: &Profile, total: Total) -> Self {
        Weights {
            total: total.inclusive,
            own: total.exclusive,
            total_size: profile.size(total.inclusive),
            own_size: profile.size(total.exclusive),
            all_size: profile.size(profile.total()),
            has_times: profile.has_times(),
        }
    }

    /// The time of a weight; not known without the interval of samples.
    fn time(&self, weight: Weight) -> Cell<'static> {
        Cell::micros(if self.has_times {
            Some(weight.time)
        } else {
            None
        })
    }
}

/// Rows that have weights.
trait HasWeights {
    fn weights(&self) -> &Weights;
}

const SELF: &[&str] = &[
    "self_samples",
    "self_waits",
    "self_us",
    "self_bytes",
    "self_percent",
];
const SAMPLES: &[&str] = &["total_samples", "self_samples"];
const WAITS: &[&str] = &["total_waits", "self_waits"];
const TIMES: &[&str] = &["total_us", "self_us"];
const BYTES: &[&str] = &["total_bytes", "self_bytes"];

/// Adds the weights. [`without_other_measure`] leaves out the numbers of the other measure.
fn add_weights<R: HasWeights, C: Columns<R>>(columns: &mut C) {
    const TOTAL: Column = Column::count("total_samples", "Samples in it and in what it called");
    const TOTAL_WAITS: Column = Column::count("total_waits", "Waits in it and in what it called");
    const TOTAL_TIME: Column = Column::micros(
        "total_us",
        "Their time; null if the interval of samples is not known",
    );
    const TOTAL_BYTES: Column =
        Column::bytes("total_bytes", "Bytes allocated in it and in what it called");
    const OWN_BYTES: Column = Column::bytes("self_bytes", "Bytes allocated in itself");
    const TOTAL_SHARE: Column = Column::percent("total_percent", "Their share of all");
    const OWN: Column = Column::count("self_samples", "Samples in the method itself");
    const OWN_WAITS: Column = Column::count("self_waits", "Waits in itself");
    const OWN_TIME: Column = Column::micros(
        "self_us",
        "Their time; null if the interval of samples is not known",
    );
    const OWN_SHARE: Column = Column::percent("self_percent", "Their share of all");
    columns.add(TOTAL.heading("total"), |row| {
        Cell::int(Some(row.weights().total.samples))
    });
    columns.add(TOTAL_WAITS.heading("total"), |row| {
        Cell::int(Some(row.weights().total.samples))
    });
    columns.add(TOTAL_TIME.or_null().heading("total ms"), |row| {
        row.weights().time(row.weights().total)
    });
    columns.add(TOTAL_BYTES.heading("total"), |row| {
        Cell::int(Some(row.weights().total.time))
    });
    columns.add(TOTAL_SHARE.heading("total %"), |row| {
        Cell::share(row.weights().total_size, row.weights().all_size)
    });
    columns.add(OWN.heading("self"), |row| {
        Cell::int(Some(row.weights().own.samples))
    });
    columns.add(OWN_WAITS.heading("self"), |row| {
        Cell::int(Some(row.weights().own.samples))
    });
    columns.add(OWN_TIME.or_null().heading("self ms"), |row| {
        row.weights().time(row.weights().own)
    });
    columns.add(OWN_BYTES.heading("self"), |row| {
        Cell::int(Some(row.weights().own.time))
    });
    columns.add(OWN_SHARE.heading("self %"), |row| {
        Cell::share(row.weights().own_size, row.weights().all_size)
    });
}

/// The table of a profile, with numbers of samples or of waits.
fn without_other_measure<'r>(profile: &Profile, table: ReportTable<'r>) -> ReportTable<'r> {
    match profile.measure() {
        Measure::Durations => table.without(SAMPLES).without(BYTES),
        Measure::Bytes => table.without(SAMPLES).without(WAITS).without(TIMES),
        _ => table.without(WAITS).without(BYTES),
    }
}

pub(super) const CODE: Column = Column::new(
    "code",
    Kind::Word,
    "`managed`, `native`, `kernel` or `unknown`",
)
.or_null();

/// A row of methods.
#[derive(Clone, Debug)]
pub struct ProfileMethodRow<'p> {
    weights: Weights,
    name: String,
    module: &'p str,
    frame: Option<&'p Frame>,
    source: String,
}

impl HasWeights for ProfileMethodRow<'_> {
    fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl Row for ProfileMethodRow<'_> {
    const NAME: &'static str = "cpu.methods.rows";
    const ROW: &'static str = "One method";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const NAME: Column = Column::new("name", Kind::Text, "`module!method`");
        const MODULE: Column = Column::new("module", Kind::Word, "Name of the module or the image");
        const METHOD: Column = Column::new("method", Kind::Text, "Type and method");
        const SOURCE: Column =
            Column::new("source", Kind::Text, "File name and line of the source");
        const FILE: Column = Column::new("file", Kind::Word, "Path of the source file");
        add_weights(columns);
        columns.add(NAME.or_null().heading("method"), |row| {
            Cell::text(&row.name)
        });
        columns.add(MODULE.or_null(), |row| Cell::text(row.module));
        columns.add(METHOD.or_null(), |row| {
            Cell::text(row.frame.map_or("", |frame| &frame.method))
        });
        columns.add(CODE.heading("code"), |row| {
            Cell::text(row.frame.map_or("", |frame| frame.kind.name()))
        });
        columns.add(SOURCE.or_null().heading("source"), |row| {
            Cell::text(&row.source)
        });
        columns.add(FILE.or_null(), |row| {
            Cell::text(
                row.frame
                    .and_then(|frame| frame.file.as_deref())
                    .unwrap_or_default(),
            )
        });
        columns.add(
            Column::count("line", "Line of the source, from 1").or_null(),
            |row| Cell::int(row.frame.and_then(|frame| frame.line)),
        );
    }
}

/// A row for each method, the most samples first; with [`Detail::Lines`] its source line as well.
#[must_use]
pub fn by_method(profile: &Profile, detail: Detail) -> ReportTable<'_> {
    let mut rows = Vec::new();
    for FrameTotal {
        frame: index,
        total,
        ..
    } in profile.by_frame()
    {
        let frame = profile.frames().get(index);
        rows.push(ProfileMethodRow {
            weights: Weights::new(profile, total),
            name: profile.label(index),
            module: frame.map_or("", |frame| profile.module_name(frame.module)),
            frame,
            source: profile.source(index).unwrap_or_default(),
        });
    }
    let table = without_other_measure(profile, ReportTable::new("", rows));
    match detail {
        Detail::Lines => table,
        _ => table.without(&["source", "file", "line"]),
    }
}

/// A row of modules.
#[derive(Clone, Debug)]
pub struct ProfileModuleRow<'p> {
    weights: Weights,
    module: &'p str,
}

impl HasWeights for ProfileModuleRow<'_> {
    fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl Row for ProfileModuleRow<'_> {
    const NAME: &'static str = "cpu.modules.rows";
    const ROW: &'static str = "One module or image";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const MODULE: Column = Column::new("module", Kind::Word, "Name of the module or the image");
        add_weights(columns);
        columns.add(MODULE.or_null().heading("module"), |row| {
            Cell::text(row.module)
        });
    }
}

/// A row for each module, the most samples first.
#[must_use]
pub fn by_module(profile: &Profile) -> ReportTable<'_> {
    let mut rows = Vec::new();
    for ModuleTotal { module, total, .. } in profile.by_module() {
        rows.push(ProfileModuleRow {
            weights: Weights::new(profile, total),
            module,
        });
    }
    without_other_measure(profile, ReportTable::new("", rows))
}

/// A row of processes or threads.
#[derive(Clone, Debug)]
pub struct ProfileRootRow<'p> {
    weights: Weights,
    process: Label<'p>,
    thread: Label<'p>,
    tid: Option<ThreadId>,
}

impl HasWeights for ProfileRootRow<'_> {
    fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl OfProcess for ProfileRootRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ProfileRootRow<'_> {
    const NAME: &'static str = "cpu.processes.rows";
    const ROW: &'static str = "One process, or one thread";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_weights(columns);
        add_process(columns);
        columns.add(TID, |row| Cell::int(row.tid));
        columns.add(THREAD.heading("thread"), |row| Cell::Label(&row.thread));
    }
}

/// The label of the process of a root.
fn root_label(root: &Root) -> Label<'_> {
    if root.interrupt.is_some() {
        return Label::Interrupt {
            name: &root.process_name,
        };
    }
    Label::Process {
        name: &root.process_name,
        pid: root.pid,
    }
}

/// The roots with their weights. Nothing calls a root, so it has no callers and no weights of its
/// own.
fn roots(profile: &Profile) -> ReportTable<'_> {
    let mut rows = Vec::new();
    for root in profile.roots() {
        let node = profile.nodes().get(root.first);
        let weight = node.map_or_else(Weight::default, |node| node.inclusive);
        rows.push(ProfileRootRow {
            weights: Weights::new(profile, Total::new(weight, Weight::default())),
            process: root_label(root),
            thread: Label::Thread {
                name: &root.thread_name,
                tid: root.tid,
            },
            tid: root.tid,
        });
    }
    without_other_measure(profile, ReportTable::new("", rows)).without(SELF)
}

/// A row for each process.
#[must_use]
pub fn by_process(profile: &Profile) -> ReportTable<'_> {
    roots(profile).without(&["tid", "thread"])
}

/// A row for each thread of a profile that was made by thread.
#[must_use]
pub fn by_thread(profile: &Profile) -> ReportTable<'_> {
    roots(profile)
}

/// The label of a frame, with its source line if frames have one.
fn label(profile: &Profile, frame: usize) -> String {
    match profile.source(frame) {
        Some(source) => format!("{} ({source})", profile.label(frame)),
        None => profile.label(frame),
    }
}

/// A row of a call tree.
#[derive(Clone, Debug)]
pub struct ProfileTreeRow<'p> {
    weights: Weights,
    name: String,
    depth: u32,
    process: Label<'p>,
    frame: Option<&'p Frame>,
}

impl HasWeights for ProfileTreeRow<'_> {
    fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl Row for ProfileTreeRow<'_> {
    const NAME: &'static str = "cpu.tree.rows";
    const ROW: &'static str = "One node of the call tree, before the nodes below it";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const NAME: Column = Column::new("name", Kind::Text, "`module!method`, indented by depth");
        add_weights(columns);
        columns.add(NAME.heading("call tree"), |row| Cell::text(&row.name));
        columns.add(
            Column::new("depth", Kind::Int32, "Depth in the tree"),
            |row| Cell::int(Some(row.depth)),
        );
        columns.add(super::PID, |row| Cell::int(row.process.pid()));
        columns.add(PROCESS.heading(""), |row| Cell::Label(&row.process));
        columns.add(CODE, |row| {
            Cell::text(row.frame.map_or("", |frame| frame.kind.name()))
        });
    }
}

/// The call tree, without the parts that have less than `min_percent` of all samples.
#[must_use]
pub fn tree(profile: &Profile, min_percent: f64) -> ReportTable<'_> {
    let min_size = profile.size(profile.total()) as f64 * min_percent / 100.0;
    let mut rows = Vec::new();
    for root in profile.roots() {
        for node in profile
            .nodes()
            .get(root.first..root.end)
            .unwrap_or_default()
        {
            if (profile.size(node.inclusive) as f64) < min_size {
                continue;
            }
            let name = match node.frame {
                Some(frame) => label(profile, frame),
                None => root.process_label(),
            };
            rows.push(ProfileTreeRow {
                weights: Weights::new(profile, Total::new(node.inclusive, node.exclusive)),
                name: format!("{}{name}", "  ".repeat(node.depth as usize)),
                depth: node.depth,
                process: root_label(root),
                frame: node.frame.and_then(|frame| profile.frames().get(frame)),
            });
        }
    }
    without_other_measure(profile, ReportTable::new("", rows))
}

/// A row of callers and callees.
#[derive(Clone, Debug)]
pub struct ProfileFocusRow {
    weights: Weights,
    relation: &'static str,
    name: String,
}

impl HasWeights for ProfileFocusRow {
    fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl Row for ProfileFocusRow {
    const NAME: &'static str = "cpu.focus.rows";
    const ROW: &'static str = "One caller or callee of the methods in focus";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const RELATION: Column =
            Column::new("relation", Kind::Word, "`caller`, `focus` or `callee`");
        const NAME: Column = Column::new("name", Kind::Text, "`module!method`");
        add_weights(columns);
        columns.add(RELATION.heading("relation"), |row| Cell::Text(row.relation));
        columns.add(NAME.or_null().heading("method"), |row| {
            Cell::text(&row.name)
        });
    }
}

/// Callers and callees of the methods whose names contain a text, in any case of letters. `None` if
/// there is no such method.
#[must_use]
pub fn focus<'p>(profile: &'p Profile, text: &str) -> Option<ReportTable<'p>> {
    let text_in_lower_case = text.to_lowercase();
    let mut in_focus = Vec::new();
    for frame in 0..profile.frames().len() {
        let label = label(profile, frame).to_lowercase();
        in_focus.push(label.contains(&text_in_lower_case));
    }
    if !in_focus.contains(&true) {
        return None;
    }
    let Focus {
        total,
        callers,
        callees,
        ..
    } = profile.focus(|frame| in_focus.get(frame) == Some(&true));
    let mut rows = Vec::new();
    for caller in callers {
        rows.push(ProfileFocusRow {
            weights: Weights::new(profile, Total::new(caller.weight, Weight::default())),
            relation: "caller",
            name: caller.frame.map_or_else(
                || "(start of a thread)".to_owned(),
                |frame| label(profile, frame),
            ),
        });
    }
    rows.push(ProfileFocusRow {
        weights: Weights::new(profile, total),
        relation: "focus",
        name: text.to_owned(),
    });
    for callee in callees {
        rows.push(ProfileFocusRow {
            weights: Weights::new(profile, Total::new(callee.weight, Weight::default())),
            relation: "callee",
            name: label(profile, callee.frame),
        });
    }
    Some(without_other_measure(profile, ReportTable::new("", rows)))
}
