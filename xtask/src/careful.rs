//! `cargo xtask careful`: the tests with a standard library that checks its preconditions.
//!
//! This finds undefined behaviour in unsafe code of dependencies. It finds less than
//! scripts/miri.sh, but runs nearly at full speed: the whole test suite, with real traces and the
//! tools that tests start. It needs no nightly toolchain.

use crate::process::{Failure, Tool, cargo, output, path_with, program, root, run};

const CAREFUL: Tool = Tool {
    package: "cargo-careful",
    program: "cargo-careful",
    version: "0.4.10",
};

/// Exit code if something is missing that cannot be installed.
const NOT_AVAILABLE: u8 = 3;

#[derive(clap::Args)]
pub struct Options {
    /// Packages. Default: the whole workspace.
    packages: Vec<String>,
}

/// Needs the source of the standard library: rustup's rust-src, or the folder `library` of this
/// toolchain's source in `RUST_LIB_SRC`.
pub fn careful(options: &Options) -> Result<(), Failure> {
    let sysroot = output(program("rustc").args(["--print", "sysroot"]))?;
    let source = format!("{}/lib/rustlib/src/rust/library", sysroot.trim_end());
    if std::env::var_os("RUST_LIB_SRC").is_none() && !std::path::Path::new(&source).is_dir() {
        eprintln!("careful: NOT RUN: no source of the standard library: install it with");
        eprintln!("`rustup component add rust-src`, or name its folder in RUST_LIB_SRC");
        return Err(Failure::Code(NOT_AVAILABLE));
    }
    let careful = CAREFUL.install()?;
    let mut command = cargo("careful");
    command
        .env("PATH", path_with(&careful)?)
        .env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_TARGET_DIR", root().join(".cache/careful"));
    // Long runs are worth some optimisation.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    // It uses options that only nightly toolchains allow.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.args(["test", "--locked", "--no-fail-fast", "--all-features"]);
    if options.packages.is_empty() {
        command.arg("--workspace");
    }
    for package in &options.packages {
        command.args(["--package", package]);
    }
    run(&mut command)
}
