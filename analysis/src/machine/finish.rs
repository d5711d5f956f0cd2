//! Decides, at the end of a recording, the addresses that a later rundown may have explained.

use etl_format::{ProcessId, Ticks};
use std::collections::{BTreeMap, HashMap};

use super::images::Images;
use super::process::{Process, UnresolvedCause};
use super::runtime::{Clr, READY_TO_RUN};
use super::{Machine, widen};
use crate::address::{History, KERNEL_SPACE, Origin, Pending, Tag};
use crate::counted::{Counted, Span};
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
        let (count, first) = self.keys.never_used();
        self.unused_keys = Counted { count, first };
        self.resolver.settle(&mut self.processes);
        self.identify_images();
        for ((tid, address), sighting) in std::mem::take(&mut self.unattributed) {
            // Of a thread that no event names: its addresses can still be the kernel's.
            let pid = self.threads.pid_of(tid).unwrap_or(ProcessId::new(0));
            let process = self.process_index(pid);
            if let Some(process) = self
                .processes
                .get_mut(process.get())
                .filter(|_| self.resolver.counts)
            {
                let tally = process.tally_mut(Origin::Sample);
                tally.stacks += sighting.count;
                tally.frames += sighting.count;
                process.pend(address, Origin::Sample, sighting, &mut self.resolver.free);
            }
        }
        let kernel = std::mem::take(&mut self.resolver.kernel);
        let kernel_history = kernel.history();
        for index in 0..self.processes.len() {
            let Some(process) = self.processes.get_mut(index) else {
                continue;
            };
            if process.pid == IDLE {
                process.forget_waiting(&kernel_history, self.kernel_begins);
            }
            decide(
                ProcessIndex::new(index),
                process,
                &kernel_history,
                &mut self.images,
                &mut self.unresolved,
            );
        }
        drop(kernel_history);
        self.resolver.kernel = kernel;
        // An address whose owner may have changed was decided several times.
        self.unresolved
            .sort_unstable_by_key(|u| (u.process, u.address));
        self.unresolved.dedup_by(|next, kept| {
            let same = (next.process, next.address) == (kept.process, kept.address);
            kept.count += if same { next.count } else { 0 };
            same
        });
        self.unresolved
            .sort_unstable_by_key(|u| (std::cmp::Reverse(u.count), u.process, u.address));
        self.is_finished = true;
    }

    /// Sets the identities of images that were stated while they were there.
    fn identify_images(&mut self) {
        let Machine {
            processes, images, ..
        } = self;
        for process in processes {
            let (begin, end) = (process.started, process.ended);
            for range in process
                .images
                .past()
                .iter()
                .copied()
                .chain(process.images.alive())
            {
                let from = range.from.or(begin).unwrap_or(Ticks::MIN);
                let to = range.to.or(end).unwrap_or(Ticks::MAX);
                images.identify(range.tag.id, Span::new(from, to));
            }
        }
    }
}

/// An image with precompiled code.
#[derive(Clone, Copy, Debug, Default)]
struct Precompiled {
    /// Whether the modules' events identify the PDB of its native code.
    is_identified: bool,
    /// Whether it is the image of the IL: then its own PDB has no native addresses.
    is_il: bool,
}

/// Images with precompiled code of managed modules, by file name.
fn native_images(clrs: &BTreeMap<u16, Clr>) -> HashMap<&str, Precompiled> {
    let mut out: HashMap<&str, Precompiled> = HashMap::new();
    let modules = clrs.values().flat_map(|clr| clr.module_facts.values());
    for module in modules {
        if !module.native_name.is_empty() {
            out.entry(&*module.native_name).or_default().is_identified |=
                module.native_pdb.is_some();
        }
        if module.flags & READY_TO_RUN != 0 {
            let known = out.entry(&*module.name).or_default();
            known.is_il = true;
            known.is_identified |= module.native_pdb.is_some();
        }
    }
    out
}

/// The process of the idle threads.
const IDLE: u32 = 0;

impl Process {
    /// Counts the samples of idle processors only where they lie in an image: what the kernel does
    /// then is not of interest. Samples of threads that are not known count here as well; those of
    /// user code stay.
    fn forget_waiting(&mut self, kernel: &History<'_>, kernel_begins: u64) {
        let mut waiting = 0;
        for (address, pending) in self.pending.iter_mut() {
            let sampled = pending.outside.get_mut(Origin::Sample as usize);
            if address >= kernel_begins
                && kernel.owner(address, pending.first, pending.last).is_none()
            {
                waiting += sampled.map(std::mem::take).unwrap_or_default();
            }
        }
        let tally = self.tally_mut(Origin::Sample);
        tally.stacks = tally.stacks.saturating_sub(waiting);
        tally.frames = tally.frames.saturating_sub(waiting);
    }
}

/// Decides the pending addresses of a process.
fn decide(
    index: ProcessIndex,
    process: &mut Process,
    kernel: &History<'_>,
    images: &mut Images,
    unresolved: &mut Vec<UnresolvedAddress>,
) {
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
    let (code, own) = (
        std::mem::take(&mut process.code),
        std::mem::take(&mut process.images),
    );
    let lacks = Lacks {
        rundown: process.is_managed()
            && process.brackets.is_empty()
            && !process.is_recorded_from_start(),
        end_of_rundown: process.brackets.iter().any(|b| !b.is_whole()),
    };
    let clrs = std::mem::take(&mut process.clrs);
    let native = native_images(&clrs);
    let (code_history, own_history) = (code.history(), own.history());
    let [in_image, outside] = process.pending.beyond;
    for ((origin, inside), outside) in Origin::ALL.into_iter().zip(in_image).zip(outside) {
        let tally = process.tally_mut(origin);
        tally.image += inside;
        tally.unresolved += outside;
        if let Some(count) = process
            .causes
            .get_mut(UnresolvedCause::TooManyAddresses as usize)
        {
            *count += outside;
        }
    }
    for (address, pending) in std::mem::take(&mut process.pending).take() {
        let Pending {
            in_image,
            outside,
            first,
            last,
            ..
        } = pending;
        let method = code_history.owner(address, first, last);
        let image = own_history
            .owner(address, first, last)
            .or_else(|| kernel.owner(address, first, last));
        // Where an image covered it when it came, it is that image's, whatever comes later.
        let whose = image.or_else(|| own_history.ever(address));
        let precompiled = whose
            .and_then(|tag| images.get(tag.id))
            .and_then(|image| native.get(&*image.name).copied());
        let identified = whose.is_some_and(|tag| images.is_identified(tag.id));
        let identified = match precompiled {
            Some(code) => code.is_identified || (identified && !code.is_il),
            None => identified,
        };
        let mut missed = 0;
        for ((origin, inside), outside) in Origin::ALL.into_iter().zip(in_image).zip(outside) {
            let tally = process.tally_mut(origin);
            let all = inside + outside;
            if let Some(tag) = method {
                tally.managed += all;
                tally.named += if tag.has(Tag::NAMED) { all } else { 0 };
                continue;
            }
            let (here, gone) = if image.is_some() {
                (all, 0)
            } else {
                (inside, outside)
            };
            tally.image += here;
            tally.identified += if identified { here } else { 0 };
            tally.unresolved += gone;
            missed += gone;
            if let Some(tag) = whose {
                images.hit(tag.id, origin, here);
            }
            if precompiled.is_some() {
                process.precompiled += here;
                process.precompiled_unidentified += if identified { 0 } else { here };
            }
        }
        if missed > 0 {
            let cause = cause(&lacks, address, &code_history, &own_history);
            if let Some(count) = process.causes.get_mut(cause as usize) {
                *count += missed;
            }
            widen(&mut process.unresolved_span, first);
            widen(&mut process.unresolved_span, last);
            unresolved.push(UnresolvedAddress {
                process: index,
                address,
                count: missed,
                cause,
            });
        }
    }
    drop((code_history, own_history, native));
    (process.code, process.images, process.clrs) = (code, own, clrs);
}

/// What would have named addresses of a process.
struct Lacks {
    /// It has none, and loads do not stand for it.
    rundown: bool,
    /// It has one that is not whole.
    end_of_rundown: bool,
}

/// Why an address resolved to nothing.
fn cause(lacks: &Lacks, address: u64, code: &History<'_>, images: &History<'_>) -> UnresolvedCause {
    if code.ever(address).is_some() {
        UnresolvedCause::MethodAtOtherTime
    } else if images.ever(address).is_some() {
        UnresolvedCause::ImageAtOtherTime
    } else if address >= KERNEL_SPACE {
        // No rundown lists the kernel.
        UnresolvedCause::Unknown
    } else if lacks.rundown {
        UnresolvedCause::NoRundown
    } else if lacks.end_of_rundown {
        UnresolvedCause::IncompleteRundown
    } else if images.is_empty() {
        UnresolvedCause::NoImages
    } else {
        UnresolvedCause::Unknown
    }
}
