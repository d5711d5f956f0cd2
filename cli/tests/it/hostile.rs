//! A trace in which every name is an attack, in every output of every command: nothing reaches a
//! terminal, a spreadsheet, a browser, an XML parser or a build server unescaped.

use std::path::Path;

use crate::common::{
    CommandOutput, buffer, directory, etlkit, etlverify, event, header_event, trace,
};

/// Names of processes, modules, methods, command lines and sessions; `x9q` marks what came from the
/// trace.
const SCENARIO: &str = include_str!("hostile.kdl");

/// A hostile file name.
#[cfg(not(windows))]
const FILE: &str = "=x9q\u{1b}[31m\u{202e}<b>&'\".etl";
/// A hostile file name that Windows accepts.
#[cfg(windows)]
const FILE: &str = "=x9q\u{202e}&'.etl";

/// Characters that a terminal may act on, other than line feeds.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\n')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{2069}').contains(&c)
        || c == '\u{feff}'
}

fn inert(said: &CommandOutput, what: &str) {
    for text in [&said.out, &said.err] {
        if let Some(line) = text.lines().find(|line| line.contains(acts)) {
            panic!("{what}: {line:?}");
        }
        // A workflow command from the trace.
        assert!(
            !text.lines().any(|l| l.trim_start().starts_with("::")
                && !l.starts_with("::error ")
                && !l.starts_with("::warning ")
                && !l.starts_with("::notice ")),
            "{what}: {text}"
        );
        assert!(
            !text
                .lines()
                .any(|l| l.starts_with("::") && l.contains("::x9q")),
            "{what}: {text}"
        );
    }
}

/// Line breaks in names of files and of members of archives.
#[test]
#[cfg(unix)]
fn names_do_not_forge_messages() {
    use std::io::Write;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive
        .start_file(
            "a\nerror: x9q.txt",
            zip::write::SimpleFileOptions::default(),
        )
        .unwrap();
    archive.write_all(b"text").unwrap();
    let archive = archive.finish().unwrap().into_inner();
    let file = "b\nerror: x9q.etl";
    let whole = trace();
    let cut = &whole[..whole.len() - 0x800];
    let here = directory(&[("a.zip", &archive), (file, cut), ("none\nerror: x9q", b"")]);
    for args in [
        &["info", "a.zip"][..],
        &["info", "a.zip", "--member", "no\nerror: x9q"],
        &["info", file],
        &["dump", "--count", file],
        &["dump", "-p", "no\nerror: x9q", file],
        &["merge", file, file, "-o", "m.etl"],
        &["slice", file, "-o", file],
        &["diff", file, file],
        &["verify", "none\nerror: x9q"],
        &["analyze", "summary", file, "missing\nerror: x9q"],
    ] {
        let said = etlkit(here.path(), args);
        assert!(!said.err.is_empty(), "{args:?}");
        assert!(
            !said.err.lines().any(|line| line.starts_with("error: x9q")),
            "{args:?}: {}",
            said.err
        );
    }
}

/// Cells of CSV.
fn cells(csv: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in csv.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' | '\n' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

fn no_formula(csv: &str) {
    for cell in cells(csv) {
        let begins = cell
            .trim_start()
            .starts_with(['=', '+', '-', '@', '\t', '\r']);
        assert!(!begins || cell.parse::<f64>().is_ok(), "{cell:?}");
    }
}

/// No element and no attribute comes from the trace.
fn markup(xml: &str, what: &str) {
    let document = roxmltree::Document::parse(xml).unwrap_or_else(|e| panic!("{what}: {e}\n{xml}"));
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(
            !["script", "img", "x9q", "b"].contains(&name),
            "{what}: <{name}>"
        );
        assert!(
            !node
                .attributes()
                .any(|a| a.name().contains("x9q") || a.name() == "onerror"),
            "{what}"
        );
    }
}

fn hostile() -> tempfile::TempDir {
    let here = directory(&[
        ("hostile.kdl", SCENARIO.as_bytes()),
        ("plain.etl", &trace()),
    ]);
    let said = etlkit(here.path(), &["synth", "hostile.kdl", "-o", "out"]);
    assert_eq!(said.code, 0, "{}", said.err);
    inert(&said, "synth");
    // One file with kernel and CLR events, under a hostile name.
    std::fs::copy(here.path().join("out/hostile.etl"), here.path().join(FILE)).unwrap();
    here
}

#[test]
fn output_is_escaped() {
    let here = hostile();
    let mut seen = 0;
    for command in [
        &["info"][..],
        &["info", "--format", "json"],
        &["dump"],
        &["dump", "--raw"],
        &["dump", "--format", "jsonl"],
        &["dump", "--format", "csv"],
        &[
            "dump",
            "--format",
            "csv",
            "--columns",
            "time,event,message,MethodName,MethodNamespace,CommandLine",
        ],
        &["dump", "--format", "xml"],
        &["verify"],
        &["verify", "--format", "json"],
        &["verify", "--format", "sarif"],
        &["verify", "--format", "junit"],
        &["verify", "--format", "github"],
        &["verify", "--format", "html"],
        &["diff", "plain.etl"],
        &["diff", "plain.etl", "--format", "json"],
        &["repair", "-o", "a.etl", "--force"],
        &["repair", "-o", "a.etl", "--force", "--format", "json"],
        &["merge", "-o", "a.etl", "--force"],
        &["merge", "-o", "a.etl", "--force", "--format", "json"],
        &["compress", "-o", "a.etl", "--force"],
        &["compress", "-o", "a.etl", "--force", "--format", "json"],
        &["decompress", "-o", "a.etl", "--force", "--format", "json"],
        &["slice", "-o", "a.etl", "--force", "--format", "json"],
        &["slice", "-o", "a.etl", "--force"],
        &[
            "scrub", "-o", "a.etl", "--force", "--preset", "none", "--format", "json",
        ],
        &["scrub", "-o", "a.etl", "--force", "--preset", "none"],
    ] {
        let said = etlkit(here.path(), &[command, &[FILE]].concat());
        let what = format!("{command:?}");
        assert!(said.code < 2, "{what}: {}", said.err);
        inert(&said, &what);
        seen += usize::from(said.out.contains("x9q"));
        let format = command
            .iter()
            .skip_while(|a| **a != "--format")
            .nth(1)
            .copied();
        match format.unwrap_or("text") {
            "json" | "sarif" => drop(serde_json::from_str::<serde_json::Value>(&said.out).unwrap()),
            "jsonl" => said.out.lines().for_each(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }),
            "csv" => no_formula(&said.out),
            "xml" | "junit" => markup(&said.out, &what),
            "html" => {
                for tag in ["<script>x9q", "<img", "<b>x9q", "<x9q", "x9q()</script"] {
                    assert!(!said.out.contains(tag), "{what}: {tag}");
                }
            }
            _ => {}
        }
    }
    assert!(seen > 20, "only {seen} outputs show anything of the trace");
}

#[test]
fn errors_are_escaped() {
    let here = hostile();
    let name = if cfg!(windows) {
        "x9q\u{9b}31m\u{202e}"
    } else {
        "\u{1b}]0;x9q\u{7}\u{9b}31m\u{202e}"
    };
    std::fs::write(here.path().join("cut.etl"), &trace()[..0x2060]).unwrap();
    std::fs::rename(here.path().join("cut.etl"), here.path().join(name)).unwrap();
    for args in [
        &["info", name][..],
        &["dump", name],
        &["verify", name],
        &["merge", name, "-o", "b.etl"],
        &["merge", name, name, "-o", "b.etl"],
        &["repair", name, "-o", "b.etl"],
        &["repair", name, "-o", name],
        &["slice", name, "-o", "b2.etl"],
        &["info", "missing\u{1b}[31m"],
        &["info", "plain.etl", "--\u{1b}]0;x9q\u{7}"],
        &["spec", "x9q\r\u{1b}[2J"],
        &["\u{9b}31m"],
        &["dump", "plain.etl", "--provider", name],
        &["dump", "plain.etl", "--manifest", name],
        &["verify", "--explain", name],
        &["spec", "events", name],
        &["spec", "line", name],
        &["synth", name, "--check"],
        &["synth", "hostile.kdl", "-o", "out2", "--verify"],
        &["corpus", "list", "--corpus", name],
        &["diff", "plain.etl", FILE, "--ignore", name],
    ] {
        inert(&etlkit(here.path(), args), &format!("{args:?}"));
    }
    inert(
        &etlverify(Path::new(here.path()), &[name, FILE, "plain.etl"]),
        "etlverify",
    );
}

/// A trace may contain any number of event identities; only some are counted individually.
#[test]
fn info_limits_counted_identities() {
    const KINDS: usize = 70_000;
    let mut kinds = (0..KINDS).map(|number| {
        let mut record = event(1_010, number as u16, 4, 0x8, None);
        record[0x18..0x1c].copy_from_slice(&(number as u32 >> 16).to_le_bytes());
        record
    });
    let mut file = buffer(0, 0, 4, &[header_event(2_000)]);
    for number in 1.. {
        let records: Vec<_> = kinds.by_ref().take(40).collect();
        if records.is_empty() {
            break;
        }
        file.extend(buffer(number, 0, 0, &records));
    }
    let here = directory(&[("many.etl", &file)]);
    let said = etlkit(here.path(), &["info", "--format", "json", "many.etl"]);
    // The whole document is megabytes: only its end is read.
    let records = format!("\n  \"records\": {},\n", 1 + KINDS);
    assert!(said.out.contains(&records), "{}", &said.out[..2_000]);
    assert_eq!(
        said.out.matches("\n      \"keyword_hex\": ").count(),
        1 << 16
    );
    let (_, problems) = said.out.rsplit_once("\n  \"problems\": ").unwrap();
    let uncounted = format!("{} records of further identities", 1 + KINDS - (1 << 16));
    assert!(problems.contains(&uncounted), "{problems}");
}
