//! `cargo xtask api`: the public items of the libraries.
//!
//! rustdoc writes the items as JSON, an unstable format that `RUSTC_BOOTSTRAP` lets a stable
//! toolchain write. `scripts/api.py` lists and compares them. cargo-public-api and
//! cargo-semver-checks need a nightly toolchain or a build of some 400 crates.
//!
//! Only rustdoc has that variable: cargo would build all dependencies again for it. So cargo starts
//! this program in place of rustdoc, and this program starts rustdoc.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metadata::Metadata;
use crate::process::{Failure, cargo, output, program, root, run, script};

/// The variable that makes this program start rustdoc, whose path is its value.
pub const RUSTDOC: &str = "ETLKIT_XTASK_RUSTDOC";

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
    build_items(&root(), &packages, &metadata.target)?;
    let mut has_changes = false;
    for package in &packages {
        let items = items_file(package, &metadata.target);
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

/// Starts rustdoc with the arguments that cargo gives to this program.
pub fn start_rustdoc(rustdoc: &OsStr) -> Result<(), Failure> {
    let mut command = program(rustdoc);
    let folder = std::env::current_dir().map_err(|error| error.to_string())?;
    command
        .current_dir(folder)
        .args(std::env::args_os().skip(1));
    run(command.env("RUSTC_BOOTSTRAP", "1"))
}

/// Builds the items of packages as JSON files.
fn build_items(checkout: &Path, packages: &[String], target: &Path) -> Result<(), Failure> {
    let this_program = std::env::current_exe().map_err(|error| error.to_string())?;
    let rustdoc = std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let mut doc = cargo("doc");
    doc.current_dir(checkout)
        .env("RUSTDOC", this_program)
        .env(RUSTDOC, rustdoc)
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json --cap-lints allow",
        )
        .env("CARGO_TARGET_DIR", target);
    doc.args([
        "--quiet",
        "--locked",
        "--lib",
        "--no-deps",
        "--all-features",
    ]);
    for package in packages {
        doc.args(["--package", package]);
    }
    run(&mut doc)
}

/// The file of the items of a package.
fn items_file(package: &str, target: &Path) -> PathBuf {
    target.join(format!("doc/{}.json", package.replace('-', "_")))
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
    let old = target.join("doc/api-old");
    fs::create_dir_all(&old).map_err(|error| error.to_string())?;
    build_items(checkout, packages, target)?;
    for package in packages {
        let items = items_file(package, target);
        let kept = old.join(format!("{package}.json"));
        fs::rename(items, kept).map_err(|error| error.to_string())?;
    }
    build_items(&root(), packages, target)?;
    let mut has_breaks = false;
    for package in packages {
        println!("{package}");
        let mut command = python_script();
        command.arg(old.join(format!("{package}.json")));
        match run(command.arg(items_file(package, target))) {
            Ok(()) => {}
            Err(Failure::Code(1)) => has_breaks = true,
            Err(failure) => return Err(failure),
        }
    }
    Ok(has_breaks)
}
