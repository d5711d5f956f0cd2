//! What `clap_mangen` leaves to do of a manual page: command lines that can be copied from it.
//!
//! It sets the text behind the options as prose, under a heading of its own. Prose is filled, justified and hyphenated, and
//! then an example is no longer the command that it was.

/// Characters that roff takes for others: quotation marks, accents and its own escape.
const LITERAL: [(&str, &str); 4] =
    [(r"\\", r"\(rs"), ("`", r"\(ga"), ("~", r"\(ti"), ("^", r"\(ha")];

/// The page, with examples in a section of their own, and lines that are indented as they stand.
pub(super) fn settled(page: &str) -> String {
    let mut page = page.to_owned();
    for (character, name) in LITERAL {
        page = page.replace(character, name);
    }
    let Some((before, extra)) = page.split_once("\n.SH EXTRA\n") else { return page };
    let (extra, after) = match extra.split_once("\n.SH ") {
        Some((extra, after)) => (extra, format!(".SH {after}")),
        None => (extra, String::new()),
    };
    format!("{before}\n{}{after}", sections(extra))
}

/// The text behind the options: notes, then examples.
fn sections(text: &str) -> String {
    let mut out = String::new();
    let (mut examples, mut as_it_stands, mut apart) = (false, false, false);
    for line in text.lines() {
        let stands = line.starts_with("  ");
        if as_it_stands && !stands {
            out.push_str(".fi\n");
            as_it_stands = false;
        }
        if line.is_empty() {
            apart = true;
            continue;
        }
        if line == "Examples:" {
            out.push_str(".SH EXAMPLES\n");
            (examples, apart) = (true, false);
            continue;
        }
        if out.is_empty() {
            out.push_str(".SH NOTES\n");
        } else if apart {
            out.push_str(".PP\n");
        }
        apart = false;
        if stands && !as_it_stands {
            out.push_str(".nf\n");
            as_it_stands = true;
        }
        // The heading says what these are: nothing else needs to set them off.
        let line = if examples { line.strip_prefix("  ").unwrap_or(line) } else { line };
        if line.starts_with(['.', '\'']) {
            out.push_str(r"\&");
        }
        out.push_str(line);
        out.push('\n');
    }
    if as_it_stands {
        out.push_str(".fi\n");
    }
    out
}
