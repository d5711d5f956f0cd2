//! Filters of an enablement that look at more than the event: where it is raised, what it is
//! called, and whether a stack is taken with it.
//!
//! They come after level and keywords. Enabling a provider again replaces them like all else.
//! Payload filters are not here: they look into the payload.
//!
//! Source: the reference of `EVENT_FILTER_DESCRIPTOR` and of the structures it points to.

use super::{Enablement, EventKey, IdFilter};

/// Most processes that a filter can name (`MAX_EVENT_FILTER_PID_COUNT`).
pub const MAX_PROCESSES: usize = 8;
/// Most ids that a filter can list (`MAX_EVENT_FILTER_EVENT_ID_COUNT`).
pub const MAX_IDS: usize = 64;

/// The process that raises an event, as far as filters look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessKey<'a> {
    /// Process id.
    pub id: u32,
    /// File name of the executable, without its directory.
    pub executable: &'a str,
    /// Full name of its package; `None` for a program without one.
    pub package: Option<&'a str>,
    /// Its id within the package (PRAID).
    pub app: Option<&'a str>,
}

/// Which processes a provider is enabled in. Each list that is not empty must hold the process;
/// empty ones let all through. Names are compared without case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Process ids; a session can list [`MAX_PROCESSES`].
    pub processes: Vec<u32>,
    /// File names of executables.
    pub executables: Vec<String>,
    /// Full names of packages.
    pub packages: Vec<String>,
    /// Ids of applications within their packages.
    pub apps: Vec<String>,
}

impl Scope {
    /// Whether the provider is enabled in this process.
    #[must_use]
    pub fn admits(&self, process: &ProcessKey<'_>) -> bool {
        let listed = |list: &[String], name: Option<&str>| {
            list.is_empty()
                || name.is_some_and(|name| list.iter().any(|l| l.eq_ignore_ascii_case(name)))
        };
        (self.processes.is_empty() || self.processes.contains(&process.id))
            && listed(&self.executables, Some(process.executable))
            && listed(&self.packages, process.package)
            && listed(&self.apps, process.app)
    }
}

/// A filter by the name of a TraceLogging event (`EVENT_FILTER_EVENT_NAME`). It concerns the events
/// that its own level and masks select; others pass untouched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameFilter {
    /// Which events it concerns: their level; 0 for all.
    pub level: u8,
    /// Any of these keywords; 0 for all.
    pub any: u64,
    /// All of these keywords.
    pub all: u64,
    /// Whether the names are let in (`true`) or kept out.
    pub only: bool,
    /// The names, compared with case.
    pub names: Vec<String>,
}

impl NameFilter {
    /// Whether an event of this name passes.
    #[must_use]
    pub fn admits(&self, event: &EventKey, name: &str) -> bool {
        let concerns = Enablement { all: self.all, ..Enablement::new(self.level, self.any) };
        !concerns.admits(event) || self.names.iter().any(|n| n == name) == self.only
    }
}

/// Which events get a stack, in a session that asked for stacks
/// ([`STACK_TRACE`](super::EnableProperties::STACK_TRACE)). Never decides about the event itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackFilter {
    /// By id (`EVENT_FILTER_TYPE_STACKWALK`).
    pub ids: IdFilter,
    /// By name (`EVENT_FILTER_TYPE_STACKWALK_NAME`).
    pub names: Option<NameFilter>,
    /// By level and keywords (`EVENT_FILTER_TYPE_STACKWALK_LEVEL_KW`).
    pub levels: Option<StackLevels>,
}

/// Stacks by level and keywords (`EVENT_FILTER_LEVEL_KW`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackLevels {
    /// Level; 0 for all.
    pub level: u8,
    /// Any of these keywords; 0 for all.
    pub any: u64,
    /// All of these keywords.
    pub all: u64,
    /// Whether the events that match get stacks (`true`) or the others do.
    pub only: bool,
}

impl StackFilter {
    /// Whether an event gets a stack; `name` is that of a TraceLogging event, empty for others.
    #[must_use]
    pub fn admits(&self, event: &EventKey, name: &str) -> bool {
        let by_level = self.levels.is_none_or(|f| {
            let session = Enablement { all: f.all, ..Enablement::new(f.level, f.any) };
            session.admits(event) == f.only
        });
        by_level
            && self.ids.admits(event.id)
            && self.names.as_ref().is_none_or(|f| f.admits(event, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn process() -> impl Strategy<Value = (u32, &'static str, Option<&'static str>)> {
        (0u32..4, select(vec!["a.exe", "b.exe"]), select(vec![None, Some("p"), Some("q")]))
    }

    fn scope() -> impl Strategy<Value = Scope> {
        let names = |from: Vec<&'static str>| vec(select(from).prop_map(str::to_owned), 0..2);
        (vec(0u32..4, 0..3), names(vec!["A.EXE", "b.exe"]), names(vec!["p", "Q"])).prop_map(
            |(processes, executables, packages)| Scope {
                processes,
                executables,
                packages,
                apps: vec![],
            },
        )
    }

    proptest! {
        #[test]
        fn scope_admits_as_the_naive_rule(scope in scope(), (id, executable, package) in process()) {
            let key = ProcessKey { id, executable, package, app: None };
            let mut naive = true;
            if !scope.processes.is_empty() {
                naive &= scope.processes.iter().filter(|&&p| p == id).count() > 0;
            }
            if !scope.executables.is_empty() {
                naive &= scope.executables.iter().any(|e| e.to_lowercase() == executable);
            }
            if !scope.packages.is_empty() {
                let package = package.unwrap_or("none of them");
                naive &= scope.packages.iter().any(|p| p.to_lowercase() == package);
            }
            prop_assert_eq!(scope.admits(&key), naive);
            prop_assert!(Scope::default().admits(&key));
        }

        /// What a filter lets in is what its opposite keeps out, among the events it concerns.
        #[test]
        fn only_and_its_opposite_admit_opposite_names(
            (level, any, all) in (0u8..4, 0u64..4, 0u64..4),
            event in (0u16..3, 0u8..5, 0u64..8),
            name in select(vec!["A", "B", "C"]),
        ) {
            let event = EventKey { id: event.0, level: event.1, keyword: event.2 };
            let names = vec!["A".to_owned(), "B".to_owned()];
            let only = NameFilter { level, any, all, only: true, names };
            let but = NameFilter { only: false, ..only.clone() };
            let concerned = Enablement { all, ..Enablement::new(level, any) }.admits(&event);
            if concerned {
                prop_assert_ne!(only.admits(&event, name), but.admits(&event, name));
                prop_assert_eq!(only.admits(&event, name), name != "C");
            } else {
                prop_assert!(only.admits(&event, name) && but.admits(&event, name));
            }
            let stacks = |only| StackFilter {
                levels: Some(StackLevels { level, any, all, only }),
                ..StackFilter::default()
            };
            prop_assert_eq!(stacks(true).admits(&event, ""), concerned);
            prop_assert_eq!(stacks(false).admits(&event, ""), !concerned);
        }
    }

    #[test]
    fn stack_filter_admits_by_id_and_name() {
        let event = EventKey { id: 7, level: 4, keyword: 1 };
        let by_id = |ids| StackFilter { ids, ..StackFilter::default() };
        assert!(by_id(IdFilter::In(vec![7])).admits(&event, ""));
        assert!(!by_id(IdFilter::Out(vec![7])).admits(&event, ""));
        let named = NameFilter { only: true, names: vec!["A".into()], ..NameFilter::default() };
        let by_name = StackFilter { names: Some(named), ..StackFilter::default() };
        assert!(by_name.admits(&event, "A") && !by_name.admits(&event, "a"));
        assert!(StackFilter::default().admits(&event, ""));
    }
}
