//! Options that several commands have, and options that exclude each other.

use crate::common::{directory, etlkit, trace};
use crate::provider_names::{MANIFEST, made_up, trace_of};

/// clap does not insist on a required option that conflicts with another one that is there.
#[test]
fn options_without_effect_are_refused() {
    let here = directory(&[("t.etl", &trace())]);
    let refused = |args: &[&str], what: &str| {
        let said = etlkit(here.path(), args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        let (option, other) = what.split_once(' ').unwrap();
        let is_named = said.err.contains(option) && said.err.contains(other);
        assert!(
            is_named && said.err.contains("cannot be used with"),
            "{args:?}: {}",
            said.err
        );
    };
    for kind in ["cpu", "waits"] {
        for (option, with) in [
            (&["--min-percent", "50"][..], &["--group-by", "method"][..]),
            (&["--min-percent", "50"], &["--focus", "X"]),
            (&["--unfold"], &["--group-by", "method"]),
            (&["--unfold"], &["--focus", "X"]),
        ] {
            let args = [&["analyze", kind, "t.etl"], option, with].concat();
            refused(&args, &format!("{} {}", option[0], with[0]));
        }
    }
    refused(
        &["analyze", "cpu", "t.etl", "--normalize", "--tree"],
        "--normalize --tree",
    );
    refused(
        &["analyze", "cpu", "t.etl", "--normalize", "--focus", "X"],
        "--normalize --focus",
    );
    refused(
        &["verify", "--rules", "--format", "json"],
        "--rules --format",
    );
    refused(
        &["verify", "--explain", "rundown.none", "--format", "json"],
        "--explain --format",
    );
    let said = etlkit(
        here.path(),
        &["analyze", "cpu", "t.etl", "--min-percent", "50"],
    );
    assert!(
        said.code == 2 && said.err.contains("--tree"),
        "{}",
        said.err
    );
}

#[test]
fn several_texts_of_grep_select_events_with_any_of_them() {
    let payload = |text: &[u8; 4]| made_up(1_010, 7, text);
    let trace = trace_of(&[
        payload(&[5, 0, 0, 0]),
        payload(&[6, 0, 0, 0]),
        payload(&[7, 0, 0, 0]),
    ]);
    let here = directory(&[("t.etl", &trace), ("m.man", MANIFEST.as_bytes())]);
    for (texts, count) in [(&["5"][..], "1\n"), (&["5", "7"], "2\n"), (&["8"], "0\n")] {
        let mut args = vec![
            "dump",
            "t.etl",
            "--manifest",
            "m.man",
            "--id",
            "7",
            "--count",
        ];
        texts.iter().for_each(|text| args.extend(["--grep", text]));
        assert_eq!(etlkit(here.path(), &args).out, count, "{texts:?}");
    }
}

/// The test trace counts 10 MHz, and begins at tick 1000.
#[test]
fn from_and_to_take_seconds_and_durations() {
    let here = directory(&[("t.etl", &trace())]);
    let out = |from: &str| {
        let said = etlkit(
            here.path(),
            &["dump", "t.etl", "--from", from, "--relative"],
        );
        assert_eq!(said.code, 0, "{from}: {}", said.err);
        said.out
    };
    let all = out("0");
    let some = out("0.0000025");
    assert!(!some.is_empty() && some.len() < all.len(), "{some}");
    for same in ["2.5us", "2500ns", "0.0025ms", "0.0000025s"] {
        assert_eq!(out(same), some, "{same}");
    }
    for wrong in ["1 day", "ms", "1m", "nan"] {
        let said = etlkit(here.path(), &["dump", "t.etl", "--from", wrong]);
        assert!(
            said.code == 2 && said.err.contains("is not a time"),
            "{wrong}: {}",
            said.err
        );
    }
}

#[test]
fn numbers_are_decimal_or_hexadecimal() {
    let script = "scenario \"s\" seed=1\nprocess \"A.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { \
                  methods 20 ready=10 } } }\n every \"1ms\" from=\"1s\" until=\"2s\" { throw 1 } }\n\
                  session \"a\" file=\"a.etl\" { enable \"runtime\" keywords=\"Exception\" level=5 }\n\
                  at \"2.5s\" { stop \"a\" }";
    let here = directory(&[("s.kdl", script.as_bytes())]);
    let same = |args: &[&str], hexadecimal: &str, decimal: &str| {
        let [hex, dec] =
            [hexadecimal, decimal].map(|n| etlkit(here.path(), &[args, &[n]].concat()));
        assert_eq!((hex.code, hex.out), (0, dec.out), "{args:?}: {}", hex.err);
    };
    same(&["spec", "mask", "runtime", "0x98", "--level"], "0x4", "4");
    same(&["spec", "tables", "--level"], "0x4", "4");
    same(&["synth", "s.kdl", "--timeline", "--seed"], "0x10", "16");
}

#[test]
fn blanks_after_the_commas_of_lists_do_not_count() {
    let here = directory(&[("t.etl", &trace())]);
    let dump = |columns| {
        etlkit(
            here.path(),
            &["dump", "t.etl", "--format", "csv", "--columns", columns],
        )
    };
    let said = dump("time, pid , tid");
    assert_eq!(
        (said.code, said.err.as_str(), said.out),
        (0, "", dump("time,pid,tid").out)
    );
    let said = etlkit(
        here.path(),
        &["diff", "t.etl", "t.etl", "--ignore", "time, ids"],
    );
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn commands_that_decode_take_manifests() {
    let values = |n: u8| trace_of(&[made_up(1_010, 7, &[n, 0, 0, 0])]);
    let files = [
        ("a.etl", values(5)),
        ("b.etl", values(6)),
        ("m.man", MANIFEST.as_bytes().to_vec()),
    ];
    let here = directory(&files.each_ref().map(|(name, bytes)| (*name, &bytes[..])));
    let with = ["--manifest", "m.man"];
    let diff = ["diff", "a.etl", "b.etl"];
    let said = etlkit(here.path(), &[&diff[..], &with].concat());
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.out.contains("Stepped") && said.out.contains("N: 5"),
        "{}",
        said.out
    );
    let ignored = [&diff[..], &with, &["--ignore", "header,field:N"]].concat();
    assert_eq!(etlkit(here.path(), &ignored).code, 0);
    let scrub = [
        "scrub", "a.etl", "-o", "s.etl", "--force", "--field", "N=drop",
    ];
    let said = etlkit(here.path(), &[&scrub[..], &with].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let dump = [&["dump", "s.etl", "--id", "7"][..], &with].concat();
    assert!(etlkit(here.path(), &dump).out.ends_with("Stepped N=0\n"));
    let said = etlkit(here.path(), &scrub);
    assert!(
        said.err.contains("no event has the field N"),
        "{}",
        said.err
    );
}

#[test]
fn json_of_files_that_cannot_be_read_is_an_empty_list() {
    let here = directory(&[]);
    let said = etlkit(here.path(), &["info", "--format", "json", "a.etl", "b.etl"]);
    assert_eq!((said.code, said.out.as_str()), (2, "[]\n"));
    assert!(said.err.contains("a.etl: file not found") && said.err.contains("b.etl"));
    let said = etlkit(here.path(), &["info", "--format", "json", "a.etl"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (2, ""),
        "it would be one object"
    );
}

#[test]
fn members_are_of_archives_and_not_of_directories() {
    let here = directory(&[("t.etl", &trace())]);
    std::fs::create_dir(here.path().join("d")).unwrap();
    std::fs::write(here.path().join("d/t.etl"), trace()).unwrap();
    let message = "is a directory, and --member chooses from a ZIP archive";
    for command in ["info", "dump", "verify"] {
        let said = etlkit(here.path(), &[command, "d", "--member", "t.etl"]);
        assert_eq!(said.code, 2, "{command}");
        assert!(
            said.err.contains(&format!("d: {message}")),
            "{command}: {}",
            said.err
        );
        assert!(!said.out.contains("t.etl"), "{command}: {}", said.out);
    }
}

/// The help is the same in every build; what was left out says how to get it.
#[test]
#[cfg(not(feature = "symbols"))]
fn symbols_that_were_not_built_say_how_to_get_them() {
    let here = directory(&[("t.etl", &trace())]);
    for command in [
        &["symbols", "list", "t.etl"][..],
        &["analyze", "cpu", "--symbols", ".", "t.etl"],
        &["dump", "--resolve", "--symbols", ".", "t.etl"],
    ] {
        let said = etlkit(here.path(), command);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{command:?}");
        let message = "was built without it\nhint: build one that has it: ";
        assert!(said.err.contains(message), "{command:?}: {}", said.err);
    }
}

#[test]
#[cfg(feature = "symbols")]
fn symbols_name_a_directory_that_is_not_there() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(
        here.path(),
        &["analyze", "cpu", "--symbols", "nodir", "t.etl"],
    );
    let message = "error: nodir: there is no such file or directory\nhint: --symbols names a PDB";
    assert!(
        said.code == 2 && said.err.starts_with(message),
        "{}",
        said.err
    );
    assert!(!said.err.contains("os error"), "{}", said.err);
}
