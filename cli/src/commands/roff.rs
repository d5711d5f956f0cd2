//! Makes the examples of a manual page literal, so that they can be copied.
//!
//! `clap_mangen` writes the text after the options as prose, which roff fills, justifies and
//! hyphenates.

/// Characters that roff replaces: quotation marks, accents and its own escape.
const LITERAL: [(&str, &str); 4] = [
    (r"\\", r"\(rs"),
    ("`", r"\(ga"),
    ("~", r"\(ti"),
    ("^", r"\(ha"),
];

/// The page, with examples in their own section, and indented lines unchanged.
pub(super) fn with_literal_examples(page: &str) -> String {
    let mut page = page.to_owned();
    for (character, name) in LITERAL {
        page = page.replace(character, name);
    }
    let Some((before, extra)) = page.split_once("\n.SH EXTRA\n") else {
        return page;
    };
    let (extra, after) = match extra.split_once("\n.SH ") {
        Some((extra, after)) => (extra, format!(".SH {after}")),
        None => (extra, String::new()),
    };
    format!("{before}\n{}{after}", sections(extra))
}

/// The page, with the usage of the help as its synopsis: the synopsis of `clap_mangen` has no
/// values of options, and does not show which arguments may be repeated.
pub(super) fn with_usage(page: &str, command: &str, usage: &str) -> String {
    const SYNOPSIS: &str = ".SH SYNOPSIS\n";
    let Some((before, rest)) = page.split_once(SYNOPSIS) else {
        return page.to_owned();
    };
    let Some((_, after)) = rest.split_once('\n') else {
        return page.to_owned();
    };
    let usage = usage.strip_prefix("Usage: ").unwrap_or(usage);
    let arguments = usage.strip_prefix(command).unwrap_or(usage);
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let arguments = words.join(" ").replace('-', r"\-");
    format!("{before}{SYNOPSIS}\\fB{command}\\fR {arguments}\n{after}")
}

/// The text after the options: notes, then examples.
fn sections(text: &str) -> String {
    let mut out = String::new();
    let mut examples = false;
    let mut in_literal = false;
    let mut new_paragraph = false;
    for line in text.lines() {
        let is_literal = line.starts_with("  ");
        if in_literal && !is_literal {
            out.push_str(".fi\n");
            in_literal = false;
        }
        if line.is_empty() {
            new_paragraph = true;
            continue;
        }
        if line == "Examples:" {
            out.push_str(".SH EXAMPLES\n");
            examples = true;
            new_paragraph = false;
            continue;
        }
        if out.is_empty() {
            out.push_str(".SH NOTES\n");
        } else if new_paragraph {
            out.push_str(".PP\n");
        }
        new_paragraph = false;
        if is_literal && !in_literal {
            out.push_str(".nf\n");
            in_literal = true;
        }
        // Examples are below a heading and need no indentation.
        let line = if examples {
            line.strip_prefix("  ").unwrap_or(line)
        } else {
            line
        };
        if line.starts_with(['.', '\'']) {
            out.push_str(r"\&");
        }
        out.push_str(line);
        out.push('\n');
    }
    if in_literal {
        out.push_str(".fi\n");
    }
    out
}
