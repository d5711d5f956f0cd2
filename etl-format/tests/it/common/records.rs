//! Records of each kind.

use super::Out;

/// The first class or provider that tests use.
pub const GUID_A: [u8; 16] = *b"\x11\x22\x33\x44\x55\x66\x77\x88abcdefgh";
/// The second one.
pub const GUID_B: [u8; 16] = *b"ABCDEFGHIJKLMNOP";

fn pick(wide: bool, narrow_kind: u8, wide_kind: u8) -> u8 {
    if wide { wide_kind } else { narrow_kind }
}

/// SYSTEM: thread 0x11, process 0x22, kernel time 3, user time 4, version 5.
pub fn system(wide: bool, hook: u16, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let size = 0x20 + payload.len();
    Out::default()
        .u16(5)
        .u8(pick(wide, 1, 2))
        .u8(0xc0)
        .u16(size as u16)
        .u16(hook)
        .u32(0x11)
        .u32(0x22)
        .i64(timestamp)
        .u32(3)
        .u32(4)
        .bytes(payload)
        .0
}

/// COMPACT: as SYSTEM without the times.
pub fn compact(wide: bool, hook: u16, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    Out::default()
        .u16(5)
        .u8(pick(wide, 3, 4))
        .u8(0xc0)
        .u16((0x18 + payload.len()) as u16)
        .u16(hook)
        .u32(0x11)
        .u32(0x22)
        .i64(timestamp)
        .bytes(payload)
        .0
}

/// PERFINFO of version 2, with a precise-sampling index and counters where there are some.
pub fn perfinfo(
    wide: bool,
    hook: u16,
    timestamp: i64,
    pebs: Option<u64>,
    counters: &[u64],
    payload: &[u8],
) -> Vec<u8> {
    let version = 2 | (counters.len() as u16) << 8 | if pebs.is_some() { 0x8000 } else { 0 };
    let mut body = Out::default();
    for &v in pebs.iter().chain(counters) {
        body = body.u64(v);
    }
    let body = body.bytes(payload).0;
    Out::default()
        .u16(version)
        .u8(pick(wide, 0x10, 0x11))
        .u8(0xc0)
        .u16((0x10 + body.len()) as u16)
        .u16(hook)
        .i64(timestamp)
        .bytes(&body)
        .0
}

fn classic(kind: u8, size: usize, opcode: u8, timestamp: i64) -> Out {
    Out::default()
        .u16(size as u16)
        .u8(kind)
        .u8(0xc0)
        .u8(opcode)
        .u8(4)
        .u16(6)
        .u32(0x33)
        .u32(0x44)
        .i64(timestamp)
        .bytes(&GUID_A)
        .u32(7)
        .u32(8)
}

/// FULL: class A, level 4, version 6, thread 0x33, process 0x44, times 7 and 8.
pub fn full(wide: bool, opcode: u8, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    classic(
        pick(wide, 0x0a, 0x14),
        0x30 + payload.len(),
        opcode,
        timestamp,
    )
    .bytes(payload)
    .0
}

/// INSTANCE: a FULL one of instance 9 with parent 10 of class B.
pub fn instance(wide: bool, opcode: u8, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    classic(
        pick(wide, 0x0b, 0x15),
        0x48 + payload.len(),
        opcode,
        timestamp,
    )
    .u32(9)
    .u32(10)
    .bytes(&GUID_B)
    .bytes(payload)
    .0
}

/// MESSAGE number 0x77 with the fields that its flags announce: sequence 1, component 2 or GUID A,
/// the timestamp, thread 3 and process 4. `marker` is the upper half of the first word.
pub fn message(marker: u16, flags: u16, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let mut body = Out::default();
    if flags & 0x01 != 0 {
        body = body.u32(1);
    }
    if flags & 0x04 != 0 {
        body = body.u32(2);
    } else if flags & 0x02 != 0 {
        body = body.bytes(&GUID_A);
    }
    if flags & 0x18 != 0 {
        body = body.i64(timestamp);
    }
    if flags & 0x20 != 0 {
        body = body.u32(3).u32(4);
    }
    let body = body.bytes(payload).0;
    Out::default()
        .u16((8 + body.len()) as u16)
        .u16(marker)
        .u16(0x77)
        .u16(flags)
        .bytes(&body)
        .0
}

/// The marker of WPP messages on disk.
pub const MESSAGE: u16 = 0x9000;

/// EVENT without extended items; [`super::event::Event`] has all fields.
pub fn event(wide: bool, id: u16, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    super::event::Event {
        wide,
        id,
        timestamp,
        payload: payload.to_vec(),
        ..Default::default()
    }
    .bytes()
}

/// A record with an unknown header: only kind and size are defined.
pub fn opaque(marker: u16, payload: &[u8]) -> Vec<u8> {
    Out::default()
        .u16((4 + payload.len()) as u16)
        .u16(marker)
        .bytes(payload)
        .0
}
