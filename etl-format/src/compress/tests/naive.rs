//! The three formats decoded the slow and obvious way, byte by byte, straight from the publication.
//! `None` at damage; `out` then holds what came before.

fn byte(input: &[u8], at: &mut usize) -> Option<usize> {
    let b = *input.get(*at)?;
    *at += 1;
    Some(b.into())
}

/// A little-endian number of `n` bytes; moves only when all are there.
fn number(input: &[u8], at: &mut usize, n: usize) -> Option<usize> {
    let bytes = input.get(*at..*at + n)?;
    *at += n;
    Some(bytes.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b)))
}

fn copy(out: &mut Vec<u8>, distance: usize, len: usize, end: usize) -> Option<()> {
    if distance == 0 || distance > out.len() {
        return None;
    }
    for _ in 0..len {
        if out.len() >= end {
            break;
        }
        out.push(out[out.len() - distance]);
    }
    Some(())
}

pub fn xpress(input: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut at = 0;
    let mut half = None;
    let (mut flags, mut count) = (0, 0);
    while out.len() < len {
        if count == 0 {
            flags = number(input, &mut at, 4)?;
            count = 32;
        }
        count -= 1;
        if flags >> count & 1 == 0 {
            out.push(byte(input, &mut at)? as u8);
            continue;
        }
        let token = number(input, &mut at, 2)?;
        let mut length = token % 8;
        if length == 7 {
            length = match half.take() {
                Some(place) => usize::from(input[place]) / 16,
                None => {
                    half = Some(at);
                    byte(input, &mut at)? % 16
                }
            };
            if length == 15 {
                length = byte(input, &mut at)?;
                if length == 255 {
                    length = number(input, &mut at, 2)?;
                    if length == 0 {
                        length = number(input, &mut at, 4)?;
                    }
                    length = length.checked_sub(15 + 7)?;
                }
                length += 15;
            }
            length += 7;
        }
        copy(out, token / 8 + 1, length + 3, len)?;
    }
    Some(())
}

pub fn lznt1(input: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut at = 0;
    while out.len() < len {
        let header = number(input, &mut at, 2)?;
        if header == 0 {
            return None;
        }
        let size = header % 4096 + 1;
        let begin = out.len();
        let stop = at + size;
        if header & 0x8000 == 0 {
            for _ in 0..size {
                if out.len() < len && out.len() - begin < 4096 {
                    out.push(byte(input, &mut at)? as u8);
                }
            }
        } else {
            'chunk: while at < stop {
                let flags = byte(input, &mut at)?;
                for bit in 0..8 {
                    if out.len() >= len || out.len() - begin >= 4096 || at >= stop {
                        break 'chunk;
                    }
                    if flags >> bit & 1 == 0 {
                        out.push(byte(input, &mut at)? as u8);
                        continue;
                    }
                    if at + 2 > stop {
                        return None;
                    }
                    let token = number(input, &mut at, 2)?;
                    let made = out.len() - begin;
                    let reach = (4..12).find(|&bits| 1 << bits >= made).unwrap_or(12);
                    let length = token % (1 << (16 - reach)) + 3;
                    let distance = (token >> (16 - reach)) + 1;
                    if distance > made {
                        return None;
                    }
                    copy(out, distance, length, len.min(begin + 4096))?;
                }
            }
            if out.len() < len && at < stop {
                return None;
            }
        }
        if out.len() < len && stop > input.len() {
            return None;
        }
        at = stop;
    }
    Some(())
}

pub fn huffman(input: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut at = 0;
    while out.len() < len {
        let table = input.get(at..at + 256)?;
        at += 256;
        // Codes in the canonical order: by length, then by symbol.
        let mut codes = Vec::new();
        let mut code = 0u32;
        for length in 1..=15u32 {
            for symbol in 0..512u32 {
                let nibble = u32::from(table[symbol as usize / 2]) >> (4 * (symbol % 2)) & 15;
                if nibble == length {
                    codes.push((code << (15 - length), length, symbol));
                    code += 1;
                }
            }
            code <<= 1;
        }
        let used: u64 = codes
            .iter()
            .map(|&(_, length, _)| 1u64 << (15 - length))
            .sum();
        if used != 1 << 15 {
            return None;
        }
        let mut words = Words {
            input,
            at,
            queue: Vec::new(),
            missing: 0,
        };
        words.fetch();
        words.fetch();
        let end = out.len() + 65_536;
        while out.len() < len.min(end) {
            let next = words.peek(15);
            let &(_, length, symbol) = codes
                .iter()
                .find(|&&(code, length, _)| next >> (15 - length) == code >> (15 - length))?;
            words.skip(length);
            if words.queue.len() < 16 * words.missing as usize {
                return None;
            }
            if symbol < 256 {
                out.push(symbol as u8);
                continue;
            }
            let mut length = symbol as usize % 16;
            if length == 15 {
                length = byte(input, &mut words.at)? + 15;
                if length == 255 + 15 {
                    length = number(input, &mut words.at, 2)?;
                    if length == 0 {
                        length = number(input, &mut words.at, 4)?;
                    }
                    if length < 15 {
                        return None;
                    }
                }
            }
            let class = (symbol - 256) / 16;
            let distance = (1 << class) + words.peek(class) as usize;
            words.skip(class);
            if words.queue.len() < 16 * words.missing as usize {
                return None;
            }
            copy(out, distance, length + 3, len)?;
        }
        at = words.at;
    }
    Some(())
}

/// Bits of 16-bit words, fetched whenever 16 or fewer are in hand.
struct Words<'a> {
    input: &'a [u8],
    at: usize,
    queue: Vec<bool>,
    missing: u32,
}

impl Words<'_> {
    fn fetch(&mut self) {
        let word = match self.input.get(self.at..self.at + 2) {
            Some(b) => u16::from_le_bytes([b[0], b[1]]),
            None => {
                self.missing += 1;
                0
            }
        };
        self.at += 2;
        self.queue
            .extend((0..16).rev().map(|bit| word >> bit & 1 == 1));
    }

    fn peek(&self, count: u32) -> u32 {
        self.queue[..count as usize]
            .iter()
            .fold(0, |v, &bit| v << 1 | u32::from(bit))
    }

    fn skip(&mut self, count: u32) {
        self.queue.drain(..count as usize);
        if self.queue.len() < 16 {
            self.fetch();
        }
    }
}
