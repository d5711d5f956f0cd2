//! Compares docs/truth.md with what is written: every kind, field and word, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use etl_synth::truth::{BufferOutcome, EventOutcome, InMemoryTruth, JsonlWriter};
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::root;
use serde_json::Value;

/// Keys by kind, and words of outcomes and fates.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    keys: BTreeMap<String, BTreeSet<String>>,
    outcomes: BTreeSet<String>,
    fates: BTreeSet<String>,
}

fn corpus() -> Seen {
    let corpus = root().join("corpus");
    let include = |file: &str| std::fs::read_to_string(corpus.join(file));
    let mut seen = Seen::default();
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "kdl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        let scenario = Script::new(&name, &text).include(&include).parse().unwrap();
        let mut lines = JsonlWriter::new(Vec::new());
        Simulation::new(&scenario)
            .observer(&mut lines)
            .run(&mut MemoryFileSystem::default())
            .unwrap();
        let mut gathered = InMemoryTruth::default();
        Simulation::new(&scenario)
            .observer(&mut gathered)
            .run(&mut MemoryFileSystem::default())
            .unwrap();
        let truth = String::from_utf8(lines.into_inner()).unwrap();
        let mut events = 0;
        for (number, line) in truth.lines().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}"));
            let object = value.as_object().unwrap();
            let kind = object["kind"].as_str().unwrap();
            assert_eq!(number == 0, kind == "truth", "{name}: the first line says what follows");
            let keys = seen.keys.entry(kind.to_owned()).or_default();
            keys.extend(object.keys().cloned());
            if kind == "event" {
                // The lines say what a program is told.
                let known = &gathered.events[events];
                events += 1;
                assert_eq!(object["number"].as_u64(), Some(known.number), "{name}");
                assert_eq!(object["event"].as_str(), Some(known.name.as_str()), "{name}");
                assert_eq!(object["at_ns"].as_u64(), Some(known.at), "{name}");
                let fields = object["fields"].as_object().unwrap();
                let names: BTreeSet<&str> = known.fields.iter().map(|(n, _)| n.as_str()).collect();
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
                seen.outcomes.insert(object["outcome"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(events, gathered.events.len(), "{name}");
    }
    seen
}

/// Words in backquotes in a cell.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
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
            "field" => seen.keys.entry(section.clone()).or_default().extend(quoted(first)),
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
fn the_page_says_what_is_written_and_nothing_else() {
    let (page, mut found) = (page(), corpus());
    // Filters that no scenario has, and that the page tells of all the same.
    let unused = ["executables", "ignore_keyword_0"].map(str::to_owned);
    found.keys.entry("enable".to_owned()).or_default().extend(unused);
    assert_eq!(page.keys, found.keys, "docs/truth.md (left) and what the corpus writes (right)");
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
    // The corpus may leave a word unused, and uses no other.
    assert!(found.outcomes.is_subset(&page.outcomes), "{:?}", found.outcomes);
    assert!(found.outcomes.is_subset(&page.outcomes), "{:?}", found.outcomes);
}
