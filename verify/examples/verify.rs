//! Verifies traces: `cargo run --example verify [FILE.etl...]`.
//!
//! Without a file it verifies a trace of its own, in which a CLR loads an application domain.
//! Without addresses and methods in the trace, no rundown is missing.

use etl_verify::{Verdict, Verifier};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let mut paths = std::env::args().skip(1).filter(|_| !cfg!(test)).peekable();
    if paths.peek().is_none() {
        let report = Verifier::new().verify(
            etl_schema::testing::snapshot::example().as_slice(),
            "one-event.etl",
        )?;
        print!("{}", report.text());
        // The report is data, too.
        assert_eq!(report.verdict, Verdict::Complete);
        assert!(report.rules.iter().any(|rule| rule.rule == "rundown.none"));
    }
    for path in paths {
        let bytes = std::fs::read(&path)?;
        print!(
            "{}",
            Verifier::new().verify(bytes.as_slice(), &path)?.text()
        );
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
