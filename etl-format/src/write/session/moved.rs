//! Writes records without their own timestamp that come from another buffer.
//!
//! A reader returns such a record with the timestamp of the record before it in its buffer. So a
//! reader of the new trace returns the same timestamp only if the record follows a record with this
//! timestamp in the same buffer:
//!
//! * If such a record is at the end of the current buffer, the record follows it. If the buffer is
//!   full, both begin the next buffer.
//! * Otherwise a WPP message receives its own timestamp, for which its kind has a flag and a field.
//! * A record of another kind waits for a record of its processor with its timestamp, and follows
//!   it. If a later record comes first, the waiting record is written before it, and its timestamp
//!   is lost: [`super::SessionSummary::timestamps_lost`].

use super::lane::Waiting;
use super::{Session, no_lane};
use crate::Ticks;
use crate::constants::BUFFER_HEADER_SIZE;
use crate::error::Result;
use crate::write::output::Output;
use crate::write::put::{align, unwritable};
use crate::write::record::{Raw, Record, insert_timestamp};

/// The largest number of waiting records of a processor.
const MAX_WAITING: usize = 64;

impl<O: Output> Session<O> {
    /// Writes a record without a timestamp that a reader should return with `timestamp`.
    pub(super) fn write_moved(
        &mut self,
        index: usize,
        record: &impl Record,
        timestamp: i64,
    ) -> Result<()> {
        let size = self.config.header.buffer_size as usize;
        let mut bytes = Vec::new();
        record.encode(&mut bytes)?;
        let padded = bytes.len().next_multiple_of(8);
        if padded > size - BUFFER_HEADER_SIZE {
            return Err(unwritable(
                "the record is larger than a buffer of the session",
            ));
        }
        self.cut(index)?;
        let lane = self.lanes.get(index).ok_or_else(no_lane)?;
        let group = lane.group.filter(|group| group.timestamp == timestamp);
        if group.is_some() && lane.bytes.len().saturating_add(padded) <= size {
            return self.put(
                index,
                &Raw {
                    bytes: &bytes,
                    timestamp: None,
                },
            );
        }
        if padded + 8 <= size - BUFFER_HEADER_SIZE && insert_timestamp(&mut bytes, timestamp) {
            return self.write_message(index, &bytes, timestamp);
        }
        align(&mut bytes);
        match group {
            Some(group)
                if lane.bytes.len() - group.offset + padded <= size - BUFFER_HEADER_SIZE =>
            {
                self.move_group(index)?;
                self.add_to_group(index, &bytes)
            }
            _ => self.wait(index, Waiting { bytes, timestamp }),
        }
    }

    /// Writes a message that received a timestamp.
    fn write_message(&mut self, index: usize, bytes: &[u8], timestamp: i64) -> Result<()> {
        self.release(index, timestamp)?;
        self.put(
            index,
            &Raw {
                bytes,
                timestamp: Some(timestamp.into()),
            },
        )?;
        self.join(index, timestamp)
    }

    /// Moves the last timestamped record of a buffer, and the records after it, to the next buffer.
    fn move_group(&mut self, index: usize) -> Result<()> {
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        let Some(mut group) = lane.group else {
            return Ok(());
        };
        let mut next = self.spare.pop().unwrap_or_default();
        next.clear();
        next.resize(BUFFER_HEADER_SIZE, 0);
        next.extend(lane.bytes.drain(group.offset..));
        lane.events = lane.events.saturating_sub(group.events);
        if lane.is_empty() {
            // The buffer contained nothing else.
            self.spare.push(std::mem::replace(&mut lane.bytes, next));
        } else {
            let current_offset = lane.bytes.len() + next.len() - BUFFER_HEADER_SIZE;
            self.seal_lane(index, current_offset, Some(next));
            if !self.config.hold_sealed {
                self.flush(group.timestamp)?;
            }
        }
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        group.offset = BUFFER_HEADER_SIZE;
        lane.events = group.events;
        lane.latest = Some(group.timestamp);
        lane.group = Some(group);
        Ok(())
    }

    /// Appends an aligned record that fits into the buffer.
    fn add_to_group(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        lane.bytes.extend_from_slice(bytes);
        lane.events += 1;
        if let Some(group) = &mut lane.group {
            group.events += 1;
        }
        Ok(())
    }

    fn wait(&mut self, index: usize, record: Waiting) -> Result<()> {
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        lane.waiting.push_back(record);
        if lane.waiting.len() > MAX_WAITING {
            self.give_up(index)
        } else {
            Ok(())
        }
    }

    /// Before a record with `timestamp`: writes the records that waited for an earlier timestamp.
    pub(super) fn release(&mut self, index: usize, timestamp: i64) -> Result<()> {
        while let Some(lane) = self.lanes.get(index)
            && let Some(waiting) = lane.waiting.front()
            && waiting.timestamp < timestamp
        {
            self.give_up(index)?;
        }
        Ok(())
    }

    /// After a record with `timestamp`: writes the records that waited for it.
    pub(super) fn join(&mut self, index: usize, timestamp: i64) -> Result<()> {
        loop {
            let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
            let due = lane
                .waiting
                .pop_front_if(|waiting| waiting.timestamp == timestamp);
            let Some(waiting) = due else {
                return Ok(());
            };
            // A record that did not fit may have begun a buffer, in which no record has the
            // timestamp.
            let Some(group) = lane.group.filter(|group| group.timestamp == timestamp) else {
                lane.waiting.push_front(waiting);
                self.give_up(index)?;
                continue;
            };
            let bytes = &waiting.bytes;
            let size = self.config.header.buffer_size as usize;
            if lane.bytes.len() + bytes.len() > size {
                if lane.bytes.len() - group.offset + bytes.len() > size - BUFFER_HEADER_SIZE {
                    lane.waiting.push_front(waiting);
                    self.give_up(index)?;
                    continue;
                }
                self.move_group(index)?;
            }
            self.add_to_group(index, bytes)?;
        }
    }

    /// Writes the record that has waited longest at the end of the buffer.
    fn give_up(&mut self, index: usize) -> Result<()> {
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        let Some(waiting) = lane.waiting.pop_front() else {
            return Ok(());
        };
        self.summary.timestamps_lost += 1;
        self.put(index, &Aligned(&waiting.bytes))
    }

    /// Writes all waiting records.
    pub(super) fn release_all(&mut self) -> Result<()> {
        for index in 0..self.lanes.len() {
            while let Some(lane) = self.lanes.get(index)
                && !lane.waiting.is_empty()
            {
                self.give_up(index)?;
            }
        }
        Ok(())
    }
}

/// A record that was encoded and aligned before.
struct Aligned<'a>(&'a [u8]);

impl Record for Aligned<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.0);
        Ok(())
    }

    fn timestamp(&self) -> Option<Ticks> {
        None
    }
}
