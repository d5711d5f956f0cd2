//! Compares docs/truth.md with the truth of the corpus: kinds, keys and outcomes.

use std::collections::{BTreeMap, BTreeSet};

use etl_synth::truth::{BufferOutcome, EventOutcome};
use etl_test_support::root;
use serde_json::Value;

use crate::simulated::{Simulated, corpus};

/// Keys by kind, and outcomes.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    keys: BTreeMap<String, BTreeSet<String>>,
    outcomes: BTreeSet<String>,
}

/// The keys and words of the corpus.
fn written() -> Seen {
    let mut seen = Seen::default();
    for Simulated {
        name,
        texts,
        truth: known,
        ..
    } in corpus()
    {
        let truth = std::str::from_utf8(&texts["truth.jsonl"]).unwrap();
        let mut events = 0;
        for (number, line) in truth.lines().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}"));
            let object = value.as_object().unwrap();
            let kind = object["kind"].as_str().unwrap();
            assert_eq!(
                number == 0,
                kind == "truth",
                "{name}: only the first line has this kind"
            );
            let keys = seen.keys.entry(kind.to_owned()).or_default();
            keys.extend(object.keys().cloned());
            if kind == "event" {
                let known = &known.events[events];
                events += 1;
                assert_eq!(object["number"].as_u64(), Some(known.number), "{name}");
                assert_eq!(
                    object["event"].as_str(),
                    Some(known.name.as_str()),
                    "{name}"
                );
                assert_eq!(object["at_ns"].as_u64(), Some(known.at), "{name}");
                let fields = object["fields"].as_object().unwrap();
                let names: BTreeSet<&str> = known
                    .fields
                    .iter()
                    .map(|field| field.name.as_str())
                    .collect();
                assert_eq!(
                    fields.keys().map(String::as_str).collect::<BTreeSet<_>>(),
                    names,
                    "{name}"
                );
                for (_, outcome) in object["sessions"].as_object().unwrap() {
                    seen.outcomes.insert(outcome.as_str().unwrap().to_owned());
                }
            }
            if kind == "buffer" {
                seen.outcomes
                    .insert(object["outcome"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(events, known.events.len(), "{name}");
    }
    seen
}

/// The words in backquotes of a cell.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn page() -> Seen {
    let text = std::fs::read_to_string(root().join("docs/truth.md")).unwrap();
    let mut seen = Seen::default();
    let (mut section, mut table) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        }
        if line.starts_with("|--") {
            continue;
        }
        let Some(row) = line.strip_prefix("| ") else {
            table.clear();
            continue;
        };
        let mut cells = row.split(" | ");
        let (first, second) = (cells.next().unwrap(), cells.next().unwrap_or_default());
        if table.is_empty() {
            table = first.to_owned();
            continue;
        }
        match table.as_str() {
            "field" => seen
                .keys
                .entry(section.clone())
                .or_default()
                .extend(quoted(first)),
            "event outcome" => seen.outcomes.extend(quoted(first)),
            "buffer outcome" => seen.outcomes.extend(quoted(first)),
            "kind" => {
                let kind = quoted(first).into_iter().next().unwrap();
                let mut keys = quoted(second);
                keys.insert("kind".to_owned());
                seen.keys.insert(kind, keys);
            }
            other => panic!("a table of {other}"),
        }
    }
    seen
}

#[test]
fn truth_page_lists_every_key_and_outcome() {
    let (page, mut found) = (page(), written());
    // The page describes filters that no scenario has.
    let unused = ["executables", "ignore_keyword_0", "old_rule"].map(str::to_owned);
    found
        .keys
        .entry("enable".to_owned())
        .or_default()
        .extend(unused);
    assert_eq!(
        page.keys, found.keys,
        "docs/truth.md (left) and what the corpus writes (right)"
    );
    let outcomes = [
        EventOutcome::Recorded,
        EventOutcome::Level,
        EventOutcome::Keyword,
        EventOutcome::Id,
        EventOutcome::Process,
        EventOutcome::ClaimedByOtherSession,
        EventOutcome::Lost,
        EventOutcome::Disabled,
        EventOutcome::Missing,
        EventOutcome::TooLarge,
        EventOutcome::LargerThanBuffers,
    ];
    let buffer_outcomes = [
        BufferOutcome::Written,
        BufferOutcome::Lost,
        BufferOutcome::FileFull,
        BufferOutcome::Overwritten,
        BufferOutcome::Unwritten,
        BufferOutcome::Discarded,
        BufferOutcome::Delivered,
        BufferOutcome::Damaged,
        BufferOutcome::CutOff,
    ];
    let events = outcomes.iter().map(ToString::to_string);
    let buffers = buffer_outcomes.iter().map(ToString::to_string);
    assert_eq!(page.outcomes, events.chain(buffers).collect());
    // The corpus need not have every outcome.
    assert!(
        found.outcomes.is_subset(&page.outcomes),
        "{:?}",
        found.outcomes
    );
}
