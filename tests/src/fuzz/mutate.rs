//! Changes of a trace that respect its structure: buffers, records, sizes, extended items.
//!
//! A fuzzer that changes random bytes mostly breaks the header or hits filler. These changes leave
//! most of a trace intact.

/// Values at the limits of sizes, counts, kinds and timestamps.
const EDGES: [u64; 26] = [
    0,
    1,
    2,
    7,
    8,
    0x10,
    0x20,
    0x48,
    0x50,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x3ff,
    0x400,
    0x1000,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x0400_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];

/// Random numbers, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Dice(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`; 0 below 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    fn edge(&mut self) -> u64 {
        EDGES[self.below(EDGES.len())].wrapping_add_signed(self.below(3) as i64 - 1)
    }
}

/// Offset and length.
type Span = (usize, usize);

fn u16_at(data: &[u8], at: usize) -> usize {
    data.get(at..at + 2)
        .map_or(0, |b| usize::from(b[0]) | usize::from(b[1]) << 8)
}

fn u32_at(data: &[u8], at: usize) -> usize {
    u16_at(data, at) | u16_at(data, at + 2) << 16
}

/// The buffers, as far as their sizes lead.
fn buffers(data: &[u8]) -> Vec<Span> {
    let mut out = Vec::new();
    let mut at = 0;
    while at + 0x48 <= data.len() {
        let size = u32_at(data, at);
        if size < 0x48 || size > data.len() - at {
            break;
        }
        out.push((at, size));
        at += size;
    }
    out
}

/// The records of a buffer, as far as their sizes lead.
fn records(data: &[u8], (start, size): Span) -> Vec<Span> {
    let mut out = Vec::new();
    let end = start + size.min(u32_at(data, start + 4).max(0x48));
    let mut at = start + 0x48;
    while at + 8 <= end {
        let kernel = matches!(data[at + 2], 1..=4 | 0x10 | 0x11) && data[at + 3] & 0xc0 == 0xc0;
        let len = u16_at(data, if kernel { at + 4 } else { at });
        if len < 8 || len > end - at {
            break;
        }
        out.push((at, len));
        at += len.next_multiple_of(8);
    }
    out
}

fn put(data: &mut [u8], at: usize, width: usize, value: u64) {
    for (i, byte) in value.to_le_bytes().into_iter().take(width).enumerate() {
        if let Some(slot) = data.get_mut(at + i) {
            *slot = byte;
        }
    }
}

/// Changes a trace in some places, chosen by a seed. It never grows beyond `most` bytes.
pub fn trace(data: &mut Vec<u8>, most: usize, seed: u32) {
    let mut dice = Dice::new(seed);
    for _ in 0..=dice.below(3) {
        one(data, most, &mut dice);
    }
    data.truncate(most);
}

fn one(data: &mut Vec<u8>, most: usize, dice: &mut Dice) {
    let buffers = buffers(data);
    if buffers.is_empty() {
        return;
    }
    let buffer = buffers[dice.below(buffers.len())];
    let records = records(data, buffer);
    let record = records.get(dice.below(records.len())).copied();
    match (dice.below(14), record) {
        // A field of the buffer header.
        (0, _) => {
            let fields = [
                (0, 4),
                (4, 4),
                (8, 4),
                (0x10, 8),
                (0x18, 8),
                (0x28, 2),
                (0x2a, 2),
                (0x2c, 4),
            ];
            let more = [(0x30, 4), (0x34, 2), (0x36, 2)];
            let at = dice.below(fields.len() + more.len());
            let (at, width) = *fields.iter().chain(&more).nth(at).unwrap_or(&(0, 4));
            let value = dice.edge();
            put(data, buffer.0 + at, width, value);
        }
        // A field of the header event.
        (1, _) => {
            let at = 0x48 + dice.below(0x140 / 4) * 4;
            let (width, value) = ([4, 8][dice.below(2)], dice.edge());
            put(data, at, width, value);
        }
        // A field of a record's header.
        (2 | 3, Some((at, _))) => {
            let place = at + dice.below(0x50 / 2) * 2;
            let (width, value) = ([1, 2, 4, 8][dice.below(4)], dice.edge());
            put(data, place, width, value);
        }
        // Its size.
        (4, Some((at, len))) => {
            let kernel = matches!(data[at + 2], 1..=4 | 0x10 | 0x11);
            let value = (len + dice.below(32)).wrapping_sub(16) as u64;
            put(data, if kernel { at + 4 } else { at }, 2, value);
        }
        // Its kind.
        (5, Some((at, _))) => {
            let kinds = [
                1, 2, 3, 4, 0x0a, 0x0b, 0x0c, 0x0d, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1e,
            ];
            put(data, at + 2, 1, kinds[dice.below(kinds.len())]);
        }
        // A value in its payload or its extended items.
        (6 | 7, Some((at, len))) => {
            let place = at + dice.below(len);
            let (width, value) = ([1, 2, 4, 8][dice.below(4)], dice.edge());
            put(data, place, width.min(at + len - place), value);
        }
        // Extended items: their flag, and the fields of the first one.
        (8, Some((at, _))) => {
            data[at + 4] ^= [0, 1, 4, 5][dice.below(4)];
            let (field, value) = (dice.below(4) * 2, dice.edge());
            put(data, at + 0x50 + field, 2, value);
        }
        // One record stands where another one stood.
        (9, Some((at, len))) => {
            let from = records[dice.below(records.len())];
            let bytes = data[from.0..from.0 + from.1.min(len)].to_vec();
            data[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        // A timestamp.
        (10, Some((at, _))) => {
            let value = dice.edge();
            put(data, at + 0x10, 8, value);
        }
        // A buffer twice, not at all, or cut.
        (11, _) if data.len() + buffer.1 <= most => {
            let bytes = data[buffer.0..buffer.0 + buffer.1].to_vec();
            data.splice(buffer.0..buffer.0, bytes);
        }
        (12, _) if buffers.len() > 1 => {
            data.drain(buffer.0..buffer.0 + buffer.1);
        }
        (13, _) => {
            let at = buffer.0 + dice.below(buffer.1);
            data.truncate(at);
        }
        _ => {
            let at = dice.below(data.len());
            data[at] ^= 1 << dice.below(8);
        }
    }
}
