//! Text descriptions of providers: manifests (also of `EventSource`s), MOF of classic events,
//! and TMF files of WPP messages.

mod manifest;
mod mof;

use etl_schema::{Identity, InType};

use crate::model::{ProviderKind, ProviderPlan};
use manifest::manifest;
use mof::mof;

/// What the name of a provider's file ends with; `None` for providers that are described in traces.
pub(crate) fn file_extension(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::Manifest => Some("man"),
        ProviderKind::Classic => Some("mof"),
        ProviderKind::Wpp => Some("tmf"),
        ProviderKind::TraceLogging | ProviderKind::EventSource | ProviderKind::Windows => None,
    }
}

/// The name of the file that describes a provider outside of its traces.
pub(crate) fn description_name(plan: &ProviderPlan) -> Option<String> {
    Some(format!("{}.{}", plan.name, file_extension(plan.kind)?))
}

/// Name and text of the file that describes a provider outside of its traces.
pub(crate) fn description_file(plan: &ProviderPlan) -> Option<(String, String)> {
    let text = match plan.kind {
        ProviderKind::Manifest => manifest(plan),
        ProviderKind::Classic => mof(plan),
        ProviderKind::Wpp => tmf(plan),
        ProviderKind::TraceLogging | ProviderKind::EventSource | ProviderKind::Windows => {
            return None;
        }
    };
    Some((description_name(plan)?, text))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// The manifest that an `EventSource` writes into a trace.
pub(crate) fn event_source_manifest(plan: &ProviderPlan) -> String {
    let mut mask = plan.events.iter().fold(0, |mask, e| mask | e.keywords);
    let mut keywords = String::new();
    while mask != 0 {
        let bit = mask & mask.wrapping_neg();
        keywords.push_str(&format!(
            "   <keyword name=\"K{bit:x}\" mask=\"{bit:#x}\"/>\n"
        ));
        mask &= !bit;
    }
    let mut events = String::new();
    let mut templates = String::new();
    for event in &plan.events {
        let Identity::Modern { id, version } = event.identity else {
            continue;
        };
        let bits: Vec<String> = (0..64)
            .map(|n| 1u64 << n)
            .filter(|bit| event.keywords & bit != 0)
            .map(|bit| format!("K{bit:x}"))
            .collect();
        let name = escape(&event.name);
        events.push_str(&format!(
            "   <event value=\"{id}\" version=\"{version}\" level=\"{}\" symbol=\"{name}\" keywords=\"{}\"{}/>\n",
            level(event.level.value).0,
            bits.join(" "),
            if event.fields.is_empty() { String::new() } else { format!(" template=\"T{id}v{version}\"") },
        ));
        if event.fields.is_empty() {
            continue;
        }
        templates.push_str(&format!("   <template tid=\"T{id}v{version}\">\n"));
        for field in &event.fields {
            let ty = field.in_type().map_or("UInt32", InType::name);
            let name = escape(&field.name);
            let mut length = String::new();
            if field.in_type() == Some(InType::Binary) {
                // Its length is before it.
                templates.push_str(&format!(
                    "    <data name=\"{name}Size\" inType=\"win:UInt32\"/>\n"
                ));
                length = format!(" length=\"{name}Size\"");
            }
            templates.push_str(&format!(
                "    <data name=\"{name}\" inType=\"win:{ty}\"{length}/>\n"
            ));
        }
        templates.push_str("   </template>\n");
    }
    format!(
        "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\n \
         <instrumentation xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:win=\"http://manifests.microsoft.com/win/2004/08/windows/events\">\n  \
         <events xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\n  \
         <provider name=\"{}\" guid=\"{{{}}}\" symbol=\"Source\">\n  \
         <keywords>\n{keywords}  </keywords>\n  <events>\n{events}  </events>\n  \
         <templates>\n{templates}  </templates>\n  </provider></events></instrumentation>\n\
         </instrumentationManifest>",
        escape(&plan.name),
        plan.guid,
    )
}

/// Names of the levels in manifests and in TMF files.
const LEVELS: [(&str, &str); 6] = [
    ("win:LogAlways", "NONE"),
    ("win:Critical", "FATAL"),
    ("win:Error", "ERROR"),
    ("win:Warning", "WARNING"),
    ("win:Informational", "INFORMATION"),
    ("win:Verbose", "VERBOSE"),
];

fn level(level: u8) -> (&'static str, &'static str) {
    LEVELS
        .get(usize::from(level))
        .copied()
        .unwrap_or(("win:LogAlways", "NONE"))
}

/// The TMF file of a WPP provider, as tools extract it from a PDB.
fn tmf(plan: &ProviderPlan) -> String {
    let name = &plan.name;
    let source = identifier(&plan.name);
    let mut text = format!("// PDB:  {name}.pdb\n");
    let guid = plan.events.first().map_or(plan.guid, |e| e.provider);
    text.push_str(&format!("{guid} {name} // SRC={source}.c MJ= MN=\n"));
    for (line, event) in plan.events.iter().enumerate() {
        let Identity::Message { number } = event.identity else {
            continue;
        };
        let (_, level) = level(event.level.value);
        let message = event.message.as_deref().unwrap_or_default();
        let flags = format!("0x{:X}", event.keywords);
        text.push_str(&format!(
            "#typev {source}_c{} {number} \"%0{message}\" //   LEVEL={level} FLAGS={flags} FUNC={}\n{{\n",
            line + 1,
            identifier(&event.name),
        ));
        for (field, n) in event.fields.iter().zip(10..) {
            let item = field.in_type().and_then(tmf_item).unwrap_or("ItemULong");
            text.push_str(&format!("{}, {item} -- {n}\n", field.name));
        }
        text.push_str("}\n");
    }
    text
}

/// A name as one word, as the names of functions and source files are.
fn identifier(name: &str) -> String {
    name.replace(|c: char| !c.is_alphanumeric(), "_")
}

/// The name of a type in a TMF file; `None` for types that cannot be fields of messages.
pub(crate) fn tmf_item(ty: InType) -> Option<&'static str> {
    Some(match ty {
        InType::Int8 => "ItemChar",
        InType::UInt8 => "ItemUChar",
        InType::Int16 => "ItemShort",
        InType::UInt16 => "ItemUShort",
        InType::Int32 => "ItemLong",
        InType::UInt32 => "ItemULong",
        InType::HexInt32 => "ItemULongX",
        InType::Int64 => "ItemLongLong",
        InType::UInt64 => "ItemULongLong",
        InType::HexInt64 => "ItemULongLongX",
        InType::Double => "ItemDouble",
        InType::Pointer => "ItemPtr",
        InType::Ansi => "ItemString",
        InType::Utf16 => "ItemWString",
        InType::Guid => "ItemGuid",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_schema::Length;
    use etl_schema::sources::{manifest, tmf as tmf_source};

    fn provider(script: &str) -> ProviderPlan {
        crate::Script::new("p", script)
            .parse()
            .unwrap()
            .providers
            .remove(0)
    }

    #[test]
    fn event_source_manifest_states_the_size_of_bytes_before_them() {
        let plan = provider(
            r#"provider "P" kind="eventsource" { event "E" id=1 {
                field "Blob" "Binary"; field "After" "UInt32"
            } }"#,
        );
        assert_eq!(plan.events[0].fields[0].length, Length::U32);
        let text = event_source_manifest(&plan);
        let found = manifest::parse_lenient(&text).unwrap();
        let fields: Vec<_> = found[0]
            .fields
            .iter()
            .map(|f| (f.name.to_string(), f.in_type()))
            .collect();
        let expected = [
            ("BlobSize", InType::UInt32),
            ("Blob", InType::Binary),
            ("After", InType::UInt32),
        ];
        assert_eq!(
            fields,
            expected.map(|(name, ty)| (name.to_owned(), Some(ty)))
        );
    }

    #[test]
    fn tmf_of_a_provider_with_spaces_in_its_name_has_its_messages() {
        let plan = provider(
            r#"provider "My Prov" kind="wpp" { event "Read all" message="%10!d!" { field "n" "Int32" } }"#,
        );
        let found = tmf_source::parse(&tmf(&plan)).unwrap();
        let message = &found.schemas[0];
        assert_eq!(message.identity, plan.events[0].identity);
        assert_eq!(
            (&*message.provider_name, &*message.task.name),
            ("My Prov", "Read_all")
        );
    }
}
