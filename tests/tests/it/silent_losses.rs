//! Damages real traces: every command says so, and none ends with exit code 0 and without a word
//! when a record is missing from its output.
//!
//! Damage is made and records are counted by `etl_tests::bytes`, which shares no code with the
//! reader.

use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use etl_test_support::{needs, trace};
use etl_tests::bytes::{Image, change};
use etlkit::run_captured;
use proptest::prelude::*;

/// Bytes of a buffer's header.
const HEADER: usize = 0x48;
/// Buffers of the damaged traces.
const BUFFERS: usize = 10;

/// A sound trace, and where its buffers are.
struct Base {
    name: &'static str,
    bytes: Vec<u8>,
    buffers: Vec<Range<usize>>,
    /// The middle record of each buffer; of a compressed one, the middle of its bytes.
    middles: Vec<usize>,
    is_packed: bool,
    /// Whether a kernel wrote it: it does not write buffers that stay empty.
    is_kernel: bool,
}

impl Base {
    fn new(name: &'static str, bytes: Vec<u8>) -> Self {
        let mut buffers = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let size = number(&bytes, at) as usize;
            buffers.push(at..at + size);
            at += size;
        }
        let image = Image::new(&bytes);
        let is_packed = buffers.iter().any(|b| bytes[b.start + 0x34] & 0x40 != 0);
        let middles = std::iter::zip(&buffers, &image.buffers)
            .map(|(place, buffer)| {
                let records = &image.records[buffer.records.clone()];
                let middle = records[records.len() / 2].place.start;
                let within = if is_packed {
                    (place.len() - HEADER) / 2
                } else {
                    middle
                };
                place.start + HEADER + within
            })
            .collect();
        let is_kernel = number(&bytes, HEADER + 0x40) & 0x1_0000 == 0;
        Base {
            name,
            bytes,
            buffers,
            middles,
            is_packed,
            is_kernel,
        }
    }

    /// The first buffers of a merged trace, with numbers of their own and a header that counts
    /// them.
    fn of_merged(name: &'static str, file: &[u8]) -> Self {
        let whole = Base::new(name, file.to_vec());
        let mut bytes = file[..whole.buffers[BUFFERS].start].to_vec();
        for (index, place) in whole.buffers[..BUFFERS].iter().enumerate() {
            bytes[place.start + 0x18..place.start + 0x20]
                .copy_from_slice(&(index as u64).to_le_bytes());
        }
        set(&mut bytes, HEADER + 0x44, BUFFERS as u32);
        Base::new(name, bytes)
    }

    /// The bytes in use of a buffer.
    fn used(&self, buffer: usize) -> Range<usize> {
        let place = &self.buffers[buffer];
        let fill = number(&self.bytes, place.start + 0x30) as usize;
        let end = if self.is_packed {
            place.end
        } else {
            place.start + fill
        };
        place.start + HEADER..end
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn bases() -> Vec<Base> {
    let packed = std::fs::read(trace("perfview/net.4.5.2.x64.etl")).unwrap();
    let plain = change(&Image::new(&packed), "");
    let session = std::fs::read(trace("tx/HTTP_Server.etl")).unwrap();
    vec![
        Base::of_merged("merged", &plain),
        Base::of_merged("merged and compressed", &packed),
        Base::new("session", session),
    ]
}

/// What commands say of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// A line on standard error, and exit code 1, or 2 where a command reads sound traces only.
    Damage,
    /// A line on standard error, and exit code 0.
    Note,
    /// Nothing: all fields of the file agree.
    Nothing,
}

/// A class of damage, in words; whether it is done to compressed traces too; what is said of
/// merged and of kernel-written traces. The number is that of the damaged buffer.
type Class = (
    &'static str,
    bool,
    Said,
    Said,
    fn(&Base, usize, &mut Vec<u8>),
);

/// The buffer that is damaged.
const ONE: usize = 3;

const CLASSES: &[Class] = &[
    (
        "filler from a record to the fill",
        false,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            bytes[base.middles[one]..base.used(one).end].fill(0xff);
        },
    ),
    (
        "zeros from a record to the fill",
        false,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            bytes[base.middles[one]..base.used(one).end].fill(0);
        },
    ),
    (
        "zeros in place of all records",
        false,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            bytes[base.used(one)].fill(0);
        },
    ),
    (
        "a zeroed header of a record",
        false,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            bytes[base.middles[one]..base.middles[one] + 8].fill(0);
        },
    ),
    (
        "a fill that is too small",
        false,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            let start = base.buffers[one].start;
            let fill = (base.middles[one] - start) as u32;
            set(bytes, start + 4, fill);
            set(bytes, start + 0x30, fill);
        },
    ),
    (
        "a fill beyond the buffer",
        true,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            let start = base.buffers[one].start;
            set(bytes, start + 4, 0x0200_0000);
            set(bytes, start + 0x30, 0x0200_0000);
        },
    ),
    (
        "an offset that contradicts the saved one",
        true,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            let place = base.buffers[one].start + 0x30;
            let fill = number(bytes, place);
            set(bytes, place, fill - 0x40);
        },
    ),
    (
        "a hole of 512 bytes",
        true,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            let middle = base.middles[one].min(base.used(one).end - 0x200);
            bytes[middle..middle + 0x200].fill(0);
        },
    ),
    (
        "a zeroed header of a buffer",
        true,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            let start = base.buffers[one].start;
            bytes[start..start + HEADER].fill(0);
        },
    ),
    (
        "a file that ends between buffers",
        true,
        Said::Damage,
        Said::Damage,
        |base, _, bytes| {
            bytes.truncate(base.buffers[base.buffers.len() - 1].start);
        },
    ),
    (
        "a file that ends inside a buffer",
        true,
        Said::Damage,
        Said::Damage,
        |base, _, bytes| {
            bytes.truncate(base.buffers[base.buffers.len() - 1].end - 0x100);
        },
    ),
    (
        "a removed buffer",
        true,
        Said::Damage,
        Said::Damage,
        |base, one, bytes| {
            bytes.drain(base.buffers[one].clone());
        },
    ),
    (
        "a removed buffer that is not counted",
        true,
        Said::Damage,
        Said::Note,
        |base, one, bytes| {
            bytes.drain(base.buffers[one].clone());
            let count = number(bytes, HEADER + 0x44);
            set(bytes, HEADER + 0x44, count - 1);
        },
    ),
    (
        "lost events in the header",
        true,
        Said::Note,
        Said::Note,
        |_, _, bytes| {
            set(bytes, HEADER + 0x50, 5);
        },
    ),
    (
        "a removed last buffer that is not counted",
        true,
        Said::Nothing,
        Said::Nothing,
        |base, _, bytes| {
            bytes.truncate(base.buffers[base.buffers.len() - 1].start);
            let count = number(bytes, HEADER + 0x44);
            set(bytes, HEADER + 0x44, count - 1);
        },
    ),
];

/// Commands that read a trace, and those that write one.
const COMMANDS: &[(&[&str], bool)] = &[
    (&["info"], false),
    (&["dump", "--format", "jsonl"], false),
    (&["dump", "--format", "jsonl", "--file-order"], false),
    (&["dump", "--format", "jsonl", "--threads", "2"], false),
    (&["verify", "--no-config", "--format", "json"], false),
    (&["slice"], true),
    (&["slice", "--no-keep-state"], true),
    (&["scrub"], true),
    (&["merge", "--salvage"], true),
    (&["merge"], true),
    (&["repair"], true),
    (&["compress"], true),
    (&["decompress"], true),
];

/// What a command did with a trace.
struct Done {
    code: u8,
    /// Lines on standard error, without hints.
    lines: Vec<String>,
    /// Records in its output, if it has records.
    records: Option<usize>,
    /// Findings of `verify` about the file.
    findings: usize,
    /// The losses that `verify` reports of its output, if it wrote a trace.
    losses: Option<Vec<String>>,
}

/// Rules of the findings of `verify` about a file itself, with their severities.
fn findings(report: &str) -> Vec<(String, String)> {
    let report: serde_json::Value = serde_json::from_str(report).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    findings
        .iter()
        .map(|finding| (text(&finding["rule"]), text(&finding["severity"])))
        .filter(|(rule, _)| rule.starts_with("file."))
        .collect()
}

/// What `verify` says of a file is lost or damaged.
fn losses(file: &Path) -> Vec<String> {
    const RULES: [&str; 5] = [
        "file.damaged",
        "file.buffers-lost",
        "file.events-lost",
        "file.sequence-gap",
        "file.unclosed",
    ];
    let args = ["etlkit", "verify", "--no-config", "--format", "json"].map(OsString::from);
    let done = run_captured(args.into_iter().chain([file.into()]).collect::<Vec<_>>());
    let found = findings(&String::from_utf8(done.out).unwrap()).into_iter();
    let is_loss =
        |(rule, severity): &(String, String)| severity != "note" && RULES.contains(&rule.as_str());
    found.filter(is_loss).map(|(rule, _)| rule).collect()
}

impl Done {
    fn new(here: &Path, command: &[&str], writes: bool, bytes: &[u8]) -> Self {
        let (file, out) = (here.join("t.etl"), here.join("out.etl"));
        std::fs::write(&file, bytes).unwrap();
        let _ = std::fs::remove_file(&out);
        let mut args: Vec<OsString> = ["etlkit"]
            .iter()
            .chain(command)
            .map(OsString::from)
            .collect();
        args.push(file.into());
        if writes {
            args.extend(["-o".into(), out.clone().into_os_string()]);
        }
        let done = run_captured(args);
        let text = String::from_utf8(done.out).unwrap();
        let records = match (writes, command[0]) {
            // What is copied with its damage cannot be walked.
            (true, _) => std::fs::read(&out)
                .ok()
                .and_then(|file| std::panic::catch_unwind(|| Image::new(&file).records.len()).ok()),
            (false, "dump") => Some(text.lines().count()),
            (false, _) => None,
        };
        let errors = String::from_utf8(done.err).unwrap();
        let said = |line: &&str| !line.is_empty() && !line.starts_with("hint");
        Done {
            code: done.code,
            lines: errors.lines().filter(said).map(str::to_owned).collect(),
            records,
            findings: if command[0] == "verify" {
                findings(&text).len()
            } else {
                0
            },
            losses: (writes && out.exists()).then(|| losses(&out)),
        }
    }

    /// Whether it ended as if nothing were missing.
    fn is_silent(&self, sound: &Done) -> bool {
        self.code == sound.code && self.lines == sound.lines && self.findings <= sound.findings
    }
}

#[needs(traces, time)]
#[test]
fn every_command_says_what_every_damage_is() {
    let here = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for base in bases() {
        for &(command, writes) in COMMANDS {
            let sound = Done::new(here.path(), command, writes, &base.bytes);
            for (name, on_packed, merged, kernel, damage) in CLASSES {
                if base.is_packed && !on_packed {
                    continue;
                }
                let mut bytes = base.bytes.clone();
                damage(&base, ONE, &mut bytes);
                let done = Done::new(here.path(), command, writes, &bytes);
                let expected = if base.is_kernel { *kernel } else { *merged };
                let is_right = match expected {
                    Said::Nothing => true,
                    // Findings are what `verify` has to say.
                    _ if command[0] == "verify" => !done.is_silent(&sound),
                    Said::Damage => done.code > 0 && !done.lines.is_empty(),
                    Said::Note => done.code == 0 && done.lines.len() == sound.lines.len() + 1,
                };
                if !is_right {
                    let Done {
                        code,
                        lines,
                        records,
                        ..
                    } = done;
                    wrong.push(format!(
                        "{}, {name}, {}: exit code {code}, {lines:?}; {records:?} of {:?} records",
                        base.name,
                        command.join(" "),
                        sound.records,
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[needs(trace = "tx/HTTP_Server.etl")]
#[test]
fn a_cut_counts_each_buffer_that_is_not_whole_as_lost() {
    let whole = std::fs::read(trace("tx/HTTP_Server.etl")).unwrap();
    let size = number(&whole, 0) as usize;
    let buffers = whole.len() / size;
    let here = tempfile::tempdir().unwrap();
    for (damaged, kept, rest) in [
        (0, buffers - 4, 100),
        (0, buffers - 4, 0),
        (1, buffers - 3, 0),
        (1, buffers - 4, 100),
    ] {
        let mut bytes = whole[..kept * size + rest].to_vec();
        let middle = 5 * size + 500;
        bytes[middle..middle + damaged * 400].fill(0xa5);
        for command in ["repair", "slice", "scrub"] {
            Done::new(here.path(), &[command], true, &bytes);
            let out = std::fs::read(here.path().join("out.etl")).unwrap();
            let lost = number(&out, HEADER + 0x20 + 0x114);
            assert_eq!(
                lost as usize,
                damaged + buffers - kept,
                "{command}, {kept} and {rest}"
            );
        }
    }
}

/// Whether records are missing, and the command ended as if none were.
fn is_silent_loss(done: &Done, sound: &Done) -> bool {
    done.records < sound.records && done.is_silent(sound)
}

static BASES: LazyLock<Vec<Base>> = LazyLock::new(bases);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[needs(traces)]
    #[test]
    fn missing_records_are_never_silent(
        base in 0..3usize,
        buffer in 1..6usize,
        from in any::<prop::sample::Index>(),
        length in 8..0x1000usize,
        byte in prop_oneof![Just(0u8), Just(0xff), any::<u8>()],
        command in prop::sample::select(COMMANDS),
    ) {
        let here = tempfile::tempdir().unwrap();
        let (base, (command, writes)) = (&BASES[base], command);
        let used = base.used(buffer);
        let start = used.start + from.index(used.len()) / 8 * 8;
        let mut bytes = base.bytes.clone();
        bytes[start..(start + length).min(used.end)].fill(byte);
        let sound = Done::new(here.path(), command, writes, &base.bytes);
        let done = Done::new(here.path(), command, writes, &bytes);
        prop_assert!(
            !is_silent_loss(&done, &sound),
            "{}: {command:?}: {:?} of {:?} records", base.name, done.records, sound.records
        );
        // What is written says that something was lost before.
        prop_assert!(
            done.records >= sound.records || done.losses.is_none_or(|losses| !losses.is_empty()),
            "{}: {command:?}: nothing is said of the output", base.name
        );
    }

    #[needs(traces)]
    #[test]
    fn outputs_state_what_was_lost_before(
        base in 0..3usize,
        class in prop::sample::select(CLASSES),
        buffer in 1..BUFFERS - 1,
        command in prop::sample::select(COMMANDS),
    ) {
        let (base, (command, writes)) = (&BASES[base], command);
        let (name, on_packed, merged, kernel, damage) = class;
        let said = if base.is_kernel { kernel } else { merged };
        // Gaps in the numbers of the kernel are no loss: see docs/files.md.
        let is_known = said == Said::Damage || name == "lost events in the header";
        prop_assume!(writes && is_known && (on_packed || !base.is_packed));
        let here = tempfile::tempdir().unwrap();
        let mut bytes = base.bytes.clone();
        damage(base, buffer, &mut bytes);
        let done = Done::new(here.path(), command, writes, &bytes);
        prop_assert!(
            done.losses.is_none_or(|losses| !losses.is_empty()),
            "{}, {name}, buffer {buffer}: {command:?}: nothing is said of the output", base.name
        );
    }
}
