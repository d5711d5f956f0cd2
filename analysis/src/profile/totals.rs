//! Sums over a call tree: by frame, by module, by process, and around one method.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Profile, Weight};

/// The samples of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Total {
    /// Those in it, or in what it called: each sample once, however often it is on the stack.
    pub inclusive: Weight,
    /// Those in it.
    pub exclusive: Weight,
}

impl Total {
    /// The samples in something and in what it called, and those in itself.
    #[must_use]
    pub fn new(inclusive: Weight, exclusive: Weight) -> Self {
        Total {
            inclusive,
            exclusive,
        }
    }
}

/// The callers and the callees of some frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Focus {
    /// The frames themselves.
    pub total: Total,
    /// The frames that called them, the ones with the most samples first.
    pub callers: Vec<Caller>,
    /// The frames that they called, the ones with the most samples first.
    pub callees: Vec<Callee>,
}

/// A frame that called the frames in [focus](Profile::focus).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller {
    /// Index of the frame; `None` for the beginning of a thread.
    pub frame: Option<usize>,
    /// The samples of its calls.
    pub weight: Weight,
}

/// A frame that the frames in [focus](Profile::focus) called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Callee {
    /// Index of the frame.
    pub frame: usize,
    /// The samples of the calls.
    pub weight: Weight,
}

/// The samples of a frame, from [`Profile::by_frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameTotal {
    /// Index of the frame.
    pub frame: usize,
    /// Its samples.
    pub total: Total,
}

/// The samples of a module, from [`Profile::by_module`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleTotal<'p> {
    /// File name of the module.
    pub module: &'p str,
    /// Its samples.
    pub total: Total,
}

impl Profile {
    /// The samples of each frame, the ones with the most samples first.
    #[must_use]
    pub fn by_frame(&self) -> Vec<FrameTotal> {
        let totals = self.totals(self.frames.len(), Some).into_iter();
        totals
            .map(|(frame, total)| FrameTotal { frame, total })
            .collect()
    }

    /// The samples of each module, by its file name, the ones with the most samples first.
    #[must_use]
    pub fn by_module(&self) -> Vec<ModuleTotal<'_>> {
        let mut numbers = BTreeMap::new();
        let mut names = Vec::new();
        let mut of_frame = Vec::new();
        for frame in &self.frames {
            let name = self.module_name(frame.module);
            let number = *numbers.entry(name.to_lowercase()).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            });
            of_frame.push(number);
        }
        let mut by_module = Vec::new();
        for (number, total) in self.totals(names.len(), |frame| of_frame.get(frame).copied()) {
            if let Some(&module) = names.get(number) {
                by_module.push(ModuleTotal { module, total });
            }
        }
        by_module
    }

    /// Sums by the key of each frame, `count` of them.
    fn totals(&self, count: usize, key: impl Fn(usize) -> Option<usize>) -> Vec<(usize, Total)> {
        let mut totals = vec![Total::default(); count];
        // How often each key is on the stack, and the keys of the stack.
        let mut open = vec![0u32; count];
        let mut stack: Vec<Option<usize>> = Vec::new();
        for node in &self.nodes {
            for left in stack
                .drain((node.depth as usize).min(stack.len())..)
                .flatten()
            {
                if let Some(open) = open.get_mut(left) {
                    *open -= 1;
                }
            }
            let key = node.frame.and_then(&key);
            stack.push(key);
            let Some(key) = key else { continue };
            if let (Some(total), Some(open)) = (totals.get_mut(key), open.get_mut(key)) {
                total.exclusive += node.exclusive;
                if *open == 0 {
                    total.inclusive += node.inclusive;
                }
                *open += 1;
            }
        }
        let mut totals: Vec<_> = totals.into_iter().enumerate().collect();
        totals.retain(|(_, total)| total.inclusive.samples > 0);
        totals.sort_by_key(|(at, total)| (Reverse(total.inclusive), Reverse(total.exclusive), *at));
        totals
    }

    /// The callers and the callees of the frames that `is_focus` selects. A sample counts
    /// once for each: for the caller of the outermost of these frames on its stack, and for each
    /// frame that one of them called.
    #[must_use]
    pub fn focus(&self, is_focus: impl Fn(usize) -> bool) -> Focus {
        let is_focus: Vec<bool> = (0..self.frames.len()).map(is_focus).collect();
        let is_focus = |frame: Option<usize>| {
            frame.is_some_and(|frame| is_focus.get(frame).copied().unwrap_or(false))
        };
        let mut focus = Focus::default();
        let (mut callers, mut callees) = (BTreeMap::new(), BTreeMap::<_, (Weight, usize)>::new());
        let mut outermost_end = 0;
        for (at, node) in self.nodes.iter().enumerate() {
            if !is_focus(node.frame) {
                let parent = node.parent.and_then(|parent| self.nodes.get(parent));
                if let (Some(frame), true) = (node.frame, is_focus(parent.and_then(|p| p.frame))) {
                    let (weight, end) = callees.entry(frame).or_default();
                    // Below another call of the same it was counted with that one.
                    if at >= *end {
                        (*weight, *end) = (*weight + node.inclusive, node.end);
                    }
                }
                continue;
            }
            focus.total.exclusive += node.exclusive;
            if at >= outermost_end {
                outermost_end = node.end;
                focus.total.inclusive += node.inclusive;
                let caller = node.parent.and_then(|parent| self.nodes.get(parent)?.frame);
                *callers.entry(caller).or_insert_with(Weight::default) += node.inclusive;
            }
        }
        for (frame, weight) in callers {
            focus.callers.push(Caller { frame, weight });
        }
        for (frame, (weight, _)) in callees {
            focus.callees.push(Callee { frame, weight });
        }
        // The maps are in the order of frames, and the sort keeps the order of equal weights.
        focus.callers.sort_by_key(|caller| Reverse(caller.weight));
        focus.callees.sort_by_key(|callee| Reverse(callee.weight));
        focus
    }
}
