//! How fast payloads decode to fields: `cargo run --release --example decode_speed [FILE.etl]`.
//!
//! Every field of every CLR and kernel event of the file is read, over and over, on one core.

mod input;

use etl_format::constants::PointerSize;
use etl_format::read::{Options, Order, Trace};
use etl_schema::decode::{Decoder, Value};
use etl_schema::store::SchemaStore;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = input::bytes()?;
    let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    let store = SchemaStore::default();
    let mut events: Vec<(&Decoder, PointerSize, Vec<u8>)> = Vec::new();
    let mut look_ups = Duration::ZERO;
    let mut all = 0u64;
    let mut records = trace.records(Order::File)?;
    while let Some(record) = records.next_record()? {
        let start = Instant::now();
        let found = store.decoder(&record);
        look_ups += start.elapsed();
        all += 1;
        if let (Some(decoder), Some(pointers)) = (found, record.pointer_size()) {
            events.push((decoder, pointers, record.payload().to_vec()));
        }
    }
    println!("look-up      {:8.1} ns per record", look_ups.as_nanos() as f64 / all.max(1) as f64);
    if events.is_empty() {
        return Err("no event with a known schema".into());
    }
    let (mut rounds, mut fields) = (0u64, 0u64);
    let start = Instant::now();
    let enough = Duration::from_millis(if cfg!(test) { 1 } else { 2_000 });
    while start.elapsed() < enough {
        for (decoder, pointers, payload) in &events {
            for (_, value) in decoder.fields(payload, *pointers) {
                fields += 1;
                match value {
                    Value::Array(items) => items.iter().for_each(|v| {
                        black_box(v.as_u64());
                    }),
                    other => {
                        black_box(other);
                    }
                }
            }
        }
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let count = (rounds * events.len() as u64) as f64;
    println!("all fields   {:8.2} million events/s", count / seconds / 1e6);
    println!("             {:8.2} million fields/s", fields as f64 / seconds / 1e6);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
