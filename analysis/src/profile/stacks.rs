//! Stacks of addresses as a tree, so that what stacks have in common is kept once.

use etl_format::{ThreadId, Ticks};
use foldhash::HashMap;

use super::ProcessorInterrupt;
use super::changes::{Changes, Unchanged};
use super::weight::Weight;
use crate::keys::ProcessIndex;

/// Threads whose last stack is kept; a power of two.
const RECENT: usize = 1 << 8;

/// Means no node and no location.
pub(super) const NONE: u32 = u32::MAX;

/// The thread of samples, or what interrupted an idle processor. The process is `None` if it is not
/// known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub process: Option<ProcessIndex>,
    pub tid: ThreadId,
    pub interrupt: Option<ProcessorInterrupt>,
}

/// A process, a thread of an unknown process, and an address.
type Place = (Option<ProcessIndex>, ThreadId, u64);

/// An address of a process, while nothing changes there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    /// Index of the first root that has it: the address belongs to the process of this root.
    pub root: u32,
    pub address: u64,
    /// A time at which it was seen.
    pub time: Ticks,
    from: Ticks,
    to: Ticks,
    /// The state of the changes for which `to` is known.
    state: u64,
}

/// A node of the tree: an address, called from the addresses above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Index of its parent; of a root, [`NONE`].
    pub parent: u32,
    /// Index of its location; of a root, its index among the roots.
    pub location: u32,
    /// The samples that end in it.
    pub weight: Weight,
}

impl Node {
    /// Whether it is the node of a thread, which has no location.
    pub fn is_root(&self) -> bool {
        self.parent == NONE
    }
}

/// The last stack of a thread.
#[derive(Clone, Debug, Default)]
struct Recent {
    owner: Option<Owner>,
    state: u64,
    root: OwnerRoot,
    /// Outermost first.
    frames: Vec<RecentFrame>,
}

/// The root of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OwnerRoot {
    /// Its index among the owners.
    index: u32,
    node: u32,
}

/// A frame of the last stack of a thread.
#[derive(Clone, Copy, Debug)]
struct RecentFrame {
    address: u64,
    node: u32,
    /// When something changes at the address.
    to: Ticks,
}

/// The time of a stack, and the state of the changes that its process sees.
#[derive(Clone, Copy, Debug)]
struct Moment {
    time: Ticks,
    state: u64,
}

/// A location, and the end of the time in which nothing changes there.
struct FoundLocation {
    index: u32,
    to: Ticks,
}

/// All stacks.
#[derive(Clone, Debug)]
pub(super) struct Stacks {
    pub nodes: Vec<Node>,
    pub locations: Vec<Location>,
    pub owners: Vec<Owner>,
    children: HashMap<(u32, u32), u32>,
    latest: HashMap<Place, u32>,
    /// The locations before the latest ones, by the times from which on nothing changed.
    earlier: HashMap<(Place, Ticks), u32>,
    roots: HashMap<Owner, OwnerRoot>,
    recent: Vec<Recent>,
}

impl Default for Stacks {
    fn default() -> Self {
        Stacks {
            nodes: Vec::new(),
            locations: Vec::new(),
            owners: Vec::new(),
            children: HashMap::default(),
            latest: HashMap::default(),
            earlier: HashMap::default(),
            roots: HashMap::default(),
            recent: vec![Recent::default(); RECENT],
        }
    }
}

impl Stacks {
    /// The node of a stack of addresses, outermost first, that was taken at a time.
    pub fn node(
        &mut self,
        owner: Owner,
        addresses: impl Iterator<Item = u64>,
        time: Ticks,
        changes: &Changes,
    ) -> u32 {
        // Thread ids are multiples of four.
        let slot = owner.tid.get() as usize / 4 % RECENT;
        let mut recent = self
            .recent
            .get_mut(slot)
            .map(std::mem::take)
            .unwrap_or_default();
        let state = changes.state(owner.process);
        if recent.owner != Some(owner) {
            recent.frames.clear();
            recent.root = self.root(owner);
        } else if recent.state != state {
            recent.frames.clear();
        }
        recent.owner = Some(owner);
        recent.state = state;
        let root = recent.root;
        let moment = Moment { time, state };
        let mut node = root.node;
        // Whether all frames so far equal the frames of the last stack.
        let mut is_same = true;
        for (depth, address) in addresses.enumerate() {
            match recent.frames.get(depth) {
                Some(frame) if is_same && frame.address == address && time < frame.to => {
                    node = frame.node;
                }
                _ => {
                    if is_same {
                        recent.frames.truncate(depth);
                        is_same = false;
                    }
                    let location = self.location(owner, root.index, address, moment, changes);
                    node = self.child(node, location.index);
                    recent.frames.push(RecentFrame {
                        address,
                        node,
                        to: location.to,
                    });
                }
            }
        }
        if let Some(kept) = self.recent.get_mut(slot) {
            *kept = recent;
        }
        node
    }

    /// Adds a sample that ends in a node.
    pub fn add(&mut self, node: u32, weight: Weight) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.weight += weight;
        }
    }

    /// The root of an owner.
    fn root(&mut self, owner: Owner) -> OwnerRoot {
        let new = OwnerRoot {
            index: index(self.owners.len()),
            node: index(self.nodes.len()),
        };
        let root = *self.roots.entry(owner).or_insert(new);
        if root == new {
            self.owners.push(owner);
            self.nodes.push(Node {
                parent: NONE,
                location: new.index,
                weight: Weight::default(),
            });
        }
        root
    }

    #[inline]
    fn child(&mut self, parent: u32, location: u32) -> u32 {
        let next = index(self.nodes.len());
        let node = *self.children.entry((parent, location)).or_insert(next);
        if node == next {
            self.nodes.push(Node {
                parent,
                location,
                weight: Weight::default(),
            });
        }
        node
    }

    /// The location of an address at a time. `root` is the index of the root of the owner.
    fn location(
        &mut self,
        owner: Owner,
        root: u32,
        address: u64,
        moment: Moment,
        changes: &Changes,
    ) -> FoundLocation {
        let Moment { time, state } = moment;
        // Threads of a process share its addresses.
        let tid = if owner.process.is_some() {
            ThreadId::new(0)
        } else {
            owner.tid
        };
        let key = (owner.process, tid, address);
        let latest = self.latest.get(&key).copied().unwrap_or(NONE);
        let mut since = None;
        if let Some(location) = self.locations.get_mut(latest as usize) {
            if location.state != state {
                location.to = changes.span(owner.process, address, location.time).to;
                location.state = state;
            }
            if location.from <= time && time < location.to {
                return FoundLocation {
                    index: latest,
                    to: location.to,
                };
            }
            since = Some(location.from);
        }
        let Unchanged { from, to } = changes.span(owner.process, address, time);
        if let Some(&index) = self.earlier.get(&(key, from)) {
            return FoundLocation { index, to };
        }
        let new = index(self.locations.len());
        self.locations.push(Location {
            root,
            address,
            time,
            from,
            to,
            state,
        });
        self.latest.insert(key, new);
        if let Some(since) = since {
            self.earlier.insert((key, since), latest);
        }
        FoundLocation { index: new, to }
    }
}

/// A length as an index. No memory holds more than fit into 32 bits.
fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner {
        process: Some(ProcessIndex::new(0)),
        tid: ThreadId::new(8),
        interrupt: None,
    };

    fn parent(stacks: &Stacks, node: u32) -> u32 {
        stacks.nodes[node as usize].parent
    }

    #[test]
    fn stacks_share_what_they_have_in_common() {
        let mut stacks = Stacks::default();
        let changes = Changes::default();
        let mut node =
            |addresses: &[u64], time| stacks.node(OWNER, addresses.iter().copied(), time, &changes);
        let (a, b, c) = (
            node(&[1, 2, 3], Ticks::new(1)),
            node(&[1, 2, 4], Ticks::new(2)),
            node(&[1, 2], Ticks::new(3)),
        );
        assert_eq!(
            (node(&[1, 2, 3], Ticks::new(4)), node(&[], Ticks::new(5))),
            (a, 0)
        );
        assert_eq!([a, b, c].map(|node| parent(&stacks, node)), [c, c, 1]);
        assert_eq!((stacks.nodes.len(), stacks.locations.len()), (5, 4));
    }

    #[test]
    fn an_address_is_another_location_after_a_change() {
        let mut stacks = Stacks::default();
        let mut changes = Changes::default();
        let before = stacks.node(OWNER, [0x1000].into_iter(), Ticks::new(1), &changes);
        changes.code(ProcessIndex::new(0), 0x1000, 16, Ticks::new(5));
        // A sample of before the change may come after it.
        let late = stacks.node(OWNER, [0x1000].into_iter(), Ticks::new(4), &changes);
        let after = stacks.node(OWNER, [0x1000].into_iter(), Ticks::new(6), &changes);
        assert_eq!(late, before);
        assert_ne!(after, before);
        // What comes late finds the location of its own time, whichever is the latest.
        changes.code(ProcessIndex::new(0), 0x1000, 16, Ticks::new(7));
        let mut location = |tid, time| {
            let owner = Owner { tid, ..OWNER };
            let node = stacks.node(owner, [0x1000].into_iter(), time, &changes);
            stacks.nodes[node as usize].location
        };
        let last = location(ThreadId::new(12), Ticks::new(8));
        let locations = [
            location(ThreadId::new(16), Ticks::new(6)),
            location(ThreadId::new(20), Ticks::new(3)),
            location(ThreadId::new(24), Ticks::new(9)),
        ];
        assert_eq!((last, locations), (2, [1, 0, 2]));
        // Elsewhere nothing changed.
        let other = stacks.node(OWNER, [0x9000].into_iter(), Ticks::new(4), &changes);
        assert_eq!(
            stacks.node(OWNER, [0x9000].into_iter(), Ticks::new(6), &changes),
            other
        );
    }
}
