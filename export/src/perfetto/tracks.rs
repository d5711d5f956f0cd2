//! Tracks, and the slices, instants and counters on them.

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

/// The quantity of a counter.
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

/// Lanes of a row, at most. A slice without an end keeps its lane, so there may be as many lanes as
/// events. Slices that find no free lane overlap in the last one.
const MAX_LANES: usize = 1 << 10;

/// The process or thread that a track belongs to, by its ids, as in Perfetto.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub pid: u32,
    /// The CLR, of which a process may have several; otherwise 0.
    pub clr: u16,
    pub tid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Track {
    Process(u32),
    Thread(u32, u32),
    /// Slices of one track never overlap: each lane of a row is a track.
    Slices(Owner, Row, usize),
    Counter(Owner, Count),
}

/// A value of an annotation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Uint(u64),
    Text(&'a str),
    Pointer(u64),
}

/// Annotations: values with their names.
pub(super) type Values<'a> = [(&'a str, Value<'a>)];

/// A slice to write, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<'a> {
    pub owner: Owner,
    pub row: Row,
    pub from: u64,
    /// `None` if it has no end.
    pub to: Option<u64>,
    pub name: &'a str,
    pub values: &'a Values<'a>,
}

/// Writes slices, instants and counters, and describes their tracks.
#[derive(Debug)]
pub(super) struct TraceWriter<S: Storage> {
    pub packets: Packets<S>,
    /// The tracks that were described.
    numbers: HashMap<Track, u64>,
    /// When the last slice of each lane ended.
    lanes: HashMap<(Owner, Row), Vec<u64>>,
    message: Message,
    part: Message,
    /// Slices and instants that were written.
    pub slices: u64,
}

impl<S: Storage> TraceWriter<S> {
    pub fn new(storage: S) -> Self {
        TraceWriter {
            packets: Packets::new(storage),
            numbers: HashMap::default(),
            lanes: HashMap::default(),
            message: Message::default(),
            part: Message::default(),
            slices: 0,
        }
    }

    /// Removes everything that was written.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.numbers.clear();
        self.lanes.clear();
        self.slices = 0;
    }

    /// Writes a slice that ended after the slices before it.
    pub fn slice(&mut self, slice: Slice<'_>) {
        let lanes = self.lanes.entry((slice.owner, slice.row)).or_default();
        let lane = take_lane(lanes, slice.from, slice.to.unwrap_or(u64::MAX));
        let number = self.number(Track::Slices(slice.owner, slice.row, lane));
        self.begin(
            event_type::BEGIN,
            number,
            slice.row,
            slice.name,
            slice.values,
        );
        self.write_event(slice.from);
        if let Some(to) = slice.to {
            self.message.clear();
            self.message.uint(track_event::TYPE, event_type::END);
            self.message.uint(track_event::TRACK, number);
            self.write_event(to);
        }
    }

    /// Writes an event without a duration.
    pub fn instant(&mut self, owner: Owner, row: Row, nanos: u64, name: &str, values: &Values<'_>) {
        let number = self.number(Track::Slices(owner, row, 0));
        self.begin(event_type::INSTANT, number, row, name, values);
        self.write_event(nanos);
    }

    /// Writes a value of a counter in bytes.
    pub fn bytes(&mut self, owner: Owner, count: Count, nanos: u64, bytes: u64) {
        self.counter(owner, count);
        self.message.uint(track_event::COUNTER, bytes);
        self.write_event(nanos);
    }

    /// Writes a value of a counter in percent.
    pub fn percent(&mut self, owner: Owner, count: Count, nanos: u64, percent: f64) {
        self.counter(owner, count);
        self.message.double(track_event::DOUBLE_COUNTER, percent);
        self.write_event(nanos);
    }

    fn write_event(&mut self, nanos: u64) {
        self.packets
            .write(Some(nanos), packet::TRACK_EVENT, &self.message);
    }

    fn counter(&mut self, owner: Owner, count: Count) {
        let number = self.number(Track::Counter(owner, count));
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
    fn number(&mut self, track: Track) -> u64 {
        if let Some(&number) = self.numbers.get(&track) {
            return number;
        }
        let description = self.describe(track);
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(track, number);
        let mut message = Message::default();
        message.uint(track::UUID, number);
        message.append(&description);
        self.packets.write(None, packet::TRACK_DESCRIPTOR, &message);
        number
    }

    /// The fields of a track but its number. Describes its parent if necessary.
    fn describe(&mut self, track: Track) -> Message {
        let mut fields = Message::default();
        let mut part = Message::default();
        match track {
            Track::Process(pid) => {
                part.uint(process_descriptor::PID, pid.into());
                fields.message(track::PROCESS, &part);
            }
            Track::Thread(pid, tid) => {
                part.uint(thread_descriptor::PID, pid.into());
                part.uint(thread_descriptor::TID, tid.into());
                fields.message(track::THREAD, &part);
            }
            Track::Slices(owner, row, _) => {
                let parent = match owner.tid {
                    Some(tid) => Track::Thread(owner.pid, tid),
                    None => Track::Process(owner.pid),
                };
                fields.uint(track::PARENT, self.number(parent));
                fields.text(track::NAME, row.name());
            }
            Track::Counter(owner, count) => {
                fields.uint(track::PARENT, self.number(Track::Process(owner.pid)));
                fields.text(track::NAME, count.name());
                match count {
                    Count::Cpu => part.text(counter::UNIT_NAME, "%"),
                    Count::Heap | Count::Generation(_) => {
                        part.uint(counter::UNIT, counter::SIZE_BYTES);
                    }
                }
                fields.message(track::COUNTER, &part);
            }
        }
        fields
    }
}

/// Takes the first lane that is free for a slice. `lanes` has the end of the last slice in each.
fn take_lane(lanes: &mut Vec<u64>, from: u64, to: u64) -> usize {
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
        let mut lane = |from, to| take_lane(&mut lanes, from, to);
        assert_eq!(
            [lane(1, 5), lane(2, 3), lane(4, 9), lane(5, 6)],
            [0, 1, 1, 0]
        );
        let last = (0..3_000).map(|_| lane(10, u64::MAX)).max();
        assert_eq!(last, Some(MAX_LANES - 1));
        assert_eq!(lanes.len(), MAX_LANES);
    }
}
