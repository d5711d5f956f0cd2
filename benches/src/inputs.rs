//! What is measured: a generated plain trace, the real merged trace unpacked and repeated, and the
//! real merged trace as it is.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use etl_format::cursor::Bytes;
use etl_format::read::{FileOrder, Options};

const BUFFER: usize = 1 << 16;
const PROCESSORS: u64 = 8;

/// A real trace, where there is one.
pub fn real(name: &str) -> Option<PathBuf> {
    let path = etl_test_support::root().join("../shared/traces").join(name);
    path.is_file().then_some(path)
}

/// A plain kernel-written trace of samples, context switches and manifest events.
pub fn generated(directory: &Path, megabytes: usize) -> PathBuf {
    let path = directory.join(format!("generated-{megabytes}.etl"));
    let mut out = BufWriter::new(File::create(&path).expect("a file in the temporary directory"));
    let count = (megabytes << 20) / BUFFER;
    out.write_all(&buffer(0, 0, 4, &[header_event(count as u32 + 1, 0)])).expect("room on disk");
    let mut timestamp = 1_000i64;
    for number in 0..count as u64 {
        let mut records = Vec::new();
        let mut used = 0x48;
        for i in 0.. {
            timestamp += 3;
            let record = match i % 4 {
                0 | 1 => perfinfo(0x0f2e, timestamp, 16),
                2 => perfinfo(0x0524, timestamp, 24),
                _ => event(timestamp, 48 + i % 64),
            };
            if used + record.len() > BUFFER {
                break;
            }
            used += record.len();
            records.push(record);
        }
        let processor = number % PROCESSORS;
        out.write_all(&buffer(number + 1, processor as u16, 0, &records)).expect("room on disk");
    }
    out.flush().expect("room on disk");
    path
}

/// The real merged trace as plain buffers, again and again with later timestamps, up to a size.
pub fn unpacked(directory: &Path, megabytes: usize) -> Option<PathBuf> {
    let bytes = std::fs::read(real("perfview/net.4.5.2.x64.etl")?).expect("it is readable");
    let mut reader = FileOrder::open(bytes.as_slice(), &Options::default()).expect("it is a trace");
    let mut plain = Vec::new();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    while let Some(&entry) = reader.next_buffer().expect("it is whole") {
        let data = reader.buffer_bytes()[..entry.fill as usize].to_vec();
        for at in places_of(&data) {
            let timestamp = data.i64_at(at).expect("a timestamp");
            (first, last) = (first.min(timestamp), last.max(timestamp));
        }
        plain.push((entry, data));
    }
    let path = directory.join("net.4.5.2.x64.unpacked.etl");
    let mut out = BufWriter::new(File::create(&path).expect("a file in the temporary directory"));
    let copies = ((megabytes << 20) / (plain.len() * BUFFER)).max(1);
    let span = last - first + 1;
    let mut number = 0i64;
    for copy in 0..copies as i64 {
        for (index, (entry, data)) in plain.iter().enumerate() {
            if entry.is_header() && copy > 0 {
                continue;
            }
            let mut data = data.clone();
            for at in places_of(&data) {
                let timestamp = data.i64_at(at).expect("a timestamp") + copy * span;
                data[at..at + 8].copy_from_slice(&timestamp.to_le_bytes());
            }
            data.resize(BUFFER, 0xff);
            data[..4].copy_from_slice(&(BUFFER as u32).to_le_bytes());
            data[0x18..0x20].copy_from_slice(&number.to_le_bytes());
            let flags = data.u16_at(0x34).expect("flags") & !0x40;
            data[0x34..0x36].copy_from_slice(&flags.to_le_bytes());
            if index == 0 {
                let total = (copies * (plain.len() - 1) + 1) as u32;
                data[0x48 + 0x20 + 0x24..][..4].copy_from_slice(&total.to_le_bytes());
                let mode = data.u32_at(0x48 + 0x20 + 0x20).expect("the mode") & !0x0400_0000;
                data[0x48 + 0x20 + 0x20..][..4].copy_from_slice(&mode.to_le_bytes());
            }
            out.write_all(&data).expect("room on disk");
            number += 1;
        }
    }
    out.flush().expect("room on disk");
    Some(path)
}

/// Where the timestamps stand in a plain buffer.
fn places_of(data: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0x48;
    while let Some(word) = data.u32_at(at).filter(|&w| w >> 24 == 0xc0) {
        let kind = (word >> 16) as u8;
        let perfinfo = matches!(kind, 0x10 | 0x11);
        let system = matches!(kind, 1..=4) || perfinfo;
        places.push(at + if perfinfo { 8 } else { 16 });
        let size = data.u16_at(at + if system { 4 } else { 0 }).expect("a size");
        at = (at + usize::from(size)).next_multiple_of(8);
    }
    places
}

fn buffer(number: u64, processor: u16, kind: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let fill = (0x48 + records.iter().map(Vec::len).sum::<usize>()) as u32;
    let mut out = vec![0u8; 0x48];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &(BUFFER as u32).to_le_bytes());
    put(0x04, &fill.to_le_bytes());
    put(0x08, &fill.to_le_bytes());
    put(0x18, &number.to_le_bytes());
    put(0x28, &processor.to_le_bytes());
    put(0x2c, &3u32.to_le_bytes());
    put(0x30, &fill.to_le_bytes());
    put(0x34, &0x20u16.to_le_bytes());
    put(0x36, &kind.to_le_bytes());
    records.iter().for_each(|r| out.extend(r));
    out.resize(BUFFER, 0xff);
    out
}

fn header_event(buffers: u32, lost: u32) -> Vec<u8> {
    let mut p = vec![0u8; 0x118];
    let mut put = |at: usize, bytes: &[u8]| p[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &(BUFFER as u32).to_le_bytes());
    put(0x04, &[10, 0, 1, 5]);
    put(0x08, &19_045u32.to_le_bytes());
    put(0x0c, &(PROCESSORS as u32).to_le_bytes());
    put(0x10, &133_000_001_000_000_000u64.to_le_bytes());
    put(0x20, &1u32.to_le_bytes());
    put(0x24, &buffers.to_le_bytes());
    put(0x28, &1u32.to_le_bytes());
    put(0x2c, &8u32.to_le_bytes());
    put(0x30, &lost.to_le_bytes());
    put(0x100, &10_000_000u64.to_le_bytes());
    put(0x108, &133_000_000_000_000_000u64.to_le_bytes());
    put(0x110, &1u32.to_le_bytes());
    p.extend([0; 4]);
    let mut out = vec![2, 0, 2, 0xc0];
    out.extend((0x20 + p.len() as u16).to_le_bytes());
    out.extend([0; 10]);
    out.extend(1_000i64.to_le_bytes());
    out.extend([0; 8]);
    out.extend(p);
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

fn perfinfo(hook: u16, timestamp: i64, payload: usize) -> Vec<u8> {
    let mut out = vec![2, 0, 0x11, 0xc0];
    out.extend((0x10 + payload as u16).to_le_bytes());
    out.extend(hook.to_le_bytes());
    out.extend(timestamp.to_le_bytes());
    out.resize((0x10 + payload).next_multiple_of(8), 7);
    out
}

fn event(timestamp: i64, payload: usize) -> Vec<u8> {
    let mut out = vec![0u8; 0x50];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &(0x50 + payload as u16).to_le_bytes());
    put(0x02, &[0x13, 0xc0]);
    put(0x08, &4_711u32.to_le_bytes());
    put(0x0c, &42u32.to_le_bytes());
    put(0x10, &timestamp.to_le_bytes());
    put(0x18, &[0x5a; 16]);
    put(0x28, &143u16.to_le_bytes());
    put(0x2c, &[4]);
    out.resize((0x50 + payload).next_multiple_of(8), 9);
    out
}
