//! The repository's files, and a reader of Rust that knows comments, strings and test modules.

use std::path::{Path, PathBuf};

/// Folders of builds and of packages by others.
const SKIPPED: [&str; 4] = ["dist", "node_modules", "out", "target"];

/// Every file with one of these endings below a folder, sorted, in paths from the root.
pub fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let root = etl_test_support::root();
    let mut out = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                out.push(path.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    out.sort();
    out
}

/// The text of a file, by its path from the root.
pub fn read(path: &Path) -> String {
    let path = etl_test_support::root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The code without comments, literals and `#[cfg(test)]` modules; lines stay where they are.
pub fn code(text: &str) -> String {
    let text = without_test_modules(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            raw_string(rest).unwrap_or(0)
        } else if c == '"' {
            string(rest)
        } else if c == '\'' {
            character(rest)
        } else {
            0
        };
        if skipped == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            out.push(' ');
            rest = &rest[skipped..];
        }
    }
    out
}

fn without_test_modules(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let module = |next: &&str| next.trim_start().starts_with("mod ") && next.contains('{');
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(module) {
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            for line in lines.by_ref() {
                out.push('\n');
                if line.trim_end() == end {
                    break;
                }
            }
            out.push('\n');
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Bytes of a string literal.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let hashes = text[1..].bytes().take_while(|b| *b == b'#').count();
    text[1 + hashes..].starts_with('"').then_some(())?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    Some(
        text[start..]
            .find(&end)
            .map_or(text.len(), |at| start + at + end.len()),
    )
}

/// Bytes of a character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[2..].find('\'').map_or(0, |at| {
            // '\'' has its end after the escaped quote.
            if text[2..].starts_with("''") || text[2..].starts_with('\'') {
                4
            } else {
                at + 3
            }
        }),
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[test]
fn code_leaves_out_comments_literals_and_test_modules() {
    let text =
        "a // b\nc \"d // \\\" e\" 'f' &'g h '\\'' r#\"i\"# j\n#[cfg(test)]\nmod k {\nl\n}\nm\n";
    let words: Vec<String> = code(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "c", "&'g", "h", "j", "m"]);
    assert_eq!(code(text).lines().count(), text.lines().count());
}
