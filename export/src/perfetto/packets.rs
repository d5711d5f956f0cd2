//! Writes packets: a trace is a sequence of them.

use std::io::{self, BufWriter, Read, SeekFrom, Write};

use super::fields::{packet, sequence_flags, trace};
use super::storage::Storage;
use super::time::TraceTime;
use crate::protobuf::Message;

/// Bytes that are collected before they are written.
const CHUNK: usize = 1 << 16;

/// The id of the writer: interned data belong to one.
const SEQUENCE: u64 = 1;

/// Buffers writes, and keeps the first error: observers cannot return it.
#[derive(Debug)]
pub(super) struct Output<S: Storage> {
    out: BufWriter<S>,
    error: Option<io::Error>,
}

impl<S: Storage> Output<S> {
    pub fn new(storage: S) -> Self {
        Output {
            out: BufWriter::with_capacity(CHUNK, storage),
            error: None,
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
    }

    /// Removes the written bytes.
    pub fn clear(&mut self) {
        if self.error.is_some() {
            return;
        }
        let cleared = self.out.flush().and_then(|()| self.out.get_mut().clear());
        self.error = cleared.err();
    }

    /// Writes the rest.
    pub fn flush(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes the rest, and returns a reader of all bytes.
    pub fn read_back(&mut self) -> io::Result<impl Read + '_> {
        self.flush()?;
        let storage = self.out.get_mut();
        storage.seek(SeekFrom::Start(0))?;
        Ok(io::BufReader::with_capacity(CHUNK, storage))
    }
}

/// The packets of a trace.
#[derive(Debug)]
pub(super) struct Packets<S: Storage> {
    output: Output<S>,
    time: Option<TraceTime>,
    packet: Message,
    field: Message,
    count: u64,
}

impl<S: Storage> Packets<S> {
    pub fn new(storage: S) -> Self {
        Packets {
            output: Output::new(storage),
            time: None,
            packet: Message::default(),
            field: Message::default(),
            count: 0,
        }
    }

    /// The clock, if it was set.
    pub fn time(&self) -> Option<TraceTime> {
        self.time
    }

    pub fn set_time(&mut self, time: TraceTime) {
        self.time = Some(time);
    }

    /// Writes a packet with a message as its one field, and with a time in nanoseconds if the
    /// message has none.
    pub fn write(&mut self, nanos: Option<u64>, field: u32, message: &Message) {
        self.write_with(nanos, field, message, &Message::default());
    }

    /// The same, with interned data in front of it.
    pub fn write_with(
        &mut self,
        nanos: Option<u64>,
        field: u32,
        message: &Message,
        interned: &Message,
    ) {
        self.packet.clear();
        if let Some(nanos) = nanos {
            self.packet.uint(packet::TIMESTAMP, nanos);
        }
        self.packet.uint(packet::SEQUENCE, SEQUENCE);
        // The first packet begins a state, on which all others build.
        let flags = if self.count == 0 {
            sequence_flags::CLEARED
        } else {
            sequence_flags::NEEDS_STATE
        };
        self.packet.uint(packet::SEQUENCE_FLAGS, flags);
        if !interned.bytes().is_empty() {
            self.packet.message(packet::INTERNED_DATA, interned);
        }
        if !message.bytes().is_empty() {
            self.packet.message(field, message);
        }
        self.field.clear();
        self.field.message(trace::PACKET, &self.packet);
        self.output.write(self.field.bytes());
        self.count += 1;
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.output.clear();
        self.time = None;
        self.count = 0;
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
