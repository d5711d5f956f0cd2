//! `cargo xtask api`: the public items of the libraries.
//!
//! rustdoc writes the items as JSON, an unstable format that `RUSTC_BOOTSTRAP` lets a stable
//! toolchain write. `scripts/api.py` lists and compares them. cargo-public-api and
//! cargo-semver-checks need a nightly toolchain or a build of some 400 crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metadata::Metadata;
use crate::process::{Failure, cargo, output, program, root, run, script};

#[derive(clap::Args)]
pub struct Options {
    /// Write the lists again.
    #[arg(long, conflicts_with = "since")]
    write: bool,
    /// Compare with this commit or tag: print items that are gone, changed or new. Exit code 1 if
    /// an item is gone or changed.
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Packages. Default: all libraries.
    packages: Vec<String>,
}

pub fn api(options: Options) -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    let mut packages = options.packages;
    if packages.is_empty() {
        packages = libraries(&metadata);
    }
    if let Some(revision) = &options.since {
        return compare_revision(revision, &packages, &metadata.target);
    }
    let mut has_changes = false;
    for package in &packages {
        let items = items(&root(), package, &metadata.target)?;
        let list = output(python_script().arg("list").arg(items))?;
        let path = root().join(format!("tests/api/{package}.txt"));
        if options.write {
            write(&path, &list)?;
        } else if fs::read_to_string(&path)
            .unwrap_or_default()
            .replace("\r\n", "\n")
            != list
        {
            has_changes = true;
            print_changes(&path, &list, &metadata.target)?;
        }
    }
    if has_changes {
        let message = "the public items changed; `cargo xtask api --write` updates the lists";
        return Err(Failure::Message(message.to_owned()));
    }
    Ok(())
}

/// The published crates without the command line, whose interface is its options and output.
fn libraries(metadata: &Metadata) -> Vec<String> {
    let published = metadata.published().map(|package| package.name.clone());
    published.filter(|name| name != "etlkit").collect()
}

/// Builds the items of a package as JSON, and returns the path of the file.
fn items(checkout: &Path, package: &str, target: &Path) -> Result<PathBuf, Failure> {
    let mut rustdoc = cargo("rustdoc");
    rustdoc
        .current_dir(checkout)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", target);
    rustdoc.args([
        "--quiet",
        "--locked",
        "--lib",
        "--all-features",
        "--package",
        package,
    ]);
    run(rustdoc.args(["--", "-Z", "unstable-options", "--output-format", "json"]))?;
    Ok(target.join(format!("doc/{}.json", package.replace('-', "_"))))
}

fn python_script() -> Command {
    let mut python = program("python3");
    python.arg(script("scripts/api.py").get_program());
    python
}

/// Prints how the new list differs from the committed one.
fn print_changes(committed: &Path, list: &str, target: &Path) -> Result<(), Failure> {
    let new = target.join("doc/api.txt");
    write(&new, list)?;
    let mut diff = program("diff");
    match run(diff.arg("-u").arg(committed).arg(new)) {
        // Exit code 1: the files differ.
        Ok(()) | Err(Failure::Code(1)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::Message(format!("{}: {error}", path.display())))
}

/// Compares all libraries with a revision.
pub fn compare_with(revision: &str) -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    compare_revision(revision, &libraries(&metadata), &metadata.target)
}

fn compare_revision(revision: &str, packages: &[String], target: &Path) -> Result<(), Failure> {
    let checkout = target.join("api-old");
    // An interrupted run leaves it.
    if checkout.exists() {
        run(&mut remove_worktree(&checkout))?;
    }
    let mut add = program("git");
    add.args(["worktree", "add", "--quiet", "--detach"])
        .arg(&checkout);
    run(add.arg(revision))?;
    let result = compare(&checkout, packages, target);
    run(&mut remove_worktree(&checkout))?;
    if result? {
        return Err(Failure::Message(format!(
            "users of {revision} have to change their code"
        )));
    }
    Ok(())
}

fn remove_worktree(checkout: &Path) -> Command {
    let mut remove = program("git");
    remove.args(["worktree", "remove", "--force"]).arg(checkout);
    remove
}

/// Prints the changes of each package, and returns whether items are gone or changed.
fn compare(checkout: &Path, packages: &[String], target: &Path) -> Result<bool, Failure> {
    let mut has_breaks = false;
    let old = target.join("doc/api-old.json");
    for package in packages {
        println!("{package}");
        let built = items(checkout, package, target)?;
        fs::rename(&built, &old).map_err(|error| Failure::Message(error.to_string()))?;
        let new = items(&root(), package, target)?;
        match run(python_script().arg(&old).arg(new)) {
            Ok(()) => {}
            Err(Failure::Code(1)) => has_breaks = true,
            Err(failure) => return Err(failure),
        }
    }
    Ok(has_breaks)
}
