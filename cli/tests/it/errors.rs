//! Errors of new users: each message names what is wrong and what to do next.

use std::path::Path;

use crate::common::{CommandOutput, directory, etlkit, etlkit_piped, etlverify, trace};

/// A trace as Windows XP wrote it: version 1 of the marker, log version 1.0.
fn windows_xp() -> Vec<u8> {
    let mut bytes = trace();
    bytes[0x48] = 1;
    bytes[0x48 + 0x20 + 4..][..4].copy_from_slice(&[5, 1, 1, 0]);
    bytes
}

/// Files that users take for traces: name and first bytes.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let with = |head: &[u8]| [head, &[0x11, 0, 0xfe, 7].repeat(200)].concat();
    let mut tar = vec![0; 1024];
    tar[..4].copy_from_slice(b"a/b\0");
    tar[257..262].copy_from_slice(b"ustar");
    let utf16 = "<Events>\r\n"
        .repeat(9)
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    vec![
        ("empty.etl", Vec::new()),
        (
            "notes.txt",
            b"this is a text file, and long enough for the header of a buffer or so; it is".into(),
        ),
        (
            "speedscope.json",
            b"{\"traceEvents\": [1, 2, 3]}, and on and on, long enough for a buffer's header"
                .into(),
        ),
        (
            "events.xml",
            b"<?xml version=\"1.0\"?><Events><Event>and on and on, long enough for a header".into(),
        ),
        ("tracerpt.xml", utf16),
        (
            "orders.kdl",
            b"// A scenario, and no trace: it has to be simulated first.\nscenario \"orders\" seed=1\n".into(),
        ),
        (
            "truth.jsonl",
            b"{\"kind\":\"truth\",\"version\":1,\"scenario\":\"recipe\",\"seed\":1}\n{\"kind\":\"end\"}\n".into(),
        ),
        ("app.evtx", with(b"ElfFile\0")),
        ("app.evt", with(b"\x30\0\0\0LfLe")),
        ("run.nettrace", with(b"Nettrace\x14\0\0\0!FastSerialization.1")),
        ("run.etlx", with(b"\x14\0\0\0!FastSerialization.1")),
        ("net.pcapng", with(b"\x0a\x0d\x0d\x0a")),
        ("net.pcap", with(b"\xd4\xc3\xb2\xa1")),
        ("big-endian.pcap", with(b"\xa1\xb2\xc3\xd4")),
        ("nanoseconds.pcap", with(b"\x4d\x3c\xb2\xa1")),
        ("netmon.cap", with(b"GMBU")),
        ("perf.data", with(b"PERFILE2")),
        ("trace.dat", with(b"\x17\x08Dtracing")),
        ("ctf-stream", with(b"\xc1\x1f\xfc\xc1")),
        ("metadata", with(b"\x57\x1d\xd1\x75")),
        ("run.jfr", with(b"FLR\0")),
        ("boot.pml", with(b"PML_")),
        ("app.exe", with(b"MZ\x90\0")),
        ("app.pdb", with(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0")),
        ("portable.pdb", with(b"BSJB")),
        ("app.dmp", with(b"MDMP\x93\xa7")),
        ("core", with(b"\x7fELF")),
        ("trace.etl.xz", with(b"\xfd7zXZ\0")),
        ("trace.7z", with(b"7z\xbc\xaf\x27\x1c")),
        ("trace.tar", tar),
        ("random", (0..3000u32).map(|i| ((i * i * 7) >> 5) as u8 | 1).collect()),
        ("zeros", vec![0; 3000]),
        ("cut.etl", trace()[..0x60].to_vec()),
        ("xp.etl", windows_xp()),
    ]
}

/// Every command that reads a trace, by its arguments before the file.
const COMMANDS: [&[&str]; 10] = [
    &["info"],
    &["info", "--format", "json"],
    &["dump"],
    &["verify", "--format", "json"],
    &["merge", "-o", "out.etl"],
    &["repair", "-o", "out.etl"],
    &["compress", "-o", "out.etl"],
    &["decompress", "-o", "out.etl"],
    &["slice", "-o", "out.etl"],
    &["scrub", "-o", "out.etl"],
];

/// The command failed, its first line says why, and the second what to do. A JSON report contains
/// the error as well.
fn refused(said: &CommandOutput, what: &str) {
    assert_eq!(said.code, 2, "{what}: {}", said.err);
    if !said.out.is_empty() {
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        // A list has what can be read.
        if report.as_array().is_none_or(|list| !list.is_empty()) {
            let error = report["error"].as_str().unwrap();
            assert!(said.err.contains(error), "{what}: {error}: {}", said.err);
        }
    }
    let lines: Vec<_> = said
        .err
        .lines()
        .filter(|line| !line.starts_with("note: "))
        .collect();
    assert!(
        lines[0].starts_with("error: ") && lines[0].len() > 20,
        "{what}: {}",
        said.err
    );
    assert!(
        lines.get(1).is_some_and(|l| l.starts_with("hint: ")),
        "{what}: {}",
        said.err
    );
    assert_eq!(lines.len(), 2, "{what}: {}", said.err);
}

#[test]
fn every_command_explains_wrong_files() {
    let here = directory(&[("good.etl", &trace())]);
    std::fs::create_dir(here.path().join("directory")).unwrap();
    let mut names = vec!["directory", "missing.etl"];
    let files = files();
    for (name, bytes) in &files {
        std::fs::write(here.path().join(name), bytes).unwrap();
        names.push(name);
    }
    let mut transcript = String::new();
    let mut others = String::new();
    for name in names {
        let info = etlkit(here.path(), &["info", name]);
        transcript += &info.err;
        for command in COMMANDS {
            let said = etlkit(here.path(), &[command, &[name]].concat());
            if name == "cut.etl" && said.code < 2 {
                // Some commands read its intact part.
                let _ = std::fs::remove_file(here.path().join("out.etl"));
                continue;
            }
            refused(&said, &format!("{command:?} {name}"));
            // Errors that differ from that of `info` are shown as well.
            if said.err != info.err && command[0] != "info" {
                others += &format!("{}: {}", command[0], said.err);
            }
            assert!(
                !Path::new(&here.path().join("out.etl")).exists(),
                "{command:?} {name}"
            );
        }
        let verify = etlkit(here.path(), &["verify", name]).err;
        assert_eq!(etlverify(here.path(), &[name]).err, verify);
        if name != "cut.etl" {
            refused(
                &etlkit(here.path(), &["diff", "good.etl", name]),
                &format!("diff {name}"),
            );
            refused(
                &etlkit(here.path(), &["diff", name, "good.etl"]),
                &format!("diff {name}"),
            );
            refused(
                &etlkit(here.path(), &["merge", "good.etl", name, "-o", "o.etl"]),
                name,
            );
            // A directory without traces is passed over.
            if name != "directory" {
                refused(
                    &etlverify(here.path(), &["--together", "good.etl", name]),
                    name,
                );
            }
        }
    }
    insta::assert_snapshot!("no_traces", transcript);
    insta::assert_snapshot!("no_traces_elsewhere", others);
    // The same files on standard input.
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "cut.etl") {
        for command in COMMANDS {
            let output = command.contains(&"out.etl");
            let args: Vec<_> = command
                .iter()
                .map(|a| if *a == "out.etl" { "-" } else { a })
                .collect();
            let said = etlkit_piped(bytes, &[&args[..], &["-"]].concat());
            assert_eq!(said.code, 2, "{command:?} < {name}");
            assert!(
                said.err.contains("(standard input)"),
                "{command:?} < {name}: {}",
                said.err
            );
            assert!(!output || said.out.is_empty(), "{command:?} < {name}");
        }
    }
}

/// Files of other formats that contain a trace, which could be read as a damaged trace.
fn around_a_trace() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let before = |head: &[u8]| {
        let mut bytes = head.to_vec();
        bytes.resize(0x2000, 0x11);
        [bytes, trace()].concat()
    };
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"t.etl");
    tar[257..263].copy_from_slice(b"ustar\0");
    let tar = [tar, trace(), vec![0; 1024]].concat();
    let gzip = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut out, bytes).unwrap();
        out.finish().unwrap()
    };
    vec![
        (
            "t.tar.gz",
            gzip(&tar),
            "unpacked from gzip data: this is a tar archive",
        ),
        ("t.tar", tar, "this is a tar archive"),
        (
            "app.dmp",
            before(b"MDMP\x93\xa7\0\0"),
            "this is a memory dump (.dmp)",
        ),
        (
            "kernel.dmp",
            before(b"PAGEDU64\x0f\0\0\0"),
            "this is a memory dump (.dmp)",
        ),
        (
            "core",
            before(b"\x7fELF\x02\x01\x01\0"),
            "this is a Linux program or core dump (ELF)",
        ),
        (
            "t.cab",
            before(b"MSCF\0\0\0\0"),
            "this is a cabinet archive",
        ),
        (
            "t.rar",
            before(b"Rar!\x1a\x07\x01\0"),
            "this is a RAR archive",
        ),
        (
            "t.7z",
            before(b"7z\xbc\xaf\x27\x1c\0\x04"),
            "this is a 7-Zip archive",
        ),
        (
            "app.evtx",
            before(b"ElfFile\0\0\0"),
            "this is a Windows event log (.evtx)",
        ),
    ]
}

#[test]
fn containers_of_traces_are_rejected() {
    let here = directory(&[("good.etl", &trace())]);
    let more: [&[&str]; 6] = [
        &["info", "--strict"],
        &["info", "--no-mmap"],
        &["dump", "--file-order"],
        &["merge", "--salvage", "good.etl", "-o", "out.etl"],
        &["diff", "good.etl"],
        &["verify", "--together", "good.etl"],
    ];
    for (name, bytes, what) in around_a_trace() {
        std::fs::write(here.path().join(name), &bytes).unwrap();
        for command in COMMANDS.iter().copied().chain(more) {
            let said = etlkit(here.path(), &[command, &[name]].concat());
            refused(&said, &format!("{command:?} {name}"));
            assert!(
                said.err.contains(&format!("{name}: {what}, not")),
                "{command:?}: {}",
                said.err
            );
            assert!(!here.path().join("out.etl").exists(), "{command:?} {name}");
        }
        for command in [
            &["info", "-"][..],
            &["dump", "--file-order", "-"],
            &["compress", "-o", "-", "-"],
        ] {
            refused(
                &etlkit_piped(&bytes, command),
                &format!("{command:?} < {name}"),
            );
        }
    }
    // Bytes of another format in front of a readable header event are damage.
    let mut bytes = trace();
    bytes[..4].copy_from_slice(b"MSCF");
    std::fs::write(here.path().join("overwritten.etl"), bytes).unwrap();
    let said = etlkit(here.path(), &["info", "overwritten.etl"]);
    assert!(
        said.code < 2 && said.out.contains("session"),
        "{}",
        said.err
    );
}

/// Wrong files in place of a script, a list, settings or a manifest.
#[test]
fn other_input_files_are_named_in_errors() {
    let here = directory(&[
        ("good.etl", &trace()),
        ("empty.kdl", b""),
        ("notes.md", b"# Title\n\nText.\n"),
    ]);
    std::fs::create_dir(here.path().join("directory")).unwrap();
    for (name, bytes) in files() {
        std::fs::write(here.path().join(name), bytes).unwrap();
    }
    let mut transcript = String::new();
    let mut say = |args: &[&str], name: &str| {
        let said = etlkit(here.path(), &[args, &[name]].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?} {name}");
        assert!(said.err.contains("hint: "), "{args:?} {name}: {}", said.err);
        transcript += &format!("$ etlkit {} {name}\n{}\n", args.join(" "), said.err);
        said
    };
    for name in [
        "good.etl",
        "directory",
        "missing.kdl",
        "app.evtx",
        "tracerpt.xml",
        "speedscope.json",
        "events.xml",
        "random",
    ] {
        refused(&say(&["synth", "-o", "out"], name), name);
    }
    // These could be scripts: their errors are shown.
    for name in ["notes.txt", "notes.md"] {
        say(&["synth", "--check"], name);
    }
    for name in ["directory", "missing", "app.exe"] {
        refused(
            &say(
                &["scrub", "good.etl", "-o", "out.etl", "--secrets-file"],
                name,
            ),
            name,
        );
        refused(&say(&["dump", "good.etl", "--manifest"], name), name);
        refused(&say(&["dump", "good.etl", "--tmf"], name), name);
        refused(&say(&["verify", "good.etl", "--config"], name), name);
    }
    for name in ["good.etl", "app.evtx"] {
        refused(&say(&["dump", "good.etl", "--manifest"], name), name);
        refused(&say(&["dump", "good.etl", "--tmf"], name), name);
    }
    let said = etlkit(here.path(), &["synth", "empty.kdl", "-o", "nothing"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        said.err,
        "note: empty.kdl: no session of the script writes a trace\n"
    );
    insta::assert_snapshot!("other_files", transcript);
}

/// In `etlkit ... 2>&1 | head`, standard error may be closed before the tool ends.
#[test]
fn closed_standard_error_is_ignored() {
    let here = directory(&[("t.etl", &trace()), ("bad.kdl", b"what is this")]);
    for args in [
        &["info", "missing.etl"][..],
        &["inof"],
        &["synth", "--check", "bad.kdl"],
        &["t.etl"],
    ] {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_etlkit"));
        let status = command
            .args(args)
            .current_dir(here.path())
            .stderr(write)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The tool as a user other than root, if the test can change the user.
#[cfg(unix)]
fn as_other_user(root: bool, here: &Path, args: &[&str]) -> Option<CommandOutput> {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_etlkit"));
    command.args(args).current_dir(here);
    if root {
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(output) => Some(CommandOutput::from(output)),
        Err(error) => {
            eprintln!("\n*** SKIPPED: the tool cannot run as another user: {error} ***\n");
            None
        }
    }
}

#[cfg(unix)]
#[test]
fn unwritable_directory_is_reported() {
    let here = directory(&[("t.etl", &trace()), ("s.kdl", b"scenario \"s\" seed=1\n")]);
    let closed = here.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    set_mode(here.path(), 0o755);
    set_mode(&closed, 0o555);
    let root = std::fs::File::create(closed.join("probe")).is_ok();
    for args in [
        &["compress", "t.etl", "-o", "closed/o.etl"][..],
        &["scrub", "t.etl", "-o", "closed/o.etl"],
        &["merge", "t.etl", "-o", "closed/o.etl"],
    ] {
        let Some(said) = as_other_user(root, here.path(), args) else {
            return;
        };
        refused(&said, &format!("{args:?}"));
        assert_eq!(
            said.err,
            "error: closed/o.etl: cannot create a file in its directory: permission denied\n\
             hint: choose a file with -o in a directory that you may write to\n",
            "{args:?}"
        );
    }
    // The files of a scenario go into a directory, which may have to be created.
    for out in ["closed", "closed/new"] {
        let Some(said) = as_other_user(root, here.path(), &["synth", "s.kdl", "-o", out]) else {
            return;
        };
        refused(&said, out);
        assert!(
            said.err.contains("closed") && said.err.contains("ermission"),
            "{}",
            said.err
        );
    }
}

/// Root may read every file, so the tool runs as another user.
#[cfg(unix)]
#[test]
fn unreadable_file_is_reported() {
    let here = directory(&[("secret.etl", &trace())]);
    let file = here.path().join("secret.etl");
    set_mode(here.path(), 0o755);
    set_mode(&file, 0);
    let root = std::fs::File::open(&file).is_ok();
    // The output comes first: the other user may write here.
    set_mode(here.path(), 0o777);
    let others: [&[&str]; 3] = [
        &["diff", "secret.etl"],
        &["synth", "--check"],
        &["synth", "-o", "out"],
    ];
    for args in COMMANDS.iter().chain(&others) {
        let args = [*args, &["secret.etl"]].concat();
        let Some(said) = as_other_user(root, here.path(), &args) else {
            return;
        };
        refused(&said, &format!("{args:?} secret.etl"));
        assert!(
            said.err.contains("permission denied"),
            "{args:?}: {}",
            said.err
        );
        assert!(
            said.err.contains("check the permissions") || args[0] == "synth",
            "{args:?}: {}",
            said.err
        );
    }
}

#[cfg(unix)]
#[test]
fn directory_on_standard_input_is_reported() {
    let here = directory(&[]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_etlkit"));
    command
        .args(["info", "-"])
        .stdin(std::fs::File::open(here.path()).unwrap());
    let said = CommandOutput::from(command.output().unwrap());
    refused(&said, "a directory");
    assert!(
        said.err
            .starts_with("error: (standard input): is a directory\n"),
        "{}",
        said.err
    );
}

#[test]
fn command_line_errors() {
    let here = directory(&[("t.etl", &trace()), ("s.kdl", b"scenario \"s\"\n")]);
    let mut transcript = String::new();
    for args in [
        &["inof", "t.etl"][..],
        &["t.etl"],
        &["info"],
        &["info", "--fromat", "json", "t.etl"],
        &["info", "--format", "yaml", "t.etl"],
        &["dump", "t.etl", "--id", "x"],
        &["dump", "t.etl", "--from", "yesterday"],
        &["dump", "t.etl", "--columns", "time"],
        &["merge", "t.etl"],
        &["merge", "t.etl", "t.etl", "-o", "o.etl"],
        &["repair", "t.etl", "-o", "t.etl"],
        &["repair", "t.etl", "-o", "nowhere/o.etl"],
        &["verify", "--explain", "rundown.none-such"],
        &["verify", "t.etl", "--truth", "missing.jsonl"],
        &["verify", "-", "-"],
        &["info", "*.etlx"],
        &["spec", "mask", "rundown", "lots"],
        &["completions", "tcsh"],
        &["info", "t.etl", "--max-unpacked", "lots"],
        &["info", "t.etl", "--member", "x.etl"],
        &["dump", "t.etl", "--from", "2", "--to", "1"],
        &["synth", "s.kdl", "-o", "t.etl"],
        &["man", "t.etl"],
    ] {
        let said = etlkit(here.path(), args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        transcript += &format!("$ etlkit {}\n{}\n", args.join(" "), said.err);
    }
    insta::assert_snapshot!("command_line", transcript);
}

#[test]
fn export_of_packets_needs_packets() {
    let directory = directory(&[("a.etl", &trace())]);
    let output = etlkit(
        directory.path(),
        &["export", "pcapng", "a.etl", "-o", "a.pcapng"],
    );
    assert_eq!(output.code, 2);
    assert!(
        output.err.contains("a.etl: no packets are in the trace"),
        "{}",
        output.err
    );
    assert!(
        output.err.contains("netsh trace start capture=yes"),
        "{}",
        output.err
    );
    assert!(!directory.path().join("a.pcapng").exists());
    let output = etlkit(
        directory.path(),
        &["export", "pcapng", "--events", "a.etl", "-o", "a.pcapng"],
    );
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(
        output.out.contains("0 packets, 0 places of capture"),
        "{}",
        output.out
    );
}

#[test]
fn analysis_without_threads_refuses_to_select_one() {
    let directory = directory(&[("a.etl", &trace())]);
    for kind in [
        "summary",
        "threadpool",
        "io",
        "network",
        "processes",
        "images",
        "sessions",
    ] {
        let output = etlkit(
            directory.path(),
            &["analyze", kind, "--thread", "1020", "a.etl"],
        );
        assert_eq!(output.code, 2, "{kind}");
        assert!(
            output.err.contains("--thread: this kind of report"),
            "{kind}: {}",
            output.err
        );
    }
}
