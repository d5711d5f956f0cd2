//! Tables of keyword combinations, as the documents print them, computed from the rules.
//!
//! Table 1 lists what combinations of keywords select under the runtime provider, table 2 under the
//! rundown provider. A third one has what the documents say in prose of markers and threads. Where
//! documents and runtimes disagree, a cell holds what the documents say and the erratum's id.

use super::{Code, Enumeration, INFORMATIONAL, Loader, Method, Rundown, Runtime, Unload, VERBOSE};
use etl_schema::clr::keyword::{
    APP_DOMAIN_RESOURCES, END_ENUMERATION, END_RUNDOWN, IL_MAP, JIT, LOADER, NGEN, PERF_TRACK,
    START_ENUMERATION, START_RUNDOWN, THREADING,
};

/// Nothing.
const NONE: &str = "None";
/// Nothing, because there is no such thing: dynamic methods are never precompiled.
const NOT_APPLICABLE: &str = "Not applicable";
const DC_START: &str = "DCStart events";
const DC_END: &str = "DCEnd events";

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The events that shipped runtimes raise, by the predicates: "Load events" and the like.
    pub shipped: &'static str,
    /// What the documents say.
    pub documented: &'static str,
    /// The erratum that says why they differ; none when they agree.
    pub erratum: Option<&'static str>,
}

impl Cell {
    fn new(shipped: &'static str, documented: &'static str, erratum: &'static str) -> Self {
        let erratum = (shipped != documented).then_some(erratum);
        Cell { shipped, documented, erratum }
    }
}

/// A combination of keywords, and what it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The combination.
    pub mask: u64,
    /// What it selects, by column.
    pub cells: Vec<Cell>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Which one.
    pub title: &'static str,
    /// The provider: `runtime` or `rundown`.
    pub provider: &'static str,
    /// What the columns speak of.
    pub columns: Vec<&'static str>,
    /// By combination.
    pub rows: Vec<Row>,
}

/// All three tables at a session's level. The documents speak of level 5.
///
/// ```
/// use etl_control::clr::tables::tables;
///
/// let [runtime, rundown, _] = tables(5);
/// assert_eq!((runtime.provider, rundown.provider), ("runtime", "rundown"));
/// assert!(runtime.rows.iter().all(|row| row.cells.len() == runtime.columns.len()));
/// ```
#[must_use]
pub fn tables(level: u8) -> [Table; 3] {
    [table_1(level), table_2(level), markers_and_threads(level)]
}

/// The combinations of table 1.
const TABLE_1: [u64; 7] = [
    LOADER,
    JIT,
    JIT | START_ENUMERATION,
    JIT | END_ENUMERATION,
    NGEN,
    NGEN | START_ENUMERATION,
    NGEN | END_ENUMERATION,
];

fn table_1(level: u8) -> Table {
    let row = |mask| {
        let runtime = Runtime::new(mask, level);
        let loader = of_loads(
            Loader::ALL.iter().any(|&l| runtime.loads(l)),
            Loader::ALL.iter().any(|&l| runtime.unloads(l)),
        );
        let ordinary = [Code::Jitted, Code::Precompiled].map(Method::new);
        let goes = |m| {
            runtime.method_unload(m, Unload::Destroyed).is_some()
                || runtime.method_unload(m, Unload::OwnerGone).is_some()
        };
        let methods = of_loads(
            ordinary.iter().any(|&m| runtime.method_load(m).is_some()),
            ordinary.iter().any(|&m| goes(m)),
        );
        let dynamic = Method::new(Code::Dynamic);
        let dynamics = if mask & (JIT | NGEN) == NGEN {
            NOT_APPLICABLE
        } else {
            of_loads(runtime.method_load(dynamic).is_some(), goes(dynamic))
        };
        // Dynamic methods always have the verbose events, which the documents put on level 5.
        let documented = match dynamics {
            NOT_APPLICABLE => NOT_APPLICABLE,
            _ if !shows_verbose(level) => NONE,
            as_shipped => as_shipped,
        };
        let same = |produces| Cell::new(produces, produces, "");
        let cells = vec![same(loader), same(methods), Cell::new(dynamics, documented, "X02")];
        Row { mask, cells }
    };
    Table {
        title: "Table 1: the runtime provider",
        provider: "runtime",
        columns: vec![
            "AppDomain, assembly, module load/unload",
            "Method load/unload (except dynamic)",
            "Dynamic method load/destroy",
        ],
        rows: TABLE_1.into_iter().map(row).collect(),
    }
}

/// Combinations of a keyword alone and with either enumeration.
fn with_enumerations(keywords: &[u64]) -> impl Iterator<Item = u64> {
    keywords.iter().flat_map(|&k| [k, k | START_RUNDOWN, k | END_RUNDOWN])
}

fn table_2(level: u8) -> Table {
    let row = |mask| {
        let rundown = Rundown::new(mask, level);
        let loader =
            of_enumerations(|which| Loader::ALL.iter().any(|&what| rundown.loader(which, what)));
        let all = [Code::Jitted, Code::Precompiled, Code::Dynamic].map(Method::new);
        let methods =
            of_enumerations(|which| all.iter().any(|&m| rundown.method(which, m).is_some()));
        let without_dynamic = mask & JIT != 0 && !shows_verbose(level);
        let documented = match methods {
            DC_START if without_dynamic => "DCStart events but of dynamic methods",
            DC_END if without_dynamic => "DCEnd events but of dynamic methods",
            as_shipped => as_shipped,
        };
        let cells = vec![Cell::new(loader, loader, ""), Cell::new(methods, documented, "X02")];
        Row { mask, cells }
    };
    Table {
        title: "Table 2: the rundown provider",
        provider: "rundown",
        columns: vec![
            "AppDomain, assembly, module DCStart/DCEnd",
            "Method DCStart/DCEnd (with dynamic methods)",
        ],
        rows: with_enumerations(&[LOADER, JIT, NGEN]).map(row).collect(),
    }
}

/// What the documents say in prose: markers come for AppDomainResourceManagement, Jit, NGen and
/// Loader; threads for AppDomainResourceManagement.
fn markers_and_threads(level: u8) -> Table {
    let row = |mask: u64| {
        let rundown = Rundown::new(mask, level);
        let said = |keywords: u64| {
            of_enumerations(|which| mask & keywords != 0 && rundown.is_enabled(which))
        };
        let markers = Cell::new(
            of_enumerations(|which| rundown.brackets(which)),
            said(APP_DOMAIN_RESOURCES | JIT | NGEN | LOADER),
            "X16",
        );
        let threads = Cell::new(
            of_enumerations(|which| rundown.threads(which)),
            said(APP_DOMAIN_RESOURCES),
            "X17",
        );
        Row { mask, cells: vec![markers, threads] }
    };
    let keywords = [LOADER, JIT, NGEN, APP_DOMAIN_RESOURCES, THREADING, IL_MAP, PERF_TRACK];
    Table {
        title: "Markers and threads: the rundown provider",
        provider: "rundown",
        columns: vec!["Markers (Init, Complete)", "ThreadDC"],
        rows: with_enumerations(&keywords).map(row).collect(),
    }
}

/// Whether a session of this level would see the verbose events if they had level 5.
fn shows_verbose(level: u8) -> bool {
    level == 0 || !(INFORMATIONAL..VERBOSE).contains(&level)
}

fn of_loads(load: bool, unload: bool) -> &'static str {
    of_pair(load, unload, ["Load events", "Unload events", "Load and unload events"])
}

fn of_enumerations(raised: impl Fn(Enumeration) -> bool) -> &'static str {
    let (start, end) = (raised(Enumeration::Start), raised(Enumeration::End));
    of_pair(start, end, [DC_START, DC_END, "DCStart and DCEnd events"])
}

fn of_pair(first: bool, second: bool, [one, other, both]: [&'static str; 3]) -> &'static str {
    match (first, second) {
        (false, false) => NONE,
        (true, false) => one,
        (false, true) => other,
        (true, true) => both,
    }
}
