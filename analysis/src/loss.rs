//! What was lost, and where: on which processor, in which span of time.
//!
//! An event that a rule misses may be among the lost events; then the rule cannot decide. So each
//! loss is located as closely as the file allows: a flag of a buffer assigns it to a processor and
//! to the time between two buffers; a count in the header may be of any time of the session.

use std::collections::HashMap;

use etl_format::Ticks;
use etl_format::constants::{BufferFlags, LogFileMode};
use etl_format::read::{BufferEntry, Damage, Note, Source, Trace};
use serde::Serialize;

use crate::timeline::Timeline;

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// Events were dropped because no buffer was free.
    EventsLost,
    /// A buffer could not be written.
    BuffersLost,
    /// Bytes of the file are damaged or missing.
    FileDamaged,
    /// The session was not closed: its end is missing.
    EndMissing,
    /// New buffers replaced the oldest ones of a circular file.
    Overwritten,
}

impl LossKind {
    /// In words, as the beginning of a sentence.
    ///
    /// ```
    /// use etl_analysis::loss::LossKind;
    ///
    /// assert_eq!(LossKind::BuffersLost.message(), "a buffer was lost");
    /// ```
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            LossKind::EventsLost => "events were lost",
            LossKind::BuffersLost => "a buffer was lost",
            LossKind::FileDamaged => "the file is damaged",
            LossKind::EndMissing => "the end of the session is missing",
            LossKind::Overwritten => "the oldest buffers of a circular file were overwritten",
        }
    }
}

/// A loss.
///
/// ```
/// use etl_analysis::Machine;
/// use etl_format::Ticks;
///
/// fn is_complete(machine: &Machine, from: Ticks, to: Ticks) -> bool {
///     !machine.losses().iter().any(|loss| loss.touches(Some(from), Some(to)))
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// First timestamp of the span it happened in; `None` for the beginning.
    pub from: Option<Ticks>,
    /// Last timestamp of the span; `None` for the end.
    pub to: Option<Ticks>,
    /// The processor, if it is known.
    pub processor: Option<u16>,
    /// What was lost.
    pub what: LossKind,
    /// Which of the files.
    pub source: usize,
    /// The first of the files of its session.
    pub session: usize,
}

impl Loss {
    /// Whether records of a session may be missing by it: the records of one processor, or of any
    /// processor. [`Machine::session_of`](crate::Machine::session_of) returns the session of a
    /// file.
    #[must_use]
    pub fn is_of(&self, session: usize, processor: Option<u16>) -> bool {
        let is_other_processor = match (self.processor, processor) {
            (Some(lost), Some(processor)) => lost != processor,
            _ => false,
        };
        self.session == session && !is_other_processor
    }

    /// Whether it may have happened within a span.
    #[must_use]
    pub fn touches(&self, from: Option<Ticks>, to: Option<Ticks>) -> bool {
        is_until(self.from, to) && is_until(from, self.to)
    }
}

/// Whether a begin is not after an end. Spans without a begin or an end have no limit there.
fn is_until(begin: Option<Ticks>, end: Option<Ticks>) -> bool {
    match (begin, end) {
        (Some(begin), Some(end)) => begin <= end,
        _ => true,
    }
}

/// The losses whose ends are known, in the order of their ends, for a reader in time order.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    losses: std::iter::Peekable<std::vec::IntoIter<(Ticks, Loss)>>,
}

impl Passed {
    /// Sorts losses.
    pub fn new(losses: &[Loss]) -> Self {
        let ends = losses.iter().filter_map(|loss| Some((loss.to?, *loss)));
        let mut ends: Vec<_> = ends.collect();
        ends.sort_unstable();
        Passed {
            losses: ends.into_iter().peekable(),
        }
    }

    /// The next loss that ended before a record of this time.
    #[inline]
    pub fn until(&mut self, time: Ticks) -> Option<Loss> {
        self.losses
            .next_if(|(end, _)| *end <= time)
            .map(|(_, loss)| loss)
    }
}

/// The losses that a file reports. `source` is its index, and `session` is the index of the first
/// file of its session.
pub(crate) fn of_file<S: Source>(
    trace: &Trace<S>,
    source: usize,
    session: usize,
    timeline: &Timeline,
) -> Vec<Loss> {
    let mut losses = FileLosses::new(trace, source, session, timeline);
    let mut located = Located::default();
    for note in trace.notes() {
        losses.add_note(note, trace.header().is_of_several_files(), &mut located);
    }
    losses.add_unlocated(trace, located);
    if trace.overwritten().is_some() {
        losses.add_overwritten(trace);
    }
    losses.list
}

/// The losses that notes about buffers locate, and the counts of losses in the header.
#[derive(Clone, Copy, Debug, Default)]
struct Located {
    has_events: bool,
    buffers: u32,
    counted_events: u32,
    counted_buffers: u32,
}

/// Collects the losses that a file reports.
struct FileLosses<'a> {
    source: usize,
    session: usize,
    timeline: &'a Timeline,
    /// The buffers by processor and time.
    buffers: Vec<&'a BufferEntry>,
    /// Indices of buffers by their offsets in the file.
    indices: HashMap<u64, usize>,
    list: Vec<Loss>,
}

impl<'a> FileLosses<'a> {
    fn new<S: Source>(
        trace: &'a Trace<S>,
        source: usize,
        session: usize,
        timeline: &'a Timeline,
    ) -> Self {
        let mut buffers: Vec<_> = trace.buffers().iter().filter(|b| !b.rebuilt).collect();
        buffers.sort_by_key(|b| (b.processor, b.first_timestamp, b.sequence_number));
        let mut indices = HashMap::new();
        for (index, buffer) in buffers.iter().enumerate() {
            indices.insert(buffer.offset, index);
        }
        FileLosses {
            source,
            session,
            timeline,
            buffers,
            indices,
            list: Vec::new(),
        }
    }

    /// Adds a loss between two times.
    fn add(
        &mut self,
        what: LossKind,
        processor: Option<u16>,
        from: Option<Ticks>,
        to: Option<Ticks>,
    ) {
        self.list.push(Loss {
            from,
            to,
            processor,
            what,
            source: self.source,
            session: self.session,
        });
    }

    /// The buffer that is `steps` places after the buffer at an offset, on the same processor.
    fn neighbour(&self, offset: u64, processor: u16, steps: isize) -> Option<&'a BufferEntry> {
        let index = self.indices.get(&offset)?.checked_add_signed(steps)?;
        let buffer = *self.buffers.get(index)?;
        if buffer.processor == processor {
            Some(buffer)
        } else {
            None
        }
    }

    /// When the buffer begins that is `steps` places after the buffer at an offset.
    fn time_of(&self, offset: u64, processor: u16, steps: isize) -> Option<Ticks> {
        let buffer = self.neighbour(offset, processor, steps)?;
        Some(self.begin(buffer))
    }

    /// When a buffer begins, on the timeline.
    fn begin(&self, buffer: &BufferEntry) -> Ticks {
        self.timeline.timestamp(self.source, buffer.first_timestamp)
    }

    /// Adds the loss that a note is about, if any. `is_joined` is whether the file was made from
    /// several.
    fn add_note(&mut self, note: &Note, is_joined: bool, located: &mut Located) {
        match *note {
            Note::EventsLost(count) => located.counted_events = count,
            Note::BuffersLost(count) => located.counted_buffers = count,
            Note::EventsLostInBuffer { offset, processor } => {
                located.has_events = true;
                let from = self.time_of(offset, processor, 0);
                let to = self.time_of(offset, processor, 1);
                self.add(LossKind::EventsLost, Some(processor), from, to);
            }
            Note::BufferLostBefore { offset, processor } => {
                let before = self.neighbour(offset, processor, -1);
                // A buffer of one source may be missing between several buffers of other sources.
                let is_same = is_joined
                    && before.is_some_and(|buffer| buffer.flags.has(BufferFlags::BUFFER_LOST));
                located.buffers = located.buffers.saturating_add(u32::from(!is_same));
                let from = self.time_of(offset, processor, -1);
                let to = self.time_of(offset, processor, 0);
                self.add(LossKind::BuffersLost, Some(processor), from, to);
            }
            Note::Unclosed => {
                let begins = self.buffers.iter().map(|b| b.first_timestamp);
                let last = begins.max();
                let last = last.map(|raw| self.timeline.timestamp(self.source, raw));
                self.add(LossKind::EndMissing, None, last, None);
            }
            _ => {}
        }
    }

    /// Adds the losses that the header counts and no flag of a buffer locates.
    fn add_unlocated<S: Source>(&mut self, trace: &Trace<S>, located: Located) {
        let header = trace.header();
        // A selection leaves out buffers without selected records, and with them their flags.
        let has_flags = located.has_events && !header.is_selection();
        if located.counted_events > 0 && !has_flags {
            self.add(LossKind::EventsLost, None, None, None);
        }
        // A relogged file counts the buffers that were missing from its source, and flags none.
        let is_relogged = header.mode.has(LogFileMode::RELOG);
        let has_more = is_relogged && located.counted_buffers > located.buffers;
        if located.counted_buffers > 0 && (located.buffers == 0 || has_more) {
            self.add(LossKind::BuffersLost, None, None, None);
        }
    }

    /// Adds the overwritten part of a circular file: for each processor, the time before its first
    /// buffer that is left.
    fn add_overwritten<S: Source>(&mut self, trace: &Trace<S>) {
        let mut processor = None;
        for buffer in std::mem::take(&mut self.buffers) {
            if is_first(trace, buffer) || processor == Some(buffer.processor) {
                continue;
            }
            processor = Some(buffer.processor);
            let until = self.begin(buffer).saturating_add(-1);
            self.add(LossKind::Overwritten, processor, None, Some(until));
        }
    }
}

/// Whether a buffer is the first of the file, with the header: it is not overwritten.
fn is_first<S: Source>(trace: &Trace<S>, buffer: &BufferEntry) -> bool {
    trace
        .buffers()
        .first()
        .is_some_and(|first| first.offset == buffer.offset)
}

/// The buffers of a file as damage is placed among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// By offset.
    by_place: Vec<BufferEntry>,
    /// Processors and first timestamps of the buffers that were not rebuilt, sorted.
    by_time: Vec<(u16, Ticks)>,
}

impl Surroundings {
    /// Sorts the buffers of a file.
    pub fn new(buffers: &[BufferEntry]) -> Self {
        let timestamped = buffers.iter().filter(|b| b.first_timestamp != Ticks::MIN);
        let mut by_place: Vec<_> = timestamped.copied().collect();
        by_place.sort_by_key(|b| b.offset);
        let intact = buffers.iter().filter(|b| !b.rebuilt);
        let mut by_time: Vec<_> = intact.map(|b| (b.processor, b.first_timestamp)).collect();
        by_time.sort_unstable();
        Surroundings { by_place, by_time }
    }

    /// The buffer that contains an offset of the file.
    fn buffer_at(&self, offset: u64) -> Option<&BufferEntry> {
        let after = self.by_place.partition_point(|b| b.offset <= offset);
        let buffer = self.by_place.get(after.checked_sub(1)?)?;
        if offset < buffer.offset + u64::from(buffer.stored) {
            Some(buffer)
        } else {
            None
        }
    }

    /// The raw first timestamp of the next buffer of the same processor.
    fn next_begin(&self, buffer: &BufferEntry) -> Option<Ticks> {
        let key = (buffer.processor, buffer.first_timestamp);
        let next = self.by_time.partition_point(|begin| *begin <= key);
        match self.by_time.get(next) {
            Some(&(processor, begin)) if processor == buffer.processor => Some(begin),
            _ => None,
        }
    }
}

/// The loss that damage of a file means: the records between the buffers around it. `source` and
/// `session` as for [`of_file`].
pub(crate) fn of_damage(
    damage: &Damage,
    buffers: &Surroundings,
    source: usize,
    session: usize,
    timeline: &Timeline,
) -> Loss {
    let mut loss = Loss {
        from: None,
        to: None,
        processor: None,
        what: LossKind::FileDamaged,
        source,
        session,
    };
    // Damage inside a buffer begins within it; what is missing may be of its time and later.
    let Some(buffer) = buffers.buffer_at(damage.range.start) else {
        return loss;
    };
    loss.from = Some(timeline.timestamp(source, buffer.first_timestamp));
    if damage.range.end <= buffer.offset + u64::from(buffer.stored) {
        loss.processor = Some(buffer.processor);
        // The next buffer of the same processor ends it.
        let next = buffers.next_begin(buffer);
        loss.to = next.map(|raw| timeline.timestamp(source, raw));
    }
    loss
}

#[cfg(test)]
mod tests {
    use etl_format::FileHeader;
    use etl_format::read::Options;
    use etl_format::write::record::PerfInfo;
    use etl_format::write::{Session, SessionConfig};

    use etl_format::FileTime;

    use super::*;

    /// Two buffers were lost, one after the other, and then an event.
    fn lossy(mode: LogFileMode, log_file_name: &str, buffers_lost: u32) -> Vec<u8> {
        let config = SessionConfig::new(FileHeader {
            mode,
            log_file_name: log_file_name.encode_utf16().collect(),
            events_lost: 1,
            buffers_lost,
            processors: 1,
            ..FileHeader::new()
        });
        let mut session = Session::in_memory(config).unwrap();
        let mut write = |timestamp, flags| {
            session.carry_losses(0, flags).unwrap();
            let record = PerfInfo::new(0x0f2e, timestamp);
            session.write(0, &record).unwrap();
        };
        write(10, BufferFlags(0));
        write(20, BufferFlags::BUFFER_LOST);
        write(30, BufferFlags::BUFFER_LOST);
        write(40, BufferFlags::EVENTS_LOST);
        session.close(Some(FileTime::new(50))).unwrap().output
    }

    #[test]
    fn count_has_no_place_where_flags_may_account_for_a_part_of_it() {
        let unplaced = |mode, name, buffers_lost| {
            let file = lossy(mode, name, buffers_lost);
            let trace = Trace::open(&file[..], &Options::default()).unwrap();
            let losses = of_file(&trace, 0, 0, &Timeline::new(vec![trace.clock()]));
            let unplaced = losses
                .iter()
                .filter(|loss| (loss.from, loss.to) == (None, None));
            (
                losses.len(),
                unplaced.map(|loss| loss.what).collect::<Vec<_>>(),
            )
        };
        let (kernel, relogged) = (LogFileMode::SEQUENTIAL, LogFileMode::RELOG);
        let selection = LogFileMode::RELOG | LogFileMode::ADD_HEADER;
        assert_eq!(unplaced(kernel, "a.etl", 3), (3, vec![]));
        assert_eq!(unplaced(relogged, "a.etl", 2), (3, vec![]));
        assert_eq!(
            unplaced(relogged, "a.etl", 3),
            (4, vec![LossKind::BuffersLost])
        );
        // Not all of the buffer in which events were lost may be in a selection.
        assert_eq!(
            unplaced(selection, "a.etl", 2),
            (4, vec![LossKind::EventsLost])
        );
        // One lost buffer may have belonged before two buffers of a merge.
        let merged = "[multiple files]";
        assert_eq!(unplaced(relogged, merged, 1), (3, vec![]));
        assert_eq!(
            unplaced(relogged, merged, 2),
            (4, vec![LossKind::BuffersLost])
        );
    }

    #[test]
    fn touches_spans_that_share_a_time() {
        let loss = |from, to| Loss {
            from,
            to,
            processor: None,
            what: LossKind::EventsLost,
            source: 0,
            session: 0,
        };
        assert!(
            loss(Some(Ticks::new(10)), Some(Ticks::new(20))).touches(Some(Ticks::new(20)), None)
        );
        assert!(
            !loss(Some(Ticks::new(10)), Some(Ticks::new(20))).touches(Some(Ticks::new(21)), None)
        );
        assert!(
            loss(Some(Ticks::new(10)), Some(Ticks::new(20))).touches(None, Some(Ticks::new(10)))
        );
        assert!(
            !loss(Some(Ticks::new(10)), Some(Ticks::new(20))).touches(None, Some(Ticks::new(9)))
        );
        assert!(loss(None, None).touches(Some(Ticks::new(5)), Some(Ticks::new(5))));
        assert!(
            loss(Some(Ticks::new(10)), None).touches(Some(Ticks::new(5)), Some(Ticks::new(11)))
        );
    }
}
