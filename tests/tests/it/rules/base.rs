//! Simulated traces without findings.

use std::collections::BTreeMap;

use etl_synth::Script;
use etl_verify::{Report, Verifier};

use super::edit::{records, write};

/// A recording of two processes with stacks: a start rundown, work, and an end rundown while the
/// runtime session still runs.
const SOUND: &str = r#"
scenario "sound" seed=7
machine processors=2 start="2026-01-05T08:30:00Z"
process "First.exe" pid=100 threads=2 {
    clr "core" version="6.0.100" {
        assembly "Core" {
            module "C:\\App\\Core.dll" { methods 6 ready=4 }
        }
        assembly "Late" late=#true {
            module "C:\\App\\Late.dll" { methods 4 }
        }
    }
    every "100ms" from="2.3s" until="3.2s" { jit 1 }
    at "2.8s" { load "Late" }
    at "3s" { throw 2 }
    at "3.3s" { jit 2 }
}
process "Second.exe" pid=200 threads=2 {
    clr "desktop" version="4.8.4000.0" {
        assembly "Lib" {
            module "C:\\App\\Lib.dll" { methods 5 ready=2 }
        }
    }
    every "200ms" from="2.4s" until="3.2s" { jit 1 }
    at "5.2s" { jit 1 }
}
at "2s" {
    session "clr" file="sound.etl" { enable "runtime" keywords=0x4001CCBD level=5 }
}
at "2.1s" { enable "rundown" in="clr" keywords=0x78 level=5 }
at "4.5s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "5.5s" { stop "clr" }
"#;

/// The files of a script, by name.
pub fn files_of(name: &str, script: &str) -> BTreeMap<String, Vec<u8>> {
    let scenario = Script::new(name, script)
        .parse()
        .unwrap_or_else(|e| panic!("{:#?}", e));
    let files = etl_synth::Simulation::new(&scenario)
        .run_in_memory()
        .unwrap();
    files
        .into_iter()
        .map(|file| (file.name, file.bytes))
        .collect()
}

fn files(script: &str) -> Vec<Vec<u8>> {
    files_of("base", script).into_values().collect()
}

/// The trace of a seed: addresses, names, sizes and times depend on it.
pub fn sound(seed: u64) -> Vec<u8> {
    let script = SOUND.replace("seed=7", &format!("seed={seed}"));
    managed_frames(&files(&script).remove(0))
}

/// Removes native frames from stacks: without a kernel session there are no image events.
fn managed_frames(file: &[u8]) -> Vec<u8> {
    let mut all = records(file);
    let code: Vec<(u32, u64, u64)> = all
        .iter()
        .filter(|r| r.is_event() && r.name.starts_with("Method") && r.payload().len() > 40)
        .filter(|r| !r.name.contains("Jitting") && !r.name.contains("Map"))
        .map(|r| (r.pid(), r.u64(16), r.u64(24) & 0xffff_ffff))
        .collect();
    for record in all.iter_mut().filter(|r| r.is_event() && r.id() == 82) {
        let frames = record.payload()[8..].chunks_exact(8);
        let frames = frames.map(|f| u64::from_le_bytes(f.try_into().unwrap()));
        let pid = record.pid();
        let managed = |a: &u64| {
            code.iter()
                .any(|&(p, s, n)| p == pid && s <= *a && *a < s + n)
        };
        let frames: Vec<u64> = frames.filter(managed).collect();
        let mut payload = record.payload()[..4].to_vec();
        payload.extend((frames.len() as u32).to_le_bytes());
        frames.iter().for_each(|f| payload.extend(f.to_le_bytes()));
        *record = record.clone().with_payload(&payload);
    }
    write(file, &all)
}

pub fn judge(files: &[Vec<u8>], mut verifier: Verifier<'_>) -> Report {
    let names: Vec<_> = (1..=files.len()).map(|n| format!("{n}.etl")).collect();
    let sources = files
        .iter()
        .zip(&names)
        .map(|(f, n)| (f.as_slice(), n.as_str()));
    verifier.verify_together(sources).unwrap()
}
