//! The words of docs/scenario.md against the examples: each has one.

use std::collections::BTreeSet;

use super::items::EXAMPLES;

/// Words of a piece of the page: `node NAME property= { inner ... }` is `node`, `node.property`,
/// `inner`.
fn words(piece: &str, above: &str, out: &mut BTreeSet<String>) {
    let mut nodes: Vec<&str> = Vec::new();
    let mut opened = true;
    for token in piece.split_whitespace() {
        if token == "{" {
            opened = true;
        } else if token.starts_with('}') || token == "..." {
            nodes.pop();
        } else if let Some((property, _)) = token.split_once('=') {
            // A property without a node, `size="..."`, is named by other rows.
            if let Some(node) = nodes.last() {
                out.insert(format!("{node}.{property}"));
            }
        } else if opened && token.starts_with(|c: char| c.is_ascii_lowercase()) {
            opened = false;
            nodes.push(token);
            out.insert(format!("{above}{token}"));
        }
    }
}

/// Rows of the tables in a section: the first cell's pieces in backquotes.
fn table<'p>(page: &'p str, heading: &str) -> impl Iterator<Item = &'p str> {
    let (_, rest) = page
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("{heading}"));
    rest.lines()
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|'))
        .flat_map(|row| row.replace("\\|", "/").split('|').nth(1).map(str::to_owned))
        .flat_map(|cell| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .map(|piece| &*Box::leak(piece.into_boxed_str()))
}

#[test]
fn each_word_of_the_reference_has_an_example() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scenario.md");
    let page = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let mut named = BTreeSet::new();
    table(&page, "## Reference").for_each(|piece| words(piece, "", &mut named));
    let mut faults = BTreeSet::new();
    table(&page, "## Faults").for_each(|piece| words(piece, "", &mut faults));
    named.extend(faults.iter().map(|word| format!("fault {word}")));
    let mut edits = BTreeSet::new();
    table(&page, "## Edits").for_each(|piece| words(piece, "", &mut edits));
    named.extend(edits.iter().map(|word| format!("edit {word}")));
    assert!(named.len() > 150, "{}: {named:?}", named.len());
    let shown: BTreeSet<String> = EXAMPLES
        .iter()
        .flat_map(|e| e.0.split(", ").map(str::to_owned))
        .collect();
    let missing: Vec<_> = named.difference(&shown).collect();
    assert!(missing.is_empty(), "no example for {missing:?}");
    let odd: Vec<_> = shown.difference(&named).collect();
    assert!(odd.is_empty(), "docs/scenario.md does not name {odd:?}");
}
