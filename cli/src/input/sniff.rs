//! What a file is that is no trace, and what to do with it.

use etl_format::constants::BUFFER_HEADER_SIZE;

use crate::error::Failure;

use super::unpack;

/// The failure of opening bytes as a trace: names what they are instead, where that shows.
pub(crate) fn not_a_trace(path: &str, error: &etl_format::Error, head: &[u8]) -> Failure {
    if let etl_format::ErrorKind::Io(error) = &error.kind {
        return unpack::failure(path, error);
    }
    let failure = Failure::trace(path, error);
    match of_ours(path, head).or_else(|| sniff(head)) {
        Some(named) => other(path, named),
        None => match error.code() {
            "not-etl" if head.is_empty() => Failure::new(path, "this file is empty")
                .hint("was the recording stopped, and copied?"),
            "not-etl" => failure
                .hint("an .etl trace begins with a buffer whose first record is the header event"),
            "truncated" | "invalid" => failure
                .hint("nothing of a trace can be read from it: was the whole of the file copied?"),
            _ => failure,
        },
    }
}

/// The failure of a tool that needs a sound trace: what to do about a damaged one.
pub(crate) fn not_sound(path: &str, error: &etl_format::Error, head: &[u8], hint: &str) -> Failure {
    match error.code() {
        "truncated" | "invalid" | "compression" if sniff(head).is_none() => {
            Failure::trace(path, error).hint(hint)
        }
        _ => not_a_trace(path, error, head),
    }
}

/// The failure of reading on where every fault ends the reading, because the user said so.
pub(crate) fn not_whole(path: &str, error: &etl_format::Error, head: &[u8]) -> Failure {
    not_sound(path, error, head, "without --strict, what is left of a damaged trace is read")
}

/// What a file is called that begins so, where that shows.
pub(crate) fn what(head: &[u8]) -> Option<&'static str> {
    sniff(head).map(|(what, _)| what)
}

/// What a format is called, and what to do with it.
type Named = (&'static str, &'static str);

const CAPTURE: Named = ("a packet capture (.pcap)", "Wireshark and tcpdump read it");
const TWICE: &str = "it is packed twice, or cannot be unpacked here: unpack it once by hand";
const PACKED: &str = "unpack it first; .etl.zip, .gz and .zst are read as they are";
const DUMP: Named = ("a memory dump (.dmp)", "WinDbg and dotnet-dump read it");
const PROGRAM: &str = "name the .etl file that was recorded of it";

/// Formats that are often taken for traces, by where their magic number stands and what it is.
const KNOWN: [(usize, &[u8], Named); 44] = [
    (0, b"ElfFile\0", ("a Windows event log (.evtx)", "wevtutil and evtx_dump read it")),
    (4, b"LfLe", ("an old Windows event log (.evt)", "wevtutil epl converts it to .evtx")),
    (0, b"Nettrace", ("an EventPipe trace (.nettrace)", "dotnet-trace and PerfView read it")),
    (
        4,
        b"!FastSerialization.1",
        (
            "a file of PerfView's (.etlx, .gcdump) or an old .nettrace",
            "name the .etl it was made of",
        ),
    ),
    (0, b"PK\x03\x04", ("a ZIP archive", TWICE)),
    (0, b"PK\x05\x06", ("a ZIP archive", TWICE)),
    (0, b"PK\x07\x08", ("a ZIP archive in parts", PACKED)),
    (0, b"\x1f\x8b", ("gzip data", TWICE)),
    (0, b"\x28\xb5\x2f\xfd", ("Zstandard data", TWICE)),
    (0, b"\xfd7zXZ\0", ("XZ data", "pipe it in: xz -dc FILE | etlkit info -")),
    (0, b"BZh", ("bzip2 data", "pipe it in: bzip2 -dc FILE | etlkit info -")),
    (0, b"\x04\x22\x4d\x18", ("LZ4 data", "pipe it in: lz4 -dc FILE | etlkit info -")),
    (0, b"7z\xbc\xaf\x27\x1c", ("a 7-Zip archive", PACKED)),
    (0, b"Rar!\x1a\x07", ("a RAR archive", PACKED)),
    (0, b"MSCF", ("a cabinet archive", PACKED)),
    (257, b"ustar", ("a tar archive", PACKED)),
    (0, b"\x0a\x0d\x0d\x0a", ("a packet capture (.pcapng)", "Wireshark and tshark read it")),
    // Microseconds, nanoseconds and a patched form, little-endian and big-endian.
    (0, b"\xd4\xc3\xb2\xa1", CAPTURE),
    (0, b"\x4d\x3c\xb2\xa1", CAPTURE),
    (0, b"\x34\xcd\xb2\xa1", CAPTURE),
    (0, b"\xa1\xb2\xc3\xd4", CAPTURE),
    (0, b"\xa1\xb2\x3c\x4d", CAPTURE),
    (0, b"\xa1\xb2\xcd\x34", CAPTURE),
    (0, b"GMBU", ("a Network Monitor capture (.cap)", "Wireshark reads it")),
    (0, b"PERFILE2", ("a Linux perf recording (perf.data)", "perf reads it")),
    (0, b"2ELIFREP", ("a Linux perf recording (perf.data)", "perf reads it")),
    (0, b"\x17\x08Dtracing", ("an ftrace recording (trace.dat)", "trace-cmd reads it")),
    (0, b"\xc1\xfc\x1f\xc1", ("a CTF stream (LTTng)", "babeltrace2 reads its directory")),
    (0, b"\xc1\x1f\xfc\xc1", ("a CTF stream (LTTng)", "babeltrace2 reads its directory")),
    (0, b"\x57\x1d\xd1\x75", ("CTF metadata (LTTng)", "babeltrace2 reads its directory")),
    (0, b"\x75\xd1\x1d\x57", ("CTF metadata (LTTng)", "babeltrace2 reads its directory")),
    (0, b"/* CTF 1", ("CTF metadata (LTTng)", "babeltrace2 reads its directory")),
    (0, b"FLR\0", ("a Java Flight Recorder recording (.jfr)", "JDK Mission Control reads it")),
    (0, b"PML_", ("a Process Monitor log (.pml)", "Process Monitor reads it")),
    (0, b"SQLite format 3\0", ("an SQLite database", "sqlite3 reads it")),
    (0, b"Microsoft C/C++ ", ("debug symbols (.pdb)", PROGRAM)),
    (0, b"BSJB", ("portable debug symbols (.pdb)", PROGRAM)),
    (0, b"MDMP", DUMP),
    (0, b"PAGEDU", DUMP),
    (0, b"regf", ("a registry hive", "name an .etl file")),
    (0, b"\x7fELF", ("a Linux program or core dump (ELF)", "name an .etl file")),
    (0, b"%PDF-", ("a PDF document", "name an .etl file")),
    (0, b"\x89PNG", ("a picture (.png)", "name an .etl file")),
    (0, b"MZ", ("a Windows program or library (PE)", PROGRAM)),
];

/// The failure of bytes that begin with the magic number of another format, and not as a trace does: a trace that
/// an archive or a memory dump holds is not taken for a damaged one whose beginning is lost.
///
/// # Errors
/// When it is so.
pub(crate) fn refuse_others(name: &str, head: &[u8]) -> Result<(), Failure> {
    match known(head).filter(|_| !begins_a_trace(head) && !perhaps_text(head)) {
        Some(named) => Err(other(name, named)),
        None => Ok(()),
    }
}

/// What binary file this is where a text is wanted; a trace among others.
pub(crate) fn no_text(head: &[u8]) -> Option<&'static str> {
    if begins_a_trace(head) {
        return Some("an .etl trace");
    }
    known(head).filter(|_| !perhaps_text(head)).map(|(what, _)| what)
}

/// Text that belongs to a trace or makes one.
fn of_ours(path: &str, head: &[u8]) -> Option<Named> {
    text(head)?;
    if path.ends_with(".kdl") {
        return Some(("a scenario (.kdl)", "`etlkit synth` makes traces of it"));
    }
    let truth = head.starts_with(br#"{"kind":"truth""#);
    truth.then_some((
        "the truth of a scenario",
        "name the trace beside it; `etlverify --truth` holds a report against it",
    ))
}

/// Whether the marker of a header event stands where that of every trace does: such bytes are one, whatever is
/// in front of it.
fn begins_a_trace(head: &[u8]) -> bool {
    let marker = head.get(BUFFER_HEADER_SIZE..).and_then(|event| event.first_chunk::<4>());
    matches!(marker, Some([_, 0, 1 | 2, 0xc0]))
}

/// The failure of a file that is something else.
fn other(name: &str, (what, next): Named) -> Failure {
    Failure::new(name, format!("this is {what}, not an .etl trace")).hint(next)
}

/// What the bytes at the beginning of a file are, by its magic number.
fn known(head: &[u8]) -> Option<Named> {
    KNOWN.iter().find(|(at, magic, _)| is(head, *at, magic)).map(|(_, _, named)| *named)
}

fn is(head: &[u8], at: usize, magic: &[u8]) -> bool {
    head.get(at..).is_some_and(|rest| rest.starts_with(magic))
}

/// Plain text may begin with any letters.
fn perhaps_text(head: &[u8]) -> bool {
    let letters = [&b"MZ"[..], b"BZh", b"MDMP", b"PML_", b"PAGEDU", b"regf", b"GMBU", b"MSCF"];
    letters.iter().any(|letters| is(head, 0, letters)) && text(head).is_some()
}

/// What the bytes at the beginning of a file are, where that shows.
fn sniff(head: &[u8]) -> Option<Named> {
    if perhaps_text(head) { text(head) } else { known(head).or_else(|| text(head)) }
}

/// Text is told by having nothing else in it.
fn text(head: &[u8]) -> Option<Named> {
    const NEXT: &str = "a trace is binary; what tracerpt wrote of one cannot be read back";
    let plain = |b: u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | b' '..=b'~' | 0x80..);
    let pairs = head.as_chunks::<2>().0;
    let wide = |zero: usize, other: usize| {
        !pairs.is_empty()
            && pairs.iter().all(|pair| {
                pair.get(zero) == Some(&0) && pair.get(other).is_some_and(|&b| plain(b))
            })
    };
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") || wide(1, 0) || wide(0, 1) {
        return Some(("UTF-16 text", NEXT));
    }
    // The last character may be cut.
    let utf8 = match core::str::from_utf8(head) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none(),
    };
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if head.is_empty() || !utf8 || !head.iter().all(|&b| plain(b)) {
        return None;
    }
    Some(match start.first() {
        Some(b'<') => ("XML or HTML text", NEXT),
        Some(b'{' | b'[') => ("JSON text", NEXT),
        _ => ("text", NEXT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_trace_is_told_by_its_first_bytes() {
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
            (b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", "debug symbols (.pdb)"),
            (
                b"\x14\0\0\0!FastSerialization.1",
                "a file of PerfView's (.etlx, .gcdump) or an old .nettrace",
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
            assert_eq!(sniff(head).map(|(what, _)| what), Some(what), "{head:x?}");
        }
        // The beginnings of traces, whole or not, and of nothing in particular.
        for head in [&b"\0\x10\0\0\x48\0\0\0"[..], b"\0\0\x01\0", b"", b"\xff\xff\xff\xff\x01"] {
            assert_eq!(sniff(head), None, "{head:x?}");
        }
    }
}
