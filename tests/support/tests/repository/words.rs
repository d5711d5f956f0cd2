//! The words and the width of code and prose.

use std::path::Path;

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

/// Listed words of a line. Parts of names count: `is_bare`, `BareName`. Windows' own
/// names of times stay, `TimeDateStamp`, and so does the verdict `cannot_tell`.
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
            let verdict = lower == "tell" && before == "cannot";
            if WORDS.contains(&lower.as_str()) && !time && !verdict {
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

#[test]
fn text_has_no_listed_words() {
    let mut found = Vec::new();
    for (path, text) in checked(&[".rs", ".md"]) {
        for (number, line) in text.lines().enumerate() {
            let words = listed_words(line);
            if !words.is_empty() {
                found.push(format!("{path}:{}: {}", number + 1, words.join(", ")));
            }
        }
    }
    assert!(found.is_empty(), "words that have plainer ones:\n{}", found.join("\n"));
}

#[test]
fn comments_and_prose_are_wrapped() {
    let mut found = Vec::new();
    for (path, text) in checked(&[".rs", ".md"]) {
        found.extend(long_lines(&path, &text).iter().map(|line| format!("{path}:{line}")));
    }
    assert!(found.is_empty(), "lines of more than {WIDTH} columns:\n{}", found.join("\n"));
}

#[test]
fn listed_words_are_found_in_names_and_prose() {
    assert_eq!(listed_words("CannotTell, cannot_tell: cannot tell"), Vec::<String>::new());
    let all = "is_bare tellThem TOLD retold TimeDateStamp time_stamp stamp_of MOST_X UTMOST_X";
    assert_eq!(listed_words(all), ["MOST_", "bare", "tell", "told", "stamp"]);
    assert_eq!(listed_words("two, of which one; therefor one"), ["of which"]);
}
