//! Simulates scenarios: traces, and the truth about them.

use std::fs;
use std::path::{Path, PathBuf};

use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Script, SimulatedFile, Simulation, read_capture, read_script};
use pyo3::exceptions::{PyFileExistsError, PyOSError};
use pyo3::prelude::*;

use crate::error::Fault;

/// The file of the truth, as `etlkit synth` names it.
const TRUTH: &str = "truth.jsonl";

/// Simulates a scenario and writes its traces, and its truth, to a directory. Returns the paths of
/// the files, traces first.
pub fn synth(
    script: &Path,
    out: &Path,
    seed: Option<u64>,
    parameters: Vec<(String, String)>,
    truth: bool,
    force: bool,
) -> PyResult<Vec<PathBuf>> {
    let name = script.display().to_string();
    let text = fs::read_to_string(script).map_err(|error| at(error, script))?;
    let directory = script.parent().unwrap_or(Path::new("")).to_owned();
    let include = |name: &str| read_script(&directory.join(name));
    let files = |name: &str| read_capture(&directory.join(name));
    let script = Script::new(&name, &text).include(&include).files(&files);
    let script = script.parameters(parameters);
    let script = seed.map_or(script.clone(), |seed| script.seed(seed));
    let failed = |error: &etl_synth::Error| {
        // The errors of a script name their lines.
        let text = match error.script_errors() {
            Some(errors) => errors.to_string(),
            None => error.to_string(),
        };
        PyErr::from(Fault::new(&name, text))
    };
    let scenario = script
        .parse()
        .map_err(|errors| PyErr::from(Fault::new(&name, errors.to_string())))?;
    let mut store = MemoryFileSystem::default();
    let mut lines = JsonlWriter::new(Vec::new());
    let simulation = Simulation::new(&scenario);
    if truth {
        simulation
            .observer(&mut lines)
            .run(&mut store)
            .map_err(|e| failed(&e))?;
    } else {
        simulation.run(&mut store).map_err(|e| failed(&e))?;
    }
    let mut made = store.into_files();
    if truth {
        made.push(SimulatedFile {
            name: TRUTH.to_owned(),
            bytes: lines.into_inner(),
        });
    }
    fs::create_dir_all(out).map_err(|error| at(error, out))?;
    let paths: Vec<PathBuf> = made.iter().map(|file| out.join(&file.name)).collect();
    if !force && let Some(path) = paths.iter().find(|path| path.exists()) {
        let text = format!("{}: exists already; force=True replaces it", path.display());
        return Err(PyFileExistsError::new_err(text));
    }
    for (file, path) in made.iter().zip(&paths) {
        fs::write(path, &file.bytes).map_err(|error| at(error, path))?;
    }
    Ok(paths)
}

fn at(error: std::io::Error, path: &Path) -> PyErr {
    let text = error.to_string();
    let text = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, text, path.display().to_string())),
        None => Fault::new(&path.display().to_string(), text).into(),
    }
}
