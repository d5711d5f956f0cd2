use super::*;
use crate::decode::{Decoder, Value};
use crate::model::{Count, FieldKind, FieldRef, InType, Length, OutType};
use etl_format::constants::PointerSize;

const MANIFEST: &str = r#"<?xml version="1.0"?>
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events"><events>
  <provider name="Test-Provider" guid="{01020304-0506-0708-090a-0b0c0d0e0f10}" symbol="P">
   <channels><channel chid="OPS" name="Test/Operational" type="Operational"/></channels>
   <levels><level name="Loud" value="17"/></levels>
   <tasks><task name="Work" value="3"><opcodes><opcode name="Step" value="20"/></opcodes></task></tasks>
   <opcodes><opcode name="Global" value="30"/></opcodes>
   <keywords><keyword name="K1" mask="0x1"/><keyword name="K8" mask="0x80"/></keywords>
   <maps>
    <valueMap name="Color"><map value="1" message="$(string.red)"/><map value="0x2" message="green"/></valueMap>
    <bitMap name="Flags"><map value="0x1" message="$(string.red)"/></bitMap>
   </maps>
   <templates>
    <template tid="T1">
     <data name="Color" inType="win:UInt32" map="Color"/>
     <data name="Count" inType="win:UInt16"/>
     <struct name="Pairs" count="Count">
      <data name="Key" inType="win:UInt8"/>
      <data name="Blob" inType="win:Binary" length="Key"/>
      <data name="Same" inType="win:AnsiString" length="Count"/>
     </struct>
     <data name="Fixed" inType="win:UnicodeString" length="2"/>
     <data name="Addr" inType="win:Binary" outType="win:IPv6"/>
     <data name="Err" inType="win:UInt32" outType="win:NTSTATUS"/>
     <UserData><x/></UserData>
    </template>
   </templates>
   <events>
    <event value="7" version="2" symbol="Stepped" task="Work" opcode="Step" level="Loud" keywords="K1 K8"
      channel="OPS" template="T1" message="$(string.stepped)"/>
    <event value="8" level="win:Error" opcode="win:Start"/>
   </events>
  </provider></events></instrumentation>
 <localization>
  <resources culture="de-DE"><stringTable><string id="red" value="rot"/><string id="only" value="x"/></stringTable></resources>
  <resources culture="en-US"><stringTable><string id="red" value="red"/><string id="stepped" value="Step %1 of %2"/></stringTable></resources>
 </localization>
</instrumentationManifest>"#;

#[test]
fn parse_resolves_everything_an_event_refers_to() {
    let schemas = parse(MANIFEST).unwrap();
    let [stepped, plain] = &schemas[..] else {
        panic!("{schemas:?}")
    };
    assert_eq!(
        stepped.provider.to_string(),
        "01020304-0506-0708-090a-0b0c0d0e0f10"
    );
    assert_eq!(stepped.identity, Identity::Modern { id: 7, version: 2 });
    assert_eq!((stepped.task.value, stepped.opcode.value), (3, 20));
    assert_eq!((stepped.level.value, stepped.channel.value), (17, 16));
    assert_eq!((stepped.keywords, stepped.keyword_names.len()), (0x81, 2));
    assert_eq!(stepped.message.as_deref(), Some("Step %1 of %2"));
    let f = &stepped.fields;
    assert_eq!(
        f[0].map.as_ref().map(|m| (m.get(1), m.get(2))),
        Some((Some("red"), Some("green")))
    );
    assert_eq!(f[2].count, Count::Field(FieldRef::Here(1)));
    let FieldKind::Struct(members) = &f[2].kind else {
        panic!()
    };
    assert_eq!(members[1].length, Length::Field(FieldRef::Here(0)));
    assert_eq!(members[2].length, Length::Field(FieldRef::Top(1)));
    assert_eq!(f[3].length, Length::Fixed(2));
    assert_eq!(
        (f[4].length, f[5].out),
        (Length::Fixed(16), OutType::NtStatus)
    );
    assert_eq!(f[5].in_type(), Some(InType::UInt32));
    assert_eq!(
        (plain.level.value, plain.opcode.value, plain.fields.len()),
        (2, 1, 0)
    );
}

#[test]
fn schemas_of_a_manifest_decode_payloads() {
    let schemas = parse(MANIFEST).unwrap();
    let decoder = Decoder::new(Arc::new(schemas[0].clone()));
    let mut payload = b"\x01\0\0\0\x02\0\x01xab\x02yzcda\0b\0".to_vec();
    payload.extend([0; 15]);
    payload.extend([1, 5, 0, 0, 0xc0]);
    assert!(decoder.check(&payload, PointerSize::P8).is_exact());
    let Some(Value::Array(pairs)) = decoder.get("Pairs", &payload, PointerSize::P8) else {
        panic!()
    };
    assert_eq!(pairs.len(), 2);
    let Some(Value::Ipv6(addr)) = decoder.get("Addr", &payload, PointerSize::P8) else {
        panic!()
    };
    assert!(addr.is_loopback());
}

#[test]
fn parse_reports_errors_with_their_line() {
    for (from, to, message) in [
        (
            "template=\"T1\"",
            "template=\"T2\"",
            "line 30: there is no template \"T2\"",
        ),
        (
            "count=\"Count\"",
            "count=\"Cnt\"",
            "line 18: there is no counting field \"Cnt\"",
        ),
        (
            "keywords=\"K1 K8\"",
            "keywords=\"K2\"",
            "line 30: there is no keyword \"K2\"",
        ),
        (
            "inType=\"win:UInt8\"",
            "inType=\"win:UInt9\"",
            "line 19: there is no type \"win:UInt9\"",
        ),
        (
            "value=\"7\"",
            "value=\"70000\"",
            "line 30: <event> needs a value that can be read",
        ),
    ] {
        let text = MANIFEST.replace(from, to);
        let error = parse(&text).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(parse("<a/>"), Err(Error::NoProvider));
    assert!(matches!(parse("<a>"), Err(Error::Xml(_))));
}

/// Names of Windows under another prefix, reserved numbers, channels of Windows, and elements of
/// any name in what an event looks like as XML.
#[test]
fn parse_knows_what_windows_defines() {
    let text = MANIFEST
        .replace(
            "xmlns:win=",
            "xmlns:wm=\"http://manifests.microsoft.com/win/2004/08/windows/events\" xmlns:win=",
        )
        .replace(
            "level=\"win:Error\" opcode=\"win:Start\"",
            "level=\"wm:Error\" opcode=\"win:ReservedOpcode241\" \
          keywords=\"wm:ResponseTime win:ReservedKeyword63\" channel=\"APP\"",
        )
        .replace(
            "<channels>",
            "<channels><importChannel chid=\"APP\" name=\"Application\"/>",
        )
        .replace(
            "<x/>",
            "<event value=\"none\"/><level name=\"a\"/><template/>",
        );
    let schemas = parse(&text).unwrap();
    let [stepped, plain] = &schemas[..] else {
        panic!("{schemas:?}")
    };
    assert_eq!((plain.level.value, plain.opcode.value), (2, 241));
    assert_eq!(plain.keywords, 1 << 63 | 1 << 48);
    assert_eq!((plain.channel.value, stepped.channel.value), (9, 16));
}

/// An error in a manifest from a file is reported; of one that a source wrote the rest is read.
#[test]
fn parse_is_lenient_for_manifests_of_sources() {
    for (from, to) in [
        ("keywords=\"K1 K8\"", "keywords=\"K2\""),
        ("inType=\"win:UInt8\"", "inType=\"win:UInt9\""),
    ] {
        let text = MANIFEST.replace(from, to);
        assert!(parse(&text).is_err());
        let schemas = parse_lenient(&text).unwrap();
        assert_eq!(schemas.len(), 1, "the event that is sound");
        assert_eq!(schemas[0].source, SchemaSource::EventSource);
        assert_eq!(schemas[0].provider_name, "Test-Provider");
    }
}

/// What people are shown for the numbers of an event is what the manifest says to them.
#[test]
fn parse_takes_display_messages_as_names() {
    let text = MANIFEST
        .replace("name=\"Loud\" value=\"17\"", "name=\"Loud\" value=\"17\" message=\"$(string.loud)\"")
        .replace("name=\"Work\" value=\"3\"", "name=\"Work\" value=\"3\" message=\"Working\"")
        .replace("name=\"Step\" value=\"20\"", "name=\"Step\" value=\"20\" message=\"$(string.step)\"")
        .replace("mask=\"0x80\"", "mask=\"0x80\" message=\"$(mc.KEY)\"")
        .replace(
            "</provider></events>",
            "</provider><messageTable>\
              <message value=\"0x1001\" mid=\"KEY\" symbol=\"MSG_KEY\" message=\"the $(string.key)\"/>\
              <message value=\"0x1002\" symbol=\"MSG_RED\" message=\"costs $(5)\"/>\
             </messageTable></events>",
        )
        .replace("message=\"green\"", "message=\"$(mc.MSG_RED) or $(mc.0x1001)\"")
        .replace(
            "<string id=\"red\" value=\"red\"/>",
            "<string id=\"red\" value=\"red\"/><string id=\"loud\" value=\"very loud\"/>\
             <string id=\"step\" value=\"one step\"/><string id=\"key\" value=\"eighth\"/>",
        );
    let schemas = parse(&text).unwrap();
    let stepped = &schemas[0];
    assert_eq!(
        (&*stepped.level.name, &*stepped.task.name),
        ("very loud", "Working")
    );
    assert_eq!(
        (&*stepped.opcode.name, &*stepped.channel.name),
        ("one step", "Test/Operational")
    );
    assert_eq!(stepped.keyword_names, ["K1", "the eighth"]);
    let map = stepped.fields[0].map.as_ref().unwrap();
    assert_eq!(map.get(2), Some("costs $(5) or the eighth"));
    // Without messages, the names come from the elements.
    let schemas = parse(MANIFEST).unwrap();
    assert_eq!(
        (&*schemas[0].level.name, &*schemas[0].task.name),
        ("Loud", "Work")
    );
    assert_eq!(&*schemas[1].level.name, "win:Error");
}

/// References that lead in circles, or to one long text over and over, end.
#[test]
fn parse_bounds_references_of_messages() {
    let text = MANIFEST.replace(
        "<string id=\"red\" value=\"red\"/>",
        "<string id=\"red\" value=\"$(string.red)$(string.red)\"/>",
    );
    let schemas = parse(&text).unwrap();
    assert_eq!(schemas[0].fields[0].map.as_ref().unwrap().get(1), None);
    let many = "$(string.stepped)".repeat(65);
    let text = MANIFEST.replace("message=\"green\"", &format!("message=\"{many}\""));
    let schemas = parse(&text).unwrap();
    assert_eq!(schemas[0].fields[0].map.as_ref().unwrap().get(2), None);
}

/// Windows makes no use of pattern maps, but they are part of the grammar.
#[test]
fn parse_reads_pattern_maps() {
    let maps = "<namedQueries><patternMaps>\
        <patternMap name=\"Paths\" format=\"http://example.org/regex\">\
         <map name=\"^C:\" value=\"(system)\"/><map name=\"tmp$\" value=\"(scratch)\"/>\
        </patternMap></patternMaps></namedQueries>";
    let text = MANIFEST
        .replace("   <templates>", &format!("{maps}<templates>"))
        .replace("length=\"2\"/>", "length=\"2\" map=\"Paths\"/>");
    let schemas = parse(&text).unwrap();
    let map = schemas[0]
        .field_index("Fixed")
        .and_then(|at| schemas[0].fields[at].map.clone());
    let map = map.unwrap();
    assert_eq!(
        (map.kind(), map.format()),
        (MapKind::Patterns, "http://example.org/regex")
    );
    let [first, second] = map.patterns() else {
        panic!("{map:?}")
    };
    assert_eq!((&*first.pattern, &*first.text), ("^C:", "(system)"));
    assert_eq!((&*second.pattern, &*second.text), ("tmp$", "(scratch)"));
    for (from, to, message) in [
        (
            "format=\"http://example.org/regex\"",
            "",
            "<patternMap> needs a format",
        ),
        ("name=\"^C:\"", "", "<map> needs a name"),
        (" value=\"(system)\"", "", "<map> needs a value"),
    ] {
        let error = parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
