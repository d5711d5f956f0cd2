//! The XML and CSV of `etlkit dump`, read by other parsers.

use crate::common::{directory, etlkit, trace, trace_of};
use etl_test_support::needs;
use serde_json::Value;

const NAMESPACE: &str = "http://schemas.microsoft.com/win/2004/08/events/event";
const PROVIDER: [u8; 16] = [0x5a; 16];

/// Traces that are small enough to parse as a document.
const SMALL: [&str; 12] = [
    "perfview/gcrundownevents.etl",
    "perfview/primitive-types.etl",
    "perfview/SelfDescribingSingleEvent.etl",
    "etl-parser/AMSITrace.etl",
    "etl-parser/lxcore_kernel.etl",
    "tx/HTTP_Server.etl",
    "tx/Process.etl",
    "tx/WsRm01.etl",
    "syzygy/image_data_32_v1.etl",
    "syzygy/process_data_64_v2.etl",
    "syzygy/test_data_32_v0.etl",
    "s4/WindowsUpdate.20251008.140245.443.8.etl",
];

/// A manifest that defines a single event of the test provider.
const MANIFEST: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events"><events>
  <provider name="Made-Up" guid="{5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a}" symbol="MADE_UP">
   <events><event value="7" version="1" level="win:Informational" template="T" message="$(string.M)"/></events>
   <templates><template tid="T">
    <data name="Path" inType="win:UnicodeString"/>
    <data name="Count" inType="win:UInt32"/>
    <struct name="Pair" count="2"><data name="Low" inType="win:UInt8"/><data name="High" inType="win:HexInt32"/></struct>
   </template></templates>
  </provider></events></instrumentation>
 <localization><resources culture="en-US"><stringTable>
  <string id="M" value="%1 came %2 times%nin all"/>
 </stringTable></resources></localization>
</instrumentationManifest>"#;

/// A payload of that event with text that every format has to escape.
fn hostile_payload() -> Vec<u8> {
    let text = "C:\\<&\">\x1b_x001B_\u{202e}=";
    let units = text.encode_utf16().chain([0xd800, 0]);
    let mut payload: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    payload.extend(3u32.to_le_bytes());
    for pair in [(1u8, 0x10u32), (2, 0x20)] {
        payload.push(pair.0);
        payload.extend(pair.1.to_le_bytes());
    }
    payload
}

/// The elements below the root, each with the JSON line of the same event.
fn compare(xml: &str, jsonl: &str, name: &str) {
    let options = roxmltree::ParsingOptions {
        allow_dtd: false,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(xml, options)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "Events");
    let events: Vec<_> = root
        .children()
        .filter(roxmltree::Node::is_element)
        .collect();
    let lines: Vec<Value> = jsonl
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(events.len(), lines.len(), "{name}");
    for (event, line) in events.iter().zip(&lines) {
        assert_eq!(event.tag_name(), (NAMESPACE, "Event").into(), "{name}");
        let parts: Vec<_> = event
            .children()
            .filter(|n| n.is_element())
            .map(|n| n.tag_name().name())
            .collect();
        let known = [
            "EventData",
            "DebugData",
            "BinaryEventData",
            "ProcessingErrorData",
        ];
        assert!(
            parts.len() >= 2 && parts[0] == "System" && known.contains(&parts[1]),
            "{name}: {parts:?}"
        );
        assert!(
            parts[2..]
                .iter()
                .all(|p| ["RenderingInfo", "ExtendedTracingInfo"].contains(p))
        );
        let find = |tag: &str| {
            event
                .descendants()
                .find(|n| n.has_tag_name((NAMESPACE, tag)))
        };
        let time = find("TimeCreated").unwrap();
        assert_eq!(
            time.attribute("SystemTime"),
            line["time"].as_str(),
            "{name}"
        );
        let timestamp: u64 = time.attribute("RawTime").unwrap().parse().unwrap();
        assert_eq!(
            timestamp as i64,
            line["timestamp"].as_i64().unwrap(),
            "{name}"
        );
        let number = |tag: &str| find(tag).and_then(|n| n.text()?.parse::<u64>().ok());
        for (tag, member) in [
            ("EventID", "id"),
            ("Opcode", "opcode"),
            ("Version", "version"),
        ] {
            assert_eq!(
                number(tag).unwrap(),
                line[member].as_u64().unwrap_or(0),
                "{name}: {tag}"
            );
        }
        // Fields have the same order, names and text.
        let Some(fields) = line["fields"].as_object() else {
            continue;
        };
        if parts[1] == "ProcessingErrorData" {
            assert_eq!(line["payload_short"], true, "{name}: {line}");
            continue;
        }
        let data = find("EventData").unwrap();
        for item in data
            .children()
            .filter(|n| n.has_tag_name((NAMESPACE, "Data")))
        {
            let member = item.attribute("Name").unwrap();
            let field = &fields[member];
            let name_of_value = fields
                .get(&format!("{member}_name"))
                .and_then(Value::as_str);
            if let (Some(text), 0) = (
                field.as_str(),
                item.text().unwrap_or("").matches("_x").count(),
            ) {
                let named = name_of_value.map_or_else(String::new, |value| format!("({value})"));
                assert_eq!(
                    item.text().unwrap_or(""),
                    format!("{text}{named}"),
                    "{name}: {line}"
                );
            }
        }
    }
}

#[needs(traces)]
#[test]
fn dump_xml_of_real_traces_is_valid() {
    for name in SMALL {
        let path = etl_test_support::trace(name);
        let here = directory(&[]);
        let path = path.to_str().unwrap();
        let xml = etlkit(here.path(), &["dump", "--format", "xml", path]);
        let jsonl = etlkit(here.path(), &["dump", "--format", "jsonl", path]);
        assert_eq!(xml.code, jsonl.code, "{name}");
        compare(&xml.out, &jsonl.out, name);
    }
}

#[test]
fn dump_xml_of_truncated_trace_is_valid() {
    let here = directory(&[("t.etl", &trace()), ("cut.etl", &trace()[..0x2060])]);
    for args in [
        &["t.etl"][..],
        &["--limit", "2", "t.etl"],
        &["cut.etl"],
        &["--raw", "t.etl"],
    ] {
        let xml = etlkit(here.path(), &[&["dump", "--format", "xml"], args].concat());
        let jsonl = etlkit(
            here.path(),
            &[&["dump", "--format", "jsonl"], args].concat(),
        );
        if args[0] == "--raw" {
            assert!(!xml.out.contains("<Data"));
            roxmltree::Document::parse(&xml.out).unwrap();
        } else {
            compare(&xml.out, &jsonl.out, args[0]);
        }
        assert!(!xml.out.contains('\x1b'));
    }
    let strict = etlkit(
        here.path(),
        &["dump", "--strict", "--format", "xml", "cut.etl"],
    );
    assert_eq!((strict.code, strict.out.as_str()), (2, ""));
}

#[test]
fn dump_escapes_hostile_text_in_every_format() {
    let trace = trace_of(PROVIDER, 7, 1, &hostile_payload());
    let here = directory(&[("t.etl", &trace), ("m.man", MANIFEST.as_bytes())]);
    let mut all = String::new();
    for args in [
        &["--format", "text"][..],
        &["--format", "jsonl"],
        &["--format", "xml"],
        &[
            "--format",
            "csv",
            "--columns",
            "event,Path,count,Pair,fields.id,message",
        ],
    ] {
        let args = [&["dump", "--manifest", "m.man", "--id", "7", "t.etl"], args].concat();
        let said = etlkit(here.path(), &args);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(!said.out.contains(['\x1b', '\u{202e}']), "{}", said.out);
        all += &format!("{}\n{}{}\n", args[6..].join(" "), said.out, said.err);
        if args.contains(&"xml") {
            let document = roxmltree::Document::parse(&said.out).unwrap();
            let path = document
                .descendants()
                .find(|n| n.attribute("Name") == Some("Path"));
            let decoded = decode_name(path.unwrap().text().unwrap());
            assert_eq!(decoded, "C:\\<&\">\x1b_x001B_\u{202e}=\u{fffd}");
        }
    }
    insta::assert_snapshot!("hostile_text", all);
}

/// As `XmlConvert.DecodeName` of .NET; an unpaired surrogate becomes U+FFFD.
fn decode_name(text: &str) -> String {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = rest
            .strip_prefix("_x")
            .and_then(|r| r.get(..5)?.strip_suffix('_'));
        if let Some(unit) = code.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
            units.push(unit);
            rest = &rest[7..];
        } else {
            units.extend(c.encode_utf16(&mut [0; 2]).iter());
            rest = &rest[c.len_utf8()..];
        }
    }
    String::from_utf16_lossy(&units)
}

#[test]
fn dump_csv_prints_selected_columns() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(
        here.path(),
        &[
            "dump",
            "--format",
            "csv",
            "--columns",
            "id,timestamp,nothing,kind",
            "t.etl",
        ],
    );
    assert_eq!(said.code, 0);
    insta::assert_snapshot!("columns", format!("{}{}", said.out, said.err));
    for args in [
        &["--columns", "id"][..],
        &["--format", "csv", "--columns", "id,,timestamp"],
    ] {
        let said = etlkit(here.path(), &[&["dump", "t.etl"], args].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        insta::assert_snapshot!(said.err);
    }
}

/// CSV and JSON lines contain the same fields.
#[needs(trace = "perfview/gcrundownevents.etl")]
#[test]
fn dump_csv_prints_decoded_fields() {
    let path = etl_test_support::trace("perfview/gcrundownevents.etl");
    let here = directory(&[]);
    let path = path.to_str().unwrap();
    let filter = [
        "dump",
        path,
        "-p",
        "Microsoft-Windows-DotNETRuntimeRundown",
        "--id",
        "154",
    ];
    let csv = [
        &filter[..],
        &[
            "--format",
            "csv",
            "--columns",
            "timestamp,ModuleILPath,ModuleID",
        ],
    ];
    let csv = etlkit(here.path(), &csv.concat()).out;
    let jsonl = etlkit(here.path(), &[&filter[..], &["--format", "jsonl"]].concat()).out;
    let lines: Vec<Value> = jsonl
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(!lines.is_empty());
    assert_eq!(csv.lines().count(), lines.len() + 1);
    for (row, line) in csv.lines().skip(1).zip(&lines) {
        let cells: Vec<_> = row.split(',').collect();
        assert_eq!(cells[0], line["timestamp"].to_string());
        assert_eq!(
            cells[1].trim_matches('"'),
            line["fields"]["ModuleILPath"].as_str().unwrap()
        );
        assert!(!cells[2].is_empty());
    }
}
