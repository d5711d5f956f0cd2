//! `cargo xtask msrv`: the promised Rust version (`rust-version` in Cargo.toml).
//!
//! All crates promise the same, no dependency in Cargo.lock needs a newer one, and the workspace
//! builds with it. If the installed toolchain has that version, every other build shows the last
//! point.

use serde_json::Value;

use crate::metadata::{list, parse, text};
use crate::process::{Failure, cargo, output, program, run};

/// Exit code if the promised version is not installed.
const NOT_AVAILABLE: u8 = 3;

pub fn check() -> Result<(), Failure> {
    let mut metadata = cargo("metadata");
    metadata.args(["--format-version", "1", "--locked", "--all-features"]);
    let metadata = parse(&output(&mut metadata)?)?;
    let packages = list(&metadata, "packages");
    let promised = promised(packages)?;
    let mut errors = Vec::new();
    for package in packages {
        errors.extend(error(package, promised));
    }
    if !errors.is_empty() {
        return Err(Failure::Message(errors.join("\n")));
    }

    let version = output(program("rustc").arg("--version"))?;
    let installed = version.split_whitespace().nth(1).unwrap_or_default();
    if major_and_minor(installed) == major_and_minor(promised) {
        println!("msrv: {promised}, the version of the installed toolchain");
        return Ok(());
    }
    let toolchain = format!("+{promised}");
    if output(program("cargo").args([&toolchain, "--version"])).is_err() {
        eprintln!("msrv: NOT RUN: the toolchain is {installed}, and {promised} is not installed");
        return Err(Failure::Code(NOT_AVAILABLE));
    }
    let mut build = program("cargo");
    run(build.args([
        &toolchain,
        "check",
        "--workspace",
        "--all-features",
        "--locked",
    ]))?;
    println!("msrv: builds with {promised}");
    Ok(())
}

/// The version that the first crate of the workspace promises.
fn promised(packages: &[Value]) -> Result<&str, Failure> {
    match packages.iter().find(|package| is_ours(package)) {
        Some(package) => Ok(text(package, "rust_version")),
        None => Err(Failure::Message("the workspace has no packages".to_owned())),
    }
}

fn is_ours(package: &Value) -> bool {
    package.get("source").is_some_and(Value::is_null)
}

/// What is wrong with the version that a package promises or needs.
fn error(package: &Value, promised: &str) -> Option<String> {
    let needed = text(package, "rust_version");
    let name = text(package, "name");
    if is_ours(package) && needed != promised {
        return Some(format!(
            "{name} promises Rust {needed:?} instead of {promised}"
        ));
    }
    if numbers(needed) > numbers(promised) {
        let version = text(package, "version");
        return Some(format!("{name} {version} needs Rust {needed}"));
    }
    None
}

/// The numbers of a version. A missing one is 0.
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(version.split('.')) {
        *number = part.parse().unwrap_or(0);
    }
    numbers
}

fn major_and_minor(version: &str) -> [u32; 2] {
    let [major, minor, _] = numbers(version);
    [major, minor]
}

#[test]
fn versions_are_compared_by_number() {
    assert!(numbers("1.100") > numbers("1.95.2"));
    assert_eq!(numbers("1.95"), numbers("1.95.0"));
    assert!(numbers("") < numbers("1.0"));
}
