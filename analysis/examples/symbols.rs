//! Where the threads of a trace were: the innermost frames of its stacks, by name, the most frequent first.
//!
//! `cargo run --release -p etl-analysis --example symbols [-- trace.etl]`; without a file, of a trace of its own.

mod input;

use std::collections::BTreeMap;

use etl_analysis::events::clr::{ClrEvent, decode, stack_frames};
use etl_analysis::events::kernel::{self, KernelEvent};
use etl_analysis::symbols::Symbols;
use etl_format::read::{Options, Trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let path = std::env::args_os().nth(1).filter(|_| !cfg!(test));
    let bytes = match &path {
        Some(path) => std::fs::read(path)?,
        None => input::trace(8)?,
    };
    let places = places(&bytes)?;
    for (place, count) in places.iter().take(20) {
        println!("{count:8} {place}");
    }
    if path.is_none() {
        let (compare, sort) = ("4 Shop.dll!Shop.Program.Compare", "4 Shop.dll!Shop.Program.Sort");
        assert_eq!(places, [(compare.to_owned(), 6), (sort.to_owned(), 2)]);
    }
    Ok(())
}

/// What was at the innermost frames, with the process, and how often.
fn places(bytes: &[u8]) -> Result<Vec<(String, u64)>, Box<dyn std::error::Error>> {
    let symbols = Symbols::read(bytes)?;
    let index = symbols.index();
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let mut trace = Trace::open(bytes, &Options::salvage())?;
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
            let symbol = index.at(pid, address, record.timestamp());
            let name = symbol.map_or_else(|| format!("{address:#x}"), |s| s.to_string());
            *places.entry(format!("{pid} {name}")).or_default() += 1;
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(places)
}

#[test]
fn runs() {
    main().unwrap();
}
