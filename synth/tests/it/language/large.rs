//! Events that are too large for a record, or for the buffers of a session.

use etl_format::read::{Options, Trace};
use etl_synth::truth::{EventOutcome, InMemoryTruth};
use etl_synth::{MemoryFileSystem, Simulation};

/// Outcomes of an event with so many bytes of payload: in a session with buffers of 128 KB, and in
/// an independent one with buffers of 16 KB. Then what the headers of their files state as lost.
fn outcomes(bytes: usize) -> ([EventOutcome; 2], [u32; 2]) {
    let script = format!(
        r#"
        provider "P" kind="manifest" {{ event "E" id=1 level=4 {{ field "Text" "AnsiString" }} }}
        process "App.exe" {{ at "1.5s" {{ raise "P" "E" {{ Text "{}" }} }} }}
        at "1s" {{
            session "large" file="large.etl" buffer-kb=128 {{ enable "P" level=5 }}
            session "small" file="small.etl" buffer-kb=16 mode="sequential independent" {{ enable "P" level=5 }}
        }}
        at "2s" {{ stop "large"; stop "small" }}"#,
        // The text ends with a zero.
        "x".repeat(bytes - 1)
    );
    let scenario = super::parse(&script, &[]).unwrap_or_else(|e| panic!("{e:#?}"));
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap();
    let [event] = &truth.events[..] else {
        panic!("{} events", truth.events.len())
    };
    let outcome = |session| event.outcome(session).unwrap();
    let mut files = files.into_files();
    files.retain(|file| file.name.ends_with(".etl"));
    let lost = |at: usize| {
        Trace::open(&files[at].bytes[..], &Options::default())
            .unwrap()
            .header()
            .events_lost
    };
    ([outcome(0), outcome(1)], [lost(0), lost(1)])
}

#[test]
fn event_is_refused_where_no_record_or_buffer_is_large_enough() {
    use EventOutcome::{LargerThanBuffers, Recorded, TooLarge};
    // The header of the record has 80 bytes, that of a buffer 72.
    assert_eq!(outcomes(16_000), ([Recorded, Recorded], [0, 0]));
    let fits = 16 * 1024 - 72 - 80;
    assert_eq!(outcomes(fits).0, [Recorded, Recorded]);
    assert_eq!(outcomes(fits + 1), ([Recorded, LargerThanBuffers], [0, 1]));
    let most = 65_535 - 80;
    assert_eq!(outcomes(most), ([Recorded, LargerThanBuffers], [0, 1]));
    assert_eq!(outcomes(most + 1), ([TooLarge, TooLarge], [0, 0]));
}
