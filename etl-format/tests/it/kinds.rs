//! Every record kind: header fields, pointer size, timestamp, ids, payload, identity.

use crate::common::event::{Event, chain};
use crate::common::records::{GUID_A, GUID_B, MESSAGE, opaque};
use crate::common::{File, Out, compact, event, full, instance, message, perfinfo, system};
use etl_format::constants::{ExtendedType, PointerSize, RecordKind, group_guid};
use etl_format::read::{ExtendedItem, Header, Identity, Options, Record, Records};
use etl_format::{Guid, ProcessId, ThreadId, Ticks};

/// Reads a trace with this one record between two others, and looks at it.
fn with_record<R>(record: &[u8], look: impl FnOnce(&Record<'_>) -> R) -> R {
    // Large enough for any record; Miri takes a second to fill 4 KiB.
    let size = if cfg!(miri) {
        (record.len() + 0x600).next_power_of_two()
    } else {
        0x2_0000
    };
    let file = File::new(size as u32)
        .buffer(
            3,
            &[
                system(true, 0x0301, 1000, b"before"),
                record.to_vec(),
                event(true, 1, 3000, b"after"),
            ],
        )
        .bytes();
    let mut reader = Records::stream(file.as_slice(), &Options::default()).unwrap();
    reader.next_record().unwrap().expect("the header event");
    assert_eq!(
        reader
            .next_record()
            .unwrap()
            .expect("the one before")
            .payload(),
        b"before"
    );
    let result = {
        let r = reader.next_record().unwrap().expect("the record");
        assert_eq!(r.bytes(), record);
        assert_eq!(r.processor(), 3);
        assert_eq!(r.location().buffer_offset, size as u64);
        assert_eq!(r.location().in_buffer, 0x48 + 0x28);
        assert_eq!(r.location().sequence_number, 1);
        look(&r)
    };
    assert_eq!(
        reader
            .next_record()
            .unwrap()
            .expect("the one after")
            .payload(),
        b"after"
    );
    assert!(reader.next_record().unwrap().is_none());
    result
}

fn nothing() -> Identity {
    Identity {
        provider: Guid::ZERO,
        hook: None,
        id: 0,
        version: 0,
        opcode: 0,
        task: 0,
        level: 0,
        keyword: 0,
    }
}

fn width(wide: bool) -> Option<PointerSize> {
    Some(if wide {
        PointerSize::P8
    } else {
        PointerSize::P4
    })
}

fn pick(wide: bool, narrow: RecordKind, wide_kind: RecordKind) -> RecordKind {
    if wide { wide_kind } else { narrow }
}

#[test]
fn system_and_compact_headers_are_decoded() {
    for (wide, is_compact) in [(false, false), (true, false), (false, true), (true, true)] {
        for payload in [&b""[..], b"x", b"payload of some length"] {
            let make = if is_compact { compact } else { system };
            with_record(&make(wide, 0x0501, 2000, payload), |r| {
                let kind = if is_compact {
                    pick(wide, RecordKind::COMPACT32, RecordKind::COMPACT64)
                } else {
                    pick(wide, RecordKind::SYSTEM32, RecordKind::SYSTEM64)
                };
                assert_eq!((r.kind(), r.pointer_size()), (kind, width(wide)));
                assert_eq!((r.timestamp().get(), r.has_own_timestamp()), (2000, true));
                assert_eq!(
                    (
                        r.thread_id().map(ThreadId::get),
                        r.process_id().map(ProcessId::get)
                    ),
                    (Some(0x11), Some(0x22))
                );
                assert_eq!(r.payload(), payload);
                assert_eq!(
                    (r.hook(), r.is_kernel(), r.is_event()),
                    (Some(0x0501), true, false)
                );
                assert_eq!(r.provider(), group_guid(5));
                assert_eq!((r.event(), r.descriptor()), (None, None));
                assert_eq!(r.extended().count(), 0);
                let Header::System(h) = r.header() else {
                    panic!("{:?}", r.header())
                };
                assert_eq!(
                    (h.version, h.hook, h.thread_id.get(), h.process_id.get()),
                    (5, 0x0501, 0x11, 0x22)
                );
                let times = if is_compact {
                    (None, None)
                } else {
                    (Some(3), Some(4))
                };
                assert_eq!(
                    (h.kernel_time, h.user_time, h.timestamp.get()),
                    (times.0, times.1, 2000)
                );
                let expected = Identity {
                    provider: group_guid(5).unwrap(),
                    hook: Some(0x0501),
                    opcode: 1,
                    version: 5,
                    ..nothing()
                };
                assert_eq!(r.identity(), expected);
            });
        }
    }
}

#[test]
fn provider_is_none_for_a_group_without_guid() {
    with_record(&system(true, 0x7f01, 2000, b""), |r| {
        assert_eq!(r.provider(), None);
        assert_eq!(
            r.identity(),
            Identity {
                hook: Some(0x7f01),
                opcode: 1,
                version: 5,
                ..nothing()
            }
        );
    });
}

#[test]
fn perfinfo_counters_are_decoded() {
    for (wide, has_pebs, count) in (0..32u64).map(|i| (i & 1 != 0, i & 2 != 0, i >> 2)) {
        let counters: Vec<u64> = (0..count).map(|i| 0xaaaa_0000_0000_0000 + i).collect();
        let index = has_pebs.then_some(0xbbbb_0000_0000_0001);
        for payload in [&b""[..], b"data"] {
            with_record(
                &perfinfo(wide, 0x0f2e, 2000, index, &counters, payload),
                |r| {
                    let kind = pick(wide, RecordKind::PERFINFO32, RecordKind::PERFINFO64);
                    assert_eq!((r.kind(), r.pointer_size()), (kind, width(wide)));
                    assert_eq!(
                        (
                            r.thread_id().map(ThreadId::get),
                            r.process_id().map(ProcessId::get)
                        ),
                        (None, None)
                    );
                    assert_eq!((r.timestamp().get(), r.hook()), (2000, Some(0x0f2e)));
                    assert_eq!(r.payload(), payload);
                    let Header::PerfInfo(h) = r.header() else {
                        panic!("{:?}", r.header())
                    };
                    assert_eq!((h.version(), h.hook, h.timestamp.get()), (2, 0x0f2e, 2000));
                    assert_eq!(h.version_word >> 8 & 7, count as u16);
                    assert_eq!(h.pebs_index, index);
                    assert_eq!(h.counters().collect::<Vec<_>>(), counters);
                    let expected = Identity {
                        provider: group_guid(0xf).unwrap(),
                        hook: Some(0x0f2e),
                        opcode: 0x2e,
                        version: 2,
                        ..nothing()
                    };
                    assert_eq!(r.identity(), expected);
                },
            );
        }
    }
}

#[test]
fn perfinfo_without_space_for_counters_has_no_payload() {
    let mut record = perfinfo(true, 0x0f2e, 2000, None, &[1, 2, 3], b"");
    record.truncate(0x10 + 12);
    record[4] = record.len() as u8;
    with_record(&record, |r| {
        assert_eq!(r.payload(), b"");
        let Header::PerfInfo(h) = r.header() else {
            panic!()
        };
        assert_eq!(h.counters().count(), 0, "none rather than half of them");
    });
}

#[test]
fn full_and_instance_headers_are_decoded() {
    for (wide, is_instance) in [(false, false), (true, false), (false, true), (true, true)] {
        let make = if is_instance { instance } else { full };
        with_record(&make(wide, 32, 2000, b"mof data"), |r| {
            let kind = if is_instance {
                pick(wide, RecordKind::INSTANCE32, RecordKind::INSTANCE64)
            } else {
                pick(wide, RecordKind::FULL32, RecordKind::FULL64)
            };
            assert_eq!((r.kind(), r.pointer_size()), (kind, width(wide)));
            assert_eq!(
                (r.timestamp().get(), r.hook(), r.is_kernel()),
                (2000, None, false)
            );
            assert_eq!(
                (
                    r.thread_id().map(ThreadId::get),
                    r.process_id().map(ProcessId::get)
                ),
                (Some(0x33), Some(0x44))
            );
            assert_eq!(r.payload(), b"mof data");
            assert_eq!(r.provider(), Some(Guid::from_bytes(GUID_A)));
            let h = match r.header() {
                Header::Full(h) if !is_instance => h,
                Header::Instance(h) if is_instance => {
                    assert_eq!((h.instance_id, h.parent_instance_id), (9, 10));
                    assert_eq!(h.parent_class, Guid::from_bytes(GUID_B));
                    h.full
                }
                other => panic!("{other:?}"),
            };
            assert_eq!((h.opcode, h.level, h.version), (32, 4, 6));
            assert_eq!(
                (h.thread_id.get(), h.process_id.get(), h.timestamp.get()),
                (0x33, 0x44, 2000)
            );
            assert_eq!(
                (h.class, h.kernel_time, h.user_time),
                (Guid::from_bytes(GUID_A), 7, 8)
            );
            let expected = Identity {
                provider: Guid::from_bytes(GUID_A),
                opcode: 32,
                level: 4,
                version: 6,
                ..nothing()
            };
            assert_eq!(r.identity(), expected);
        });
    }
}

#[test]
fn message_fields_follow_the_flags() {
    for marker in [MESSAGE, 0x9123, 0xc00f] {
        for flags in 0..=0xffu16 {
            let payload: &[u8] = if flags & 1 == 0 { b"args" } else { b"" };
            with_record(&message(marker, flags, 2000, payload), |r| {
                let on = |bit: u16| flags & bit != 0;
                assert_eq!(r.kind(), RecordKind::MESSAGE, "{marker:#x} {flags:#x}");
                let timestamped = on(0x18);
                assert_eq!(r.has_own_timestamp(), timestamped, "{flags:#x}");
                assert_eq!(
                    r.timestamp().get(),
                    if timestamped { 2000 } else { 1000 },
                    "{flags:#x}"
                );
                let Header::Message(h) = r.header() else {
                    panic!("{:?}", r.header())
                };
                assert_eq!((h.number, h.flags.0), (0x77, flags));
                assert_eq!(h.sequence, on(1).then_some(1));
                assert_eq!(h.component_id, on(4).then_some(2));
                let guid = (on(2) && !on(4)).then_some(Guid::from_bytes(GUID_A));
                assert_eq!((h.guid, r.provider()), (guid, guid), "{flags:#x}");
                assert_eq!(h.timestamp, timestamped.then_some(Ticks::new(2000)));
                let ids = on(0x20).then_some((3, 4));
                assert_eq!(
                    h.thread_id
                        .map(ThreadId::get)
                        .zip(h.process_id.map(ProcessId::get)),
                    ids
                );
                assert_eq!(
                    r.thread_id()
                        .map(ThreadId::get)
                        .zip(r.process_id().map(ProcessId::get)),
                    ids
                );
                let size = if on(0x80) {
                    width(true)
                } else {
                    on(0x40).then_some(PointerSize::P4)
                };
                assert_eq!((h.pointer_size(), r.pointer_size()), (size, size));
                assert_eq!(r.payload(), payload, "{flags:#x}");
                let expected = Identity {
                    provider: guid.unwrap_or(Guid::ZERO),
                    id: 0x77,
                    ..nothing()
                };
                assert_eq!(r.identity(), expected);
                assert!(!r.is_kernel() && !r.is_event() && r.hook().is_none());
            });
        }
    }
}

#[test]
fn message_too_short_for_its_flags_is_read() {
    let whole = message(MESSAGE, 0x2b, 2000, b"");
    for len in 8..whole.len() {
        let mut record = whole[..len].to_vec();
        record[0] = len as u8;
        with_record(&record, |r| {
            let Header::Message(h) = r.header() else {
                panic!("{:?}", r.header())
            };
            assert_eq!(h.sequence.is_some(), len >= 12);
            assert_eq!(h.guid.is_some(), len >= 28);
            assert_eq!(h.timestamp.is_some(), len >= 36);
            assert_eq!(r.has_own_timestamp(), len >= 36);
            assert_eq!(r.payload(), b"");
        });
    }
}

#[test]
fn event_header_is_decoded() {
    for wide in [false, true] {
        let made = Event {
            wide,
            timestamp: 2000,
            properties: 8,
            payload: b"user".into(),
            ..Event::default()
        };
        with_record(&made.bytes(), |r| {
            let kind = pick(wide, RecordKind::EVENT32, RecordKind::EVENT64);
            assert_eq!((r.kind(), r.pointer_size()), (kind, width(wide)));
            assert_eq!(
                (
                    r.timestamp().get(),
                    r.thread_id().map(ThreadId::get),
                    r.process_id().map(ProcessId::get)
                ),
                (2000, Some(0x55), Some(0x66))
            );
            assert_eq!((r.payload(), r.extended().count()), (&b"user"[..], 0));
            let Header::Event(h) = r.header() else {
                panic!("{:?}", r.header())
            };
            assert_eq!(r.event(), Some(h));
            assert_eq!(r.descriptor(), Some(h.descriptor));
            assert_eq!((h.flags.0, h.properties.0, h.timestamp.get()), (0, 8, 2000));
            assert_eq!((h.thread_id.get(), h.process_id.get()), (0x55, 0x66));
            assert_eq!(
                (h.provider, h.activity),
                (Guid::from_bytes(GUID_A), Guid::from_bytes(GUID_B))
            );
            assert_eq!((h.kernel_time, h.user_time), (12, 13));
            let d = h.descriptor;
            assert_eq!((d.id, d.version, d.channel, d.level), (1, 2, 11, 4));
            assert_eq!(
                (d.opcode, d.task, d.keyword),
                (7, 0x0908, 0x8000_0000_0000_0010)
            );
            let expected = Identity {
                provider: Guid::from_bytes(GUID_A),
                hook: None,
                id: 1,
                version: 2,
                opcode: 7,
                task: 0x0908,
                level: 4,
                keyword: 0x8000_0000_0000_0010,
            };
            assert_eq!(r.identity(), expected);
        });
    }
}

/// The items of an event whose chain is `items`, and its payload.
fn items_of(items: Vec<u8>, look: impl FnOnce(Vec<ExtendedItem<'_>>, &[u8], bool)) {
    let made = Event {
        timestamp: 2000,
        items,
        payload: b"payload".into(),
        ..Event::default()
    };
    with_record(&made.bytes(), |r| {
        let mut walk = r.extended();
        let found: Vec<_> = walk.by_ref().collect();
        look(found, r.payload(), walk.is_broken());
    });
}

#[test]
fn extended_items_are_typed() {
    let eight = 0x1122_3344_5566_7788u64;
    let word = eight.to_le_bytes();
    let guid = Guid::from_bytes(GUID_A);
    let sid: &[u8] = &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    let inst = Out::default().u32(1).u32(2).bytes(&GUID_A).0;
    let key = |v: &[u8]| Out::default().u64(9).bytes(v).0;
    let (key32, key64) = (key(&[4, 3, 2, 1, 0, 0, 0, 0]), key(&word));
    use ExtendedItem as E;
    let cases: Vec<(u16, &[u8], ExtendedItem<'_>)> = vec![
        (1, &GUID_A, E::RelatedActivity(guid)),
        (2, sid, E::Sid(sid)),
        (3, &[7, 0, 0, 0], E::TerminalSession(7)),
        (
            4,
            &inst,
            E::Instance {
                id: 1,
                parent_id: 2,
                parent: guid,
            },
        ),
        (7, &word, E::PebsIndex(eight)),
        (8, &word, E::PmcCounters(&word)),
        (9, b"key", E::PsmKey(b"key")),
        (0x0a, &word, E::EventKey(eight)),
        (0x0b, b"\x05\0abc", E::EventSchema(b"\x05\0abc")),
        (0x0c, b"\x05\0ab\0", E::ProviderTraits(b"\x05\0ab\0")),
        (0x0d, &word, E::ProcessStartKey(eight)),
        (0x0e, &GUID_A, E::ControlGuid(guid)),
        (0x0f, &[0xff; 8], E::QpcDelta(-1)),
        (0x10, &GUID_A, E::ContainerId(guid)),
        (
            0x11,
            &key32,
            E::StackKey {
                match_id: 9,
                key: 0x0102_0304,
                wide: false,
            },
        ),
        (
            0x12,
            &key64,
            E::StackKey {
                match_id: 9,
                key: eight,
                wide: true,
            },
        ),
        (
            0x13,
            b"new",
            E::Unknown {
                kind: ExtendedType(0x13),
                data: b"new",
            },
        ),
        (
            0xffff,
            b"",
            E::Unknown {
                kind: ExtendedType(0xffff),
                data: b"",
            },
        ),
    ];
    for (kind, data, expected) in &cases {
        items_of(chain(&[(*kind, data)]), |found, payload, broken| {
            assert_eq!(found, [*expected], "type {kind:#x}");
            assert_eq!((payload, broken), (&b"payload"[..], false));
        });
    }
    let all: Vec<_> = cases.iter().map(|&(kind, data, _)| (kind, data)).collect();
    items_of(chain(&all), |found, payload, broken| {
        let expected: Vec<_> = cases.iter().map(|c| c.2).collect();
        assert_eq!(found, expected);
        assert_eq!((payload, broken), (&b"payload"[..], false));
    });
}

#[test]
fn stacks_have_addresses_of_both_sizes() {
    let addresses = [0x1000_2000u64, 0xffff_f800_0000_1000, 3];
    let wide = addresses
        .iter()
        .fold(Out::default().u64(5), |out, &a| out.u64(a))
        .0;
    let narrow = addresses
        .iter()
        .fold(Out::default().u64(0), |out, &a| out.u32(a as u32))
        .0;
    items_of(chain(&[(6, &wide), (5, &narrow)]), |found, payload, _| {
        let [ExtendedItem::Stack(a), ExtendedItem::Stack(b)] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (a.match_id, a.wide, a.len(), a.is_empty()),
            (5, true, 3, false)
        );
        assert_eq!(a.addresses().collect::<Vec<_>>(), addresses);
        assert_eq!((b.match_id, b.wide, b.len()), (0, false, 3));
        assert_eq!(b.addresses().collect::<Vec<_>>(), [0x1000_2000, 0x1000, 3]);
        assert_eq!(payload, b"payload");
    });
}

#[test]
fn reserved_kinds_are_opaque() {
    let reserved = [
        (0xc00c, RecordKind::TIMED),
        (0xc00d, RecordKind::ERROR),
        (0xc00e, RecordKind::WNODE),
    ];
    let own = [
        (0xa000, RecordKind::ULONG32),
        (0xb000, RecordKind::ULONG32_TIME),
    ];
    for (marker, kind) in reserved.into_iter().chain(own) {
        for len in [4, 5, 0x2c, 0x80] {
            with_record(&opaque(marker, &vec![0x5a; len]), |r| check_opaque(r, kind));
        }
    }
}

#[test]
fn unknown_kinds_are_opaque() {
    for kind in 0..=0xffu8 {
        if RecordKind(kind).name().is_none() {
            let record = opaque(0xc000 | u16::from(kind), b"____whatever it is");
            with_record(&record, |r| check_opaque(r, RecordKind(kind)));
        }
    }
}

fn check_opaque(r: &Record<'_>, kind: RecordKind) {
    assert_eq!(r.kind(), kind);
    assert_eq!(
        (r.timestamp().get(), r.has_own_timestamp()),
        (1000, false),
        "taken over"
    );
    assert_eq!(
        (
            r.thread_id().map(ThreadId::get),
            r.process_id().map(ProcessId::get),
            r.pointer_size()
        ),
        (None, None, None)
    );
    assert_eq!((r.hook(), r.provider(), r.event()), (None, None, None));
    assert_eq!(r.header(), Header::Opaque);
    assert_eq!(r.payload(), &r.bytes()[8..]);
    assert_eq!(r.identity(), nothing());
}

#[test]
fn shortest_records_at_the_end_of_a_buffer_are_read() {
    let shortest = [
        message(MESSAGE, 0, 0, b""),
        opaque(0xc0ee, &[0; 4]),
        perfinfo(false, 0x0f2e, 1001, None, &[], b""),
    ];
    for last in shortest {
        // Followed by filler, and at the end of the buffer.
        let before = system(
            true,
            0x0301,
            1000,
            &vec![0; 0x1000 - 0x48 - 0x20 - last.len()],
        );
        for records in [
            [before, last.clone()],
            [system(true, 0x0301, 1000, b""), last.clone()],
        ] {
            let bytes = File::new(0x1000).buffer(0, &records).bytes();
            let read = crate::common::reading::sound(&bytes);
            assert_eq!(read.last().map(|r| &r.bytes), Some(&last));
            assert_eq!(read.len(), 3);
        }
        let bytes = File::new(0x1000)
            .buffer(0, std::slice::from_ref(&last))
            .bytes();
        assert_eq!(crate::common::reading::sound(&bytes).len(), 2, "on its own");
    }
}

#[test]
fn longest_records_are_read() {
    with_record(&event(true, 1, 2000, &vec![1; 0xffff - 0x50]), |r| {
        assert_eq!(r.payload().len(), 0xffff - 0x50);
    });
    with_record(&system(true, 0x0301, 2000, &vec![1; 0xffff - 0x20]), |r| {
        assert_eq!(r.payload().len(), 0xffff - 0x20);
    });
}

/// Two bits and the third byte determine the kind; the other bits of the marker's high byte have no
/// meaning that is known, and those who read by the published masks ignore them.
#[test]
fn unused_bits_of_the_marker_are_ignored_for_known_kinds() {
    let cases = [
        (system(false, 0x0301, 2000, b"p"), RecordKind::SYSTEM32),
        (compact(true, 0x0301, 2000, b"p"), RecordKind::COMPACT64),
        (
            perfinfo(true, 0x0f2e, 2000, None, &[], b"p"),
            RecordKind::PERFINFO64,
        ),
        (full(true, 1, 2000, b"p"), RecordKind::FULL64),
        (instance(false, 1, 2000, b"p"), RecordKind::INSTANCE32),
        (event(true, 1, 2000, b"p"), RecordKind::EVENT64),
    ];
    for (record, kind) in cases {
        for spare in 0..64u8 {
            let mut record = record.clone();
            record[3] = 0xc0 | spare;
            with_record(&record, |r| {
                assert_eq!(
                    (r.kind(), r.timestamp().get(), r.payload()),
                    (kind, 2000, &b"p"[..])
                );
            });
        }
    }
}
