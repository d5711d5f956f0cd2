//! A snapshot test of a decoder: renders a trace as text that does not change from run to run, and
//! reports where it differs from the one kept. In a test, `insta::assert_snapshot!(text)` does the
//! keeping.
//!
//! Run: `cargo run --example snapshot -- trace.etl trace.snapshot`; without arguments it prints the
//! text of a trace of its own.

use std::path::Path;

use etl_schema::testing::snapshot::{self, Snapshot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let mut args = std::env::args_os().skip(1).filter(|_| !cfg!(test));
    match (args.next(), args.next()) {
        (Some(trace), Some(kept)) => compare(&std::fs::read(trace)?, Path::new(&kept)),
        (Some(_), None) => Err("usage: snapshot [TRACE SNAPSHOT]".into()),
        _ => {
            print!(
                "{}",
                Snapshot::new().render(snapshot::example().as_slice())?
            );
            Ok(())
        }
    }
}

/// Compares a trace with the text that is kept of it; keeps it where nothing is.
fn compare(trace: &[u8], kept: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let text = Snapshot::new().limit(1_000).render(trace)?;
    if !kept.exists() {
        std::fs::write(kept, &text)?;
        println!("{} is new", kept.display());
        return Ok(());
    }
    let before = std::fs::read_to_string(kept)?;
    let lines = before.lines().zip(text.lines()).enumerate();
    if let Some((at, (was, is))) = lines.into_iter().find(|(_, (was, is))| was != is) {
        return Err(format!("line {}: was {was:?}, is {is:?}", at + 1).into());
    }
    if before.lines().count() != text.lines().count() {
        return Err("one is longer".into());
    }
    println!("as kept");
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
    let kept = std::env::temp_dir().join(format!("snapshot-{}.txt", std::process::id()));
    let trace = snapshot::example();
    compare(&trace, &kept).unwrap();
    compare(&trace, &kept).unwrap();
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, text.replace("app.exe", "other.exe")).unwrap();
    assert!(
        compare(&trace, &kept)
            .unwrap_err()
            .to_string()
            .contains("other.exe")
    );
    std::fs::remove_file(kept).unwrap();
}
