//! The words and the width of code and prose.
//!
//! Files that are not rewritten yet are listed in `pending.txt`; no new ones are added. What they
//! have: `cargo test -p etl-test-support pending -- --ignored --nocapture`. With
//! `ETLKIT_WRITE_DOCS=1` the list is written again, without those that have become clean.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::source::{files, read};

/// Words that readers from the field stumble over; each has a plain one in its stead.
const WORDS: &[&str] = &[
    "anew",
    "bare",
    "behind",
    "crew",
    "desk",
    "gives",
    "homeless",
    "mend",
    "mended",
    "mending",
    "mends",
    "mistake",
    "mistakes",
    "moment",
    "moments",
    "nobody",
    "room",
    "rooms",
    "somebody",
    "stamp",
    "stamped",
    "stamps",
    "stranger",
    "strangers",
    "tell",
    "tells",
    "told",
    "whoever",
    "witness",
];

/// The same for phrases, and for the beginnings of constants.
const PHRASES: &[&str] =
    &["of which", "for one", "by hand", "MOST_", "LEAST_", "LONGEST_", "DEEPEST_"];

/// Columns of a comment, and of a line of prose.
const WIDTH: usize = 100;

/// Files whose words are checked: this one spells them.
fn checked(endings: &[&str]) -> Vec<(String, String)> {
    let all = files(".", endings).into_iter();
    let named = all.map(|path| path.to_string_lossy().trim_start_matches("./").replace('\\', "/"));
    named
        .filter(|path| !path.ends_with("repository/words.rs"))
        .map(|path| {
            let text = read(Path::new(&path));
            (path, text)
        })
        .collect()
}

/// The files of `pending.txt` that are listed for words or for width.
fn pending(kind: &str) -> BTreeSet<String> {
    let list = read(&repository("pending.txt"));
    let lines = list.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    lines.map(str::to_owned).collect()
}

fn repository(name: &str) -> PathBuf {
    Path::new("tests/support/tests/repository").join(name)
}

/// Listed words of a line. Parts of names count: `is_bare`, `BareName`. Windows' own
/// names of times stay: `TimeDateStamp`.
fn listed_words(line: &str) -> Vec<String> {
    let mut out: Vec<String> =
        PHRASES.iter().filter(|p| has_phrase(line, p)).map(|p| (*p).to_owned()).collect();
    let (mut word, mut before) = (String::new(), String::new());
    for c in line.chars().chain([' ']) {
        let starts_new = !c.is_alphabetic()
            || (c.is_uppercase() && word.chars().last().is_some_and(char::is_lowercase));
        if starts_new && !word.is_empty() {
            let lower = word.to_lowercase();
            let time = lower == "stamp" && matches!(before.as_str(), "time" | "date");
            if WORDS.contains(&lower.as_str()) && !time {
                out.push(lower.clone());
            }
            before = lower;
            word.clear();
        }
        if c.is_alphabetic() {
            word.push(c);
        }
    }
    out
}

fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase).any(|(at, _)| {
        let after = line[at + phrase.len()..].chars().next();
        !line[..at].chars().last().is_some_and(is_word)
            && (phrase.ends_with('_') || !after.is_some_and(is_word))
            // A loop of Rust.
            && !line[at..].starts_with("for one in ")
    })
}

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

/// Every line with a listed word: its file, and what is said about it.
fn words() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, text) in checked(&[".rs", ".md"]) {
        for (number, line) in text.lines().enumerate() {
            let words = listed_words(line);
            if !words.is_empty() {
                found.push((path.clone(), format!("{path}:{}: {}", number + 1, words.join(", "))));
            }
        }
    }
    found
}

/// Every line that is too long.
fn widths() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, text) in checked(&[".rs", ".md"]) {
        let lines = long_lines(&path, &text);
        found.extend(lines.iter().map(|line| (path.clone(), format!("{path}:{line}"))));
    }
    found
}

/// Checks that only pending files have such lines.
fn check(kind: &str, what: &str, found: &[(String, String)]) {
    let pending = pending(kind);
    let new = found.iter().filter(|(path, _)| !pending.contains(path));
    let new: Vec<&str> = new.map(|(_, message)| message.as_str()).collect();
    assert!(new.is_empty(), "{what}:\n{}", new.join("\n"));
}

#[test]
fn text_has_no_listed_words() {
    check("words", "words that have plainer ones", &words());
}

#[test]
fn comments_and_prose_are_wrapped() {
    check("width", "lines of more than 100 columns", &widths());
}

#[test]
#[ignore = "lists what pending files have"]
fn pending_lines() {
    for (_, message) in words().iter().chain(&widths()) {
        println!("{message}");
    }
}

#[test]
fn pending_files_are_not_clean() {
    let mut list = String::new();
    let mut clean = Vec::new();
    for (kind, found) in [("words", words()), ("width", widths())] {
        let has: BTreeSet<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        for path in pending(kind) {
            if has.contains(path.as_str()) {
                list += &format!("{kind} {path}\n");
            } else {
                clean.push(path);
            }
        }
    }
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        let path = etl_test_support::root().join(repository("pending.txt"));
        std::fs::write(path, list).unwrap();
    } else if !clean.is_empty() {
        // Not an error: the list is written again when a set of files is done.
        println!("no longer pending: {}", clean.join(", "));
    }
}

#[test]
fn listed_words_are_found_in_names_and_prose() {
    let all = "is_bare tellThem TOLD retold TimeDateStamp time_stamp stamp_of MOST_X UTMOST_X";
    assert_eq!(listed_words(all), ["MOST_", "bare", "tell", "told", "stamp"]);
    assert_eq!(listed_words("two, of which one; therefor one"), ["of which"]);
}
