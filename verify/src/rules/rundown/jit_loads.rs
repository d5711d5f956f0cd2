//! Since when the loads of compiled methods are recorded: a rundown need not list those.

use etl_control::clr::{Code, Method, Runtime};
use etl_control::enable::CombinedEnablement;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::clr::Change;

use crate::facts::enable::Knowledge;
use crate::facts::{Clr, Facts, MethodSign, Process};

/// Whether the loads of compiled methods are recorded since a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loads {
    /// They are.
    Whole,
    /// Only since this timestamp.
    Later(i64),
    /// They are not recorded at all.
    Never,
    /// Nothing decides it.
    Unknown,
}

/// An enablement under which the CLR logs the loads of compiled methods.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: i64,
    /// For some processes or ids only.
    limited: bool,
}

/// When the loads of compiled methods were logged, as far as enablements and events show it.
#[derive(Clone, Debug)]
pub(super) struct JitLoads<'f> {
    facts: &'f Facts,
    /// How enablements of the runtime provider are known.
    knowledge: Option<Knowledge>,
    /// Those that log the loads.
    asked: Vec<Asked>,
    /// The first such load of any process.
    pub seen: Option<i64>,
}

impl<'f> JitLoads<'f> {
    pub fn of(facts: &'f Facts) -> Self {
        let own = || facts.admission.of(CLR_RUNTIME);
        let logs = own().filter(|(_, with)| {
            let runtime = Runtime::from(CombinedEnablement::of([*with]));
            runtime.method_load(Method::new(Code::Jitted)).is_some()
        });
        let asked =
            logs.map(|(e, _)| Asked { at: e.at.unwrap_or(i64::MIN), limited: e.limited }).collect();
        JitLoads {
            facts,
            knowledge: own().map(|(e, _)| e.knowledge).min(),
            asked,
            seen: facts.processes().iter().filter_map(first_load).min(),
        }
    }

    /// Whether loads are recorded since a timestamp.
    pub fn since(&self, from: i64) -> Loads {
        let whole = self.asked.iter().filter(|asked| !asked.limited);
        let asked = whole.map(|asked| asked.at).min();
        // What is requested together takes effect one after the other.
        let is_there = |at: i64| at <= from.saturating_add(self.soon());
        match (self.knowledge, asked) {
            (Some(_), Some(at)) if is_there(at) => Loads::Whole,
            (Some(Knowledge::Declared), Some(at)) => Loads::Later(at),
            (Some(Knowledge::Declared), None) if self.asked.is_empty() => Loads::Never,
            _ if self.seen.is_some_and(is_there) => Loads::Whole,
            _ => Loads::Unknown,
        }
    }

    /// Whether the loads of a process's compiled methods are recorded since its CLRs started.
    pub fn since_start(&self, process: &Process) -> Loads {
        let starts: Option<Vec<i64>> = process.clrs().values().map(Clr::started).collect();
        let Some(start) = starts.and_then(|starts| starts.into_iter().min()) else {
            return Loads::Never;
        };
        if !process.is_recorded_from_start() {
            return Loads::Never;
        }
        match self.since(start) {
            // A CLR loads methods as soon as it has started.
            Loads::Unknown => match first_method(process) {
                Some(first) if first.saturating_sub(start) <= self.second() => Loads::Whole,
                _ => Loads::Unknown,
            },
            known => known,
        }
    }

    /// Ticks of a second.
    pub fn second(&self) -> i64 {
        i64::try_from(self.facts.clock().frequency).unwrap_or(i64::MAX)
    }

    /// Ticks between requests that are made together.
    fn soon(&self) -> i64 {
        self.second() / 100
    }
}

/// The first load of code that was compiled at run time.
fn first_load(process: &Process) -> Option<i64> {
    first(process, MethodSign::is_jit_load)
}

/// The first load of a method, compiled at run time or before.
pub(super) fn first_method(process: &Process) -> Option<i64> {
    first(process, |sign| sign.change == Change::Load)
}

fn first(process: &Process, is_wanted: impl Fn(MethodSign) -> bool) -> Option<i64> {
    let loads = process.signs().iter().filter(|(sign, _)| is_wanted(*sign));
    loads.filter_map(|(_, counted)| counted.first).min()
}

/// Modules of a CLR with code that was compiled before it ran, if no event names any such method.
pub(super) fn unnamed_precompiled(process: &Process, clr: &Clr) -> usize {
    if process.signs().iter().any(|(sign, _)| MethodSign::is_precompiled(*sign)) {
        return 0;
    }
    clr.module_facts().values().filter(|module| module.is_precompiled()).count()
}
