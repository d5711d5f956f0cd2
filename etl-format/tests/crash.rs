//! Writing that ends before its time: a full disk, a crash at any byte. What is on disk by then is
//! read by salvage, and is the beginning of what was written.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod writing;

use std::cell::RefCell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, LogFileMode};
use etl_format::read::{Options, Trace};
use etl_format::write::{BufferPacker, File, LogFileHeader, Session, SessionConfig};
use proptest::prelude::*;
use writing::{START, event};

/// A disk that takes so many bytes, in pieces of so many, and no more.
#[derive(Clone)]
struct Disk {
    file: Rc<RefCell<Cursor<Vec<u8>>>>,
    left: usize,
    piece: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.piece).min(self.left);
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left -= len;
        self.file.borrow_mut().write(&bytes[..len])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.borrow_mut().seek(to)
    }
}

fn config(mode: LogFileMode) -> SessionConfig {
    SessionConfig::new(LogFileHeader {
        stamp: 1_000,
        start_time: START,
        buffer_size: 0x400,
        processors: 2,
        mode: mode | LogFileMode::USE_KBYTES_FOR_SIZE,
        maximum_file_size: if mode.has(LogFileMode::CIRCULAR) { 8 } else { 0 },
        ..LogFileHeader::new()
    })
}

/// Writes events until the disk is full, or to the end; returns the error, if there was one.
fn write(disk: Disk, mode: LogFileMode, events: u32) -> etl_format::Result<()> {
    let medium = File::new(disk);
    let mut session = if mode.has(LogFileMode::COMPRESSED) {
        let packer = BufferPacker::new(CompressionFormat::XPRESS, Effort::Fast)?;
        Session::create_packed(medium, config(mode), Box::new(packer))?
    } else {
        Session::create(medium, config(mode))?
    };
    for number in 0..events {
        let payload = [number as u8; 200];
        let record = event(number, 2_000 + i64::from(number), &payload);
        session.write((number % 2) as u16, &record)?;
    }
    session.close(None).map(|_| ())
}

/// The numbers of the events that salvage reads, by processor.
fn salvaged(file: &[u8]) -> [Vec<u32>; 2] {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut records = trace.ordered().unwrap();
    let mut out = [vec![], vec![]];
    while let Some(record) = records.next_record().unwrap() {
        if record.is_event() {
            let number = record.thread_id().unwrap();
            assert!(record.payload().iter().all(|b| *b == number as u8), "an event of no one");
            out[usize::from(record.processor())].push(number);
        }
    }
    out
}

fn disk(left: usize, piece: usize) -> Disk {
    Disk { file: Rc::default(), left, piece }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_full_disk_leaves_the_beginning(
        left in 0..24_000_usize,
        piece in prop_oneof![Just(usize::MAX), 1..900_usize],
        events in 0..60_u32,
        compressed: bool,
    ) {
        let mode = LogFileMode::SEQUENTIAL
            | if compressed { LogFileMode::COMPRESSED } else { LogFileMode(0) };
        let disk = disk(left, piece);
        let written = write(disk.clone(), mode, events);
        let file = disk.file.borrow().get_ref().clone();
        if let Err(error) = &written {
            prop_assert_eq!(error.code(), "io");
            prop_assert!(file.len() <= left);
        }
        // Without its first 0x180 bytes a file does not tell what it is.
        if file.len() < 0x180 {
            prop_assert!(written.is_err());
            return Ok(());
        }
        for (processor, numbers) in salvaged(&file).iter().enumerate() {
            let all: Vec<u32> = (0..events).filter(|n| (n % 2) as usize == processor).collect();
            prop_assert!(all.starts_with(numbers), "{:?}", numbers);
            if written.is_ok() {
                prop_assert_eq!(numbers, &all);
            }
        }
        // Whole buffers are never lost to what comes behind them.
        if !compressed {
            let whole = (file.len() / 0x400).saturating_sub(1);
            let per_buffer = (0x400 - 0x48) / 0x118;
            let found: usize = salvaged(&file).iter().map(Vec::len).sum();
            let least = (whole * per_buffer).min(events as usize);
            prop_assert!(found + 2 * per_buffer >= least, "{} of {}", found, least);
        }
    }
}

/// A circular file is written over while it grows old; a crash between any two writes leaves a file
/// whose events are whole.
#[test]
fn a_crash_in_a_circular_file_leaves_whole_events() {
    for left in (0x400..40_000).step_by(0x400) {
        let disk = disk(left, usize::MAX);
        let written = write(disk.clone(), LogFileMode::CIRCULAR, 90);
        let file = disk.file.borrow().get_ref().clone();
        let found = salvaged(&file);
        let all: usize = found.iter().map(Vec::len).sum();
        assert!(all >= (file.len() / 0x400 - 1) * 2, "{all} events in {} bytes", file.len());
        for numbers in found {
            assert!(numbers.windows(2).all(|n| n[0] < n[1]));
        }
        assert!(written.is_ok() || left < 38_000);
    }
}
