//! The XML instrumentation manifest of a manifest provider, as its developers compile it.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use etl_schema::{EventSchema, Identity, InType};

use super::{escape, level};
use crate::model::ProviderPlan;

/// Opcodes with names that Windows defines.
const OPCODES: [(u8, &str); 11] = [
    (0, "win:Info"),
    (1, "win:Start"),
    (2, "win:Stop"),
    (3, "win:DC_Start"),
    (4, "win:DC_Stop"),
    (5, "win:Extension"),
    (6, "win:Reply"),
    (7, "win:Resume"),
    (8, "win:Suspend"),
    (9, "win:Send"),
    (240, "win:Receive"),
];

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">
 <instrumentation xmlns:win=\"http://manifests.microsoft.com/win/2004/08/windows/events\" \
 xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">
  <events>
";

/// The manifest.
pub(super) fn manifest(plan: &ProviderPlan) -> String {
    let mut out = HEAD.to_owned();
    // Writing into a String does not fail.
    let _ = write(plan, &mut out);
    out
}

fn write(plan: &ProviderPlan, out: &mut String) -> fmt::Result {
    let name = escape(&plan.name);
    let guid = plan.guid;
    writeln!(
        out,
        "   <provider name=\"{name}\" guid=\"{{{guid}}}\" symbol=\"Provider\" \
         resourceFileName=\"{name}.dll\" messageFileName=\"{name}.dll\">"
    )?;
    let mut strings = String::new();
    let mut keywords = plan.events.iter().fold(0, |mask, e| mask | e.keywords);
    writeln!(out, "    <keywords>")?;
    while keywords != 0 {
        let bit = keywords & keywords.wrapping_neg();
        // Readers show the message of a keyword, and some have to have one.
        let name = format!("K{bit:x}");
        writeln!(strings, "    <string id=\"{name}\" value=\"{name}\"/>")?;
        let message = format!("$(string.{name})");
        writeln!(
            out,
            "     <keyword name=\"{name}\" mask=\"{bit:#x}\" message=\"{message}\"/>"
        )?;
        keywords &= !bit;
    }
    writeln!(out, "    </keywords>\n    <levels>")?;
    let levels: BTreeSet<u8> = plan.events.iter().map(|e| e.level.value).collect();
    for value in levels.range(16..) {
        writeln!(out, "     <level name=\"L{value}\" value=\"{value}\"/>")?;
    }
    writeln!(out, "    </levels>\n    <tasks>")?;
    let tasks: BTreeSet<u16> = plan
        .events
        .iter()
        .map(|e| e.task.value)
        .filter(|t| *t > 0)
        .collect();
    for task in tasks {
        writeln!(out, "     <task name=\"T{task}\" value=\"{task}\"/>")?;
    }
    writeln!(out, "    </tasks>\n    <opcodes>")?;
    let opcodes: BTreeSet<u8> = plan.events.iter().map(|e| e.opcode.value).collect();
    for code in opcodes
        .into_iter()
        .filter(|code| OPCODES.iter().all(|(known, _)| known != code))
    {
        writeln!(out, "     <opcode name=\"O{code}\" value=\"{code}\"/>")?;
    }
    writeln!(out, "    </opcodes>\n    <templates>")?;
    for event in &plan.events {
        template(event, out)?;
    }
    writeln!(out, "    </templates>\n    <events>")?;
    for event in &plan.events {
        one(event, &mut strings, out)?;
    }
    write!(
        out,
        "    </events>\n   </provider>\n  </events>\n </instrumentation>\n <localization>\n  \
         <resources culture=\"en-US\">\n   <stringTable>\n{strings}   </stringTable>\n  \
         </resources>\n </localization>\n</instrumentationManifest>\n"
    )
}

/// The name of an event's template.
fn template_of(event: &EventSchema) -> Option<String> {
    let Identity::Modern { id, version } = event.identity else {
        return None;
    };
    (!event.fields.is_empty()).then(|| format!("E{id}v{version}"))
}

fn template(event: &EventSchema, out: &mut String) -> fmt::Result {
    let Some(id) = template_of(event) else {
        return Ok(());
    };
    writeln!(out, "     <template tid=\"{id}\">")?;
    for field in &event.fields {
        let name = escape(&field.name);
        let (ty, length) = match field.in_type() {
            Some(InType::Null) | None => continue,
            // Its length is before it.
            Some(InType::Binary) => {
                writeln!(
                    out,
                    "      <data name=\"{name}Length\" inType=\"win:UInt16\"/>"
                )?;
                ("Binary", format!(" length=\"{name}Length\""))
            }
            Some(InType::SizeT) => ("Pointer", String::new()),
            Some(ty) => (ty.name(), String::new()),
        };
        writeln!(
            out,
            "      <data name=\"{name}\" inType=\"win:{ty}\"{length}/>"
        )?;
    }
    writeln!(out, "     </template>")
}

fn one(event: &EventSchema, strings: &mut String, out: &mut String) -> fmt::Result {
    let Identity::Modern { id, version } = event.identity else {
        return Ok(());
    };
    let symbol = escape(&event.name);
    write!(
        out,
        "     <event value=\"{id}\" version=\"{version}\" symbol=\"{symbol}\""
    )?;
    match event.level.value {
        value @ 0..=5 => write!(out, " level=\"{}\"", level(value).0)?,
        value @ 6..=15 => write!(out, " level=\"win:ReservedLevel{value}\"")?,
        value => write!(out, " level=\"L{value}\"")?,
    }
    if event.task.value > 0 {
        write!(out, " task=\"T{}\"", event.task.value)?;
    }
    let opcode = event.opcode.value;
    match OPCODES.iter().find(|(known, _)| *known == opcode) {
        Some((_, name)) => write!(out, " opcode=\"{name}\"")?,
        None => write!(out, " opcode=\"O{opcode}\"")?,
    }
    let bits = (0..64)
        .map(|n| 1u64 << n)
        .filter(|bit| event.keywords & bit != 0);
    let bits: Vec<String> = bits.map(|bit| format!("K{bit:x}")).collect();
    if !bits.is_empty() {
        write!(out, " keywords=\"{}\"", bits.join(" "))?;
    }
    if let Some(template) = template_of(event) {
        write!(out, " template=\"{template}\"")?;
    }
    if let Some(message) = &event.message {
        let key = format!("E{id}v{version}.message");
        write!(out, " message=\"$(string.{key})\"")?;
        writeln!(
            strings,
            "    <string id=\"{key}\" value=\"{}\"/>",
            escape(message)
        )?;
    }
    writeln!(out, "/>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_schema::sources::manifest::parse;

    #[test]
    fn manifest_reads_as_the_events_that_it_is_written_from() {
        let script = r#"
            provider "Contoso & Sons" kind="manifest" {
                event "Sold" id=7 version=2 level=3 keywords=0x8000000000000011 task=5 opcode=11 message="sold %1 for \"%2\"" {
                    field "Count" "UInt32"; field "What" "UnicodeString"; field "Blob" "Binary"
                    field "Address" "Pointer"; field "Who" "SID"; field "When" "FILETIME"; field "Id" "GUID"
                }
                event "Began" id=8 level=5 opcode=1 { field "Text" "AnsiString"; field "Exact" "Double"; field "Yes" "Boolean" }
                event "Plain" id=9 level=0
                event "Fine" id=10 level=7
                event "Finest" id=11 level=20
            }
        "#;
        let scenario = crate::Script::new("shop", script).parse().unwrap();
        let plan = &scenario.providers[0];
        let text = manifest(plan);
        let found = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(found.len(), plan.events.len());
        for (found, event) in found.iter().zip(&plan.events) {
            assert_eq!(found.provider, plan.guid);
            assert_eq!(&*found.provider_name, plan.name);
            assert_eq!(found.identity, event.identity);
            let numbers = |e: &EventSchema| {
                (
                    e.level.value,
                    e.task.value,
                    e.opcode.value,
                    e.keywords,
                    e.message.clone(),
                )
            };
            assert_eq!(numbers(found), numbers(event));
            let fields = |e: &EventSchema| -> Vec<_> {
                e.fields
                    .iter()
                    .map(|f| (f.name.to_string(), f.in_type()))
                    .collect()
            };
            let mut expected = fields(event);
            if let Some(at) = expected.iter().position(|(name, _)| name == "Blob") {
                expected.insert(at, ("BlobLength".to_owned(), Some(InType::UInt16)));
            }
            assert_eq!(fields(found), expected);
        }
    }
}
