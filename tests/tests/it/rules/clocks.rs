//! Times of the header that contradict each other, changed byte by byte.

use etl_format::constants::FILETIME_PER_SECOND;
use etl_format::read::{Options, Trace};
use etl_format::{FileHeader, FileTime};
use etl_verify::Verifier;

use super::base::{files_of, judge, sound};

/// The trace with its boot time so many seconds after its start.
fn booted(seconds_after_start: i64) -> (Vec<u8>, i64) {
    let mut file = sound(7);
    let header = header(&file);
    let boot_time = header.start_time.get() + seconds_after_start * FILETIME_PER_SECOND;
    replace(&mut file, header.boot_time.get(), boot_time);
    (file, boot_time)
}

fn header(file: &[u8]) -> FileHeader {
    Trace::open(file, &Options::default())
        .unwrap()
        .header()
        .clone()
}

/// Replaces a time in the header.
fn replace(file: &mut [u8], before: i64, after: i64) {
    let at = file[..0x400]
        .windows(8)
        .position(|bytes| bytes == before.to_le_bytes())
        .unwrap();
    file[at..at + 8].copy_from_slice(&after.to_le_bytes());
}

#[test]
fn boot_time_is_not_after_the_start() {
    // The time of the machine may have been set a little.
    for (seconds, expected) in [(-5, 0), (30, 0), (3_600, 1)] {
        let (file, boot_time) = booted(seconds);
        let report = judge(&[file], Verifier::new());
        let found: Vec<_> = report
            .findings
            .iter()
            .filter(|f| f.rule == "file.clock")
            .collect();
        assert_eq!(found.len(), expected, "{seconds} {}", report.text());
        assert!(
            found
                .iter()
                .all(|f| f.message.contains(&FileTime::new(boot_time).to_string())),
            "{found:?}"
        );
    }
}

#[test]
fn files_on_one_counter_are_aligned_by_it_if_the_time_was_set() {
    let script = r#"
machine processors=2
process "App.exe" pid=100 threads=2 {
    clr "core" version="8.0.100" {
        assembly "Core" { module "C:\\App\\Core.dll" { methods 60 ready=4 } }
    }
    every "100ms" from="2.5s" until="4.5s" { jit 1 }
}
at "2s" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=5 } }
at "4s" { session "end" file="clr2.etl" { enable "rundown" keywords=0x138 level=5 } }
at "5s" { stop "end"; stop "clr" }
"#;
    let mut files = files_of("set", script);
    let files = ["clr1.etl", "clr2.etl"].map(|name| files.remove(name).unwrap());
    let rules = |files: &[Vec<u8>]| -> Vec<_> {
        let report = judge(files, Verifier::new());
        report
            .findings
            .iter()
            .map(|f| (f.rule, f.message.clone()))
            .collect()
    };
    assert_eq!(rules(&files), []);
    let [first, mut second] = files;
    let FileHeader {
        start_time,
        end_time,
        ..
    } = header(&second);
    let set = 9 * FILETIME_PER_SECOND;
    replace(&mut second, start_time.get(), start_time.get() + set);
    replace(&mut second, end_time.get(), end_time.get() + set);
    for files in [[first.clone(), second.clone()], [second, first]] {
        let found = rules(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "merge.different-clocks");
        assert!(
            found[0].1.contains("the time was set by 9.000 s"),
            "{found:?}"
        );
    }
}
