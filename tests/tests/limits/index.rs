//! Memory of the index of methods and modules.

use etl_analysis::address::{Ranges, Tag};
use etl_analysis::machine::Process;
use etl_format::constants::PointerSize;
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::views::clr::{self, ClrProvider};

use crate::counting::{peak, peak_and_held};

/// Bytes that the index of a number of methods takes, and bytes to search it. Each method has its
/// own addresses, in random order; each hundred methods have a module.
fn index(methods: u64) -> (usize, usize) {
    // The step and the number have no common factor, so each place is visited once.
    let place = |i: u64| 0x7ff0_0000_0000 + i.wrapping_mul(7_368_787) % methods * 256;
    let (process, _, held) = peak_and_held(|| {
        let mut process = Process::new(ProcessId::new(4));
        let mut add = |id, version, payload: &[u8]| {
            let event =
                clr::decode_event(ClrProvider::Rundown, id, version, payload, PointerSize::P8);
            process.clr_event(&event.unwrap(), None, Ticks::new(5), ThreadId::new(77));
        };
        // DCEndInit, MethodDCEndVerbose and ModuleDCEnd of the CLR 9, and DCEndComplete.
        add(148, 1, &[9, 0]);
        let mut payload = Vec::with_capacity(256);
        for i in 0..methods {
            let module = i / 100 + 1;
            payload.clear();
            [i, module, place(i)]
                .iter()
                .for_each(|v| payload.extend(v.to_le_bytes()));
            [200u32, 0, 8]
                .iter()
                .for_each(|v| payload.extend(v.to_le_bytes()));
            payload.extend([0, 0, 0, 0, 0, 0, 9, 0]);
            add(144, 1, &payload);
            if i % 100 == 99 {
                payload.clear();
                [module, module, 0]
                    .iter()
                    .for_each(|v| payload.extend(v.to_le_bytes()));
                let paths = "C:\\App\\Some.Library.dll\0\0".encode_utf16();
                paths.for_each(|unit| payload.extend(unit.to_le_bytes()));
                payload.extend([9, 0]);
                // No PDB of the IL, and none of a native image.
                payload.resize(payload.len() + 2 * (16 + 4 + 2), 0);
                add(154, 2, &payload);
            }
        }
        add(146, 1, &[9, 0]);
        process
    });
    assert_eq!(
        (process.code().live() as u64, process.methods()),
        (methods, methods)
    );
    assert_eq!(process.clrs()[&9].modules().len() as u64, methods / 100);
    // The first search builds the index.
    let ((), searched) = peak(|| {
        let history = process.code().history();
        for i in (0..methods).step_by(997) {
            assert_eq!(
                history
                    .owner(place(i) + 100, Ticks::new(9), Ticks::new(9))
                    .map(|tag: Tag| tag.id),
                Some(i)
            );
        }
    });
    (held, searched)
}

#[test]
fn index_takes_few_bytes_for_each_method() {
    // 107 bytes for each method would be a gigabyte for 10 million methods.
    let methods = 300_000;
    let (held, searched) = index(methods);
    let each = (held + searched) as f64 / methods as f64;
    eprintln!("{each:.1} bytes for a method, of them {searched} to search {methods}");
    assert!(each < 60.0, "{each} bytes for a method");

    // In the order of their addresses, as rundowns list them, they take less.
    let (ranges, _, held) = peak_and_held(|| {
        let mut ranges = Ranges::default();
        for i in 0..methods {
            ranges.add(
                i * 256,
                200,
                None,
                Tag {
                    id: i,
                    ..Tag::default()
                },
            );
        }
        ranges
    });
    assert_eq!(ranges.live() as u64, methods);
    let each = held as f64 / methods as f64;
    assert!(each < 36.0, "{each} bytes for a method in order");
}
