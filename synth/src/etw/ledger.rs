//! What becomes of a session's buffers: which events are in each, and whether it is in the file at
//! the end.
//!
//! An event that is in a buffer is not yet in a file. The ledger follows every buffer from its first
//! event to its place, by the sequence number that the writer gives it when it is sealed. It holds
//! what is on its way; of buffers that stand in a file it holds those only that something may still
//! happen to.

use core::fmt;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use etl_format::read::BufferHeader;
use etl_format::write::Output;

/// What became of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fate {
    /// It is in the file.
    Written,
    /// It was lost on its way to the disk.
    Lost,
    /// The file had its largest size and took no more.
    Full,
    /// A newer one took its place in a circular file.
    Overwritten,
    /// The power went, or nobody closed the session, before it was written; or it was in memory when
    /// the session ended.
    Unwritten,
    /// It was in memory, and a newer one took its place.
    Forgotten,
    /// It was handed to the consumer of a session in real time.
    Delivered,
    /// A fault of the file changed some of its bytes, or cut its end off.
    Damaged,
    /// The file was cut off before it.
    Gone,
}

impl Fate {
    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Written => "written",
            Fate::Lost => "lost",
            Fate::Full => "full",
            Fate::Overwritten => "overwritten",
            Fate::Unwritten => "unwritten",
            Fate::Forgotten => "forgotten",
            Fate::Delivered => "delivered",
            Fate::Damaged => "damaged",
            Fate::Gone => "gone",
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A buffer, and what became of it. One that something happens to later is told of again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferReport {
    /// Sequence number in the session.
    pub sequence: i64,
    /// The processor whose events it holds.
    pub processor: u16,
    /// Number of its first event and of its last ([`super::Raised::number`]).
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// How many events of the session lie in it.
    pub events: u64,
    /// What became of it.
    pub fate: Fate,
    /// Its file, where it is or was in one.
    pub file: Option<Arc<str>>,
    /// The bytes that it takes or took there.
    pub place: Range<u64>,
}

/// What a medium saw of a buffer.
#[derive(Debug)]
struct Placed {
    sequence: i64,
    file: Arc<str>,
    place: Range<u64>,
}

/// What media have seen.
type Seen = Rc<RefCell<Vec<Placed>>>;

/// A medium that tells the ledger which buffer was put where.
pub(super) struct Watched {
    medium: Box<dyn Output>,
    file: Arc<str>,
    seen: Seen,
}

impl Output for Watched {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        // What is no buffer is the last byte of a preallocated file.
        if let Ok(header) = BufferHeader::parse(bytes, at)
            && !header.is_header()
        {
            let sequence = header.sequence_number;
            let place = at..at.saturating_add(bytes.len() as u64);
            let file = Arc::clone(&self.file);
            self.seen.borrow_mut().push(Placed { sequence, file, place });
        }
        self.medium.write_at(at, bytes)
    }

    fn is_seekable(&self) -> bool {
        self.medium.is_seekable()
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        self.medium.flush()
    }
}

/// The buffer that a processor fills.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    first: u64,
    last: u64,
    events: u64,
}

/// The buffers of a session.
#[derive(Debug)]
pub(super) struct Ledger {
    seen: Seen,
    open: Vec<Open>,
    sequence: i64,
    sealed: VecDeque<BufferReport>,
    /// Handed to the writer, and not yet seen by the medium.
    under_way: VecDeque<BufferReport>,
    /// Buffers in files, by file and offset; empty unless something may still happen to them.
    placed: BTreeMap<(Arc<str>, u64), BufferReport>,
    remembers: bool,
    told: Vec<BufferReport>,
}

impl Ledger {
    /// For a session whose buffers may be changed after they were written, or not.
    pub fn new(remembers: bool) -> Self {
        Ledger {
            seen: Seen::default(),
            open: Vec::new(),
            sequence: 1,
            sealed: VecDeque::new(),
            under_way: VecDeque::new(),
            placed: BTreeMap::new(),
            remembers,
            told: Vec::new(),
        }
    }

    /// Buffers are numbered from here on.
    pub fn begin_at(&mut self, sequence: i64) {
        self.sequence = sequence;
    }

    /// The number of the oldest buffer that has not left; that of the next one when there is none.
    pub fn oldest(&self) -> i64 {
        self.sealed.front().map_or(self.sequence, |report| report.sequence)
    }

    /// The buffer that was sealed first has left, and is in no file.
    pub fn let_go(&mut self, fate: Fate) {
        if let Some(report) = self.sealed.pop_front() {
            self.told.push(BufferReport { fate, ..report });
        }
    }

    /// A medium that this ledger watches.
    pub fn watch(&self, file: &str, medium: Box<dyn Output>) -> Watched {
        Watched { medium, file: file.into(), seen: Rc::clone(&self.seen) }
    }

    /// An event is in the buffer of a processor.
    pub fn event(&mut self, processor: u16, number: u64) {
        let lane = usize::from(processor);
        if self.open.len() <= lane {
            self.open.resize(lane + 1, Open::default());
        }
        let Some(open) = self.open.get_mut(lane) else { return };
        if open.events == 0 {
            open.first = number;
        }
        open.last = number;
        open.events += 1;
    }

    /// The buffer of a processor takes no more.
    pub fn seal(&mut self, processor: u16) {
        if let Some(report) = self.close(processor, Fate::Written) {
            self.sealed.push_back(report);
        }
    }

    /// The buffers of all processors take no more.
    pub fn seal_all(&mut self) {
        for lane in 0..self.open.len() {
            self.seal(u16::try_from(lane).unwrap_or(u16::MAX));
        }
    }

    /// The buffer of a processor is lost.
    pub fn lose(&mut self, processor: u16) {
        let lost = self.close(processor, Fate::Lost);
        self.told.extend(lost);
    }

    fn close(&mut self, processor: u16, fate: Fate) -> Option<BufferReport> {
        let open = self.open.get_mut(usize::from(processor)).filter(|o| o.events > 0)?;
        let Open { first, last, events } = core::mem::take(open);
        let sequence = self.sequence;
        self.sequence += 1;
        Some(BufferReport {
            sequence,
            processor,
            first,
            last,
            events,
            fate,
            file: None,
            place: 0..0,
        })
    }

    /// The buffer that was sealed first went to the file, which took it or not.
    pub fn flushed(&mut self, taken: bool) {
        if let Some(mut report) = self.sealed.pop_front() {
            if taken {
                self.under_way.push_back(report);
            } else {
                report.fate = Fate::Full;
                self.told.push(report);
            }
        }
        self.look();
    }

    /// Notes what the media have seen.
    pub fn look(&mut self) {
        let seen = core::mem::take(&mut *self.seen.borrow_mut());
        for Placed { sequence, file, place } in seen {
            let Some(at) = self.under_way.iter().position(|r| r.sequence == sequence) else {
                continue;
            };
            let Some(mut report) = self.under_way.remove(at) else { continue };
            (report.file, report.place) = (Some(Arc::clone(&file)), place);
            self.told.push(report.clone());
            if self.remembers
                && let Some(mut old) = self.placed.insert((file, report.place.start), report)
            {
                old.fate = Fate::Overwritten;
                self.told.push(old);
            }
        }
    }

    /// The session is over: what is not in a file now will never be.
    pub fn end(&mut self) {
        self.look();
        for lane in 0..self.open.len() {
            let open = self.close(u16::try_from(lane).unwrap_or(u16::MAX), Fate::Unwritten);
            self.told.extend(open);
        }
        let left = self.under_way.drain(..).chain(self.sealed.drain(..));
        self.told.extend(left.map(|report| BufferReport { fate: Fate::Unwritten, ..report }));
    }

    /// Bytes of a file are no longer what was written, or no longer there.
    pub fn damaged(&mut self, name: &str, bytes: &Range<u64>, gone: bool) {
        for ((file, _), report) in &mut self.placed {
            let meet = report.place.start < bytes.end && bytes.start < report.place.end;
            let all = gone && bytes.start <= report.place.start;
            let fate = if all { Fate::Gone } else { Fate::Damaged };
            if **file == *name && meet && report.fate < fate {
                report.fate = fate;
                self.told.push(report.clone());
            }
        }
    }

    /// What is to be told, once.
    pub fn take(&mut self) -> Vec<BufferReport> {
        core::mem::take(&mut self.told)
    }
}
