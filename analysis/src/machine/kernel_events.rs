//! What the events of the kernel change in the machine: its processes, threads, images and stacks.

use etl_format::read::Record;
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::views::Frames;
use etl_schema::views::kernel::{self, Change as KernelChange};
use etl_schema::views::kernel_process::{self, Process as Described};
use etl_schema::views::merge::ImageStamp;

use super::Machine;
use super::census::KernelList;
use super::changes::{Change, Life, StateObserver};
use super::{IDLE, SYSTEM, names, widen};
use crate::address::{Origin, Ranges, Tag};

fn life(change: KernelChange) -> Life {
    match change {
        KernelChange::Start => Life::Begun,
        KernelChange::End => Life::Ended,
        KernelChange::RundownStart | KernelChange::RundownEnd => Life::Listed,
    }
}

/// Adds an image to the images of an address space, or removes it.
fn change_images(
    ranges: &mut Ranges,
    change: KernelChange,
    image: &kernel::Image<'_>,
    timestamp: Ticks,
    tag: Tag,
) {
    let &kernel::Image { base, size, .. } = image;
    match change {
        KernelChange::Start => {
            ranges.add(base, size, Some(timestamp), tag);
        }
        KernelChange::RundownStart | KernelChange::RundownEnd => {
            ranges.add(base, size, None, tag);
        }
        KernelChange::End => {
            ranges.remove(base, size, timestamp, tag);
        }
    }
}

impl Machine {
    pub(super) fn kernel_event(
        &mut self,
        event: kernel::Event<'_>,
        record: &Record<'_>,
        timestamp: Ticks,
        observer: &mut impl StateObserver,
    ) {
        match event {
            kernel::Event::Sample { address, tid, .. } => {
                self.sample(address, ThreadId::new(tid), timestamp);
            }
            kernel::Event::Stack {
                at, pid, frames, ..
            } => {
                observer.kernel_stack(Ticks::new(at), record.timestamp());
                let process = self.process_index(ProcessId::new(pid));
                self.resolver.frames(
                    &mut self.processes,
                    process,
                    Origin::KernelStack,
                    frames,
                    timestamp,
                );
            }
            kernel::Event::StackKey { at, pid, key, .. } => {
                observer.kernel_stack(Ticks::new(at), record.timestamp());
                let process = self.process_index(ProcessId::new(pid));
                if !self.resolver.counts {
                    return;
                }
                self.keys.used(key, process, timestamp);
                if let Some(process) = self.processes.get_mut(process.get()) {
                    process.tally_mut(Origin::KernelStack).stacks += 1;
                }
            }
            kernel::Event::StackDefinition {
                key,
                last: true,
                frames,
            } if self.resolver.counts => self.define_stack_key(key, frames, timestamp),
            // A definition at the first use of a key comes before its other uses, which wait for
            // the definition at the last use.
            kernel::Event::StackDefinition { .. } => {}
            kernel::Event::Image(change, image) => self.image(change, &image, timestamp),
            kernel::Event::Thread(change, thread) => {
                self.thread_event(change, &thread, timestamp, observer);
            }
            kernel::Event::ThreadName(thread) => {
                self.threads
                    .seen(ThreadId::new(thread.tid), ProcessId::new(thread.pid));
                self.changed(|| Change::Thread {
                    life: Life::Listed,
                    tid: ThreadId::new(thread.tid),
                });
                self.describe(&thread);
            }
            kernel::Event::Process(change, process) => {
                self.process_event(change, &process, timestamp);
            }
            _ => {}
        }
    }

    /// The addresses of a stack key are defined: resolves them for each process that used the key.
    fn define_stack_key(&mut self, key: u64, frames: Frames<'_>, timestamp: Ticks) {
        let mut is_used = false;
        while let Some((process, key_use)) = self.keys.take(key) {
            is_used = true;
            if let Some(process) = self.processes.get_mut(process.get()) {
                self.resolver.keyed(process, key_use, frames);
            }
        }
        self.definitions += 1;
        if !is_used {
            self.keys.unused(key, timestamp);
        }
    }

    fn thread_event(
        &mut self,
        change: KernelChange,
        thread: &kernel::Thread<'_>,
        timestamp: Ticks,
        observer: &mut impl StateObserver,
    ) {
        let pid = ProcessId::new(thread.pid);
        let tid = ThreadId::new(thread.tid);
        match change {
            KernelChange::Start => {
                self.threads.start(tid, pid, timestamp);
                let process = self.process_index(pid);
                if let Some(process) = self.processes.get_mut(process.get()) {
                    widen(&mut process.listed.threads, timestamp);
                }
            }
            KernelChange::End => {
                if !self.threads.end(tid, pid, timestamp) {
                    self.census.unstarted_threads.add(timestamp);
                }
            }
            KernelChange::RundownStart => {
                self.list_thread(tid, pid);
                self.census.listed_at_start(timestamp);
            }
            KernelChange::RundownEnd => {
                self.list_thread(tid, pid);
                self.census.listed_at_end(timestamp);
            }
        }
        if matches!(change, KernelChange::Start | KernelChange::End) {
            self.sampled.remove(tid);
            observer.thread_changed(tid);
        }
        self.changed(|| Change::Thread {
            life: life(change),
            tid,
        });
        self.describe(thread);
    }

    /// Notes a thread of the kernel's lists.
    fn list_thread(&mut self, tid: ThreadId, pid: ProcessId) {
        if self.threads.listed(tid, pid) {
            self.sampled.remove(tid);
        }
    }

    /// Keeps what an event states of a thread.
    fn describe(&mut self, thread: &kernel::Thread<'_>) {
        let mut name = None;
        if self.names.is_some()
            && let Some(units) = thread.name()
        {
            name = Some(names::text(units).into_boxed_str());
        }
        self.threads.describe(
            ThreadId::new(thread.tid),
            thread.start_address().unwrap_or(0),
            name.filter(|name| !name.is_empty()),
        );
    }

    fn image(&mut self, change: KernelChange, image: &kernel::Image<'_>, timestamp: Ticks) {
        let &kernel::Image { base, size, .. } = image;
        let pid = ProcessId::new(image.pid);
        let is_kernel = pid == IDLE || pid == SYSTEM;
        let index = self.process_index(pid);
        let mut known = None;
        let mut has_ended = false;
        if let Some(process) = self.processes.get_mut(index.get()) {
            known = process.images.now(base);
            has_ended = process.ended.is_some();
        }
        match change {
            KernelChange::RundownStart => self.census.listed_at_start(timestamp),
            KernelChange::RundownEnd => self.census.listed_at_end(timestamp),
            KernelChange::End if !has_ended => {
                self.census.unloads += 1;
                if known.is_none() {
                    self.census.unstarted_images.add(timestamp);
                }
            }
            KernelChange::Start | KernelChange::End => {}
        }
        let path = image.path().unwrap_or_default();
        // An image that is listed again is the image that was there, unless another begins there.
        let tag = match known {
            Some(tag) if change != KernelChange::Start && self.begins_at(tag, base) => tag,
            _ => self.add_image(pid, base, path, is_kernel),
        };
        if let Some(names) = &mut self.names {
            names.image(tag.id, path);
        }
        // The kernel states no time for images that it only lists.
        if let Some(link_time) = image.link_time()
            && link_time != 0
        {
            self.images.stamp(tag.id, ImageStamp { link_time, size });
        }
        self.changed(|| Change::Image {
            life: life(change),
            process: index,
            image: tag.id,
        });
        if let Some(process) = self.processes.get_mut(index.get()) {
            change_images(&mut process.images, change, image, timestamp, tag);
        }
        if is_kernel {
            change_images(&mut self.resolver.kernel, change, image, timestamp, tag);
        }
    }

    /// Whether the image with a tag begins at an address.
    fn begins_at(&self, tag: Tag, base: u64) -> bool {
        let image = self.images.get(tag.id);
        image.is_some_and(|image| image.base == base)
    }

    pub(super) fn add_image(
        &mut self,
        pid: ProcessId,
        base: u64,
        path: &[u8],
        is_kernel: bool,
    ) -> Tag {
        let id = self.images.add(pid, base, path);
        let instance = if is_kernel {
            self.images.add_kernel(id)
        } else {
            0
        };
        Tag {
            id,
            instance,
            ..Tag::default()
        }
    }

    /// An event of the provider Microsoft-Windows-Kernel-Process. The kernel's own events state
    /// more: if there are any, the events of the provider are ignored, and its tables are not
    /// needed.
    #[inline(never)]
    pub(super) fn described_process(&mut self, record: &Record<'_>, timestamp: Ticks) {
        if self.census.processes > 0 {
            return;
        }
        let Some(process) = kernel_process::process(record) else {
            return;
        };
        match process {
            Described::Described {
                is_start,
                pid,
                parent,
                image,
            } => {
                if is_start {
                    self.forget_ended(ProcessId::new(pid));
                }
                let index = self.process_index(ProcessId::new(pid));
                let Some(process) = self.processes.get_mut(index.get()) else {
                    return;
                };
                process.describe(ProcessId::new(parent), image);
                if is_start {
                    process.started = Some(timestamp);
                }
            }
            Described::Stopped { pid, image } => {
                let index = self.process_index(ProcessId::new(pid));
                if let Some(process) = self.processes.get_mut(index.get()) {
                    process.ended = Some(timestamp);
                    process.name_if_unknown(image);
                }
            }
            _ => {}
        }
    }

    /// Frees an id for another process, if the process that had it ended.
    fn forget_ended(&mut self, pid: ProcessId) {
        let holder = self.by_pid.get(&pid).and_then(|&index| self.process(index));
        if holder.is_some_and(|process| process.ended.is_some()) {
            self.by_pid.remove(&pid);
            self.recent.clear();
            self.sampled.clear();
        }
    }

    fn process_event(
        &mut self,
        change: KernelChange,
        event: &kernel::Process<'_>,
        timestamp: Ticks,
    ) {
        let pid = event.pid;
        if change == KernelChange::Start {
            // The id may have been another process's before.
            self.forget_ended(ProcessId::new(pid));
        }
        let index = self.process_index(ProcessId::new(pid));
        self.changed(|| Change::Process {
            life: life(change),
            process: index,
        });
        self.census.processes += 1;
        match change {
            KernelChange::RundownStart => {
                self.listed(index, KernelList::Start);
                self.census.listed_at_start(timestamp);
            }
            KernelChange::RundownEnd => {
                self.listed(index, KernelList::End);
                self.census.listed_at_end(timestamp);
            }
            KernelChange::Start | KernelChange::End => {}
        }
        let Some(process) = self.processes.get_mut(index.get()) else {
            return;
        };
        process.learn(event, self.names.is_some());
        match change {
            KernelChange::Start => process.started = Some(timestamp),
            KernelChange::End => {
                if !process.is_listed() {
                    self.census.unstarted_processes.add(timestamp);
                }
                process.end(timestamp, event.exit_status());
            }
            KernelChange::RundownStart | KernelChange::RundownEnd => {}
        }
    }
}
