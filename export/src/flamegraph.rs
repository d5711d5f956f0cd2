//! A flame graph as one HTML page without external resources: a click zooms, a text field searches.

use std::io::{self, Write};

use etl_analysis::profile::Profile;
use etl_schema::render::{escaped_json, one_line};
use serde_json::{Value, json};

use crate::Unit;

/// The page; [`DATA`] is replaced by the stacks, [`TITLE`] by the title.
const PAGE: &str = include_str!("../templates/flamegraph.html");
const DATA: &str = "{{data}}";
const TITLE: &str = "{{title}}";

/// A stack is left out if it is narrower than the whole divided by this: it could not be seen.
const PARTS: u64 = 5_000;

/// A page that is written, part by part.
pub(crate) struct Page<W: Write> {
    out: io::BufWriter<W>,
    /// What follows the data.
    rest: &'static str,
}

impl<W: Write> Page<W> {
    /// Writes what comes before the data.
    pub fn begin(title: &str, out: W) -> io::Result<Self> {
        let mut out = io::BufWriter::new(out);
        let (head, rest) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
        out.write_all(head.replace(TITLE, &escape(&one_line(title))).as_bytes())?;
        Ok(Page { out, rest })
    }

    /// Writes the first member of the data.
    pub fn head(&mut self, head: &Value) -> io::Result<()> {
        writeln!(self.out, "{{\"head\":{},", in_script(&head.to_string()))
    }

    /// Writes a part of the data.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Ends the list of nodes and the page.
    pub fn end(mut self) -> io::Result<()> {
        write!(self.out, "]}}")?;
        self.out.write_all(self.rest.as_bytes())?;
        self.out.flush()
    }
}

/// Whether a weight is wide enough to be seen.
pub(crate) fn is_visible(weight: u64, total: u64) -> bool {
    weight > total / PARTS
}

/// Writes a page with the stacks of a profile.
///
/// # Errors
/// If writing fails.
pub fn write(profile: &Profile, title: &str, unit: Unit, out: impl Write) -> io::Result<()> {
    let mut page = Page::begin(title, out)?;
    let unit = unit.for_profile(profile);
    let total = unit.of(profile.total());
    page.head(&json!({ "title": title, "unit": unit.name(), "total": total }))?;
    let out = &mut page.out;
    write!(out, "\"frames\":[")?;
    for (at, frame) in profile.frames().iter().enumerate() {
        let comma = if at > 0 { ",\n" } else { "\n" };
        let value = json!([profile.label(at), frame.kind.name()]).to_string();
        write!(out, "{comma}{}", in_script(&value))?;
    }
    write!(out, "],\n\"roots\":[")?;
    for (at, root) in profile.roots().iter().enumerate() {
        let comma = if at > 0 { ",\n" } else { "\n" };
        let label = match root.thread_label() {
            Some(thread) => format!("{} {thread}", root.process_label()),
            None => root.process_label(),
        };
        write!(out, "{comma}{}", in_script(&json!(label).to_string()))?;
    }
    // Depth, frame or root, and weight of each node, in the order of the tree.
    write!(out, "],\n\"nodes\":[")?;
    let mut comma = "";
    for (at, root) in profile.roots().iter().enumerate() {
        for node in profile
            .nodes()
            .get(root.first..root.end)
            .unwrap_or_default()
        {
            let weight = unit.of(node.inclusive);
            if is_visible(weight, total) {
                write!(
                    out,
                    "{comma}[{},{},{weight}]",
                    node.depth,
                    node.frame.unwrap_or(at)
                )?;
                comma = ",";
            }
        }
    }
    page.end()
}

/// JSON that cannot end the script around it, and on which a terminal does not act.
pub(crate) fn in_script(json: &str) -> String {
    escaped_json(json).replace('<', "\\u003c")
}

/// Text of an HTML page.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
