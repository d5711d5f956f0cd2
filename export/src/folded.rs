//! Folded stacks: a line for each stack, its frames from the outermost on, and how often it was
//! sampled. The scripts of FlameGraph, inferno and speedscope read them.

use std::io::{self, Write};

use etl_analysis::profile::Profile;
use etl_schema::render::is_terminal_unsafe;

use crate::Unit;

/// Writes the stacks of a profile: `Orders.exe (4312);ntdll.dll!?;Orders.dll!Orders.Cart.Add 12`.
/// The first frame is the process. If the profile has a tree for each thread, the second frame is
/// the thread.
///
/// # Errors
/// If writing fails.
pub fn write(profile: &Profile, unit: Unit, out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    let labels: Vec<String> = (0..profile.frames().len())
        .map(|frame| clean(&profile.label(frame)))
        .collect();
    let mut line = String::new();
    // The length of the line up to each frame.
    let mut lengths: Vec<usize> = Vec::new();
    for root in profile.roots() {
        for node in profile
            .nodes()
            .get(root.first..root.end)
            .unwrap_or_default()
        {
            lengths.truncate(node.depth as usize);
            line.truncate(lengths.last().copied().unwrap_or(0));
            match node.frame.and_then(|frame| labels.get(frame)) {
                Some(label) => {
                    line.push(';');
                    line.push_str(label);
                }
                None => {
                    line.push_str(&clean(&root.process_label()));
                    if let Some(thread) = root.thread_label() {
                        line.push(';');
                        line.push_str(&clean(&thread));
                    }
                }
            }
            lengths.push(line.len());
            let count = unit.of(node.exclusive);
            if count > 0 {
                writeln!(out, "{line} {count}")?;
            }
        }
    }
    out.flush()
}

/// The label of a frame without the characters that separate frames and lines, and without the
/// characters on which a terminal could act.
pub(crate) fn clean(label: &str) -> String {
    label
        .chars()
        .map(|c| match c {
            ';' => '_',
            c if is_terminal_unsafe(c) => '_',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn clean_keeps_a_frame_in_one_line() {
        assert_eq!(clean("a;b\nc d"), "a_b_c d");
        assert_eq!(clean("a\u{9b}\u{202e}\u{7f}é"), "a___é");
    }
}
