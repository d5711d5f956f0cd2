//! Scrubs real traces: addresses resolve and events decode as before, without any secret.

use std::collections::BTreeMap;

use etl_analysis::MachineBuilder;
use etl_analysis::address::Tallies;
use etl_analysis::files::Timeline;
use etl_format::read::{Options, Order, Record, Trace};
use etl_format::rewrite::repack::Repacker;
use etl_schema::OutType;
use etl_schema::decode::Value;
use etl_test_support::{needs, trace};
use etl_tools::scrub::{Lengths, Mask, Policy, Scrubber, Summary};

fn for_each(file: &[u8], mut f: impl FnMut(&Record<'_>)) {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        f(&record);
    }
}

/// The coverage of a trace by process.
fn resolved(file: &[u8]) -> BTreeMap<u32, Tallies> {
    let trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut builder = MachineBuilder::new(Timeline::new(vec![trace.clock()]));
    for_each(file, |record| builder.record(record, 0, &mut ()));
    builder
        .build()
        .processes()
        .iter()
        .map(|p| (p.pid().get(), p.tallies()))
        .collect()
}

/// Every event: timestamp, header without size, and fields. Texts, SIDs and IP addresses are left
/// out.
fn described(file: &[u8]) -> Vec<(i64, String)> {
    let mut trace = etl_events::from_bytes(file).unwrap();
    let mut events = trace.events().without_names().with_stale_records();
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let record = event.record();
        let mut line = format!("{:?}", record.identity());
        if let Some(mut fields) = event.fields() {
            for (field, value) in fields.by_ref() {
                line.push_str(&field.name);
                match value {
                    Value::Utf16(_) | Value::Ansi(_) | Value::Utf8(_) => {}
                    // Scrubbing replaces accounts and computers.
                    Value::Sid(_)
                    | Value::Ipv4(_)
                    | Value::Ipv6(_)
                    | Value::Array(_)
                    | Value::Struct(_) => line.push('*'),
                    Value::Binary(_) if field.out == OutType::SocketAddress => line.push('*'),
                    other => line.push_str(&format!("{other:?}")),
                }
            }
            let note = fields.note();
            line.push_str(&format!(" {} {}", note.missing, note.trailing.len()));
        }
        // A relogger changes some fields of the header event.
        if record.hook() != Some(0) {
            all.push((record.timestamp().get(), line));
        }
    }
    all
}

/// Whether the buffers of a trace contain a text, in any case.
fn holds(file: &[u8], text: &str) -> bool {
    let mut plain = Vec::new();
    Repacker::decompress().run(file, &mut plain).unwrap();
    plain.make_ascii_lowercase();
    let narrow = text.to_ascii_lowercase().into_bytes();
    let wide: Vec<u8> = narrow.iter().flat_map(|b| [*b, 0]).collect();
    let stands = |needle: &[u8]| plain.windows(needle.len()).any(|window| window == needle);
    stands(&narrow) || stands(&wide)
}

fn scrubbed(file: &[u8], lengths: Lengths, secrets: &[&str]) -> (Vec<u8>, Summary) {
    let scrubber = Scrubber::new(Mask::new(b"salt"))
        .policy(Policy::strict())
        .secrets(secrets.iter().copied())
        .lengths(lengths);
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let finished = scrubber.run(&mut trace, Vec::new()).unwrap();
    let out = finished.output;
    let summary = finished.report;
    (out, summary)
}

fn keeps_its_meaning(name: &str, secrets: &[&str], kept: u64) {
    let path = trace(name);
    let file = std::fs::read(path).unwrap();
    let (addresses, events) = (resolved(&file), described(&file));
    for secret in secrets {
        assert!(holds(&file, secret), "{secret} is not in {name}");
    }
    for lengths in [Lengths::Keep, Lengths::Free] {
        let (out, summary) = scrubbed(&file, lengths, secrets);
        assert_eq!(resolved(&out), addresses, "{name} {lengths:?}");
        let after = described(&out);
        assert_eq!(after.len(), events.len());
        for (before, after) in events.iter().zip(&after) {
            assert_eq!(before, after, "{name} {lengths:?}");
        }
        for secret in secrets {
            assert!(
                !holds(&out, secret),
                "{secret} survived in {name}, {lengths:?}"
            );
        }
        assert_eq!(summary.left, 0);
        assert!(summary.changed > 0 && summary.secrets.iter().all(|count| *count > 0));
        if lengths == Lengths::Free {
            assert_eq!(
                summary.lengths_kept, kept,
                "{name}: records that kept their lengths"
            );
        }
    }
}

#[needs(traces, time)]
#[test]
fn scrub_keeps_the_meaning_of_a_merged_trace() {
    keeps_its_meaning("perfview/net.4.5.2.x64.etl", &["mscorlib", "WriteLine"], 0);
}

#[needs(traces)]
#[test]
fn scrub_keeps_the_meaning_of_a_kernel_trace() {
    keeps_its_meaning("tx/Process.etl", &["devenv", "GEORGIS3"], 0);
}

#[needs(traces)]
#[test]
fn scrub_keeps_the_meaning_of_self_describing_events() {
    keeps_its_meaning("etl-parser/AMSITrace.etl", &["powershell"], 0);
}
