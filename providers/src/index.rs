//! The index: GUIDs, names and numbers of events of all providers, and how many each block has.

use crate::Provider;
use crate::code::{Lines, Numbers, put};

/// What the index says of a provider.
#[derive(Debug)]
pub(crate) struct Entry {
    pub guid: [u8; 16],
    pub name: String,
    pub event_count: u32,
}

pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Provider>> {
    let mut input = Numbers(bytes);
    let (mut blocks, mut guids) = (Numbers(input.bytes()?), input.bytes()?.as_chunks().0.iter());
    let mut counts = Numbers(input.bytes()?);
    let mut names = Lines(core::str::from_utf8(input.bytes()?).ok()?);
    let mut out = Vec::with_capacity(guids.len());
    for block in 0.. {
        if blocks.0.is_empty() {
            break;
        }
        for position in 0..blocks.size()? {
            let (guid, name) = (*guids.next()?, names.next()?.to_owned());
            out.push(Provider {
                guid,
                name,
                event_count: counts.next()?,
                block,
                position,
            });
        }
    }
    Some(out)
}

/// The index of the providers in each block.
pub(crate) fn write(blocks: &[Vec<Entry>]) -> Vec<u8> {
    let (mut sizes, mut guids, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let mut names = String::new();
    for block in blocks {
        put(&mut sizes, block.len() as u32);
        for entry in block {
            guids.extend(entry.guid);
            put(&mut counts, entry.event_count);
            names.push_str(&entry.name);
            names.push('\n');
        }
    }
    let mut out = Vec::new();
    for part in [&sizes, &guids, &counts, names.as_bytes()] {
        put(&mut out, part.len() as u32);
        out.extend(part);
    }
    out
}
