//! Compares docs/protocol.md with the enable rule of etl-control.

use etl_control::enable::{ClassicEnablement, Enablement, EventKey, IdFilter, Variant};

/// The rows of the table whose head begins with this cell.
fn table(head: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(etl_test_support::root().join("docs/protocol.md")).unwrap();
    let rows: Vec<_> = page
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {head} |")))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells
                .map(|cell| cell.trim().trim_matches('`').to_owned())
                .collect()
        })
        .collect();
    assert!(rows.len() >= 3, "no table with the head {head}");
    rows
}

/// Values of the page's names.
type Names = Vec<(&'static str, u64)>;

/// Whether a condition holds: terms with `and` between, `X`, `X & Y` or a number on each side.
fn holds(condition: &str, names: &Names) -> bool {
    let atom = |text: &str| {
        let named = names
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value);
        named
            .or_else(|| text.parse().ok())
            .unwrap_or_else(|| panic!("{text:?} is no name"))
    };
    let side = |text: &str| {
        text.split(" & ")
            .map(|part| atom(part.trim()))
            .fold(u64::MAX, |a, b| a & b)
    };
    condition.split(" and ").all(|term| {
        for (operator, compare) in [
            (" != ", (|a, b| a != b) as fn(u64, u64) -> bool),
            (" <= ", |a, b| a <= b),
            (" > ", |a, b| a > b),
            (" = ", |a, b| a == b),
        ] {
            if let Some((left, right)) = term.split_once(operator) {
                return compare(side(left), side(right));
            }
        }
        panic!("{term:?} is no condition")
    })
}

/// The first row that holds, and its result.
fn decided(rows: &[Vec<String>], names: &Names) -> (usize, bool) {
    let row = rows.iter().position(|row| holds(&row[0], names));
    let row = row.unwrap_or_else(|| panic!("no row for {names:?}"));
    (row, yes(&rows[row][1]))
}

fn yes(cell: &str) -> bool {
    match cell {
        "yes" => true,
        "no" => false,
        other => panic!("{other:?} is neither yes nor no"),
    }
}

/// Checks that each row decides at least one case.
fn all_used(used: &[bool]) {
    assert!(
        used.iter().all(|used| *used),
        "rows that never decide: {used:?}"
    );
}

#[test]
fn level_rule_matches_the_page() {
    let rows = table("level");
    let mut used = vec![false; rows.len()];
    for session in 0..=u8::MAX {
        for event in 0..=u8::MAX {
            let names = vec![("S", session.into()), ("E", event.into())];
            let (row, passes) = decided(&rows, &names);
            used[row] = true;
            assert_eq!(
                Enablement::new(session, 0).admits_level(event),
                passes,
                "{names:?}"
            );
        }
    }
    all_used(&used);
}

/// All masks of the lowest and highest bits of both halves.
fn masks() -> impl Iterator<Item = u64> + Clone {
    const BITS: [u32; 4] = [0, 31, 32, 63];
    (0..1u64 << BITS.len()).map(|set| {
        BITS.iter()
            .enumerate()
            .filter(|(i, _)| set >> i & 1 == 1)
            .fold(0, |m, (_, b)| m | 1 << b)
    })
}

#[test]
fn keyword_rule_matches_the_page() {
    for (head, variant) in [
        ("keyword", Variant::Current),
        ("keyword, older wording", Variant::Legacy),
    ] {
        let rows = table(head);
        let mut used = vec![false; rows.len()];
        for any in masks() {
            for all in masks() {
                for keyword in masks() {
                    for ignore in [false, true] {
                        let names =
                            vec![("A", any), ("L", all), ("K", keyword), ("I", ignore.into())];
                        let (row, passes) = decided(&rows, &names);
                        used[row] = true;
                        let session = Enablement {
                            all,
                            ignore_keyword_0: ignore,
                            variant,
                            ..Enablement::new(0, any)
                        };
                        assert_eq!(
                            session.admits_keyword(keyword),
                            passes,
                            "{head}: {names:x?}"
                        );
                    }
                }
            }
        }
        all_used(&used);
    }
}

#[test]
fn id_filters_match_the_page() {
    for row in table("filter") {
        let (filter, list) = row[0].split_once(' ').unwrap_or((&row[0], ""));
        let list = list.split(", ").filter_map(|id| id.parse().ok()).collect();
        let ids = match filter {
            "none" => IdFilter::Any,
            "in" => IdFilter::In(list),
            "out" => IdFilter::Out(list),
            other => panic!("{other}"),
        };
        let session = Enablement {
            ids,
            ..Enablement::default()
        };
        let event = EventKey {
            id: row[1].parse().unwrap(),
            ..EventKey::default()
        };
        assert_eq!(session.admits(&event), yes(&row[2]), "{row:?}");
    }
}

#[test]
fn classic_rule_matches_the_page() {
    let rows = table("WPP message");
    let mut used = vec![false; rows.len()];
    for level in 0..8u8 {
        for event in 0..8u8 {
            for flags in 0..8u32 {
                for flag in 0..8u32 {
                    let names = vec![
                        ("S", level.into()),
                        ("E", event.into()),
                        ("F", flags.into()),
                        ("B", flag.into()),
                    ];
                    let (row, traced) = decided(&rows, &names);
                    used[row] = true;
                    let session = ClassicEnablement { level, flags };
                    assert_eq!(session.traces(event, flag), traced, "{names:?}");
                }
            }
        }
    }
    all_used(&used);
}
