//! Names of tests, and the page that lists the modules of tests.

use std::path::Path;

use crate::source::{files, read};

/// A test name may have this many characters.
const MAX_CHARACTERS: usize = 60;

/// The names of the functions with the attribute `#[test]`.
fn tests_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if is_test && let Some(function) = line.strip_prefix("fn ") {
            let end = function.find(['(', '<']).unwrap_or(function.len());
            names.push(&function[..end]);
            is_test = false;
        }
    }
    names
}

#[test]
fn test_names_have_at_most_60_characters() {
    let mut long = Vec::new();
    for file in files(".", &[".rs"]) {
        for name in tests_in(&read(&file)) {
            if name.len() > MAX_CHARACTERS {
                long.push(format!("{}: {name}: {}", file.display(), name.len()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn readme_of_the_tests_lists_their_modules() {
    let page = read(Path::new("tests/README.md"));
    let main = read(Path::new("tests/tests/it/main.rs"));
    let mut missing = Vec::new();
    for line in main.lines() {
        let Some(module) = line.strip_prefix("mod ") else {
            continue;
        };
        let module = module.trim_end_matches(';');
        if !page.contains(&format!("`{module}`")) {
            missing.push(module);
        }
    }
    assert!(missing.is_empty(), "tests/README.md lacks {missing:?}");
    for line in page
        .lines()
        .skip_while(|line| *line != "| module | checks | judge |")
    {
        let Some(cells) = line.strip_prefix("| `") else {
            continue;
        };
        let module = cells.split('`').next().unwrap_or_default();
        assert!(
            main.contains(&format!("mod {module};")),
            "tests/README.md lists {module}, which is not in tests/tests/it"
        );
    }
}

#[test]
fn names_are_found_after_attributes_and_comments() {
    let text = "#[test]\nfn a() {}\nfn b() {}\n#[test]\n#[x]\n// c\nfn d(x in 0..3) {}";
    assert_eq!(tests_in(text), ["a", "d"]);
}
