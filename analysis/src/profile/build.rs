//! Makes the profile of what was collected: names for addresses, and one tree of frames.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use etl_format::{ProcessId, ThreadId};
use foldhash::HashMap;

use super::code::CodeSource;
use super::collector::SampleCollector;
use super::costs::Leaf;
use super::frames::{Detail, FrameKey, FrameTable, UNKNOWN};
use super::il_maps::IlMaps;
use super::interrupt::ProcessorInterrupt;
use super::locations::Locations;
use super::stacks::{NONE, Node, Owner, Stacks};
use super::tree::{CallNode, Root, TimedSample};
use super::{Profile, Weight};
use crate::keys::ProcessIndex;
use crate::machine::Machine;

/// Id of the idle process, whose threads run if no other thread does.
const IDLE: u32 = 0;

/// What a profile is made of.
///
/// ```
/// use std::collections::BTreeSet;
///
/// use etl_analysis::ProcessIndex;
/// use etl_analysis::profile::{Detail, ProfileOptions};
/// use etl_format::{ProcessId, ThreadId};
///
/// let options = ProfileOptions::new()
///     .detail(Detail::Lines)
///     .by_thread()
///     .processes(BTreeSet::from([ProcessIndex::new(3)]));
/// let selected = Some(ProcessIndex::new(3));
/// assert!(options.admits(selected, Some(ProcessId::new(4312)), ThreadId::new(4316)));
/// let other = Some(ProcessIndex::new(5));
/// assert!(!options.admits(other, Some(ProcessId::new(700)), ThreadId::new(704)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProfileOptions {
    detail: Detail,
    by_thread: bool,
    processes: Option<BTreeSet<ProcessIndex>>,
    threads: Vec<ThreadId>,
    idle: bool,
    code_source: Option<Arc<dyn CodeSource>>,
    il_maps: Option<Arc<IlMaps>>,
}

impl ProfileOptions {
    /// All processes but the idle one, each as one tree of methods, and what interrupted idle
    /// processors.
    #[must_use]
    pub fn new() -> Self {
        ProfileOptions::default()
    }

    /// Which code is one frame.
    #[must_use]
    pub fn detail(self, detail: Detail) -> Self {
        ProfileOptions { detail, ..self }
    }

    /// Builds a separate tree for each thread.
    #[must_use]
    pub fn by_thread(self) -> Self {
        ProfileOptions {
            by_thread: true,
            ..self
        }
    }

    /// Only these processes.
    #[must_use]
    pub fn processes(self, processes: BTreeSet<ProcessIndex>) -> Self {
        ProfileOptions {
            processes: Some(processes),
            ..self
        }
    }

    /// Only the threads with these ids; all if there is none.
    #[must_use]
    pub fn threads(self, threads: Vec<ThreadId>) -> Self {
        ProfileOptions { threads, ..self }
    }

    /// Includes the samples of idle processors.
    #[must_use]
    pub fn with_idle(self) -> Self {
        ProfileOptions { idle: true, ..self }
    }

    /// Names functions of images, and source lines. Each profile asks it once, for all its code.
    #[must_use]
    pub fn code_source(self, source: Arc<dyn CodeSource>) -> Self {
        ProfileOptions {
            code_source: Some(source),
            ..self
        }
    }

    /// The maps from native code to IL, which are an observer of the same pass. Without them, the
    /// source line of a method is the line at which it begins.
    #[must_use]
    pub fn il_maps(self, maps: IlMaps) -> Self {
        ProfileOptions {
            il_maps: Some(Arc::new(maps)),
            ..self
        }
    }

    /// Whether the samples of a thread are part of the profile.
    #[must_use]
    pub fn admits(
        &self,
        process: Option<ProcessIndex>,
        pid: Option<ProcessId>,
        tid: ThreadId,
    ) -> bool {
        let is_process = match &self.processes {
            Some(processes) => process.is_some_and(|process| processes.contains(&process)),
            None => self.idle || pid != Some(ProcessId::new(IDLE)),
        };
        is_process && (self.threads.is_empty() || self.threads.contains(&tid))
    }

    /// Whether what interrupted idle processors is part of the profile: not if the profile has only
    /// some threads, or only other processes than the idle process, which `idle` is.
    #[must_use]
    pub fn admits_interrupts(&self, idle: Option<ProcessIndex>) -> bool {
        let is_process = match &self.processes {
            Some(processes) => idle.is_some_and(|idle| processes.contains(&idle)),
            None => true,
        };
        is_process && self.threads.is_empty()
    }
}

/// A node of the tree of frames while it grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growing {
    pub parent: u32,
    /// Index of the frame, or of the root.
    pub frame: usize,
    pub weight: Weight,
}

/// Bytes of memory that a profile takes, at most, for each collected node of a stack, for each
/// address, and for each sample.
mod bytes {
    pub const NODE: u64 = 192;
    pub const LOCATION: u64 = 384;
    pub const SAMPLE: u64 = 40;
}

impl SampleCollector {
    /// About how many bytes of memory [`SampleCollector::profile`] takes in addition to the
    /// collected samples, at most.
    #[must_use]
    pub fn profile_bytes(&self) -> u64 {
        let nodes = self.stacks.nodes.len() as u64 * bytes::NODE;
        let locations = self.stacks.locations.len() as u64 * bytes::LOCATION;
        nodes + locations + self.kept.len() as u64 * bytes::SAMPLE
    }

    /// The number of distinct addresses in the collected stacks.
    #[must_use]
    pub fn addresses(&self) -> u64 {
        self.stacks.locations.len() as u64
    }

    /// The profile of what was collected, with names from the whole recording. `machine` is the
    /// machine of the same pass, with [names](crate::Analysis::with_names).
    #[must_use]
    pub fn profile(&self, machine: &Machine, options: &ProfileOptions) -> Profile {
        self.profile_with_leaves(machine, options, &[])
    }

    /// The same, with these names of leaves.
    pub(super) fn profile_with_leaves(
        &self,
        machine: &Machine,
        options: &ProfileOptions,
        leaves: &[String],
    ) -> Profile {
        let mut locations = Locations::new(machine, &self.stacks);
        if let Some(source) = &options.code_source {
            locations.name(&self.stacks, &**source, options.il_maps.as_deref());
        }
        let mut builder = Builder::new(machine, options, &self.stacks, &locations);
        builder.leaves = leaves;
        builder.add_nodes();
        let Builder {
            idle,
            roots,
            table,
            tree,
            mapped,
            children,
            ..
        } = builder;
        // The largest tables do not live at the same time.
        drop(children);
        let mut profile = Profile {
            with_stack: self.with_stack,
            idle,
            roots,
            frames: table.frames.into_iter().collect(),
            modules: table.modules,
            ..Profile::default()
        };
        if let Some(span) = self.sampled {
            profile.intervals = self.intervals.between(span);
            profile.is_thread_time = self.intervals.are_of_all_threads();
        }
        let places = profile.arrange(&tree);
        drop(tree);
        profile.stacks.reserve_exact(mapped.len());
        profile.samples.reserve_exact(self.kept.len());
        for &node in &mapped {
            let place = places.get(node as usize);
            profile
                .stacks
                .push(place.map_or(NONE, |&place| place as u32));
        }
        for kept in &self.kept {
            let node = mapped.get(kept.node as usize);
            let node = node.copied().unwrap_or(NONE);
            if let Some(&place) = places.get(node as usize) {
                profile.samples.push(TimedSample {
                    time: kept.time,
                    node: place,
                    weight: self.weight(kept.time),
                    processor: kept.processor,
                });
            }
        }
        for root in &mut profile.roots {
            if let Some(interrupt) = root.interrupt {
                root.process_name = interrupt.to_string().into();
                continue;
            }
            let process = root.process.and_then(|index| machine.process(index));
            root.process_name = process.map_or("", |process| process.name()).into();
            let tid = root.tid;
            let thread = tid.and_then(|tid| machine.thread_of(root.process, tid));
            root.thread_name = thread.map_or("", |thread| &thread.name).into();
        }
        profile
    }
}

/// Makes the tree of frames from the tree of collected addresses.
struct Builder<'b> {
    machine: &'b Machine,
    options: &'b ProfileOptions,
    stacks: &'b Stacks,
    locations: &'b Locations<'b>,
    leaves: &'b [String],
    table: FrameTable,
    /// The frame of each location; `usize::MAX` until it is needed.
    frames: Vec<usize>,
    /// Frames of functions that were inlined at a location, outermost first.
    inlined: HashMap<u32, Rc<[usize]>>,
    tree: Vec<Growing>,
    /// Nodes of the tree by parent and frame.
    children: HashMap<(u32, usize), u32>,
    roots: Vec<Root>,
    /// Nodes of the roots by process, by interrupt, and by thread if each thread has a tree.
    root_nodes: HashMap<RootKey, u32>,
    /// The node of the tree for each collected node, which comes after its parent.
    mapped: Vec<u32>,
    /// The weight of idle processors.
    idle: Weight,
}

/// A process or what interrupted an idle processor, and a thread if each thread has a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RootKey {
    process: Option<ProcessIndex>,
    tid: Option<ThreadId>,
    interrupt: Option<ProcessorInterrupt>,
}

impl<'b> Builder<'b> {
    fn new(
        machine: &'b Machine,
        options: &'b ProfileOptions,
        stacks: &'b Stacks,
        locations: &'b Locations<'b>,
    ) -> Self {
        let mut children = HashMap::default();
        children.reserve(stacks.nodes.len());
        Builder {
            machine,
            options,
            stacks,
            locations,
            leaves: &[],
            table: FrameTable::default(),
            frames: vec![usize::MAX; stacks.locations.len()],
            inlined: HashMap::default(),
            tree: Vec::new(),
            children,
            roots: Vec::new(),
            root_nodes: HashMap::default(),
            mapped: vec![NONE; stacks.nodes.len()],
            idle: Weight::default(),
        }
    }

    /// Adds the collected nodes that the options select.
    fn add_nodes(&mut self) {
        let owners = &self.locations.owners;
        let is_idle_owner: Vec<bool> = owners.iter().map(|owner| self.is_idle(owner)).collect();
        let mut is_idle_node = vec![false; self.stacks.nodes.len()];
        for (index, node) in self.stacks.nodes.iter().enumerate() {
            let is_idle = match is_idle_node.get(node.parent as usize) {
                Some(&parent) => parent,
                None => is_idle_owner.get(node.location as usize) == Some(&true),
            };
            if is_idle {
                self.idle += node.weight;
                if let Some(is_idle_node) = is_idle_node.get_mut(index) {
                    *is_idle_node = true;
                }
            }
            let number = if node.is_root() {
                self.root(node.location)
            } else {
                self.node(node)
            };
            let Some(number) = number else { continue };
            if let Some(mapped) = self.mapped.get_mut(index) {
                *mapped = number;
            }
            if let Some(growing) = self.tree.get_mut(number as usize) {
                growing.weight += node.weight;
            }
        }
    }

    fn is_idle(&self, owner: &Owner) -> bool {
        if owner.interrupt.is_some() {
            return false;
        }
        let process = owner.process.and_then(|index| self.machine.process(index));
        process.is_some_and(|process| process.pid() == IDLE)
    }

    /// The node of the tree for a root, by its index among the owners; `None` if the options do not
    /// select its process and thread.
    fn root(&mut self, owner: u32) -> Option<u32> {
        let &Owner {
            process,
            tid,
            interrupt,
        } = self.locations.owners.get(owner as usize)?;
        let of_machine = process.and_then(|index| self.machine.process(index));
        let pid = of_machine.map(|process| process.pid());
        let is_admitted = match interrupt {
            Some(_) => self.options.admits_interrupts(process),
            None => self.options.admits(process, pid, tid),
        };
        if !is_admitted {
            return None;
        }
        let tid = if self.options.by_thread && interrupt.is_none() {
            Some(tid)
        } else {
            None
        };
        let key = RootKey {
            process,
            tid,
            interrupt,
        };
        if let Some(&number) = self.root_nodes.get(&key) {
            return Some(number);
        }
        let number = self.tree.len() as u32;
        self.tree.push(Growing {
            parent: NONE,
            frame: self.roots.len(),
            weight: Weight::default(),
        });
        self.roots.push(Root {
            process,
            pid,
            tid,
            interrupt,
            ..Root::default()
        });
        self.root_nodes.insert(key, number);
        Some(number)
    }

    /// The node of the tree for a collected node; `None` if its parent has none.
    fn node(&mut self, node: &Node) -> Option<u32> {
        let parent = *self.mapped.get(node.parent as usize)?;
        if parent == NONE {
            return None;
        }
        let frame = self.frame(node.location)?;
        let mut number = self.child(parent, frame);
        if let Some(inlined) = self.inlined.get(&node.location).cloned() {
            for &frame in &*inlined {
                number = self.child(number, frame);
            }
        }
        Some(number)
    }

    /// The frame of a location, by its index.
    fn frame(&mut self, index: u32) -> Option<usize> {
        let known = *self.frames.get(index as usize)?;
        if known != usize::MAX {
            return Some(known);
        }
        let location = self.stacks.locations.get(index as usize)?;
        if let Some(name) =
            Leaf::at(location.address).and_then(|leaf| self.leaves.get(leaf.index()))
        {
            return Some(self.table.type_number(name));
        }
        let symbol = self.locations.symbol(index as usize, location);
        let symbol = symbol.as_ref();
        let names = self.locations.names(index as usize, location, symbol);
        let key = FrameKey {
            symbol,
            address: location.address,
            is_kernel: location.address >= self.machine.kernel_begins(),
            function: names.functions.first(),
            line: names.line,
        };
        let frame = self.table.number(&key, self.options.detail);
        if let Some(inner @ [_, ..]) = names.functions.get(1..) {
            let mut numbers = Vec::with_capacity(inner.len());
            for function in inner {
                let key = FrameKey {
                    function: Some(function),
                    line: None,
                    ..key
                };
                numbers.push(self.table.number(&key, self.options.detail));
            }
            self.inlined.insert(index, numbers.into());
        }
        if let Some(known) = self.frames.get_mut(index as usize) {
            *known = frame;
        }
        Some(frame)
    }

    /// The child of a node for a frame.
    fn child(&mut self, parent: u32, frame: usize) -> u32 {
        if self.continues(parent, frame) {
            return parent;
        }
        let next = self.tree.len() as u32;
        let number = *self.children.entry((parent, frame)).or_insert(next);
        if number == next {
            self.tree.push(Growing {
                parent,
                frame,
                weight: Weight::default(),
            });
        }
        number
    }

    /// Whether a frame belongs to the same node as its caller: addresses of one image without a
    /// known method that follow each other are one frame.
    fn continues(&self, parent: u32, frame: usize) -> bool {
        let Some(caller) = self.tree.get(parent as usize) else {
            return false;
        };
        let is_same = caller.parent != NONE && caller.frame == frame;
        if !is_same || !matches!(self.options.detail, Detail::Methods | Detail::Lines) {
            return false;
        }
        let frame = self.table.frames.get_index(frame);
        frame.is_some_and(|frame| !frame.kind.is_managed() && &*frame.method == UNKNOWN)
    }
}

impl Profile {
    /// Arranges nodes, which come after their parents, so that the nodes below a node follow it,
    /// the heaviest first. Returns their new places.
    pub(super) fn arrange(&mut self, tree: &[Growing]) -> Vec<usize> {
        let sums = Sums::new(tree);
        self.nodes.reserve_exact(tree.len());
        let mut roots = Vec::new();
        for (index, node) in (0..).zip(tree) {
            if node.parent == NONE {
                roots.push(index);
            }
        }
        roots.sort_by_key(|&root| sums.rank(root));
        let mut places = vec![usize::MAX; tree.len()];
        let mut unordered: Vec<Option<Root>> = self.roots.drain(..).map(Some).collect();
        for root in roots {
            let first = self.nodes.len();
            self.arrange_below(tree, root, &sums, &mut places);
            let index = tree.get(root as usize).map_or(0, |node| node.frame);
            if let Some(mut root) = unordered.get_mut(index).and_then(Option::take) {
                root.first = first;
                root.end = self.nodes.len();
                self.roots.push(root);
            }
        }
        places
    }

    /// Adds a root and the nodes below it.
    fn arrange_below(&mut self, tree: &[Growing], root: u32, sums: &Sums, places: &mut [usize]) {
        let mut open = vec![Visit::Enter {
            index: root,
            depth: 0,
        }];
        while let Some(visit) = open.pop() {
            let (index, depth) = match visit {
                Visit::Enter { index, depth } => (index, depth),
                Visit::Leave { place } => {
                    let end = self.nodes.len();
                    if let Some(node) = self.nodes.get_mut(place) {
                        node.end = end;
                    }
                    continue;
                }
            };
            let Some(node) = tree.get(index as usize) else {
                continue;
            };
            let place = self.nodes.len();
            if let Some(to) = places.get_mut(index as usize) {
                *to = place;
            }
            self.nodes.push(CallNode {
                parent: places.get(node.parent as usize).copied(),
                frame: if depth > 0 { Some(node.frame) } else { None },
                depth,
                exclusive: node.weight,
                inclusive: sums.inclusive(index),
                end: 0,
            });
            open.push(Visit::Leave { place });
            for &child in sums.below(index).iter().rev() {
                open.push(Visit::Enter {
                    index: child,
                    depth: depth + 1,
                });
            }
        }
    }
}

/// A step of a walk through a tree.
enum Visit {
    Enter { index: u32, depth: u32 },
    Leave { place: usize },
}

/// The sums of a tree, and the children of its nodes.
struct Sums {
    /// The weight of each node with the nodes below it.
    inclusive: Vec<Weight>,
    /// The children of all nodes, by node; the heaviest child of a node is its first.
    children: Vec<u32>,
    /// The end of each node's children.
    ends: Vec<u32>,
}

impl Sums {
    fn new(tree: &[Growing]) -> Self {
        let mut sums = Sums {
            inclusive: tree.iter().map(|node| node.weight).collect(),
            children: Vec::new(),
            ends: vec![0; tree.len()],
        };
        for (index, node) in tree.iter().enumerate().rev() {
            let inclusive = sums.inclusive(index as u32);
            if let Some(sum) = sums.inclusive.get_mut(node.parent as usize) {
                *sum += inclusive;
            }
            if let Some(count) = sums.ends.get_mut(node.parent as usize) {
                *count += 1;
            }
        }
        sums.place_children(tree);
        sums
    }

    /// Places the children of each node. `ends` has their numbers at first.
    fn place_children(&mut self, tree: &[Growing]) {
        let mut next = 0;
        for end in &mut self.ends {
            next += std::mem::replace(end, next);
        }
        // Now `ends` has the begin of each node's children, and each placed child moves it by one.
        let mut children = vec![0; next as usize];
        for (index, node) in (0..).zip(tree) {
            let Some(end) = self.ends.get_mut(node.parent as usize) else {
                continue;
            };
            if let Some(place) = children.get_mut(*end as usize) {
                *place = index;
            }
            *end += 1;
        }
        let mut begin = 0;
        for &end in &self.ends {
            if let Some(of_node) = children.get_mut(begin..end as usize) {
                of_node.sort_by_key(|&child| self.rank(child));
            }
            begin = end as usize;
        }
        self.children = children;
    }

    fn inclusive(&self, index: u32) -> Weight {
        let weight = self.inclusive.get(index as usize);
        weight.copied().unwrap_or_default()
    }

    fn below(&self, index: u32) -> &[u32] {
        let begin = match index.checked_sub(1) {
            Some(previous) => self.end(previous),
            None => 0,
        };
        self.children
            .get(begin..self.end(index))
            .unwrap_or_default()
    }

    /// The end of a node's children.
    fn end(&self, index: u32) -> usize {
        let end = self.ends.get(index as usize).copied();
        end.unwrap_or(0) as usize
    }

    /// The heaviest nodes come first; nodes of one weight keep their order.
    fn rank(&self, index: u32) -> (Reverse<Weight>, u32) {
        (Reverse(self.inclusive(index)), index)
    }
}
