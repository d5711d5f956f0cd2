//! `cargo xtask properties`: runs the property tests again and again, each time with a new seed.
//!
//! `cargo test` draws the same cases in each run, so that it does not fail by chance. This finds
//! errors that those cases miss.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::metadata::Metadata;
use crate::process::{Failure, cargo, output, program, root, run};

#[derive(clap::Args)]
pub struct Options {
    /// No round starts after this time.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    seconds: u64,
    /// The seed of the first round. Each round adds one. Default: from the time.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Print the tests only.
    #[arg(long)]
    list: bool,
    /// Tests whose names contain one of these texts. Default: all property tests.
    names: Vec<String>,
}

/// A test program: its package, and how cargo selects it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    package: String,
    arguments: Vec<String>,
}

pub fn properties(options: &Options) -> Result<(), Failure> {
    let programs = programs(&options.names)?;
    if programs.is_empty() {
        return Err(Failure::Message(
            "no property test has such a name".to_owned(),
        ));
    }
    if options.list {
        for (program, names) in &programs {
            for name in names {
                println!("{} {} {name}", program.package, program.arguments.join(" "));
            }
        }
        return Ok(());
    }
    let mut seed = options.seed.unwrap_or_else(seed_from_time);
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < Duration::from_secs(options.seconds) {
        for (program, names) in &programs {
            if run_program(program, names, seed).is_err() {
                let message =
                    format!("PROPTEST_RNG_SEED={seed} cargo test NAME repeats the failure");
                return Err(Failure::Message(message));
            }
        }
        rounds += 1;
        seed += 1;
    }
    let seconds = start.elapsed().as_secs();
    println!(
        "properties: {rounds} rounds in {seconds} s, the last with seed {}",
        seed - 1
    );
    Ok(())
}

fn seed_from_time() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.map_or(0, |duration| duration.as_secs())
}

fn run_program(program: &Program, names: &[String], seed: u64) -> Result<(), Failure> {
    let mut test = cargo("test");
    test.env("PROPTEST_RNG_SEED", seed.to_string());
    test.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    // Long runs are worth some optimisation.
    test.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    test.args([
        "--quiet",
        "--locked",
        "--all-features",
        "--package",
        &program.package,
    ]);
    run(test
        .args(&program.arguments)
        .args(["--", "--quiet"])
        .args(names))
}

/// The test programs with property tests, each with the names of these tests.
fn programs(texts: &[String]) -> Result<BTreeMap<Program, Vec<String>>, Failure> {
    let metadata = Metadata::read()?;
    let files = output(program("git").args(["grep", "-l", "proptest!", "--", "*.rs"]))?;
    let mut programs: BTreeMap<Program, Vec<String>> = BTreeMap::new();
    for file in files.lines() {
        let file = Path::new(file);
        let Some(package) = metadata.package_of(file) else {
            continue;
        };
        let Ok(path) = file.strip_prefix(&package.folder) else {
            continue;
        };
        let text = fs::read_to_string(root().join(file)).map_err(|error| error.to_string())?;
        let mut names =
            test_names(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        names.retain(|name| texts.is_empty() || texts.iter().any(|text| name.contains(text)));
        if !names.is_empty() {
            let program = Program {
                package: package.name.clone(),
                arguments: arguments(path),
            };
            programs.entry(program).or_default().append(&mut names);
        }
    }
    Ok(programs)
}

/// How cargo selects the test program of a file, by the file's path in its package.
fn arguments(path: &Path) -> Vec<String> {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    if parts.next().as_deref() != Some("tests") {
        return vec!["--lib".to_owned()];
    }
    let program = parts.next().unwrap_or_default();
    vec![
        "--test".to_owned(),
        program.trim_end_matches(".rs").to_owned(),
    ]
}

/// The names of the tests in the `proptest!` macros of a file.
fn test_names(text: &str) -> syn::Result<Vec<String>> {
    let mut macros = Macros { names: Vec::new() };
    macros.visit_file(&syn::parse_file(text)?);
    Ok(macros.names)
}

struct Macros {
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for Macros {
    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        if node
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == "proptest")
        {
            self.add_functions(node.tokens.clone());
        }
        visit::visit_macro(self, node);
    }
}

impl Macros {
    /// Adds the name of each function that has parameters.
    fn add_functions(&mut self, tokens: TokenStream) {
        let mut is_after_fn = false;
        let mut name = None;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if ident == "fn" => is_after_fn = true,
                TokenTree::Ident(ident) if is_after_fn => {
                    name = Some(ident.to_string());
                    is_after_fn = false;
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                    if !group.stream().is_empty() {
                        self.names.extend(name.take());
                    }
                    name = None;
                }
                _ => is_after_fn = false,
            }
        }
    }
}

#[test]
fn property_tests_are_found_in_macros() {
    let text = "proptest! { #![config(8)] #[test] fn first(x in 0..3) { f(x) } fn none() {} }
        mod inner { proptest::proptest! { #[test] fn second(a: u8, b: u8) {} } }
        fn third(x: u8) {}";
    assert_eq!(test_names(text).unwrap(), ["first", "second"]);
}

#[test]
fn test_programs_are_selected_by_path() {
    assert_eq!(arguments(Path::new("src/lib.rs")), ["--lib"]);
    assert_eq!(arguments(Path::new("tests/it/merge.rs")), ["--test", "it"]);
    assert_eq!(arguments(Path::new("tests/one.rs")), ["--test", "one"]);
}
