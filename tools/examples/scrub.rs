//! A trace that is safe to share: `cargo run --example scrub [FILE.etl OUT.etl TEXT...]`. No TEXT
//! survives.
//!
//! Without a file it scrubs a trace that it makes, with a module in the home directory of a user.

mod input;

use etl_format::read::{Options, Trace};
use etl_tools::scrub::{Mask, Scrubber, Summary};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // Under test the command line is the test runner's.
    let mut args = std::env::args().skip(1).filter(|_| !cfg!(test));
    match (args.next(), args.next()) {
        (Some(trace), Some(out)) => {
            let (scrubbed, _) = scrubbed(&std::fs::read(trace)?, args.collect())?;
            std::fs::write(out, scrubbed)?;
        }
        (None, _) => {
            let trace = input::trace()?;
            assert!(holds(&trace, "anna") && holds(&trace, "Shop.dll"));
            // The usual policy removes the user, the list removes the program.
            let (scrubbed, summary) = scrubbed(&trace, vec!["Shop".to_owned()])?;
            assert!(!holds(&scrubbed, "anna") && !holds(&scrubbed, "Shop"));
            assert_eq!((summary.records, summary.changed), (8, 4));
        }
        _ => return Err("usage: scrub [FILE.etl OUT.etl TEXT...]".into()),
    }
    Ok(())
}

/// The trace without users, machines, command lines, SIDs and these texts.
fn scrubbed(trace: &[u8], secrets: Vec<String>) -> Outcome<(Vec<u8>, Summary)> {
    // Who knows the salt can test guesses: use a random one for a trace that you share.
    let mask = Mask::new(b"example");
    let mut trace = Trace::open(trace, &Options::default())?;
    let scrubber = Scrubber::new(mask).secrets(secrets);
    let finished = scrubber.run(&mut trace, Vec::new())?;
    let output = finished.output;
    let summary = finished.report;
    println!(
        "{} of {} records are changed",
        summary.changed, summary.records
    );
    for (category, count) in &summary.categories {
        println!("{count} {}", category.name());
    }
    println!("listed texts: {:?}", summary.secrets);
    Ok((output, summary))
}

/// Whether bytes contain a text in UTF-16.
fn holds(bytes: &[u8], text: &str) -> bool {
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn runs() {
    main().unwrap();
}
