//! `etlkit`: the command-line tool. Argument parsing and printing only.

fn main() {
    println!("etlkit {}", env!("CARGO_PKG_VERSION"));
}
