//! The index: GUIDs, names and event counts of all providers, and the number of providers in each
//! block.

use crate::Provider;
use crate::code::{Lines, Numbers, put};

/// A provider in the index.
#[derive(Debug)]
pub(crate) struct Entry {
    pub guid: [u8; 16],
    pub name: String,
    pub event_count: u32,
}

pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Provider>> {
    let mut input = Numbers(bytes);
    let mut block_sizes = Numbers(input.bytes()?);
    let (guids, _) = input.bytes()?.as_chunks();
    let mut guids = guids.iter();
    let mut event_counts = Numbers(input.bytes()?);
    let mut names = Lines(core::str::from_utf8(input.bytes()?).ok()?);
    let mut providers = Vec::with_capacity(guids.len());
    for block in 0.. {
        if block_sizes.0.is_empty() {
            break;
        }
        for position in 0..block_sizes.size()? {
            providers.push(Provider {
                guid: *guids.next()?,
                name: names.next()?.to_owned(),
                event_count: event_counts.next()?,
                block,
                position,
            });
        }
    }
    Some(providers)
}

/// The index of the providers in each block.
pub(crate) fn write(blocks: &[Vec<Entry>]) -> Vec<u8> {
    let mut block_sizes = Vec::new();
    let mut guids = Vec::new();
    let mut event_counts = Vec::new();
    let mut names = String::new();
    for block in blocks {
        put(&mut block_sizes, block.len() as u32);
        for entry in block {
            guids.extend(entry.guid);
            put(&mut event_counts, entry.event_count);
            names.push_str(&entry.name);
            names.push('\n');
        }
    }
    let mut out = Vec::new();
    for stream in [&block_sizes, &guids, &event_counts, names.as_bytes()] {
        put(&mut out, stream.len() as u32);
        out.extend(stream);
    }
    out
}
