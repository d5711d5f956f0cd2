//! The `etlkit` tool. All of it lives in the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    etlkit::etlkit_main()
}
