//! Allocations with their stacks.

use etl_format::read::Record;
use etl_format::{ThreadId, TimeRange};
use foldhash::HashMap;

use super::{Allocations, ObjectType, id};
use crate::behavior::runtime_event;
use crate::machine::{Change, Machine};
use crate::observe::{EventRef, Observer, Stack};
use crate::profile::{Leaf, Profile, ProfileOptions, StackCosts};

/// Collects allocations with their stacks, for a profile in bytes. The type of the objects is the
/// innermost frame.
///
/// ```no_run
/// use etl_analysis::behavior::allocations::StackedAllocations;
/// use etl_analysis::profile::ProfileOptions;
/// use etl_analysis::{Analysis, Recording};
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let mut allocations = StackedAllocations::new();
/// let machine = Analysis::new().with_names().run(&mut recording, &mut allocations)?;
/// let profile = allocations.profile(&machine, &ProfileOptions::new());
/// println!("{} bytes", profile.size(profile.total()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StackedAllocations {
    allocations: Allocations,
    costs: StackCosts,
    leaves: HashMap<ObjectType, Leaf>,
}

impl StackedAllocations {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        StackedAllocations::default()
    }

    /// As [`Allocations::within`].
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        StackedAllocations {
            allocations: self.allocations.within(range),
            ..self
        }
    }

    /// The allocations without their stacks.
    #[must_use]
    pub fn allocations(&self) -> &Allocations {
        &self.allocations
    }

    /// About how many bytes of memory [`StackedAllocations::profile`] takes in addition, at most.
    #[must_use]
    pub fn profile_bytes(&self) -> u64 {
        self.costs.profile_bytes()
    }

    /// The profile of the collected allocations: the events, and the bytes that they state.
    #[must_use]
    pub fn profile(&mut self, machine: &Machine, options: &ProfileOptions) -> Profile {
        // Types may have got their names after the events.
        let mut names = vec![String::new(); self.leaves.len()];
        for (&object, leaf) in &self.leaves {
            if let Some(name) = names.get_mut(leaf.index()) {
                *name = self.allocations.type_name(object);
            }
        }
        self.costs.profile_of_bytes(machine, options, &names)
    }
}

impl Observer for StackedAllocations {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        if !id::is_allocation(id) {
            self.allocations.other(id, record, event);
            return;
        }
        let Some(allocated) = self.allocations.allocation(machine, record, event) else {
            return;
        };
        let next = Leaf::new(self.leaves.len());
        let leaf = *self.leaves.entry(allocated.key.object).or_insert(next);
        let tid = event.tid.unwrap_or(ThreadId::UNKNOWN);
        self.costs.expect(event, event.process, tid);
        self.costs.end_in(event.number, leaf);
        self.costs.cost(event.number, allocated.bytes);
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.costs.change(machine, change, event);
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        self.costs.stack(stack);
    }

    fn restart(&mut self) {
        *self = StackedAllocations::new().within(self.allocations.range);
    }
}
