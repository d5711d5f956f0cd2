//! Tracks: what slices, instants and counters stand on.

use foldhash::HashMap;

use super::fields::{
    annotation, counter, event_type, packet, process_descriptor, thread_descriptor, track,
    track_event,
};
use super::packets::Packets;
use super::storage::Storage;
use crate::protobuf::Message;

/// A row of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Row {
    Lifetime,
    Collections,
    Suspensions,
    Compilations,
    Exceptions,
    Contention,
    Activities,
}

impl Row {
    const fn name(self) -> &'static str {
        match self {
            Row::Lifetime => "Process",
            Row::Collections => "GC",
            Row::Suspensions => "GC suspensions",
            Row::Compilations => "JIT",
            Row::Exceptions => "Exceptions",
            Row::Contention => "Lock contention",
            Row::Activities => "Activities",
        }
    }

    /// The category of its events.
    const fn category(self) -> &'static str {
        match self {
            Row::Lifetime => "process",
            Row::Collections | Row::Suspensions => "gc",
            Row::Compilations => "jit",
            Row::Exceptions => "exception",
            Row::Contention => "contention",
            Row::Activities => "activity",
        }
    }
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Count {
    /// Percent of a processor, by samples.
    Cpu,
    /// Bytes of all generations, or of one of them.
    Heap,
    Generation(u8),
}

impl Count {
    const fn name(self) -> &'static str {
        match self {
            Count::Cpu => "CPU by samples",
            Count::Heap => "GC heap",
            Count::Generation(0) => "GC heap: generation 0",
            Count::Generation(1) => "GC heap: generation 1",
            Count::Generation(2) => "GC heap: generation 2",
            Count::Generation(3) => "GC heap: large objects",
            Count::Generation(_) => "GC heap: pinned objects",
        }
    }
}

/// Lanes of a row. A slice without an end keeps its lane, so there may be as many as events; those
/// beyond share the last lane, where they overlap.
const MAX_LANES: usize = 1 << 10;

/// A process by its id, its CLR where it may have several, and a thread. Perfetto knows processes
/// by their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub pid: u32,
    pub clr: u16,
    pub tid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Track {
    Process(u32),
    Thread(u32, u32),
    /// Slices of one track never overlap: those that would are in another lane.
    Slices(Owner, Row, usize),
    Counter(Owner, Count),
}

/// What is known about a slice besides its name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Uint(u64),
    Text(&'a str),
    Pointer(u64),
}

/// Values with their names.
pub(super) type Values<'a> = [(&'a str, Value<'a>)];

/// The tracks that were used, by number.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    numbers: HashMap<Track, u64>,
    /// When the last slice of each lane ended.
    lanes: HashMap<(Owner, Row), Vec<u64>>,
    message: Message,
    part: Message,
    /// Slices and instants that were written.
    pub slices: u64,
}

impl Tracks {
    /// Writes a slice, in nanoseconds, that ended after those that were written before; `None` as
    /// its end if it has none.
    pub fn slice<S: Storage>(
        &mut self,
        packets: &mut Packets<S>,
        (owner, row): (Owner, Row),
        (from, to): (u64, Option<u64>),
        name: &str,
        values: &Values<'_>,
    ) {
        let lanes = self.lanes.entry((owner, row)).or_default();
        let lane = lane(lanes, (from, to.unwrap_or(u64::MAX)));
        let number = self.number(Track::Slices(owner, row, lane), packets);
        self.begin(event_type::BEGIN, number, row, name, values);
        packets.write(Some(from), packet::TRACK_EVENT, &self.message);
        if let Some(to) = to {
            self.message.clear();
            self.message.uint(track_event::TYPE, event_type::END);
            self.message.uint(track_event::TRACK, number);
            packets.write(Some(to), packet::TRACK_EVENT, &self.message);
        }
    }

    /// Writes what has no duration.
    pub fn instant<S: Storage>(
        &mut self,
        packets: &mut Packets<S>,
        (owner, row): (Owner, Row),
        at: u64,
        name: &str,
        values: &Values<'_>,
    ) {
        let number = self.number(Track::Slices(owner, row, 0), packets);
        self.begin(event_type::INSTANT, number, row, name, values);
        packets.write(Some(at), packet::TRACK_EVENT, &self.message);
    }

    /// Writes a value of a counter in bytes.
    pub fn bytes<S: Storage>(
        &mut self,
        packets: &mut Packets<S>,
        (owner, count): (Owner, Count),
        at: u64,
        bytes: u64,
    ) {
        self.counter(packets, owner, count);
        self.message.uint(track_event::COUNTER, bytes);
        packets.write(Some(at), packet::TRACK_EVENT, &self.message);
    }

    /// Writes a value of a counter in percent.
    pub fn percent<S: Storage>(
        &mut self,
        packets: &mut Packets<S>,
        (owner, count): (Owner, Count),
        at: u64,
        percent: f64,
    ) {
        self.counter(packets, owner, count);
        self.message.double(track_event::DOUBLE_COUNTER, percent);
        packets.write(Some(at), packet::TRACK_EVENT, &self.message);
    }

    fn counter<S: Storage>(&mut self, packets: &mut Packets<S>, owner: Owner, count: Count) {
        let number = self.number(Track::Counter(owner, count), packets);
        self.message.clear();
        self.message.uint(track_event::TYPE, event_type::COUNTER);
        self.message.uint(track_event::TRACK, number);
    }

    fn begin(&mut self, kind: u64, number: u64, row: Row, name: &str, values: &Values<'_>) {
        self.slices += 1;
        self.message.clear();
        self.message.uint(track_event::TYPE, kind);
        self.message.uint(track_event::TRACK, number);
        self.message.text(track_event::CATEGORY, row.category());
        self.message.text(track_event::NAME, name);
        for (name, value) in values {
            self.part.clear();
            self.part.text(annotation::NAME, name);
            match value {
                Value::Uint(value) => self.part.uint(annotation::UINT, *value),
                Value::Text(text) => self.part.text(annotation::TEXT, text),
                Value::Pointer(value) => self.part.uint(annotation::POINTER, *value),
            }
            self.message.message(track_event::ANNOTATION, &self.part);
        }
    }

    /// The number of a track, which is described when it is used first.
    fn number<S: Storage>(&mut self, of: Track, packets: &mut Packets<S>) -> u64 {
        if let Some(&number) = self.numbers.get(&of) {
            return number;
        }
        let mut described = Message::default();
        match of {
            Track::Process(pid) => {
                let mut part = Message::default();
                part.uint(process_descriptor::PID, pid.into());
                described.message(track::PROCESS, &part);
            }
            Track::Thread(pid, tid) => {
                let mut part = Message::default();
                part.uint(thread_descriptor::PID, pid.into());
                part.uint(thread_descriptor::TID, tid.into());
                described.message(track::THREAD, &part);
            }
            Track::Slices(owner, row, _) => {
                let above = match owner.tid {
                    Some(tid) => Track::Thread(owner.pid, tid),
                    None => Track::Process(owner.pid),
                };
                let parent = self.number(above, packets);
                described.uint(track::PARENT, parent);
                described.text(track::NAME, row.name());
            }
            Track::Counter(owner, count) => {
                let parent = self.number(Track::Process(owner.pid), packets);
                described.uint(track::PARENT, parent);
                described.text(track::NAME, count.name());
                let mut part = Message::default();
                match count {
                    Count::Cpu => part.text(counter::UNIT_NAME, "%"),
                    Count::Heap | Count::Generation(_) => {
                        part.uint(counter::UNIT, counter::SIZE_BYTES);
                    }
                }
                described.message(track::COUNTER, &part);
            }
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(of, number);
        let mut message = Message::default();
        message.uint(track::UUID, number);
        message.append(&described);
        packets.write(None, packet::TRACK_DESCRIPTOR, &message);
        number
    }
}

/// The first lane that is free for a slice, which then takes it. `lanes` has when the last slice
/// of each ended.
fn lane(lanes: &mut Vec<u64>, (from, to): (u64, u64)) -> usize {
    let free = lanes.iter().position(|&ended| ended <= from);
    let lane = free.unwrap_or(lanes.len()).min(MAX_LANES - 1);
    match lanes.get_mut(lane) {
        Some(ended) => *ended = to.max(*ended),
        None => lanes.push(to),
    }
    lane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_used_again_and_have_a_limit() {
        let mut lanes = Vec::new();
        let mut lane = |from, to| lane(&mut lanes, (from, to));
        assert_eq!(
            [lane(1, 5), lane(2, 3), lane(4, 9), lane(5, 6)],
            [0, 1, 1, 0]
        );
        let last = (0..3_000).map(|_| lane(10, u64::MAX)).max();
        assert_eq!(last, Some(MAX_LANES - 1));
        assert_eq!(lanes.len(), MAX_LANES);
    }
}
