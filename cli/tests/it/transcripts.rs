//! The output of the tools for a small trace, intact and damaged.

use crate::common::{BUFFER, directory, etlkit, etlkit_piped, etlverify, trace};
use etl_test_support::needs;

#[test]
fn info_prints_text_and_json() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(here.path(), &["info", "t.etl"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!("info_text", said.out);
    let said = etlkit(here.path(), &["info", "--format", "json", "t.etl"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("info_json", said.out);
}

#[test]
fn dump_prints_every_format() {
    let here = directory(&[("t.etl", &trace())]);
    for format in ["text", "jsonl", "csv", "xml"] {
        let said = etlkit(here.path(), &["dump", "--raw", "--format", format, "t.etl"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(
            !said.out.contains('\x1b'),
            "an escape sequence came through"
        );
        insta::assert_snapshot!(format!("dump_{format}"), said.out);
    }
}

#[test]
fn dump_jsonl_is_valid_json() {
    let said = etlkit_piped(&trace(), &["dump", "--format", "jsonl", "-"]);
    let lines: Vec<serde_json::Value> = said
        .out
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let timestamps: Vec<_> = lines
        .iter()
        .map(|l| l["timestamp"].as_i64().unwrap())
        .collect();
    assert_eq!(timestamps, [1_000, 1_010, 1_020, 1_030, 1_040, 1_050]);
    assert_eq!(lines[3]["provider"], "Prov\x1b[31m\"=1");
}

#[test]
fn dump_filters_select_events() {
    let here = directory(&[("t.etl", &trace())]);
    for (args, timestamps) in [
        (&["--id", "2"][..], &[1_030][..]),
        (&["--id", "0xc"], &[1_050]),
        (&["--opcode", "7"], &[1_040]),
        (&["--level", "3"], &[1_000, 1_020, 1_040, 1_050]),
        (&["--keyword", "0x8"], &[1_000, 1_010, 1_020, 1_040, 1_050]),
        (&["--pid", "200", "--pid", "300"], &[1_040, 1_050]),
        (&["--tid", "101"], &[1_010, 1_030]),
        (
            &["-p", "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a", "--id", "1"],
            &[1_010],
        ),
        (&["-p", "PerfInfo"], &[1_020]),
        (&["-p", "prov\x1b[31M\"=1"], &[1_010, 1_030]),
        (&["--from", "0.000002", "--to", "0.000004"], &[1_020, 1_030]),
        (
            &["--from", "2022-06-18T04:26:40.000003Z"],
            &[1_030, 1_040, 1_050],
        ),
        (&["--limit", "2"], &[1_000, 1_010]),
        (
            &["--file-order"],
            &[1_000, 1_010, 1_030, 1_020, 1_040, 1_050],
        ),
    ] {
        let args = [&["dump", "--format", "jsonl", "t.etl"], args].concat();
        let said = etlkit(here.path(), &args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        let found: Vec<_> = said
            .out
            .lines()
            .map(|l| {
                serde_json::from_str::<serde_json::Value>(l).unwrap()["timestamp"]
                    .as_i64()
                    .unwrap()
            })
            .collect();
        assert_eq!(found, timestamps, "{args:?}");
    }
}

#[test]
fn standard_input_equals_file() {
    let here = directory(&[("t.etl", &trace())]);
    for args in [
        &["dump"][..],
        &["dump", "--file-order"],
        &["info", "--format", "json"],
    ] {
        let file = etlkit(here.path(), &[args, &["t.etl"]].concat());
        let pipe = etlkit_piped(&trace(), &[args, &["-"]].concat());
        assert_eq!(
            pipe.out.replace("(standard input)", "t.etl"),
            file.out,
            "{args:?}"
        );
        assert_eq!(pipe.code, 0);
    }
}

#[test]
fn damaged_trace_is_read_around_damage() {
    let cut = &trace()[..2 * BUFFER + 0x60];
    let here = directory(&[("cut.etl", cut)]);
    let said = etlkit(here.path(), &["info", "cut.etl"]);
    assert_eq!(said.code, 1);
    insta::assert_snapshot!("info_damaged", said.out);
    let said = etlkit(here.path(), &["dump", "cut.etl"]);
    assert_eq!((said.code, said.out.lines().count()), (1, 3));
    insta::assert_snapshot!("dump_damaged_warning", said.err);
    for tool in ["info", "dump"] {
        let said = etlkit(here.path(), &[tool, "--strict", "cut.etl"]);
        assert_eq!(said.code, 2);
        insta::assert_snapshot!(format!("strict_{tool}"), said.err);
    }
    let said = etlverify(here.path(), &["cut.etl"]);
    assert_eq!(said.code, 1);
}

#[test]
fn dump_stops_when_pipe_closes() {
    use std::process::{Command, Stdio};
    let here = directory(&[("t.etl", &trace().repeat(1))]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_etlkit"))
        .args(["completions", "bash"])
        .current_dir(here.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn spec_prints_tables() {
    let here = directory(&[]);
    for (name, args) in [
        ("mask_without_end", &["spec", "mask", "rundown", "0xB8"][..]),
        ("mask_of_the_recipe", &["spec", "mask", "rundown", "0x138"]),
        ("events", &["spec", "events", "runtime", "bulktype"]),
        (
            "events_json",
            &["spec", "events", "rundown", "DCEndInit", "--format", "json"],
        ),
        ("providers", &["spec", "providers"]),
        ("keywords", &["spec", "keywords", "rundown"]),
        ("providers_search", &["spec", "providers", "RUNDOWN"]),
        ("keywords_search", &["spec", "keywords", "runtime", "heap"]),
        (
            "keywords_of_a_mask",
            &["spec", "keywords", "runtime", "0x138"],
        ),
        ("events_of_the_kernel", &["spec", "events", "Image"]),
        (
            "events_documented",
            &[
                "spec",
                "events",
                "rundown",
                "methoddc",
                "--event-tables",
                "documented",
            ],
        ),
        (
            "mask_runtime",
            &["spec", "mask", "runtime", "0x1CCBD", "--level", "4"],
        ),
        ("mask_ngen_alone", &["spec", "mask", "runtime", "0x20"]),
        (
            "mask_json",
            &["spec", "mask", "rundown", "0xB8", "--format", "json"],
        ),
        (
            "mask_documented",
            &[
                "spec",
                "mask",
                "rundown",
                "0x900",
                "--event-tables",
                "documented",
            ],
        ),
        ("tables", &["spec", "tables"]),
        (
            "tables_at_level_4",
            &[
                "spec",
                "tables",
                "--level",
                "4",
                "--event-tables",
                "documented",
            ],
        ),
        (
            "tables_json",
            &["spec", "tables", "--level", "4", "--format", "json"],
        ),
        ("errata", &["errata"]),
        ("erratum", &["errata", "x04"]),
        ("erratum_json", &["errata", "X30", "--format", "json"]),
    ] {
        let said = etlkit(here.path(), args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
        insta::assert_snapshot!(format!("spec_{name}"), said.out);
    }
    for args in [
        &["spec", "mask", "unknown", "1"][..],
        &["spec", "mask", "Thread", "1"],
        &["spec", "events", "runtime", "nothing"],
        &["spec", "keywords", "runtime", "nothing"],
        &["spec", "providers", "nothing"],
        &["errata", "X99"],
    ] {
        let said = etlkit(here.path(), args);
        assert_eq!((said.code, said.out.as_str()), (2, ""));
        assert!(said.err.contains("hint: "), "{args:?}: {}", said.err);
    }
    let said = etlkit(here.path(), &["spec", "mask", "runtime", "0xZZ"]);
    assert!(
        said.code == 2 && said.err.contains("hexadecimal one with 0x"),
        "{}",
        said.err
    );
}

#[test]
fn spec_line_notes_unknown_flags_of_the_kernel() {
    let here = directory(&[]);
    let spec = |line| etlkit(here.path(), &["spec", "line", line]).out;
    let line = "xperf -on PROC_THREAD+LODER";
    assert!(
        spec(line)
            .ends_with("  kernel    PROC_THREAD, LODER\n  note      unknown kernel flag LODER; the nearest name: LOADER\n")
    );
    let said = etlkit(here.path(), &["spec", "line", "--format", "json", line]);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        json["actions"][0]["unknown_kernel"],
        serde_json::json!(["LODER"])
    );
    for line in [
        "xperf -on Base+DPC+0x4",
        "tracelog -start \"NT Kernel Logger\" -img -f a.etl",
        "logman start \"NT Kernel Logger\" -p \"Windows Kernel Trace\" (process,img) -ets",
    ] {
        assert!(
            spec(line).contains("kernel") && !spec(line).contains("unknown"),
            "{}",
            spec(line)
        );
    }
}

#[test]
fn spec_line_explains_command_lines() {
    let here = directory(&[]);
    let recipe =
        "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl";
    let many = "tracelog -start clr -guid #e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 -matchanykw 0x18 \
                -matchallkw 0x10 -level 4 -f clr.etl -cir 100 -b 64 -min 4 -max 16 -rt -UsePerfCounter \
                -EventIdFilter -in 2 141 143 -PidFilter 1 42";
    for (name, args) in [
        ("recipe", &["spec", "line", recipe][..]),
        ("tracelog", &["spec", "line", "--events", many]),
        (
            "json",
            &[
                "spec",
                "line",
                "--format",
                "json",
                "A669021C-C450-4609-A035-5AF59AF4DF18:0xB8:5",
            ],
        ),
    ] {
        let said = etlkit(here.path(), args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
        insta::assert_snapshot!(format!("spec_line_{name}"), said.out);
    }
    // A script from a document, with its dashes.
    let script = "xperf –on SysProf+CSWITCH –stackwalk Profile -f k.etl\r\n\r\n\
                  xperf –start rundown –on A669021C-C450-4609-A035-5AF59AF4DF18:0xB8:0x5:'stack' –f clr2.etl \
                  (wait for 30 seconds)\r\n\
                  xperf -stop (stop all profiling)\r\n\
                  xperf -merge -d clr1.etl clr2.etl merged.etl\r\n\
                  logman update x --p \"Some Provider\" --rt -ets\r\n";
    let said = etlkit_piped(script.as_bytes(), &["spec", "line", "-"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!("spec_line_script", said.out);
    let said = etlkit(
        here.path(),
        &["spec", "line", "xperf -start clr -on A:0xZZ:5 -f a.etl"],
    );
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    insta::assert_snapshot!("spec_line_error", said.err);
    let said = etlkit_piped(b"\n", &["spec", "line", "-"]);
    assert_eq!(said.code, 2);
}

#[test]
fn dump_prints_decoded_fields() {
    // MethodLoadVerbose_V1 of the runtime provider, with a hostile name.
    let mut payload = Vec::new();
    for n in [1u64, 2, 0x7fff_0000] {
        payload.extend(n.to_le_bytes());
    }
    for n in [0x40u32, 0x0600_0001, 0x9] {
        payload.extend(n.to_le_bytes());
    }
    for text in ["Ns", "M\u{1b}[2J\u{202e}", "void ()"] {
        payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    // An unpaired surrogate stays visible.
    let at = payload.len() - 4;
    payload[at..at + 2].copy_from_slice(&0xd800u16.to_le_bytes());
    payload.extend(9u16.to_le_bytes());
    let runtime = [
        0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27,
        0xe4,
    ];
    let bytes = crate::common::trace_of(runtime, 143, 1, &payload);
    let here = directory(&[("t.etl", &bytes)]);
    for format in ["text", "jsonl"] {
        let said = etlkit(
            here.path(),
            &["dump", "--format", format, "-p", "runtime", "t.etl"],
        );
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(!said.out.contains('\x1b') && !said.out.contains('\u{202e}'));
        insta::assert_snapshot!(format!("fields_{format}"), said.out);
    }
}

#[test]
fn verify_prints_every_format() {
    // A truncated trace has one finding, which every format can represent.
    let here = directory(&[
        ("cut.etl", &trace()[..2 * BUFFER + 0x60]),
        ("t.etl", &trace()),
    ]);
    for format in ["text", "json", "sarif", "junit", "github", "markdown"] {
        let said = etlverify(here.path(), &["--format", format, "cut.etl"]);
        assert_eq!((said.code, said.err.as_str()), (1, ""), "{format}");
        insta::assert_snapshot!(format!("verify_{format}"), said.out);
    }
    for format in ["json", "sarif"] {
        let said = etlverify(here.path(), &["--format", format, "."]);
        let both: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let reports = if format == "json" {
            &both
        } else {
            &both["runs"][0]["properties"]["traces"]
        };
        assert_eq!(
            reports.as_array().unwrap().len(),
            2,
            "a directory stands for its traces"
        );
    }
}

#[test]
fn allow_and_deny_change_the_verdict() {
    let here = directory(&[("cut.etl", &trace()[..2 * BUFFER + 0x60])]);
    let said = etlverify(here.path(), &["--allow", "file", "cut.etl"]);
    assert_eq!(said.code, 0, "nothing is left to find: {}", said.out);
    assert!(said.out.contains("left out by the policy"));
    let said = etlverify(
        here.path(),
        &["--allow", "file", "--deny", "file.damaged", "cut.etl"],
    );
    assert_eq!(said.code, 1, "what is denied is not left out");
    let said = etlverify(here.path(), &["--min-coverage", "101", "cut.etl"]);
    assert!(
        said.code == 2 && said.err.contains("0 to 100"),
        "{}",
        said.err
    );
    for args in [
        &["--explain", "nothing.such"][..],
        &["--deny", "nothing", "cut.etl"],
    ] {
        let said = etlverify(here.path(), args);
        assert_eq!(said.code, 2);
        assert!(said.err.contains("unknown rule"), "{}", said.err);
    }
    let said = etlverify(here.path(), &["--explain", "rundown.unclosed"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("explain", said.out);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn min_coverage_decides_the_verdict() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let (here, file) = (directory(&[]), path.to_str().unwrap());
    let run = |least: &str| {
        etlverify(
            here.path(),
            &[
                "--allow",
                "symbols.unresolved",
                "--min-coverage",
                least,
                file,
            ],
        )
    };
    assert_eq!(run("99.9").code, 0);
    let said = run("99.95");
    assert!(
        said.code == 1 && said.out.contains("symbols.coverage"),
        "{}",
        said.out
    );
}

#[test]
fn manifest_option_names_fields() {
    let manifest = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
      <instrumentation><events>
        <provider name="Demo-Provider" guid="{5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a}" symbol="DEMO">
          <templates><template tid="t"><data name="Count" inType="win:UInt32"/></template></templates>
          <events><event value="7" version="0" symbol="DemoStart" template="t"/></events>
        </provider>
      </events></instrumentation>
    </instrumentationManifest>"#;
    let bytes = crate::common::trace_of([0x5a; 16], 7, 0, &42u32.to_le_bytes());
    // UTF-16 with a byte order mark, as Windows tools write it.
    let wide: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(manifest.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let here = directory(&[
        ("t.etl", &bytes),
        ("demo.man", manifest.as_bytes()),
        ("wide.man", &wide),
        ("no.man", b"<x"),
    ]);
    for file in ["demo.man", "wide.man"] {
        let args = [
            "dump",
            "--format",
            "jsonl",
            "--id",
            "7",
            "--manifest",
            file,
            "t.etl",
        ];
        let said = etlkit(here.path(), &args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{file}");
        let line: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            (&line["event"], &line["fields"]["Count"]),
            (&"DemoStart".into(), &42.into())
        );
    }
    let said = etlkit(here.path(), &["dump", "--manifest", "no.man", "t.etl"]);
    assert!(
        said.code == 2 && said.err.contains("no.man") && said.err.contains("hint: "),
        "{}",
        said.err
    );
}

#[needs(trace = "perfview/primitive-types.etl")]
#[test]
fn dump_decodes_tracelogging() {
    let path = etl_test_support::trace("perfview/primitive-types.etl");
    let here = directory(&[]);
    let said = etlkit(
        here.path(),
        &["dump", "-p", "solar_system", path.to_str().unwrap()],
    );
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(said.out.lines().count(), 5);
    assert!(
        said.out
            .contains("PrimitiveTypesTest string_type=\"Mercury\" boolean_type=false"),
        "{}",
        said.out
    );
}
