//! Recordings that lack what the kernel's session must have logged.

use etl_format::FileHeader;
use etl_format::constants::LogFileMode;
use etl_format::read::{Options, Trace};
use etl_format::write::Session;
use etl_format::write::record::Raw;
use etl_test_support::root;
use etl_verify::{Severity, Verifier};

use super::base::{files_of, judge};
use super::edit::{Rec, records, write};

/// The class of events about images.
const IMAGES: &str = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518";

/// A recording of a kernel session and a CLR session in one file, without findings.
fn sound(edits: &str) -> Vec<u8> {
    let parts = root().join("corpus/parts/rules-sound.kdl");
    let parts = std::fs::read_to_string(parts).unwrap();
    let script = format!("scenario \"lists\" seed=7\n{parts}\n{edits}");
    files_of("lists", &script).remove("clr.etl").unwrap()
}

/// Messages of findings of `kernel.not-listed` above a note.
fn found(file: &[u8]) -> Vec<String> {
    let report = judge(&[file.to_vec()], Verifier::new());
    let findings = report
        .findings
        .iter()
        .filter(|finding| finding.rule == "kernel.not-listed" && finding.severity > Severity::Note);
    findings.map(|finding| finding.message.clone()).collect()
}

/// The kind of an event of the kernel, if a record is one.
fn hook(record: &Rec) -> Option<u16> {
    let is_system = matches!(record.bytes[2], 1..=4 | 0x10 | 0x11);
    is_system.then(|| u16::from_le_bytes([record.bytes[6], record.bytes[7]]))
}

#[test]
fn missing_images_of_a_process_are_reported() {
    assert_eq!(found(&sound("")), Vec::<String>::new());
    let edits = format!(
        "edit \"clr.etl\" {{
            delete \"DCStart\" provider=\"{IMAGES}\" with=\"ProcessId\" is=200
            delete \"DCEnd\" provider=\"{IMAGES}\" with=\"ProcessId\" is=200
        }}"
    );
    let messages = found(&sound(&edits));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("no event is about an image of it"));
}

#[test]
fn missing_events_of_all_processes_are_reported() {
    let file = sound("");
    let mut left = records(&file);
    left.retain(|record| !matches!(hook(record), Some(0x0300..=0x030b)) || is_image(record));
    assert!(left.len() < records(&file).len());
    let messages = found(&write(&file, &left));
    let all = "no event is about a process";
    assert!(
        messages.iter().any(|message| message.contains(all)),
        "{messages:?}"
    );
}

/// Whether a record is about an image that is loaded: its hook is among the hooks of processes.
fn is_image(record: &Rec) -> bool {
    hook(record) == Some(0x030a)
}

#[test]
fn missing_beginning_of_the_kernel_session_is_reported() {
    let file = sound("");
    let all = records(&file);
    // The lists of processes, threads and images.
    let is_list = |record: &Rec| matches!(hook(record), Some(0x0303 | 0x0503 | 0x1403));
    let last = all.iter().rposition(is_list).unwrap();
    // The writer numbers the buffers, and its header counts them.
    let messages = found(&write(&file, &all[last + 1..]));
    let start = "the beginning of the session is missing";
    assert!(
        messages.iter().any(|message| message.contains(start)),
        "{messages:?}"
    );
}

/// A file with this mode and largest size in MiB, with the records of another file.
fn with_mode(file: &[u8], mode: LogFileMode, maximum_file_size: u32) -> Vec<u8> {
    let trace = Trace::open(file, &Options::default()).unwrap();
    let header = FileHeader {
        mode,
        maximum_file_size,
        buffer_size: 4 << 10,
        ..trace.header().clone()
    };
    let mut session = Session::in_memory(header).unwrap();
    for record in records(file) {
        let raw = Raw {
            bytes: &record.bytes[..usize::from(record.size())],
            timestamp: Some(record.timestamp().into()),
        };
        session.write(record.processor, &raw).unwrap();
    }
    session.finish().unwrap()
}

#[test]
fn circular_flag_hides_no_missing_buffers() {
    let whole = with_mode(&sound(""), LogFileMode::CIRCULAR, 100);
    let size = 4 << 10;
    let rules = |file: &[u8]| {
        let report = judge(&[file.to_vec()], Verifier::new());
        let rules = report.findings.iter().map(|finding| finding.rule);
        rules
            .filter(|rule| rule.starts_with("file."))
            .collect::<Vec<_>>()
    };
    assert_eq!(rules(&whole), Vec::<&str>::new());
    let mut cut = whole;
    cut.drain(size..16 * size);
    let count = (cut.len() / size) as u32;
    cut[0x48 + 0x44..0x48 + 0x48].copy_from_slice(&count.to_le_bytes());
    assert_eq!(rules(&cut), ["file.sequence-gap"]);
}
