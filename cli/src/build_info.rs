//! What this build of the tools is, for `--version --verbose` and `etlkit doctor`.

use std::env::consts::{ARCH, OS};
use std::fmt::Write;

use crate::output::text;

/// The version of the tools.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A feature that a build may lack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feature {
    /// Its name, as `cargo install --features` takes it.
    pub name: &'static str,
    /// What it adds.
    pub adds: &'static str,
    /// Whether this build has it.
    pub is_enabled: bool,
}

/// All features.
pub(crate) const FEATURES: [Feature; 3] = [
    Feature {
        name: "symbols",
        adds: "names of native code and source lines from PDBs: --symbols, `etlkit symbols`",
        is_enabled: cfg!(feature = "symbols"),
    },
    Feature {
        name: "parquet",
        adds: "tables for data frames and SQL: `etlkit export parquet`, `etlkit export arrow`",
        is_enabled: cfg!(feature = "parquet"),
    },
    Feature {
        name: "zstd",
        adds: "the codec zstd of `etlkit export parquet`",
        is_enabled: cfg!(feature = "zstd"),
    },
];

/// The names of the features that this build has.
pub(crate) fn enabled_features() -> Vec<&'static str> {
    let mut names = Vec::new();
    for feature in FEATURES {
        if feature.is_enabled {
            names.push(feature.name);
        }
    }
    names
}

/// The processor architecture and the operating system for which the tools were built.
pub(crate) fn target() -> String {
    format!("{ARCH} {OS}, {} bits", usize::BITS)
}

/// How the tools were built: checks of arithmetic make a debug build slow.
pub(crate) fn profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

/// What `--version --verbose` prints.
pub(crate) fn details(tool: &str) -> String {
    text(|out| {
        writeln!(out, "{tool} {VERSION}")?;
        let features = enabled_features();
        let listed = if features.is_empty() {
            "none".to_owned()
        } else {
            features.join(", ")
        };
        writeln!(out, "features  {listed}")?;
        writeln!(out, "target    {}", target())?;
        writeln!(out, "build     {}", profile())
    })
}
