//! Losses have the same places in copies and merges: what was lost lies within the spans that the
//! flags of the new buffers state.

use crate::common::{File, system};
use etl_format::constants::BufferFlags;
use etl_format::read::{BufferEntry, Options, Order, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::rewrite::{RelogPlan, Relogger};
use proptest::prelude::*;

const EVENTS_LOST: u16 = BufferFlags::EVENTS_LOST.0;
const BUFFER_LOST: u16 = BufferFlags::BUFFER_LOST.0;
const PAYLOAD: usize = 4_000;

/// A buffer: ticks after the last one of its processor, processor, number of records, loss flags.
type Made = (i64, u16, usize, u16);

/// Something that was lost: flag, processor, first and last time at which it may have happened.
type Lost = (u16, u16, i64, i64);

fn buffers() -> impl Strategy<Value = Vec<Made>> {
    let flags =
        prop_oneof![6 => Just(0), 1 => Just(EVENTS_LOST), 1 => Just(BUFFER_LOST), 1 => Just(6)];
    prop::collection::vec((2..90_i64, 0..2_u16, 1..8_usize, flags), 1..20)
}

/// A trace of these buffers, and what was lost.
fn made(buffers: &[Made]) -> (Vec<u8>, Vec<Lost>) {
    let mut file = File::new(0x8000);
    let count = |flag| buffers.iter().filter(|b| b.3 & flag != 0).count() as u32;
    (file.event.events_lost, file.event.buffers_lost) = (count(EVENTS_LOST), count(BUFFER_LOST));
    file.event.processors = 2;
    let mut lost: Vec<Lost> = Vec::new();
    let mut ends = [file.event.timestamp; 2];
    for &(ticks, processor, count, flags) in buffers {
        let end = &mut ends[usize::from(processor)];
        let first = *end + ticks;
        lost.iter_mut()
            .filter(|l| l.1 == processor && l.3 == i64::MAX)
            .for_each(|l| l.3 = first);
        if flags & BUFFER_LOST != 0 && *end + 1 < first {
            lost.push((BUFFER_LOST, processor, *end + 1, first - 1));
        }
        if flags & EVENTS_LOST != 0 {
            lost.push((EVENTS_LOST, processor, first, i64::MAX));
        }
        let times = (0..count as i64).map(|i| first + 7 * i);
        *end = times.clone().max().unwrap();
        let records: Vec<_> = times
            .map(|t| system(true, 0x0f01, t, &[1; PAYLOAD]))
            .collect();
        file = file.buffer(processor, &records);
        file.buffers.last_mut().unwrap().flags |= flags;
    }
    (file.bytes(), lost)
}

/// The spans that the flags of a trace state.
fn stated(file: &[u8]) -> Vec<Lost> {
    let trace = Trace::open(file, &Options::default()).unwrap();
    let mut data: Vec<&BufferEntry> = trace.buffers().iter().filter(|b| !b.is_header()).collect();
    data.sort_by_key(|b| (b.processor, b.first_timestamp, b.sequence_number));
    let mut stated = Vec::new();
    for (index, b) in data.iter().enumerate() {
        let neighbour = |index: Option<usize>| {
            let other = index.and_then(|index| data.get(index));
            other
                .filter(|o| o.processor == b.processor)
                .map(|o| o.first_timestamp.get())
        };
        if b.flags.has(BufferFlags::EVENTS_LOST) {
            let next = neighbour(Some(index + 1)).unwrap_or(i64::MAX);
            stated.push((EVENTS_LOST, b.processor, b.first_timestamp.get(), next));
        }
        if b.flags.has(BufferFlags::BUFFER_LOST) {
            let before = neighbour(index.checked_sub(1)).unwrap_or(i64::MIN);
            stated.push((BUFFER_LOST, b.processor, before, b.first_timestamp.get()));
        }
    }
    stated
}

/// Whether the spans together contain all of a loss.
fn is_covered(lost: &Lost, stated: &[Lost]) -> bool {
    let &(flag, processor, mut from, to) = lost;
    loop {
        let within = stated
            .iter()
            .filter(|s| (s.0, s.1) == (flag, processor) && s.2 <= from);
        match within.map(|s| s.3).max() {
            Some(end) if end >= to => return true,
            Some(end) if end > from => from = end,
            _ => return false,
        }
    }
}

/// A copy in buffers of another size, with the chosen records.
fn copied(file: &[u8], size: u32, mut chosen: impl FnMut(u16, i64) -> bool) -> Vec<u8> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut plan = RelogPlan::copying(&mut trace).unwrap();
    plan.header.buffer_size = size;
    let mut relog = Relogger::start(plan, Vec::new(), None).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        match record.hook() == Some(0) || chosen(record.processor(), record.timestamp().get()) {
            true => relog.copy(&record).unwrap(),
            false => relog.skip(&record).unwrap(),
        }
    }
    relog.finish(&[]).unwrap().output
}

fn merged(files: &[Vec<u8>], max_memory: u64) -> Vec<u8> {
    let mut inputs: Vec<_> = files.iter().map(Vec::as_slice).collect();
    let merger = Merger::new().max_memory(max_memory);
    let temporary = || Ok(std::io::Cursor::new(Vec::new()));
    merger
        .run_in_passes(&mut inputs, Vec::new(), temporary)
        .unwrap()
        .output
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn copies_keep_the_places_of_losses(buffers in buffers(), size in 1..5_u32) {
        let (file, lost) = made(&buffers);
        let copy = copied(&file, size * 0x4000, |_, _| true);
        let spans = stated(&copy);
        for lost in &lost {
            prop_assert!(is_covered(lost, &spans), "{lost:?}: {spans:?}");
        }
        // A copy of the copy has the same flags.
        prop_assert_eq!(stated(&copied(&copy, size * 0x4000, |_, _| true)), spans);
    }

    #[test]
    fn selections_keep_the_places_of_losses(buffers in buffers(), chosen in any::<u64>()) {
        let (file, lost) = made(&buffers);
        let mut kept = Vec::new();
        let copy = copied(&file, 0x10000, |processor, time| {
            let keep = chosen >> (time % 61) & 1 == 1;
            kept.extend(keep.then_some((processor, time)));
            keep
        });
        let spans = stated(&copy);
        for lost in &lost {
            // Without a record on one side no buffer can state the place.
            let &(flag, processor, from, to) = lost;
            let is_stated = kept.iter().any(|&(of, time)| {
                of == processor && if flag == EVENTS_LOST { time <= from } else { time > to }
            });
            prop_assert!(!is_stated || is_covered(lost, &spans), "{lost:?}: {spans:?}");
        }
    }

    #[test]
    fn merges_keep_the_places_of_losses(
        inputs in prop::collection::vec(buffers(), 1..4),
        in_passes: bool,
    ) {
        let (files, lost): (Vec<_>, Vec<_>) = inputs.iter().map(|buffers| made(buffers)).unzip();
        let merged = merged(&files, if in_passes { 0x9_0000 } else { u64::MAX });
        let header = Trace::open(&merged[..], &Options::default()).unwrap().header().clone();
        let count = |flag| inputs.iter().flatten().filter(|b| b.3 & flag != 0).count() as u32;
        prop_assert_eq!(header.events_lost, count(EVENTS_LOST));
        prop_assert_eq!(header.buffers_lost, count(BUFFER_LOST));
        let spans = stated(&merged);
        for lost in lost.iter().flatten() {
            prop_assert!(is_covered(lost, &spans), "{lost:?}: {spans:?}");
        }
    }
}

#[test]
fn merge_places_no_lost_events_if_an_input_does_not() {
    let (placed, _) = made(&[(5, 0, 3, EVENTS_LOST), (5, 0, 3, BUFFER_LOST)]);
    let (sound, _) = made(&[(1, 0, 1, 0)]);
    let mut unplaced = File::new(0x8000);
    (unplaced.event.processors, unplaced.event.events_lost) = (2, 1);
    let flags = |files: &[Vec<u8>]| -> Vec<u16> {
        stated(&merged(files, u64::MAX))
            .into_iter()
            .map(|s| s.0)
            .collect()
    };
    assert_eq!(flags(&[placed.clone(), sound]), [EVENTS_LOST, BUFFER_LOST]);
    assert_eq!(flags(&[placed, unplaced.bytes()]), [BUFFER_LOST]);
}
