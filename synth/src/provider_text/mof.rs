//! The MOF of a classic provider: a class for the provider, one for each version of its events, and
//! one for each event.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use etl_schema::{EventSchema, Identity, InType};

use crate::model::ProviderPlan;

/// The MOF, as `mofcomp` compiles it.
pub(super) fn mof(plan: &ProviderPlan) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(plan, &mut out);
    out
}

fn write(plan: &ProviderPlan, out: &mut String) -> fmt::Result {
    let root = identifier(&plan.name);
    let name = quoted(&plan.name);
    let guid = plan.guid;
    writeln!(out, "#pragma classflags(\"forceupdate\")")?;
    writeln!(out, "#pragma namespace(\"\\\\\\\\.\\\\root\\\\WMI\")\n")?;
    writeln!(
        out,
        "[Dynamic, Description({name}), Guid(\"{{{guid}}}\"), locale(1033)]"
    )?;
    writeln!(out, "class {root} : EventTrace\n{{\n}};")?;
    let mut versions: BTreeMap<u16, Vec<(u8, &EventSchema)>> = BTreeMap::new();
    for event in &plan.events {
        if let Identity::Classic { opcode, version } = event.identity {
            versions.entry(version).or_default().push((opcode, event));
        }
    }
    for (version, events) in versions {
        let class = format!("{root}_V{version}");
        writeln!(
            out,
            "\n[Dynamic, Description({name}), Guid(\"{{{guid}}}\"), EventVersion({version}), \
             DisplayName({name}), locale(1033)]"
        )?;
        writeln!(out, "class {class} : {root}\n{{\n}};")?;
        for (opcode, event) in events {
            let named = identifier(&event.name);
            let shown = quoted(&event.name);
            writeln!(
                out,
                "\n[Dynamic, Description({shown}), EventType({opcode}), EventTypeName({shown}), \
                 locale(1033)]"
            )?;
            writeln!(out, "class {class}_{named} : {class}\n{{")?;
            let fields = event
                .fields
                .iter()
                .filter_map(|f| Some((f, mof_type(f.in_type()?)?)));
            for (number, (field, (qualifiers, ty))) in (1u32..).zip(fields) {
                let described = quoted(&field.name);
                let name = identifier(&field.name);
                writeln!(
                    out,
                    "    [WmiDataId({number}), Description({described}){qualifiers}, read] {ty} {name};"
                )?;
            }
            writeln!(out, "}};")?;
        }
    }
    Ok(())
}

/// Further qualifiers and the type of a property; `None` for what takes no bytes.
fn mof_type(ty: InType) -> Option<(&'static str, &'static str)> {
    Some(match ty {
        InType::Null => return None,
        InType::Utf16 => (
            ", StringTermination(\"NullTerminated\"), format(\"w\")",
            "string",
        ),
        InType::Ansi => (", StringTermination(\"NullTerminated\")", "string"),
        InType::Int8 => ("", "sint8"),
        InType::UInt8 => ("", "uint8"),
        InType::Int16 => ("", "sint16"),
        InType::UInt16 => ("", "uint16"),
        InType::Int32 => ("", "sint32"),
        InType::UInt32 | InType::Boolean => ("", "uint32"),
        InType::Int64 => ("", "sint64"),
        InType::UInt64 => ("", "uint64"),
        InType::Float => ("", "real32"),
        InType::Double => ("", "real64"),
        InType::HexInt32 => (", format(\"x\")", "uint32"),
        InType::HexInt64 => (", format(\"x\")", "uint64"),
        InType::Pointer => (", pointer, format(\"x\")", "uint32"),
        InType::SizeT => (", extension(\"SizeT\")", "object"),
        InType::Guid => (", extension(\"Guid\")", "object"),
        InType::FileTime => (", extension(\"WmiTime\")", "object"),
        InType::Sid | InType::WbemSid => (", extension(\"Sid\")", "object"),
        InType::SystemTime => (", MAX(16)", "uint8"),
        InType::Binary => (", extension(\"Variant\")", "object"),
    })
}

/// A name of letters, digits and underscores that begins with a letter.
fn identifier(name: &str) -> String {
    let text = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        text
    } else {
        format!("X{text}")
    }
}

/// A name as a text of MOF.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mof_describes_each_event_as_a_class() {
        let script = r#"
            provider "My driver" kind="classic" guid="11111111-2222-3333-4444-555555555555" {
                event "Read" opcode=10 { field "Length" "UInt32"; field "Path" "UnicodeString"; field "Where" "Pointer" }
                event "Closed" opcode=11 version=1
            }
        "#;
        let scenario = crate::Script::new("driver", script).parse().unwrap();
        let text = mof(&scenario.providers[0]);
        let expected = r#"#pragma classflags("forceupdate")
#pragma namespace("\\\\.\\root\\WMI")

[Dynamic, Description("My driver"), Guid("{11111111-2222-3333-4444-555555555555}"), locale(1033)]
class My_driver : EventTrace
{
};

[Dynamic, Description("My driver"), Guid("{11111111-2222-3333-4444-555555555555}"), EventVersion(0), DisplayName("My driver"), locale(1033)]
class My_driver_V0 : My_driver
{
};

[Dynamic, Description("Read"), EventType(10), EventTypeName("Read"), locale(1033)]
class My_driver_V0_Read : My_driver_V0
{
    [WmiDataId(1), Description("Length"), read] uint32 Length;
    [WmiDataId(2), Description("Path"), StringTermination("NullTerminated"), format("w"), read] string Path;
    [WmiDataId(3), Description("Where"), pointer, format("x"), read] uint32 Where;
};

[Dynamic, Description("My driver"), Guid("{11111111-2222-3333-4444-555555555555}"), EventVersion(1), DisplayName("My driver"), locale(1033)]
class My_driver_V1 : My_driver
{
};

[Dynamic, Description("Closed"), EventType(11), EventTypeName("Closed"), locale(1033)]
class My_driver_V1_Closed : My_driver_V1
{
};
"#;
        assert_eq!(text, expected);
    }
}
