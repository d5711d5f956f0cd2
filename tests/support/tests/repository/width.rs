//! The width of comments and of prose.

use crate::source::{files, read};

/// Columns of a comment, and of a line of prose.
const WIDTH: usize = 100;

/// Lines that are too long: comments in Rust, prose in Markdown without tables, code and links.
fn long_lines(path: &str, text: &str) -> Vec<usize> {
    let mut code = false;
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if path.ends_with(".md") && start.starts_with("```") {
            code = !code;
        }
        let prose = if path.ends_with(".rs") {
            start.starts_with("//") && !start.contains("://")
        } else {
            !code && !start.starts_with('|') && !line.contains("](") && !line.contains("://")
        };
        if prose && line.chars().count() > WIDTH {
            out.push(number + 1);
        }
    }
    out
}

#[test]
fn comments_and_prose_are_wrapped() {
    let mut wrong = Vec::new();
    for path in files(".", &[".rs", ".md"]) {
        let text = read(&path);
        let path = path.to_string_lossy().replace('\\', "/");
        for line in long_lines(&path, &text) {
            wrong.push(format!("{path}:{line}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "lines of more than {WIDTH} columns:\n{}",
        wrong.join("\n")
    );
}
