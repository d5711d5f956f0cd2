//! Opening what the user named: a file as a memory map, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use etl_format::read::{Source, Spooled};
use memmap2::Mmap;

use crate::error::Failure;

/// Bytes of standard input that are kept in memory; beyond, they go to a temporary file.
const SPOOL: usize = 64 << 20;

/// What `-` is called in messages and reports.
const STDIN: &str = "(standard input)";

/// An opened input.
#[derive(Debug)]
pub(crate) enum Input {
    /// A file.
    Map(Mapped),
    /// Standard input, taken in whole.
    Pipe(Spooled<File>),
}

/// The bytes of a file, mapped; an empty file maps nothing.
#[derive(Debug)]
pub(crate) struct Mapped(Option<Mmap>);

impl Mapped {
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Does something with any source: what differs between a map and a pipe is only its type.
pub(crate) trait WithSource {
    type Output;
    fn with<S: Source>(self, source: S) -> Self::Output;
}

impl Input {
    /// Opens a file, or standard input for `-`, to be read in any order.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if is_stdin(path) {
            let spooled = Spooled::new(io::stdin().lock(), SPOOL, tempfile::tempfile)
                .map_err(|e| Failure::new(STDIN, e.to_string()))?;
            return Ok(Input::Pipe(spooled));
        }
        map(path).map(Input::Map)
    }

    /// Hands the bytes to `f`.
    pub fn with<F: WithSource>(self, f: F) -> F::Output {
        match self {
            Input::Map(mapped) => f.with(mapped.bytes()),
            Input::Pipe(spooled) => f.with(spooled),
        }
    }
}

/// Whether the user means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// How a file is called in messages and reports.
pub(crate) fn display(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_owned() } else { path.display().to_string() }
}

/// Maps a file into memory.
pub(crate) fn map(path: &Path) -> Result<Mapped, Failure> {
    let name = display(path);
    let failure = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(&name, "there is no such file").hint("`-` reads standard input")
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(&name, "you may not read this file").hint("check its permissions")
        }
        _ => Failure::new(&name, e.to_string()),
    };
    let file = File::open(path).map_err(failure)?;
    let metadata = file.metadata().map_err(failure)?;
    if metadata.is_dir() {
        return Err(Failure::new(&name, "is a directory").hint("name the .etl files in it"));
    }
    if !metadata.is_file() {
        // A named pipe or a device cannot be mapped; its bytes can.
        return Err(Failure::new(&name, "is not a regular file").hint("pipe it in and name `-`"));
    }
    map_file(&file, &name)
}

/// Maps a file, or standard input by way of a temporary file.
pub(crate) fn map_any(path: &Path) -> Result<Mapped, Failure> {
    if !is_stdin(path) {
        return map(path);
    }
    let failure = |e: io::Error| Failure::new(STDIN, e.to_string());
    let mut file = tempfile::tempfile().map_err(failure)?;
    io::copy(&mut io::stdin().lock(), &mut file).map_err(failure)?;
    map_file(&file, STDIN)
}

/// Maps an open file into memory.
pub(crate) fn map_file(file: &File, name: &str) -> Result<Mapped, Failure> {
    let failure = |e: io::Error| Failure::new(name, e.to_string());
    if file.metadata().map_err(failure)?.len() == 0 {
        return Ok(Mapped(None));
    }
    // SAFETY: the map is only ever read. Should another process write to the file meanwhile, the
    // bytes change under the reader, which takes any bytes; should it cut the file short, the
    // process dies of the access, as documented for users in SECURITY.md.
    #[allow(unsafe_code)]
    let mapped = unsafe { Mmap::map(file) }.map_err(failure)?;
    Ok(Mapped(Some(mapped)))
}

/// The failure of opening bytes as a trace: names what they are instead, where that shows.
pub(crate) fn not_a_trace(path: &str, error: &etl_format::Error, head: &[u8]) -> Failure {
    let failure = Failure::trace(path, error);
    match sniff(head) {
        Some((what, next)) => {
            Failure::new(path, format!("this is {what}, not an .etl trace")).hint(next)
        }
        None => match error.code() {
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

/// What a format is called, and what to do with it.
type Named = (&'static str, &'static str);

/// Formats that are often taken for traces.
fn sniff(head: &[u8]) -> Option<Named> {
    const CAPTURE: Named = ("a packet capture (.pcap)", "Wireshark reads it");
    const ZIP: Named = ("a ZIP archive", "unzip it first; an .etl.zip holds the trace");
    const KNOWN: [(&[u8], Named); 18] = [
        (b"ElfFile\0", ("a Windows event log (.evtx)", "an evtx reader opens it")),
        (b"Nettrace", ("an EventPipe trace (.nettrace)", "dotnet-trace and PerfView read it")),
        (b"PK\x03\x04", ZIP),
        (b"PK\x05\x06", ZIP),
        (b"\x1f\x8b", ("gzip data", "gunzip it first, or pipe: gunzip -c FILE | etlkit info -")),
        (
            b"\x28\xb5\x2f\xfd",
            ("Zstandard data", "unpack it first, or pipe: zstd -dc FILE | etlkit info -"),
        ),
        (b"\xfd7zXZ\0", ("XZ data", "unpack it first, or pipe: xz -dc FILE | etlkit info -")),
        (b"BZh", ("bzip2 data", "unpack it first, or pipe: bzip2 -dc FILE | etlkit info -")),
        (b"7z\xbc\xaf\x27\x1c", ("a 7-Zip archive", "unpack it first")),
        (b"MSCF", ("a cabinet archive", "unpack it first")),
        (b"\x0a\x0d\x0d\x0a", ("a packet capture (.pcapng)", "Wireshark reads it")),
        // Microseconds and nanoseconds, little-endian and big-endian.
        (b"\xd4\xc3\xb2\xa1", CAPTURE),
        (b"\x4d\x3c\xb2\xa1", CAPTURE),
        (b"\xa1\xb2\xc3\xd4", CAPTURE),
        (b"\xa1\xb2\x3c\x4d", CAPTURE),
        (b"PERFILE2", ("a Linux perf recording", "perf reads it")),
        (b"SQLite format 3\0", ("an SQLite database", "sqlite3 reads it")),
        (
            b"MZ",
            ("a Windows program or library (PE)", "name the .etl file that was recorded of it"),
        ),
    ];
    let text = text(head);
    let known = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, named)| *named);
    // Plain text may begin with any letters.
    let letters = head.starts_with(b"MZ") || head.starts_with(b"BZh");
    if letters && text.is_some() { text } else { known.or(text) }
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
    Some(if start.starts_with(b"<") { ("XML or HTML text", NEXT) } else { ("text", NEXT) })
}

/// Bytes that tell what a file is.
const HEAD: usize = 64;

/// The first bytes of a source, for telling what it is.
pub(crate) fn head<S: Source>(source: &mut S) -> Vec<u8> {
    let mut block = S::Block::default();
    match source.read(0, HEAD, &mut block) {
        Ok(()) => block.as_ref().to_vec(),
        Err(_) => Vec::new(),
    }
}

/// Standard input as it comes, for reading in file order.
pub(crate) fn stdin_stream() -> impl Read {
    io::stdin().lock()
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
            (b"PERFILE2\x68\0", "a Linux perf recording"),
            (b"SQLite format 3\0\x10", "an SQLite database"),
            (b"MZ\x90\0\x03\0\0\0", "a Windows program or library (PE)"),
            (b"MZ is a name, this is a text", "text"),
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
