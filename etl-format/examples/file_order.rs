//! Reads records in the order of the file: `cargo run --example file_order [FILE.etl]`.
//!
//! One buffer is in memory at a time, and the file is read forwards only, so it may be a pipe: `-`
//! reads standard input. Records are in time order within a buffer, but not from buffer to buffer.

mod input;

use std::collections::BTreeMap;

use etl_format::read::{Options, PipeSource, Records, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).is_some_and(|a| a == "-") {
        count(PipeSource::new(std::io::stdin().lock()))
    } else {
        count(input::bytes()?.as_slice())
    }
}

fn count(source: impl Source) -> Result<(), Box<dyn std::error::Error>> {
    let mut trace = Records::stream(source, &Options::default())?;
    println!(
        "{} processors, Windows build {}",
        trace.header().processors,
        trace.header().build
    );
    let mut kinds = BTreeMap::new();
    // A record borrows from its buffer; nothing is allocated for it.
    while let Some(record) = trace.next_record()? {
        let (count, bytes) = kinds.entry(record.kind().to_string()).or_insert((0u64, 0));
        *count += 1;
        *bytes += record.bytes().len();
    }
    for (kind, (count, bytes)) in kinds {
        println!("{kind:12} {count:8} records {bytes:10} bytes");
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
    let made = input::trace().unwrap();
    let mut trace = Records::stream(made.as_slice(), &Options::default()).unwrap();
    while trace.next_record().unwrap().is_some() {}
    // The header event is a record, too.
    assert_eq!(trace.count(), 3_001);
}
