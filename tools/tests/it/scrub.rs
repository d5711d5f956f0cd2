//! Scrubbed traces: private data is replaced, other bytes stay.

use crate::common::{Made, header, open, trace, trace_of};
use etl_format::Guid;
use etl_format::read::{Order, Record};
use etl_tools::scrub::{Action, Category, Lengths, Mask, Policy, Scrubber, Summary};
use proptest::prelude::*;

fn keeping(policy: Policy, secrets: &[&str]) -> Scrubber<'static> {
    Scrubber::new(Mask::new(b"salt"))
        .policy(policy)
        .secrets(secrets.iter().copied())
}

fn free(policy: Policy, secrets: &[&str]) -> Scrubber<'static> {
    keeping(policy, secrets).lengths(Lengths::Free)
}

/// The fields of every event that has a schema, as text; all of its payload is fields.
fn fields(file: &[u8]) -> Vec<Vec<(String, String)>> {
    let mut trace = etl_events::from_bytes(file).unwrap();
    let mut events = trace.events().without_names();
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        // The header event has fields of the session.
        if event.header().hook == Some(0) {
            continue;
        }
        let Some(mut fields) = event.fields() else {
            continue;
        };
        let mut texts = Vec::new();
        for (field, value) in fields.by_ref() {
            texts.push((field.name.to_string(), text_of(&value)));
        }
        assert!(fields.note().is_exact(), "{}", event.name());
        all.push(texts);
    }
    all
}

fn text_of(value: &etl_schema::decode::Value<'_>) -> String {
    match value {
        etl_schema::decode::Value::Utf16(text) => text.to_string(),
        etl_schema::decode::Value::Ansi(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

/// The value of a field by its name.
fn named<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    &fields.iter().find(|(n, _)| n == name).unwrap().1
}

fn scrubbed(file: &[u8], scrubber: Scrubber<'_>) -> (Vec<u8>, Summary) {
    let finished = scrubber.run(&mut open(file), Vec::new()).unwrap();
    (finished.output, finished.report)
}

fn records<T>(file: &[u8], mut f: impl FnMut(&Record<'_>) -> T) -> Vec<T> {
    let mut trace = open(file);
    let mut records = trace.records(Order::Time).unwrap();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        all.push(f(&record));
    }
    all.split_off(1)
}

fn payloads(file: &[u8]) -> Vec<Vec<u8>> {
    records(file, |r| r.payload().to_vec())
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn wide_z(text: &str) -> Vec<u8> {
    wide(&format!("{text}\0"))
}

fn from_wide(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .chunks(2)
        .map(|u| u16::from_le_bytes([u[0], u[1]]))
        .collect();
    String::from_utf16(&units).unwrap()
}

/// Process start of the kernel, version 4: the user is
/// S-1-5-21-1111111111-2222222222-3333333333-1001.
fn process(name: &str, command_line: &str) -> Made {
    let mut payload = Vec::new();
    payload.extend(0xffff_8000_1234_0000u64.to_le_bytes());
    for word in [100u32, 4, 1, 0] {
        payload.extend(word.to_le_bytes());
    }
    payload.extend(0x1000u64.to_le_bytes());
    payload.extend(0u32.to_le_bytes());
    payload.extend([1; 16]);
    payload.extend([1, 5, 0, 0, 0, 0, 0, 5]);
    for part in [21u32, 1_111_111_111, 2_222_222_222, 3_333_333_333, 1_001] {
        payload.extend(part.to_le_bytes());
    }
    payload.extend(name.as_bytes());
    payload.push(0);
    payload.extend(wide_z(command_line));
    payload.extend([0; 4]);
    Made::kernel(2_000, 0x0301, &payload)
}

/// The record as version 4, which the builder's System record does not make.
fn version_4(file: Vec<u8>) -> Vec<u8> {
    let mut file = file;
    let at = file
        .windows(8)
        .position(|w| w[2..4] == [0x02, 0xc0] && w[6..8] == [0x01, 0x03]);
    file[at.unwrap()] = 4;
    file
}

#[test]
fn usual_policy_removes_user_and_arguments_of_a_process() {
    let line = "\"C:\\Users\\Jane Doe\\tool.exe\" --key 12345 /u:jane";
    let file = version_4(trace(&[
        process("tool.exe", line),
        Made::new(
            2_001,
            1,
            &wide_z("S-1-5-21-1111111111-2222222222-3333333333-1001"),
        ),
        Made::new(
            2_002,
            2,
            b"C:\\Users\\JANE DOE\\AppData by jane doe, not jane doering",
        ),
    ]));
    let (out, summary) = scrubbed(&file, keeping(Policy::usual(), &[]));
    let (before, after) = (payloads(&file), payloads(&out));
    assert!(before.iter().zip(&after).all(|(a, b)| a.len() == b.len()));
    let text = from_wide(&after[0][after[0].len() - 4 - wide_z(line).len()..after[0].len() - 6]);
    assert!(text.starts_with("\"C:\\Users\\"), "{text}");
    assert!(text[18..].starts_with("\\tool.exe\" "), "{text}");
    for private in ["Jane", "key", "12345", "jane"] {
        assert!(!text.contains(private), "{text}");
    }
    // The same person everywhere, in any case and any form; other words stay.
    let owner = &text[10..18];
    let third = String::from_utf8(after[2].clone()).unwrap();
    assert_eq!(
        third,
        format!("C:\\Users\\{owner}\\AppData by {owner}, not jane doering")
    );
    // The account in binary and as text is still one account.
    let sid_at = 8 + 16 + 8 + 4 + 16 + 8;
    let parts: Vec<String> = after[0][sid_at..sid_at + 20]
        .chunks(4)
        .map(|w| u32::from_le_bytes(w.try_into().unwrap()).to_string())
        .collect();
    assert_eq!(from_wide(&after[1]), format!("S-1-5-{}\0", parts.join("-")));
    assert!(!from_wide(&after[1]).contains("1111111111"));
    assert!(summary.categories[&Category::CommandLines] == 1);
    assert_eq!(summary.fields.get("CommandLine"), Some(&1));
    assert_eq!((summary.records, summary.left), (3, 0));
    // Equal salts write equal bytes, another salt other bytes.
    assert_eq!(scrubbed(&file, keeping(Policy::usual(), &[])).0, out);
    let other = Scrubber::new(Mask::new(b"pepper"));
    assert_ne!(scrubbed(&file, other).0, out);
}

#[test]
fn field_policy_hashes_drops_or_keeps() {
    // GCStart of the CLR, version 2, and an exception of it.
    let clr: Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
    let gc: Vec<u8> = [7u32, 1, 0, 0]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .chain([0; 10])
        .collect();
    let thrown = [wide_z("My.Exception"), wide_z("it is Jane's"), vec![0; 16]].concat();
    let file = trace(&[
        Made {
            provider: clr,
            version: 2,
            ..Made::new(2_000, 1, &gc)
        },
        Made {
            provider: clr,
            version: 1,
            ..Made::new(2_001, 80, &thrown)
        },
    ]);
    let policy = Policy::none()
        .with_field("count", Action::Hash)
        .with_field("Depth", Action::Drop)
        .with_field("ExceptionMessage", Action::Drop);
    let (out, summary) = scrubbed(&file, keeping(policy, &[]));
    let after = payloads(&out);
    let word = |at: usize| u32::from_le_bytes(after[0][at..at + 4].try_into().unwrap());
    assert!(word(0) != 7 && word(4) == 0);
    assert_eq!(after[0][8..], gc[8..]);
    let kept = wide_z("My.Exception");
    assert_eq!(after[1][..kept.len()], kept);
    assert_eq!(
        from_wide(&after[1][kept.len()..kept.len() + 24]),
        "************"
    );
    assert_eq!(summary.fields.len(), 3);
    // Nothing is asked for: nothing changes.
    let (same, summary) = scrubbed(&file, keeping(Policy::none(), &[]));
    assert_eq!((payloads(&same), summary.changed), (payloads(&file), 0));
}

#[test]
fn free_lengths_write_tokens() {
    let line = "\"C:\\Users\\Jane Doe\\tool.exe\" --key 12345 /u:jane";
    let clr: Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
    let thrown = |text: &str| {
        let payload = [wide_z("My.Exception"), wide_z(text), vec![9; 16]].concat();
        Made {
            provider: clr,
            version: 1,
            ..Made::new(2_003, 80, &payload)
        }
    };
    let file = version_4(trace(&[
        process("tool.exe", line),
        thrown("C:\\Users\\Jane Doe\\a is not Janes, and Project X is jane doe's"),
        thrown(""),
        Made::new(2_005, 2, b"C:\\Users\\JANE DOE\\AppData"),
    ]));
    let before = fields(&file);
    let (out, summary) = scrubbed(&file, free(Policy::usual(), &["project x"]));
    let after = fields(&out);
    assert_eq!(before.len(), after.len());
    // A token for the person, one for the arguments; the program stays.
    let command = named(&after[0], "CommandLine");
    let owner = &command[10..18];
    assert!(
        owner.chars().all(|c| c.is_ascii_alphanumeric()),
        "{command}"
    );
    assert_eq!(&command[..28], format!("\"C:\\Users\\{owner}\\tool.exe\""));
    assert_eq!(command.len(), 28 + 1 + 8, "{command}");
    assert_eq!(named(&after[0], "ImageFileName"), "tool.exe");
    let message = named(&after[1], "ExceptionMessage");
    let rest = message
        .strip_prefix(&format!("C:\\Users\\{owner}\\a is not Janes, and "))
        .unwrap();
    assert_eq!(&rest[8..], format!(" is {owner}'s"));
    assert_eq!(
        named(&after[2], "ExceptionMessage"),
        "",
        "nothing stays nothing"
    );
    // All else is as it was, and what has no schema keeps its length.
    for (before, after) in before.iter().zip(&after) {
        let others = |fields: &[(String, String)]| -> Vec<(String, String)> {
            let text = ["CommandLine", "ExceptionMessage", "UserSID"];
            fields
                .iter()
                .filter(|(n, _)| !text.contains(&n.as_str()))
                .cloned()
                .collect()
        };
        assert_eq!(others(before), others(after));
    }
    assert_eq!(payloads(&out)[3].len(), payloads(&file)[3].len());
    assert_eq!(
        (summary.lengths_kept, summary.undecoded, summary.left),
        (0, 1, 0)
    );
    assert_eq!(summary.secrets, [1]);
    // Equal salts write equal tokens.
    assert_eq!(
        scrubbed(&file, free(Policy::usual(), &["project x"])).0,
        out
    );

    // What is dropped becomes empty; what cannot, nothing.
    let policy = Policy::none()
        .with_field("ExceptionMessage", Action::Drop)
        .with_field("ExceptionHRESULT", Action::Drop)
        .with(Category::CommandLines, Action::Drop)
        .with(Category::Sids, Action::Drop);
    let (out, summary) = scrubbed(&file, free(policy, &[]));
    let dropped = fields(&out);
    assert_eq!(named(&dropped[1], "ExceptionMessage"), "");
    assert_eq!(named(&dropped[1], "ExceptionType"), "My.Exception");
    assert_eq!(named(&dropped[0], "CommandLine"), &line[..28]);
    assert_eq!(named(&dropped[0], "UserSID"), "Null");
    assert_eq!(summary.lengths_kept, 0);
    assert!(out.len() <= file.len());
}

/// A record that would grow beyond its buffer keeps its lengths, and loses the texts all the same.
#[test]
fn record_that_cannot_grow_keeps_its_length() {
    let clr: Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
    let text = "bob ".repeat(440);
    let payload = [wide_z("My.Exception"), wide_z(&text), vec![9; 16]].concat();
    let file = trace(&[Made {
        provider: clr,
        version: 1,
        ..Made::new(2_003, 80, &payload)
    }]);
    let (out, summary) = scrubbed(&file, free(Policy::none(), &["bob"]));
    assert_eq!(
        (summary.lengths_kept, summary.left, summary.secrets),
        (1, 0, vec![440])
    );
    assert_eq!(payloads(&out)[0].len(), payload.len());
    assert!(!holds(&out, "bob"));
}

#[test]
fn addresses_move_together() {
    let sample = |ip: u64| [ip.to_le_bytes().to_vec(), vec![101, 0, 0, 0, 1, 0, 0, 0]].concat();
    let image = |base: u64| {
        [
            base.to_le_bytes().to_vec(),
            0x1_0000u64.to_le_bytes().to_vec(),
            vec![0; 40],
        ]
        .concat()
    };
    let base = 0x7ff6_1234_0000u64;
    let mut with_stack = Made::new(2_003, 1, b"x");
    with_stack.stack = vec![base + 0x30, 0xffff_8000_0001_0000];
    let file = trace(&[
        Made::kernel(2_001, 0x1403, &image(base)),
        Made::kernel(2_002, 0x0f2e, &sample(base + 0x20)),
        with_stack,
    ]);
    let policy = Policy::none().with(Category::Addresses, Action::Hash);
    let (out, _) = scrubbed(&file, keeping(policy, &[]));
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let after = payloads(&out);
    let moved = word(&after[0]);
    assert!(moved != base && moved % 0x1_0000 == 0);
    assert_eq!(word(&after[0][8..]), 0x1_0000);
    assert_eq!(word(&after[1]), moved + 0x20);
    let stacks = records(&out, |r| {
        r.extended().find_map(|item| match item {
            etl_format::read::ExtendedItem::Stack(s) => Some(s.addresses().collect::<Vec<_>>()),
            _ => None,
        })
    });
    let stack = stacks[2].clone().unwrap();
    assert_eq!(stack[0], moved + 0x30);
    assert!(stack[1] >= 0xffff_8000_0000_0000 && stack[1] != 0xffff_8000_0001_0000);
}

#[test]
fn secrets_leave_the_header_and_layout_stays() {
    let mut named = header();
    named.log_file_name = "C:\\traces\\Contoso-7.etl".encode_utf16().collect();
    named.logger_name = "for CONTOSO".encode_utf16().collect();
    let file = trace_of(named, &[Made::new(2_000, 1, b"at contoso")]);
    let (out, summary) = scrubbed(&file, keeping(Policy::none(), &["Contoso"]));
    assert!(!holds(&out, "contoso"));
    assert_eq!(
        open(&out).header().log_file_name.len(),
        "C:\\traces\\Contoso-7.etl".len()
    );
    assert_eq!((summary.secrets, summary.left), (vec![3], 0));
    // Letters of the size and kind fields cannot go: that is said, and the record stays whole.
    let (out, summary) = scrubbed(&file, keeping(Policy::none(), &["\u{13}\u{c0}"]));
    assert_eq!(payloads(&out).len(), 1);
    assert!(summary.left > 0);
}

/// Whether a text is anywhere in bytes: a naive search.
fn holds(bytes: &[u8], text: &str) -> bool {
    let lower = |bytes: &[u8]| bytes.iter().map(u8::to_ascii_lowercase).collect::<Vec<_>>();
    let bytes = lower(bytes);
    [lower(text.as_bytes()), lower(&wide(text))]
        .iter()
        .any(|needle| bytes.windows(needle.len()).any(|w| w == needle))
}

/// Pieces that together spell secrets across fields, items, and records, in any coding and case.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop::sample::select(vec![
        "secret", "SECRET", "sec", "ret", "Xylo", "lophone", "s",
    ]);
    (whole, 0u8..4, 0usize..3).prop_map(|(text, coding, gap)| {
        let mut bytes = match coding {
            0 | 1 => text.as_bytes().to_vec(),
            2 => wide(text),
            _ => wide(&text.to_uppercase()),
        };
        bytes.extend(&[b'.', 0, 1][..gap]);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_listed_text_cannot_survive(
        pieces in proptest::collection::vec(proptest::collection::vec(piece(), 0..6), 1..12),
        ids in proptest::collection::vec(any::<u32>(), 12),
    ) {
        let events: Vec<_> = pieces.iter().enumerate().map(|(number, pieces)| {
            let payload = pieces.concat();
            let mut made = Made::new(2_000 + number as i64, 1, &payload);
            // Headers can also spell a text.
            if ids[number] % 2 == 0 {
                made.process = u32::from_le_bytes(*b"xylo");
                made.provider = Guid::from_bytes(*b"my secret secret");
            }
            made.stack = pieces.iter().take(ids[number] as usize % 3).map(|_| {
                u64::from_le_bytes(*b"asecretz")
            }).collect();
            // An event with a schema: fields can spell things as well.
            if ids[number] % 5 == 0 {
                let text: String = payload.iter().filter(|b| b.is_ascii_alphabetic())
                    .map(|b| char::from(*b)).collect();
                let (first, second) = text.split_at(text.len() / 2);
                made.payload = [wide_z(first), wide_z(second), vec![9; 16]].concat();
                made.provider = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
                (made.id, made.version) = (80, 1);
            }
            made
        }).collect();
        let file = trace(&events);
        let secrets = ["Secret", "XYLOPHONE", "sret"];
        let (freed, summary) = scrubbed(&file, free(Policy::usual(), &secrets));
        prop_assert_eq!((summary.left, summary.lengths_kept), (0, 0));
        let (out, summary) = scrubbed(&file, keeping(Policy::usual(), &secrets));
        prop_assert_eq!(summary.left, 0);
        for secret in secrets {
            prop_assert!(!holds(&out, secret), "{} survived", secret);
            prop_assert!(!holds(&freed, secret), "{} survived with free lengths", secret);
        }
        prop_assert_eq!(fields(&freed).len(), fields(&file).len());
        let timestamps = |file: &[u8]| records(file, |r| (r.timestamp(), r.process_id(), r.kind()));
        prop_assert_eq!(timestamps(&freed).len(), timestamps(&file).len());
        // The trace is as it was but for the texts.
        let lens = |file: &[u8]| records(file, |r| (r.timestamp(), r.bytes().len(), r.payload().len()));
        prop_assert_eq!(lens(&file), lens(&out));
    }

    #[test]
    fn other_bytes_stay(payload in proptest::collection::vec(0u8..0x60, 0..80)) {
        let file = trace(&[Made::new(2_000, 1, &payload)]);
        let (out, _) = scrubbed(&file, keeping(Policy::none(), &["secret"]));
        prop_assert_eq!(payloads(&out), [payload]);
    }
}
