//! What `etlkit export` writes, read by others, against the truth of a simulated machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_format::constants::hook;
use etl_format::read::{Options, Order, Trace};
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_test_support::{foreign, needs, node_packages, root};
use etlkit::run_captured;
use serde_json::Value;

use crate::kinds::{Kind, kinds};
use crate::sampled::{Sampled, sampled, simulated};
use crate::simulated::Simulated;

/// Counts by stack, outermost frame first.
type Stacks = BTreeMap<String, u64>;

/// The traces of a recording in a folder of their own, and its samples.
struct Recorded {
    folder: tempfile::TempDir,
    traces: Vec<PathBuf>,
    samples: Vec<Sampled>,
}

impl Recorded {
    fn new() -> Self {
        Recorded::of(&simulated("profile"), &["profile.etl"])
    }

    fn of(simulated: &Simulated, files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &&str| {
            let path = folder.path().join(name);
            std::fs::write(&path, &simulated.traces[*name]).unwrap();
            path
        };
        let traces = files.iter().map(write).collect();
        Recorded {
            folder,
            traces,
            samples: sampled(simulated),
        }
    }

    /// Exports the traces and returns the path of the file.
    fn export(&self, args: &[&str]) -> PathBuf {
        let output = self.folder.path().join("out");
        let words = ["etlkit", "export"].into_iter().chain(args.iter().copied());
        let words = words
            .chain(["--force", "-o"])
            .map(Into::into)
            .chain([output.clone().into()]);
        let said = run_captured(words.chain(self.traces.iter().map(Into::into)));
        assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.err));
        output
    }

    /// The stacks that the truth has, each with what `name` adds before it.
    fn expected(&self, name: impl Fn(&Sampled) -> String) -> Stacks {
        let mut stacks = Stacks::new();
        for sample in &self.samples {
            *stacks
                .entry(format!("{};{}", name(sample), sample.stack()))
                .or_default() += 1;
        }
        stacks
    }
}

/// Names the first stacks that differ: all of them would fill the screen.
fn assert_same(found: &Stacks, expected: &Stacks) {
    let wrong = expected
        .iter()
        .filter(|(stack, count)| found.get(*stack) != Some(count));
    let more = found
        .iter()
        .filter(|(stack, _)| !expected.contains_key(*stack));
    let wrong: Vec<_> = wrong.chain(more).take(3).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn folded(path: &Path) -> Stacks {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), count.parse().unwrap())
    });
    let stacks: Stacks = lines.collect();
    assert_eq!(
        stacks.len(),
        text.lines().count(),
        "each stack has one line"
    );
    stacks
}

#[test]
fn folded_stacks_are_those_of_the_truth() {
    let recorded = Recorded::new();
    let by_process = recorded.expected(|sample| sample.process.clone());
    assert!(by_process.len() > 100);
    assert_same(&folded(&recorded.export(&["folded"])), &by_process);
    // A sample stands for a millisecond.
    let times = folded(&recorded.export(&["folded", "--weight", "time"]));
    let in_time = |(stack, count): (&String, &u64)| (stack.clone(), count * 1_000_000);
    assert_same(&times, &by_process.iter().map(in_time).collect());
    let by_thread = recorded.expected(|sample| format!("{};thread {}", sample.process, sample.tid));
    assert_same(
        &folded(&recorded.export(&["folded", "--by-thread"])),
        &by_thread,
    );
    let mut one = by_process;
    one.retain(|stack, _| stack.starts_with("Editor.exe"));
    assert_same(
        &folded(&recorded.export(&["folded", "--process", "editor"])),
        &one,
    );
    for recorded in of_all_kinds() {
        let by_process = recorded.expected(|sample| sample.process.clone());
        assert_same(&folded(&recorded.export(&["folded"])), &by_process);
    }
}

fn of_all_kinds() -> impl Iterator<Item = Recorded> {
    kinds().iter().map(
        |Kind {
             simulated, files, ..
         }| Recorded::of(simulated, files),
    )
}

#[needs(python, node)]
#[test]
fn speedscope_files_are_valid_and_have_the_stacks_of_the_truth() {
    compare_speedscope(&Recorded::new());
    of_all_kinds().for_each(|recorded| compare_speedscope(&recorded));
}

fn compare_speedscope(recorded: &Recorded) {
    let schema = node_packages().join("speedscope/dist/release/file-format-schema.json");
    let profiles = &foreign("speedscope.py", &[schema, recorded.export(&["speedscope"])])[0];
    let mut found = Stacks::new();
    for (name, profile) in profiles.as_object().unwrap() {
        assert_eq!(profile["unit"], "nanoseconds");
        for (stack, weight) in profile["stacks"].as_object().unwrap() {
            found.insert(format!("{name};{stack}"), weight.as_u64().unwrap());
        }
    }
    let expected = recorded.expected(|sample| format!("{} thread {}", sample.process, sample.tid));
    let expected = expected
        .into_iter()
        .map(|(stack, count)| (stack, count * 1_000_000));
    assert_same(&found, &expected.collect());
}

/// Activities overlap where several threads work: each is in a profile in which it is nested.
#[needs(python, node)]
#[test]
fn speedscope_files_have_the_activities_of_the_truth() {
    let simulated = simulated("activities");
    let recorded = Recorded::of(&simulated, &["web.etl"]);
    let schema = node_packages().join("speedscope/dist/release/file-format-schema.json");
    let profiles = &foreign("speedscope.py", &[schema, recorded.export(&["speedscope"])])[0];
    let (mut counts, mut time) = (Stacks::new(), Stacks::new());
    for (name, profile) in profiles.as_object().unwrap() {
        // The trace has no events of the kernel, which would name the process.
        assert!(
            name.starts_with("? (") && name.contains(") activities"),
            "{name}"
        );
        for (sums, member) in [(&mut counts, "counts"), (&mut time, "times")] {
            for (stack, value) in profile[member].as_object().unwrap() {
                *sums.entry(stack.clone()).or_default() += value.as_u64().unwrap();
            }
        }
    }
    let events = |name: &'static str| {
        let recorded = simulated
            .truth
            .events
            .iter()
            .filter(|e| !e.outcomes.is_empty());
        recorded.filter(move |e| e.name == name)
    };
    let sum = |name: &'static str| events(name).map(|e| e.at).sum::<u64>();
    let number = events("RequestStart").count() as u64;
    assert!(number > 20);
    let expected = [("Request", number), ("Request;Query", number)];
    assert_eq!(
        counts,
        expected
            .map(|(stack, count)| (stack.to_owned(), count))
            .into()
    );
    let queries = sum("QueryStop") - sum("QueryStart");
    let own = sum("RequestStop") - sum("RequestStart") - queries;
    for (stack, expected) in [("Request", own), ("Request;Query", queries)] {
        // Each time is rounded to 100 ns.
        assert!(
            time[stack].abs_diff(expected) <= 400 * number,
            "{time:?} {expected}"
        );
    }
}

#[needs(node)]
#[test]
fn pprof_files_have_the_stacks_of_the_truth() {
    compare_pprof(&Recorded::new());
    of_all_kinds().for_each(|recorded| compare_pprof(&recorded));
}

/// The program pprof names a profile after its first mapping.
#[needs(node)]
#[test]
fn first_pprof_mapping_is_the_program_with_the_most_samples() {
    let recorded = Recorded::new();
    let mut counts = BTreeMap::<&str, u64>::new();
    for sample in &recorded.samples {
        *counts.entry(&sample.process).or_default() += 1;
    }
    let (process, _) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap();
    assert!(process.starts_with("Orders.exe "), "{process}");
    let read = read_pprof(&recorded.export(&["pprof"]));
    // A program of .NET Core is a library, which its executable starts.
    assert_eq!(read["mappings"][0], r"C:\App\Orders.dll");
}

/// A pprof file, as a reader of others sees it.
fn read_pprof(file: &Path) -> Value {
    let script = root().join("tests/foreign/pprof.cjs");
    let output = Command::new("node")
        .arg(script)
        .arg(node_packages())
        .arg(file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Without an interval each sample would stand for no time.
#[needs(node)]
#[test]
fn pprof_files_without_an_interval_count_samples() {
    let mut recorded = Recorded::new();
    let file = std::fs::read(&recorded.traces[0]).unwrap();
    let mut trace = Trace::open(file.as_slice(), &Options::salvage()).unwrap();
    let plan = RelogPlan::copying(&mut trace).unwrap();
    let mut relog = Relogger::start(plan, Vec::new(), None).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let states_interval = |hook| (hook::SET_INTERVAL..=hook::COLLECTION_END).contains(&hook);
    while let Some(record) = records.next_record().unwrap() {
        if !record.hook().is_some_and(states_interval) {
            relog.copy(&record).unwrap();
        }
    }
    let copy = recorded.folder.path().join("copy.etl");
    let bytes = relog.finish(&[]).unwrap().output;
    std::fs::write(&copy, bytes).unwrap();
    recorded.traces = vec![copy];
    let read = read_pprof(&recorded.export(&["pprof"]));
    assert_eq!(read["types"], serde_json::json!(["samples/count"]));
    let stacks = read["stacks"].as_object().unwrap();
    let total: u64 = stacks
        .values()
        .map(|values| values[0].as_u64().unwrap())
        .sum();
    assert_eq!(total, recorded.samples.len() as u64);
    assert!(
        stacks
            .values()
            .all(|values| values.as_array().unwrap().len() == 1)
    );
}

fn compare_pprof(recorded: &Recorded) {
    let read = read_pprof(&recorded.export(&["pprof"]));
    assert_eq!(
        read["types"],
        serde_json::json!(["samples/count", "cpu/nanoseconds"])
    );
    assert_eq!(
        (&read["period"], &read["problems"]),
        (&1_000_000.into(), &serde_json::json!([]))
    );
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for sample in &recorded.samples {
        // Each address is a frame.
        let labels: Vec<&str> = sample.labels.iter().rev().map(String::as_str).collect();
        *expected
            .entry(format!("{};{}", sample.process, labels.join(";")))
            .or_default() += 1;
    }
    let stacks = read["stacks"].as_object().unwrap();
    assert_eq!(stacks.len(), expected.len());
    for (stack, count) in expected {
        assert_eq!(
            stacks[&stack],
            serde_json::json!([count, count * 1_000_000]),
            "{stack}"
        );
    }
}

#[test]
fn flame_graph_page_has_the_stacks_of_the_truth() {
    let recorded = Recorded::new();
    let page = recorded.export(&["flamegraph", "--weight", "samples"]);
    let page = std::fs::read_to_string(page).unwrap();
    let (_, data) = page.split_once("type=\"application/json\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["head"]["total"], recorded.samples.len());
    // From the tree in order with depths to the samples that end in each stack.
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let mut stack: Vec<(String, u64)> = Vec::new();
    let mut found = Stacks::new();
    for node in data["nodes"].as_array().unwrap() {
        let (depth, index, weight) = (number(&node[0]), number(&node[1]), number(&node[2]) as u64);
        let label = if depth == 0 {
            &data["roots"][index]
        } else {
            &data["frames"][index][0]
        };
        stack.truncate(depth);
        let above = stack
            .last()
            .map_or(String::new(), |(path, _)| format!("{path};"));
        if let Some((path, _)) = stack.last() {
            *found.get_mut(path).unwrap() -= weight;
        }
        let path = format!("{above}{}", label.as_str().unwrap());
        found.insert(path.clone(), weight);
        stack.push((path, weight));
    }
    found.retain(|_, count| *count > 0);
    assert_same(&found, &recorded.expected(|sample| sample.process.clone()));
}

/// The root is called `all`, which is no name of the recording.
#[needs(node)]
#[test]
fn search_in_a_flame_graph_finds_frames_only() {
    let recorded = Recorded::new();
    let page = recorded.export(&["flamegraph", "--weight", "samples"]);
    let search = |text: &str| -> Value {
        let script = root().join("tests/foreign/flamegraph.cjs");
        let output = Command::new("node")
            .arg(script)
            .arg(&page)
            .arg(text)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for text in ["all", "al", "orders"] {
        // What matches counts once, however often it is on a stack.
        let has = |label: &str| label.to_lowercase().contains(text);
        let is_found = |s: &&Sampled| has(&s.process) || s.labels.iter().any(|label| has(label));
        let count = recorded.samples.iter().filter(is_found).count();
        let found = search(text);
        let said = found["said"].as_str().unwrap();
        assert_eq!(
            said.split(' ').next(),
            Some(count.to_string().as_str()),
            "{text}: {said}"
        );
        let marked = found["marked"].as_array().unwrap();
        assert!(
            marked
                .iter()
                .all(|title| !title.as_str().unwrap().starts_with("all\n"))
        );
    }
}

#[test]
fn exports_without_samples_say_what_would_record_them() {
    let simulated = simulated("recipe");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.etl");
    std::fs::write(&trace, simulated.traces.values().next().unwrap()).unwrap();
    let words = ["etlkit", "export", "folded", trace.to_str().unwrap(), "-o"];
    let output = folder.path().join("out");
    let words = words
        .into_iter()
        .map(Into::into)
        .chain([output.clone().into_os_string()]);
    let said = run_captured(words.collect::<Vec<_>>());
    let err = String::from_utf8(said.err).unwrap();
    assert_eq!(said.code, 2);
    assert!(
        err.contains("no CPU sample is selected") && err.contains("xperf -on"),
        "{err}"
    );
    assert!(!output.exists());
}
