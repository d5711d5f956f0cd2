//! The filter by process: in which processes a provider is enabled.
//!
//! It is applied after level and keywords. If a session enables the provider again, it is replaced,
//! like level and keywords.
//!
//! Source: the reference of `EVENT_FILTER_DESCRIPTOR` and of the structures it points to.

/// The largest number of processes in a filter (`MAX_EVENT_FILTER_PID_COUNT`).
pub const MAX_PROCESSES: usize = 8;
/// The largest number of ids in a filter (`MAX_EVENT_FILTER_EVENT_ID_COUNT`).
pub const MAX_IDS: usize = 64;

/// The properties of the process that raises an event on which filters depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessKey<'a> {
    /// Id of the process.
    pub id: u32,
    /// File name of the executable, without its directory.
    pub executable: &'a str,
    /// Full name of its package; `None` for a program without one.
    pub package: Option<&'a str>,
    /// Its id within the package (PRAID).
    pub app: Option<&'a str>,
}

/// The processes in which a provider is enabled. A process must be in each list that is not empty.
/// Names are compared without case.
///
/// ```
/// use etl_control::enable::{ProcessKey, Scope};
///
/// let scope = Scope { executables: vec!["shop.exe".to_owned()], ..Scope::default() };
/// let shop = ProcessKey { id: 100, executable: "Shop.exe", ..ProcessKey::default() };
/// assert!(scope.admits(&shop));
/// assert!(!scope.admits(&ProcessKey { executable: "cmd.exe", ..shop }));
/// ```
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
        (self.processes.is_empty() || self.processes.contains(&process.id))
            && admits_name(&self.executables, Some(process.executable))
            && admits_name(&self.packages, process.package)
            && admits_name(&self.apps, process.app)
    }
}

/// Whether a list is empty or has the name (case does not matter).
fn admits_name(list: &[String], name: Option<&str>) -> bool {
    if list.is_empty() {
        return true;
    }
    let Some(name) = name else { return false };
    list.iter().any(|listed| listed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn process() -> impl Strategy<Value = (u32, &'static str, Option<&'static str>)> {
        (
            0u32..4,
            select(vec!["a.exe", "b.exe"]),
            select(vec![None, Some("p"), Some("q")]),
        )
    }

    fn scope() -> impl Strategy<Value = Scope> {
        let names = |from: Vec<&'static str>| vec(select(from).prop_map(str::to_owned), 0..2);
        (
            vec(0u32..4, 0..3),
            names(vec!["A.EXE", "b.exe"]),
            names(vec!["p", "Q"]),
        )
            .prop_map(|(processes, executables, packages)| Scope {
                processes,
                executables,
                packages,
                apps: vec![],
            })
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
    }
}
