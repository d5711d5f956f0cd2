//! Folds the recursion of call trees: a method that calls itself is one node.

use foldhash::HashMap;

use super::Profile;
use super::build::Growing;
use super::stacks::NONE;

/// The longest sequence of frames that is folded.
const MAX_CYCLE: usize = 8;

impl Profile {
    /// The profile with trees in which frames that call themselves are one node: `A`, `A`, `B` is
    /// `A`, `B`, and `A`, `B`, `A`, `B`, `C` is `A`, `B`, `C`, for cycles of up to 8 frames. Each
    /// stack keeps at least one of each of its frames, so that no sum changes.
    #[must_use]
    pub fn fold_recursion(&self) -> Profile {
        let mut tree: Vec<Growing> = Vec::new();
        let mut children: HashMap<(u32, usize), u32> = HashMap::default();
        let mut mapped = vec![NONE; self.nodes.len()];
        for (root_index, root) in self.roots.iter().enumerate() {
            let nodes = self.nodes.get(root.first..root.end).unwrap_or_default();
            for (index, node) in (root.first..).zip(nodes) {
                let parent = node.parent.and_then(|parent| mapped.get(parent).copied());
                let parent = parent.unwrap_or(NONE);
                let frame = node.frame.unwrap_or(root_index);
                let new = tree.len() as u32;
                let number = match repeated(&tree, parent, frame) {
                    Some(number) => number,
                    None if parent == NONE => new,
                    None => *children.entry((parent, frame)).or_insert(new),
                };
                match tree.get_mut(number as usize) {
                    Some(known) => known.weight += node.exclusive,
                    None => tree.push(Growing {
                        parent,
                        frame,
                        weight: node.exclusive,
                    }),
                }
                if let Some(mapped) = mapped.get_mut(index) {
                    *mapped = number;
                }
            }
        }
        let mut folded = Profile {
            nodes: Vec::new(),
            ..self.clone()
        };
        let places = folded.arrange(&tree);
        for stack in &mut folded.stacks {
            let place = place_of(*stack as usize, &mapped, &places);
            *stack = place.map_or(NONE, |place| place as u32);
        }
        for sample in &mut folded.samples {
            sample.node = place_of(sample.node, &mapped, &places).unwrap_or(usize::MAX);
        }
        folded
    }
}

/// The place of a node in the folded profile. `mapped` has the nodes of the new tree for the nodes
/// of the profile, and `places` has the places of these.
fn place_of(node: usize, mapped: &[u32], places: &[usize]) -> Option<usize> {
    let &number = mapped.get(node)?;
    places.get(number as usize).copied()
}

/// If the frame that a node calls ends the repetition of a cycle, returns the node of this frame in
/// the first cycle.
fn repeated(tree: &[Growing], parent: u32, frame: usize) -> Option<u32> {
    // The frames from the new one upwards, and the nodes of all but the new one.
    let mut frames = vec![frame];
    let mut nodes = Vec::new();
    let mut number = parent;
    while let Some(node) = tree.get(number as usize)
        && node.parent != NONE
        && frames.len() < 2 * MAX_CYCLE
    {
        frames.push(node.frame);
        nodes.push(number);
        number = node.parent;
    }
    for length in 1..=frames.len() / 2 {
        let (last, before) = frames.split_at(length);
        if before.starts_with(last) {
            return nodes.get(length - 1).copied();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{Frame, FrameKind, Root, Weight};

    /// A profile of one process with these stacks, outermost frames first.
    fn profile(stacks: &[Vec<usize>]) -> Profile {
        let weight = |samples| Weight {
            samples,
            time: samples * 10,
        };
        let mut tree = vec![Growing {
            parent: NONE,
            frame: 0,
            weight: weight(0),
        }];
        for stack in stacks {
            let mut at = 0;
            for &frame in stack {
                let is_child = |node: &Growing| (node.parent, node.frame) == (at, frame);
                at = match tree.iter().position(is_child) {
                    Some(known) => known as u32,
                    None => {
                        tree.push(Growing {
                            parent: at,
                            frame,
                            weight: weight(0),
                        });
                        (tree.len() - 1) as u32
                    }
                };
            }
            tree[at as usize].weight += weight(1);
        }
        let frame = |name: usize| Frame {
            module: 0,
            method: name.to_string().into(),
            kind: FrameKind::Managed,
            tier: 0,
            address: None,
            file: None,
            line: None,
        };
        let frames = (0..10).map(frame).collect();
        let mut profile = Profile {
            roots: vec![Root::default()],
            frames,
            ..Profile::default()
        };
        profile.arrange(&tree);
        profile
    }

    /// The stacks of a profile with their samples.
    fn stacks(profile: &Profile) -> Vec<(Vec<usize>, u64)> {
        let mut path = Vec::new();
        let mut stacks = Vec::new();
        for node in profile.nodes() {
            path.truncate(node.depth.saturating_sub(1) as usize);
            path.extend(node.frame);
            if node.exclusive.samples > 0 {
                stacks.push((path.clone(), node.exclusive.samples));
            }
        }
        stacks.sort();
        stacks
    }

    #[test]
    fn methods_that_call_themselves_are_one_node() {
        let recursive = [vec![1, 1, 1, 2], vec![1, 1, 2], vec![1, 2, 2, 3]];
        let folded = profile(&recursive).fold_recursion();
        assert_eq!(stacks(&folded), [(vec![1, 2], 2), (vec![1, 2, 3], 1)]);
        // Both call each other; the last of them calls another one.
        let mutual = [vec![1, 2, 1, 2, 3], vec![1, 2, 1], vec![1, 2, 1, 2, 1, 4]];
        let folded = profile(&mutual).fold_recursion();
        let expected = [
            (vec![1, 2, 1], 1),
            (vec![1, 2, 1, 4], 1),
            (vec![1, 2, 3], 1),
        ];
        assert_eq!(stacks(&folded), expected);
    }

    proptest! {
        #[test]
        fn folded_trees_have_the_same_sums(
            stacks in prop::collection::vec(prop::collection::vec(0..3usize, 0..20), 0..12),
        ) {
            let whole = profile(&stacks);
            let folded = whole.fold_recursion();
            prop_assert_eq!(folded.total(), whole.total());
            prop_assert_eq!(folded.by_frame(), whole.by_frame());
            prop_assert_eq!(folded.by_module(), whole.by_module());
            for (path, _) in super::tests::stacks(&folded) {
                for length in 1..=MAX_CYCLE {
                    let repeats = path.windows(2 * length).any(|w| w[..length] == w[length..]);
                    prop_assert!(!repeats, "{path:?}");
                }
            }
        }
    }
}
