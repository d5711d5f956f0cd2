//! reports/screens.md: what `etlkit dump` prints of ten real traces, in three formats.

use std::ffi::OsString;
use std::fmt::Write as _;

use etl_test_support::{needs, root, trace};
use etlkit::run_captured;

/// A trace, arguments that select an event, and what it shows.
const SCREENS: &[(&str, &[&str], &str)] = &[
    (
        "tx/HTTP_Server.etl",
        &["--id", "21"],
        "Microsoft-Windows-HttpService, Windows 7: tables of Windows",
    ),
    (
        "tx/Process.etl",
        &["--id", "5"],
        "Microsoft-Windows-Kernel-Process, Windows 7: tables of Windows",
    ),
    (
        "tx/WsRm01.etl",
        &["--id", "307"],
        "Microsoft-Windows-WinRM, Windows 7: tables of Windows",
    ),
    (
        "demikernel/PktMon.etl",
        &["-p", "Microsoft-Windows-PktMon", "--id", "160"],
        "packet monitor, Windows Server 2022: tables of Windows",
    ),
    (
        "perfview/diaghub.kernel.1.etl",
        &["-p", "Config", "--event", "PnP"],
        "devices, Windows 10: tables of the kernel",
    ),
    (
        "perfview/gcevents.etl",
        &["--event", "GCFitBucketInfo"],
        ".NET 8: tables of the CLR",
    ),
    (
        "perfview/net.4.5.2.x64.etl",
        &["--event", "MethodLoadVerbose*"],
        ".NET Framework 4.5.2, Windows 8: tables of the CLR",
    ),
    (
        "perfview/primitive-types.etl",
        &["--event", "PrimitiveTypesTest"],
        "every primitive type: TraceLogging",
    ),
    (
        "s4/WindowsUpdate.20251008.140245.443.8.etl",
        &["--event", "Deployment"],
        "Windows Update: TraceLogging",
    ),
    (
        "perfview/SelfDescribingSingleEvent.etl",
        &["--event", "WinSPR"],
        "Windows assessments that a merge added: tables of merges",
    ),
];

/// What `dump` prints of the first event.
fn screen(file: &str, select: &[&str], format: &str) -> String {
    let path = trace(file);
    let words = [
        "etlkit",
        "dump",
        path.to_str().unwrap(),
        "--limit",
        "1",
        "--format",
        format,
    ];
    let words = words.iter().chain(select).map(OsString::from);
    let done = run_captured(words);
    assert!(
        done.code < 2,
        "{file}: {}",
        String::from_utf8_lossy(&done.err)
    );
    String::from_utf8(done.out).unwrap()
}

#[needs(traces)]
#[test]
fn page_shows_what_dump_prints_of_ten_traces() {
    let mut page = String::from(
        "# Events of ten real traces\n\n\
         The output of [`etlkit dump`](../docs/dump.md) for one event of each trace, as text, JSON lines and\n\
         CSV. The traces are from the test suites of other projects. A test writes the page\n\
         (`ETLKIT_WRITE_DOCS=1 cargo test -p etlkit --test it screens`).\n",
    );
    for (file, select, about) in SCREENS {
        let name = file.rsplit('/').next().unwrap();
        writeln!(page, "\n## {name}\n{about}\n").unwrap();
        for format in ["text", "jsonl", "csv"] {
            let command = [
                &["etlkit", "dump", name, "--limit", "1", "--format", format],
                *select,
            ];
            let command = command.concat().join(" ");
            let screen = screen(file, select, format);
            write!(page, "```console\n$ {command}\n{screen}```\n").unwrap();
        }
    }
    let path = root().join("reports/screens.md");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert!(
        page == found,
        "reports/screens.md is not up to date: run with ETLKIT_WRITE_DOCS=1"
    );
}
