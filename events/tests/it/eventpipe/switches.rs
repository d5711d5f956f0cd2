//! Context switches of `dotnet-trace collect-linux`: the trace has them as records of the kernel.

use etl_format::constants::hook;
use etl_format::read::{Options, Order, Trace};

use super::collect_linux::{MILLISECOND, collect_linux};
use super::write::START_TICKS;
use super::{Converted, converted};

/// A record of the kernel: a context switch, or a stack.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Switch {
        at: u64,
        old: u32,
        new: u32,
    },
    Stack {
        at: u64,
        pid: u32,
        tid: u32,
        frames: usize,
    },
}

fn u32_at(payload: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(payload[at..at + 4].try_into().unwrap())
}

fn seen(trace: &[u8]) -> Vec<Seen> {
    let mut trace = Trace::open(trace, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let payload = record.payload();
        let at = record.timestamp().get().cast_unsigned() - START_TICKS;
        let at = at / MILLISECOND;
        match record.hook() {
            Some(hook::CSWITCH) => seen.push(Seen::Switch {
                at,
                old: u32_at(payload, 4),
                new: u32_at(payload, 0),
            }),
            Some(hook::STACK) => seen.push(Seen::Stack {
                at,
                pid: u32_at(payload, 8),
                tid: u32_at(payload, 12),
                frames: (payload.len() - 16) / 8,
            }),
            _ => {}
        }
    }
    seen
}

fn away(tid: u32, at: u64) -> Seen {
    Seen::Switch {
        at,
        old: tid,
        new: 0,
    }
}

fn back(tid: u32, at: u64) -> Seen {
    Seen::Switch {
        at,
        old: 0,
        new: tid,
    }
}

fn stack(pid: u32, tid: u32, at: u64, frames: usize) -> Seen {
    Seen::Stack {
        at,
        pid,
        tid,
        frames,
    }
}

/// What the document of the format says about the sample: the value is the time that the thread
/// was away, and the stack is where it left.
fn expected() -> Vec<Seen> {
    vec![
        away(1001, 5),
        away(2001, 6),
        away(1002, 8),
        back(1001, 8),
        stack(1000, 1001, 8, 2),
        back(1002, 9),
        away(1001, 20),
        back(1001, 22),
        stack(1000, 1001, 22, 2),
        // After the last event of the stream.
        back(2001, 106),
        stack(2000, 2001, 106, 1),
    ]
}

#[test]
fn context_switches_are_records_of_the_kernel() {
    let stream = collect_linux();
    let Converted { trace, report } = converted(&stream);
    assert_eq!((report.events, report.undescribed), (20, 0));
    assert_eq!(seen(&trace), expected());
    // Threads that are away at a cut return as well.
    let Converted { trace, report } = converted(&stream[..stream.len() - 4]);
    assert!(!report.is_complete);
    assert_eq!(seen(&trace), expected());
}
