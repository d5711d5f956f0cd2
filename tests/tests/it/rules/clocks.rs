//! Times of the header that contradict each other, changed byte by byte.

use etl_format::clock::iso_utc;
use etl_format::constants::FILETIME_PER_SECOND;
use etl_format::read::{Options, Trace};
use etl_verify::Verifier;

use super::base::{judge, sound};

/// The trace with its boot time so many seconds after its start.
fn booted(seconds_after_start: i64) -> (Vec<u8>, i64) {
    let mut file = sound(7);
    let header = Trace::open(file.as_slice(), &Options::default()).unwrap().header().clone();
    let before = header.boot_time.to_le_bytes();
    let at = file[..0x400].windows(8).position(|bytes| bytes == before).unwrap();
    let boot_time = header.start_time + seconds_after_start * FILETIME_PER_SECOND;
    file[at..at + 8].copy_from_slice(&boot_time.to_le_bytes());
    (file, boot_time)
}

#[test]
fn boot_time_is_not_after_the_start() {
    // The time of the machine may have been set a little.
    for (seconds, expected) in [(-5, 0), (30, 0), (3_600, 1)] {
        let (file, boot_time) = booted(seconds);
        let report = judge(&[file], Verifier::new());
        let found: Vec<_> = report.findings.iter().filter(|f| f.rule == "file.clock").collect();
        assert_eq!(found.len(), expected, "{seconds} {}", report.text());
        assert!(found.iter().all(|f| f.message.contains(&iso_utc(boot_time))), "{found:?}");
    }
}
