//! The scenario language: an example of each node and property of docs/scenario.md whose truth
//! shows its effect, and the report of each kind of error.

mod command_lines;
mod documents;
mod errors;
mod items;
mod large;
mod reference;
mod values;
mod windows;

use etl_format::{ProcessId, ThreadId};
use std::fmt::Write;

use etl_format::read::{Options, Order, Trace};
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Script, ScriptErrors, SimulatedFile, Simulation};

/// The files that a script can include here.
fn included(file: &str) -> std::io::Result<String> {
    match file {
        "app.kdl" => Ok("process \"App.exe\" { clr \"core\" { assembly \"App\" { module \"C:\\\\App\\\\App.dll\" { methods 20 ready=10 } } } }".to_owned()),
        "providers.txt" => Ok("Microsoft-Windows-DotNETRuntime 0x8018 5\r\n\r\n; those of the shop\r\n{a669021c-c450-4609-a035-5af59af4df18} 0x138 win:Informational CLR rundown\r\nContoso-Orders 0x2 3\r\n\"Windows Kernel Trace\" (process,thread)\r\n".to_owned()),
        "guids.txt" => Ok("11111111-2222-3333-4444-555555555555 Contoso-Orders\n#e13c0d23-ccbc-4e12-931b-d9cc2eee27e4\n".to_owned()),
        "parts/outer.kdl" => Ok("include \"inner.kdl\"; at \"2s\" { replay \"web.pcap\"; run \"logman start s -pf providers.txt -ets\" }".to_owned()),
        "parts/inner.kdl" => Ok("process \"Inner.exe\"".to_owned()),
        "parts/providers.txt" => Ok("Microsoft-Windows-DotNETRuntime 0x8018 5\n".to_owned()),
        "bad.kdl" => Ok("proces \"App.exe\"".to_owned()),
        _ => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "file not found")),
    }
}

/// A capture with one packet of four bytes, link type 101.
fn captured(file: &str) -> std::io::Result<Vec<u8>> {
    let words = [0xa1b2_c3d4u32, 0, 0, 0, 0xffff, 101, 10, 0, 4, 4];
    match file {
        "web.pcap" | "parts/web.pcap" => {
            Ok([&words.map(u32::to_le_bytes).concat()[..], b"\x45abc"].concat())
        }
        "page.pcap" => Ok(b"<html>".to_vec()),
        _ => Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "file not found",
        )),
    }
}

fn parse(script: &str, set: &[(&str, &str)]) -> Result<etl_synth::model::Scenario, ScriptErrors> {
    let set = set.iter().copied();
    Script::new("script.kdl", script)
        .parameters(set)
        .include(&included)
        .files(&captured)
        .parse()
}

/// A session with all events of CLRs, and the kernel's events of processes and images.
const SESSION: &str = r#"at "1s" { session "s" file="s.etl" { kernel "processes images"; enable "runtime" keywords=0xfffffffffffbffff level=5 } }
at "9s" { stop "s" }"#;

/// An assembly with ten methods that have code, and ten that wait.
const ASSEMBLY: &str = r#"assembly "App" { module "C:\\App\\App.dll" { methods 20 ready=10 } }"#;

/// A process with such an assembly.
const PROCESS: &str =
    r#"process "App.exe" threads=3 { clr "core" version="6.0.100" { {assembly} }"#;

/// The script with its `<<placeholders>>` filled in.
fn whole(script: &str) -> String {
    script
        .replace("<<process>>", PROCESS)
        .replace("<<assembly>>", ASSEMBLY)
        .replace("{assembly}", ASSEMBLY)
        .replace("<<session>>", SESSION)
}

/// All output of a script as text: the truth, and the headers and records of each file.
fn outcome(script: &str, set: &[(&str, &str)]) -> Result<String, String> {
    let script = whole(script);
    let scenario = parse(&script, set).map_err(|e| format!("{:#?}", e))?;
    let (mut files, mut truth) = (MemoryFileSystem::default(), JsonlWriter::new(Vec::new()));
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .map_err(|e| e.to_string())?;
    let mut out = String::from_utf8(truth.into_inner()).unwrap();
    for SimulatedFile { name, bytes } in files.into_files() {
        writeln!(out, "file {name} of {} bytes", bytes.len()).unwrap();
        if let Ok(trace) = Trace::open(&bytes[..], &Options::default()) {
            let header = trace.header();
            writeln!(out, "header {header:?}").unwrap();
            for buffer in trace.buffers() {
                let (number, cpu) = (buffer.sequence_number, buffer.processor);
                writeln!(out, "buffer {number} of {cpu} in {name}").unwrap();
            }
            writeln!(out, "notes {:?}", trace.notes()).unwrap();
            let mut trace = trace;
            let Ok(mut records) = trace.records(Order::File) else {
                continue;
            };
            while let Ok(Some(r)) = records.next_record() {
                let of = r.provider().map(|p| p.to_string()).unwrap_or_default();
                let d = r.descriptor().unwrap_or_default();
                let (pid, tid) = (
                    r.process_id().unwrap_or(ProcessId::new(0)),
                    r.thread_id().unwrap_or(ThreadId::new(0)),
                );
                let hook = r.hook().unwrap_or(0);
                writeln!(
                    out,
                    "record {of} id {} v{} level {} keyword {:#x} hook {hook:#x} pid {pid} tid {tid} cpu {} payload {}",
                    d.id, d.version, d.level, d.keyword, r.processor(), r.payload().len()
                )
                .unwrap();
            }
        }
    }
    Ok(out)
}
