//! `etlkit synth` and `etlkit corpus`.

use std::path::Path;

use crate::common::etlkit;

/// The recipe of the documentation, in a corpus.
fn with_recipe() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/recipe.kdl");
    std::fs::copy(script, directory.path().join("recipe.kdl")).unwrap();
    directory
}

/// Paths with slashes.
fn slashes(text: &str) -> String {
    if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text.to_owned()
    }
}

#[test]
fn synth_verify_checks_the_recipe() {
    let directory = with_recipe();
    let args = ["synth", "recipe.kdl", "-o", "out", "--force", "--verify"];
    let said = etlkit(directory.path(), &args);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!("recipe", slashes(&said.out));
    assert_eq!(
        etlkit(directory.path(), &args).out,
        said.out,
        "once more, the same"
    );
    let other = etlkit(
        directory.path(),
        &[&args[..], &["--set", "rundown=0xB8"]].concat(),
    );
    assert_eq!(other.code, 1);
    insta::assert_snapshot!("recipe_without_rundown", slashes(&other.out));
}

/// All but `ring`, which overwrites its buffers, are meant to be complete recordings.
#[test]
fn synth_verify_judges_the_traces_of_a_recording_together() {
    let directory = tempfile::tempdir().unwrap();
    for template in ["attach", "launch", "desktop", "pktmon", "kernel"] {
        let script = etlkit(directory.path(), &["synth", "--template", template]).out;
        std::fs::write(directory.path().join("s.kdl"), script).unwrap();
        let said = etlkit(
            directory.path(),
            &["synth", "s.kdl", "-o", template, "--verify"],
        );
        assert_eq!(
            (said.code, said.err.as_str()),
            (0, ""),
            "{template}: {}",
            said.out
        );
    }
    // A recording without its rundown is still incomplete.
    let script = std::fs::read_to_string(directory.path().join("s.kdl")).unwrap();
    let script: String = script
        .lines()
        .filter(|l| !l.contains("merge"))
        .map(|l| format!("{l}\n"))
        .collect();
    std::fs::write(directory.path().join("s.kdl"), script).unwrap();
    let args = ["synth", "s.kdl", "-o", "alone", "--verify"];
    assert_eq!(etlkit(directory.path(), &args).code, 1);
}

#[test]
fn synth_keeps_existing_files_without_force() {
    let directory = with_recipe();
    let args = ["synth", "recipe.kdl", "-o", "out"];
    assert_eq!(etlkit(directory.path(), &args).code, 0);
    let before = std::fs::read(directory.path().join("out/recipe.etl")).unwrap();
    let other = etlkit(directory.path(), &[&args[..], &["--seed", "2"]].concat());
    assert_eq!(other.code, 2);
    assert!(other.err.contains("--force replaces it"), "{}", other.err);
    assert_eq!(
        std::fs::read(directory.path().join("out/recipe.etl")).unwrap(),
        before
    );
    assert_eq!(
        etlkit(
            directory.path(),
            &[&args[..], &["--seed", "2", "--force"]].concat()
        )
        .code,
        0
    );
    assert_ne!(
        std::fs::read(directory.path().join("out/recipe.etl")).unwrap(),
        before
    );
}

#[test]
fn outputs_of_several_files_are_no_standard_output() {
    let directory = with_recipe();
    for args in [
        &["synth", "recipe.kdl", "-o", "-"][..],
        &["corpus", "build", "-o", "-"],
        &["export", "parquet", "recipe.kdl", "-o", "-"],
        &["man", "-"],
    ] {
        let said = etlkit(directory.path(), args);
        assert_eq!(said.code, 2, "{args:?}");
        assert!(
            said.err.contains("name a directory"),
            "{args:?}: {}",
            said.err
        );
    }
    assert!(!directory.path().join("-").exists());
    assert_eq!(
        etlkit(directory.path(), &["synth", "recipe.kdl", "-o", "./-"]).code,
        0
    );
}

/// A session whose file is cut in half.
const CUT: &str = r#"process "A.exe" { clr "core" { assembly "A" { module "A.dll" { methods 20 ready=10 } } }
    every "1ms" from="1s" until="2s" { throw 1 } }
session "a" file="FILE" { enable "runtime" keywords="Exception" level=5; fault "truncated" percent=50 }
at "2.5s" { stop "a" }"#;

#[test]
fn synth_verify_checks_traces_of_any_name() {
    let directory = tempfile::tempdir().unwrap();
    for file in ["a.trace", "a.etl.001", "a.etl_4000", "a.ETL"] {
        std::fs::write(directory.path().join("s.kdl"), CUT.replace("FILE", file)).unwrap();
        let args = ["synth", "s.kdl", "-o", "out", "--verify", "--force"];
        let said = etlkit(directory.path(), &args);
        assert_eq!(said.code, 1, "{file}: {}{}", said.out, said.err);
        assert!(
            said.out.contains("incomplete") && said.err.is_empty(),
            "{file}: {}",
            said.out
        );
    }
}

#[test]
fn synth_never_overwrites_its_script() {
    let directory = tempfile::tempdir().unwrap();
    let part = r#"at "3s" { }"#;
    for file in ["s.kdl", "part.kdl"] {
        let script = format!("include \"part.kdl\"\n{}", CUT.replace("FILE", file));
        std::fs::write(directory.path().join("part.kdl"), part).unwrap();
        std::fs::write(directory.path().join("s.kdl"), &script).unwrap();
        let said = etlkit(directory.path(), &["synth", "s.kdl", "-o", ".", "--force"]);
        assert_eq!(said.code, 2, "{file}: {}", said.out);
        assert!(
            said.err.contains("is one of the inputs"),
            "{file}: {}",
            said.err
        );
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(
            (read("s.kdl").as_str(), read("part.kdl").as_str()),
            (script.as_str(), part)
        );
    }
}

#[test]
fn synth_reads_no_more_of_included_files_than_it_can_use() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    std::fs::create_dir(directory.path().join("folder")).unwrap();
    write("long.kdl", &" ".repeat(600 << 10));
    let (irregular, long) = ("not a regular file", "longer than 512 KiB");
    let mut scripts = vec![
        ("include \"folder\"", irregular),
        ("include \"long.kdl\"", long),
        ("at \"1s\" { replay \"folder\" }", irregular),
    ];
    if cfg!(unix) {
        scripts.push(("include \"/dev/zero\"", irregular));
        scripts.push(("at \"1s\" { replay \"/dev/zero\" }", irregular));
    }
    for (script, problem) in scripts {
        write("s.kdl", script);
        let said = etlkit(directory.path(), &["synth", "--check", "s.kdl"]);
        assert_eq!(said.code, 2);
        assert!(said.err.contains(problem), "{script}: {}", said.err);
    }
}

#[test]
fn synth_count_needs_a_seed_for_each_variant() {
    let directory = with_recipe();
    let seed = (u64::MAX - 1).to_string();
    let args = [
        "synth",
        "recipe.kdl",
        "-o",
        "out",
        "--seed",
        &seed,
        "--count",
    ];
    let said = etlkit(directory.path(), &[&args[..], &["3"]].concat());
    assert_eq!(said.code, 2);
    assert!(said.err.contains("there are no 3 seeds"), "{}", said.err);
    assert_eq!(
        etlkit(directory.path(), &[&args[..], &["2"]].concat()).code,
        0
    );
    let made: Vec<_> = std::fs::read_dir(directory.path().join("out"))
        .unwrap()
        .collect();
    assert_eq!(made.len(), 2);
}

#[test]
fn synth_takes_the_last_setting_of_a_parameter() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "param \"n\" 1\nscenario \"s\" seed=1 about=\"{n}\"\nsession \"s\" file=\"s{n}.etl\"";
    std::fs::write(directory.path().join("s.kdl"), script).unwrap();
    let args = [
        "synth", "s.kdl", "-o", "out", "--set", "n=3", "--set", "n=4",
    ];
    assert_eq!(etlkit(directory.path(), &args).code, 0);
    assert!(directory.path().join("out/s4.etl").exists());
}

#[test]
fn synth_writes_what_a_verifier_has_to_find() {
    let directory = with_recipe();
    let read = |path: &str| std::fs::read_to_string(directory.path().join(path));
    assert_eq!(
        etlkit(directory.path(), &["synth", "recipe.kdl", "-o", "out"]).code,
        0
    );
    let text: serde_json::Value =
        serde_json::from_str(&read("out/recipe.expected.json").unwrap()).unwrap();
    assert_eq!(text["verdict"], "complete");
    assert_eq!(text["exit_code"], 0);
    assert_eq!(text["sessions"][0]["name"], "clr");
    // With another parameter it is not known, and the file of the old trace does not stay.
    let args = [
        "synth",
        "recipe.kdl",
        "-o",
        "out",
        "--force",
        "--set",
        "rundown=0xB8",
    ];
    assert_eq!(etlkit(directory.path(), &args).code, 0);
    assert!(read("out/recipe.expected.json").is_err());
}

#[test]
fn info_names_the_clock_of_a_trace_and_its_rate() {
    let script = r#"
machine frequency=3000000 mhz=2500
session "q" file="q.etl" clock="qpc"
session "s" file="s.etl" clock="system"
session "c" file="c.etl" clock="cycle"
at "1s" { stop "q"; stop "s"; stop "c" }"#;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("clocks.kdl"), script).unwrap();
    assert_eq!(
        etlkit(directory.path(), &["synth", "clocks.kdl", "-o", "."]).code,
        0
    );
    for (file, clock, rate) in [
        ("q.etl", "QPC", 3_000_000),
        ("s.etl", "system time", 10_000_000),
        ("c.etl", "CPU cycles", 2_500_000_000u64),
    ] {
        let text = etlkit(directory.path(), &["info", file]).out;
        assert!(
            text.contains(&format!("{clock}, {rate} ticks a second")),
            "{text}"
        );
        let json = etlkit(directory.path(), &["info", "--format", "json", file]).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["clock"], &json["ticks_per_second"]),
            (&clock.into(), &rate.into())
        );
        assert_eq!(json["perf_freq"], 3_000_000);
    }
}

#[test]
fn synth_shows_script_errors() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "scenario \"s\"\nprocess \"a.exe\" { treads 4 }\nat \"2 lightyears\" { stop \"x\" }\n";
    std::fs::write(directory.path().join("bad.kdl"), script).unwrap();
    let said = etlkit(directory.path(), &["synth", "--check", "bad.kdl"]);
    assert_eq!(said.code, 2);
    insta::assert_snapshot!("script_errors", said.err);
}

#[test]
fn check_and_timeline_write_nothing() {
    let directory = with_recipe();
    let checked = etlkit(directory.path(), &["synth", "--check", "recipe.kdl"]);
    assert_eq!((checked.code, checked.err.as_str()), (0, ""));
    insta::assert_snapshot!("check", checked.out);
    let script = r#"
scenario "short" seed=1
process "App.exe" {
    clr "core" { assembly "App" { module "C:\\App\\App.dll" { methods 4 ready=2 } } }
    at "1.5s" { jit 1 }
}
at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords=0x10 level=4; fault "truncated" percent=60 } }
at "2s" { enable "rundown" in="clr" keywords=0x118 level=5 }
at "3s" { stop "clr" }
"#;
    std::fs::write(directory.path().join("short.kdl"), script).unwrap();
    let explained = etlkit(directory.path(), &["synth", "--timeline", "short.kdl"]);
    assert_eq!((explained.code, explained.err.as_str()), (0, ""));
    insta::assert_snapshot!("timeline", explained.out);
    let mut left: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["recipe.kdl", "short.kdl"], "nothing is written");
}

/// Hostile names are escaped, in the timeline and in errors.
#[test]
fn script_errors_are_escaped() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = include_str!("hostile.kdl");
    std::fs::write(directory.path().join("hostile.kdl"), hostile).unwrap();
    let explained = etlkit(directory.path(), &["synth", "--timeline", "hostile.kdl"]);
    assert_eq!(explained.code, 0);
    let acts = |c: char| {
        c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{200b}'
    };
    assert!(!explained.out.contains(acts), "{:?}", explained.out);
    let names = [
        "=cmd|x9q\\u{1b}[2J\\u{202e}<script>",
        "=x9q\\u{1b}[31m<b>x9q</b>\\u{a}::warning::x9q",
    ];
    assert!(
        names.iter().all(|name| explained.out.contains(name)),
        "{}",
        explained.out
    );
    let bad = "process \"a.exe\" bits=\"\\u{1b}[2J\\u{202e}\" { xy }\n";
    std::fs::write(directory.path().join("bad.kdl"), bad).unwrap();
    let said = etlkit(directory.path(), &["synth", "--check", "bad.kdl"]);
    assert_eq!(said.code, 2);
    assert!(!said.err.contains(acts), "{:?}", said.err);
    insta::assert_snapshot!("hostile_script_errors", said.err);
}

#[test]
fn corpus_list_build_and_check() {
    let directory = with_recipe();
    let corpus = ["--corpus", "."];
    let run = |args: &[&str]| {
        etlkit(
            directory.path(),
            &[&["corpus"][..], args, &corpus[..]].concat(),
        )
    };
    let mut said = String::new();
    let mut say = |args: &[&str], code: i32| {
        let done = run(args);
        assert_eq!(done.code, code, "{args:?}: {}{}", done.out, done.err);
        said.push_str(&format!(
            "$ etlkit corpus {}\n{}{}\n",
            args.join(" "),
            done.out,
            done.err
        ));
    };
    say(&["list"], 0);
    say(&["check"], 2);
    say(&["check", "--update"], 0);
    say(&["check"], 0);
    say(&["build", "-o", "out"], 0);
    say(&["build", "-o", "out"], 2);
    say(&["build", "-o", "out", "--force", "recipe"], 0);
    say(&["build", "-o", "out", "recipes"], 2);
    let lock = directory.path().join("corpus.lock");
    let locked = std::fs::read_to_string(&lock).unwrap();
    std::fs::write(
        &lock,
        locked.replace("recipe.etl ", "recipe.etl 0") + "gone/x.etl 00000000 0\n",
    )
    .unwrap();
    say(&["check"], 1);
    // Differences from corpus.lock are warnings; the files are written.
    say(&["build", "-o", "again"], 0);
    assert!(directory.path().join("again/recipe/recipe.etl").exists());
    std::fs::write(
        &lock,
        locked.replace("recipe/recipe.etl", "recipe/other.etl"),
    )
    .unwrap();
    say(&["check", "recipe"], 1);
    insta::assert_snapshot!("corpus", slashes(&said));
}

/// `corpus check` must not pass if it finds no scenarios.
#[test]
fn corpus_without_scenarios_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("empty/parts")).unwrap();
    std::fs::write(
        directory.path().join("empty/parts/part.kdl"),
        "param \"a\" 1\n",
    )
    .unwrap();
    std::fs::write(directory.path().join("file.kdl"), "").unwrap();
    let mut said = String::new();
    for corpus in ["empty", "nowhere", "file.kdl"] {
        for job in [
            &["list"][..],
            &["check"],
            &["check", "--update"],
            &["build", "-o", "out"],
        ] {
            let done = etlkit(
                directory.path(),
                &[&["corpus", "--corpus", corpus], job].concat(),
            );
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{corpus} {job:?}");
            assert!(
                done.err.contains("\nhint: --corpus "),
                "{corpus} {job:?}: {}",
                done.err
            );
            if job == ["check"] {
                said.push_str(&format!(
                    "$ etlkit corpus check --corpus {corpus}\n{}\n",
                    done.err
                ));
            }
        }
    }
    insta::assert_snapshot!("no_corpus", said);
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 2, "nothing is made");
}
