//! When the buffers of the trace end at a loss, so that its place is known.

use etl_format::Ticks;

/// The most buffers that end early. Each makes the file larger by a buffer.
const MAX_EARLY_BUFFERS: u32 = 256;

/// Decides which losses end a buffer. A loss is flagged in its buffer, so its place is as precise as
/// the buffer is short.
#[derive(Debug)]
pub(super) struct LossPlaces {
    /// The least time between two such ends: a tenth of a second.
    spacing: i64,
    /// The time of the last such end.
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

    /// Whether the buffers end after the event of this time.
    pub fn ends_buffers(&mut self, time: Ticks) -> bool {
        if !std::mem::take(&mut self.is_pending) || !self.is_allowed(time) {
            return false;
        }
        self.early_buffers += 1;
        self.last = Some(time);
        true
    }

    fn is_allowed(&self, time: Ticks) -> bool {
        let is_spaced = match self.last {
            Some(last) => time.saturating_since(last) >= self.spacing,
            None => true,
        };
        is_spaced && self.early_buffers < MAX_EARLY_BUFFERS
    }
}
