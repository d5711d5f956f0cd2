//! A snapshot test of a decoder: renders a trace as text that does not change from run to run, and says
//! where it differs from the one kept. In a test, `insta::assert_snapshot!(text)` does the keeping.
//!
//! Run: `cargo run --example snapshot -- trace.etl trace.snapshot`

use etl_verify::snapshot::Snapshot;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(trace), Some(kept)) = (args.next(), args.next()) else {
        return Err("usage: snapshot TRACE SNAPSHOT".into());
    };
    let bytes = std::fs::read(trace)?;
    let text = Snapshot::new().limit(1_000).render(bytes.as_slice())?;
    if !std::fs::exists(&kept)? {
        std::fs::write(&kept, &text)?;
        println!("{kept} is new");
        return Ok(());
    }
    let before = std::fs::read_to_string(&kept)?;
    let lines = before.lines().zip(text.lines()).enumerate();
    if let Some((at, (was, is))) = lines.into_iter().find(|(_, (was, is))| was != is) {
        return Err(format!("line {}: was {was:?}, is {is:?}", at + 1).into());
    }
    println!("as kept");
    Ok(())
}
