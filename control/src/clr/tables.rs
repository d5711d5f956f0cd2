//! Tables of keyword combinations, as the documents print them, computed from the rules.
//!
//! Table 1 lists what combinations of keywords select under the runtime provider, table 2 under the
//! rundown provider. A third table has what the documents say in prose about markers and threads.
//! If documents and runtimes disagree, a cell has both texts and the id of the erratum.

use super::{Code, Enumeration, INFORMATIONAL, Loader, Method, Rundown, Runtime, Unload, VERBOSE};
use etl_schema::clr::keyword::{
    APP_DOMAIN_RESOURCES, END_ENUMERATION, END_RUNDOWN, IL_MAP, JIT, LOADER, NGEN, PERF_TRACK,
    START_ENUMERATION, START_RUNDOWN, THREADING,
};

const NONE: &str = "None";
/// Dynamic methods are never precompiled.
const NOT_APPLICABLE: &str = "Not applicable";
const DC_START: &str = "DCStart events";
const DC_END: &str = "DCEnd events";

/// What a combination of keywords selects, in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The events that shipped runtimes raise according to the predicates, such as "Load events";
    /// .NET Core may raise less.
    pub shipped: &'static str,
    /// What the documents say.
    pub documented: &'static str,
    /// The erratum that says why they differ; `None` if they agree.
    pub erratum: Option<&'static str>,
    /// What .NET Core raises, if it differs from .NET Framework.
    pub core: Option<CoreCell>,
}

/// What .NET Core raises instead of what .NET Framework raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreCell {
    /// The events, such as "Unload events".
    pub raised: &'static str,
    /// The erratum with the evidence.
    pub erratum: &'static str,
}

impl Cell {
    /// A cell in which documents and runtimes agree.
    fn agreed(text: &'static str) -> Self {
        Cell {
            shipped: text,
            documented: text,
            erratum: None,
            core: None,
        }
    }

    /// The same, with what .NET Core raises according to its own rules.
    fn in_core(self, raised: &'static str, erratum: &'static str) -> Self {
        let core = (raised != self.shipped).then_some(CoreCell { raised, erratum });
        Cell { core, ..self }
    }

    fn new(shipped: &'static str, documented: &'static str, erratum: &'static str) -> Self {
        let erratum = (shipped != documented).then_some(erratum);
        Cell {
            shipped,
            documented,
            erratum,
            core: None,
        }
    }
}

/// A combination of keywords and what it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The combination.
    pub mask: u64,
    /// What it selects, for each column.
    pub cells: Vec<Cell>,
}

/// A table of keyword combinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The number of the table.
    pub title: &'static str,
    /// The provider: `runtime` or `rundown`.
    pub provider: &'static str,
    /// The titles of the columns.
    pub columns: Vec<&'static str>,
    /// One row for each combination.
    pub rows: Vec<Row>,
}

/// All three tables at a session's level. The tables of the documents are for level 5.
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
    Table {
        title: "Table 1: the runtime provider",
        provider: "runtime",
        columns: vec![
            "AppDomain, assembly, module load/unload",
            "Method load/unload (except dynamic)",
            "Dynamic method load/destroy",
        ],
        rows: TABLE_1.into_iter().map(|mask| row_1(mask, level)).collect(),
    }
}

fn row_1(mask: u64, level: u8) -> Row {
    let runtime = Runtime::new(mask, level);
    let loader = name_loads(
        Loader::ALL.into_iter().any(|what| runtime.loads(what)),
        Loader::ALL.into_iter().any(|what| runtime.unloads(what)),
    );
    let ordinary = [Code::Jitted, Code::Precompiled].map(Method::new);
    let core = runtime.in_core();
    let methods = Cell::agreed(name_method_loads(runtime, &ordinary));
    // Loads of compiled methods depend on the level, loads of precompiled ones never come.
    let erratum = if mask & JIT != 0 { "X47" } else { "X48" };
    let methods = methods.in_core(name_method_loads(core, &ordinary), erratum);
    let dynamic = [Method::new(Code::Dynamic)];
    let dynamics = match mask & (JIT | NGEN) {
        NGEN => NOT_APPLICABLE,
        _ => name_method_loads(runtime, &dynamic),
    };
    let core_dynamics = match dynamics {
        NOT_APPLICABLE => NOT_APPLICABLE,
        _ => name_method_loads(core, &dynamic),
    };
    // Dynamic methods always have the verbose events, which the documents put on level 5.
    let documented = match dynamics {
        NOT_APPLICABLE => NOT_APPLICABLE,
        _ if !shows_verbose(level) => NONE,
        as_shipped => as_shipped,
    };
    let dynamics = Cell::new(dynamics, documented, "X02").in_core(core_dynamics, "X47");
    Row {
        mask,
        cells: vec![Cell::agreed(loader), methods, dynamics],
    }
}

/// The load and unload events of these methods.
fn name_method_loads(runtime: Runtime, methods: &[Method]) -> &'static str {
    name_loads(
        methods
            .iter()
            .any(|&method| runtime.method_load(method).is_some()),
        methods.iter().any(|&method| has_unload(runtime, method)),
    )
}

/// Whether a method has an unload event for either reason.
fn has_unload(runtime: Runtime, method: Method) -> bool {
    runtime.method_unload(method, Unload::Destroyed).is_some()
        || runtime.method_unload(method, Unload::OwnerGone).is_some()
}

/// Combinations of a keyword alone and with either enumeration.
fn with_enumerations(keywords: &[u64]) -> impl Iterator<Item = u64> {
    keywords
        .iter()
        .flat_map(|&k| [k, k | START_RUNDOWN, k | END_RUNDOWN])
}

fn table_2(level: u8) -> Table {
    let masks = with_enumerations(&[LOADER, JIT, NGEN]);
    Table {
        title: "Table 2: the rundown provider",
        provider: "rundown",
        columns: vec![
            "AppDomain, assembly, module DCStart/DCEnd",
            "Method DCStart/DCEnd (with dynamic methods)",
        ],
        rows: masks.map(|mask| row_2(mask, level)).collect(),
    }
}

fn row_2(mask: u64, level: u8) -> Row {
    let rundown = Rundown::new(mask, level);
    let loader = name_enumerations(|which| {
        Loader::ALL
            .into_iter()
            .any(|what| rundown.loader(which, what))
    });
    let kinds = [Code::Jitted, Code::Precompiled, Code::Dynamic].map(Method::new);
    let methods = name_enumerations(|which| {
        kinds
            .into_iter()
            .any(|method| rundown.method(which, method).is_some())
    });
    let without_dynamic = mask & JIT != 0 && !shows_verbose(level);
    let documented = match methods {
        DC_START if without_dynamic => "DCStart events but of dynamic methods",
        DC_END if without_dynamic => "DCEnd events but of dynamic methods",
        as_shipped => as_shipped,
    };
    Row {
        mask,
        cells: vec![Cell::agreed(loader), Cell::new(methods, documented, "X02")],
    }
}

/// What the documents say in prose: markers come for AppDomainResourceManagement, Jit, NGen and
/// Loader; threads for AppDomainResourceManagement.
fn markers_and_threads(level: u8) -> Table {
    let keywords = [
        LOADER,
        JIT,
        NGEN,
        APP_DOMAIN_RESOURCES,
        THREADING,
        IL_MAP,
        PERF_TRACK,
    ];
    let masks = with_enumerations(&keywords);
    Table {
        title: "Markers and threads: the rundown provider",
        provider: "rundown",
        columns: vec!["Markers (Init, Complete)", "ThreadDC"],
        rows: masks.map(|mask| marker_row(mask, level)).collect(),
    }
}

fn marker_row(mask: u64, level: u8) -> Row {
    let rundown = Rundown::new(mask, level);
    let markers = Cell::new(
        name_enumerations(|which| rundown.brackets(which)),
        name_documented(rundown, mask, APP_DOMAIN_RESOURCES | JIT | NGEN | LOADER),
        "X16",
    );
    let threads = Cell::new(
        name_enumerations(|which| rundown.threads(which)),
        name_documented(rundown, mask, APP_DOMAIN_RESOURCES),
        "X17",
    );
    Row {
        mask,
        cells: vec![markers, threads],
    }
}

/// The events that a mask selects if, as the documents say, any of these keywords is enough.
fn name_documented(rundown: Rundown, mask: u64, keywords: u64) -> &'static str {
    name_enumerations(|which| mask & keywords != 0 && rundown.is_enabled(which))
}

/// Whether a session of this level would get the verbose events if they had level 5.
fn shows_verbose(level: u8) -> bool {
    level == 0 || !(INFORMATIONAL..VERBOSE).contains(&level)
}

fn name_loads(load: bool, unload: bool) -> &'static str {
    match (load, unload) {
        (false, false) => NONE,
        (true, false) => "Load events",
        (false, true) => "Unload events",
        (true, true) => "Load and unload events",
    }
}

fn name_enumerations(is_raised: impl Fn(Enumeration) -> bool) -> &'static str {
    match (is_raised(Enumeration::Start), is_raised(Enumeration::End)) {
        (false, false) => NONE,
        (true, false) => DC_START,
        (false, true) => DC_END,
        (true, true) => "DCStart and DCEnd events",
    }
}
