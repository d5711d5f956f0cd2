//! The `etlverify` tool: `etlkit verify` under a name of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    etlkit::etlverify_main()
}
