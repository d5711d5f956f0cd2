//! The names most like an unknown name.

use strsim::levenshtein;

/// The largest number of names that are returned.
const MAX_NAMES: usize = 3;

/// Returns the names most like an unknown one, the most similar first: names that contain it or
/// are part of it, then names that differ in at most a third of its letters. Case does not matter.
/// Returns at most three names, each once.
///
/// ```
/// use etl_control::nearest_names;
///
/// let flags = ["PROC_THREAD", "LOADER", "CSWITCH"];
/// assert_eq!(nearest_names("cswich", flags), ["CSWITCH"]);
/// assert!(nearest_names("registry", flags).is_empty());
/// ```
pub fn nearest_names<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let name = name.to_lowercase();
    let mut similar: Vec<Similar<'n>> = names
        .into_iter()
        .filter_map(|other| similar(&name, other))
        .collect();
    similar.sort_unstable();
    similar.dedup();
    similar.truncate(MAX_NAMES);
    similar.into_iter().map(|similar| similar.name).collect()
}

/// A name that is like the unknown one; the most similar is ordered first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Similar<'n> {
    /// Whether neither name contains the other.
    is_other: bool,
    /// The number of letters that differ.
    edits: usize,
    name: &'n str,
}

/// Compares a name with the unknown one, which is in lower case.
fn similar<'n>(unknown: &str, name: &'n str) -> Option<Similar<'n>> {
    if name.is_empty() {
        return None;
    }
    let lower = name.to_lowercase();
    let is_other = !lower.contains(unknown) && !unknown.contains(&lower);
    let edits = levenshtein(unknown, &lower);
    let is_near = !is_other || edits <= unknown.len() / 3;
    is_near.then_some(Similar {
        is_other,
        edits,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::nearest_names;

    #[test]
    fn nearest_names_are_related() {
        let names = [
            "Processor",
            "EventTrace",
            "Microsoft-Windows-DotNETRuntime",
            "Process",
        ];
        for (name, nearest) in [
            ("process", &["Process", "Processor"][..]),
            ("procss", &["Process"]),
            (
                "Microsoft-Windows-DotNETRuntim",
                &["Microsoft-Windows-DotNETRuntime"],
            ),
            ("dotnet", &["Microsoft-Windows-DotNETRuntime"]),
            ("nosuch", &[]),
        ] {
            assert_eq!(nearest_names(name, names), nearest, "{name}");
        }
        assert_eq!(
            nearest_names("procss", ["Process", "Process", ""]),
            ["Process"]
        );
    }
}
