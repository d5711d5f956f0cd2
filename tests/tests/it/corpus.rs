//! Builds the corpus and compares its files with `corpus.lock`, and the verdicts on them with a
//! list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use etl_synth::model::Scenario;
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::root;
use etl_verify::{Report, Verdict};

fn scripts() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("corpus")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "kdl") {
            found.push((path.file_stem().unwrap().to_string_lossy().into_owned(), path));
        }
    }
    found.sort();
    assert!(found.len() >= 30, "{found:?}");
    found
}

fn scenario(path: &PathBuf) -> Scenario {
    let text = std::fs::read_to_string(path).unwrap();
    let directory = path.parent().unwrap().to_owned();
    let include = |file: &str| std::fs::read_to_string(directory.join(file));
    let name = path.display().to_string();
    Script::new(&name, &text)
        .include(&include)
        .parse()
        .unwrap_or_else(|e| panic!("{name}: {:#?}", e))
}

/// Every output of a scenario: traces, and the truth.
fn outputs(path: &PathBuf) -> Vec<(String, Vec<u8>)> {
    let (mut files, mut truth) = (MemoryFileSystem::default(), JsonlWriter::new(Vec::new()));
    Simulation::new(&scenario(path))
        .observer(&mut truth)
        .run(&mut files)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut files = files.into_files();
    files.push(("truth.jsonl".to_owned(), truth.into_inner()));
    files
}

type Built = BTreeMap<String, Vec<u8>>;

/// Builds the corpus on so many threads; each takes the next scenario.
fn build(threads: usize) -> Built {
    let (scripts, next) = (scripts(), AtomicUsize::new(0));
    let built = Mutex::new(Built::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((name, path)) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let files = outputs(path);
                    let named = files.into_iter().map(|(f, bytes)| (format!("{name}/{f}"), bytes));
                    built.lock().unwrap().extend(named);
                }
            });
        }
    });
    built.into_inner().unwrap()
}

fn built() -> &'static Built {
    static BUILT: LazyLock<Built> = LazyLock::new(|| build(1));
    &BUILT
}

fn lines(built: &Built) -> Vec<String> {
    let line = |(file, bytes): (&String, &Vec<u8>)| {
        format!("{file} {:08x} {}", crc32fast::hash(bytes), bytes.len())
    };
    built.iter().map(line).collect()
}

#[test]
fn what_comes_out_is_what_the_lock_says_at_any_number_of_threads() {
    let lock = std::fs::read_to_string(root().join("corpus/corpus.lock")).unwrap();
    // The scenarios in rules/ are held by the test of the rules.
    let locked: Vec<&str> = lock.lines().filter(|l| !l.starts_with("rules/")).collect();
    assert!(locked.is_sorted());
    let hint = "if the change is intended: `etlkit corpus check --update`";
    let one = lines(built());
    for (found, locked) in one.iter().zip(&locked) {
        assert_eq!(found, locked, "{hint}");
    }
    assert_eq!(one.len(), locked.len(), "{hint}");
    assert_eq!(lines(&build(5)), one, "five threads");
}

fn judge(name: &str, bytes: &[u8]) -> Report {
    etl_verify::Verifier::new().verify(bytes, name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The verdict on a file, and the rules of the findings.
fn verdict(name: &str, bytes: &[u8]) -> String {
    match etl_verify::Verifier::new().verify(bytes, name) {
        Err(e) => format!("unreadable: {e}"),
        Ok(report) => {
            let rules: BTreeSet<&str> = report.findings.iter().map(|f| f.rule).collect();
            let rules: Vec<&str> = rules.into_iter().collect();
            let list =
                if rules.is_empty() { String::new() } else { format!(" ({})", rules.join(", ")) };
            format!("{}{list}", report.verdict.name())
        }
    }
}

/// The verdicts on the files of a scenario. Files with the same verdict stand together.
fn verdicts(scenario: &str) -> String {
    let own = format!("{scenario}/");
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let files = built().iter().filter_map(|(path, bytes)| {
        Some((path.strip_prefix(&own)?.strip_suffix(".etl")?, verdict(path, bytes)))
    });
    for (file, verdict) in files {
        match groups.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, files)) => files.push(file),
            None => groups.push((verdict, vec![file])),
        }
    }
    match &groups[..] {
        [(verdict, _)] => verdict.clone(),
        groups => {
            let text =
                |(verdict, files): &(String, Vec<&str>)| format!("{}: {verdict}", files.join(", "));
            groups.iter().map(text).collect::<Vec<_>>().join("; ")
        }
    }
}

#[test]
fn the_documents_recipe_is_sound_when_it_is_merged() {
    let report = judge("merged", &built()["xperf-recipe/merged.etl"]);
    assert_eq!(report.verdict, Verdict::Sound, "{}", report.text());
    assert!(report.findings.is_empty(), "{}", report.text());
    assert!(report.text().contains("rundown    end of CLR"), "{}", report.text());
}

/// The text of the report on the recipe with the mask that the documents print.
#[test]
fn with_0xb8_the_rundown_is_missing_and_etlverify_says_why() {
    let report = judge("merged.etl", &built()["xperf-recipe-0xB8/merged.etl"]);
    assert_eq!(report.verdict, Verdict::Broken, "{}", report.text());
    insta::assert_snapshot!("recipe_0xB8", report.text());
    let text = report.text();
    for said in ["rundown.none", "request an end rundown", "0x138"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// The command lines of both recipes, as the documents write them.
#[test]
fn the_recipe_is_run_as_the_documents_write_it() {
    let runtime =
        "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl";
    for (name, mask) in [("xperf-recipe", "{rundown}"), ("xperf-recipe-0xB8", "0xB8")] {
        let text = std::fs::read_to_string(root().join(format!("corpus/{name}.kdl"))).unwrap();
        let rundown = format!(
            "xperf -start clrRundown -on A669021C-C450-4609-A035-5AF59AF4DF18:{mask}:0x5 -f clr2.etl"
        );
        let lines = [
            runtime,
            &rundown,
            "xperf -stop clrRundown",
            "xperf -stop clr",
            "xperf -merge clr1.etl clr2.etl merged.etl",
        ];
        let mut rest = text.as_str();
        for line in lines {
            let quoted = format!("run \"{line}\"");
            let at =
                rest.find(&quoted).unwrap_or_else(|| panic!("{name} lacks, or too early: {line}"));
            rest = &rest[at + quoted.len()..];
        }
    }
    let text = std::fs::read_to_string(root().join("corpus/xperf-recipe.kdl")).unwrap();
    assert!(text.contains("param \"rundown\" \"0x138\""));
}

/// corpus/README.md: every scenario with its description, its content, and the verdicts on it.
fn readme() -> String {
    let mut out = String::from(
        "# The corpus\n\n\
        Scenarios for `etlkit synth`: the documented recipe (`recipe`, and `xperf-recipe` with its command\n\
        lines), and one for each kind of session, mode, provider, rule and fault.\n\n\
        | path | content |\n|---|---|\n\
        | `*.kdl` | the scenarios in the table below |\n\
        | `rules/` | for each rule of `etlverify`, a scenario that breaks only this rule, and some that break none |\n\
        | `parts/` | parts that several scripts include |\n\
        | `corpus.lock` | CRC-32 and size of every output |\n\n\
        `etlkit corpus build -o out` generates the traces; no trace is committed. `etlkit corpus check`\n\
        compares the traces with `corpus.lock`. [docs/scenario.md](../docs/scenario.md) describes the\n\
        language of the scripts.\n\n\
        A test writes this page from the scenarios and from the reports of `etlverify` on their traces\n\
        (`ETLKIT_WRITE_DOCS=1 cargo test -p etl-tests --test it corpus`). The last column contains the\n\
        verdict and, in parentheses, the rules with findings, notes included; if the traces of a scenario\n\
        have different verdicts, it names the files.\n\n\
        | scenario | description | content | verdict of etlverify |\n|---|---|---|---|\n",
    );
    for (name, path) in scripts() {
        let scenario = scenario(&path);
        assert_eq!(scenario.name, name, "a scenario has the name of its file");
        assert!(!scenario.about.is_empty(), "{name} has no description");
        let (about, covers) = (&scenario.about, scenario.covers().join(", "));
        out.push_str(&format!(
            "| [{name}]({name}.kdl) | {about} | {covers} | {} |\n",
            verdicts(&name)
        ));
    }
    out
}

#[test]
fn the_list_of_the_corpus_is_what_the_scripts_are() {
    let path = root().join("corpus/README.md");
    let found = readme();
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(text == found, "corpus/README.md is not up to date: run with ETLKIT_WRITE_DOCS=1");
    // Each of these has a scenario.
    for covered in [
        "sequential file",
        "circular file",
        "preallocated file",
        "no per-processor buffers",
        "independent session",
        "unclosed session",
        "manifest provider",
        "TraceLogging provider",
        "EventSource",
        "classic provider",
        "kernel events",
        "fault: truncated",
        "fault: torn",
        "fault: flipped",
        "fault: lost-buffers",
        "fault: skew",
        "start rundown",
        "end rundown",
        "rundown provider without a rundown",
        "capture state",
        "merge",
        "CLR stacks",
        "kernel stacks",
        "stacks as extended data",
        "32-bit process",
        "desktop CLR",
        "two CLRs side by side",
        "filter by id",
        "filter by process",
        "clock: system time",
        "clock: cycles",
        "rundown.none",
    ] {
        assert!(text.contains(covered), "nothing covers {covered}");
    }
}
