//! `cargo xtask record`: records a program on real .NET runtimes, and compares the simulated
//! runtime and the rules with the new streams.
//!
//! The recorded streams of `../shared/traces` show one run each. This makes fresh ones: on another
//! machine, or of another version of a runtime.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Failure, cargo, output, program, root, run, script};

#[derive(clap::Args)]
pub struct Options {
    /// The folder of the streams and of their list, counts.json and masks.tsv.
    #[arg(long, value_name = "FOLDER", default_value = ".clr/streams")]
    output: PathBuf,
    /// Record this runtime only: 3.1, 8.0 or 10.0.
    #[arg(long, value_name = "VERSION")]
    runtime: Vec<String>,
    /// Record only; do not compare.
    #[arg(long)]
    no_tests: bool,
}

/// The folder of the runtimes.
const RUNTIMES: &str = ".clr";

/// The tests that compare recordings.
const TESTS: &str = "real_runtimes";

pub fn record(options: &Options) -> Result<(), Failure> {
    run(script("scripts/clr/setup.sh").arg(RUNTIMES))?;
    let folder = root().join(&options.output);
    let mut python = program("python3");
    python
        .args(["scripts/clr/record.py", RUNTIMES])
        .arg(&folder);
    for version in &options.runtime {
        python.args(["--runtime", version]);
    }
    run(&mut python)?;
    let list = folder.join("masks.tsv");
    fs::write(&list, masks(&folder)?).map_err(|error| failed(&list, &error))?;
    println!("the kinds of events are in {}", list.display());
    if options.no_tests {
        return Ok(());
    }
    let mut test = cargo("test");
    test.env("ETLKIT_RECORDINGS", &list);
    run(test.args(["--package", "etl-synth", "--test", "it", TESTS]))
}

/// The list of the events in each stream of a folder, with its title.
fn masks(folder: &Path) -> Result<String, Failure> {
    let mut text = "provider\truntime\tmask\tlevel\tid\tversion\tevents\n".to_owned();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let path = entry.map_err(|error| failed(folder, &error))?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "nettrace")
        {
            names.push(path);
        }
    }
    names.sort();
    for path in names {
        text.push_str(&rows(&path)?);
    }
    Ok(text)
}

/// The rows of a stream, whose name states how it was recorded.
fn rows(stream: &Path) -> Result<String, Failure> {
    let name = stream.file_stem().unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = name.split('_').collect();
    let [runtime, provider, mask, level] = parts[..] else {
        return Err(Failure::Message(format!(
            "{name} is not the name of a recording"
        )));
    };
    let wanted = match provider {
        "rundown" => "Microsoft-Windows-DotNETRuntimeRundown",
        _ => "Microsoft-Windows-DotNETRuntime",
    };
    let recording = format!("{provider}\t{runtime}\t{mask}\t{level}");
    let mut text = String::new();
    for (kind, count) in kinds(stream, wanted)? {
        text.push_str(&format!("{recording}\t{kind}\t{count}\n"));
    }
    if text.is_empty() {
        text = format!("{recording}\t-\t-\t0\n");
    }
    Ok(text)
}

/// The events of a provider in a stream: id and version, and how many there are.
fn kinds(stream: &Path, provider: &str) -> Result<BTreeMap<String, String>, Failure> {
    let mut count = cargo("run");
    count.args([
        "--quiet",
        "--package",
        "etl-nettrace",
        "--example",
        "count_events",
        "--",
    ]);
    let printed = output(count.arg(stream))?;
    let mut kinds = BTreeMap::new();
    for line in printed.lines() {
        // `12 Provider/143 version 1`
        let words: Vec<&str> = line.split_whitespace().collect();
        let [count, event, "version", version] = words[..] else {
            continue;
        };
        if let Some((name, id)) = event.split_once('/')
            && name == provider
        {
            kinds.insert(format!("{id}\t{version}"), count.to_owned());
        }
    }
    Ok(kinds)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Message(format!("{}: {error}", path.display()))
}
