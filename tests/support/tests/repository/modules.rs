//! No circles among the modules of a crate.
//!
//! Modules of one parent are compared, each with everything below it. Two of them that use each
//! other are a circle. A parent and its own children are one idea.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{code, files, read};
use crate::workspace::{Crate, crates};

/// Circles that stay, by one of their modules, each with its reason.
const ALLOWED: &[(&str, &str)] = &[
    (
        "schema::decode::value",
        "values contain fields and arrays of values",
    ),
    ("synth::scenario::step", "steps contain blocks of steps"),
];

type ModulePath = Vec<String>;

/// The modules of a crate that are files, and what each uses.
fn modules(folder: &Path) -> BTreeMap<ModulePath, String> {
    let source = folder.join("src");
    let mut out = BTreeMap::new();
    for file in files(source.to_str().unwrap(), &[".rs"]) {
        let path = file.strip_prefix(&source).unwrap().with_extension("");
        let mut parts: ModulePath = path
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        match parts.last().map(String::as_str) {
            Some("main") => continue,
            Some("lib" | "mod") => drop(parts.pop()),
            _ => {}
        }
        if parts.first().is_some_and(|part| part == "bin")
            || parts.last().is_some_and(|part| part == "tests")
        {
            continue;
        }
        out.insert(parts, code(&read(&file)));
    }
    out
}

/// Paths that begin with `crate`, `self` or `super`, groups in braces taken apart.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in code.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if !c.is_whitespace() {
            tokens.push(c.to_string());
        }
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let start = matches!(tokens[at].as_str(), "crate" | "self" | "super");
        if start && tokens.get(at + 1).is_some_and(|t| t == ":") {
            at = tree(&tokens, at, &mut Vec::new(), &mut out);
        } else {
            at += 1;
        }
    }
    out
}

/// Reads one path or group from a token on; returns the token after it.
fn tree(
    tokens: &[String],
    mut at: usize,
    prefix: &mut Vec<String>,
    out: &mut Vec<Vec<String>>,
) -> usize {
    let before = prefix.len();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|t| t != "}") {
                    if tokens[at] == "," {
                        at += 1;
                    } else {
                        let next = tree(tokens, at, prefix, out);
                        at = next.max(at + 1);
                    }
                }
                at += 1;
                break;
            }
            Some(word) if word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                prefix.push(word.to_owned());
                at += 1;
                let more = tokens.get(at).is_some_and(|t| t == ":")
                    && tokens.get(at + 1).is_some_and(|t| t == ":");
                if !more {
                    out.push(prefix.clone());
                    break;
                }
                at += 2;
            }
            _ => {
                out.push(prefix.clone());
                break;
            }
        }
    }
    prefix.truncate(before);
    at
}

/// The module that a path from another one leads to.
fn target(
    modules: &BTreeMap<ModulePath, String>,
    from: &ModulePath,
    path: &[String],
) -> ModulePath {
    let mut at: ModulePath = Vec::new();
    let mut names = path.iter().peekable();
    while let Some(name) = names.peek() {
        match name.as_str() {
            "crate" => at.clear(),
            "self" => at.clone_from(from),
            "super" => {
                if at.is_empty() {
                    at.clone_from(from);
                }
                at.pop();
            }
            _ => break,
        }
        names.next();
    }
    for name in names {
        at.push(name.clone());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    at
}

/// Sets of sibling modules that use each other.
fn circles(modules: &BTreeMap<ModulePath, String>) -> Vec<Vec<String>> {
    // Parent, and an edge between two of its children.
    let mut uses: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, code) in modules {
        for path in paths(code) {
            let to = target(modules, from, &path);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                let edges = uses.entry(from[..common].to_vec()).or_default();
                edges.entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    let mut out = Vec::new();
    for (parent, edges) in uses {
        let reach = |from: &String| {
            let mut seen: BTreeSet<&String> = BTreeSet::new();
            let mut next: Vec<&String> = edges.get(from).into_iter().flatten().collect();
            while let Some(module) = next.pop() {
                if seen.insert(module) {
                    next.extend(edges.get(module).into_iter().flatten());
                }
            }
            seen
        };
        let mut done: BTreeSet<&String> = BTreeSet::new();
        for module in edges.keys() {
            let circle: Vec<&String> = reach(module)
                .into_iter()
                .filter(|other| !done.contains(other) && reach(other).contains(module))
                .collect();
            done.extend(&circle);
            let path = |name: &String| [&parent[..], std::slice::from_ref(name)].concat();
            if circle.len() > 1 {
                out.push(circle.iter().map(|name| path(name).join("::")).collect());
            }
        }
    }
    out
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for Crate { folder, .. } in crates() {
        let folder_name = folder.display().to_string();
        for circle in circles(&modules(&folder)) {
            let names: Vec<String> = circle
                .iter()
                .map(|module| format!("{folder_name}::{module}"))
                .collect();
            let allowed = ALLOWED
                .iter()
                .map(|(name, _)| *name)
                .find(|name| *name == folder_name || names.iter().any(|module| module == name));
            match allowed {
                Some(name) => drop(used.insert(name)),
                None => wrong.push(names.join(", ")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "modules that use each other:\n{}",
        wrong.join("\n")
    );
    for (name, reason) in ALLOWED {
        assert!(
            used.contains(name),
            "{name} ({reason}) is in no circle: remove it from the list"
        );
    }
}

#[test]
fn circles_are_found_between_siblings() {
    let modules = |files: &[(&str, &str)]| -> BTreeMap<ModulePath, String> {
        let path = |name: &str| name.split("::").map(str::to_owned).collect();
        files
            .iter()
            .map(|(name, code)| (path(name), (*code).to_owned()))
            .collect()
    };
    let all = modules(&[
        ("a", "use crate::b::{self, C};"),
        ("b", "mod c;"),
        ("b::c", "use super::super::a; fn f() { crate::d::g() }"),
        ("d", "use crate::a::X;"),
    ]);
    assert_eq!(circles(&all), [["a", "b", "d"]]);
    let two = modules(&[("a", "use crate::b::X;"), ("b", "use super::a::Y;")]);
    assert_eq!(circles(&two), [["a", "b"]]);
    let none = modules(&[
        ("a", "use crate::b::X;"),
        ("b", "use super::c::Y;"),
        ("c", ""),
    ]);
    assert!(circles(&none).is_empty());
}
