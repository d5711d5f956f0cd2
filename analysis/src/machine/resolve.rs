//! Finds the owners of the addresses of stacks and samples at the time they come.

use etl_format::Ticks;
use etl_schema::views::Frames;

use super::process::Process;
use crate::address::{
    AddressCache, CachedAddress, CachedStack, Cover, Frame, KERNEL_SPACE, KeyUse, Lookup,
    MAX_PENDING, Origin, Owner, ProcessOrigin, Ranges, Resolved, Sighting, StackCache, Tag, Tally,
};
use crate::keys::ProcessIndex;

/// Frames of a stack that has a key, and is counted for every process that used the key. The kernel
/// records at most 192.
const MAX_KEYED_FRAMES: usize = 512;

/// Resolves addresses: keeps what they resolved to, and the images of the kernel.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// Images of the kernel, shared by all processes.
    pub kernel: Ranges,
    addresses: AddressCache,
    stacks: StackCache,
    /// How many more pending addresses can be kept.
    pub free: usize,
    /// Whether addresses are counted.
    pub counts: bool,
}

impl Default for Resolver {
    fn default() -> Self {
        Resolver {
            kernel: Ranges::default(),
            addresses: AddressCache::default(),
            stacks: StackCache::default(),
            free: MAX_PENDING,
            counts: true,
        }
    }
}

impl Resolver {
    /// Resolves the addresses of a stack of the process with this index.
    pub fn frames(
        &mut self,
        processes: &mut [Process],
        index: ProcessIndex,
        origin: Origin,
        frames: Frames<'_>,
        time: Ticks,
    ) {
        if !self.counts {
            return;
        }
        match frames.as_wide() {
            Some(wide) if (2..=StackCache::MAX_FRAMES).contains(&wide.len()) => {
                self.cached_stack(processes, index, origin, wide, time);
            }
            _ => self.stack(processes, index, origin, frames.iter(), time),
        }
    }

    /// Counts a stack as a whole if it came before, else resolves its addresses.
    fn cached_stack(
        &mut self,
        processes: &mut [Process],
        index: ProcessIndex,
        origin: Origin,
        wide: &[Frame],
        time: Ticks,
    ) {
        let Some(process) = processes.get_mut(index.get()) else {
            return;
        };
        let changes = process.code.changes() + process.images.changes();
        let state = 1 + self.kernel.changes() + changes;
        let by = ProcessOrigin::new(index, origin);
        match self.stacks.count(by, state, wide, time) {
            Lookup::Counted => {
                let tally = process.tally_mut(origin);
                tally.stacks += 1;
                tally.frames += wide.len() as u64;
            }
            Lookup::Known => {
                self.stack(processes, index, origin, addresses(wide), time);
                let resolved = addresses(wide).map(|address| self.addresses.resolved(by, address));
                self.stacks.learn(by, wide, resolved);
            }
            Lookup::New => {
                if let Some(evicted) = self.stacks.evicted.take() {
                    count_stack(processes, &evicted);
                }
                self.stack(processes, index, origin, addresses(wide), time);
            }
        }
    }

    /// Resolves the addresses of a stack one by one.
    #[inline]
    pub fn stack(
        &mut self,
        processes: &mut [Process],
        index: ProcessIndex,
        origin: Origin,
        mut frames: impl Iterator<Item = u64>,
        time: Ticks,
    ) {
        if !self.counts {
            return;
        }
        let by = ProcessOrigin::new(index, origin);
        let mut count = 0u64;
        loop {
            let Some(process) = processes.get(index.get()) else {
                return;
            };
            // Grows with each change of what an address of this process can resolve to.
            let space = 1 + self.kernel.changes() + process.images.changes();
            let code = &process.code;
            let cache = &mut self.addresses;
            let missed = frames.find(|&address| {
                count += 1;
                !cache.count(by, address, space + code.changes_at(address), time)
            });
            let Some(address) = missed else { break };
            self.resolve(processes, by, address, time);
        }
        if let Some(process) = processes.get_mut(index.get()) {
            let tally = process.tally_mut(origin);
            tally.stacks += 1;
            tally.frames += count;
        }
    }

    /// Frames of a stack that had a key. The time of each use is not kept, so all are decided at
    /// the end, for the span of the uses.
    pub fn keyed(&mut self, process: &mut Process, key_use: KeyUse, frames: Frames<'_>) {
        let KeyUse { count, first, last } = key_use;
        let frames = frames.first(MAX_KEYED_FRAMES);
        process.tally_mut(Origin::KernelStack).frames += count * frames.len() as u64;
        let sighting = Sighting {
            count,
            first,
            last,
            in_image: false,
        };
        for address in frames.iter() {
            process.pend(address, Origin::KernelStack, sighting, &mut self.free);
        }
    }

    /// Counts for their owners what the caches hold.
    pub fn settle(&mut self, processes: &mut [Process]) {
        for stack in self.stacks.take() {
            count_stack(processes, &stack);
        }
        for address in self.addresses.take() {
            count_address(processes, address);
        }
    }

    /// Finds the owner of an address, and keeps it in the cache.
    #[cold]
    #[inline(never)]
    fn resolve(&mut self, processes: &mut [Process], by: ProcessOrigin, address: u64, time: Ticks) {
        let Resolver {
            kernel,
            addresses,
            free,
            ..
        } = self;
        if addresses.is_small() {
            for cached in addresses.grow() {
                count_address(processes, cached);
            }
        }
        let Some(process) = processes.get_mut(by.process().get()) else {
            return;
        };
        let images = process.images.changes();
        let state = 1 + kernel.changes() + images + process.code.changes_at(address);
        let resolved = match owner(address, process, kernel) {
            Found::Kernel(index) => Resolved {
                owner: Owner::Kernel,
                index: usize::try_from(index).ok(),
            },
            Found::Method => Resolved {
                owner: Owner::Method,
                index: None,
            },
            Found::Open(cover) => Resolved {
                owner: if cover.in_image {
                    Owner::Image
                } else {
                    Owner::Unresolved
                },
                index: process.pending.index_at(address, time, cover, free),
            },
        };
        if let Some(before) = addresses.insert(by, address, state, time, resolved) {
            count_address(processes, before);
        }
    }
}

fn addresses(wide: &[Frame]) -> impl Iterator<Item = u64> + '_ {
    wide.iter().map(|address| u64::from_le_bytes(*address))
}

/// Counts an address as often as it came.
fn count_address(processes: &mut [Process], cached: CachedAddress) {
    let Some(process) = processes.get_mut(cached.by.process().get()) else {
        return;
    };
    let count = u64::from(cached.count);
    let origin = cached.by.origin();
    add(process, origin, cached.resolved(), count, cached.last);
}

/// Counts the addresses of a stack as often as it came.
fn count_stack(processes: &mut [Process], stack: &CachedStack) {
    let Some(process) = processes.get_mut(stack.by.process().get()) else {
        return;
    };
    for resolved in stack.resolved() {
        add(
            process,
            stack.by.origin(),
            resolved,
            stack.count,
            stack.last,
        );
    }
}

fn add(process: &mut Process, origin: Origin, resolved: Resolved, count: u64, last: Ticks) {
    let Resolved { owner, index } = resolved;
    match owner {
        Owner::Method => {
            *process.tally_mut(origin) += Tally {
                managed: count,
                named: count,
                ..Tally::default()
            };
        }
        Owner::Kernel => {
            process.tally_mut(origin).image += count;
            if let Some(index) = index {
                process.kernel_hits.add(index, origin, count);
            }
        }
        Owner::Image | Owner::Unresolved => {
            let in_image = owner == Owner::Image;
            let sighting = Sighting {
                count,
                first: last,
                last,
                in_image,
            };
            process.pending.add(index, origin, sighting);
        }
    }
}

/// What owns an address of a process now.
enum Found {
    /// A method that an event names.
    Method,
    /// The image of the kernel whose hits are counted at this index.
    Kernel(u32),
    /// No named method so far.
    Open(Cover),
}

fn owner(address: u64, process: &mut Process, kernel: &mut Ranges) -> Found {
    if address >= KERNEL_SPACE
        && let Some(image) = kernel.now(address)
    {
        return Found::Kernel(process.kernel_hits.index(image.instance));
    }
    let code = process.code.now(address);
    if code.is_some_and(|tag| tag.has(Tag::NAMED)) {
        return Found::Method;
    }
    let ended = [&process.code, &process.images, kernel].map(|ranges| ranges.ended_at(address));
    Found::Open(Cover {
        ended: ended.into_iter().sum(),
        in_code: code.is_some(),
        in_image: process.images.now(address).is_some() || kernel.now(address).is_some(),
    })
}
