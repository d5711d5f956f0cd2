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
            "truncated" | "invalid" => {
                failure.hint("`etlkit info` without --strict reads what is left of a damaged trace")
            }
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

/// Formats that are often taken for traces.
fn sniff(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const KNOWN: [(&[u8], &str, &str); 10] = [
        (b"ElfFile\0", "a Windows event log (.evtx)", "an evtx reader opens it"),
        (b"Nettrace", "an EventPipe trace (.nettrace)", "dotnet-trace and PerfView read it"),
        (b"PK\x03\x04", "a ZIP archive", "unzip it first; an .etl.zip holds the trace"),
        (b"\x1f\x8b", "gzip data", "gunzip it first, or pipe: gunzip -c FILE | etlkit info -"),
        (
            b"\x28\xb5\x2f\xfd",
            "Zstandard data",
            "unpack it first, or pipe: zstd -dc FILE | etlkit info -",
        ),
        (b"\xfd7zXZ\0", "XZ data", "unpack it first, or pipe: xz -dc FILE | etlkit info -"),
        (b"\x0a\x0d\x0d\x0a", "a packet capture (.pcapng)", "Wireshark reads it"),
        (b"\xd4\xc3\xb2\xa1", "a packet capture (.pcap)", "Wireshark reads it"),
        (b"MSCF", "a cabinet archive", "unpack it first"),
        (b"PERFILE2", "a Linux perf recording", "perf reads it"),
    ];
    let (_, what, next) = KNOWN.iter().find(|(magic, ..)| head.starts_with(magic))?;
    Some((what, next))
}

/// The first bytes of a source, for telling what it is.
pub(crate) fn head<S: Source>(source: &mut S) -> Vec<u8> {
    let mut block = S::Block::default();
    match source.read(0, 16, &mut block) {
        Ok(()) => block.as_ref().to_vec(),
        Err(_) => Vec::new(),
    }
}

/// Standard input as it comes, for reading in file order.
pub(crate) fn stdin_stream() -> impl Read {
    io::stdin().lock()
}
