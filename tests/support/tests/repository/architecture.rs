//! docs/architecture.md: the list of modules is generated from the first sentence of each.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{Crate, crates};

const BEGIN: &str = "<!-- modules -->";
const END: &str = "<!-- end of modules -->";

/// The first paragraph of a module's documentation, up to its first full stop.
fn summary(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").unwrap_or(paragraph.len());
    let sentence = paragraph[..end].trim_end_matches('.');
    assert!(
        !sentence.is_empty(),
        "{}: the documentation of a module starts with a sentence",
        file.display()
    );
    sentence.to_owned()
}

/// Modules in a folder of sources: its files, and its folders with the modules in them.
fn modules(folder: &Path, path: &str, page: &mut String) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        if matches!(name.as_str(), "lib" | "main" | "mod" | "tests" | "bin") {
            continue;
        }
        let module = format!("{path}{name}");
        if entry.is_dir() {
            if entry.join("mod.rs").exists() {
                writeln!(page, "| `{module}` | {} |", summary(&entry.join("mod.rs"))).unwrap();
            }
            modules(&entry, &format!("{module}::"), page);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            writeln!(page, "| `{module}` | {} |", summary(&entry)).unwrap();
        }
    }
}

#[test]
fn architecture_page_lists_every_module() {
    let root = etl_test_support::root();
    let mut list = String::new();
    for Crate { folder, .. } in crates() {
        let source = root.join(&folder).join("src");
        let name = folder.display();
        write!(list, "\n### {name}\n\n{}.\n\n", summary(&source.join("lib.rs"))).unwrap();
        list += "| module | content |\n|---|---|\n";
        modules(&source, "", &mut list);
    }
    let file = root.join("docs/architecture.md");
    let page = fs::read_to_string(&file).unwrap().replace("\r\n", "\n");
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let now = format!("{before}{BEGIN}\n{list}\n{END}{after}");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        fs::write(&file, &now).unwrap();
    }
    assert!(
        page == now || std::env::var_os("ETLKIT_WRITE_DOCS").is_some(),
        "ETLKIT_WRITE_DOCS=1 cargo test -p etl-test-support architecture writes the list again"
    );
}
