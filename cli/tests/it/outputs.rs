//! What is in outputs: names of a trace in exports and tables, and rows that are much longer than
//! their records.

use std::fs;
use std::path::Path;

use etl_format::constants::hook;
use etl_format::write::Session;
use etl_format::write::record::{Event, System};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};

use crate::common::{directory, etlkit};

/// A process with samples, whose names act on terminals and spreadsheets.
const SCENARIO: &str = r#"
process "=cmd|'x9q\u{1b}[2J\u{9b}31m\u{7f}\u{202e};\n.exe" pid=4312 threads=2 {
    clr "core" version="6.0.100" {
        assembly "A" { module "C:\\=x9q\u{202e}\u{9b}.dll" {
            method "@x9q\u{9b}\u{202e}\u{7f}.T::a"; methods 9
        } }
    }
    every "5ms" from="1.1s" until="1.6s" { run "2ms"; jit 1; throw 1 }
}
at "1s" { session "s" file="s.etl" {
    kernel "processes images profile" stackwalk="0x0F2E" interval="1ms"
    enable "runtime" keywords=0x8019 level=5
} }
at "2s" { stop "s" }
"#;

/// Whether a terminal may act on a character.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{feff}')
}

fn simulated() -> tempfile::TempDir {
    let here = directory(&[("s.kdl", SCENARIO.as_bytes())]);
    let made = etlkit(here.path(), &["synth", "s.kdl", "-o", "."]);
    assert_eq!(made.code, 0, "{}", made.err);
    fs::rename(
        here.path().join("s.etl"),
        here.path().join("=s\u{202e}.etl"),
    )
    .unwrap();
    here
}

#[test]
fn exports_escape_every_text_of_the_trace() {
    let here = simulated();
    for (format, name) in [
        ("folded", "folded.txt"),
        ("flamegraph", "flame.html"),
        ("speedscope", "speedscope.json"),
        ("firefox", "firefox.json"),
    ] {
        let said = etlkit(
            here.path(),
            &["export", format, "=s\u{202e}.etl", "-o", name],
        );
        assert!(said.code < 2, "{format}: {}", said.err);
        let text = fs::read_to_string(here.path().join(name)).unwrap();
        assert!(text.contains("x9q"), "{format}");
        let line = text.lines().find(|line| line.contains(acts));
        assert_eq!(line, None, "{format}");
        if name.ends_with(".json") {
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
    }
}

#[test]
fn tables_as_csv_have_no_formulas_and_no_line_breaks() {
    let here = simulated();
    for args in [
        &["analyze", "processes"][..],
        &["analyze", "images"],
        &["analyze", "cpu"],
        &["analyze", "cpu", "--group-by", "process"],
        &["analyze", "exceptions"],
        &["symbols", "list"],
    ] {
        let args = [args, &["--format", "csv", "=s\u{202e}.etl"]].concat();
        let said = etlkit(here.path(), &args);
        assert!(said.code < 2, "{args:?}: {}", said.err);
        assert!(!said.out.contains(acts), "{args:?}: {:?}", said.out);
        let mut lines = said.out.lines();
        let columns = lines.next().unwrap().split(',').count();
        assert!(columns > 1, "{args:?}");
        for line in lines {
            let cells = cells(line);
            assert_eq!(cells.len(), columns, "{args:?}: {line}");
            for cell in cells {
                let is_formula = cell.trim_start().starts_with(['=', '+', '-', '@']);
                assert!(
                    !is_formula || cell.parse::<f64>().is_ok(),
                    "{args:?}: {cell}"
                );
            }
        }
    }
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            // Two quotes in a quoted cell are one.
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => {
                cells.last_mut().unwrap().push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// The start of a process with this name, and this many events of it.
fn long_name(length: usize, events: i64) -> Vec<u8> {
    let mut payload = vec![0; 8];
    for number in [100_u32, 4, 0, 0] {
        payload.extend(number.to_le_bytes());
    }
    // A SID that is not there, the name of the image, and empty texts.
    payload.extend([0; 8 + 4 + 4]);
    payload.extend(vec![b'x'; length]);
    payload.extend([0; 1 + 2 + 4]);
    let mut header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(133_000_000_000_000_000),
        buffer_size: 64 << 10,
        ..FileHeader::new()
    };
    header.set_log_version();
    let mut session = Session::in_memory(header).unwrap();
    let start = System::new(hook::PROCESS_START, 1_001)
        .version(4)
        .process(100, 4)
        .payload(&payload);
    session.write(0, &start).unwrap();
    for number in 0..events {
        let descriptor = EventDescriptor {
            id: 7,
            ..EventDescriptor::default()
        };
        let event = Event::new(Guid::new(1, 2, 3, [4; 8]), descriptor, 2_000 + number);
        session.write(0, &event.process(100, 8)).unwrap();
    }
    session.finish().unwrap()
}

/// The length of a name, and so many events that a batch of them for each of 8 threads exceeds the
/// memory budget as text.
const NAME: usize = 30_000;
const NAMED_EVENTS: i64 = 3_000;

#[test]
fn dump_prints_long_names_of_many_events_in_little_memory() {
    let here = directory(&[("t.etl", &long_name(NAME, NAMED_EVENTS))]);
    let args = ["dump", "--max-memory", "48M", "--threads", "8"];
    for format in ["text", "csv"] {
        let said = etlkit(
            here.path(),
            &[&args[..], &["--format", format, "t.etl"]].concat(),
        );
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{format}");
        let alone = ["dump", "--threads", "1", "--format", format, "t.etl"];
        assert!(etlkit(here.path(), &alone).out == said.out, "{format}");
        assert!(said.out.len() > NAME * NAMED_EVENTS as usize, "{format}");
    }
}

#[test]
fn many_tiny_traces_are_printed_as_one() {
    let here = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for number in 0..450 {
        let name = format!("{number:03}.etl");
        fs::write(here.path().join(&name), crate::common::trace()).unwrap();
        names.push(name);
    }
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    let said = etlkit(
        here.path(),
        &[&["dump", "--merge", "--count"][..], &files].concat(),
    );
    assert!(said.code < 2, "{}", said.err);
    let said = etlkit(here.path(), &[&["dump", "--merge"][..], &files].concat());
    assert!(said.code < 2, "{}", said.err);
    assert!(said.out.lines().count() >= 450 * 4);
}

/// The files that options name, in a folder each.
const DEFINITIONS: [(&str, &str, &[u8]); 2] = [
    ("--manifest", "m.man", MANIFEST.as_bytes()),
    ("--tmf", "m.tmf", TMF.as_bytes()),
];
const TMF: &str = "d0d0d0d0-d0d0-d0d0-d0d0-d0d0d0d0d0d0 driver // SRC=driver.c MJ= MN=\n\
    #typev driver_c42 10 \"%0read\" // LEVEL=INFO FLAGS=IO FUNC=Read\n\
    {\n}\n";
const MANIFEST: &str = r#"<instrumentationManifest
    xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events>
    <provider name="P" guid="{00000007-0007-0007-0707-070707070707}" symbol="P"/>
    </events></instrumentation></instrumentationManifest>"#;

#[test]
fn files_that_options_name_are_never_overwritten() {
    let here = simulated();
    let trace = "=s\u{202e}.etl";
    let commands: [&[&str]; 6] = [
        &["export", "firefox", trace],
        &["export", "perfetto", trace],
        &["export", "pcapng", "--events", trace],
        &["scrub", trace, "--preset", "none"],
        &["export", "flamegraph", trace],
        &["export", "speedscope", trace],
    ];
    let mut refused = 0;
    for (option, name, content) in DEFINITIONS {
        refused += refusals(here.path(), &commands[..4], option, name, content);
    }
    if cfg!(feature = "symbols") {
        let commands: Vec<&[&str]> = vec![commands[0], commands[1], commands[4], commands[5]];
        refused += refusals(here.path(), &commands, "--symbols", "app.pdb", b"not read");
    }
    assert!(refused >= 16, "{refused}");
}

/// Runs commands that read a file, by its name and in its folder, and write to it. Returns the
/// number of the runs, all of which have to leave the file as it is.
fn refusals(here: &Path, commands: &[&[&str]], option: &str, name: &str, content: &[u8]) -> usize {
    let folder = format!("definitions{option}");
    fs::create_dir_all(here.join(&folder)).unwrap();
    let file = format!("{folder}/{name}");
    let mut count = 0;
    for &command in commands {
        for named in [file.as_str(), folder.as_str()] {
            fs::write(here.join(&file), content).unwrap();
            let args = [command, &[option, named, "-o", &file, "--force"][..]].concat();
            let said = etlkit(here, &args);
            assert_eq!(said.code, 2, "{args:?}: {}", said.out);
            assert!(
                said.err.contains("one of the inputs"),
                "{args:?}: {}",
                said.err
            );
            assert_eq!(fs::read(here.join(&file)).unwrap(), content, "{args:?}");
            assert_eq!(
                fs::read_dir(here.join(&folder)).unwrap().count(),
                1,
                "{args:?}"
            );
            count += 1;
        }
        // Another file in the folder is an output as any other.
        let other = format!("{folder}/other.out");
        let args = [command, &[option, &folder, "-o", &other, "--force"][..]].concat();
        let said = etlkit(here, &args);
        assert!(said.code < 2, "{args:?}: {}", said.err);
        fs::remove_file(here.join(other)).unwrap();
    }
    count
}

#[test]
fn long_secrets_are_refused() {
    let line = "x".repeat(3 << 20);
    let many = "a name of a customer\n".repeat(40_000);
    let here = directory(&[
        ("t.etl", &crate::common::trace()),
        ("long.txt", line.as_bytes()),
        ("many.txt", many.as_bytes()),
    ]);
    for list in ["long.txt", "many.txt"] {
        let args = ["scrub", "t.etl", "-o", "o.etl", "--secrets-file", list];
        let said = etlkit(here.path(), &args);
        assert_eq!(said.code, 2, "{list}");
        assert!(said.err.contains("longer than"), "{}", said.err);
    }
}

#[test]
fn folders_of_killed_runs_are_not_read() {
    let here = directory(&[
        ("traces/a.etl", &crate::common::trace()),
        ("traces/.etlkit-Kx1f/b.etl", &crate::common::trace()),
    ]);
    let said = etlkit(here.path(), &["info", "traces", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("a.etl") && !said.out.contains("b.etl"));
}
