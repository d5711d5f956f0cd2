//! Damaged traces: every operation ends, does not panic, and writes a readable trace.

use crate::common::{Made, trace};
use etl_format::Guid;
use etl_format::read::{self, Order, Trace};
use etl_tools::diff::Differ;
use etl_tools::scrub::{Action, Category, Lengths, Mask, Policy, Scrubber};
use etl_tools::slice::Slicer;
use proptest::prelude::*;

/// Kernel events, events of the CLR, stacks, and one that no schema is known for.
fn intact() -> Vec<u8> {
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let wide = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let clr: Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
    let sid = [
        1, 5, 0, 0, 0, 0, 0, 5, 21, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 233, 3, 0, 0,
    ];
    let process = [
        &words(&[7, 100, 1, 0, 0]),
        &words(&[1, 1])[..],
        &sid,
        b"tool.exe\0",
    ]
    .concat();
    let thrown = wide("Type\0C:\\Users\\jane\\x S-1-5-21-1-2-3-1001\0________");
    let mut stack = Made::new(2_005, 9, b"jane was here");
    stack.stack = vec![0x7fff_0000_1000, 0xffff_8000_0000_1000];
    trace(&[
        Made::kernel(2_001, 0x0301, &process),
        Made::kernel(2_002, 0x1403, &words(&[0x10_0000, 0x1000, 100, 0, 0, 0, 0])),
        Made {
            provider: clr,
            version: 1,
            ..Made::new(2_003, 80, &thrown)
        },
        Made {
            provider: clr,
            ..Made::new(2_004, 82, &words(&[1, 0x10_0010, 0x10_0020]))
        },
        stack,
        Made::kernel(2_006, 0x1820, &words(&[2_005, 0x65_0000_0064, 0x10_0010])),
        Made {
            processor: 1,
            ..Made::kernel(2_007, 0x0f2e, &words(&[0x10_0010, 101]))
        },
    ])
}

fn open(file: &[u8]) -> Option<Trace<&[u8]>> {
    Trace::open(file, &read::Options::salvage()).ok()
}

fn count(file: &[u8]) -> u64 {
    let mut trace = open(file).expect("what a tool writes can be read");
    let mut records = trace.records(Order::Time).unwrap();
    let mut count = 0;
    while let Ok(Some(_)) = records.next_record() {
        count += 1;
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn operations_on_damaged_traces_end_without_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        whole: bool,
    ) {
        let mut file = intact();
        // Most of a buffer is filler; changes there say nothing.
        let used: Vec<usize> = (0..file.len()).filter(|at| at % 0x1000 < 0x400).collect();
        for (at, byte) in changes {
            let at = used[at.index(used.len())];
            file[at] = byte;
        }
        if !whole {
            file.truncate(cut.index(file.len()));
        }
        let Some(mut trace) = open(&file) else { return Ok(()) };
        let mut policy = Policy::strict().with_field("ExceptionMessage", Action::Drop);
        for category in Category::ALL {
            policy = policy.with(category, Action::Hash);
        }
        let lengths = if file.len().is_multiple_of(2) { Lengths::Keep } else { Lengths::Free };
        let scrubber =
            Scrubber::new(Mask::new(b"salt")).policy(policy).secrets(["jane"]).lengths(lengths);
        // Reading or writing may fail; but bytes that were written are a trace.
        if let Ok(scrubbed) = scrubber.run(&mut trace, Vec::new()) {
            let records = count(&scrubbed.output);
            prop_assert!(records >= scrubbed.report.records);
        }
        let kept = Slicer::new().run(&mut trace, |r, _| r.timestamp().get() % 2 == 0, Vec::new());
        if let Ok(slice) = kept {
            prop_assert!(count(&slice.output) >= slice.report.selected);
        }
        let mut other = open(&file).unwrap();
        let mut differences = 0u64;
        if let Ok(summary) = Differ::new().run(&mut trace, &mut other, |_| differences += 1) {
            prop_assert!(!summary.differs() && differences == 0);
        }
    }
}
