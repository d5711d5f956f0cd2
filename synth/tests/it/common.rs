//! Simulates scripts in memory.

use std::collections::BTreeMap;

use etl_synth::truth::InMemoryTruth;
use etl_synth::{MemoryFileSystem, Script, Simulation};

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The truth of a script, and the files that it writes.
pub fn run(script: &str) -> (InMemoryTruth, Files) {
    let scenario = Script::new("script", script)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap();
    (
        truth,
        files
            .into_files()
            .into_iter()
            .map(|file| (file.name, file.bytes))
            .collect(),
    )
}
