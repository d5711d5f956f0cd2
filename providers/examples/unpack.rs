//! Writes all tables as text, for reading and for `diff`:
//! `cargo run -p etl-providers --example unpack > windows.txt`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(etl_providers::unpack().as_bytes())
}

#[test]
fn example_runs() {
    main().unwrap();
}
