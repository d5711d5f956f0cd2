//! Where the threads of a trace were: the innermost frames of its stacks, by name, the most frequent first.
//!
//! `cargo run --release -p etl-verify --example symbols -- trace.etl`

use std::collections::BTreeMap;

use etl_format::read::{Options, Trace};
use etl_verify::facts::clr::{ClrEvent, decode, stack_frames};
use etl_verify::facts::kernel::{self, KernelEvent};
use etl_verify::symbols::Symbols;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let bytes = std::fs::read(path)?;
    let symbols = Symbols::read(bytes.as_slice())?;
    let index = symbols.index();
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
    let mut records = trace.ordered()?;
    while let Some(record) = records.next_record()? {
        let (pid, frame) = match (kernel::decode(&record), decode(&record).map(|d| d.event)) {
            (Some(KernelEvent::Stack { pid, frames, .. }), _) => (Some(pid), frames.iter().next()),
            (_, Some(ClrEvent::Stack(_))) => {
                let frames = stack_frames(record.payload(), record.pointer_size());
                (record.process_id(), frames.iter().next())
            }
            _ => (None, None),
        };
        if let (Some(pid), Some(address)) = (pid, frame) {
            let symbol = index.at(pid, address, record.stamp());
            let name = symbol.map_or_else(|| format!("{address:#x}"), |s| s.to_string());
            *places.entry(format!("{pid} {name}")).or_default() += 1;
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (place, count) in places.iter().take(20) {
        println!("{count:8} {place}");
    }
    Ok(())
}
