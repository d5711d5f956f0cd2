//! Writing that ends early: a full disk, a crash at any byte. Salvage mode reads the beginning of
//! what was written.

use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use crate::writing::{START, event};
use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, LogFileMode};
use etl_format::read::{Options, Order, Trace};
use etl_format::write::{BufferCompressor, Session, SessionConfig, TraceFile};
use etl_format::{FileHeader, FileTime, Ticks};
use proptest::prelude::*;

/// A disk with space for `left` bytes, which takes `piece` bytes per write.
#[derive(Clone)]
struct Disk {
    file: Rc<RefCell<Cursor<Vec<u8>>>>,
    left: Rc<Cell<usize>>,
    piece: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.piece).min(self.left.get());
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left.set(self.left.get() - len);
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
    SessionConfig::new(FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        buffer_size: 0x400,
        processors: 2,
        mode: mode | LogFileMode::USE_KBYTES_FOR_SIZE,
        maximum_file_size: match () {
            () if mode.has(LogFileMode::CIRCULAR) => 4,
            () if mode.has(LogFileMode::PREALLOCATE) || mode.has(LogFileMode::NEWFILE) => 16,
            () => 0,
        },
        ..FileHeader::new()
    })
}

fn begin(disk: Disk, mode: LogFileMode) -> etl_format::Result<Session<TraceFile<Disk>>> {
    let output = TraceFile::new(disk);
    let mut config = config(mode);
    if mode.has(LogFileMode::COMPRESSED) {
        config.compressor = Some(BufferCompressor::new(
            CompressionFormat::XPRESS,
            Effort::Fast,
        )?);
    }
    Session::create(output, config)
}

fn feed(session: &mut Session<TraceFile<Disk>>, events: u32) -> etl_format::Result<()> {
    for number in 0..events {
        let payload = [number as u8 + 1; 200];
        let record = event(number, 2_000 + i64::from(number), &payload);
        session.write((number % 2) as u16, &record)?;
    }
    Ok(())
}

/// Writes events until the disk is full, or to the end; returns the error, if there was one.
fn write(disk: Disk, mode: LogFileMode, events: u32) -> etl_format::Result<()> {
    let mut session = begin(disk, mode)?;
    feed(&mut session, events)?;
    session.close(None).map(|_| ())
}

/// The numbers of the events that salvage reads, by processor.
fn salvaged(file: &[u8]) -> [Vec<u32>; 2] {
    let (numbers, torn) = salvaged_and_torn(file);
    assert_eq!(torn, 0, "incomplete events");
    numbers
}

/// The same, and the number of incomplete events: a reader cannot detect a record whose end is
/// still zeros of a preallocated file or old bytes of a circular file.
fn salvaged_and_torn(file: &[u8]) -> ([Vec<u32>; 2], u32) {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let (mut out, mut torn) = ([vec![], vec![]], 0);
    while let Some(record) = records.next_record().unwrap() {
        if record.is_event() {
            let number = record.thread_id().unwrap().get();
            if record.payload().iter().all(|b| *b == number as u8 + 1) {
                out[usize::from(record.processor())].push(number);
            } else {
                torn += 1;
            }
        }
    }
    (out, torn)
}

fn disk(left: usize, piece: usize) -> Disk {
    Disk {
        file: Rc::default(),
        left: Rc::new(Cell::new(left)),
        piece,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn full_disk_leaves_the_first_events(
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
        // The first 0x180 bytes are needed to recognize a trace.
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
        // Complete buffers are always readable.
        if !compressed {
            let whole = (file.len() / 0x400).saturating_sub(1);
            let per_buffer = (0x400 - 0x48) / 0x118;
            let found: usize = salvaged(&file).iter().map(Vec::len).sum();
            let least = (whole * per_buffer).min(events as usize);
            prop_assert!(found + 2 * per_buffer >= least, "{} of {}", found, least);
        }
    }
}

/// A crash between any two writes to a circular file leaves a file with complete events.
#[test]
fn crash_in_a_circular_file_leaves_complete_events() {
    for left in (0x400..40_000).step_by(0x400) {
        let disk = disk(left, usize::MAX);
        let written = write(disk.clone(), LogFileMode::CIRCULAR, 90);
        let file = disk.file.borrow().get_ref().clone();
        let found = salvaged(&file);
        let all: usize = found.iter().map(Vec::len).sum();
        assert!(
            all >= (file.len() / 0x400 - 1) * 2,
            "{all} events in {} bytes",
            file.len()
        );
        for numbers in found {
            assert!(numbers.windows(2).all(|n| n[0] < n[1]));
        }
        assert!(written.is_ok() || left < 38_000);
    }
}

/// Every mode of the writer: a disk that is full at any byte leaves the beginning of what was
/// written, in writes of any length, and the error is one of the disk.
#[test]
fn disk_full_at_any_byte_leaves_the_first_events() {
    let modes = [
        LogFileMode::SEQUENTIAL,
        LogFileMode::SEQUENTIAL | LogFileMode::PREALLOCATE,
        LogFileMode::SEQUENTIAL | LogFileMode::NO_PER_PROCESSOR_BUFFERING,
        LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED,
        LogFileMode::APPEND,
        LogFileMode::NEWFILE,
        LogFileMode::CIRCULAR,
    ];
    for mode in modes {
        let whole = disk(usize::MAX, usize::MAX);
        write(whole.clone(), mode, 12).unwrap();
        let total = usize::MAX - whole.left.get();
        for left in 0..=total {
            let piece = [usize::MAX, 1 + left % 97][left % 2];
            let disk = disk(left, piece);
            let written = write(disk.clone(), mode, 12);
            let file = disk.file.borrow().get_ref().clone();
            assert_eq!(written.is_ok(), left == total, "{mode:?} at {left}");
            if let Err(error) = written {
                assert_eq!(error.code(), "io", "{mode:?} at {left}");
            }
            // The first 0x180 bytes are needed to recognize a trace.
            if left < 0x180 {
                continue;
            }
            let (found, torn) = salvaged_and_torn(&file);
            let over = mode.has(LogFileMode::PREALLOCATE) || mode.has(LogFileMode::CIRCULAR);
            assert!(torn <= u32::from(over), "{mode:?} at {left}");
            for (processor, numbers) in found.iter().enumerate() {
                let one = mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
                let mine = |n: &u32| {
                    if one {
                        processor == 0
                    } else {
                        (n % 2) as usize == processor
                    }
                };
                let all: Vec<u32> = (0..12).filter(mine).collect();
                match mode.has(LogFileMode::CIRCULAR) {
                    // Overwritten events are missing.
                    true => assert!(numbers.windows(2).all(|n| n[0] < n[1])),
                    false => assert!(all.starts_with(numbers), "{mode:?} at {left}: {numbers:?}"),
                }
                if left == total && !mode.has(LogFileMode::CIRCULAR) {
                    assert_eq!(*numbers, all, "{mode:?}");
                }
            }
        }
    }
}

/// Sessions that are left as a crash does: what was flushed is there, in every mode.
#[test]
fn abandon_leaves_the_flushed_events() {
    for mode in [
        LogFileMode::SEQUENTIAL,
        LogFileMode::SEQUENTIAL | LogFileMode::PREALLOCATE,
        LogFileMode::SEQUENTIAL | LogFileMode::NO_PER_PROCESSOR_BUFFERING,
        LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED,
        LogFileMode::NEWFILE,
    ] {
        for events in 0..30 {
            let disk = disk(usize::MAX, usize::MAX);
            let mut session = begin(disk.clone(), mode).unwrap();
            feed(&mut session, events).unwrap();
            let summary = session.abandon().unwrap().report;
            let file = disk.file.borrow().get_ref().clone();
            let found = salvaged(&file);
            let all: usize = found.iter().map(Vec::len).sum();
            assert_eq!(all as u64, summary.events_written, "{mode:?}");
            for numbers in &found {
                assert!(numbers.windows(2).all(|n| n[0] < n[1]));
            }
            let trace = Trace::open(&file[..], &Options::salvage()).unwrap();
            assert!(!trace.header().is_closed(), "{mode:?}");
        }
    }
}
