//! When the buffers of the trace end at a loss, so that its place is known.

use etl_format::Ticks;

/// The most buffers that end early. Each makes the file larger by up to a buffer.
const MAX_EARLY_BUFFERS: u32 = 1024;

/// Decides which losses end the buffers. A loss is flagged in its buffer, so a short buffer makes
/// its place precise.
#[derive(Debug)]
pub(super) struct LossPlaces {
    /// The least time between two losses that end the buffers: a tenth of a second.
    spacing: i64,
    /// The time of the last loss that ended the buffers.
    last: Option<Ticks>,
    early_buffers: u32,
    /// Whether events were lost before the event that is written next.
    is_pending: bool,
}

impl LossPlaces {
    /// For a clock with this frequency.
    pub fn new(frequency: i64) -> Self {
        LossPlaces {
            spacing: frequency / 10,
            last: None,
            early_buffers: 0,
            is_pending: false,
        }
    }

    /// Events were lost before the event that is written next.
    pub fn add(&mut self) {
        self.is_pending = true;
    }

    /// Whether the buffers of so many processors end after the event of this time.
    pub fn ends_buffers(&mut self, time: Ticks, processors: u16) -> bool {
        if !std::mem::take(&mut self.is_pending) {
            return false;
        }
        let is_spaced = match self.last {
            Some(last) => time.saturating_since(last) >= self.spacing,
            None => true,
        };
        if !is_spaced || !self.may_end_buffers(processors) {
            return false;
        }
        self.last = Some(time);
        true
    }

    /// Whether the buffers of so many processors may end early. Counts them.
    pub fn may_end_buffers(&mut self, processors: u16) -> bool {
        let early_buffers = self.early_buffers + u32::from(processors);
        if early_buffers > MAX_EARLY_BUFFERS {
            return false;
        }
        self.early_buffers = early_buffers;
        true
    }
}
