//! Judges traces: `cargo run --example judge [FILE.etl...]`.
//!
//! Without a file it judges a trace of its own, in which a CLR tells that it loaded an app domain, and nobody asked for a rundown.

use etl_verify::{Verdict, verify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let mut paths = std::env::args().skip(1).filter(|_| !cfg!(test)).peekable();
    if paths.peek().is_none() {
        let report = verify(etl_verify::snapshot::example().as_slice(), "one-event.etl")?;
        print!("{}", report.text());
        // What the text says is there as data.
        assert_eq!(report.verdict, Verdict::Broken);
        let rules: Vec<&str> = report.findings.iter().map(|finding| finding.rule).collect();
        assert!(rules.contains(&"rundown.none"), "{rules:?}");
    }
    for path in paths {
        let bytes = std::fs::read(&path)?;
        print!("{}", verify(bytes.as_slice(), &path)?.text());
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
