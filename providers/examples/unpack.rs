//! Writes all tables as text, for reading and for `diff`:
//! `cargo run -p etl-providers --example unpack > windows.txt`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    write(io::stdout())
}

fn write(mut out: impl Write) -> io::Result<()> {
    out.write_all(etl_providers::unpack().as_bytes())
}

#[test]
fn example_writes_the_tables_of_providers() {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    let lines = out.split(|byte| *byte == b'\n');
    assert!(lines.filter(|line| line.starts_with(b"provider ")).count() > 1_000);
}
