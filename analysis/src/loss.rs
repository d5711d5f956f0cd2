//! What was lost, and where: which processor, which span of time.
//!
//! Whatever a rule misses may be among what was lost, and is then undecided. So each loss is placed
//! as closely as the file allows: a flag on a buffer assigns it to a processor between two
//! timestamps; a header's count alone may be of any time of the session.

use etl_format::Ticks;
use std::collections::HashMap;

use etl_format::constants::{BufferFlags, LogFileMode};
use etl_format::read::{BufferEntry, Damage, Note, Source, Trace};
use serde::Serialize;

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
    /// The processor, where it is known.
    pub processor: Option<u16>,
    /// What was lost.
    pub what: LossKind,
    /// Which of the files.
    pub source: usize,
    /// The first of the files of its session.
    pub session: usize,
}

impl Loss {
    /// Whether records of a session may be missing by it: those of a processor, or of any. The
    /// session is that of [`Machine::session_of`](crate::Machine::session_of).
    #[must_use]
    pub fn is_of(&self, session: usize, processor: Option<u16>) -> bool {
        let is_other = self
            .processor
            .zip(processor)
            .is_some_and(|(lost, of)| lost != of);
        self.session == session && !is_other
    }

    /// Whether it may have happened within a span.
    #[must_use]
    pub fn touches(&self, from: Option<Ticks>, to: Option<Ticks>) -> bool {
        let begins_before = |a: Option<Ticks>, b: Option<Ticks>| match (a, b) {
            (Some(a), Some(b)) => a <= b,
            _ => true,
        };
        begins_before(self.from, to) && begins_before(from, self.to)
    }
}

/// The losses of known places, in the order of their ends, for a reader in time order.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    losses: std::iter::Peekable<std::vec::IntoIter<(Ticks, Loss)>>,
}

impl Passed {
    /// Of these losses.
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

/// The losses that a file reports. `source` is its index, `session` is the index of the first file
/// of its session, and `at` maps its timestamps.
pub(crate) fn of_file<S: Source>(
    trace: &Trace<S>,
    source: usize,
    session: usize,
    at: impl Fn(Ticks) -> Ticks,
) -> Vec<Loss> {
    let mut streams: Vec<&BufferEntry> = trace.buffers().iter().filter(|b| !b.rebuilt).collect();
    streams.sort_by_key(|b| (b.processor, b.first_timestamp, b.sequence_number));
    let mut losses = Vec::new();
    let mut add = |what, processor, (from, to)| {
        losses.push(Loss {
            from,
            to,
            processor,
            what,
            source,
            session,
        });
    };
    let indices: HashMap<u64, usize> = streams
        .iter()
        .enumerate()
        .map(|(index, b)| (b.offset, index))
        .collect();
    // The buffer that is so many places after the one at an offset, on its processor.
    let neighbour = |offset: u64, processor: u16, by: isize| {
        let b = streams.get(indices.get(&offset)?.checked_add_signed(by)?)?;
        (b.processor == processor).then_some(*b)
    };
    let around = |offset: u64, processor: u16, by: [isize; 2]| {
        let [from, to] = by.map(|by| neighbour(offset, processor, by));
        (
            from.map(|b| at(b.first_timestamp)),
            to.map(|b| at(b.first_timestamp)),
        )
    };
    let of_several_files = trace.header().is_of_several_files();
    let (mut counted, mut located) = ((0u32, 0u32), (false, 0u32));
    for note in trace.notes() {
        match *note {
            Note::EventsLost(n) => counted.0 = n,
            Note::BuffersLost(n) => counted.1 = n,
            Note::EventsLostInBuffer { offset, processor } => {
                located.0 = true;
                add(
                    LossKind::EventsLost,
                    Some(processor),
                    around(offset, processor, [0, 1]),
                );
            }
            Note::BufferLostBefore { offset, processor } => {
                // A buffer of one source may be missing among several of the others.
                let is_same = of_several_files
                    && neighbour(offset, processor, -1)
                        .is_some_and(|b| b.flags.has(BufferFlags::BUFFER_LOST));
                located.1 = located.1.saturating_add(u32::from(!is_same));
                add(
                    LossKind::BuffersLost,
                    Some(processor),
                    around(offset, processor, [-1, 0]),
                );
            }
            Note::Unclosed => {
                let last = streams.iter().map(|b| b.first_timestamp).max().map(&at);
                add(LossKind::EndMissing, None, (last, None));
            }
            _ => {}
        }
    }
    // A count has no location; flags on buffers have. A buffer without selected records has none.
    if counted.0 > 0 && (!located.0 || trace.header().is_selection()) {
        add(LossKind::EventsLost, None, (None, None));
    }
    // The buffers that were missing from the source of a relogged file are counted without a flag.
    let relogged = trace.header().mode.has(LogFileMode::RELOG);
    if counted.1 > 0 && (located.1 == 0 || relogged && counted.1 > located.1) {
        add(LossKind::BuffersLost, None, (None, None));
    }
    if trace.overwritten().is_some() {
        let mut known = None;
        for b in streams.iter().filter(|b| !is_first(trace, b)) {
            // They stand by processor and time: the first one of each is where what is left begins.
            if known != Some(b.processor) {
                known = Some(b.processor);
                let until = at(b.first_timestamp).saturating_add(-1);
                add(LossKind::Overwritten, known, (None, Some(until)));
            }
        }
    }
    losses
}

/// Whether a buffer is the one of the file's header, which stays where it is.
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
    /// Processors and first timestamps of those that were not rebuilt, sorted.
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
}

/// The loss that damage of a file means: what stood between the buffers around it. `source`,
/// `session` and `at` as for [`of_file`].
pub(crate) fn of_damage(
    damage: &Damage,
    buffers: &Surroundings,
    source: usize,
    session: usize,
    at: impl Fn(Ticks) -> Ticks,
) -> Loss {
    let Surroundings { by_place, by_time } = buffers;
    // Damage inside a buffer begins within it; what is missing may be of its time and later.
    let index = by_place.partition_point(|b| b.offset <= damage.range.start);
    let inside = index.checked_sub(1).and_then(|i| by_place.get(i));
    let within = inside.filter(|b| damage.range.start < b.offset + u64::from(b.stored));
    let processor = within.filter(|b| damage.range.end <= b.offset + u64::from(b.stored));
    let from = within.map(|b| at(b.first_timestamp));
    // Later buffers of the same processor bound it, where it is inside one.
    let to = processor.and_then(|own| {
        let (processor, timestamp) = (own.processor, own.first_timestamp);
        let later = by_time.partition_point(|&b| b <= (processor, timestamp));
        let later = by_time.get(later).filter(|(other, _)| *other == processor);
        later.map(|&(_, timestamp)| at(timestamp))
    });
    Loss {
        from,
        to,
        processor: processor.map(|b| b.processor),
        what: LossKind::FileDamaged,
        source,
        session,
    }
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
            let losses = of_file(&trace, 0, 0, |at| at);
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
        let (processor, what) = (None, LossKind::EventsLost);
        let loss = |from, to| Loss {
            from,
            to,
            processor,
            what,
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
