//! Two profiles as one tree of stacks, to show what grew: differential flame graphs.
//!
//! ```no_run
//! use etl_analysis::profile::Profile;
//! use etl_export::Unit;
//! use etl_export::difference::StackDifference;
//!
//! fn print(before: &Profile, after: &Profile) -> std::io::Result<()> {
//!     let mut difference = StackDifference::default();
//!     difference.add_before(before, Unit::Samples, &|name| name.to_owned());
//!     difference.add_after(after, Unit::Samples);
//!     difference.write_folded(std::io::stdout())
//! }
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};

use etl_analysis::profile::{Profile, Root};
use serde_json::json;

use crate::Unit;
use crate::flamegraph::{Page, in_script, is_visible};
use crate::folded::clean;

/// The kind of the frame of a process.
const ROOT: &str = "root";

/// A frame of stacks of both profiles: frames with the same names are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    label: String,
    kind: &'static str,
}

/// A node of the tree.
#[derive(Clone, Debug, Default)]
struct Node {
    frame: Frame,
    parent: Option<usize>,
    below: BTreeMap<Frame, usize>,
    /// Weights of the stacks that end here.
    own_before: u64,
    own_after: u64,
    /// Weights of all stacks through it.
    before: u64,
    after: u64,
}

/// The stacks of an earlier and a later profile. Processes are told apart by their names.
#[derive(Clone, Debug, Default)]
pub struct StackDifference {
    /// The processes.
    roots: BTreeMap<Frame, usize>,
    nodes: Vec<Node>,
}

impl StackDifference {
    /// Adds the earlier profile. `new_name` returns the names that programs and modules have in the
    /// later one.
    pub fn add_before(&mut self, profile: &Profile, unit: Unit, new_name: &dyn Fn(&str) -> String) {
        let mut frames = frames_of(profile);
        for frame in &mut frames {
            if let Some((module, method)) = frame.label.split_once('!') {
                frame.label = format!("{}!{method}", new_name(module));
            }
        }
        for root in profile.roots() {
            let mut frame = frame_of_root(root);
            frame.label = new_name(&frame.label);
            for end in self.stacks(profile, root, &frame, &frames, unit) {
                if let Some(node) = self.nodes.get_mut(end.node) {
                    node.own_before = node.own_before.saturating_add(end.weight);
                }
            }
        }
    }

    /// Adds the later profile.
    pub fn add_after(&mut self, profile: &Profile, unit: Unit) {
        let frames = frames_of(profile);
        for root in profile.roots() {
            let frame = frame_of_root(root);
            for end in self.stacks(profile, root, &frame, &frames, unit) {
                if let Some(node) = self.nodes.get_mut(end.node) {
                    node.own_after = node.own_after.saturating_add(end.weight);
                }
            }
        }
    }

    /// Scales the earlier profile to the sum of the later one.
    pub fn normalize(&mut self) {
        let before: u64 = self.nodes.iter().map(|node| node.own_before).sum();
        let after: u64 = self.nodes.iter().map(|node| node.own_after).sum();
        for node in &mut self.nodes {
            let product = u128::from(node.own_before) * u128::from(after);
            let scaled = (product + u128::from(before / 2)).checked_div(before.into());
            node.own_before = u64::try_from(scaled.unwrap_or(0)).unwrap_or(u64::MAX);
        }
    }

    /// Adds the nodes of the stacks of a process, and returns where stacks end.
    fn stacks(
        &mut self,
        profile: &Profile,
        root: &Root,
        process: &Frame,
        frames: &[Frame],
        unit: Unit,
    ) -> Vec<StackEnd> {
        let mut ends = Vec::new();
        let mut path: Vec<usize> = Vec::new();
        let nodes = profile.nodes().get(root.first..root.end);
        for node in nodes.unwrap_or_default() {
            path.truncate(node.depth as usize);
            let frame = node.frame.and_then(|frame| frames.get(frame));
            let number = self.child(path.last().copied(), frame.unwrap_or(process));
            path.push(number);
            ends.push(StackEnd {
                node: number,
                weight: unit.of(node.exclusive),
            });
        }
        ends
    }

    /// The node of a frame below another node.
    fn child(&mut self, parent: Option<usize>, frame: &Frame) -> usize {
        let number = self.nodes.len();
        let below = match parent.and_then(|parent| self.nodes.get_mut(parent)) {
            Some(parent) => &mut parent.below,
            None => &mut self.roots,
        };
        if let Some(&number) = below.get(frame) {
            return number;
        }
        below.insert(frame.clone(), number);
        self.nodes.push(Node {
            frame: frame.clone(),
            parent,
            ..Node::default()
        });
        number
    }

    /// Adds the weights of all nodes to the nodes above them.
    fn add_up(&mut self) {
        for node in &mut self.nodes {
            node.before = node.own_before;
            node.after = node.own_after;
        }
        // A node has a larger number than the node above it.
        for number in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get(number) else {
                continue;
            };
            let before = node.before;
            let after = node.after;
            if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(parent)) {
                parent.before = parent.before.saturating_add(before);
                parent.after = parent.after.saturating_add(after);
            }
        }
    }

    /// The nodes with their depths, each before the nodes below it.
    fn in_order(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut open: Vec<Step> = Vec::new();
        for &node in self.roots.values().rev() {
            open.push(Step { node, depth: 0 });
        }
        while let Some(step) = open.pop() {
            steps.push(step);
            let Some(node) = self.nodes.get(step.node) else {
                continue;
            };
            for &below in node.below.values().rev() {
                open.push(Step {
                    node: below,
                    depth: step.depth + 1,
                });
            }
        }
        steps
    }

    /// Writes folded stacks with two numbers, before and after, as `difffolded.pl` of FlameGraph
    /// does: `Orders.exe;Orders.dll!Orders.Cart.Add 12 40`.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_folded(&self, out: impl Write) -> io::Result<()> {
        let mut out = io::BufWriter::new(out);
        let mut line = String::new();
        // The length of the line up to each frame.
        let mut lengths: Vec<usize> = Vec::new();
        for step in self.in_order() {
            let Some(node) = self.nodes.get(step.node) else {
                continue;
            };
            lengths.truncate(step.depth);
            line.truncate(lengths.last().copied().unwrap_or(0));
            if step.depth > 0 {
                line.push(';');
            }
            line.push_str(&clean(&node.frame.label));
            lengths.push(line.len());
            if node.own_before + node.own_after > 0 {
                writeln!(out, "{line} {} {}", node.own_before, node.own_after)?;
            }
        }
        out.flush()
    }

    /// Writes a page with a flame graph of the later profile. Colours show how the own weight of
    /// frames changed.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_flamegraph(&mut self, title: &str, unit: Unit, out: impl Write) -> io::Result<()> {
        self.add_up();
        let roots = self.roots.values();
        let roots = roots.filter_map(|&number| self.nodes.get(number));
        let mut total = 0u64;
        let mut total_before = 0u64;
        for root in roots {
            total = total.saturating_add(root.after);
            total_before = total_before.saturating_add(root.before);
        }
        let mut page = Page::begin(title, out)?;
        page.head(&json!({
            "title": title,
            "unit": unit.name(),
            "total": total,
            "total_before": total_before,
        }))?;
        let steps = self.in_order();
        page.write("\"frames\":[")?;
        let mut numbers: BTreeMap<&Frame, usize> = BTreeMap::new();
        for node in &self.nodes {
            let number = numbers.len();
            if !numbers.contains_key(&node.frame) {
                let comma = if number > 0 { ",\n" } else { "\n" };
                let value = json!([node.frame.label, node.frame.kind]).to_string();
                page.write(&format!("{comma}{}", in_script(&value)))?;
                numbers.insert(&node.frame, number);
            }
        }
        // Depth, frame, weight, and own weights before and after.
        page.write("],\n\"roots\":[],\n\"nodes\":[")?;
        let mut comma = "";
        for step in steps {
            let Some(node) = self.nodes.get(step.node) else {
                continue;
            };
            if !is_visible(node.after, total) {
                continue;
            }
            let frame = numbers.get(&node.frame).copied().unwrap_or(0);
            page.write(&format!(
                "{comma}[{},{frame},{},{},{},{}]",
                step.depth, node.after, node.before, node.own_before, node.own_after
            ))?;
            comma = ",";
        }
        page.end()
    }
}

/// A node with its depth.
#[derive(Clone, Copy, Debug)]
struct Step {
    node: usize,
    depth: usize,
}

/// Where stacks end, with their weight.
#[derive(Clone, Copy, Debug)]
struct StackEnd {
    node: usize,
    weight: u64,
}

fn frame_of_root(root: &Root) -> Frame {
    // Ids of processes differ in each recording.
    let label = match &*root.process_name {
        "" => root.process_label(),
        name => name.to_owned(),
    };
    Frame { label, kind: ROOT }
}

fn frames_of(profile: &Profile) -> Vec<Frame> {
    let frames = profile.frames().iter().enumerate();
    frames
        .map(|(number, frame)| Frame {
            label: profile.label(number),
            kind: frame.kind.name(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(label: &str) -> Frame {
        Frame {
            label: label.to_owned(),
            kind: ROOT,
        }
    }

    #[test]
    fn difference_has_both_numbers_and_sums_of_nodes() {
        let mut difference = StackDifference::default();
        let root = difference.child(None, &frame("Orders.exe"));
        let slow = difference.child(Some(root), &frame("slow"));
        let gone = difference.child(Some(root), &frame("gone;x"));
        difference.nodes[slow].own_before = 1;
        difference.nodes[slow].own_after = 6;
        difference.nodes[gone].own_before = 2;
        let mut folded = Vec::new();
        difference.write_folded(&mut folded).unwrap();
        let expected = "Orders.exe;gone_x 2 0\nOrders.exe;slow 1 6\n";
        assert_eq!(String::from_utf8(folded).unwrap(), expected);
        difference.add_up();
        assert_eq!(
            [difference.nodes[root].before, difference.nodes[root].after],
            [3, 6]
        );
        difference.normalize();
        difference.add_up();
        assert_eq!(
            [difference.nodes[root].before, difference.nodes[slow].before],
            [6, 2]
        );
    }
}
