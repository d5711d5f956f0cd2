//! Providers by name, and command lines: `spec`, and the options that take the same names.

use crate::common::{directory, etlkit, etlkit_piped};
use crate::provider_names::{made_up, trace_of};

/// `Microsoft-Windows-Kernel-Process` as records hold it.
const KERNEL_PROCESS: [u8; 16] = [
    0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42, 0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16,
];

/// The ways to name it.
const NAMES: [&str; 3] = [
    "Microsoft-Windows-Kernel-Process",
    "{22FB2CD6-0E7B-422B-A0C7-2FAD1FD0E716}",
    "kernel-process",
];

#[test]
fn providers_of_windows_have_the_same_names_in_every_command() {
    let mut stopped = made_up(1_010, 2, &[0; 4]);
    stopped[0x18..0x28].copy_from_slice(&KERNEL_PROCESS);
    let trace = trace_of(&[stopped, made_up(1_020, 7, &[0; 4])]);
    let other = trace_of(&[made_up(1_020, 7, &[0; 4])]);
    let here = directory(&[("t.etl", &trace), ("o.etl", &other)]);
    for name in NAMES {
        let said = |args: &[&str]| {
            let said = etlkit(here.path(), args);
            assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
            said.out
        };
        let mask = said(&["spec", "mask", name, "0x50"]);
        let keywords = "keywords   WINEVENT_KEYWORD_PROCESS, WINEVENT_KEYWORD_IMAGE\n";
        assert!(
            mask.contains(keywords) && mask.contains(" ImageLoad "),
            "{mask}"
        );
        assert!(!mask.contains("Thread"), "{mask}");
        assert!(said(&["spec", "keywords", name]).contains("0x40  WINEVENT_KEYWORD_IMAGE\n"));
        assert!(said(&["spec", "line", &format!("{name}:0x50:5")]).contains("events    "));
        assert_eq!(said(&["dump", "t.etl", "--count", "-p", name]), "1\n");
        let ignore = format!("header,provider:{name}");
        said(&["diff", "t.etl", "o.etl", "--ignore", &ignore]);
        let enable = format!("{name}:0x50:5");
        let verified = etlkit(here.path(), &["verify", "t.etl", "--enable", &enable]);
        assert!(
            verified.out.contains(NAMES[0]),
            "{}{}",
            verified.out,
            verified.err
        );
    }
    let said = etlkit(
        here.path(),
        &["dump", "t.etl", "--count", "-p", "kernel-proces"],
    );
    assert_eq!((said.code, said.out.as_str()), (1, "0\n"));
}

#[test]
fn spec_says_why_a_provider_has_no_keywords() {
    let here = directory(&[]);
    for (provider, why) in [
        (
            "FileIo",
            "a class of kernel events has no keywords: it is enabled by kernel flags",
        ),
        (
            "Application Error",
            "it has no keywords: a session with any mask gets its events",
        ),
    ] {
        let said = etlkit(
            here.path(),
            &["spec", "keywords", provider, "--format", "json"],
        );
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, "[]\n"),
            "{provider}: {}",
            said.err
        );
        assert!(
            said.err.starts_with(&format!("note: {provider}: {why}")),
            "{}",
            said.err
        );
    }
    let said = etlkit(here.path(), &["spec", "mask", "FileIo", "1"]);
    assert!(
        said.code == 2 && said.err.contains("enabled by kernel flags"),
        "{}",
        said.err
    );
}

#[test]
fn spec_events_states_the_alignment_of_structs() {
    let here = directory(&[]);
    let said = etlkit(
        here.path(),
        &[
            "spec",
            "events",
            "runtime",
            "GCLOHCompact",
            "--format",
            "json",
        ],
    );
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let fields = json[0]["fields"].as_array().unwrap();
    let values = fields.iter().find(|field| field["align"] == "c");
    assert!(values.is_some_and(|field| field["type"].as_str().unwrap().starts_with("Struct")));
    assert!(fields.iter().any(|field| field["align"].is_null()));
}

#[test]
fn spec_mask_names_the_levels_of_core() {
    let here = directory(&[]);
    let said = etlkit(
        here.path(),
        &["spec", "mask", "runtime", "0x90", "--level", "4"],
    );
    for line in [
        "level 4 has no loads of compiled methods in .NET Core",
        "141 MethodLoad_V2  level 4 only (.NET Framework only)",
        "144 MethodUnloadVerbose_V2  from level 4  version",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    let tables = etlkit(here.path(), &["spec", "tables", "--level", "4"]);
    assert!(
        tables.out.contains("Load events (.NET Core: None) [X47]"),
        "{}",
        tables.out
    );
}

#[test]
fn spec_line_notes_names_that_nothing_has_with_the_nearest_ones() {
    let here = directory(&[]);
    for (line, note) in [
        (
            "xperf -on PROC_THREDA",
            "unknown kernel flag PROC_THREDA; the nearest name: PROC_THREAD",
        ),
        (
            "xperf -on Base -stackwalk CSwich",
            "unknown event of -stackwalk CSwich; the nearest name: CSwitch",
        ),
        (
            "xperf -start a -on Microsoft-Windows-Kernel-Proces:1",
            "no table has a provider Microsoft-Windows-Kernel-Proces; the nearest names: Microsoft-Windows-Kernel-Process,",
        ),
        (
            "logman start a -p Microsoft-Windows-Kernel-Process (WINEVENT_KEYWORD_IMAGES) 5 -ets",
            "unknown keyword WINEVENT_KEYWORD_IMAGES; the nearest name",
        ),
    ] {
        let said = etlkit(here.path(), &["spec", "line", line]);
        assert!(
            said.code == 0 && said.out.contains(&format!(" note      {note}")),
            "{}",
            said.out
        );
    }
    let sound = "xperf -on Base -stackwalk profile+0x0501+@events.txt -start a -on \
                 Microsoft-Windows-Kernel-Process:0x50:5";
    let said = etlkit(here.path(), &["spec", "line", sound]);
    assert!(
        said.code == 0 && !said.out.contains(" note "),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn spec_line_reads_scripts_of_the_command_prompt() {
    let script = "@echo off\r\nrem xperf -stop a\r\n@xperf -start a ^\r\n  -on Kernel:1:5 ^\r\n  -f a.etl\r\n\
                  timeout /t 15 >nul\r\nxprf -stop b\r\nxperf -stop a\r\n";
    let said = etlkit_piped(
        script.as_bytes(),
        &["spec", "line", "-", "--format", "json"],
    );
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let actions = |n: usize| &json[n]["actions"][0];
    assert_eq!((said.code, json.as_array().map(Vec::len)), (0, Some(2)));
    assert_eq!(
        (&actions(0)["action"], &actions(0)["file"]),
        (&"start".into(), &"a.etl".into())
    );
    assert_eq!(actions(1)["action"], "stop");
    let note =
        "note: line 7: xprf is left out: not a command of a session; the nearest name: xperf\n";
    assert_eq!(said.err, note);
}
