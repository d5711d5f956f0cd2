//! Addresses of stacks and samples: whose they are at the time they are seen.

use super::keys::KeyUse;
use super::ranges::{Ranges, Tag};
use super::recent::{Owner, Recents, Seen};
use super::repeats::{Found, Frame, Known, Repeat, Repeats};
use crate::events::frames::Frames;
use crate::machine::{KERNEL_SPACE, MOST_KEYED, Machine, Origin, Process, Sight, Tally};

impl Machine {
    /// Resolves the addresses of a stack, or puts them by.
    pub(crate) fn frames(
        &mut self,
        index: usize,
        origin: Origin,
        frames: Frames<'_>,
        timestamp: i64,
    ) {
        match frames.wide() {
            Some(wide) if (2..=Repeats::MOST).contains(&wide.len()) => {
                self.repeat(index, origin, wide, timestamp);
            }
            _ => self.stack(index, origin, frames.iter(), timestamp),
        }
    }

    /// Resolves the addresses of a stack as a whole, if it was seen before.
    fn repeat(&mut self, index: usize, origin: Origin, wide: &[Frame], timestamp: i64) {
        let Some(process) = self.processes.get_mut(index) else { return };
        let (code, images) = (process.code.changes(), process.images.changes());
        let (by, space) = (Seen::by(index, origin), 1 + self.kernel.changes() + images + code);
        match self.repeats.again(by, space, wide, timestamp) {
            Known::Counted => {
                let tally = process.tally(origin);
                (tally.stacks, tally.frames) = (tally.stacks + 1, tally.frames + wide.len() as u64);
            }
            Known::Before => {
                self.stack(index, origin, addresses(wide), timestamp);
                let found = addresses(wide).map(|address| self.recent.found(by, address));
                self.repeats.learn(by, wide, found);
            }
            Known::Nothing => {
                if let Some(gone) = self.repeats.gone.take() {
                    count_all(&mut self.processes, &gone);
                }
                self.stack(index, origin, addresses(wide), timestamp);
            }
        }
    }

    /// Resolves the addresses of a stack, or puts them by.
    #[inline]
    pub(crate) fn stack(
        &mut self,
        index: usize,
        origin: Origin,
        mut frames: impl Iterator<Item = u64>,
        timestamp: i64,
    ) {
        let Machine { processes, kernel, recent, room, .. } = self;
        let by = Seen::by(index, origin);
        let mut count = 0u64;
        loop {
            let Some(process) = processes.get(index) else { return };
            // Grows with each change of what an address of this process can resolve to.
            let space = 1 + kernel.changes() + process.images.changes();
            let code = &process.code;
            let missed = frames.find(|&address| {
                count += 1;
                !recent.again(by, address, space + code.changes_at(address), timestamp)
            });
            let Some(address) = missed else { break };
            resolve(processes, kernel, recent, room, (index, origin, address), timestamp);
        }
        if let Some(process) = processes.get_mut(index) {
            let tally = process.tally(origin);
            (tally.stacks, tally.frames) = (tally.stacks + 1, tally.frames + count);
        }
    }

    /// Frames of a stack that was told by key: when each use was is not kept, so all are decided at
    /// the end, for the span of the uses.
    pub(crate) fn keyed(&mut self, index: usize, key_use: KeyUse, frames: Frames<'_>) {
        let KeyUse { count, first, last } = key_use;
        let Some(process) = self.processes.get_mut(index) else { return };
        let frames = frames.first(MOST_KEYED);
        process.tally(Origin::KernelStack).frames += count * frames.len() as u64;
        let sight = Sight { count, first, last, in_image: false };
        for address in frames.iter() {
            process.pend(address, Origin::KernelStack, sight, &mut self.room);
        }
    }

    /// Counts what was seen and not yet counted where it belongs.
    pub(crate) fn settle(&mut self) {
        for repeat in self.repeats.take() {
            count_all(&mut self.processes, &repeat);
        }
        for seen in self.recent.take() {
            count(&mut self.processes, seen);
        }
    }
}

fn addresses(wide: &[Frame]) -> impl Iterator<Item = u64> + '_ {
    wide.iter().map(|address| u64::from_le_bytes(*address))
}

/// Finds out whose an address is, and notes it.
#[cold]
#[inline(never)]
fn resolve(
    processes: &mut [Process],
    kernel: &mut Ranges,
    recent: &mut Recents,
    room: &mut usize,
    (index, origin, address): (usize, Origin, u64),
    timestamp: i64,
) {
    if recent.is_small() {
        for seen in recent.grow() {
            count(processes, seen);
        }
    }
    let Some(process) = processes.get_mut(index) else { return };
    let by = Seen::by(index, origin);
    let state = 1 + kernel.changes() + process.images.changes() + process.code.changes_at(address);
    let (owner, place) = match owner(address, process, kernel) {
        Whose::Kernel(place) => (Owner::Kernel, usize::try_from(place).ok()),
        Whose::Method => (Owner::Method, None),
        Whose::Open { in_image } => {
            let place = recent.waiting(by, address).or_else(|| {
                let sight = Sight { count: 1, first: timestamp, last: timestamp, in_image };
                process.pending.place(address, sight, room)
            });
            (if in_image { Owner::Image } else { Owner::Nobody }, place)
        }
    };
    if let Some(before) = recent.note((by, address), state, timestamp, (owner, place)) {
        count(processes, before);
    }
}

/// Counts an address as often as it was seen.
fn count(processes: &mut [Process], seen: Seen) {
    let Some(process) = processes.get_mut(seen.process()) else { return };
    let found = (seen.owner, seen.place());
    add(process, seen.origin(), found, seen.count.into(), seen.last);
}

/// Counts the addresses of a stack as often as it was seen.
fn count_all(processes: &mut [Process], repeat: &Repeat) {
    let Some(process) = processes.get_mut(Seen::process_of(repeat.by)) else { return };
    for found in repeat.found() {
        add(process, Seen::origin_of(repeat.by), found, repeat.count, repeat.last);
    }
}

fn add(process: &mut Process, origin: Origin, (owner, place): Found, count: u64, last: i64) {
    match owner {
        Owner::Method => {
            *process.tally(origin) += Tally { managed: count, named: count, ..Tally::default() };
        }
        Owner::Kernel => {
            process.tally(origin).image += count;
            if let Some(place) = place {
                process.kernel_hits.add(place, origin, count);
            }
        }
        Owner::Image | Owner::Nobody => {
            let in_image = owner == Owner::Image;
            let sight = Sight { count, first: last, last, in_image };
            match place {
                Some(place) => process.pending.see(place, origin, sight),
                None => process.pending.see_beyond(origin, sight),
            }
        }
    }
}

/// What an address of a process resolves to as things are.
enum Whose {
    /// A method that an event names.
    Method,
    /// The image of the kernel whose hits are counted at this place.
    Kernel(u32),
    /// No named method covers it so far.
    Open {
        /// Whether an image does.
        in_image: bool,
    },
}

fn owner(address: u64, process: &mut Process, kernel: &mut Ranges) -> Whose {
    if address >= KERNEL_SPACE
        && let Some(image) = kernel.now(address)
    {
        return Whose::Kernel(process.kernel_hits.place(image.instance));
    }
    if process.code.now(address).is_some_and(|tag| tag.has(Tag::NAMED)) {
        return Whose::Method;
    }
    let in_image = process.images.now(address).is_some() || kernel.now(address).is_some();
    Whose::Open { in_image }
}
