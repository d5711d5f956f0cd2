//! WPP trace message format files (TMF): the messages that a driver's PDB yields.
//!
//! ```text
//! 01020304-0506-0708-090a-0b0c0d0e0f10 driver // SRC=driver.c
//! #typev driver_c42 10 "%0read %10!d! bytes from %11!s!" //   LEVEL=INFO FLAGS=IO FUNC=Read
//! {
//! length, ItemLong -- 10
//! name, ItemWString -- 11
//! }
//! ```
//!
//! Lines that are none of these are left alone, as tools leave them.

use crate::model::{
    EventSchema, Field, Identity, InType, Length, MapEntry, MapKind, OutType, SchemaSource,
    ValueMap,
};
use etl_format::Guid;
use std::sync::Arc;

/// A TMF file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TmfError {
    /// A line that cannot be understood.
    #[error("line {line}: expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// No message in the file.
    #[error("the file describes no message")]
    Empty,
}

/// The messages of a TMF file. Their provider is the message GUID, their identity the number.
///
/// # Errors
/// The first line that cannot be understood.
pub fn parse(text: &str) -> Result<Vec<EventSchema>, TmfError> {
    let mut out: Vec<EventSchema> = Vec::new();
    let mut provider: Option<(Guid, String)> = None;
    let mut open = false;
    for (index, raw) in text.lines().enumerate() {
        let expect = |expected| TmfError::Line { line: index + 1, expected };
        let line = raw.trim_start_matches('\u{feff}').trim();
        if let Some(rest) = line.strip_prefix("#typev") {
            let (guid, name) =
                provider.as_ref().ok_or(expect("a line with the message GUID before"))?;
            let mut schema = message(*guid, rest)
                .ok_or(expect("#typev NAME NUMBER \"FORMAT\" // LEVEL=... FLAGS=..."))?;
            schema.provider_name = name.clone().into();
            out.push(schema);
        } else if line == "{" {
            open = true;
        } else if line == "}" {
            open = false;
        } else if open {
            let schema = out.last_mut().ok_or(expect("a #typev line before the arguments"))?;
            if let Some(field) = argument(line).ok_or(expect("ARGUMENT, ItemTYPE -- NUMBER"))? {
                schema.fields.push(field);
            }
        } else if let Some((guid, rest)) = line.split_once(' ')
            && let Ok(guid) = guid.parse()
        {
            let name = rest.split("//").next().unwrap_or_default().trim();
            provider = Some((guid, name.to_owned()));
        }
    }
    if out.is_empty() { Err(TmfError::Empty) } else { Ok(out) }
}

fn message(guid: Guid, rest: &str) -> Option<EventSchema> {
    let (name, rest) = rest.trim_start().split_once(' ')?;
    let (number, rest) = rest.trim_start().split_once(' ')?;
    let number = number.parse().ok()?;
    let format = rest.trim_start().strip_prefix('"')?;
    let end = format.rfind("\" //").or_else(|| format.rfind('"'))?;
    let (format, comment) = (format.get(..end)?, format.get(end..)?);
    let mut schema = EventSchema::new(guid, Identity::Message { number }, SchemaSource::Tmf);
    schema.name = name.to_owned().into();
    for word in comment.split_whitespace() {
        match word.split_once('=') {
            Some(("LEVEL", level)) => schema.level.name = level.to_owned().into(),
            Some(("FLAGS", flags)) => schema.keyword_names.push(flags.to_owned().into()),
            Some(("FUNC", function)) => schema.task.name = function.to_owned().into(),
            _ => {}
        }
    }
    // %0 stands for the prefix that a formatter puts before the message.
    schema.message = Some(known_words(format.trim_start_matches("%0"), &schema).into());
    Some(schema)
}

/// A format with `%!FUNC!` and its like replaced by what is said of the message behind it.
fn known_words(format: &str, schema: &EventSchema) -> String {
    let flags = schema.keyword_names.first().map_or("", |name| &**name);
    let mut text = format.to_owned();
    for (word, value) in [
        ("%!FUNC!", &*schema.task.name),
        ("%!LEVEL!", &*schema.level.name),
        ("%!FLAGS!", flags),
        // Parts of the prefix that a formatter puts before the message.
        ("%!STDPREFIX!", ""),
    ] {
        if text.contains(word) {
            text = text.replace(word, &value.replace('%', "%%"));
        }
    }
    text
}

/// `NAME, ItemTYPE -- NUMBER`; `Some(None)` for what takes no bytes.
fn argument(line: &str) -> Option<Option<Field>> {
    let (front, _number) = line.rsplit_once("--")?;
    let at = front.rfind(", Item")?;
    let name = front.get(..at)?.trim().to_owned();
    let ty = front.get(at + 2..)?.trim();
    let (ty, list) = match ty.split_once('(') {
        Some((ty, list)) => (ty, list.trim_end().strip_suffix(')')?),
        None => (ty, ""),
    };
    let plain = |ty: InType| Field::new(name.clone(), ty);
    let out = |ty: InType, out: OutType| Field::new(name.clone(), ty).with_out(out);
    let counted = |ty: InType| Field::new(name.clone(), ty).with_length(Length::U16);
    let fixed = |n: u16| Field::new(name.clone(), InType::Binary).with_length(Length::Fixed(n));
    Some(Some(match ty {
        "ItemLong" => plain(InType::Int32),
        "ItemULong" | "ItemDWord" => plain(InType::UInt32),
        "ItemULongX" | "ItemLongX" => plain(InType::HexInt32),
        "ItemShort" => plain(InType::Int16),
        "ItemUShort" => plain(InType::UInt16),
        "ItemChar" => plain(InType::Int8),
        "ItemUChar" => plain(InType::UInt8),
        "ItemLongLong" => plain(InType::Int64),
        "ItemULongLong" | "ItemLongLongO" | "ItemULongLongO" => plain(InType::UInt64),
        "ItemLongLongX" | "ItemLongLongXX" | "ItemULongLongX" | "ItemULongLongXX" => {
            plain(InType::HexInt64)
        }
        "ItemDouble" => plain(InType::Double),
        "ItemFloat" => plain(InType::Float),
        "ItemPtr" => plain(InType::Pointer),
        "ItemString" | "ItemRString" => plain(InType::Ansi),
        "ItemWString" | "ItemRWString" => plain(InType::Utf16),
        "ItemPString" | "ItemMLString" => counted(InType::Ansi),
        "ItemPWString" | "ItemNWString" => counted(InType::Utf16),
        "ItemHexDump" | "ItemHEXDump" => counted(InType::Binary),
        "ItemGuid" | "ItemCLSID" | "ItemIID" | "ItemLIBID" => plain(InType::Guid),
        "ItemSid" | "ItemKSid" => plain(InType::Sid),
        "ItemTimestamp" | "ItemTIMESTAMP" => plain(InType::FileTime),
        "ItemTimeDelta" | "ItemWaitTime" | "ItemDueTime" => plain(InType::Int64),
        "ItemIPAddr" => out(InType::UInt32, OutType::Ipv4),
        "ItemIPV6Addr" => fixed(16).with_out(OutType::Ipv6),
        "ItemPort" => out(InType::UInt16, OutType::Port),
        "ItemMACAddr" => fixed(6),
        "ItemChar4" => fixed(4),
        "ItemNTSTATUS" | "ItemNTerror" | "ItemNDIS_STATUS" => {
            out(InType::UInt32, OutType::NtStatus)
        }
        // The names of these are in the PDB and not here.
        "ItemEnum" => plain(InType::UInt32),
        "ItemFlagsEnum" | "ItemNDIS_OID" => plain(InType::HexInt32),
        "ItemHRESULT" => out(InType::UInt32, OutType::HResult),
        "ItemWINERROR" => out(InType::UInt32, OutType::Win32Error),
        "ItemListLong" => plain(InType::UInt32).with_map(map(list, MapKind::Values)),
        "ItemListShort" => plain(InType::UInt16).with_map(map(list, MapKind::Values)),
        "ItemListByte" => plain(InType::UInt8).with_map(map(list, MapKind::Values)),
        "ItemSetLong" => plain(InType::UInt32).with_map(map(list, MapKind::Bits)),
        "ItemSetShort" => plain(InType::UInt16).with_map(map(list, MapKind::Bits)),
        "ItemSetByte" => plain(InType::UInt8).with_map(map(list, MapKind::Bits)),
        // Written by the compiler's expansion, no bytes in the trace.
        "ItemNone" => return Some(None),
        _ => return None,
    }))
}

/// Names in order: of 0, 1, 2 ... or of bit 0, 1, 2 ... A name may bring its own number, `NAME=5`;
/// those behind it count on from there.
fn map(list: &str, kind: MapKind) -> Arc<ValueMap> {
    let mut entries = Vec::new();
    let mut next = 0u64;
    for name in list.split(',') {
        let (name, number) = match name.split_once('=') {
            Some((name, number)) => (name, parse_number(number.trim())),
            None => (name, None),
        };
        let number = number.unwrap_or(next);
        next = number.saturating_add(1);
        let value = match kind {
            MapKind::Values => Some(number),
            MapKind::Patterns => None,
            MapKind::Bits => u32::try_from(number).ok().and_then(|bit| 1u64.checked_shl(bit)),
        };
        if let Some(value) = value {
            entries.push(MapEntry { value, name: name.trim().to_owned().into() });
        }
    }
    Arc::new(ValueMap::new("", kind, entries))
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use etl_format::constants::PointerSize;

    const TMF: &str = "// PDB:  driver.pdb\n\
        01020304-0506-0708-090a-0b0c0d0e0f10 driver // SRC=driver.c MJ= MN=\n\
        #typev driver_c42 10 \"%0read %10!d! \"quoted\" from %11!s!\" //   LEVEL=INFO FLAGS=IO FUNC=Read\n\
        {\nlength, ItemLong -- 10\nx ? a, b : c, ItemWString -- 11\nmode, ItemListByte(off,on) -- 12\n}\n\
        #typev driver_c50 11 \"%0done\" //   LEVEL=INFO\n{\n}\n";

    #[test]
    fn messages_and_their_arguments() {
        let schemas = parse(TMF).unwrap();
        assert_eq!(schemas.len(), 2);
        let first = &schemas[0];
        assert_eq!(first.identity, Identity::Message { number: 10 });
        assert_eq!(first.message.as_deref(), Some("read %10!d! \"quoted\" from %11!s!"));
        assert_eq!((&*first.level.name, &*first.task.name), ("INFO", "Read"));
        assert_eq!(first.fields[1].name, "x ? a, b : c");
        assert_eq!(first.fields[2].map.as_ref().and_then(|m| m.get(1)), Some("on"));
        let decoder = Decoder::new(Arc::new(first.clone()));
        assert!(decoder.check(b"\x05\0\0\0a\0\0\0\x01", PointerSize::P4).is_exact());
    }

    /// The message of one argument, as people read it.
    fn shown(item: &str, payload: &[u8]) -> String {
        let text = format!(
            "01020304-0506-0708-090a-0b0c0d0e0f10 d // SRC=d.c\n\
             #typev d_c1 10 \"%0%!FUNC!: %10!s!\" // LEVEL=INFO FLAGS=IO FUNC=Do%it\n\
             {{\narg, {item} -- 10\n}}\n"
        );
        let schema = parse(&text).unwrap_or_else(|e| panic!("{item}: {e}")).remove(0);
        let message = schema.message.clone().unwrap();
        let decoder = Decoder::new(Arc::new(schema));
        let note = decoder.check(payload, PointerSize::P8);
        assert!(note.is_exact(), "{item}: {note:?}");
        let mut out = Vec::new();
        let fields = decoder.fields(payload, PointerSize::P8);
        crate::render::message(&mut out, &message, SchemaSource::Tmf, &fields);
        let out = String::from_utf8(out).unwrap();
        out.strip_prefix("Do%it: ").unwrap_or_else(|| panic!("{out}")).to_owned()
    }

    #[test]
    fn every_item_type_takes_its_bytes() {
        for (item, payload, text) in [
            ("ItemLong", &[0xff; 4][..], "-1"),
            ("ItemULong", &[0xff; 4], "4294967295"),
            ("ItemShort", &[0xfe, 0xff], "-2"),
            ("ItemUShort", &[1, 1], "257"),
            ("ItemChar", &[0xff], "-1"),
            ("ItemUChar", &[7], "7"),
            ("ItemLongLong", &[0xff; 8], "-1"),
            ("ItemULongLong", &[1, 0, 0, 0, 0, 0, 0, 0], "1"),
            ("ItemLongLongX", &[16, 0, 0, 0, 0, 0, 0, 0], "0x10"),
            ("ItemULongLongXX", &[16, 0, 0, 0, 0, 0, 0, 0], "0x10"),
            ("ItemDouble", &1.5f64.to_le_bytes(), "1.5"),
            ("ItemPtr", &[1, 0, 0, 0, 0, 0, 0, 0], "0x1"),
            ("ItemString", b"ab\0", "ab"),
            ("ItemWString", b"a\0b\0\0\0", "ab"),
            ("ItemPString", b"\x02\0ab", "ab"),
            ("ItemPWString", b"\x04\0a\0b\0", "ab"),
            ("ItemHEXDump", b"\x02\0\xab\xcd", "abcd"),
            ("ItemIPAddr", &[127, 0, 0, 1], "127.0.0.1"),
            ("ItemPort", &[0, 80], "80"),
            ("ItemNTSTATUS", &[5, 0, 0, 0xc0], "0xc0000005"),
            ("ItemNDIS_STATUS", &[5, 0, 0, 0xc0], "0xc0000005"),
            ("ItemNDIS_OID", &[1, 1, 1, 0], "0x10101"),
            ("ItemEnum(_STATE)", &[3, 0, 0, 0], "3"),
            ("ItemFlagsEnum(_F)", &[3, 0, 0, 0], "0x3"),
            ("ItemListByte(off,on)", &[1], "on"),
            ("ItemListShort(a,b=5,c)", &[6, 0], "c"),
            ("ItemListLong(a,b=0x10)", &[16, 0, 0, 0], "b"),
            ("ItemSetByte(1,2,4)", &[5], "1|4"),
            ("ItemSetLong(a,b=31)", &[0, 0, 0, 0x80], "b"),
        ] {
            let shown = shown(item, payload);
            assert!(shown.contains(text), "{item}: {shown:?} has no {text:?}");
        }
        assert_eq!(shown("ItemGuid", &[0; 16]), "00000000-0000-0000-0000-000000000000");
        assert!(!shown("ItemEnum(_STATE)", &[0; 4]).contains("STATE"), "its names are in the PDB");
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let bad = TMF.replace("ItemLong", "ItemLonger");
        let error = parse(&bad).unwrap_err().to_string();
        assert_eq!(error, "line 5: expected ARGUMENT, ItemTYPE -- NUMBER");
        assert_eq!(parse("nothing here"), Err(TmfError::Empty));
        assert!(matches!(parse("#typev a 1 \"x\""), Err(TmfError::Line { line: 1, .. })));
    }
}
