//! Suggests names for a misspelled word.

use strsim::levenshtein;

/// Names in a help text.
const MAX_NAMES: usize = 4;
/// Characters of a word that is looked for within names.
const MIN_WITHIN: usize = 3;

/// The nearest names to a word, the nearest first: those that contain it, then those that differ
/// from it in less than half of their characters. Case does not matter.
pub(super) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let mut found: Vec<(bool, usize, &str)> = names
        .filter_map(|name| {
            let other = name.to_lowercase();
            let contains = length >= MIN_WITHIN && other.contains(&word);
            let distance = levenshtein(&word, &other);
            let is_near = contains || distance * 2 < length;
            is_near.then_some((!contains, distance, name))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .take(MAX_NAMES)
        .map(|(.., name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_prefers_names_that_contain_the_word() {
        let names = ["QueryName", "QueryType", "Name", "Status"];
        assert_eq!(nearest("name", names.into_iter()), ["Name", "QueryName"]);
        assert_eq!(
            nearest("QueryNmae", names.into_iter()),
            ["QueryName", "QueryType"]
        );
        assert!(nearest("elsewhere", names.into_iter()).is_empty());
    }
}
