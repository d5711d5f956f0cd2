//! Simulates scenarios: traces, and the truth about them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etl_synth::model::Scenario;
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Script, SimulatedFile, Simulation, read_capture, read_script};
use pyo3::exceptions::PyFileExistsError;
use pyo3::prelude::*;

use crate::error::{Fault, os_error};

/// The file of the truth, as `etlkit synth` names it.
const TRUTH: &str = "truth.jsonl";

/// How a scenario is simulated and written.
pub struct Settings {
    pub seed: Option<u64>,
    /// Names and values.
    pub parameters: Vec<(String, String)>,
    /// Whether the truth is written.
    pub truth: bool,
    /// Whether existing files are replaced.
    pub force: bool,
}

/// Simulates a scenario and writes its traces, and its truth, to a directory. Returns the paths of
/// the files, traces first.
pub fn synth(script: &Path, out: &Path, settings: Settings) -> PyResult<Vec<PathBuf>> {
    let name = script.display().to_string();
    let text = fs::read_to_string(script).map_err(|error| failed(&error, script))?;
    let directory = script.parent().unwrap_or(Path::new("")).to_owned();
    let include = |name: &str| read_script(&directory.join(name));
    let capture = |name: &str| read_capture(&directory.join(name));
    let mut script = Script::new(&name, &text)
        .include(&include)
        .files(&capture)
        .parameters(settings.parameters);
    if let Some(seed) = settings.seed {
        script = script.seed(seed);
    }
    let scenario = script
        .parse()
        .map_err(|errors| Fault::new(&name, errors.to_string()))?;
    let files = simulate(&scenario, settings.truth).map_err(|error| {
        // The errors of a script name their lines.
        let text = match error.script_errors() {
            Some(errors) => errors.to_string(),
            None => error.to_string(),
        };
        Fault::new(&name, text)
    })?;
    write(&files, out, settings.force)
}

/// The files of a simulation, with the truth if it is wanted.
fn simulate(scenario: &Scenario, truth: bool) -> etl_synth::Result<Vec<SimulatedFile>> {
    let mut store = MemoryFileSystem::default();
    let simulation = Simulation::new(scenario);
    if !truth {
        simulation.run(&mut store)?;
        return Ok(store.into_files());
    }
    let mut lines = JsonlWriter::new(Vec::new());
    simulation.observer(&mut lines).run(&mut store)?;
    let mut files = store.into_files();
    files.push(SimulatedFile {
        name: TRUTH.to_owned(),
        bytes: lines.into_inner(),
    });
    Ok(files)
}

/// Writes files to a directory. Returns their paths.
fn write(files: &[SimulatedFile], out: &Path, force: bool) -> PyResult<Vec<PathBuf>> {
    fs::create_dir_all(out).map_err(|error| failed(&error, out))?;
    let paths: Vec<PathBuf> = files.iter().map(|file| out.join(&file.name)).collect();
    if !force && let Some(path) = paths.iter().find(|path| path.exists()) {
        let text = format!("{}: exists already; force=True replaces it", path.display());
        return Err(PyFileExistsError::new_err(text));
    }
    for (file, path) in files.iter().zip(&paths) {
        fs::write(path, &file.bytes).map_err(|error| failed(&error, path))?;
    }
    Ok(paths)
}

fn failed(error: &io::Error, path: &Path) -> PyErr {
    os_error(error, &path.display().to_string())
}
