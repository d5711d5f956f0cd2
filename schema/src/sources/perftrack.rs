//! Manifests in events of PerfTrack that a merge adds: a size, then the XML, compressed with LZNT1.

use etl_format::compress;
use etl_format::constants::CompressionFormat;
use etl_format::cursor::Bytes;

use crate::model::{EventSchema, SchemaSource};
use crate::sources::manifest;

/// The opcodes of the events with manifests.
pub(crate) const OPCODES: [u8; 2] = [33, 34];

/// Bytes of an unpacked manifest. Real ones have less than 4 MiB.
const MAX_BYTES: usize = 32 << 20;

/// A compressed byte yields at most so many bytes: a chunk of 4096 bytes has at least 4 bytes.
const MAX_RATIO: usize = 1 << 10;

/// The text of the manifest in a payload; `None` if it cannot be unpacked.
fn text(payload: &[u8]) -> Option<String> {
    let size = usize::try_from(payload.u32_at(0)?).ok()?;
    let packed = payload.get(4..)?;
    if size > MAX_BYTES || size > packed.len().saturating_mul(MAX_RATIO) {
        return None;
    }
    let mut unpacked = vec![0; size];
    compress::decompress(CompressionFormat::LZNT1, packed, &mut unpacked).ok()?;
    Some(decoded(&unpacked))
}

/// XML in UTF-16 or UTF-8, with or without a byte order mark.
fn decoded(bytes: &[u8]) -> String {
    let utf16 = match bytes {
        [0xff, 0xfe, rest @ ..] => Some(rest),
        [_, 0, ..] => Some(bytes),
        _ => None,
    };
    if let Some(utf16) = utf16 {
        let units = utf16.chunks_exact(2).filter_map(|pair| pair.u16_at(0));
        let units: Vec<u16> = units.collect();
        return String::from_utf16_lossy(&units);
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(text).into_owned()
}

/// The schemas of the manifest in a payload. Empty if it cannot be read.
pub(crate) fn parse(payload: &[u8]) -> Vec<EventSchema> {
    let Some(text) = text(payload) else {
        return Vec::new();
    };
    // The text may end with zeros.
    let mut schemas = manifest::parse_lenient(text.trim_end_matches('\0')).unwrap_or_default();
    for schema in &mut schemas {
        schema.source = SchemaSource::TraceManifest;
        schema.complete_name();
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"<instrumentationManifest><instrumentation><events>
<provider name="Made-Up" guid="{11111111-2222-3333-4444-555555555555}" symbol="P"
 resourceFileName="a" messageFileName="a"><tasks><task name="Work" value="3"/></tasks>
<templates><template tid="t"><data name="Count" inType="win:UInt32"/></template></templates>
<events><event value="7" version="1" task="Work" template="t"/></events>
</provider></events></instrumentation></instrumentationManifest>"#;

    /// The size, then chunks that are stored as they are.
    fn payload(text: &[u8]) -> Vec<u8> {
        let mut out = (text.len() as u32).to_le_bytes().to_vec();
        for chunk in text.chunks(4096) {
            let header = 0x3000 | (chunk.len() as u16 - 1);
            out.extend(header.to_le_bytes());
            out.extend(chunk);
        }
        out
    }

    #[test]
    fn manifest_is_unpacked_in_each_encoding() {
        let wide: Vec<u8> = MANIFEST.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for text in [
            MANIFEST.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", MANIFEST.as_bytes()].concat(),
            wide.clone(),
            [&[0xff, 0xfe], &wide[..]].concat(),
        ] {
            let schemas = parse(&payload(&text));
            assert_eq!(schemas.len(), 1);
            assert_eq!(&*schemas[0].fields[0].name, "Count");
            assert_eq!(&*schemas[0].name, "Work");
            assert_eq!(schemas[0].source, SchemaSource::TraceManifest);
        }
    }

    #[test]
    fn damaged_manifest_yields_no_schema() {
        let whole = payload(MANIFEST.as_bytes());
        assert!(parse(&whole[..whole.len() / 2]).is_empty());
        assert!(parse(&[0xff; 64]).is_empty());
        assert!(parse(b"abc").is_empty());
    }
}
