//! The report of each kind of error in a script: its location, what is wrong, what is expected.

use std::fmt::Write;

use super::parse;

/// Kinds of errors, with a script for each.
const ERRORS: &[(&str, &str)] = &[
    ("not KDL", "process \"a.exe\" {"),
    (
        "nodes without a separator",
        "at \"1s\" { stop \"a\" } at \"2s\" { stop \"b\" }",
    ),
    ("a node that is not known", "proces \"a.exe\""),
    ("an argument is missing", "process"),
    ("too many arguments", "process \"a.exe\" \"b.exe\""),
    ("a property that is not known", "process \"a.exe\" thread=4"),
    (
        "braces where there is nothing inside",
        "end \"2s\" { stop \"s\" }",
    ),
    ("no number", "repeat \"many\" { session \"s\" }"),
    (
        "a number that is too large",
        "process \"a.exe\" pid=99999999999",
    ),
    (
        "a signed number that is too large",
        "session \"s\" { fault \"skew\" ticks=9223372036854775808 }",
    ),
    ("no time", "end \"2 lightyears\""),
    (
        "no end",
        "process \"a.exe\" { every \"1s\" until=\"never\" { run \"1ms\" } }",
    ),
    (
        "a clock that overflows",
        "machine uptime=\"2000000h\" mhz=5000; session \"s\" file=\"s.etl\" clock=\"cycle\"",
    ),
    (
        "the file of a provider",
        "provider \"P\" kind=\"manifest\" { event \"E\" }; session \"s\" file=\"p.MAN\"",
    ),
    (
        "one file on Windows",
        "session \"s\" file=\"x.etl\"; at \"1s\" { stop \"s\"; merge \"x.etl\" into=\"X.etl\" }",
    ),
    (
        "a type that TraceLogging does not have",
        "provider \"p\" kind=\"tracelogging\" { event \"E\" { field \"F\" \"SizeT\" } }",
    ),
    (
        "a number that does not fit",
        "session \"s\" file=\"s.etl\"; edit \"s.etl\" { header \"events-lost\" set=0x1FFFFFFFF }",
    ),
    (
        "a start before the clock",
        "machine start=\"1601-01-01T00:00:00Z\" uptime=\"1h\"",
    ),
    (
        "a session without a file",
        "session \"s\" mode=\"independent\"",
    ),
    (
        "no record of this number",
        "session \"s\" file=\"s.etl\"; edit \"s.etl\" { delete \"*\" nth=0 }",
    ),
    (
        "neither yes nor no",
        "process \"a.exe\" { clr \"core\" { domain \"d\" late=\"perhaps\" } }",
    ),
    ("no such word", "process \"a.exe\" bits=\"16\""),
    (
        "no version",
        "process \"a.exe\" { clr \"core\" version=\"six\" }",
    ),
    (
        "no range",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { methods 3 size=\"10..2\" } } } }",
    ),
    (
        "no such spread",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { methods 3 size=\"even 2..10\" } } } }",
    ),
    ("no such provider", "session \"s\" { enable \"runtim\" }"),
    (
        "no such keyword",
        "session \"s\" { enable \"rundown\" keywords=\"Loadr\" }",
    ),
    ("nothing of that name", "session \"{name}\""),
    ("a script that is not there", "include \"gone.kdl\""),
    ("an error in another script", "include \"bad.kdl\""),
    ("a machine without processors", "machine processors=0"),
    ("a clock that does not tick", "machine frequency=0"),
    (
        "a part that no machine has",
        "machine { disc \"Fast\" gb=10 }",
    ),
    ("a disk without a name", "machine { disk gb=10 }"),
    (
        "more than a disk holds",
        "machine { disk \"Small\" gb=10 { volume \"C:\" gb=6; volume \"D:\" gb=5 } }",
    ),
    (
        "what no disk has",
        "machine { disk \"Odd\" { partition \"C:\" } }",
    ),
    (
        "no letter of a volume",
        "machine { disk \"Odd\" { volume \"System\" } }",
    ),
    (
        "more free than there is",
        "machine { disk \"Odd\" gb=10 { volume \"C:\" gb=5 free-gb=6 } }",
    ),
    (
        "no physical address",
        "machine { network-card \"Ethernet\" address=\"10.0.0.5\" }",
    ),
    (
        "no size of a display",
        "machine { display \"Screen\" width=\"wide\" }",
    ),
    (
        "what no display has",
        "machine { display \"Screen\" depth=32 }",
    ),
    (
        "a service without a name",
        "machine { service display=\"Does it\" }",
    ),
    (
        "what no service has",
        "machine { service \"Work\" account=\"system\" }",
    ),
    ("no date", "machine start=\"yesterday\""),
    ("no minutes", "machine bias=\"west\""),
    ("no SID", "process \"a.exe\" user=\"anyone\""),
    (
        "no GUID of a PDB",
        "process \"a.exe\" { image \"a.dll\" pdb=\"nothing\" }",
    ),
    (
        "no version of a file",
        "process \"a.exe\" { image \"a.dll\" version=\"newest\" }",
    ),
    (
        "no signature",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { pdb signature=\"none\" } } } }",
    ),
    (
        "too deep a stack",
        "process \"a.exe\" { clr \"core\" stack-depth=\"8..1000\" }",
    ),
    (
        "too many heaps",
        "process \"a.exe\" { clr \"core\" heaps=100 }",
    ),
    (
        "half a name",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { method \"Open\" } } } }",
    ),
    (
        "too many methods",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { methods 2000000 } } } }",
    ),
    (
        "precompiled code without an image",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { methods 3 kind=\"precompiled\" } } } }",
    ),
    (
        "a cold part of compiled code",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" { module \"A.dll\" { methods 3 cold=#true } } } }",
    ),
    ("every without an end", "every \"1ms\" { stop \"s\" }"),
    (
        "a period of nothing",
        "every \"0s\" until=\"1s\" { stop \"s\" }",
    ),
    ("no such happening", "at \"1s\" { stopp \"s\" }"),
    ("no such work", "process \"a.exe\" { at \"1s\" { jitt 3 } }"),
    (
        "no letter of a file",
        "process \"a.exe\" { at \"1s\" { read-file \"orders.db\" } }",
    ),
    (
        "nothing to read",
        "process \"a.exe\" { at \"1s\" { read-file \"C:\\\\a\" bytes=0 } }",
    ),
    (
        "no port",
        "process \"a.exe\" { at \"1s\" { connect \"10.0.0.9\" } }",
    ),
    (
        "a port of a connection",
        "process \"a.exe\" { at \"1s\" { send \"10.0.0.9:1\" port=5 } }",
    ),
    (
        "no such generation",
        "process \"a.exe\" { at \"1s\" { gc 3 } }",
    ),
    (
        "no such handle",
        "process \"a.exe\" { at \"1s\" { handle 3 kind=\"loose\" } }",
    ),
    (
        "no such process",
        "process \"a.exe\"\nat \"1s\" { in \"b.exe\" { exit } }",
    ),
    (
        "enable without a session",
        "at \"1s\" { enable \"runtime\" }",
    ),
    (
        "capture-state without a session",
        "at \"1s\" { capture-state \"runtime\" }",
    ),
    (
        "merge without a file",
        "at \"1s\" { merge \"a.etl b.etl\" }",
    ),
    (
        "a file in a directory",
        "session \"s\" file=\"C:\\\\s.etl\"",
    ),
    ("no such mode", "session \"s\" mode=\"round\""),
    ("a buffer that is too small", "session \"s\" buffer-kb=1"),
    (
        "ids that are none",
        "session \"s\" { enable \"runtime\" ids=\"MethodLoad\" }",
    ),
    (
        "too many processes",
        "session \"s\" { enable \"runtime\" processes=\"1 2 3 4 5 6 7 8 9\" }",
    ),
    (
        "what the kernel does not log",
        "session \"s\" { kernel \"everything\" }",
    ),
    (
        "a change of the kernel's flags in no session",
        "at \"1s\" { kernel \"processes\" }",
    ),
    (
        "a flag that the kernel does not have",
        "at \"1s\" { run \"xperf -update -on PROC_THREAD+CSWICH\" }",
    ),
    ("no such fault", "session \"s\" { fault \"burnt\" }"),
    ("a fault of no session", "fault \"torn\""),
    ("a command line", "at \"1s\" { run \"xperf -strat clr\" }"),
    (
        "what a command line asks for",
        "at \"1s\" { run \"logman start odd -p nothing -ets\" }",
    ),
    ("no GUID of a provider", "provider \"p\" guid=\"none\""),
    (
        "a message without a text",
        "provider \"p\" kind=\"wpp\" { event \"E\" }",
    ),
    (
        "no such type",
        "provider \"p\" { event \"E\" { field \"F\" \"Word\" } }",
    ),
    (
        "a type that messages lack",
        "provider \"p\" kind=\"wpp\" { event \"E\" message=\"%10!s!\" { field \"F\" \"Boolean\" } }",
    ),
    (
        "a provider that is not declared",
        "process \"a.exe\" { at \"1s\" { raise \"p\" \"E\" } }",
    ),
    (
        "no such event",
        "provider \"p\" { event \"E\" }\nprocess \"a.exe\" { at \"1s\" { raise \"p\" \"F\" } }",
    ),
    (
        "no such field",
        "provider \"p\" { event \"E\" { field \"F\" \"Int32\" } }\nprocess \"a.exe\" { at \"1s\" { raise \"p\" \"E\" { G 3 } } }",
    ),
    (
        "a value of another type",
        "provider \"p\" { event \"E\" { field \"F\" \"Int32\"; field \"G\" \"GUID\" } }\nprocess \"a.exe\" { at \"1s\" { raise \"p\" \"E\" { F \"three\"; G \"none\" } } }",
    ),
    (
        "a field without a value",
        "provider \"p\" { event \"E\" { field \"F\" \"Int32\" } }\nprocess \"a.exe\" { at \"1s\" { raise \"p\" \"E\" { F } } }",
    ),
    (
        "no such provider of Windows",
        "process \"a.exe\" { at \"1s\" { raise Microsoft-Windows-DNS-Clint 3008 } }",
    ),
    (
        "no such id, version or name of an event of Windows",
        "process \"a.exe\" { at \"1s\" { raise DNS-Client 2999; raise DNS-Client 3008 version=4; raise Kernel-Process ProcesStart } }",
    ),
    (
        "a provider of whose events nothing is known",
        "process \"a.exe\" { at \"1s\" { raise \"ACPI Driver Trace Provider\" 1 } }",
    ),
    (
        "an event of a CLR",
        "process \"a.exe\" { at \"1s\" { raise Microsoft-Windows-DotNETRuntime 80 } }",
    ),
    (
        "an event that is known in part",
        "process \"a.exe\" { at \"1s\" { raise NDIS-PacketCapture 1003 } }",
    ),
    (
        "no such field of an event of Windows",
        "process \"a.exe\" { at \"1s\" { raise DNS-Client 3008 { QueryNames \"a\" } } }",
    ),
    (
        "a value that is too large, a field that is set twice",
        "process \"a.exe\" { at \"1s\" { raise DNS-Client 3008 { QueryType 4294967296; QueryOptions 1; QueryOptions 2 } } }",
    ),
    (
        "a wrong count",
        "process \"a.exe\" { at \"1s\" { raise PktMon 70 { Size 5; Value \"abcd\" } } }",
    ),
    (
        "the version of Windows after its events",
        "process \"a.exe\" { at \"1s\" { raise DNS-Client 3008 } }\nmachine os=\"10.0.22621\"",
    ),
    (
        "no name in DNS",
        "process \"a.exe\" { at \"1s\" { resolve \"a..b\" answer=\"1.2.3.4 ::1\" } }",
    ),
    (
        "no address with a port",
        "process \"a.exe\" { at \"1s\" { exchange \"192.0.2.7\" } }",
    ),
    (
        "too many bytes",
        "process \"a.exe\" { at \"1s\" { exchange \"192.0.2.7:80\" send=99999999 } }",
    ),
    (
        "no capture",
        "at \"1s\" { replay \"page.pcap\"; replay \"gone.pcap\" address=\"1\" }",
    ),
    ("no such edit", "edit \"s.etl\" { remove \"E\" }"),
    ("no place to move to", "edit \"s.etl\" { move \"E\" }"),
    (
        "half a condition",
        "edit \"s.etl\" { delete \"E\" with=\"F\" }",
    ),
    ("no amount", "edit \"s.etl\" { header \"build\" }"),
    (
        "no such field of the header",
        "edit \"s.etl\" { header \"name\" set=1 }",
    ),
    (
        "a process that exits too early",
        "process \"a.exe\" start=\"2s\" exit=\"1s\"",
    ),
    (
        "one id for two processes",
        "process \"a.exe\" pid=100\nprocess \"b.exe\" pid=100",
    ),
    (
        "the id of a process of the system",
        "process \"a.exe\" pid=4",
    ),
    ("a process without threads", "process \"a.exe\" threads=0"),
    (
        "an age of no PDB",
        "process \"a.exe\" { image \"a.dll\" age=2 }",
    ),
    ("no Windows", "machine os=\"300.1\""),
    (
        "a date that no FILETIME has",
        "machine start=\"1500-01-01T00:00:00Z\"",
    ),
    ("a processor that stands still", "machine mhz=0"),
    ("a machine without memory", "machine memory-mb=0"),
    (
        "a version that is too large",
        "process \"a.exe\" { clr \"core\" version=\"8.0.70000\" }",
    ),
    (
        "a CLR that is too old",
        "process \"a.exe\" { clr \"desktop\" version=\"2.0.50727\" }",
    ),
    (
        "an end before the beginning",
        "every \"1ms\" from=\"2s\" until=\"1s\" { }",
    ),
    ("no buffers", "session \"s\" buffers=0"),
    (
        "ids in and out",
        "session \"s\" { enable \"runtime\" ids=\"1\" not-ids=\"2\" }",
    ),
    (
        "samples too close together",
        "session \"s\" { kernel \"profile\" interval=\"1us\" }",
    ),
    (
        "a fault of nothing",
        "session \"s\" { fault \"lost-events\" every=0 }",
    ),
    (
        "more than there is",
        "session \"s\" { fault \"truncated\" percent=100 }",
    ),
    (
        "two providers of one name",
        "provider \"p\" guid=\"11112222-3333-4444-5555-666677778888\"\nprovider \"p\"",
    ),
    (
        "two providers of one GUID",
        "provider \"p\"\nprovider \"P\"",
    ),
    (
        "two events of one name",
        "provider \"p\" { event \"E\"; event \"E\" }",
    ),
    (
        "two events of one id",
        "provider \"p\" { event \"E\" id=2; event \"F\" }",
    ),
    ("messages in no file", "provider \"..\\\\p\" kind=\"wpp\""),
    ("a device for a file", "session \"s\" file=\"nul.etl\""),
    (
        "the truth for a trace",
        "session \"s\" file=\"truth.jsonl\"",
    ),
    (
        "one file on Windows",
        "session \"s\" file=\"s.etl\"\nsession \"t\" file=\"S.etl\"",
    ),
    (
        "a merge into a directory",
        "session \"s\" file=\"s.etl\"\nat \"1s\" { merge \"s.etl\" into=\"../m.etl\" }",
    ),
    (
        "a flush into a directory",
        "session \"s\" mode=\"buffering\"\nat \"1s\" { flush \"s\" into=\"../../s.etl\" }",
    ),
    (
        "a file that no session writes",
        "session \"s\" file=\"s.etl\"\nat \"1s\" { merge \"s.etl t.etl\" into=\"m.etl\" }",
    ),
    (
        "an edit of no file",
        "session \"s\" file=\"s.etl\"\nedit \"t.etl\" { delete \"E\" }",
    ),
    (
        "no such session",
        "session \"s\" file=\"s.etl\"\nat \"1s\" { stop \"t\" }",
    ),
    (
        "a fault of a session that is not there",
        "session \"s\" file=\"s.etl\"\nfault \"torn\" in=\"t\"",
    ),
    (
        "a session in no process",
        "process \"a.exe\"\nsession \"s\" file=\"s.etl\" process=\"b.exe\"",
    ),
    (
        "no such thread",
        "provider \"p\" { event \"E\" }\nprocess \"a.exe\" { at \"1s\" { raise \"p\" \"E\" thread=2 } }",
    ),
    (
        "no such image",
        "process \"a.exe\" { image \"a.dll\"; at \"1s\" { unload-image \"b.dll\" } }",
    ),
    (
        "work for a CLR that is not there",
        "process \"a.exe\" { at \"1s\" { jit 1 } }",
    ),
    (
        "no such app domain",
        "process \"a.exe\" { clr \"desktop\" { domain \"D\" }; at \"1s\" { unload-domain \"E\" } }",
    ),
    (
        "no such assembly",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" }; at \"1s\" { load \"B\" } }",
    ),
    (
        "an assembly that stays",
        "process \"a.exe\" { clr \"core\" { assembly \"A\" } }\nat \"1s\" { in \"a.exe\" { unload \"A\" } }",
    ),
    (
        "64 bits on 32",
        "process \"a.exe\" bits=64 { }\nmachine bits=32",
    ),
    ("32 bits of Windows 11", "machine os=\"10.0.22621\" bits=32"),
    (
        "a list that is not there",
        "at \"1s\" { run \"logman start s -pf gone.txt -ets\" }",
    ),
    (
        "a list of something else",
        "at \"1s\" { run \"tracelog -start s -guid app.kdl\" }",
    ),
];

fn report(script: &str, set: &[(&str, &str)]) -> String {
    let errors = parse(script, set)
        .err()
        .unwrap_or_else(|| panic!("no error: {script}"));
    let mut out = String::new();
    for error in errors.as_slice() {
        out.push_str(&error.report());
        out.push('\n');
    }
    out
}

#[test]
fn report_shows_each_kind_of_error_at_its_location() {
    let mut out = String::new();
    for (kind, script) in ERRORS {
        writeln!(out, "# {kind}\n{}", report(script, &[])).unwrap();
    }
    let unknown = report("param \"many\" 1", &[("mny", "2")]);
    writeln!(out, "# a setting that is not known\n{unknown}").unwrap();
    insta::assert_snapshot!("errors", out);
}

/// Scripts that are too large: message and help only, because the reports are long.
#[test]
fn parse_limits_the_size_of_scripts() {
    let deep = |n: usize| format!("{}{}", "a {".repeat(n), "}".repeat(n));
    let parameters: String = (0..1100).map(|n| format!("param \"p{n}\" 1\n")).collect();
    let doubled: String = (1..40)
        .map(|n| format!("param \"p{n}\" \"{{p{}}}{{p{}}}\"\n", n - 1, n - 1))
        .collect();
    for (script, message, help) in [
        (
            "\n".repeat(600 << 10),
            "the script is too long",
            "at most 512 KiB",
        ),
        (deep(65), "nested too deeply", "at most 64 braces"),
        (
            "repeat 2000000 { }".to_owned(),
            "too much",
            "at most 1000000 rounds",
        ),
        (
            "repeat 1001 { repeat 999 { end \"1s\"; end \"1s\" } }".to_owned(),
            "too much",
            "at most 1000000 nodes",
        ),
        (
            parameters,
            "too many parameters",
            "at most 1024 are valid at one place",
        ),
        (
            format!("param \"p0\" \"0123456789\"\n{doubled}"),
            "too much",
            "at most 64 KiB in one text",
        ),
    ] {
        let errors = parse(&script, &[]).unwrap_err();
        let errors = errors.as_slice();
        let is_expected = |m: &etl_synth::ScriptError| {
            m.message() == message && m.hint().is_some_and(|h| h.contains(help))
        };
        assert!(
            errors.iter().any(is_expected),
            "{message}: {:?}",
            errors.first()
        );
    }
}

#[test]
fn included_scripts_name_files_beside_them() {
    let scenario = parse("include \"parts/outer.kdl\"; include \"app.kdl\"", &[]).unwrap();
    let names: Vec<&str> = scenario.processes.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["Inner.exe", "App.exe"]);
    let missing = parse("include \"parts/outer.kdl\"; include \"inner.kdl\"", &[]).unwrap_err();
    assert!(
        missing.as_slice()[0]
            .message()
            .contains("inner.kdl: file not found")
    );
}
