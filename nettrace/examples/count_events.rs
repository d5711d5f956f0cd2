//! Counts the events of a stream: `cargo run -p etl-nettrace --example count_events [FILE]`.
//!
//! Without an argument it reads a small stream that it makes itself.

#[path = "common/write.rs"]
// The example uses a part of the writer.
#[allow(dead_code)]
mod write;

use std::collections::BTreeMap;
use std::io::Read;

use etl_nettrace::{Item, LossTracker, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with('-'))
    {
        Some(path) => count(std::fs::File::open(path)?)?,
        None => count(write::sample().as_slice())?,
    }
    Ok(())
}

fn count(source: impl Read) -> etl_nettrace::Result<()> {
    let mut reader = Reader::new(source)?;
    let mut losses = LossTracker::new();
    let mut counts: BTreeMap<(String, u32, u32), u64> = BTreeMap::new();
    while let Some(item) = reader.next_item()? {
        losses.add(&item);
        if let Item::Event(event) = item {
            let key = (event.provider().to_owned(), event.id(), event.version());
            *counts.entry(key).or_default() += 1;
        }
    }
    for ((provider, id, version), count) in counts {
        println!("{count:8} {provider}/{id} version {version}");
    }
    println!("{:8} lost events", losses.lost());
    for damage in reader.damage() {
        println!("{}", damage.error);
    }
    Ok(())
}

#[test]
fn runs() {
    count(write::sample().as_slice()).unwrap();
}
