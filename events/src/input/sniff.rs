//! Recognizes files that are not traces, and says what to do with them.

use etl_format::constants::BUFFER_HEADER_SIZE;

use super::error::Error;
use crate::eventpipe;

/// The format of a file with these first bytes, if it is recognized.
#[must_use]
pub fn what(head: &[u8]) -> Option<&'static str> {
    Some(sniff(head)?.name)
}

/// A format of other files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// The format with its article: `a ZIP archive`.
    name: &'static str,
    /// What to do with such a file.
    advice: &'static str,
}

/// A format by its name and advice.
const fn format(name: &'static str, advice: &'static str) -> Format {
    Format { name, advice }
}

const CAPTURE: Format = format("a packet capture (.pcap)", "Wireshark and tcpdump read it");
const TWICE: &str =
    "it is packed twice, or in a variant that is not supported: unpack it with its own tool";
const PACKED: &str = "unpack it first; only .etl.zip, .gz and .zst are unpacked automatically";
/// The library that wrote a file, after its length.
const SERIALIZATION: &[u8] = b"!FastSerialization.1";
const DUMP: Format = format("a memory dump (.dmp)", "WinDbg and dotnet-dump read it");
const PROGRAM: &str = "name the .etl file that was recorded for it";

/// Formats that are often mistaken for traces: offset and bytes of the magic number.
const FORMATS: [(usize, &[u8], Format); 44] = [
    (
        0,
        b"ElfFile\0",
        format(
            "a Windows event log (.evtx)",
            "wevtutil and evtx_dump read it",
        ),
    ),
    (
        4,
        b"LfLe",
        format(
            "an old Windows event log (.evt)",
            "wevtutil epl converts it to .evtx",
        ),
    ),
    (
        0,
        b"Nettrace",
        format(
            "an EventPipe trace (.nettrace)",
            "dotnet-trace and PerfView read it",
        ),
    ),
    (
        4,
        SERIALIZATION,
        format(
            "a PerfView file (.etlx, .gcdump)",
            "name the .etl file that it was made from",
        ),
    ),
    (0, b"PK\x03\x04", format("a ZIP archive", TWICE)),
    (0, b"PK\x05\x06", format("a ZIP archive", TWICE)),
    (0, b"PK\x07\x08", format("a ZIP archive in parts", PACKED)),
    (0, b"\x1f\x8b", format("gzip data", TWICE)),
    (0, b"\x28\xb5\x2f\xfd", format("Zstandard data", TWICE)),
    (
        0,
        b"\xfd7zXZ\0",
        format("XZ data", "pipe it in: xz -dc FILE | etlkit info -"),
    ),
    (
        0,
        b"BZh",
        format("bzip2 data", "pipe it in: bzip2 -dc FILE | etlkit info -"),
    ),
    (
        0,
        b"\x04\x22\x4d\x18",
        format("LZ4 data", "pipe it in: lz4 -dc FILE | etlkit info -"),
    ),
    (0, b"7z\xbc\xaf\x27\x1c", format("a 7-Zip archive", PACKED)),
    (0, b"Rar!\x1a\x07", format("a RAR archive", PACKED)),
    (0, b"MSCF", format("a cabinet archive", PACKED)),
    (257, b"ustar", format("a tar archive", PACKED)),
    (
        0,
        b"\x0a\x0d\x0d\x0a",
        format("a packet capture (.pcapng)", "Wireshark and tshark read it"),
    ),
    // Microseconds, nanoseconds and a patched form, little-endian and big-endian.
    (0, b"\xd4\xc3\xb2\xa1", CAPTURE),
    (0, b"\x4d\x3c\xb2\xa1", CAPTURE),
    (0, b"\x34\xcd\xb2\xa1", CAPTURE),
    (0, b"\xa1\xb2\xc3\xd4", CAPTURE),
    (0, b"\xa1\xb2\x3c\x4d", CAPTURE),
    (0, b"\xa1\xb2\xcd\x34", CAPTURE),
    (
        0,
        b"GMBU",
        format("a Network Monitor capture (.cap)", "Wireshark reads it"),
    ),
    (
        0,
        b"PERFILE2",
        format("a Linux perf recording (perf.data)", "perf reads it"),
    ),
    (
        0,
        b"2ELIFREP",
        format("a Linux perf recording (perf.data)", "perf reads it"),
    ),
    (
        0,
        b"\x17\x08Dtracing",
        format("an ftrace recording (trace.dat)", "trace-cmd reads it"),
    ),
    (
        0,
        b"\xc1\xfc\x1f\xc1",
        format("a CTF stream (LTTng)", "babeltrace2 reads its directory"),
    ),
    (
        0,
        b"\xc1\x1f\xfc\xc1",
        format("a CTF stream (LTTng)", "babeltrace2 reads its directory"),
    ),
    (
        0,
        b"\x57\x1d\xd1\x75",
        format("CTF metadata (LTTng)", "babeltrace2 reads its directory"),
    ),
    (
        0,
        b"\x75\xd1\x1d\x57",
        format("CTF metadata (LTTng)", "babeltrace2 reads its directory"),
    ),
    (
        0,
        b"/* CTF 1",
        format("CTF metadata (LTTng)", "babeltrace2 reads its directory"),
    ),
    (
        0,
        b"FLR\0",
        format(
            "a Java Flight Recorder recording (.jfr)",
            "JDK Mission Control reads it",
        ),
    ),
    (
        0,
        b"PML_",
        format("a Process Monitor log (.pml)", "Process Monitor reads it"),
    ),
    (
        0,
        b"SQLite format 3\0",
        format("an SQLite database", "sqlite3 reads it"),
    ),
    (
        0,
        b"Microsoft C/C++ ",
        format("debug symbols (.pdb)", PROGRAM),
    ),
    (0, b"BSJB", format("portable debug symbols (.pdb)", PROGRAM)),
    (0, b"MDMP", DUMP),
    (0, b"PAGEDU", DUMP),
    (0, b"regf", format("a registry hive", "name an .etl file")),
    (
        0,
        b"\x7fELF",
        format("a Linux program or core dump (ELF)", "name an .etl file"),
    ),
    (0, b"%PDF-", format("a PDF document", "name an .etl file")),
    (
        0,
        b"\x89PNG",
        format("a picture (.png)", "name an .etl file"),
    ),
    (
        0,
        b"MZ",
        format("a Windows program or library (PE)", PROGRAM),
    ),
];

/// Whether bytes are an EventPipe stream (`.nettrace`).
pub(super) fn is_eventpipe(head: &[u8]) -> bool {
    eventpipe::is_stream(head) && !starts_like_trace(head)
}

/// Rejects bytes that start with the magic number of another format. Without this, an archive or a
/// memory dump that contains a trace would be read as a trace whose first part is damaged.
///
/// # Errors
/// When the bytes have another format.
pub(super) fn reject_other_formats(head: &[u8]) -> Result<(), Error> {
    if starts_like_trace(head) || may_be_text(head) {
        return Ok(());
    }
    match by_magic(head) {
        Some(format) => Err(other(format)),
        None => Ok(()),
    }
}

/// The binary format of a file that should be text.
#[must_use]
pub fn binary_format(head: &[u8]) -> Option<&'static str> {
    if starts_like_trace(head) {
        return Some("an .etl trace");
    }
    if may_be_text(head) {
        return None;
    }
    Some(by_magic(head)?.name)
}

/// The format of the file with this name and these first bytes, if it is recognized.
pub(super) fn named(name: &str, head: &[u8]) -> Option<Format> {
    own_format(name, head).or_else(|| sniff(head))
}

/// The format of a file with this name that does not begin like a ZIP archive: the last part of an
/// archive contains the directory, and begins with any bytes.
pub(super) fn last_part(name: &str) -> Option<Format> {
    if !name.to_ascii_lowercase().ends_with(".zip") {
        return None;
    }
    Some(format(
        "a damaged ZIP archive, or the last part of one",
        PACKED,
    ))
}

/// The text formats of this project.
fn own_format(path: &str, head: &[u8]) -> Option<Format> {
    text(head)?;
    if path.ends_with(".kdl") {
        return Some(format(
            "a scenario (.kdl)",
            "`etlkit synth` writes its traces",
        ));
    }
    if head.starts_with(br#"{"kind":"truth""#) {
        return Some(format(
            "the truth of a scenario",
            "name the trace in the same directory; `etlverify --truth` reads this file",
        ));
    }
    None
}

/// Whether the first record has the marker of a header event. Such bytes are a trace, even if the
/// buffer header before it looks like another format.
fn starts_like_trace(head: &[u8]) -> bool {
    match head.get(BUFFER_HEADER_SIZE..) {
        Some(event) => matches!(event.first_chunk(), Some([_, 0, 1 | 2, 0xc0])),
        None => false,
    }
}

/// The error of a file of another format.
pub(super) fn other(format: Format) -> Error {
    let name = format.name;
    Error::new(format!("this is {name}, not an .etl trace")).hint_text(format.advice)
}

/// The format whose magic number the bytes have.
fn by_magic(head: &[u8]) -> Option<Format> {
    if let Some(stream) = old_stream(head) {
        return Some(stream);
    }
    for (offset, magic, format) in &FORMATS {
        if has_magic(head, *offset, magic) {
            return Some(*format);
        }
    }
    None
}

fn has_magic(head: &[u8], offset: usize, magic: &[u8]) -> bool {
    head.get(offset..)
        .is_some_and(|rest| rest.starts_with(magic))
}

/// Whether the bytes are text that starts with the letters of a magic number.
fn may_be_text(head: &[u8]) -> bool {
    let letters = [
        &b"MZ"[..],
        b"BZh",
        b"MDMP",
        b"PML_",
        b"PAGEDU",
        b"regf",
        b"GMBU",
        b"MSCF",
    ];
    letters.iter().any(|letters| has_magic(head, 0, letters)) && text(head).is_some()
}

/// The format of a file with these first bytes.
fn sniff(head: &[u8]) -> Option<Format> {
    if may_be_text(head) {
        text(head)
    } else {
        by_magic(head).or_else(|| text(head))
    }
}

/// Recognizes EventPipe streams of versions before 4. They begin as other files of the same library
/// do, and have the name of their first object after its version.
fn old_stream(head: &[u8]) -> Option<Format> {
    const NAME: usize = 39;
    const ADVICE: &str = "record it again with dotnet-trace, or with .NET Core 3.0 or later";
    if head.get(4..)?.starts_with(SERIALIZATION) {
        let name = head.get(NAME..)?;
        if name.starts_with(b"Trace\x06") {
            let what = "an EventPipe stream of format version 3 (.netperf)";
            return Some(format(what, ADVICE));
        }
        if name.starts_with(b"Microsoft.DotNet.Runtime.EventPipeFile") {
            let what = "an EventPipe stream of format version 1 or 2 (.netperf)";
            return Some(format(what, ADVICE));
        }
    }
    None
}

/// Recognizes text: all its bytes belong to characters.
fn text(head: &[u8]) -> Option<Format> {
    const ADVICE: &str = "an .etl trace is binary; output of tracerpt cannot be converted back";
    if is_utf16(head) {
        return Some(format("UTF-16 text", ADVICE));
    }
    if head.is_empty() || !is_utf8(head) || !head.iter().copied().all(is_plain) {
        return None;
    }
    let without_mark = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let name = match without_mark.trim_ascii_start().first() {
        Some(b'<') => "XML or HTML text",
        Some(b'{' | b'[') => "JSON text",
        _ => "text",
    };
    Some(format(name, ADVICE))
}

/// Whether a byte can be in text: control characters other than white space cannot.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | b' '..=b'~' | 0x80..)
}

/// Whether the bytes are the beginning of UTF-8 text. The last character may be incomplete.
fn is_utf8(head: &[u8]) -> bool {
    match core::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Whether the bytes are UTF-16 text: they have its mark, or each character is below 256.
fn is_utf16(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe")
        || head.starts_with(b"\xfe\xff")
        || has_plain_units(head, u16::from_le_bytes)
        || has_plain_units(head, u16::from_be_bytes)
}

fn has_plain_units(head: &[u8], unit: fn([u8; 2]) -> u16) -> bool {
    let pairs = head.as_chunks::<2>().0;
    !pairs.is_empty()
        && pairs.iter().all(|pair| match u8::try_from(unit(*pair)) {
            Ok(byte) => is_plain(byte),
            Err(_) => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sniff_recognizes_formats_by_their_first_bytes() {
        for (head, what) in [
            (&b"ElfFile\0 and more"[..], "a Windows event log (.evtx)"),
            (b"Nettrace\x14\0\0\0!", "an EventPipe trace (.nettrace)"),
            (b"PK\x03\x04\x14\0", "a ZIP archive"),
            (b"PK\x05\x06\0\0", "a ZIP archive"),
            (b"\x1f\x8b\x08\0", "gzip data"),
            (b"\x28\xb5\x2f\xfd\0", "Zstandard data"),
            (b"\xfd7zXZ\0\0", "XZ data"),
            (b"BZh91AY&SY\xff\x01", "bzip2 data"),
            (b"7z\xbc\xaf\x27\x1c\0", "a 7-Zip archive"),
            (b"MSCF\0\0\0\0", "a cabinet archive"),
            (b"\x0a\x0d\x0d\x0a\x1c\0\0\0", "a packet capture (.pcapng)"),
            (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "a packet capture (.pcap)"),
            (b"\x4d\x3c\xb2\xa1\x02\0\x04\0", "a packet capture (.pcap)"),
            (b"\xa1\xb2\xc3\xd4\0\x02\0\x04", "a packet capture (.pcap)"),
            (b"\xa1\xb2\x3c\x4d\0\x02\0\x04", "a packet capture (.pcap)"),
            (b"PERFILE2\x68\0", "a Linux perf recording (perf.data)"),
            (b"\xc1\x1f\xfc\xc1\x2a", "a CTF stream (LTTng)"),
            (b"\x57\x1d\xd1\x75\x2a", "CTF metadata (LTTng)"),
            (b"/* CTF 1.8 */\ntypealias", "CTF metadata (LTTng)"),
            (
                b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0",
                "debug symbols (.pdb)",
            ),
            (
                b"\x14\0\0\0!FastSerialization.1",
                "a PerfView file (.etlx, .gcdump)",
            ),
            (
                b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x03\0\0\0\x03\0\0\0\x05\0\0\0Trace\x06",
                "an EventPipe stream of format version 3 (.netperf)",
            ),
            (
                b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x02\0\0\0\0\0\0\0\x26\0\0\0\
                  Microsoft.DotNet.Runtime.EventPipeFile\x06",
                "an EventPipe stream of format version 1 or 2 (.netperf)",
            ),
            (b"SQLite format 3\0\x10", "an SQLite database"),
            (b"MDMP is text here", "text"),
            (b"{\"traceEvents\": []}", "JSON text"),
            (b"MZ\x90\0\x03\0\0\0", "a Windows program or library (PE)"),
            (b"MZ is a name, this is a text", "text"),
            ("{\"traceEvents\": []}".as_bytes(), "JSON text"),
            ("just \u{e9} text\n".as_bytes(), "text"),
            (b"cut in a character \xc3", "text"),
            (b"\xef\xbb\xbf<Events>", "XML or HTML text"),
            (b" <?xml version=\"1.0\"?>", "XML or HTML text"),
            (b"\xff\xfe<\0E\0", "UTF-16 text"),
            (b"\xfe\xff\0<\0E", "UTF-16 text"),
            (b"t\0e\0x\0t\0", "UTF-16 text"),
            (b"\0t\0e\0x\0t", "UTF-16 text"),
        ] {
            assert_eq!(super::what(head), Some(what), "{head:x?}");
        }
        // Starts of traces, and unknown bytes.
        for head in [
            &b"\0\x10\0\0\x48\0\0\0"[..],
            b"\0\0\x01\0",
            b"",
            b"\xff\xff\xff\xff\x01",
        ] {
            assert_eq!(sniff(head), None, "{head:x?}");
        }
    }
}
