//! All records in time order: `cargo run --example time_order [FILE.etl]`.
//!
//! Every processor has its own buffers. The reader merges them, with one or two buffers of each
//! processor in memory.

mod input;

use etl_format::Ticks;
use etl_format::read::{Options, Order, Trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = input::bytes()?;
    let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    let clock = trace.clock();
    let mut records = trace.records(Order::Time)?;
    let mut last = Ticks::MIN;
    let mut shown = 0;
    while let Some(record) = records.next_record()? {
        assert!(record.timestamp() >= last, "time goes forward");
        last = record.timestamp();
        if shown < 10 {
            shown += 1;
            println!(
                "{}  processor {}  {}  {} bytes of payload",
                clock.time(record.timestamp()),
                record.processor(),
                record.kind(),
                record.payload().len(),
            );
        }
    }
    println!("{} records", records.count());
    // The report counts buffers whose records were out of order.
    println!(
        "in order within buffers: {}",
        records.report().was_in_order()
    );
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
    let made = input::trace().unwrap();
    let mut trace = Trace::open(made.as_slice(), &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut numbers = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.provider() == Some(input::PROVIDER) {
            numbers.push(u32::from_le_bytes(record.payload().try_into().unwrap()));
        }
    }
    assert!(
        numbers.into_iter().eq(0..3_000),
        "events of both processors take turns"
    );
}
