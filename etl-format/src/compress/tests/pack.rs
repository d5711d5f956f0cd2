//! Greedy packers for the tests: every form that a decoder must know occurs in what they write.

/// The longest match for the bytes at `at`, found by looking at every distance that is likely and
/// at the near ones.
fn find(data: &[u8], at: usize, reach: usize, floor: usize, most: usize) -> Option<(usize, usize)> {
    let near = 1..=64usize;
    let marks = [4095, 4096, 8191, 8192, 65_535usize];
    near.chain(marks)
        .filter(|&d| d <= reach && at >= floor + d)
        .map(|d| {
            let len = (0..most.min(data.len() - at))
                .take_while(|&i| data[at + i] == data[at + i - d])
                .count();
            (len, d)
        })
        .max_by_key(|&(len, d)| (len, usize::MAX - d))
        .filter(|&(len, _)| len >= 3)
        .map(|(len, d)| (d, len))
}

pub fn xpress(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    let (mut flag_at, mut flags, mut count) = (0, 0u32, 0);
    let mut half: Option<usize> = None;
    let mut at = 0;
    while at < data.len() {
        let found = find(data, at, 8192, 0, usize::MAX);
        flags = flags << 1 | u32::from(found.is_some());
        count += 1;
        match found {
            None => {
                out.push(data[at]);
                at += 1;
            }
            Some((distance, len)) => {
                at += len;
                let len = len - 3;
                let token = (distance - 1) << 3 | len.min(7);
                out.extend((token as u16).to_le_bytes());
                if len >= 7 {
                    let nibble = (len - 7).min(15) as u8;
                    match half.take() {
                        Some(place) => out[place] |= nibble << 4,
                        None => {
                            half = Some(out.len());
                            out.push(nibble);
                        }
                    }
                    if nibble == 15 {
                        if len - 22 < 255 {
                            out.push((len - 22) as u8);
                        } else if len < 1 << 16 {
                            out.push(255);
                            out.extend((len as u16).to_le_bytes());
                        } else {
                            out.extend([255, 0, 0]);
                            out.extend((len as u32).to_le_bytes());
                        }
                    }
                }
            }
        }
        if count == 32 {
            out[flag_at..flag_at + 4].copy_from_slice(&flags.to_le_bytes());
            flag_at = out.len();
            out.extend([0; 4]);
            (flags, count) = (0, 0);
        }
    }
    let rest = 32 - count;
    let flags = if rest == 32 {
        u32::MAX
    } else {
        flags << rest | ((1 << rest) - 1)
    };
    out[flag_at..flag_at + 4].copy_from_slice(&flags.to_le_bytes());
    out
}

pub fn lznt1(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for begin in (0..data.len()).step_by(4096) {
        let end = data.len().min(begin + 4096);
        let mut chunk = Vec::new();
        let mut at = begin;
        while at < end {
            let flag_at = chunk.len();
            chunk.push(0);
            for bit in 0..8 {
                if at >= end {
                    break;
                }
                let made = at - begin;
                let bits = (4..12).find(|&bits| 1 << bits >= made).unwrap_or(12);
                let most = ((1usize << (16 - bits)) + 2).min(end - at);
                match find(data, at, 1 << bits, begin, most) {
                    Some((distance, len)) => {
                        chunk[flag_at] |= 1 << bit;
                        let token = (distance - 1) << (16 - bits) | (len - 3);
                        chunk.extend((token as u16).to_le_bytes());
                        at += len;
                    }
                    None => {
                        chunk.push(data[at]);
                        at += 1;
                    }
                }
            }
        }
        let stored = chunk.len() >= end - begin;
        let body = if stored { &data[begin..end] } else { &chunk };
        let header = (body.len() - 1) | 0x3000 | if stored { 0 } else { 0x8000 };
        out.extend((header as u16).to_le_bytes());
        out.extend(body);
    }
    out
}

/// Every symbol gets a code of 9 bits: no compression, but all that a decoder must do.
pub fn huffman(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < data.len() {
        out.extend([0x99; 256]);
        let mut writer = Bits::new(&mut out);
        let end = at + 65_536;
        while at < data.len().min(end) {
            match find(data, at, 65_535, 0, usize::MAX) {
                None => {
                    writer.put(u32::from(data[at]), 9);
                    at += 1;
                }
                Some((distance, len)) => {
                    at += len;
                    let class = distance.ilog2();
                    let len = len - 3;
                    writer.put(256 + class * 16 + len.min(15) as u32, 9);
                    if len >= 15 {
                        if len - 15 < 255 {
                            writer.bytes(&[(len - 15) as u8]);
                        } else if len < 1 << 16 {
                            writer.bytes(&[255]);
                            writer.bytes(&(len as u16).to_le_bytes());
                        } else {
                            writer.bytes(&[255, 0, 0]);
                            writer.bytes(&(len as u32).to_le_bytes());
                        }
                    }
                    writer.put((distance - (1 << class)) as u32, class);
                }
            }
        }
        writer.finish();
    }
    out
}

/// Writes words at places kept free for them: a decoder has fetched two words before it needs the
/// first bit, and fetches the next one when it goes beyond a word.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    word: u32,
    free: u32,
    places: [usize; 2],
}

impl<'a> Bits<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        out.extend([0; 4]);
        Bits {
            out,
            word: 0,
            free: 16,
            places: [at, at + 2],
        }
    }

    fn put(&mut self, value: u32, count: u32) {
        if count <= self.free {
            self.word = self.word << count | value;
            self.free -= count;
            return;
        }
        let rest = count - self.free;
        let word = self.word << self.free | value >> rest;
        self.store(word);
        self.places = [self.places[1], self.out.len()];
        self.out.extend([0; 2]);
        self.word = value & ((1 << rest) - 1);
        self.free = 16 - rest;
    }

    fn store(&mut self, word: u32) {
        let at = self.places[0];
        self.out[at..at + 2].copy_from_slice(&(word as u16).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
    }

    fn finish(mut self) {
        let word = self.word << self.free;
        self.store(word);
    }
}
