//! The product code of a crate: the files that its libraries and programs contain.

use std::fs;
use std::path::{Path, PathBuf};

use syn::{Item, ItemMod};

use super::places::{self, Found};
use crate::process::{Failure, root};

/// A file with product code.
pub struct SourceFile {
    /// From the root of the checkout.
    pub path: PathBuf,
    /// Lines without the items that are built for tests only.
    pub lines: usize,
    pub found: Found,
}

/// Reads a file and the modules that it declares, without modules that are built for tests only.
pub fn read(path: &Path, files: &mut Vec<SourceFile>) -> Result<(), Failure> {
    let text = fs::read_to_string(root().join(path));
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let file = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let found = places::find(&file);
    let lines = text.lines().count().saturating_sub(found.test_lines);
    files.push(SourceFile {
        path: path.to_owned(),
        lines,
        found,
    });
    read_modules(&file.items, &folder_of_modules(path), files)
}

/// Reads the modules of a file, or of a module in braces, that are files in `folder`.
fn read_modules(items: &[Item], folder: &Path, files: &mut Vec<SourceFile>) -> Result<(), Failure> {
    for item in items {
        let Item::Mod(module) = item else { continue };
        if module.attrs.iter().any(places::is_test) {
            continue;
        }
        let folder_of_module = folder.join(module.ident.to_string());
        match &module.content {
            Some((_, items)) => read_modules(items, &folder_of_module, files)?,
            None => read(&file_of(module, folder)?, files)?,
        }
    }
    Ok(())
}

/// Where the modules of a file are.
fn folder_of_modules(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(file);
    match file.file_stem().and_then(|name| name.to_str()) {
        Some("lib" | "main" | "mod") | None => folder.to_owned(),
        // The first file of a program in `src/bin`.
        Some(_) if folder.ends_with("src/bin") => folder.to_owned(),
        Some(name) => folder.join(name),
    }
}

fn file_of(module: &ItemMod, folder: &Path) -> Result<PathBuf, Failure> {
    let name = module.ident.to_string();
    for path in [
        folder.join(format!("{name}.rs")),
        folder.join(&name).join("mod.rs"),
    ] {
        if root().join(&path).is_file() {
            return Ok(path);
        }
    }
    Err(Failure::Message(format!(
        "{}: no file of the module {name}",
        folder.display()
    )))
}

#[test]
fn modules_of_this_program_are_read_once_without_tests() {
    let mut files = Vec::new();
    read(Path::new("xtask/src/main.rs"), &mut files).unwrap();
    let mut paths: Vec<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    paths.sort();
    let count = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), count);
    assert!(paths.contains(&Path::new("xtask/src/style/places.rs")));
    let places = files
        .iter()
        .find(|file| file.path.ends_with("style/places.rs"))
        .unwrap();
    let text = fs::read_to_string(root().join(&places.path)).unwrap();
    let tests = text
        .lines()
        .position(|line| line == "#[cfg(test)]")
        .unwrap();
    // The tests are the end of the file.
    assert_eq!(places.lines, tests);
}
