//! Makes the profile of what was collected: names for addresses, and one tree of frames.

use etl_format::{ProcessId, ThreadId};
use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;

use super::code::CodeSource;
use super::collector::SampleCollector;
use super::frames::{Detail, FrameKey, FrameTable, UNKNOWN};
use super::il_maps::IlMaps;
use super::locations::Locations;
use super::stacks::{NONE, Owner};
use super::tree::{CallNode, Root, TimedSample};
use super::{Profile, Weight};
use crate::keys::ProcessIndex;
use crate::machine::Machine;

/// Id of the idle process, whose threads run where no other does.
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
///     .by_thread(true)
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
    /// All processes but the idle one, each as one tree of methods.
    #[must_use]
    pub fn new() -> Self {
        ProfileOptions::default()
    }

    /// What is one frame.
    #[must_use]
    pub fn detail(self, detail: Detail) -> Self {
        ProfileOptions { detail, ..self }
    }

    /// Whether each thread has a tree of its own.
    #[must_use]
    pub fn by_thread(self, by_thread: bool) -> Self {
        ProfileOptions { by_thread, ..self }
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

    /// Whether the samples of idle processors are part of the profile.
    #[must_use]
    pub fn idle(self, idle: bool) -> Self {
        ProfileOptions { idle, ..self }
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
}

/// A node of the tree of frames while it grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growing {
    pub parent: u32,
    /// Index of the frame, or of the root.
    pub frame: usize,
    pub weight: Weight,
}

impl SampleCollector {
    /// The profile of what was collected, with names from the whole recording. `machine` is
    /// that of the pass that this observed, with [names](crate::Analysis::names).
    #[must_use]
    pub fn profile(&self, machine: &Machine, options: &ProfileOptions) -> Profile {
        let stacks = &self.stacks;
        let mut locations = Locations::new(machine, stacks);
        if let Some(source) = &options.code_source {
            locations.name(stacks, &**source, options.il_maps.as_deref());
        }
        let owners = &locations.owners;
        let mut profile = Profile {
            intervals: self
                .sampled
                .map(|span| self.intervals.between(span))
                .unwrap_or_default(),
            with_stack: self.with_stack,
            ..Profile::default()
        };
        let mut table = FrameTable::default();
        let mut frames = vec![usize::MAX; stacks.locations.len()];
        // Frames of functions that were inlined at a location, outermost first.
        let mut inlined: HashMap<u32, Vec<usize>> = HashMap::default();
        let mut tree: Vec<Growing> = Vec::new();
        let mut children: HashMap<(u32, usize), u32> = HashMap::default();
        children.reserve(stacks.nodes.len());
        let mut roots: HashMap<(Option<ProcessIndex>, Option<ThreadId>), u32> = HashMap::default();
        let is_idle = |owner: &Owner| {
            let process = owner.process.and_then(|index| machine.process(index));
            process.is_some_and(|process| process.pid() == IDLE)
        };
        let idle: Vec<bool> = owners.iter().map(is_idle).collect();
        let mut under_idle = vec![false; stacks.nodes.len()];
        // The node of the new tree for each of the collected ones, which come after their parents.
        let mut mapped = vec![NONE; stacks.nodes.len()];
        for (index, node) in stacks.nodes.iter().enumerate() {
            let is_idle = match under_idle.get(node.parent as usize) {
                Some(&above) => above,
                None => idle.get(node.location as usize).copied().unwrap_or(false),
            };
            if is_idle {
                profile.idle += node.weight;
                if let Some(under) = under_idle.get_mut(index) {
                    *under = true;
                }
            }
            let number;
            if node.parent == NONE {
                let Some(&Owner { process, tid }) = owners.get(node.location as usize) else {
                    continue;
                };
                let pid = process
                    .and_then(|index| machine.process(index))
                    .map(|p| p.pid());
                if !options.admits(process, pid, tid) {
                    continue;
                }
                let tid = options.by_thread.then_some(tid);
                number = *roots.entry((process, tid)).or_insert_with(|| {
                    let root = Root {
                        process,
                        pid,
                        tid,
                        ..Root::default()
                    };
                    profile.roots.push(root);
                    let frame = profile.roots.len() - 1;
                    tree.push(Growing {
                        parent: NONE,
                        frame,
                        weight: Weight::default(),
                    });
                    (tree.len() - 1) as u32
                });
            } else {
                let parent = mapped.get(node.parent as usize).copied().unwrap_or(NONE);
                if parent == NONE {
                    continue;
                }
                let Some(frame) = frames.get_mut(node.location as usize) else {
                    continue;
                };
                if *frame == usize::MAX {
                    let Some(location) = stacks.locations.get(node.location as usize) else {
                        continue;
                    };
                    let symbol = locations.symbol(node.location as usize, location);
                    let names = locations.names(node.location as usize, location, symbol.as_ref());
                    let key = FrameKey {
                        symbol: symbol.as_ref(),
                        address: location.address,
                        is_kernel: location.address >= machine.kernel_begins(),
                        function: names.functions.first(),
                        line: names.line,
                    };
                    *frame = table.number(&key, options.detail);
                    if let Some(inner @ [_, ..]) = names.functions.get(1..) {
                        let mut numbers = Vec::with_capacity(inner.len());
                        for function in inner {
                            let key = FrameKey {
                                function: Some(function),
                                line: None,
                                ..key
                            };
                            numbers.push(table.number(&key, options.detail));
                        }
                        inlined.insert(node.location, numbers);
                    }
                }
                let mut add = |parent, frame| {
                    child(
                        &mut tree,
                        &mut children,
                        &table,
                        (parent, frame),
                        options.detail,
                    )
                };
                let inner = inlined.get(&node.location).map_or(&[][..], Vec::as_slice);
                let outer = add(parent, *frame);
                number = inner
                    .iter()
                    .fold(outer, |parent, &frame| add(parent, frame));
            }
            if let Some(mapped) = mapped.get_mut(index) {
                *mapped = number;
            }
            if let Some(to) = tree.get_mut(number as usize) {
                to.weight += node.weight;
            }
        }
        profile.frames = table.frames.into_iter().collect();
        profile.modules = table.modules;
        let places = profile.arrange(&tree);
        let place = |number: &u32| places.get(*number as usize).map_or(NONE, |&at| at as u32);
        profile.stacks = mapped.iter().map(place).collect();
        for kept in &self.kept {
            let number = mapped.get(kept.node as usize).copied().unwrap_or(NONE);
            if let Some(&node) = places.get(number as usize) {
                let weight = self.weight(kept.time);
                let (time, processor) = (kept.time, kept.processor);
                profile.samples.push(TimedSample {
                    time,
                    node,
                    weight,
                    processor,
                });
            }
        }
        for root in &mut profile.roots {
            let process = root.process.and_then(|index| machine.process(index));
            root.process_name = process.map_or("", |p| p.name()).into();
            let thread = root
                .tid
                .and_then(|tid| machine.thread_of(root.process, tid));
            root.thread_name = thread.map_or("", |thread| &thread.name).into();
        }
        profile
    }
}

/// The child of a node for a frame.
fn child(
    tree: &mut Vec<Growing>,
    children: &mut HashMap<(u32, usize), u32>,
    table: &FrameTable,
    (parent, frame): (u32, usize),
    detail: Detail,
) -> u32 {
    let above = tree
        .get(parent as usize)
        .filter(|above| above.parent != NONE);
    let is_same = above.is_some_and(|above| above.frame == frame);
    let is_open = |frame: usize| {
        table
            .frames
            .get_index(frame)
            .is_some_and(|f| !f.kind.is_managed() && &*f.method == UNKNOWN)
    };
    if is_same && matches!(detail, Detail::Methods | Detail::Lines) && is_open(frame) {
        return parent;
    }
    let next = tree.len() as u32;
    let number = *children.entry((parent, frame)).or_insert(next);
    if number == next {
        tree.push(Growing {
            parent,
            frame,
            weight: Weight::default(),
        });
    }
    number
}

impl Profile {
    /// Arranges nodes, which come after their parents, so that those below a node follow it, the
    /// heaviest first. Returns their new places.
    pub(super) fn arrange(&mut self, tree: &[Growing]) -> Vec<usize> {
        let mut totals: Vec<Weight> = tree.iter().map(|node| node.weight).collect();
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); tree.len()];
        for (index, node) in tree.iter().enumerate().rev() {
            let total = totals.get(index).copied().unwrap_or_default();
            if let Some(sum) = totals.get_mut(node.parent as usize) {
                *sum += total;
            }
            if let Some(below) = below.get_mut(node.parent as usize) {
                below.push(index as u32);
            }
        }
        let heaviest = |index: &u32| {
            let total = totals.get(*index as usize).copied().unwrap_or_default();
            (std::cmp::Reverse(total), *index)
        };
        for below in &mut below {
            below.sort_by_key(heaviest);
        }
        let mut roots: Vec<u32> = (0..tree.len() as u32)
            .filter(|&index| {
                tree.get(index as usize)
                    .is_some_and(|node| node.parent == NONE)
            })
            .collect();
        roots.sort_by_key(heaviest);
        let mut places = vec![usize::MAX; tree.len()];
        let mut order = Vec::with_capacity(roots.len());
        for root in roots {
            let first = self.nodes.len();
            // Nodes to enter, with their depth; `None` leaves the node of a place.
            let mut open: Vec<Result<(u32, u32), usize>> = vec![Ok((root, 0))];
            while let Some(next) = open.pop() {
                let (index, depth) = match next {
                    Ok(node) => node,
                    Err(place) => {
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
                    frame: (depth > 0).then_some(node.frame),
                    depth,
                    exclusive: node.weight,
                    inclusive: totals.get(index as usize).copied().unwrap_or_default(),
                    end: 0,
                });
                open.push(Err(place));
                let below = below.get(index as usize).map_or(&[][..], Vec::as_slice);
                open.extend(below.iter().rev().map(|&child| Ok((child, depth + 1))));
            }
            let at = tree.get(root as usize).map_or(0, |node| node.frame);
            if let Some(root) = self.roots.get_mut(at) {
                (root.first, root.end) = (first, self.nodes.len());
            }
            order.push(at);
        }
        let mut by_place: Vec<Option<Root>> = self.roots.drain(..).map(Some).collect();
        self.roots.extend(
            order
                .into_iter()
                .filter_map(|at| by_place.get_mut(at)?.take()),
        );
        places
    }
}
