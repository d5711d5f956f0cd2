//! What a CLR knows of the calls of its methods, for tiered compilation.

use std::collections::{BTreeMap, VecDeque};

/// Calls after which a method is compiled again, by the settings of .NET Core 3 to .NET 10.
pub(super) const CALLS: u32 = 30;

/// The methods of a CLR whose calls are counted.
#[derive(Debug, Default)]
pub(crate) struct Tiering {
    /// Whether the script calls methods. Otherwise the script states which methods are compiled
    /// again.
    pub counts_calls: bool,
    /// Whether a delay that began has to be timed.
    pub begins_delay: bool,
    /// Whether calls are not counted yet.
    pub(super) is_delayed: bool,
    /// Whether a method ran for the first time since the delay was timed last.
    pub(super) has_activity: bool,
    /// Methods that ran for the first time during the delay.
    pub(super) new: Vec<usize>,
    /// Calls that methods still need.
    pub(super) calls_left: BTreeMap<usize, u32>,
    /// How often the loops of methods were reported.
    pub(super) reports: BTreeMap<usize, u32>,
    /// Methods that wait for the thread that compiles them again.
    pub(super) queue: VecDeque<usize>,
    /// Whether that thread works.
    pub(super) is_working: bool,
}

impl Tiering {
    /// The delay is over if no method ran for the first time meanwhile. Returns whether it goes on.
    pub fn continues_delay(&mut self) -> bool {
        std::mem::take(&mut self.has_activity)
    }

    /// The number of methods that wait to be compiled again.
    pub fn waiting(&self) -> u32 {
        self.queue.len() as u32
    }

    /// The calls of a method with new code are counted.
    pub fn count_again(&mut self, method: usize) {
        self.calls_left.insert(method, CALLS);
    }

    /// The code of a method is gone.
    pub fn forget(&mut self, method: usize) {
        self.calls_left.remove(&method);
        self.reports.remove(&method);
        self.new.retain(|new| *new != method);
        self.queue.retain(|waiting| *waiting != method);
    }

    /// Counts calls. Returns whether the method now has enough.
    pub(super) fn count(&mut self, method: usize, times: u32) -> bool {
        let Some(left) = self.calls_left.get_mut(&method) else {
            return false;
        };
        *left = left.saturating_sub(times);
        if *left > 0 {
            return false;
        }
        self.calls_left.remove(&method);
        self.queue.push_back(method);
        true
    }

    /// Whether the thread that compiles methods again has to begin. It pauses during a delay.
    pub(super) fn begins_work(&mut self) -> bool {
        if self.is_delayed || self.is_working || self.queue.is_empty() {
            return false;
        }
        self.is_working = true;
        true
    }
}
