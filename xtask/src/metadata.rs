//! The packages of the workspace, from `cargo metadata`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Failure, cargo, output, root};

/// What `cargo metadata` prints about the workspace.
pub struct Metadata {
    /// The packages of the workspace, in its order.
    pub packages: Vec<Package>,
    /// The folder of builds.
    pub target: PathBuf,
}

/// A package of the workspace.
pub struct Package {
    pub name: String,
    /// Its folder, from the root of the checkout.
    pub folder: PathBuf,
    pub is_published: bool,
    /// Features in the order of their names, with `default`.
    pub features: Vec<String>,
    /// The first file of its library and of each of its programs.
    pub roots: Vec<PathBuf>,
}

impl Metadata {
    pub fn read() -> Result<Self, Failure> {
        let mut command = cargo("metadata");
        command.args(["--format-version", "1", "--no-deps", "--offline"]);
        let metadata = parse(&output(&mut command)?)?;
        let mut packages = Vec::new();
        for value in list(&metadata, "packages") {
            packages.push(Package::new(value));
        }
        Ok(Self {
            packages,
            target: PathBuf::from(text(&metadata, "target_directory")),
        })
    }

    /// The packages that are published, in the order in which they are published.
    pub fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_published)
    }

    /// The package that contains a file, by its path from the root of the checkout.
    pub fn package_of(&self, file: &Path) -> Option<&Package> {
        let owners = self
            .packages
            .iter()
            .filter(|package| file.starts_with(&package.folder));
        owners.max_by_key(|package| package.folder.components().count())
    }
}

impl Package {
    fn new(value: &Value) -> Self {
        let manifest = from_root(text(value, "manifest_path"));
        let mut roots = Vec::new();
        for target in list(value, "targets") {
            if has_kind(target, "lib") || has_kind(target, "bin") {
                roots.push(from_root(text(target, "src_path")));
            }
        }
        let features = value.get("features").and_then(Value::as_object);
        let mut features: Vec<String> = features
            .into_iter()
            .flat_map(|map| map.keys())
            .cloned()
            .collect();
        features.sort();
        Self {
            name: text(value, "name").to_owned(),
            folder: manifest.parent().unwrap_or(&manifest).to_owned(),
            // `publish = false` is an empty list of registries.
            is_published: value.get("publish").is_some_and(Value::is_null),
            features,
            roots,
        }
    }
}

/// Parses what cargo prints.
pub fn parse(json: &str) -> Result<Value, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::Message(format!("cargo metadata: {error}")))
}

/// A member that is a string; otherwise an empty string.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A member that is a list; otherwise an empty list.
pub fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn has_kind(target: &Value, kind: &str) -> bool {
    list(target, "kind").iter().any(|value| value == kind)
}

fn from_root(path: &str) -> PathBuf {
    let path = Path::new(path);
    // Cargo prints canonical paths.
    let root = root().canonicalize().unwrap_or_else(|_| root());
    path.strip_prefix(root).unwrap_or(path).to_owned()
}
