//! A minimal reader for these tests: it checks nothing and panics.

pub fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(b[at..at + 2].try_into().unwrap())
}

pub fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}

pub fn i64_at(b: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(b[at..at + 8].try_into().unwrap())
}

/// One buffer: header fields that matter, and its EVENT and SYSTEM records.
#[derive(Debug)]
pub struct Buffer {
    pub size: usize,
    pub timestamp: i64,
    pub sequence: i64,
    pub processor: u16,
    pub flags: u16,
    pub records: Vec<Found>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub timestamp: i64,
    pub bytes: Vec<u8>,
}

/// All buffers of an uncompressed trace, up to the end or a preallocated tail of zeros.
pub fn buffers(file: &[u8]) -> Vec<Buffer> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < file.len() && u32_at(file, at) != 0 {
        let size = u32_at(file, at) as usize;
        let b = &file[at..at + size];
        let fill = u32_at(b, 0x30) as usize;
        assert!(fill <= size, "a buffer overflowed");
        assert!(b[fill..].iter().all(|&f| f == 0xff), "filler");
        let mut records = Vec::new();
        let mut p = 0x48;
        while p < fill {
            let len = match b[p + 2] {
                1 | 2 => u16_at(b, p + 4),
                _ => u16_at(b, p),
            };
            let end = p + usize::from(len);
            assert!(end <= fill, "a record crosses its buffer's fill");
            records.push(Found {
                timestamp: i64_at(b, p + 0x10),
                bytes: b[p..end].to_vec(),
            });
            p = end.next_multiple_of(8);
        }
        assert!(fill == p, "the fill is the end of the last record");
        out.push(Buffer {
            size,
            timestamp: i64_at(b, 0x10),
            sequence: i64_at(b, 0x18),
            processor: u16_at(b, 0x28),
            flags: u16_at(b, 0x34),
            records,
        });
        at += size;
    }
    out
}
