//! When what is at addresses changed: code and images that came and went.

use etl_format::Ticks;
use foldhash::HashMap;

use crate::keys::ProcessIndex;

/// Pages of code that are kept one by one; a change of more pages is a change of the whole process.
const MAX_PAGES: u64 = 64;

/// A time in which nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    /// When it begins.
    pub from: Ticks,
    /// When the next change is.
    pub to: Ticks,
}

impl Unchanged {
    /// Cuts it at changes around `time`.
    fn narrow(&mut self, changes: &[Ticks], time: Ticks) {
        let next = changes.partition_point(|&change| change <= time);
        if let Some(&last) = next.checked_sub(1).and_then(|index| changes.get(index)) {
            self.from = last.max(self.from);
        }
        if let Some(&next) = changes.get(next) {
            self.to = next.min(self.to);
        }
    }
}

/// Times of changes, in time order.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Of code, by process and page.
    pages: HashMap<(ProcessIndex, u64), Vec<Ticks>>,
    /// Of images, of large code, and of the process itself, by process.
    processes: HashMap<ProcessIndex, Vec<Ticks>>,
    /// Of images of the kernel.
    kernel: Vec<Ticks>,
    /// How many there are, by process.
    counts: Vec<u32>,
    kernel_count: u32,
}

impl Changes {
    /// Code of a process came or went.
    pub fn code(&mut self, process: ProcessIndex, start: u64, size: u32, time: Ticks) {
        let first = page(start);
        let last = page(start.saturating_add(size.into()));
        if last.saturating_sub(first) > MAX_PAGES {
            return self.process(process, time);
        }
        for page in first..=last {
            self.pages.entry((process, page)).or_default().push(time);
        }
        self.count(process);
    }

    /// An image of a process came or went, or the process itself.
    pub fn process(&mut self, process: ProcessIndex, time: Ticks) {
        self.processes.entry(process).or_default().push(time);
        self.count(process);
    }

    /// An image of the kernel came or went.
    pub fn kernel(&mut self, time: Ticks) {
        self.kernel.push(time);
        self.kernel_count += 1;
    }

    fn count(&mut self, process: ProcessIndex) {
        let process = process.get();
        if self.counts.len() <= process {
            self.counts.resize(process + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(process) {
            *count += 1;
        }
    }

    /// Grows with each change of what a process sees.
    #[inline]
    pub fn state(&self, process: Option<ProcessIndex>) -> u64 {
        let count = process.and_then(|process| self.counts.get(process.get()));
        u64::from(count.copied().unwrap_or(0)) + u64::from(self.kernel_count)
    }

    /// The time around `time` in which nothing changed at an address.
    pub fn span(&self, process: Option<ProcessIndex>, address: u64, time: Ticks) -> Unchanged {
        let mut unchanged = Unchanged {
            from: Ticks::MIN,
            to: Ticks::MAX,
        };
        if let Some(process) = process {
            let pages = self.pages.get(&(process, page(address)));
            unchanged.narrow(pages.map_or(&[], Vec::as_slice), time);
            let process = self.processes.get(&process);
            unchanged.narrow(process.map_or(&[], Vec::as_slice), time);
        }
        unchanged.narrow(&self.kernel, time);
        unchanged
    }
}

fn page(address: u64) -> u64 {
    address >> 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_ends_at_the_changes_of_its_page_process_and_kernel() {
        let mut changes = Changes::default();
        changes.code(ProcessIndex::new(7), 0x1ff0, 0x20, Ticks::new(10));
        changes.process(ProcessIndex::new(8), Ticks::new(15));
        changes.code(ProcessIndex::new(7), 0x1000, 0x10, Ticks::new(20));
        changes.kernel(Ticks::new(30));
        let span = |process: Option<ProcessIndex>, address, time| {
            let unchanged = changes.span(process, address, time);
            (unchanged.from, unchanged.to)
        };
        assert_eq!(
            span(Some(ProcessIndex::new(7)), 0x1008, Ticks::new(12)),
            (Ticks::new(10), Ticks::new(20))
        );
        assert_eq!(
            span(Some(ProcessIndex::new(7)), 0x2008, Ticks::new(12)),
            (Ticks::new(10), Ticks::new(30))
        );
        assert_eq!(
            span(Some(ProcessIndex::new(7)), 0x3008, Ticks::new(12)),
            (Ticks::MIN, Ticks::new(30))
        );
        assert_eq!(
            span(Some(ProcessIndex::new(8)), 0x1008, Ticks::new(15)),
            (Ticks::new(15), Ticks::new(30))
        );
        assert_eq!(
            span(None, 0x1008, Ticks::new(99)),
            (Ticks::new(30), Ticks::MAX)
        );
        assert_eq!(
            [Some(7), Some(8), None].map(|index| changes.state(index.map(ProcessIndex::new))),
            [3, 2, 1]
        );
    }
}
