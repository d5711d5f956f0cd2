//! Values of fields in scripts, of each type, as numbers and as text.

use super::outcome;

#[test]
fn raise_accepts_values_of_each_type() {
    // Type, value in the script, value in the truth.
    let fields = [
        ("UnicodeString", "\"7\"", "\"7\""),
        ("UnicodeString", "\"round {n}\"", "\"round 3\""),
        ("AnsiString", "\"plain\"", "\"plain\""),
        ("Int8", "-5", "-5"),
        ("UInt8", "255", "255"),
        ("Int16", "\"-300\"", "-300"),
        ("UInt16", "\"{n}\"", "3"),
        ("Int32", "-70000", "-70000"),
        ("UInt32", "\"0x10\"", "16"),
        ("Int64", "-9", "-9"),
        ("UInt64", "18446744073709551615", "18446744073709551615"),
        ("Float", "1.5", "1.5"),
        ("Float", "2", "2.0"),
        ("Float", "\"{n}.25\"", "3.25"),
        ("Double", "-2.25", "-2.25"),
        ("Double", "7", "7.0"),
        ("Boolean", "#true", "true"),
        ("Boolean", "\"false\"", "false"),
        ("HexInt32", "0xff", "255"),
        ("Pointer", "0x1234", "4660"),
        (
            "GUID",
            "\"11111111-2222-3333-4444-555555555555\"",
            "\"11111111-2222-3333-4444-555555555555\"",
        ),
        ("FILETIME", "\"1601-01-01T00:00:01Z\"", "10000000"),
        ("FILETIME", "116444736000000000", "116444736000000000"),
        (
            "SYSTEMTIME",
            "\"2026-01-05T08:30:07.5Z\"",
            "[2026,1,1,5,8,30,7,500]",
        ),
        ("SYSTEMTIME", "116444736000000000", "[1970,1,4,1,0,0,0,0]"),
        ("SID", "\"system\"", "\"010100000000000512000000\""),
    ];
    for kind in ["manifest", "tracelogging"] {
        let declared: String = (0..)
            .zip(fields)
            .map(|(n, (ty, ..))| format!("field \"f{n}\" \"{ty}\"; "))
            .collect();
        let given: String = (0..)
            .zip(fields)
            .map(|(n, (_, value, _))| format!("f{n} {value}; "))
            .collect();
        let script = format!(
            r#"param "n" 3
            provider "p" kind="{kind}" {{ event "E" {{ {declared} }} }}
            process "App.exe" {{ at "1s" {{ raise "p" "E" {{ {given} }} }} }}
            session "s" file="s.etl" {{ enable "p" }}
            at "2s" {{ stop "s" }}"#
        );
        let out = outcome(&script, &[]).unwrap();
        let event = out
            .lines()
            .find(|l| l.contains("\"kind\":\"event\""))
            .unwrap();
        for (n, (ty, given, expected)) in (0..).zip(fields) {
            let field = format!("\"f{n}\":{expected}");
            let ends = event
                .split_once(&field)
                .map(|(_, rest)| rest.starts_with([',', '}']));
            assert_eq!(ends, Some(true), "{kind} {ty} {given}: {field} in {event}");
        }
    }
}

#[test]
fn raise_rejects_values_of_other_types() {
    for (ty, value) in [
        ("Int8", "300"),
        ("UInt16", "-1"),
        ("Int32", "\"three\""),
        ("Float", "\"half\""),
        ("Float", "1e39"),
        ("Binary", "\"0x00ff\""),
        ("Binary", "\"00f\""),
        ("Boolean", "2"),
        ("Boolean", "\"perhaps\""),
        ("GUID", "\"none\""),
        ("SID", "\"anyone\""),
        ("FILETIME", "\"yesterday\""),
        ("SYSTEMTIME", "\"13 o'clock\""),
    ] {
        let script = format!(
            r#"provider "p" {{ event "E" {{ field "f" "{ty}" }} }}
            process "App.exe" {{ at "1s" {{ raise "p" "E" {{ f {value} }} }} }}"#
        );
        let errors = super::parse(&script, &[]).expect_err(ty);
        assert_eq!(
            errors.as_slice()[0].message(),
            "f cannot have this value",
            "{ty} {value}"
        );
    }
}

#[test]
fn raise_sets_fields_and_texts_that_look_like_the_language() {
    let out = outcome(
        r#"param "n" 3
        provider "p" kind="manifest" { event "E" {
            field "param" "UInt32"; field "repeat" "UInt32"; field "include" "UnicodeString"
        } }
        process "App.exe" { at "1s" { raise "p" "E" {
            (field)param 7; (field)repeat 8; (field)include "{{\"a\": {n}, {{n}}"
        } } }
        session "s" file="s.etl" { enable "p" }
        at "2s" { stop "s" }"#,
        &[],
    );
    let fields = r#""fields":{"param":7,"repeat":8,"include":"{\"a\": 3, {n}}"}"#;
    assert!(out.unwrap().contains(fields));
}
