//! `etlverify` with several files, a configuration file and `--enable`.

use crate::common::{BUFFER, directory, etlverify, trace};
use etl_test_support::needs;

#[test]
fn verify_jobs_do_not_change_output() {
    let whole = trace();
    let cut = &whole[..2 * BUFFER + 0x60];
    let files: Vec<(String, &[u8])> = (0..9)
        .map(|i| {
            (
                format!("{i}.etl"),
                if i % 2 == 0 { whole.as_slice() } else { cut },
            )
        })
        .collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), *b)).collect();
    let here = directory(&files);
    for format in ["text", "json", "html"] {
        let one = etlverify(here.path(), &["--format", format, "."]);
        let many = etlverify(here.path(), &["--format", format, "--jobs", "4", "."]);
        assert_eq!((one.code, one.out), (many.code, many.out), "{format}");
    }
    // Failures are in the order of the files, whichever job finds one first.
    std::fs::write(here.path().join("3.etl"), b"no trace").unwrap();
    std::fs::write(here.path().join("7.etl"), b"no trace").unwrap();
    let said = etlverify(here.path(), &["--jobs", "4", "."]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("3.etl"), "{}", said.err);
}

#[test]
fn together_checks_files_as_one_recording() {
    let bytes = trace();
    let here = directory(&[("a.etl", &bytes), ("b.etl", &bytes)]);
    let said = etlverify(
        here.path(),
        &["--together", "--format", "json", "a.etl", "b.etl"],
    );
    assert_eq!(said.err, "");
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["file"], "a.etl + b.etl");
    let one = etlverify(here.path(), &["--format", "json", "a.etl"]);
    let one: serde_json::Value = serde_json::from_str(&one.out).unwrap();
    let records = |r: &serde_json::Value| r["records"].as_u64().unwrap();
    assert_eq!(records(&report), 2 * records(&one));
    let said = etlverify(here.path(), &["--together", "a.etl", "-"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("standard input"), "{}", said.err);
}

#[test]
fn verify_reads_nearest_config() {
    let cut = &trace()[..2 * BUFFER + 0x60];
    let here = directory(&[("cut.etl", cut)]);
    let below = here.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let file = "../../cut.etl";
    assert_eq!(etlverify(&below, &["--no-config", file]).code, 1);
    std::fs::write(here.path().join("etlverify.toml"), "allow = [\"file\"]\n").unwrap();
    let said = etlverify(&below, &[file]);
    assert!(said.out.contains("left out by the policy"), "{}", said.out);
    // The search ends at the root of a repository.
    std::fs::create_dir(here.path().join("a/.git")).unwrap();
    assert_eq!(etlverify(&below, &[file]).code, 1);
    // A named file is used, and its errors are reported.
    let config = here.path().join("other.toml");
    std::fs::write(&config, "[severity]\n\"file.damaged\" = \"note\"\n").unwrap();
    let config = config.to_str().unwrap();
    let said = etlverify(&below, &["--config", config, file]);
    assert!(said.out.contains("note    file.damaged"), "{}", said.out);
    std::fs::write(config, "allowed = []\n").unwrap();
    let said = etlverify(&below, &["--config", config, file]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("allowed") && said.err.contains("line 1"),
        "{}",
        said.err
    );
}

/// Masks for which the CLR writes no end rundown, or only a part of what the trace holds. The trace
/// records what PerfView enabled; what the user declares replaces it.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn enable_is_compared_with_a_whole_rundown() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let (here, file) = (directory(&[]), path.to_str().unwrap());
    for (mask, code) in [
        ("0x20138", 0),
        ("0xB8", 1),
        ("0x38", 1),
        ("0x78", 1),
        ("0x118", 1),
    ] {
        let said = etlverify(
            here.path(),
            &["--enable", &format!("rundown:{mask}:5"), file],
        );
        assert_eq!(said.code, code, "{mask}: {}", said.out);
        assert_eq!(
            said.out.contains("filter.not-enabled"),
            code == 1,
            "{mask}: {}",
            said.out
        );
    }
}

#[needs(trace = "perfview/gcrundownevents.etl")]
#[test]
fn enable_is_compared_with_events() {
    let path = etl_test_support::trace("perfview/gcrundownevents.etl");
    let (here, file) = (directory(&[]), path.to_str().unwrap());
    let verify = |line: &str| etlverify(here.path(), &["--enable", line, file]);
    assert_eq!(verify("rundown:0x1000000119:5").code, 0);
    // Level 3 admits none of the events; a mask without Loader does not admit the modules.
    let said = verify("rundown:0x1000000119:3");
    assert_eq!(said.code, 1);
    assert!(said.out.contains("filter.not-enabled"), "{}", said.out);
    let said = verify("xperf -start r -on a669021c-c450-4609-a035-5af59af4df18:0x130:5 -f r.etl");
    assert!(said.out.contains("keywords 0x8)"), "{}", said.out);
    let said = verify("unknown:1");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("unknown"), "{}", said.err);
}
