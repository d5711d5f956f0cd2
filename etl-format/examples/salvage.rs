//! Reads what is left of a damaged trace: `cargo run --example salvage [FILE.etl]`.
//!
//! By default reading stops at the first fault. In salvage mode it continues at the next intact
//! buffer or record, and records what it could not read.

mod input;

use etl_format::read::{Damage, Options, Order, Trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = input::bytes()?;
    if std::env::args().nth(1).is_none() || cfg!(test) {
        // Damages the sample: overwrites a buffer's header and its first records, and cuts off the
        // end.
        bytes
            .get_mut(0x8000..0x9000)
            .ok_or("the sample is too short")?
            .fill(0x5a);
        bytes.truncate(bytes.len() - 0x2000);
    }
    if let Err(error) = walk(&bytes, &Options::default()) {
        println!("strictly: {error}");
    }
    let (records, map) = walk(&bytes, &Options::salvage())?;
    println!("salvaged: {records} records");
    for piece in map {
        println!(
            "bytes {:#x} to {:#x}: {} ({} records before it, {} after)",
            piece.range.start,
            piece.range.end,
            piece.error,
            piece.records_before,
            piece.records_after,
        );
    }
    Ok(())
}

/// Reads all records. Returns their number, and what could not be read.
fn walk(bytes: &[u8], options: &Options) -> etl_format::Result<(u64, Vec<Damage>)> {
    let mut trace = Trace::open(bytes, options)?;
    let mut records = trace.records(Order::Time)?;
    while records.next_record()?.is_some() {}
    Ok((records.count(), records.damage().to_vec()))
}

#[test]
fn runs() {
    main().unwrap();
    let mut bytes = input::trace().unwrap();
    bytes[0x8000..0x9000].fill(0x5a);
    assert!(walk(&bytes, &Options::default()).is_err());
    let (records, map) = walk(&bytes, &Options::salvage()).unwrap();
    assert!((2_000..3_001).contains(&records), "{records}");
    assert!(
        map.iter().any(|piece| piece.range.start == 0x8000),
        "{map:?}"
    );
}
