//! Judges the traces named on the command line and prints the reports.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        print!("{}", etl_verify::verify(bytes.as_slice(), &path)?.text());
    }
    Ok(())
}
