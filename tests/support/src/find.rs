// Finds things outside of the repository. Both crates of this folder include this file: the
// attribute checks when a test is compiled, the functions when it runs.

use std::env;
use std::path::{Path, PathBuf};

/// The directory of the real traces: `traces` in the directory that `ETLKIT_SHARED` names, or in
/// `shared` beside the repository.
pub fn traces_directory(root: &Path) -> PathBuf {
    env::var_os("ETLKIT_SHARED")
        .map_or_else(|| root.join("../shared"), PathBuf::from)
        .join("traces")
}

/// The Python interpreter with the packages of `scripts/requirements.txt`: the one that
/// `ETLKIT_PYTHON` names, or the one of `.venv`, which `scripts/install.sh venv` makes.
pub fn python_path(root: &Path) -> PathBuf {
    env::var_os("ETLKIT_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from)
}

/// The folder of the packages of `scripts/node/package.json`: the one that `ETLKIT_NODE_MODULES`
/// names, or the folder in `.node`, which `scripts/install.sh node` makes.
pub fn node_packages_path(root: &Path) -> PathBuf {
    env::var_os("ETLKIT_NODE_MODULES")
        .map_or_else(|| root.join(".node/node_modules"), PathBuf::from)
}

/// The browser that `ETLKIT_CHROMIUM` names, or `chromium` in the search path.
pub fn chromium_path() -> Option<PathBuf> {
    match env::var_os("ETLKIT_CHROMIUM") {
        Some(named) => Some(PathBuf::from(named)).filter(|path| path.is_file()),
        None => program_path("chromium"),
    }
}

/// A program in the search path.
pub fn program_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
