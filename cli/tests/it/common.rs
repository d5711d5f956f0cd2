//! Runs the tools, and builds small traces for them to read.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Output and exit code of a tool.
pub struct CommandOutput {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        CommandOutput {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }
}

/// Runs `etlkit` in a directory, so that file names in its output are short.
pub fn etlkit(directory: &Path, args: &[&str]) -> CommandOutput {
    run(env!("CARGO_BIN_EXE_etlkit"), directory, args, None)
}

/// Runs `etlverify`.
pub fn etlverify(directory: &Path, args: &[&str]) -> CommandOutput {
    run(env!("CARGO_BIN_EXE_etlverify"), directory, args, None)
}

/// Runs `etlkit` with bytes on standard input.
pub fn etlkit_piped(input: &[u8], args: &[&str]) -> CommandOutput {
    run(
        env!("CARGO_BIN_EXE_etlkit"),
        Path::new("."),
        args,
        Some(input),
    )
}

/// Runs `etlkit` and returns the bytes on standard output, and the text on standard error.
pub fn etlkit_bytes(input: &[u8], args: &[&str]) -> (Vec<u8>, String) {
    let output = output(
        env!("CARGO_BIN_EXE_etlkit"),
        Path::new("."),
        args,
        Some(input),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (output.stdout, String::from_utf8(output.stderr).unwrap())
}

fn run(tool: &str, directory: &Path, args: &[&str], input: Option<&[u8]>) -> CommandOutput {
    output(tool, directory, args, input).into()
}

/// Environment variables of the user that change the output.
pub const OWN_SETTINGS: [&str; 4] = ["CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR", "TERM"];

fn output(tool: &str, directory: &Path, args: &[&str], input: Option<&[u8]>) -> Output {
    let mut command = Command::new(tool);
    command
        .current_dir(directory)
        .args(args)
        .env("COLUMNS", "100");
    for name in OWN_SETTINGS {
        command.env_remove(name);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    let mut child = command.spawn().unwrap();
    if let Some(input) = input {
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The tool may stop reading early.
        std::thread::spawn(move || {
            let _ = std::io::Write::write_all(&mut stdin, &input);
        });
    }
    child.wait_with_output().unwrap()
}

/// A directory with files in it.
pub fn directory(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    directory
}

pub const BUFFER: usize = 0x1000;

/// A trace of two processors: a kernel event, manifest events with a hostile provider name in their
/// traits, a classic event and a WPP message.
pub fn trace() -> Vec<u8> {
    let header = header_event(3);
    let name = b"Prov\x1b[31m\"=1\0";
    let mut traits = (2 + name.len() as u16).to_le_bytes().to_vec();
    traits.extend(name);
    let first = [
        event(1_010, 1, 4, 0x8, None),
        event(1_030, 2, 5, 0x10, Some(&traits)),
    ];
    let second = [perfinfo(1_020, 0x0f2e), full(1_040), message(1_050)];
    [
        buffer(0, 0, 4, &[header]),
        buffer(1, 0, 0, &first),
        buffer(2, 1, 0, &second),
    ]
    .concat()
}

/// A trace with one manifest event.
pub fn trace_of(provider: [u8; 16], id: u16, version: u8, payload: &[u8]) -> Vec<u8> {
    let mut record = event(1_010, id, 4, 0x30, None);
    record.truncate(0x50);
    record[0x18..0x28].copy_from_slice(&provider);
    record[0x2a] = version;
    record.extend(payload);
    let size = record.len() as u16;
    record[..2].copy_from_slice(&size.to_le_bytes());
    let data = buffer(1, 0, 0, &[aligned(record)]);
    [buffer(0, 0, 4, &[header_event(2)]), data].concat()
}

pub fn buffer(number: u64, processor: u16, kind: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let fill = (0x48 + records.iter().map(Vec::len).sum::<usize>()) as u32;
    let mut out = vec![0u8; 0x48];
    for (at, value) in [
        (0x00, BUFFER as u32),
        (0x04, fill),
        (0x08, fill),
        (0x2c, 3),
        (0x30, fill),
    ] {
        out[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    out[0x18..0x20].copy_from_slice(&number.to_le_bytes());
    for (at, value) in [(0x28, processor), (0x34, 0x20), (0x36, kind)] {
        out[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    records.iter().for_each(|r| out.extend(r));
    out.resize(BUFFER, 0xff);
    out
}

/// A record padded to where the next one may begin.
pub fn aligned(mut record: Vec<u8>) -> Vec<u8> {
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

pub fn header_event(buffers: u32) -> Vec<u8> {
    let mut p = vec![0u8; 0x118];
    let mut put = |at: usize, bytes: &[u8]| p[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &(BUFFER as u32).to_le_bytes());
    put(0x04, &[10, 0, 1, 5]);
    put(0x08, &19_045u32.to_le_bytes());
    put(0x0c, &2u32.to_le_bytes());
    put(0x10, &133_000_001_000_000_000u64.to_le_bytes());
    put(0x20, &1u32.to_le_bytes());
    put(0x24, &buffers.to_le_bytes());
    put(0x28, &1u32.to_le_bytes());
    put(0x2c, &8u32.to_le_bytes());
    put(0x34, &3_000u32.to_le_bytes());
    put(0x100, &10_000_000u64.to_le_bytes());
    put(0x108, &133_000_000_000_000_000u64.to_le_bytes());
    put(0x110, &1u32.to_le_bytes());
    for text in ["session", "C:\\trace.etl"] {
        p.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    let mut out = vec![2, 0, 2, 0xc0];
    out.extend((0x20 + p.len() as u16).to_le_bytes());
    out.extend([0; 2]);
    out.extend(77u32.to_le_bytes());
    out.extend(66u32.to_le_bytes());
    out.extend(1_000i64.to_le_bytes());
    out.extend([0; 8]);
    out.extend(p);
    aligned(out)
}

pub fn perfinfo(timestamp: i64, hook: u16) -> Vec<u8> {
    let mut out = vec![2, 0, 0x11, 0xc0];
    out.extend(0x20u16.to_le_bytes());
    out.extend(hook.to_le_bytes());
    out.extend(timestamp.to_le_bytes());
    out.extend([0x11; 16]);
    out
}

pub fn event(timestamp: i64, id: u16, level: u8, keyword: u64, traits: Option<&[u8]>) -> Vec<u8> {
    let mut out = vec![0u8; 0x50];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x02, &[0x13, 0xc0, u8::from(traits.is_some())]);
    put(0x08, &101u32.to_le_bytes());
    put(0x0c, &100u32.to_le_bytes());
    put(0x10, &timestamp.to_le_bytes());
    put(0x18, &[0x5a; 16]);
    put(0x28, &id.to_le_bytes());
    put(0x2c, &[level]);
    put(0x30, &keyword.to_le_bytes());
    if let Some(data) = traits {
        let total = 8 + data.len().next_multiple_of(8);
        for word in [total as u16, 0x0c, 0, data.len() as u16] {
            out.extend(word.to_le_bytes());
        }
        out.extend(data);
        out.resize(0x50 + total, 0);
    }
    out.extend(b"payload");
    let size = out.len() as u16;
    out[..2].copy_from_slice(&size.to_le_bytes());
    aligned(out)
}

fn full(timestamp: i64) -> Vec<u8> {
    let mut out = vec![0x34, 0, 0x14, 0xc0, 7, 3, 1, 0];
    out.extend(201u32.to_le_bytes());
    out.extend(200u32.to_le_bytes());
    out.extend(timestamp.to_le_bytes());
    out.extend([0xc1; 16]);
    out.extend([0; 8]);
    out.extend([1, 2, 3, 4]);
    aligned(out)
}

fn message(timestamp: i64) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 0x90, 12, 0, 0x2a | 0x80, 0];
    out.extend([0xd0; 16]);
    out.extend(timestamp.to_le_bytes());
    out.extend(301u32.to_le_bytes());
    out.extend(300u32.to_le_bytes());
    out.extend([5; 4]);
    let size = out.len() as u16;
    out[..2].copy_from_slice(&size.to_le_bytes());
    aligned(out)
}

/// A trace of some megabytes, so that a command takes long enough to be killed.
pub fn large() -> Vec<u8> {
    const BUFFERS: u32 = 1_000;
    let mut file = buffer(0, 0, 4, &[header_event(BUFFERS + 1)]);
    for number in 0..i64::from(BUFFERS) {
        let records: Vec<_> = (0..40)
            .map(|i| event(2_000 + number * 40 + i, 7, 4, 0x8, None))
            .collect();
        file.extend(buffer(number as u64 + 1, 0, 0, &records));
    }
    file
}

/// Every command that writes a trace, with its input; also with several threads.
pub const TOOLS: [&[&str]; 9] = [
    &["merge", "t.etl"],
    &["slice", "t.etl", "--pid", "100"],
    &["scrub", "t.etl", "--salt", "x"],
    &["repair", "t.etl"],
    &["compress", "t.etl"],
    &["decompress", "t.etl"],
    &["merge", "t.etl", "--compress", "--threads", "3"],
    &["repair", "t.etl", "--compress", "--threads", "3"],
    &["compress", "t.etl", "--threads", "3"],
];

/// Names in a directory, sorted.
pub fn names(here: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(here).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
