//! An overloaded scenario: pending events are bounded by the buffers of the session, and pending
//! work by the queue of each thread, however long it lasts. It has its own binary because it
//! measures the memory of the process.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use etl_synth::truth::{BufferOutcome, EventOutcome, Fact, Observer, SessionOutcome, Timeline};
use etl_synth::{FileSystem, Result, Script, Simulation};

/// Threads with thousands of times the work that they can do, and a disk that writes a hundredth of
/// it.
fn script(seconds: u32) -> String {
    format!(
        r#"
machine processors=2 disk-bytes-per-second=20000
process "App.exe" threads=1 {{
    clr "core" version="6.0.100" {{ assembly "App" {{ module "C:\\App\\App.dll" {{ methods 20 }} }} }}
    every "500us" from="1s" until="{seconds}s" {{ contend 100; allocate 100 }}
}}
at "1s" {{ session "s" file="s.etl" buffer-kb=16 buffers=6 {{ enable "runtime" keywords="GC|Contention" level=5 }} }}
at "{seconds}s" {{ stop "s" }}
end "{seconds}s"
"#
    )
}

/// Counts events that are recorded and not yet written.
#[derive(Default)]
struct InFlight {
    now: u64,
    most: u64,
    recorded: u64,
    lost: u64,
    written: BTreeSet<i64>,
}

impl Observer for InFlight {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        match fact {
            Fact::Event(event) => {
                for SessionOutcome { outcome, .. } in event.outcomes {
                    self.now += u64::from(*outcome == EventOutcome::Recorded);
                    self.recorded += u64::from(*outcome == EventOutcome::Recorded);
                    self.lost += u64::from(*outcome == EventOutcome::Lost);
                }
                self.most = self.most.max(self.now);
            }
            Fact::Buffer { buffer, .. } => {
                let written = buffer.outcome == BufferOutcome::Written;
                if written && self.written.insert(buffer.sequence) {
                    self.now -= buffer.events;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Discards all bytes.
struct Nowhere;

impl etl_format::write::Output for Nowhere {
    fn write_at(&mut self, _: u64, _: &[u8]) -> etl_format::Result<()> {
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

impl FileSystem for Nowhere {
    fn create(&mut self, _: &str) -> std::io::Result<Box<dyn etl_format::write::Output>> {
        Ok(Box::new(Nowhere))
    }

    fn open(&mut self, _: &str) -> std::io::Result<Box<dyn etl_synth::ReadSeek>> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn truncate(&mut self, _: &str, _: u64) -> std::io::Result<()> {
        Ok(())
    }

    fn overwrite(&mut self, _: &str, _: u64, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
}

fn run(seconds: u32) -> InFlight {
    let scenario = Script::new("overload", &script(seconds)).parse().unwrap();
    let mut seen = InFlight::default();
    Simulation::new(&scenario)
        .observer(&mut seen)
        .run(&mut Nowhere)
        .unwrap();
    seen
}

/// Peak memory of this process in KiB, on Linux.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Held by each test, because one measures the memory of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn overload_is_bounded_by_buffers_and_operation_queues() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Six buffers of 16 KiB, records of at least 80 bytes.
    let limit = 6 * 16 * 1024 / 0x50;
    // From here on the queue of the thread is full.
    let short = run(40);
    let before = peak();
    let long = run(120);
    for seen in [&short, &long] {
        assert!(
            seen.most <= limit,
            "{} events wait, the limit is {limit}",
            seen.most
        );
        assert!(
            seen.lost > 10 * seen.recorded,
            "{} of {}",
            seen.lost,
            seen.recorded
        );
    }
    assert!(long.recorded > 2 * short.recorded);
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < 4096, "{before} KiB, then {after} KiB");
    }
}

#[test]
fn timeline_reports_dropped_packets_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let script = r#"process "App.exe" {
        every "1ms" from="1s" until="1.02s" { exchange "192.0.2.7:80" send=4000000 round-trip="10s" }
    }"#;
    let scenario = Script::new("network", script).parse().unwrap();
    let mut timeline = Timeline::new(Vec::new());
    Simulation::new(&scenario)
        .observer(&mut timeline)
        .run(&mut Nowhere)
        .unwrap();
    let text = String::from_utf8(timeline.into_inner()).unwrap();
    assert_eq!(
        text.matches("it drops new ones from now on").count(),
        1,
        "{text}"
    );
}

#[test]
fn timeline_reports_rejected_work_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let scenario = Script::new("overload", &script(40)).parse().unwrap();
    let mut timeline = Timeline::new(Vec::new());
    Simulation::new(&scenario)
        .observer(&mut timeline)
        .run(&mut Nowhere)
        .unwrap();
    let text = String::from_utf8(timeline.into_inner()).unwrap();
    assert_eq!(text.matches("it rejects work from now on").count(), 1);
}
