//! Samples: an address, and the thread that was running there.

use crate::machine::{HOMELESS, Machine, Origin, Sight};

/// Processes of the threads that were sampled a moment ago, by the lowest bits of the threads' ids.
#[derive(Clone, Debug)]
pub(crate) struct Sampled {
    places: Vec<Option<(u32, usize)>>,
}

/// Places; a power of two.
const PLACES: usize = 256;

impl Default for Sampled {
    fn default() -> Self {
        Sampled { places: vec![None; PLACES] }
    }
}

/// Where a thread stands. Ids are multiples of four.
fn place(tid: u32) -> usize {
    (tid >> 2) as usize & (PLACES - 1)
}

impl Sampled {
    /// Index of the process of a thread.
    #[inline]
    fn get(&self, tid: u32) -> Option<usize> {
        let &(known, process) = self.places.get(place(tid))?.as_ref()?;
        (known == tid).then_some(process)
    }

    fn put(&mut self, tid: u32, process: usize) {
        if let Some(place) = self.places.get_mut(place(tid)) {
            *place = Some((tid, process));
        }
    }

    /// The thread may be another process's from now on.
    pub fn forget(&mut self, tid: u32) {
        if let Some(place) = self.places.get_mut(place(tid)) {
            *place = None;
        }
    }
}

impl Machine {
    /// Takes in a sample.
    #[inline]
    pub(crate) fn sample(&mut self, address: u64, tid: u32, timestamp: i64) {
        match self.sampled.get(tid) {
            Some(process) => {
                self.stack(process, Origin::Sample, std::iter::once(address), timestamp);
            }
            None => self.sample_anew(address, tid, timestamp),
        }
    }

    /// Takes in a sample of a thread that was not sampled a moment ago.
    #[inline(never)]
    fn sample_anew(&mut self, address: u64, tid: u32, timestamp: i64) {
        let pid = if tid == 0 { Some(0) } else { self.threads.pid_of(tid) };
        let beyond = self.homeless.len() >= HOMELESS;
        match pid.or(beyond.then_some(0)) {
            Some(known) => {
                let process = self.process(known);
                if pid.is_some() {
                    self.sampled.put(tid, process);
                }
                self.stack(process, Origin::Sample, std::iter::once(address), timestamp);
            }
            None => {
                let sight = Sight { count: 0, first: timestamp, last: timestamp, in_image: false };
                let sight = self.homeless.entry((tid, address)).or_insert(sight);
                (sight.count, sight.last) = (sight.count + 1, timestamp);
            }
        }
    }
}
