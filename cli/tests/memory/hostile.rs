//! Small files that make commands hold much: records that are each about something new, and
//! compressed buffers that repeat a few records.

use super::common::event::{Event, chain};
use super::common::records::{opaque, perfinfo, system};
use super::common::{Buffer, File, Out};

/// A file, and what it is made of.
pub struct Hostile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Makes the records of a kind, by number.
pub type Maker = fn(u64) -> Vec<Vec<u8>>;

const RUNTIME: [u8; 16] = *b"\x23\x0d\x3c\xe1\xbc\xcc\x12\x4e\x93\x1b\xd9\xcc\x2e\xee\x27\xe4";
const RUNDOWN: [u8; 16] = *b"\x1c\x02\x69\xa6\x50\xc4\x09\x46\xa0\x35\x5a\xf5\x9a\xf4\xdf\x18";

/// The kinds of state, each with records that make more of it with each number.
pub const KINDS: [(&str, Maker); 22] = [
    ("processes", |n| {
        vec![process(0x0301, 8 + 4 * n, n), process(0x0302, 8 + 4 * n, n)]
    }),
    ("one-process", |n| {
        vec![process(0x0301, 8, n), process(0x0302, 8, n)]
    }),
    ("threads", |n| {
        vec![thread(0x0501, n, n), thread(0x0502, n, n)]
    }),
    ("thread-names", |n| {
        let name = Out::default()
            .u32(100)
            .u32(n as u32)
            .utf16("name of a thread")
            .u16(0)
            .0;
        vec![thread(0x0501, n, n), system(true, 0x0548, at(n), &name)]
    }),
    ("images", |n| vec![image(0x140a, n, 0x1_0000 * n)]),
    ("one-image", |n| {
        vec![image(0x140a, n, 0x1_0000), image(0x1402, n, 0x1_0000)]
    }),
    ("kernel-images", |n| vec![kernel_image(n)]),
    ("methods", |n| vec![method(RUNTIME, 143, n, n)]),
    ("one-method", |n| {
        vec![method(RUNTIME, 143, n, 1), method(RUNTIME, 144, n, 1)]
    }),
    ("listed-methods", |n| vec![method(RUNDOWN, 144, n, n)]),
    ("modules", |n| {
        let payload = Out::default().u64(n).u64(n).u32(8).u32(0);
        let paths = payload.utf16("C:\\app.dll").u16(0).u16(0).u16(1);
        vec![clr(RUNTIME, 152, n, paths.0)]
    }),
    ("domains", |n| {
        let payload = Out::default()
            .u64(n)
            .u32(8)
            .utf16("domain")
            .u16(0)
            .u32(1)
            .u16(1);
        vec![clr(RUNTIME, 156, n, payload.0)]
    }),
    ("rundowns", |n| {
        vec![
            clr(RUNDOWN, 148, n, vec![0; 2]),
            clr(RUNDOWN, 146, n, vec![0; 2]),
        ]
    }),
    ("collections", |n| {
        let start = Out::default()
            .u32(n as u32)
            .u32(1)
            .u32(0)
            .u32(0)
            .u16(1)
            .u64(n);
        vec![clr(RUNTIME, 1, n, start.0)]
    }),
    ("stacks", |n| {
        let words = [at(n) as u64, (8 + n % 7) << 32 | (8 + n % 7)];
        vec![system(
            true,
            0x1820,
            at(n),
            &self::words(&words, (0..8).map(|i| 0x1000 * (8 * n + i))),
        )]
    }),
    ("stack-keys", |n| {
        vec![system(
            true,
            0x1825,
            at(n),
            &words(&[at(n) as u64, 8 << 32 | 8, n], []),
        )]
    }),
    ("samples", |n| {
        vec![perfinfo(
            true,
            0x0f2e,
            at(n),
            None,
            &[],
            &words(&[0x1000 * n, n % 5], []),
        )]
    }),
    ("schemas", |n| {
        let mut schema = Out::default()
            .u16(0)
            .u8(0)
            .bytes(format!("Event{n}").as_bytes())
            .u8(0);
        for field in 0..8 {
            schema = schema.bytes(format!("field{field}").as_bytes()).u8(0).u8(8);
        }
        let size = schema.0.len() as u16;
        schema.0[..2].copy_from_slice(&size.to_le_bytes());
        let items = chain(&[(11, &schema.0)]);
        vec![
            Event {
                items,
                payload: vec![0; 32],
                channel: 11,
                ..plain(n)
            }
            .bytes(),
        ]
    }),
    ("events", |n| {
        vec![
            Event {
                id: n as u16,
                task: (n >> 16) as u16,
                ..plain(n)
            }
            .bytes(),
        ]
    }),
    ("providers", |n| {
        let name = format!("A provider with a name of its own, number {n}");
        let traits = Out::default()
            .u16(3 + name.len() as u16)
            .bytes(name.as_bytes())
            .u8(0)
            .0;
        vec![
            Event {
                provider: guid(n),
                items: chain(&[(12, &traits)]),
                ..plain(n)
            }
            .bytes(),
        ]
    }),
    ("activities", |n| {
        let activity = Event {
            activity: guid(n),
            opcode: 1 + (n % 2) as u8,
            ..plain(n)
        };
        let parent = guid(n / 2);
        vec![
            Event {
                items: chain(&[(1, &parent)]),
                ..activity
            }
            .bytes(),
        ]
    }),
    ("tiny", |_| vec![opaque(0xc0ee, &[0; 4])]),
];

/// A sample with a stack of addresses that no other has.
pub fn sampled_stack(n: u64) -> Vec<Vec<u8>> {
    const DEPTH: u64 = 100;
    let sample = words(&[0x1000 * n, 12], []);
    let addresses = (0..DEPTH).map(|i| 0x1000 * (DEPTH * n + i));
    let stack = words(&[at(n) as u64, 12 << 32 | 8], addresses);
    vec![
        perfinfo(true, 0x0f2e, at(n), None, &[], &sample),
        system(true, 0x1820, at(n), &stack),
    ]
}

/// The records of a kind.
pub fn kind(name: &str) -> Maker {
    KINDS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// The time of a record.
fn at(n: u64) -> i64 {
    1_000 + n as i64
}

fn words(first: &[u64], others: impl IntoIterator<Item = u64>) -> Vec<u8> {
    first
        .iter()
        .copied()
        .chain(others)
        .flat_map(u64::to_le_bytes)
        .collect()
}

fn guid(n: u64) -> [u8; 16] {
    let mut guid = *b"0123456789abcdef";
    guid[..8].copy_from_slice(&n.to_le_bytes());
    guid
}

fn plain(n: u64) -> Event {
    Event {
        timestamp: at(n),
        thread: 12,
        process: 8,
        ..Event::default()
    }
}

fn process(hook: u16, pid: u64, n: u64) -> Vec<u8> {
    let payload = Out::default()
        .u64(n)
        .u32(pid as u32)
        .u32(4)
        .u32(1)
        .u32(0)
        .u64(0)
        .u32(0)
        .u32(0);
    let names = payload
        .bytes(b"app.exe\0")
        .utf16("app.exe --with arguments")
        .u16(0)
        .u32(0);
    let mut record = system(true, hook, at(n), &names.0);
    record[0] = 4;
    record
}

fn thread(hook: u16, tid: u64, n: u64) -> Vec<u8> {
    let payload = Out::default().u32(100).u32(tid as u32).bytes(&[1; 64]);
    let mut record = system(true, hook, at(n), &payload.0);
    record[0] = 3;
    record
}

fn image_of(hook: u16, pid: u64, n: u64, base: u64) -> Vec<u8> {
    let payload = words(&[base, 0x1000, pid, 0, 0, 0, 0], []);
    let path = Out::default()
        .bytes(&payload)
        .utf16(&format!("\\Device\\C\\image{base:x}.dll"));
    let mut record = system(true, hook, at(n), &path.u16(0).0);
    record[0] = 3;
    record
}

fn image(hook: u16, n: u64, base: u64) -> Vec<u8> {
    image_of(hook, 100, n, base)
}

fn kernel_image(n: u64) -> Vec<u8> {
    image_of(0x140a, 0, n, 0xffff_8000_0000_0000 + 0x1_0000 * n)
}

fn clr(provider: [u8; 16], id: u16, n: u64, payload: Vec<u8>) -> Vec<u8> {
    let (timestamp, activity) = (at(n), [0; 16]);
    Event {
        provider,
        id,
        version: 1,
        process: 100,
        timestamp,
        activity,
        payload,
        ..plain(n)
    }
    .bytes()
}

fn method(provider: [u8; 16], id: u16, n: u64, number: u64) -> Vec<u8> {
    let payload = Out::default()
        .u64(number)
        .u64(7)
        .u64(0x1_0000 + 64 * number)
        .u32(32);
    let names = payload
        .u32(0x0600_0001)
        .u32(8)
        .utf16("Name.Space")
        .u16(0)
        .utf16("M")
        .u16(0);
    clr(provider, id, n, names.utf16("void ()").u16(0).u16(1).0)
}

/// A file of about `size` bytes of records with new numbers.
pub fn growing(name: &str, make: Maker, size: usize) -> Hostile {
    const BUFFER: usize = 0x1_0000;
    let mut file = File::new(BUFFER as u32);
    let (mut records, mut used, mut n) = (Vec::new(), 0, 0);
    while file.buffers.len() * BUFFER < size {
        for record in make(n) {
            let len = record.len().next_multiple_of(8);
            if used + len + 0x48 > BUFFER {
                file = file.buffer(0, &std::mem::take(&mut records));
                used = 0;
            }
            used += len;
            records.push(record);
        }
        n += 1;
    }
    Hostile {
        name: format!("{name}.etl"),
        bytes: file.bytes(),
    }
}

/// A compressed file with `count` buffers of `plain` bytes each: some records, and one match that
/// repeats them.
pub fn repeating(name: &str, make: Maker, plain: u32, count: u16) -> Hostile {
    // A match reaches back at most this far.
    const REACH: usize = 0x2000;
    let mut period = Vec::new();
    for n in 0.. {
        let more = super::common::lay(&make(n));
        if period.len() + more.len() > REACH {
            break;
        }
        period.extend(more);
    }
    let body = plain as usize - 0x48;
    let whole = body / period.len() * period.len();
    let mut packed = Vec::new();
    for piece in period.chunks(32) {
        // Flags of literals, then of what is not there.
        let flags = if piece.len() == 32 {
            0
        } else {
            u32::MAX >> piece.len()
        };
        packed.extend(flags.to_le_bytes());
        packed.extend(piece);
    }
    let token = ((period.len() - 1) << 3 | 7) as u16;
    let length = (whole - period.len() - 3) as u32;
    let long = Out::default()
        .u16(token)
        .u8(0x0f)
        .u8(0xff)
        .u16(0)
        .u32(length)
        .0;
    if period.len() % 32 == 0 {
        packed.extend(u32::MAX.to_le_bytes());
    }
    packed.extend(long);
    let mut file = File::new(plain).compressed(3, |_| Vec::new());
    file.event.processors = 64;
    for number in 0..count {
        let mut buffer = Buffer::data(0, number % 64, i64::from(number) + 1, &[]);
        (buffer.packed, buffer.fill) = (Some(packed.clone()), Some(0x48 + whole as u32));
        file.buffers.push(buffer);
    }
    Hostile {
        name: format!("{name}-{plain:x}.etl"),
        bytes: file.bytes(),
    }
}

/// A file of so many buffers without records.
pub fn empty_buffers(count: usize) -> Hostile {
    let mut file = File::new(0x1_0000).compressed(3, |_| Vec::new());
    for number in 0..count {
        let mut buffer = Buffer::data(0, 0, number as i64 + 1, &[]);
        (buffer.packed, buffer.fill) = (Some(Vec::new()), Some(0x48));
        file.buffers.push(buffer);
    }
    Hostile {
        name: "buffers.etl".to_owned(),
        bytes: file.bytes(),
    }
}

/// A file whose header states buffers of 1 MiB, with a record of each of so many processors.
pub fn processors(count: u16) -> Hostile {
    let mut file = File::new(1 << 20).compressed(3, super::common::packed::xpress);
    file.event.processors = count.into();
    for number in 0..count {
        let records = [Event {
            timestamp: at(number.into()),
            ..plain(0)
        }
        .bytes()];
        file.buffers
            .push(Buffer::data(0, number, i64::from(number) + 1, &records));
    }
    Hostile {
        name: "processors.etl".to_owned(),
        bytes: file.bytes(),
    }
}

/// A file of so many samples, each with a stack of a key that only its end defines; with `one`, the
/// first sample has them all.
pub fn waiting_keys(count: u64, one: bool) -> Hostile {
    const KEY: u64 = 77;
    let of = |n: u64| if one { at(0) } else { at(n) };
    let samples = (0..count).map(|n| {
        perfinfo(
            true,
            0x0f2e,
            of(n),
            None,
            &[],
            &words(&[0xffff_f800_0000_1000, 1 << 32 | 8], []),
        )
    });
    let keys = (0..count).map(|n| {
        let key = words(&[of(n) as u64, 8 << 32 | 100, KEY], []);
        perfinfo(true, 0x1826, at(count + n), None, &[], &key)
    });
    let last = words(&[KEY], (0..8_000).map(|n| 0x7ff0_0000_0000 + 16 * n));
    let last = perfinfo(true, 0x1824, at(2 * count), None, &[], &last);
    let records: Vec<_> = samples
        .take(if one { 1 } else { usize::MAX })
        .chain(keys)
        .collect();
    let mut file = File::new(0x1_0000);
    for records in records.chunks(1_000).chain([&[last][..]]) {
        file = file.buffer(0, records);
    }
    Hostile {
        name: format!("waiting-keys-{count}-{one}.etl"),
        bytes: file.bytes(),
    }
}

/// A file with a buffer of each of so many processors, and one missing between each two.
pub fn gaps(count: u16) -> Hostile {
    let mut file = File::new(0x400);
    file.event.processors = count.into();
    for number in 0..count {
        let records = [Event {
            timestamp: at(number.into()),
            ..plain(0)
        }
        .bytes()];
        file.buffers.push(Buffer::data(
            0x400,
            number,
            2 * i64::from(number) + 2,
            &records,
        ));
    }
    Hostile {
        name: "gaps.etl".to_owned(),
        bytes: file.bytes(),
    }
}
