//! Costs of events by their stacks: how long threads waited, and where.

use std::collections::BTreeMap;

use etl_format::{Clock, ThreadId, Ticks};

use super::collector::SampleCollector;
use super::stacks::Owner;
use super::{Measure, Profile, ProfileOptions, Weight};
use crate::keys::ProcessIndex;
use crate::machine::{Change, Machine};
use crate::observe::{EventRef, Observer, Stack};

/// Events that can wait for their stack or for their cost; others are counted without a stack.
const MAX_PENDING: usize = 1 << 16;

/// Where the addresses of leaves begin: no processor has code there.
const LEAVES: u64 = 1 << 56;

/// A name in place of the innermost address of a stack: the type of an allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf(u32);

impl Leaf {
    /// The leaf with this index in a list of names.
    #[must_use]
    pub fn new(index: usize) -> Self {
        Leaf(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Its index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The leaf at an address; `None` for addresses of code.
    pub(super) fn at(address: u64) -> Option<Self> {
        let index = address.checked_sub(LEAVES)?;
        u32::try_from(index).ok().map(Leaf)
    }

    fn address(self) -> u64 {
        LEAVES + u64::from(self.0)
    }
}

/// An event whose stack or whose cost is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    owner: Owner,
    time: Ticks,
    ticks: Option<u64>,
    node: Option<u32>,
    leaf: Option<Leaf>,
}

/// Adds up costs by stack, for a [`Profile`]. The cost of an event may be known before its stack
/// or after it.
///
/// Memory grows with the distinct stacks, and with the events whose cost is not known yet.
#[derive(Clone, Debug, Default)]
pub struct StackCosts {
    stacks: SampleCollector,
    pending: BTreeMap<u64, Pending>,
}

impl StackCosts {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        StackCosts::default()
    }

    /// About how many bytes of memory [`StackCosts::profile`] takes in addition, at most.
    #[must_use]
    pub fn profile_bytes(&self) -> u64 {
        self.stacks.profile_bytes()
    }

    /// The stack of an event is needed, for the thread `tid` of a process.
    pub fn expect(&mut self, event: &EventRef, process: Option<ProcessIndex>, tid: ThreadId) {
        if self.pending.len() >= MAX_PENDING {
            self.settle_early();
        }
        let owner = Owner {
            process,
            tid,
            interrupt: None,
        };
        let new = Pending {
            owner,
            time: event.time,
            ticks: None,
            node: None,
            leaf: None,
        };
        self.pending.insert(event.number, new);
    }

    /// The cost of an event that was [expected](Self::expect), by its number, in ticks.
    pub fn cost(&mut self, number: u64, ticks: u64) {
        let Some(pending) = self.pending.get_mut(&number) else {
            return;
        };
        pending.ticks = Some(ticks);
        if pending.node.is_some()
            && let Some(pending) = self.pending.remove(&number)
        {
            self.settle(pending);
        }
    }

    /// The stack of an event that was [expected](Self::expect), by its number, ends in this leaf.
    pub fn end_in(&mut self, number: u64, leaf: Leaf) {
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.leaf = Some(leaf);
        }
    }

    /// The cost of an event that was [expected](Self::expect), by its number, is not counted.
    pub fn forget(&mut self, number: u64) {
        self.pending.remove(&number);
    }

    /// Notes a change of the machine.
    pub fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.stacks.change(machine, change, event);
    }

    /// Keeps the stack of an event, if the event was expected.
    pub fn stack(&mut self, stack: &Stack<'_>) {
        let number = stack.event.number;
        // Stacks come in the order of their events: the events before have none.
        while let Some(first) = self.pending.first_entry()
            && *first.key() < number
            && first.get().ticks.is_some()
        {
            let first = first.remove();
            self.settle(first);
        }
        let Some(mut pending) = self.pending.remove(&number) else {
            return;
        };
        let leaf = pending.leaf.map(Leaf::address);
        let addresses = stack.frames.iter().rev().chain(leaf);
        pending.node = Some(self.stacks.node(pending.owner, addresses, pending.time));
        self.stacks.with_stack += 1;
        match pending.ticks {
            Some(_) => self.settle(pending),
            None => {
                self.pending.insert(number, pending);
            }
        }
    }

    /// Counts events without their stacks, and forgets the oldest events without a cost.
    fn settle_early(&mut self) {
        for (number, pending) in std::mem::take(&mut self.pending) {
            if pending.ticks.is_some() {
                self.settle(pending);
            } else {
                self.pending.insert(number, pending);
            }
        }
        // Drops half of them: to drop one would mean to look at all for each event that follows.
        while self.pending.len() > MAX_PENDING / 2 {
            self.pending.pop_first();
        }
    }

    /// Adds the cost of an event to its stack, or to no stack.
    fn settle(&mut self, pending: Pending) {
        let Some(ticks) = pending.ticks else { return };
        let leaf = pending.leaf.map(Leaf::address).into_iter();
        let node = pending
            .node
            .unwrap_or_else(|| self.stacks.node(pending.owner, leaf, pending.time));
        self.stacks.stacks.add(
            node,
            Weight {
                samples: 1,
                time: ticks,
            },
        );
    }

    /// Adds the costs of all events that still wait for their stacks.
    fn settle_all(&mut self) {
        while let Some((_, pending)) = self.pending.pop_first() {
            self.settle(pending);
        }
    }

    /// The costs as a profile: each event is counted once, with its cost as time.
    #[must_use]
    pub fn profile(&mut self, machine: &Machine, options: &ProfileOptions) -> Profile {
        self.settle_all();
        let mut profile = self.stacks.profile(machine, options);
        profile.measure = Measure::Durations;
        let clock = machine.clock();
        for node in &mut profile.nodes {
            for weight in [&mut node.inclusive, &mut node.exclusive] {
                weight.time = duration(clock, weight.time);
            }
        }
        profile
    }

    /// The costs as a profile of bytes: each event is counted once, with its cost as bytes.
    /// `leaves` are the names of [leaves](Leaf).
    #[must_use]
    pub fn profile_of_bytes(
        &mut self,
        machine: &Machine,
        options: &ProfileOptions,
        leaves: &[String],
    ) -> Profile {
        self.settle_all();
        let mut profile = self.stacks.profile_with_leaves(machine, options, leaves);
        profile.measure = Measure::Bytes;
        profile
    }
}

/// Ticks of a clock in 100 ns.
fn duration(clock: &Clock, ticks: u64) -> u64 {
    let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
    u64::try_from(clock.duration(Ticks::new(0), Ticks::new(ticks))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::EventKind;

    #[test]
    fn events_without_a_cost_are_dropped_many_at_a_time() {
        let mut costs = StackCosts::new();
        let mut expect = |number| {
            let process = Some(ProcessIndex::new(0));
            let event = EventRef {
                number,
                file: 0,
                session: 0,
                time: Ticks::new(number as i64),
                kind: EventKind::Other,
                process,
                tid: Some(ThreadId::new(8)),
                processor: 0,
            };
            let before = costs.pending.len();
            costs.expect(&event, process, ThreadId::new(8));
            // As a wait that ended just now: it is counted, and makes little space.
            costs.cost(number - number % 2, 1);
            costs.pending.len() <= before
        };
        let dropped = (0..4 * MAX_PENDING as u64)
            .filter(|&number| expect(number))
            .count();
        assert!((1..16).contains(&dropped), "{dropped}");
    }
}
