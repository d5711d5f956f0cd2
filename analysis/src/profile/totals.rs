//! Sums over a call tree: by frame, by module, by process, and around one method.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Profile, Weight};

/// The samples of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Total {
    /// Samples in it or in what it called. A sample is counted once, even if it is several times on
    /// the stack.
    pub inclusive: Weight,
    /// Samples in it.
    pub exclusive: Weight,
}

impl Total {
    /// The samples in something with what it called, and the samples in it alone.
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

/// The samples of a callee while they are counted.
#[derive(Clone, Copy, Debug, Default)]
struct CalleeSum {
    weight: Weight,
    /// Index after the last node of the call that was counted last.
    end: usize,
}

fn has_focus(in_focus: &[bool], frame: Option<usize>) -> bool {
    match frame {
        Some(frame) => in_focus.get(frame) == Some(&true),
        None => false,
    }
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
        totals.sort_by_key(|(_, total)| (Reverse(total.inclusive), Reverse(total.exclusive)));
        totals
    }

    /// The callers and the callees of the frames that `is_focus` selects. A sample is counted once
    /// for the caller of the outermost of these frames on its stack, and once for each frame that
    /// one of them called.
    #[must_use]
    pub fn focus(&self, is_focus: impl Fn(usize) -> bool) -> Focus {
        let in_focus: Vec<bool> = (0..self.frames.len()).map(is_focus).collect();
        let mut focus = Focus::default();
        let mut callers: BTreeMap<Option<usize>, Weight> = BTreeMap::new();
        let mut callees: BTreeMap<usize, CalleeSum> = BTreeMap::new();
        let mut outermost_end = 0;
        for (index, node) in self.nodes.iter().enumerate() {
            let caller = node.parent.and_then(|parent| self.nodes.get(parent)?.frame);
            if has_focus(&in_focus, node.frame) {
                focus.total.exclusive += node.exclusive;
                if index >= outermost_end {
                    outermost_end = node.end;
                    focus.total.inclusive += node.inclusive;
                    *callers.entry(caller).or_default() += node.inclusive;
                }
            } else if let Some(frame) = node.frame
                && has_focus(&in_focus, caller)
            {
                let callee = callees.entry(frame).or_default();
                // Below another call of the same frame, it was counted with that call.
                if index >= callee.end {
                    callee.weight += node.inclusive;
                    callee.end = node.end;
                }
            }
        }
        for (frame, weight) in callers {
            focus.callers.push(Caller { frame, weight });
        }
        for (frame, callee) in callees {
            let weight = callee.weight;
            focus.callees.push(Callee { frame, weight });
        }
        // The maps are in the order of frames, and the sort keeps the order of equal weights.
        focus.callers.sort_by_key(|caller| Reverse(caller.weight));
        focus.callees.sort_by_key(|callee| Reverse(callee.weight));
        focus
    }
}
