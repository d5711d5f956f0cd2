//! Decides, at the end of a recording, the addresses that a later rundown may have explained.

use std::collections::{BTreeMap, HashMap};

use etl_format::Ticks;

use super::Machine;
use super::images::Images;
use super::process::{Process, UnresolvedCause};
use super::runtime::{Clr, READY_TO_RUN};
use super::{IDLE, widen};
use crate::address::{History, KERNEL_SPACE, Origin, Pending, Tag};
use crate::counted::Span;
use crate::keys::ProcessIndex;

/// An address that resolved to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresolvedAddress {
    /// Index of the process.
    pub process: ProcessIndex,
    /// The address.
    pub address: u64,
    /// How often it came.
    pub count: u64,
    /// Why it did not resolve.
    pub cause: UnresolvedCause,
}

impl Machine {
    /// Decides what is open until the end of the recording.
    pub(crate) fn finish(&mut self) {
        self.losses.sort_unstable();
        self.unused_keys = self.keys.never_used();
        self.resolver.settle(&mut self.processes);
        self.identify_images();
        self.attribute_samples();
        let is_native_recorded = self.is_native_recorded();
        let kernel = std::mem::take(&mut self.resolver.kernel);
        let kernel_history = kernel.history();
        for index in 0..self.processes.len() {
            let Some(process) = self.processes.get_mut(index) else {
                continue;
            };
            if process.pid == IDLE {
                process.forget_waiting(&kernel_history, self.kernel_begins);
            }
            let context = Context {
                index: ProcessIndex::new(index),
                kernel: &kernel_history,
                is_native_recorded,
            };
            decide(process, context, &mut self.images, &mut self.unresolved);
        }
        drop(kernel_history);
        self.resolver.kernel = kernel;
        // An address whose owner may have changed was decided several times.
        self.unresolved
            .sort_unstable_by_key(|u| (u.process, u.address));
        self.unresolved.dedup_by(|next, kept| {
            let is_same = next.process == kept.process && next.address == kept.address;
            if is_same {
                kept.count += next.count;
            }
            is_same
        });
        self.unresolved
            .sort_unstable_by_key(|u| (std::cmp::Reverse(u.count), u.process, u.address));
        self.is_finished = true;
    }

    /// Whether a session of the kernel recorded images or addresses. Without one, as in a recording
    /// of the CLR's providers alone, nothing can name native code.
    fn is_native_recorded(&self) -> bool {
        if !self.images.list().is_empty() {
            return true;
        }
        let origins = [Origin::KernelStack, Origin::Sample];
        self.processes.iter().any(|process| {
            let mut tallies = origins
                .iter()
                .filter_map(|&origin| process.tallies.get(origin as usize));
            tallies.any(|tally| tally.frames > 0)
        })
    }

    /// Counts the samples of threads whose process was not known at the time of the sample.
    fn attribute_samples(&mut self) {
        for ((tid, address), sighting) in std::mem::take(&mut self.unattributed) {
            // If no event names the thread, its addresses can still be the kernel's.
            let pid = self.threads.pid_of(tid).unwrap_or(IDLE);
            let index = self.process_index(pid);
            if !self.resolver.counts {
                continue;
            }
            if let Some(process) = self.processes.get_mut(index.get()) {
                let tally = process.tally_mut(Origin::Sample);
                tally.stacks += sighting.count;
                tally.frames += sighting.count;
                process.pend(address, Origin::Sample, sighting, &mut self.resolver.free);
            }
        }
    }

    /// Sets the identities of images that were stated while they were there.
    fn identify_images(&mut self) {
        for process in &self.processes {
            for range in process.images.all() {
                let from = range.from.or(process.started).unwrap_or(Ticks::MIN);
                let to = range.to.or(process.ended).unwrap_or(Ticks::MAX);
                self.images.identify(range.tag.id, Span::new(from, to));
            }
        }
    }
}

/// An image with precompiled code.
#[derive(Clone, Copy, Debug, Default)]
struct Precompiled {
    /// Whether the modules' events identify the PDB of its native code.
    is_identified: bool,
    /// Whether it is the image of the IL, whose PDB has no native addresses.
    is_il: bool,
}

/// Images with precompiled code of managed modules, by file name.
fn precompiled_images(clrs: &BTreeMap<u16, Clr>) -> HashMap<&str, Precompiled> {
    let mut images: HashMap<&str, Precompiled> = HashMap::new();
    for module in clrs.values().flat_map(|clr| clr.module_facts.values()) {
        if !module.native_name.is_empty() {
            let image = images.entry(&*module.native_name).or_default();
            image.is_identified |= module.native_pdb.is_some();
        }
        if module.flags & READY_TO_RUN != 0 {
            let image = images.entry(&*module.name).or_default();
            image.is_il = true;
            image.is_identified |= module.native_pdb.is_some();
        }
    }
    images
}

impl Process {
    /// Removes the samples of idle processors in the kernel that are in no image: what the kernel
    /// does then is not of interest. Samples of unknown threads are among them, so samples of user
    /// code stay.
    fn forget_waiting(&mut self, kernel: &History<'_>, kernel_begins: u64) {
        let mut waiting = 0;
        for (address, pending) in self.pending.iter_mut() {
            if address >= kernel_begins
                && kernel.owner(address, pending.first, pending.last).is_none()
                && let Some(sampled) = pending.outside.get_mut(Origin::Sample as usize)
            {
                waiting += std::mem::take(sampled);
            }
        }
        let tally = self.tally_mut(Origin::Sample);
        tally.stacks = tally.stacks.saturating_sub(waiting);
        tally.frames = tally.frames.saturating_sub(waiting);
    }

    fn count_cause(&mut self, cause: UnresolvedCause, addresses: u64) {
        if let Some(count) = self.causes.get_mut(cause as usize) {
            *count += addresses;
        }
    }
}

/// Adds the addresses of a process in images of the kernel to the images.
fn count_kernel_hits(process: &mut Process, images: &mut Images) {
    for (ordinal, hits) in std::mem::take(&mut process.kernel_hits).take() {
        let Some(&image) = images.kernel.get(usize::from(ordinal)) else {
            continue;
        };
        for (origin, count) in Origin::ALL.into_iter().zip(hits) {
            // The code in which idle processors wait is not of interest.
            if process.pid != IDLE {
                images.hit(image, origin, count);
            }
            if images.is_identified(image) {
                process.tally_mut(origin).identified += count;
            }
        }
    }
}

/// Counts the addresses of a process beyond the limit, which are not decided.
fn count_beyond(process: &mut Process) {
    let [in_image, outside] = process.pending.beyond;
    for ((origin, inside), outside) in Origin::ALL.into_iter().zip(in_image).zip(outside) {
        let tally = process.tally_mut(origin);
        tally.image += inside;
        tally.unresolved += outside;
        process.count_cause(UnresolvedCause::TooManyAddresses, outside);
    }
}

/// What decides the addresses of a process, in addition to the process.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// Index of the process.
    index: ProcessIndex,
    /// Images of the kernel.
    kernel: &'a History<'a>,
    /// Whether events could name native code.
    is_native_recorded: bool,
}

/// Decides the pending addresses of a process.
fn decide(
    process: &mut Process,
    context: Context<'_>,
    images: &mut Images,
    unresolved: &mut Vec<UnresolvedAddress>,
) {
    count_kernel_hits(process, images);
    count_beyond(process);
    let lacks = Lacks {
        rundown: process.is_managed()
            && process.brackets.is_empty()
            && !process.is_recorded_from_start(),
        end_of_rundown: process.brackets.iter().any(|b| !b.is_whole()),
        native: !context.is_native_recorded,
    };
    // They are put back below: what owns an address is looked up while the process is changed.
    let code = std::mem::take(&mut process.code);
    let own_images = std::mem::take(&mut process.images);
    let clrs = std::mem::take(&mut process.clrs);
    let space = AddressSpace {
        code: code.history(),
        images: own_images.history(),
        kernel: context.kernel,
        precompiled: precompiled_images(&clrs),
        lacks,
    };
    for (address, pending) in std::mem::take(&mut process.pending).take() {
        let owner = space.owner_of(address, &pending, images);
        let missed = count_pending(process, &pending, &owner, images);
        if missed == 0 {
            continue;
        }
        let cause = space.cause_of(address);
        process.count_cause(cause, missed);
        if !owner.is_recorded {
            continue;
        }
        widen(&mut process.unresolved_span, pending.first);
        widen(&mut process.unresolved_span, pending.last);
        unresolved.push(UnresolvedAddress {
            process: context.index,
            address,
            count: missed,
            cause,
        });
    }
    drop(space);
    process.code = code;
    process.images = own_images;
    process.clrs = clrs;
}

/// Counts a pending address for its owner. Returns how often nothing owned it.
fn count_pending(
    process: &mut Process,
    pending: &Pending,
    owner: &AddressOwner,
    images: &mut Images,
) -> u64 {
    let mut missed = 0;
    let counts = pending.in_image.into_iter().zip(pending.outside);
    for (origin, (inside, outside)) in Origin::ALL.into_iter().zip(counts) {
        let tally = process.tally_mut(origin);
        let all = inside + outside;
        if let Some(tag) = owner.method {
            tally.managed += all;
            if tag.has(Tag::NAMED) {
                tally.named += all;
            }
            continue;
        }
        // An image that covered the address when it came owns it, even if the image ended later.
        let in_image = if owner.is_in_image { all } else { inside };
        tally.image += in_image;
        if owner.is_identified {
            tally.identified += in_image;
        }
        let without_owner = all - in_image;
        if owner.is_recorded {
            tally.unresolved += without_owner;
        } else {
            tally.not_recorded += without_owner;
        }
        missed += without_owner;
        if let Some(tag) = owner.image {
            images.hit(tag.id, origin, in_image);
        }
        if owner.is_precompiled {
            process.precompiled += in_image;
            if !owner.is_identified {
                process.precompiled_unidentified += in_image;
            }
        }
    }
    missed
}

/// What owns a pending address.
struct AddressOwner {
    method: Option<Tag>,
    /// Whether an image had the address at its time.
    is_in_image: bool,
    /// The image. If none had the address at its time, an image that had it at another time.
    image: Option<Tag>,
    /// Whether the image has precompiled code.
    is_precompiled: bool,
    /// Whether the PDB of the code is known.
    is_identified: bool,
    /// Whether an event could name it: false for native code in a recording without the kernel.
    is_recorded: bool,
}

/// All that was ever at the addresses of a process.
struct AddressSpace<'a> {
    code: History<'a>,
    images: History<'a>,
    kernel: &'a History<'a>,
    /// Images with precompiled code of managed modules, by file name.
    precompiled: HashMap<&'a str, Precompiled>,
    lacks: Lacks,
}

impl AddressSpace<'_> {
    fn owner_of(&self, address: u64, pending: &Pending, images: &Images) -> AddressOwner {
        let Pending { first, last, .. } = *pending;
        let at_its_time = self
            .images
            .owner(address, first, last)
            .or_else(|| self.kernel.owner(address, first, last));
        let tag = at_its_time.or_else(|| self.images.ever(address));
        let image = tag.and_then(|tag| images.get(tag.id));
        let precompiled = image.and_then(|image| self.precompiled.get(&*image.name));
        let has_pdb = tag.is_some_and(|tag| images.is_identified(tag.id));
        let is_identified = match precompiled {
            Some(code) => code.is_identified || (has_pdb && !code.is_il),
            None => has_pdb,
        };
        AddressOwner {
            method: self.code.owner(address, first, last),
            is_in_image: at_its_time.is_some(),
            image: tag,
            is_precompiled: precompiled.is_some(),
            is_identified,
            is_recorded: !self.lacks.native || self.cause_of(address) != UnresolvedCause::NoImages,
        }
    }

    /// Whether an address is in memory that managed code shares: Windows gives out addresses in
    /// pieces of 64 KiB, so no image begins there.
    fn is_near_code(&self, address: u64) -> bool {
        let from = address & !(ALLOCATION - 1);
        self.code.has_any_in(from, from.saturating_add(ALLOCATION))
    }

    /// Why an address resolved to nothing.
    fn cause_of(&self, address: u64) -> UnresolvedCause {
        if self.code.ever(address).is_some() {
            UnresolvedCause::MethodAtOtherTime
        } else if self.images.ever(address).is_some() {
            UnresolvedCause::ImageAtOtherTime
        } else if address >= KERNEL_SPACE {
            // No rundown lists the kernel.
            if self.lacks.native {
                UnresolvedCause::NoImages
            } else {
                UnresolvedCause::Unknown
            }
        } else if self.lacks.rundown {
            UnresolvedCause::NoRundown
        } else if self.lacks.end_of_rundown {
            UnresolvedCause::IncompleteRundown
        } else if self.images.is_empty() && !self.is_near_code(address) {
            UnresolvedCause::NoImages
        } else {
            UnresolvedCause::Unknown
        }
    }
}

/// Bytes of the pieces of address space that Windows gives out.
const ALLOCATION: u64 = 64 << 10;

/// What would have named addresses of a process.
struct Lacks {
    /// The process has no rundown, and loads were not recorded from its start.
    rundown: bool,
    /// The process has a rundown without its beginning or its end.
    end_of_rundown: bool,
    /// No session recorded images.
    native: bool,
}
