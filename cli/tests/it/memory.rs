//! The memory for buffers is tied to the size of a trace, and `--max-memory` changes it. The test
//! binary `memory` measures what commands take.

use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, LogFileMode};
use etl_format::write::record::Event;
use etl_format::write::{BufferCompressor, Session, SessionConfig};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};
use etl_test_support::needs;

use crate::common::{directory, etlkit};

const PROCESSORS: u16 = 100;

/// A small file whose buffers overlap in time and take 100 MiB together.
fn expanding() -> Vec<u8> {
    let mut header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(133_000_000_000_000_000),
        processors: PROCESSORS.into(),
        buffer_size: 1 << 20,
        mode: LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED,
        ..FileHeader::new()
    };
    header.set_log_version();
    let mut config = SessionConfig::new(header);
    config.compressor =
        Some(BufferCompressor::new(CompressionFormat::XPRESS, Effort::default()).unwrap());
    let mut session = Session::in_memory(config).unwrap();
    let payload = [0; 60_000];
    for round in 0..17 {
        for processor in 0..PROCESSORS {
            let event = Event::new(
                Guid::new(1, 2, 3, [4; 8]),
                EventDescriptor {
                    id: 1,
                    level: 4,
                    ..EventDescriptor::default()
                },
                2_000 + round * i64::from(PROCESSORS) + i64::from(processor),
            )
            .process(4, 8)
            .payload(&payload);
            session.write(processor, &event).unwrap();
        }
    }
    session.finish().unwrap()
}

#[needs(time)]
#[test]
fn every_command_refuses_to_exceed_the_memory_budget() {
    let bytes = expanding();
    assert!(bytes.len() < 150_000, "{} bytes", bytes.len());
    let here = directory(&[("t.etl", &bytes)]);
    for args in [
        &["verify", "t.etl"][..],
        &["diff", "t.etl", "t.etl"],
        &["slice", "t.etl", "-o", "out.etl", "--force"],
        &["scrub", "t.etl", "-o", "out.etl", "--force"],
        &["repair", "t.etl", "-o", "out.etl", "--force"],
        &["merge", "t.etl", "-o", "out.etl", "--force"],
    ] {
        let said = etlkit(here.path(), args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains("--max-memory"), "{args:?}: {}", said.err);
        let said = etlkit(here.path(), &[args, &["--max-memory", "512M"]].concat());
        assert!(!said.err.contains("--max-memory"), "{args:?}: {}", said.err);
        assert!(
            args[0] == "verify" || said.code == 0,
            "{args:?}: {}",
            said.err
        );
    }
}

/// A TMF file with so many messages.
fn messages(count: usize) -> String {
    let mut text = String::new();
    for index in 0..count {
        if index % 10_000 == 0 {
            text += &format!("{index:08x}-1234-1234-1234-123456789abc driver // SRC=io.c\n");
        }
        let number = 10 + index % 10_000;
        text += &format!(
            "#typev io_c42 {number} \"%0read %10!d! bytes\" // LEVEL=INFO FUNC=Read\n\
             {{\ncount, ItemLong -- 10\n}}\n"
        );
    }
    text
}

/// Definitions have a budget of their own: a trace is read within the same memory as without.
#[test]
fn definitions_are_in_no_budget_of_a_trace() {
    let here = directory(&[
        ("t.etl", &crate::common::trace()),
        ("large.tmf", messages(70_000).as_bytes()),
        ("huge.tmf", messages(200_000).as_bytes()),
    ]);
    for command in [
        &["dump", "t.etl", "--threads", "8"][..],
        &["info", "t.etl"],
        &["diff", "t.etl", "t.etl"],
    ] {
        let without = etlkit(here.path(), command);
        assert!(without.code < 2, "{command:?}: {}", without.err);
        let said = etlkit(here.path(), &[command, &["--tmf", "large.tmf"]].concat());
        assert_eq!(
            (said.code, &said.err),
            (without.code, &without.err),
            "{command:?}"
        );
    }
    let limited = ["dump", "t.etl", "--max-memory", "128M", "--tmf", "huge.tmf"];
    let said = etlkit(here.path(), &limited);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(
        said.err
            .contains("error: huge.tmf: the definitions up to this file need more than")
    );
    assert!(said.err.contains("--max-memory"), "{}", said.err);
}
