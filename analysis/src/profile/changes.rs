//! When what is at addresses changed: code and images that came and went.

use foldhash::HashMap;

/// Pages of code that are kept one by one; a change of more counts for the whole process.
const MAX_PAGES: u64 = 64;

/// The time before all others, and the one after.
const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);

/// Times of changes, in time order.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Of code, by process and page.
    pages: HashMap<(usize, u64), Vec<i64>>,
    /// Of images, of large code, and of the process itself, by process.
    processes: HashMap<usize, Vec<i64>>,
    /// Of images of the kernel.
    kernel: Vec<i64>,
    /// How many there are, by process.
    counts: Vec<u32>,
    kernel_count: u32,
}

impl Changes {
    /// Code of a process came or went.
    pub fn code(&mut self, process: usize, start: u64, size: u32, time: i64) {
        let (first, last) = (page(start), page(start.saturating_add(size.into())));
        if last.saturating_sub(first) > MAX_PAGES {
            return self.process(process, time);
        }
        for page in first..=last {
            self.pages.entry((process, page)).or_default().push(time);
        }
        self.count(process);
    }

    /// An image of a process came or went, or the process itself.
    pub fn process(&mut self, process: usize, time: i64) {
        self.processes.entry(process).or_default().push(time);
        self.count(process);
    }

    /// An image of the kernel came or went.
    pub fn kernel(&mut self, time: i64) {
        self.kernel.push(time);
        self.kernel_count += 1;
    }

    fn count(&mut self, process: usize) {
        if self.counts.len() <= process {
            self.counts.resize(process + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(process) {
            *count += 1;
        }
    }

    /// Grows with each change of what a process sees.
    #[inline]
    pub fn state(&self, process: Option<usize>) -> u64 {
        let own = process.and_then(|process| self.counts.get(process)).copied().unwrap_or(0);
        u64::from(own) + u64::from(self.kernel_count)
    }

    /// The time around `time` in which nothing changed at an address: from the first to before the
    /// second.
    pub fn span(&self, process: Option<usize>, address: u64, time: i64) -> (i64, i64) {
        let mut span = ALWAYS;
        if let Some(process) = process {
            let pages = self.pages.get(&(process, page(address)));
            narrow(&mut span, pages.map_or(&[], Vec::as_slice), time);
            let process = self.processes.get(&process);
            narrow(&mut span, process.map_or(&[], Vec::as_slice), time);
        }
        narrow(&mut span, &self.kernel, time);
        span
    }
}

fn page(address: u64) -> u64 {
    address >> 12
}

fn narrow((from, to): &mut (i64, i64), times: &[i64], time: i64) {
    let next = times.partition_point(|&at| at <= time);
    *from = next.checked_sub(1).and_then(|at| times.get(at)).map_or(*from, |&at| at.max(*from));
    *to = times.get(next).map_or(*to, |&at| at.min(*to));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_ends_at_the_changes_of_its_page_process_and_kernel() {
        let mut changes = Changes::default();
        changes.code(7, 0x1ff0, 0x20, 10);
        changes.process(8, 15);
        changes.code(7, 0x1000, 0x10, 20);
        changes.kernel(30);
        assert_eq!(changes.span(Some(7), 0x1008, 12), (10, 20));
        assert_eq!(changes.span(Some(7), 0x2008, 12), (10, 30));
        assert_eq!(changes.span(Some(7), 0x3008, 12), (i64::MIN, 30));
        assert_eq!(changes.span(Some(8), 0x1008, 15), (15, 30));
        assert_eq!(changes.span(None, 0x1008, 99), (30, i64::MAX));
        assert_eq!([Some(7), Some(8), None].map(|process| changes.state(process)), [3, 2, 1]);
    }
}
