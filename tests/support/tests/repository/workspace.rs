//! The crates of the workspace, from `cargo metadata`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A crate that is published.
pub struct Crate {
    pub name: String,
    /// Its folder, from the root.
    pub folder: PathBuf,
    pub dependencies: Vec<Dependency>,
    /// What registries show of it, as in `cargo metadata`.
    pub package: Value,
}

pub struct Dependency {
    pub name: String,
    /// `dev` and `build` for such dependencies, else empty.
    pub kind: String,
}

/// The crates that are published, lowest floor first, as the workspace lists them.
pub fn crates() -> Vec<Crate> {
    let root = etl_test_support::root();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The manifests have canonical paths.
    let root = PathBuf::from(metadata["workspace_root"].as_str().unwrap());
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        // `publish = false` is an empty list of registries.
        if package["publish"].is_array() {
            continue;
        }
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap();
        let dependencies = package["dependencies"].as_array().unwrap();
        crates.push(Crate {
            name: package["name"].as_str().unwrap().to_owned(),
            folder: folder.strip_prefix(&root).unwrap().to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
            package: package.clone(),
        });
    }
    crates
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: value["name"].as_str().unwrap().to_owned(),
        kind: value["kind"].as_str().unwrap_or_default().to_owned(),
    }
}
