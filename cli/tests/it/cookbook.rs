//! Runs the shell and Python recipes of docs/cookbook.md and the script of its workflow, and
//! resolves its `Cargo.toml`. `tests/tests/it/cookbook` runs the Rust recipes,
//! `scripts/own_filter.sh` the project of a filter, and `python/tests/test_pages.py` the project
//! with pytest.
//!
//! A block after a line with a file name is written to that file. Shell blocks are run by bash in
//! one directory, in the order of the page, with the tools of this build in the search path.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::directory;

/// A block of the page.
#[derive(Debug)]
struct Block {
    language: String,
    file: Option<String>,
    text: String,
    line: usize,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The recipes of the page, without its projects that start from an empty directory.
fn recipes() -> String {
    let page = std::fs::read_to_string(root().join("docs/cookbook.md")).unwrap();
    let (recipes, _) = page.split_once("\n## From an empty directory").unwrap();
    recipes.to_owned()
}

fn blocks(page: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut file = None;
    let mut lines = page.lines().enumerate();
    while let Some((line, text)) = lines.next() {
        if let Some(language) = text.strip_prefix("```") {
            let body = lines
                .by_ref()
                .map(|(_, text)| text)
                .take_while(|text| *text != "```");
            let text = body.map(|text| format!("{text}\n")).collect();
            out.push(Block {
                language: language.to_owned(),
                file: file.take(),
                text,
                line: line + 1,
            });
        } else {
            let name = text
                .strip_prefix('`')
                .and_then(|rest| rest.strip_suffix("`:"));
            file = name.map(str::to_owned);
        }
    }
    out
}

/// Runs a script as a reader of the page would.
fn bash(here: &Path, script: &str) -> Output {
    let tools = Path::new(env!("CARGO_BIN_EXE_etlkit"))
        .parent()
        .unwrap()
        .to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-e", "-o", "pipefail", "-c", script])
        .current_dir(here)
        .env("PATH", path);
    command
        .env_remove("UPDATE")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// A directory with the files of a checkout that the page uses.
fn checkout() -> tempfile::TempDir {
    let here = directory(&[]);
    std::fs::create_dir(here.path().join("corpus")).unwrap();
    let recipe = root().join("corpus/recipe.kdl");
    std::fs::copy(recipe, here.path().join("corpus/recipe.kdl")).unwrap();
    here
}

/// The script in the workflow.
fn workflow_script(yaml: &str) -> String {
    let (_, script) = yaml.split_once("run: |\n").unwrap();
    let indented = |line: &&str| line.starts_with("          ");
    script
        .lines()
        .take_while(indented)
        .map(|line| format!("{}\n", line.trim_start()))
        .collect()
}

/// The dependency tree of the page's `Cargo.toml`, with the path of this checkout: cargo fails if a
/// crate, a feature or a version does not exist.
fn resolved(dependencies: &str) -> String {
    let here = directory(&[("lib.rs", b"")]);
    std::fs::copy(root().join("Cargo.lock"), here.path().join("Cargo.lock")).unwrap();
    let package = "[package]\nname = \"recipes\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n";
    let root = root()
        .canonicalize()
        .unwrap()
        .to_str()
        .unwrap()
        .replace('\\', "/");
    let manifest = format!("{package}{}", dependencies.replace("../etlkit", &root));
    std::fs::write(here.path().join("Cargo.toml"), manifest).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["tree", "--offline", "--edges", "all", "--depth", "1"];
    let output = Command::new(cargo)
        .args(args)
        .current_dir(here.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{dependencies}\n{}", said(&output));
    said(&output)
}

#[test]
fn cookbook_dependencies_resolve() {
    let page = recipes();
    let blocks = blocks(&page);
    let manifest = blocks
        .iter()
        .find(|b| b.file.as_deref() == Some("Cargo.toml"))
        .unwrap();
    let tree = resolved(&manifest.text);
    for needed in [
        "etl-control",
        "etl-format",
        "etl-schema",
        "etl-synth",
        "insta",
        "proptest",
    ] {
        assert!(
            tree.contains(&format!("── {needed} feature")),
            "{needed}: {tree}"
        );
    }
    assert!(tree.contains("etl-control feature \"proptest\""), "{tree}");
    // A missing feature is an error.
    let wrong = manifest.text.replace("\"proptest\"]", "\"strategies\"]");
    assert!(wrong != manifest.text && std::panic::catch_unwind(|| resolved(&wrong)).is_err());
}

#[test]
fn cookbook_recipes_run() {
    let page = recipes();
    let here = checkout();
    if !bash(here.path(), "python3 --version").status.success() {
        let demanded = std::env::var_os("ETLKIT_REQUIRE_FOREIGN").is_some_and(|v| v == "1");
        assert!(
            !demanded,
            "there is no python3, and ETLKIT_REQUIRE_FOREIGN=1 demands it"
        );
        eprintln!("\n*** SKIPPED: there is no python3; this test has shown nothing ***\n");
        return;
    }
    let mut gates = 0;
    let mut ran = std::collections::BTreeMap::<String, u32>::new();
    for block in blocks(&page) {
        *ran.entry(block.language.clone()).or_default() += 1;
        let at = format!("docs/cookbook.md:{}", block.line);
        if let Some(file) = &block.file {
            let path = here.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &block.text).unwrap();
        }
        match block.language.as_str() {
            "sh" => {
                let output = bash(here.path(), &block.text);
                assert!(
                    output.status.success(),
                    "{at} fails:\n{}\n{}",
                    block.text,
                    said(&output)
                );
                if block.text.contains("--report junit=") {
                    // One complete trace does not hide another one without rundown.
                    for bad in ["broken/", "traces/ broken/", "broken/ traces/"] {
                        let output = bash(here.path(), &block.text.replace("traces/", bad));
                        assert_eq!(output.status.code(), Some(1), "{at}: {bad}");
                    }
                    gates += 1;
                }
            }
            "yaml" => {
                let script = workflow_script(&block.text);
                let output = bash(here.path(), &script);
                assert!(
                    output.status.success(),
                    "{at} fails:\n{script}\n{}",
                    said(&output)
                );
                // The same workflow rejects a trace without rundown.
                let output = bash(here.path(), &script.replace("traces/", "broken/"));
                assert_eq!(output.status.code(), Some(1), "{at}: {}", said(&output));
                assert!(said(&output).contains("::error"), "{at}: {}", said(&output));
                for file in ["traces.sarif", "summary.md"] {
                    let report = std::fs::read_to_string(here.path().join(file)).unwrap();
                    assert!(report.contains("rundown.none"), "{at}: {file}: {report}");
                }
            }
            // Files.
            "python" | "kdl" | "toml" => {}
            "rust" => assert!(block.file.is_some(), "{at}"),
            other => panic!("{at}: nothing runs {other:?}"),
        }
    }
    assert!(
        ran["sh"] >= 6 && ran["rust"] >= 1 && ran["python"] == 2 && ran["yaml"] == 1,
        "{ran:?}"
    );
    assert_eq!(gates, 1, "the gate with a report for build servers");

    // The tests of the recipes fail for a changed decoder and a changed scenario.
    let decoder = here.path().join("decoder.py");
    let changed = std::fs::read_to_string(&decoder)
        .unwrap()
        .replace("MethodSize", "MethodToken");
    std::fs::write(&decoder, changed).unwrap();
    let output = bash(here.path(), "python3 test_decoder.py");
    assert!(
        !output.status.success() && said(&output).contains("UPDATE=1"),
        "{}",
        said(&output)
    );
    let script = here.path().join("cases/attach.kdl");
    let changed = std::fs::read_to_string(&script)
        .unwrap()
        .replace("ready=10", "ready=11");
    std::fs::write(&script, changed).unwrap();
    let output = bash(here.path(), "etlkit corpus check --corpus cases");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}
