//! What the events of the kernel change in the machine: its processes, threads, images and stacks.

use etl_format::read::Record;
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::views::kernel::{self, Change as KernelChange};
use etl_schema::views::kernel_process::{self, Process as Described};
use etl_schema::views::merge::ImageStamp;

use super::{Change, Life, Machine, SYSTEM, StateObserver, names, widen};
use crate::address::{Origin, Tag};

fn life(change: KernelChange) -> Life {
    match change {
        KernelChange::Start => Life::Begun,
        KernelChange::End => Life::Ended,
        KernelChange::RundownStart | KernelChange::RundownEnd => Life::Listed,
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
            kernel::Event::Sample { address, tid } => {
                self.sample(address, ThreadId::new(tid), timestamp)
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
            kernel::Event::StackDefinition { .. } if !self.resolver.counts => {}
            kernel::Event::StackDefinition {
                key,
                last: true,
                frames,
            } => {
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
            // A definition at the first use comes before the others; those wait for the next.
            kernel::Event::StackDefinition { last: false, .. } => {}
            kernel::Event::Image(change, image) => self.image(change, &image, timestamp),
            kernel::Event::Thread(change, thread) => {
                let kernel::Thread { pid, tid, .. } = thread;
                match change {
                    KernelChange::Start => {
                        self.threads
                            .start(ThreadId::new(tid), ProcessId::new(pid), timestamp);
                        let process = self.process_index(ProcessId::new(pid));
                        if let Some(process) = self.processes.get_mut(process.get()) {
                            widen(&mut process.listed.threads, timestamp);
                        }
                    }
                    KernelChange::End => {
                        if !self
                            .threads
                            .end(ThreadId::new(tid), ProcessId::new(pid), timestamp)
                        {
                            self.census.unstarted_threads.add(timestamp);
                        }
                    }
                    KernelChange::RundownStart => {
                        self.list_thread(ThreadId::new(tid), ProcessId::new(pid));
                        self.census.listed_at_start(timestamp);
                    }
                    KernelChange::RundownEnd => {
                        self.list_thread(ThreadId::new(tid), ProcessId::new(pid));
                        self.census.listed_at_end(timestamp);
                    }
                }
                if matches!(change, KernelChange::Start | KernelChange::End) {
                    self.sampled.remove(ThreadId::new(tid));
                    observer.thread_changed(ThreadId::new(tid));
                }
                self.changed(|| Change::Thread {
                    life: life(change),
                    tid: ThreadId::new(tid),
                });
                self.describe(&thread);
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

    /// Takes in a thread of the kernel's lists.
    fn list_thread(&mut self, tid: ThreadId, pid: ProcessId) {
        if self.threads.listed(tid, pid) {
            self.sampled.remove(tid);
        }
    }

    /// Keeps what an event states of a thread.
    fn describe(&mut self, thread: &kernel::Thread<'_>) {
        let name = thread.name().filter(|_| self.names.is_some());
        let name = name.map(|name| names::text(name).into_boxed_str());
        let name = name.filter(|name| !name.is_empty());
        self.threads.describe(
            ThreadId::new(thread.tid),
            thread.start_address().unwrap_or(0),
            name,
        );
    }

    fn image(&mut self, change: KernelChange, image: &kernel::Image<'_>, timestamp: Ticks) {
        let &kernel::Image {
            pid, base, size, ..
        } = image;
        let path = image.path().unwrap_or_default();
        let from = if change == KernelChange::Start {
            Some(timestamp)
        } else {
            None
        };
        let kernel = pid == 0 || pid == SYSTEM.get();
        let process = self.process_index(ProcessId::new(pid));
        // Listed again, it is the image that it was.
        let owner = self.processes.get_mut(process.get());
        let has_ended = owner.as_ref().is_some_and(|p| p.ended.is_some());
        let known = owner.and_then(|p| p.images.now(base));
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
        let known = known.filter(|tag| {
            change != KernelChange::Start && self.images.get(tag.id).is_some_and(|i| i.base == base)
        });
        let tag = known.unwrap_or_else(|| {
            let id = self.images.add(ProcessId::new(pid), base, path);
            let instance = if kernel {
                self.images.add_kernel(id)
            } else {
                0
            };
            Tag {
                id,
                instance,
                ..Tag::default()
            }
        });
        if let Some(names) = &mut self.names {
            names.image(tag.id, path);
        }
        // The kernel states no time for images that it only lists.
        if let Some(link_time) = image.link_time().filter(|&time| time != 0) {
            self.images.stamp(tag.id, ImageStamp { link_time, size });
        }
        self.changed(|| Change::Image {
            life: life(change),
            process,
            image: tag.id,
        });
        let own = self.processes.get_mut(process.get()).map(|p| &mut p.images);
        for ranges in own
            .into_iter()
            .chain(kernel.then_some(&mut self.resolver.kernel))
        {
            if change == KernelChange::End {
                ranges.remove(base, size, timestamp, tag);
            } else {
                ranges.add(base, size, from, tag);
            }
        }
    }

    /// Takes in what the provider Microsoft-Windows-Kernel-Process says of a process. The kernel's
    /// own events say more: where there are any, it does not count, and its tables are not needed.
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

    /// Frees an id for another process, if the one that had it ended.
    fn forget_ended(&mut self, pid: ProcessId) {
        let reused = self.by_pid.get(&pid).and_then(|&index| self.process(index));
        if reused.is_some_and(|p| p.ended.is_some()) {
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
                self.listed(index, false);
                self.census.listed_at_start(timestamp);
            }
            KernelChange::RundownEnd => {
                self.listed(index, true);
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
