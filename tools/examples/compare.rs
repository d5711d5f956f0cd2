//! The differences between two traces: `cargo run --example compare [A.etl B.etl]`.
//!
//! Without files it compares two traces that it makes: the second lacks one event and has another
//! level in one.

use etl_format::read::Trace;
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};
use etl_tools::diff::{Differ, Difference, Summary};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let mut args = std::env::args_os().skip(1).filter(|_| !cfg!(test));
    if let (Some(a), Some(b)) = (args.next(), args.next()) {
        compare(&std::fs::read(a)?, &std::fs::read(b)?)?;
        return Ok(());
    }
    let first = trace(&[(1, 4), (2, 4), (3, 4), (4, 4)])?;
    let second = trace(&[(1, 4), (3, 5), (4, 4)])?;
    let found = compare(&first, &second)?;
    assert_eq!(
        (found.same, found.missing, found.extra, found.changed),
        (2, 1, 0, 1)
    );
    Ok(())
}

fn compare(first: &[u8], second: &[u8]) -> Result<Summary, Box<dyn std::error::Error>> {
    let mut first = Trace::open(first, &Default::default())?;
    let mut second = Trace::open(second, &Default::default())?;
    let print = |difference: Difference<'_>| match difference {
        Difference::Missing(event) => println!("- event {}", event.identity().id),
        Difference::Extra(event) => println!("+ event {}", event.identity().id),
        Difference::Changed {
            before, changes, ..
        } => {
            println!("~ event {}", before.identity().id);
            for change in changes {
                println!(
                    "    {}: {:?} to {:?}",
                    change.name, change.before, change.after
                );
            }
        }
        _ => {}
    };
    let found = Differ::new().run(&mut first, &mut second, print)?;
    println!("{} events are the same", found.same);
    Ok(found)
}

/// A trace with events of these ids and levels, a millisecond apart by their ids.
fn trace(events: &[(u16, u8)]) -> etl_format::Result<Vec<u8>> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        perf_freq: 10_000_000,
        start_time: FileTime::new(132_000_000_000_000_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header)?;
    for &(id, level) in events {
        let event = Event::new(
            Guid::new(0x0f67_e49f, 0xfe51, 0x4e9f, *b"examples"),
            EventDescriptor {
                id,
                level,
                ..EventDescriptor::default()
            },
            1_000 + i64::from(id) * 10_000,
        )
        .process(4, 8);
        session.write(0, &event)?;
    }
    session.finish()
}

#[test]
fn runs() {
    main().unwrap();
}
