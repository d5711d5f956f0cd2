//! Names of events, providers and their numbers, from every source.

use crate::common::{aligned, buffer, directory, etlkit, etlkit_piped, event, header_event};
use etl_test_support::needs;

const EVENT: &str = "http://schemas.microsoft.com/win/2004/08/events/event";
const TRACE: &str = "http://schemas.microsoft.com/win/2004/08/events/trace";

pub const MANIFEST: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events"><events>
  <provider name="Made-Up" guid="{5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a}" symbol="MADE_UP">
   <channels><channel chid="C" name="Made-Up/Debug" value="16"/></channels>
   <levels><level name="Loud" value="17" message="$(string.L)"/></levels>
   <tasks><task name="Work" value="3" message="$(mc.T)">
    <opcodes><opcode name="Step" value="20" message="One step"/></opcodes></task></tasks>
   <keywords><keyword name="Low" mask="0x10" message="$(string.K)"/><keyword name="High" mask="0x20"/></keywords>
   <events><event value="7" symbol="Stepped" level="Loud" task="Work" opcode="Step"
    channel="C" keywords="Low High" template="T"/></events>
   <templates><template tid="T"><data name="N" inType="win:UInt32"/></template></templates>
  </provider>
  <messageTable><message mid="T" value="1" message="$(string.W) hard"/></messageTable></events></instrumentation>
 <localization><resources culture="en-US"><stringTable>
  <string id="L" value="Very loud"/><string id="W" value="Working"/><string id="K" value="The low one"/>
 </stringTable></resources></localization>
</instrumentationManifest>"#;

/// An event of the test provider, with a payload.
pub fn made_up(timestamp: i64, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut record = event(timestamp, id, 17, 0x30, None);
    record.truncate(0x50);
    record[0x2b] = 16;
    record[0x2d] = 20;
    record[0x2e] = 3;
    record.extend(payload);
    sized(record)
}

fn sized(mut record: Vec<u8>) -> Vec<u8> {
    let size = record.len() as u16;
    record[..2].copy_from_slice(&size.to_le_bytes());
    aligned(record)
}

pub fn trace_of(records: &[Vec<u8>]) -> Vec<u8> {
    [
        buffer(0, 0, 4, &[header_event(2)]),
        buffer(1, 0, 0, records),
    ]
    .concat()
}

#[test]
fn dump_prints_display_messages_of_numbers() {
    let trace = trace_of(&[made_up(1_010, 7, &[5, 0, 0, 0])]);
    let here = directory(&[("t.etl", &trace), ("m.man", MANIFEST.as_bytes())]);
    let dump = |args: &[&str]| {
        let args = [&["dump", "--manifest", "m.man", "--id", "7", "t.etl"], args].concat();
        let said = etlkit(here.path(), &args);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        said.out
    };
    let text = dump(&[]);
    let names = " opcode 20 One step task 3 Working hard level 17 Very loud keyword 0x30 channel \
         Made-Up/Debug Stepped N=5";
    assert!(text.contains(names), "{text}");
    let json: serde_json::Value = serde_json::from_str(&dump(&["--format", "jsonl"])).unwrap();
    for (member, name) in [
        ("opcode_name", "One step"),
        ("task_name", "Working hard"),
        ("level_name", "Very loud"),
    ] {
        assert_eq!(json[member], name);
    }
    let columns = "opcode_name,task_name,level_name,keywords,N";
    let csv = dump(&["--format", "csv", "--columns", columns]);
    assert_eq!(
        csv,
        format!("{columns}\nOne step,Working hard,Very loud,The low one|High,5\n")
    );
    let xml = dump(&["--format", "xml"]);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let rendering = document
        .descendants()
        .find(|n| n.has_tag_name((EVENT, "RenderingInfo")));
    let rendering: Vec<_> = rendering
        .unwrap()
        .descendants()
        .filter(|n| n.is_element() && n.text().is_some_and(|t| !t.is_empty()))
        .map(|n| (n.tag_name().name(), n.text().unwrap()))
        .collect();
    assert_eq!(
        rendering,
        [
            ("Level", "Very loud"),
            ("Task", "Working hard"),
            ("Opcode", "One step"),
            ("Channel", "Made-Up/Debug"),
            ("Provider", "Made-Up"),
            ("Keyword", "The low one"),
            ("Keyword", "High"),
        ]
    );
}

#[test]
fn dump_leaves_out_files_of_a_directory_that_are_no_manifests() {
    let trace = trace_of(&[made_up(1_010, 7, &[5, 0, 0, 0])]);
    let here = directory(&[("t.etl", &trace)]);
    let inside = here.path().join("manifests");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(inside.join("a.xml"), "<project/>").unwrap();
    std::fs::write(inside.join("m.man"), MANIFEST).unwrap();
    let said = etlkit(
        here.path(),
        &["dump", "t.etl", "--manifest", "manifests", "--id", "7"],
    );
    assert!(said.out.contains(" Stepped N=5"), "{}", said.out);
    assert!(
        said.err.starts_with("note: manifests/a.xml is left out: "),
        "{}",
        said.err
    );
    assert_eq!((said.code, said.err.lines().count()), (0, 1));
    let named = ["dump", "t.etl", "--manifest", "manifests/a.xml"];
    assert_eq!(
        etlkit(here.path(), &named).code,
        2,
        "a file that is named has to be one"
    );
}

/// A chunk of the manifest that an `EventSource` writes into the trace.
fn manifest_event(timestamp: i64) -> Vec<u8> {
    let mut payload = vec![1, 1, 0, 0x5b, 1, 0, 0, 0];
    payload.extend(MANIFEST.replace("Made-Up", "Named-Late").as_bytes());
    let mut record = event(timestamp, 0xfffe, 0, 0, None);
    record.truncate(0x50);
    record.extend(payload);
    sized(record)
}

/// The name of a provider may follow its events, come from a file, or be unknown.
#[test]
fn provider_filter_uses_names_from_the_trace() {
    let trace = trace_of(&[
        made_up(1_010, 7, &[5, 0, 0, 0]),
        made_up(1_020, 8, &[]),
        manifest_event(1_030),
    ]);
    let here = directory(&[("t.etl", &trace), ("m.man", MANIFEST.as_bytes())]);
    let lines = |args: &[&str]| {
        let said = etlkit(here.path(), &[&["dump", "t.etl"], args].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        (said.out.lines().count(), said.err)
    };
    assert_eq!(lines(&["-p", "named-late"]), (3, String::new()));
    assert_eq!(
        lines(&["-p", "named-late", "--id", "8"]),
        (1, String::new())
    );
    assert_eq!(
        lines(&["-p", "Made-Up", "--manifest", "m.man"]),
        (3, String::new())
    );
    let unknown = etlkit(here.path(), &["dump", "t.etl", "-p", "Unknown"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (1, ""));
    let error = "error: no event has the provider Unknown\n";
    assert_eq!(unknown.err, error);
    // A note suffices if another one has events.
    let (count, note) = lines(&["-p", "named-late", "-p", "Unknown"]);
    let unknown = "note: unknown provider Unknown: neither the trace nor the tables define it\n";
    assert_eq!((count, note.as_str()), (3, unknown));
    let both = etlkit(
        here.path(),
        &[
            "dump",
            "t.etl",
            "t.etl",
            "-p",
            "named-late",
            "-p",
            "Unknown",
        ],
    );
    assert_eq!(both.err, unknown);
    // A pipe cannot be read twice: the name is known from its definition on.
    let args = ["dump", "--file-order", "-p", "Named-Late", "-"];
    assert_eq!(etlkit_piped(&trace, &args).out.lines().count(), 1);
    let slice = |name: &str, out: &str| {
        let said = etlkit(
            here.path(),
            &["slice", "t.etl", "-o", out, "-p", name, "--format", "json"],
        );
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        (said.code, report["selected"].as_u64(), said.err)
    };
    assert_eq!(slice("named-late", "a.etl"), (0, Some(3), String::new()));
    assert_eq!(slice("Unknown", "b.etl"), (1, Some(0), error.to_owned()));
    let nearest = "error: no event has the provider Named-Lat; the nearest name: Named-Late\n";
    assert_eq!(
        slice("Named-Lat", "c.etl"),
        (1, Some(0), nearest.to_owned())
    );
    let none = etlkit(
        here.path(),
        &["slice", "t.etl", "-o", "d.etl", "--id", "9999"],
    );
    assert_eq!(
        (none.code, none.err.as_str()),
        (0, "note: t.etl: no event is selected\n")
    );
}

#[test]
fn dump_decodes_events_before_their_manifest() {
    let records = [
        made_up(1_010, 7, &[5, 0, 0, 0]),
        manifest_event(1_020),
        made_up(1_030, 7, &[6, 0, 0, 0]),
    ];
    let trace = trace_of(&records);
    let here = directory(&[("t.etl", &trace), ("u.etl", &trace_of(&records[..2]))]);
    let dump = |args: &[&str]| {
        let said = etlkit(here.path(), &[&["dump", "t.etl"], args].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
        said.out
    };
    assert_eq!(dump(&["--count", "--event", "Stepped"]), "2\n");
    assert_eq!(dump(&["--count", "--where", "N = 5"]), "1\n");
    assert_eq!(
        dump(&["--count", "--event", "Stepped", "u.etl", "--merge"]),
        "3\n"
    );
    for more in [
        &[][..],
        &["--no-names"],
        &["--limit", "2"],
        &["--threads", "2"],
    ] {
        assert!(dump(more).contains(" Stepped N=5\n"), "{more:?}");
    }
    let csv = dump(&["--format", "csv", "--event", "Stepped"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    let at = columns.iter().position(|column| *column == "N").unwrap();
    assert_eq!(lines.map(|row| row[at]).collect::<Vec<_>>(), ["5", "6"]);
    // The order of the file is printed as a pipe would be.
    assert_eq!(
        dump(&["--count", "--event", "Stepped", "--file-order"]),
        "1\n"
    );
    let text = dump(&["--file-order"]);
    assert!(!text.contains("N=5") && text.contains("N=6"), "{text}");
}

/// The manifest of an `EventSource` in a real trace.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn provider_filter_finds_real_event_source() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let count = |provider: &str| {
        let args = ["dump", path.to_str().unwrap(), "-p", provider];
        etlkit(here.path(), &args).out.lines().count()
    };
    let by_guid = count("2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5");
    assert!(by_guid > 1);
    assert_eq!(count("system.threading.tasks.TplEventSource"), by_guid);
}

/// A WPP message with sequence number, message GUID, time, thread and process.
fn message(timestamp: i64, number: u16, arguments: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0, 0, 0x90];
    record.extend(number.to_le_bytes());
    record.extend(0xabu16.to_le_bytes());
    record.extend(42u32.to_le_bytes());
    record.extend([0x5a; 16]);
    record.extend(timestamp.to_le_bytes());
    record.extend(0x1cu32.to_le_bytes());
    record.extend(0xabcu32.to_le_bytes());
    record.extend(arguments);
    sized(record)
}

const TMF: &str = "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a driver // SRC=driver.c MJ= MN=\n\
    #typev driver_c42 10 \"%0%!FUNC! <%10!d!> [%9!d!]%8!04X!.%3!04X! %2 %7\" // LEVEL=WARN FLAGS=IO FUNC=Read\n\
    {\ncount, ItemLong -- 10\n}\n\
    #typev driver_c50 11 \"%0odd %10!d! %11!s!\" // LEVEL=INFO\n\
    {\nfirst, ItemLong -- 10\nodd, ItemOdd(x) -- 11\nlast, ItemLong -- 12\n}\n";

#[test]
fn dump_prints_messages() {
    let trace = trace_of(&[
        message(1_010, 10, &[7, 0, 0, 0]),
        message(1_020, 11, b"\x09\0\0\0\xab\xcd"),
    ]);
    let here = directory(&[("t.etl", &trace), ("d.tmf", TMF.as_bytes())]);
    let dump = |args: &[&str]| {
        let args = [&["dump", "--tmf", "d.tmf", "-p", "driver", "t.etl"], args].concat();
        let said = etlkit(here.path(), &args);
        assert_eq!(said.code, 0);
        let note =
            "note: d.tmf: line 9: unknown type ItemOdd(x); the message shows bytes from there on\n";
        assert_eq!(said.err, note);
        said.out
    };
    let text = dump(&[]);
    assert!(
        text.contains("  Read <7> [0]0ABC.001C driver_c42 42\n"),
        "{text}"
    );
    assert!(text.contains(" odd=abcd  odd 9 abcd\n"), "{text}");
    let xml = dump(&["--format", "xml"]);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let mut data = document
        .descendants()
        .filter(|n| n.has_tag_name((EVENT, "DebugData")));
    let parts: Vec<_> = data
        .next()
        .unwrap()
        .children()
        .map(|n| {
            (
                n.tag_name().namespace().unwrap(),
                n.tag_name().name(),
                n.text().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        parts,
        [
            (EVENT, "SequenceNumber", "42"),
            (EVENT, "FlagsName", "IO"),
            (EVENT, "LevelName", "WARN"),
            (EVENT, "Component", "driver"),
            (EVENT, "FileLine", "driver_c42"),
            (EVENT, "Message", "Read <7> [0]0ABC.001C driver_c42 42"),
            (TRACE, "Function", "Read"),
        ]
    );
    assert_eq!(data.count(), 1);
}

#[test]
fn dump_prints_stacks() {
    let mut record = event(1_010, 7, 4, 0, None);
    record.truncate(0x50);
    record[4] = 1;
    let mut stack = 9u64.to_le_bytes().to_vec();
    stack.extend(
        [0x7ff0_0000_1000u64, 0x7ff0_0000_2000]
            .map(u64::to_le_bytes)
            .concat(),
    );
    for word in [8 + stack.len() as u16, 6, 0, stack.len() as u16] {
        record.extend(word.to_le_bytes());
    }
    record.extend(stack);
    let trace = trace_of(&[sized(record)]);
    let here = directory(&[("t.etl", &trace)]);
    let said = etlkit(
        here.path(),
        &["dump", "--format", "xml", "--id", "7", "t.etl"],
    );
    let document = roxmltree::Document::parse(&said.out).unwrap();
    let info = document
        .descendants()
        .find(|n| n.has_tag_name((TRACE, "ExtendedTracingInfo")));
    let stack = info.unwrap().first_element_child().unwrap();
    assert_eq!(
        (stack.tag_name().name(), stack.attribute("MatchID")),
        ("Stack", Some("0x9"))
    );
    let addresses: Vec<_> = stack.children().map(|n| n.text().unwrap()).collect();
    assert_eq!(addresses, ["0x7ff000001000", "0x7ff000002000"]);
}
