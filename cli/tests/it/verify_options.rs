//! Options of `etlverify`: required percentages, enablement in every notation, and the command
//! lines that reports suggest.

use etl_test_support::needs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, directory, etlkit, etlverify, trace};

/// The traces of a scenario of the corpus, in a directory.
fn made(scenario: &str, set: &[&str]) -> tempfile::TempDir {
    let here = directory(&[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../corpus/{scenario}.kdl"));
    let mut args = vec!["synth", script.to_str().unwrap(), "-o", "."];
    set.iter().for_each(|s| args.extend(["--set", s]));
    let said = etlkit(here.path(), &args);
    assert_eq!(said.code, 0, "{}", said.err);
    here
}

fn verify(here: &Path, args: &[&str]) -> CommandOutput {
    etlverify(here, &[&["--no-config"], args].concat())
}

/// Lines are wrapped; a message is one text.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A percentage that is just reached passes; a little more fails, and the message says by how much.
fn gate(here: &Path, others: &[&str], option: &str, met: &str, missed: &str, message: &str) {
    let passed = verify(here, &[&[option, met], others].concat());
    assert_eq!(passed.code, 0, "{option} {met}: {}", passed.out);
    assert!(
        !passed.out.contains("symbols.coverage"),
        "{option} {met}: {}",
        passed.out
    );
    let failed = verify(here, &[&[option, missed], others].concat());
    assert_eq!(failed.code, 1, "{option} {missed}: {}", failed.out);
    let text = unbroken(&failed.out);
    assert!(text.contains("error symbols.coverage"), "{text}");
    let minimum: f64 = missed.parse().unwrap();
    assert!(
        text.contains(&format!("{message}; the minimum is {minimum} %")),
        "{text}"
    );
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn min_coverage_options_on_real_trace() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let (here, file) = (directory(&[]), path.to_str().unwrap());
    let others = ["--allow", "symbols.unresolved", file];
    let gate =
        |option, met, missed, message| gate(here.path(), &others, option, met, missed, message);
    gate(
        "--min-coverage",
        "99.9",
        "99.95",
        "646278 of 646898 addresses resolve (99.90 %)",
    );
    gate(
        "--min-sample-coverage",
        "99.7",
        "99.8",
        "79344 of 79528 samples resolve (99.76 %)",
    );
    gate(
        "--min-process-coverage",
        "98.49",
        "98.5",
        // Rounded down, so that a missed percentage never looks reached.
        "1707 of 1733 addresses of the process resolve (98.49 %)",
    );
    // The sessions were verbose and the trace was merged on its machine: both are complete.
    for option in ["--min-named-methods", "--min-pdb-identity"] {
        let said = verify(here.path(), &[&[option, "100"], &others[..]].concat());
        assert_eq!(said.code, 0, "{option}: {}", said.out);
    }
}

#[test]
fn min_named_methods_and_min_pdb_identity() {
    // Level 4: methods without names.
    let here = made("rules/symbols.coverage", &[]);
    let said = verify(here.path(), &["--format", "json", "clr.etl"]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let sum = |key: &str| {
        let tables = report["coverage"].as_object().unwrap().values();
        tables.map(|t| t[key].as_u64().unwrap()).sum::<u64>()
    };
    let (named, managed) = (sum("named"), sum("managed"));
    assert!(named < managed, "{named} of {managed}");
    let share = named as f64 / managed as f64 * 100.0;
    let floor = (share * 100.0).floor() / 100.0;
    gate(
        here.path(),
        &["clr.etl"],
        "--min-named-methods",
        &format!("{:.2}", (share - 0.1).max(0.0)),
        &format!("{:.2}", share + 0.1),
        &format!(
            "{named} of {managed} addresses in managed code have a method name ({floor:.2} %)"
        ),
    );

    // Not merged: images without PDB identity.
    let here = made("rules/merge.no-image-ids", &[]);
    let file = traces(here.path()).remove(0);
    let said = verify(here.path(), &["--format", "json", &file]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let tables = report["coverage"].as_object().unwrap().values();
    let image: u64 = tables.map(|t| t["image"].as_u64().unwrap()).sum();
    assert!(image > 0);
    let message = format!("0 of {image} addresses in images have a PDB identity (0.00 %)");
    gate(
        here.path(),
        &[&file],
        "--min-pdb-identity",
        "0",
        "0.5",
        &message,
    );
}

fn traces(here: &Path) -> Vec<String> {
    let names = std::fs::read_dir(here)
        .unwrap()
        .map(|e| e.unwrap().file_name());
    let mut names: Vec<_> = names.map(|n| n.into_string().unwrap()).collect();
    names.retain(|n| n.ends_with(".etl"));
    names.sort();
    names
}

#[test]
fn invalid_percentages_are_rejected() {
    let here = directory(&[("t.etl", &trace())]);
    for option in [
        "coverage",
        "process-coverage",
        "sample-coverage",
        "named-methods",
        "pdb-identity",
    ] {
        for wrong in ["101", "-1", "half", "NaN", "inf"] {
            let said = verify(here.path(), &[&format!("--min-{option}={wrong}"), "t.etl"]);
            assert_eq!(said.code, 2, "{option} {wrong}: {}", said.out);
            assert!(said.err.contains(wrong), "{}", said.err);
        }
        // Without addresses any percentage is reached; a percent sign is allowed.
        let here = made("recipe", &[]);
        let said = verify(
            here.path(),
            &[&format!("--min-{option}=100%"), "recipe.etl"],
        );
        assert_eq!(said.code, 0, "{}", said.out);
    }
}

/// One mask in five notations, and one that does not match the events.
#[test]
fn enable_accepts_every_notation() {
    let here = made("recipe", &[]);
    let enabled = |lines: &[&str]| {
        let mut args = Vec::new();
        lines
            .iter()
            .for_each(|line| args.extend(["--enable", line]));
        args.push("recipe.etl");
        let said = verify(here.path(), &args);
        (said.code, said.out)
    };
    let rundown = "a669021c-c450-4609-a035-5af59af4df18";
    let ways = [
        format!("{rundown}:0x138:5"),
        format!("{{{}}}:0x138:0x5", rundown.to_uppercase()),
        "Microsoft-Windows-DotNETRuntimeRundown:0x138:5".to_owned(),
        "rundown:0x138:5".to_owned(),
        format!("xperf -start clrRundown -on {rundown}:0x138:0x5 -f clr2.etl"),
        format!("logman start clrRundown -p {{{rundown}}} 0x138 0x5 -ets -o clr2.etl"),
        "logman create trace r -p Microsoft-Windows-DotNETRuntimeRundown 0x138 5 -o clr2.etl"
            .to_owned(),
    ];
    for way in &ways {
        let (code, out) = enabled(&[way]);
        assert_eq!(code, 0, "{way}: {out}");
        let line = out
            .lines()
            .find(|l| l.contains("DotNETRuntimeRundown"))
            .unwrap();
        assert!(line.ends_with("0x138:5  declared"), "{way}: {line}");
        // Without Loader no module events can occur, in every notation.
        let (code, out) = enabled(&[&way.replace("0x138", "0x130")]);
        assert_eq!(code, 1, "{way}: {out}");
        let text = unbroken(&out);
        assert!(text.contains("error filter.not-enabled"), "{text}");
        assert!(
            text.contains("that no declared enablement requests: 0x130 at level 5"),
            "{text}"
        );
    }
    // Both sessions, separately.
    let (code, out) = enabled(&["runtime:0x1CCBD:5", "rundown:0x138:5"]);
    assert_eq!((code, out.matches("  declared").count()), (0, 2), "{out}");
    // A mask that enables nothing.
    let bad = made("recipe", &["rundown=0xB8"]);
    let said = verify(bad.path(), &["--enable", "rundown:0xB8:5", "recipe.etl"]);
    let text = unbroken(&said.out);
    assert!(
        text.contains("was enabled with 0xb8, which requests none"),
        "{text}"
    );
    assert!(
        text.contains("EndRundownKeyword (0x100) is missing"),
        "{text}"
    );
    // Invalid values are named, with an example.
    for wrong in [
        "unknown:1:5",
        "rundown:mask:5",
        "rundown:0x138:256",
        "xperf -stop clr",
        "xperf -on",
    ] {
        let (code, out) = enabled(&[wrong]);
        assert_eq!((code, out.as_str()), (2, ""), "{wrong}");
    }
}

/// A session that begins new files enabled the same for each of them.
#[test]
fn truth_option_knows_every_file_of_a_session() {
    let here = made("new-files", &[]);
    let said = verify(
        here.path(),
        &["--truth", "truth.jsonl", "part1.etl", "part2.etl"],
    );
    assert!(said.code < 2, "{}", said.err);
    assert_eq!(
        said.out.matches("0x1:5  declared").count(),
        2,
        "{}",
        said.out
    );
}

/// The truth of a simulation replaces inferred enablement.
#[test]
fn truth_option_reads_enablement() {
    let here = made("recipe", &[]);
    let inferred = verify(here.path(), &["recipe.etl"]).out;
    assert!(inferred.contains("0x138:5  inferred"), "{inferred}");
    let said = verify(here.path(), &["--truth", "truth.jsonl", "recipe.etl"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let enabled = |out: &str| -> String {
        let lines = out
            .lines()
            .skip_while(|l| *l != "enabled")
            .take_while(|l| !l.is_empty());
        lines.map(|l| format!("{l}\n")).collect()
    };
    insta::assert_snapshot!("truth_enabled", enabled(&said.out));
    // A file that the truth does not describe, and an invalid truth.
    std::fs::copy(
        here.path().join("recipe.etl"),
        here.path().join("other.etl"),
    )
    .unwrap();
    let said = verify(here.path(), &["--truth", "truth.jsonl", "other.etl"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains("other.etl: is not described by the truth file"),
        "{}",
        said.err
    );
    assert!(said.err.contains("it describes recipe.etl"), "{}", said.err);
    std::fs::write(here.path().join("truth.jsonl"), "{\"kind\":\n").unwrap();
    let said = verify(here.path(), &["--truth", "truth.jsonl", "recipe.etl"]);
    assert!(
        said.code == 2 && said.err.contains("line 1"),
        "{}",
        said.err
    );
}

/// The command lines that a report suggests for these tools run as they are.
#[test]
fn remedies_are_valid_command_lines() {
    let whole = trace();
    let here = directory(&[("cut.etl", &whole[..2 * crate::common::BUFFER + 0x60])]);
    let out = verify(here.path(), &["cut.etl"]).out;
    let line = out
        .lines()
        .find(|l| l.trim().starts_with("etlkit "))
        .unwrap_or_else(|| panic!("{out}"));
    assert_eq!(line.trim(), "etlkit repair cut.etl -o repaired.etl");
    let args: Vec<&str> = line.split_whitespace().skip(1).collect();
    let said = etlkit(here.path(), &args);
    assert!(said.code < 2, "{}", said.err);
    assert!(
        !verify(here.path(), &["repaired.etl"])
            .out
            .contains("file.damaged")
    );

    let made = made("rules/filter.not-enabled", &[]);
    let said = verify(made.path(), &["--truth", "truth.jsonl", "clr.etl"]);
    let line = said
        .out
        .lines()
        .find(|l| l.trim().starts_with("etlverify "))
        .unwrap();
    assert!(line.ends_with(" clr.etl"), "{line}");
    let args: Vec<&str> = line.split_whitespace().skip(1).collect();
    let said = verify(made.path(), &args);
    assert!(said.err.is_empty() && said.code < 2, "{}", said.err);

    // A name that a shell would split is not put into a command line.
    let odd = PathBuf::from("a trace $(x).etl");
    std::fs::copy(here.path().join("cut.etl"), here.path().join(&odd)).unwrap();
    let out = verify(here.path(), &[odd.to_str().unwrap()]).out;
    assert!(
        out.contains("      etlkit repair trace.etl -o repaired.etl\n"),
        "{out}"
    );
}

/// The first screen: verdict, colors, and the width of the terminal.
#[test]
fn report_text_fits_80_columns() {
    for (scenario, file) in [
        ("recipe", "recipe.etl"),
        ("rules/sound", "clr.etl"),
        ("rules/rundown.endless", "clr.etl"),
        ("rules/file.events-lost", "clr.etl"),
        ("rules/file.overwritten", "clr.etl"),
        ("many-processes", "many.etl"),
    ] {
        let here = made(scenario, &[]);
        let out = verify(here.path(), &[file]).out;
        assert!(!out.contains('\x1b'), "{scenario}: no terminal, no colours");
        let mut lines = out.lines();
        assert_eq!(lines.next(), Some(file), "{scenario}");
        assert!(
            lines.next().is_some_and(|l| l.starts_with("verdict   ")),
            "{scenario}: {out}"
        );
        for line in out.lines() {
            assert_eq!(line, line.trim_end(), "{scenario}");
            // Command lines are not wrapped, since users copy them.
            let command = line.starts_with("      xperf ") || line.starts_with("      etl");
            assert!(command || line.chars().count() <= 80, "{scenario}: {line}");
        }
        let painted = verify(here.path(), &["--color", "always", file]).out;
        assert!(painted.contains("\x1b[1;3"), "{scenario}: {painted}");
        assert_eq!(stripped(&painted), out, "{scenario}");
        assert_eq!(verify(here.path(), &["--color", "never", file]).out, out);
    }
    // Names in a trace cannot change colors.
    let here = directory(&[("t.etl", &trace())]);
    let painted = verify(here.path(), &["--color", "always", "t.etl"]).out;
    assert!(!stripped(&painted).contains('\x1b'), "{painted}");
    // Only text is colored.
    let json = verify(
        here.path(),
        &["--color", "always", "--format", "json", "t.etl"],
    )
    .out;
    assert!(!json.contains('\x1b'));
}

/// The text without colors.
fn stripped(text: &str) -> String {
    let mut out = text.to_owned();
    for code in ["0", "1", "1;31", "1;32", "1;33", "31", "33", "36"] {
        out = out.replace(&format!("\x1b[{code}m"), "");
    }
    out.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// The first commands of a new user.
#[test]
fn help_and_rule_lists() {
    let here = made("recipe", &[]);
    let bad = made("recipe", &["rundown=0xB8"]);
    std::fs::create_dir(here.path().join("traces")).unwrap();
    std::fs::create_dir(here.path().join("nothing")).unwrap();
    let put = |from: &Path, to: &str| std::fs::copy(from, here.path().join(to)).unwrap();
    put(&here.path().join("recipe.etl"), "traces/good.etl");
    put(&bad.path().join("recipe.etl"), "traces/bad.etl");
    std::fs::write(here.path().join("empty.etl"), b"").unwrap();
    std::fs::write(here.path().join("notes.etl"), b"some notes\n").unwrap();
    let cut = std::fs::read(here.path().join("recipe.etl")).unwrap();
    std::fs::write(here.path().join("cut.etl"), &cut[..300_000]).unwrap();
    let mut all = String::new();
    for args in [
        &["recipe.etl"][..],
        &["traces/bad.etl"],
        &["traces"],
        &["cut.etl"],
        &["recipe.etl", "notes.etl"],
        &["empty.etl"],
        &["notes.etl"],
        &["nothing"],
        &["missing.etl"],
        &["--explain", "rundown.missing"],
        &["--explain", "rundown"],
    ] {
        let said = verify(here.path(), args);
        let (out, err) = (said.out, said.err);
        all += &format!(
            "$ etlverify {}   ({})\n{out}{err}\n",
            args.join(" "),
            said.code
        );
    }
    // Windows separates directories by a backslash.
    let all = if cfg!(windows) {
        all.replace("traces\\", "traces/")
    } else {
        all
    };
    insta::assert_snapshot!("first_impressions", all);
}

/// Runtimes and reference pages disagree: with one table the trace has no findings, with the other
/// it has.
#[test]
fn event_tables_option_selects_tables() {
    let here = made("recipe", &[]);
    let judged = |profile: &[&str]| verify(here.path(), &[profile, &["recipe.etl"]].concat());
    let shipped = judged(&[]);
    assert!(
        shipped.code == 0 && shipped.out.contains("findings: 0"),
        "{}",
        shipped.out
    );
    assert_eq!(judged(&["--event-tables", "shipped"]).out, shipped.out);
    let documented = judged(&["--event-tables", "documented"]);
    assert_eq!(documented.code, 0, "notes only: {}", documented.out);
    assert!(
        documented.out.contains("note    payload.wrong-descriptor "),
        "{}",
        documented.out
    );
}

/// A file that is named twice would count every event twice.
#[test]
fn together_rejects_duplicate_files() {
    let here = directory(&[("a.etl", &trace()), ("b.etl", &trace())]);
    let said = verify(here.path(), &["--together", "a.etl", "./a.etl"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    let twice = "error: ./a.etl: is named twice, first as a.etl\nhint: ";
    assert!(said.err.starts_with(twice), "{}", said.err);
    assert!(
        verify(here.path(), &["--together", "a.etl", "b.etl"])
            .err
            .is_empty()
    );
}
