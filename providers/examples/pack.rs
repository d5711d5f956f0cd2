//! Packs the text of all tables, as the example `unpack` writes it:
//! `cargo run --release -p etl-providers --example pack windows.txt providers/data/tables.bin`.
//!
//! Without arguments it packs the tables of the crate, and says how large they are.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    match files.as_slice() {
        [text, packed] => pack_file(text, packed),
        _ => print_size(),
    }
}

fn pack_file(text: &str, packed: &str) -> Result<(), Box<dyn Error>> {
    let bytes = etl_providers::pack(&std::fs::read_to_string(text)?)
        .map_err(|error| format!("{text}: {error}"))?;
    std::fs::write(packed, bytes)?;
    Ok(())
}

fn print_size() -> Result<(), Box<dyn Error>> {
    let bytes = etl_providers::pack(&etl_providers::unpack())?;
    println!("{} bytes", bytes.len());
    Ok(())
}

// Under test the arguments are those of the test runner.
#[test]
fn example_runs() {
    print_size().unwrap();
}
