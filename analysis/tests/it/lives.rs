//! Addresses in code and images that are there for a part of the recording.

use etl_analysis::Machine;
use etl_analysis::address::Origin;
use etl_analysis::machine::UnresolvedCause;
use etl_format::constants::EventFlags;
use etl_format::write::record::Event;
use etl_format::{EventDescriptor, Guid};
use etl_schema::providers::CLR_RUNTIME;

use super::*;

const CODE: u64 = 0x7ff8_1000_2000;
const IMAGE: u64 = 0x7ff9_0000_0000;

/// A method's code is loaded (143) or unloaded (144).
fn method(trace: &mut Trace, id: u16, timestamp: i64, named: bool) {
    let numbers = [0x10u64, 0x20, CODE].map(u64::to_le_bytes).concat();
    let small = [0x100u32, 0x0600_0001, 1].map(u32::to_le_bytes).concat();
    let names: Vec<u8> = "N\0M\0()\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let payload = [
        &numbers[..],
        &small,
        if named { &names } else { &[] },
        &[1, 0],
    ]
    .concat();
    let id = if named { id } else { id - 2 };
    let record = Event::new(
        CLR_RUNTIME,
        EventDescriptor {
            id,
            version: 1,
            level: 5,
            keyword: 0x10,
            ..Default::default()
        },
        timestamp,
    )
    .flags(EventFlags(0x40))
    .process(PID, TID)
    .activity(Guid::default())
    .payload(&payload);
    trace.session.write(0, &record).unwrap();
}

/// An image is loaded (10) or unloaded (2).
fn image(trace: &mut Trace, opcode: u8, timestamp: i64) {
    let path: Vec<u8> = "C:\\app.dll\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let place = [IMAGE, 0x10_0000].map(u64::to_le_bytes).concat();
    let payload = [&place[..], &PID.to_le_bytes(), &[0; 36], &path].concat();
    let record = Full::new(group_guid(0x14).unwrap(), opcode, timestamp)
        .version(2)
        .process(4, 4)
        .payload(&payload);
    trace.session.write(0, &record).unwrap();
}

/// Of the samples: how many are in managed code, in images, and in nothing.
fn tally(machine: &Machine) -> (u64, u64, u64) {
    let tally = machine.tallies()[Origin::Sample as usize];
    (tally.managed, tally.image, tally.unresolved)
}

#[test]
fn addresses_before_and_after_a_life_are_of_another_time() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    let sample = |trace: &mut Trace, timestamp| {
        trace.sample(timestamp, CODE + 4, TID);
        trace.sample(timestamp + 1, IMAGE + 4, TID);
    };
    sample(&mut trace, 2_100);
    sample(&mut trace, 2_200);
    method(&mut trace, 143, 3_000, true);
    image(&mut trace, 10, 3_001);
    sample(&mut trace, 3_100);
    method(&mut trace, 144, 4_000, true);
    image(&mut trace, 2, 4_001);
    for timestamp in [4_100, 4_200, 4_300] {
        sample(&mut trace, timestamp);
    }
    let (machine, _) = trace.analyze();
    assert_eq!(tally(&machine), (1, 1, 10));
    let unresolved: Vec<_> = machine
        .unresolved()
        .iter()
        .map(|u| (u.address, u.count, u.cause))
        .collect();
    let (method, image) = (
        UnresolvedCause::MethodAtOtherTime,
        UnresolvedCause::ImageAtOtherTime,
    );
    assert_eq!(unresolved, [(CODE + 4, 5, method), (IMAGE + 4, 5, image)]);
}

/// Such a method waits for a rundown that names it.
#[test]
fn address_before_the_load_of_an_unnamed_method_is_not_in_it() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.sample(2_100, CODE + 4, TID);
    method(&mut trace, 143, 3_000, false);
    trace.sample(3_100, CODE + 4, TID);
    trace.sample(3_200, CODE + 4, TID);
    let (machine, _) = trace.analyze();
    assert_eq!(tally(&machine), (2, 0, 1));
}

#[test]
fn addresses_in_what_is_listed_later_were_there_all_along() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.sample(2_100, IMAGE + 4, TID);
    // Something else close by goes, and comes again.
    method(&mut trace, 143, 3_000, true);
    method(&mut trace, 144, 3_100, true);
    trace.sample(3_200, IMAGE + 4, TID);
    image(&mut trace, 3, 4_000);
    trace.sample(4_100, IMAGE + 4, TID);
    let (machine, _) = trace.analyze();
    assert_eq!(tally(&machine), (0, 3, 0));
}
