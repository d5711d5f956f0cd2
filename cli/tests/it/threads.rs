//! The output does not depend on the number of threads.

use etl_test_support::needs;
use std::path::{Path, PathBuf};

use crate::common::{buffer, directory, etlkit, event, header_event, perfinfo};

/// A trace of five processors with alternating buffers, enough of them to start threads.
fn many() -> Vec<u8> {
    let count = 90;
    let mut bytes = buffer(0, 0, 4, &[header_event(count as u32 + 1)]);
    for number in 1..=count {
        let start = 1_010 + number * 40;
        let records: Vec<_> = (0..24)
            .map(|i| match (number + i) % 3 {
                0 => perfinfo(start + i * 30, 0x0f2e),
                // Events with provider names, so that the output depends on learned names.
                1 => event(start + i * 30, i as u16, 4, 1 << i, Some(b"Provider\0")),
                _ => event(start + i * 30, 7, 4, 8, None),
            })
            .collect();
        bytes.extend(buffer(number as u64, (number % 5) as u16, 0, &records));
    }
    bytes
}

/// Output and file of a command with a number of threads.
fn output(here: &Path, args: &[&str], threads: &str) -> (i32, String, String, Vec<u8>) {
    let out = here.join("out.etl");
    let _ = std::fs::remove_file(&out);
    let args: Vec<_> = args
        .iter()
        .chain(&["--threads", threads])
        .copied()
        .collect();
    let said = etlkit(here, &args);
    (
        said.code,
        said.out,
        said.err,
        std::fs::read(&out).unwrap_or_default(),
    )
}

fn check(here: &Path, files: &[&str]) {
    for file in files {
        let commands: [&[&str]; 17] = [
            &["info", file],
            &["info", file, file, file, "--format", "json"],
            &["dump", file],
            &["dump", file, "--format", "jsonl"],
            &[
                "dump",
                file,
                "--format",
                "csv",
                "--columns",
                "time,cpu,InstructionPointer",
            ],
            &[
                "dump",
                file,
                "--format",
                "xml",
                "--file-order",
                "--limit",
                "50",
            ],
            &["merge", file, "-o", "out.etl"],
            &[
                "merge",
                file,
                "other.etl",
                "-o",
                "out.etl",
                "--compress",
                "--salvage",
                "--allow-mismatch",
                "boot,machine,clock",
            ],
            &["slice", file, "--pid", "42", "-o", "out.etl"],
            &["slice", file, "--id", "7", "-o", "out.etl", "--compress"],
            &["scrub", file, "--salt", "salt", "-o", "out.etl"],
            &[
                "scrub",
                file,
                "--salt",
                "salt",
                "-o",
                "out.etl",
                "--compress",
                "--compression-level",
                "best",
            ],
            &[
                "compress",
                file,
                "-o",
                "out.etl",
                "--algorithm",
                "xpress-huff",
            ],
            &["decompress", file, "-o", "out.etl", "--format", "json"],
            &["repair", file, "-o", "out.etl"],
            &["diff", file, "other.etl"],
            &["diff", "packed.etl", file, "--format", "json"],
        ];
        for command in commands {
            let alone = output(here, command, "1");
            for threads in ["2", "5"] {
                let together = output(here, command, threads);
                assert!(
                    together == alone,
                    "{command:?} with {threads} threads is another one"
                );
            }
        }
    }
}

#[test]
fn output_does_not_depend_on_threads() {
    let many = many();
    let mut cut = many.clone();
    cut.truncate(many.len() - 100);
    let here = directory(&[("plain.etl", &many), ("other.etl", &cut)]);
    let packed = etlkit(here.path(), &["compress", "plain.etl", "-o", "packed.etl"]);
    assert_eq!(packed.code, 0, "{}", packed.err);
    let mut damaged = std::fs::read(here.path().join("packed.etl")).unwrap();
    for at in (5..damaged.len()).step_by(1_733).skip(2) {
        damaged[at] ^= 0x20;
    }
    std::fs::write(here.path().join("damaged.etl"), damaged).unwrap();
    check(here.path(), &["plain.etl", "packed.etl", "damaged.etl"]);
    // Reports and failures are in the order of the files.
    for threads in ["1", "2", "5"] {
        let files = ["info", "plain.etl", "none.etl", "packed.etl", "nothing.etl"];
        let (code, out, err, _) = output(here.path(), &files, threads);
        assert_eq!(code, 2);
        assert!(
            out.starts_with("plain.etl\n") && out.contains("\npacked.etl\n"),
            "{out}"
        );
        let failed: Vec<_> = err
            .lines()
            .filter_map(|l| l.strip_prefix("error: "))
            .collect();
        assert_eq!(failed.len(), 2, "{err}");
        assert!(
            failed[0].starts_with("none.etl: ") && failed[1].starts_with("nothing.etl: "),
            "{err}"
        );
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn output_for_real_trace_does_not_depend_on_threads() {
    let trace = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let file: PathBuf = trace;
    let name = file.to_string_lossy();
    for command in [
        &["info", &name][..],
        &["decompress", &name, "-o", "out.etl"],
        &["dump", &name, "--format", "jsonl"],
        &["merge", &name, "-o", "out.etl"],
    ] {
        let alone = output(here.path(), command, "1");
        assert!(alone.0 == 0 && alone.1.len() + alone.3.len() > 1000);
        // The small traces of the other test are read with two threads as well.
        assert!(output(here.path(), command, "5") == alone, "{command:?}");
    }
}
