//! Rule by rule: a trace that keeps it, and one that breaks it.

use std::collections::BTreeSet;

use etl_format::Guid;
use etl_format::read::{Options, Trace};
use etl_verify::facts::clr::{RUNDOWN, RUNTIME};
use etl_verify::{Enabled, Policy, RULES, Settings};

use super::base::{judge, sound, two_files, two_files_with_a_gap, unnamed};
use super::edit::{Rec, full, perfinfo, records, system, write};

/// A provider that keeps to starts and stops.
const STRANGER: Guid = Guid::new(0x1234_5678, 1, 2, [1, 2, 3, 4, 5, 6, 7, 8]);
const IMAGE_ID: Guid =
    Guid::new(0xb3e6_75d7, 0x2554, 0x4f18, [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde]);
/// Where nothing is.
const NOWHERE: u64 = 0x0000_1234_5678_0000;

struct Edited {
    file: Vec<u8>,
    all: Vec<Rec>,
}

impl Edited {
    fn new(file: Vec<u8>) -> Self {
        let all = records(&file);
        Edited { file, all }
    }

    fn find(&self, name: &str) -> usize {
        let found = self.all.iter().position(|r| r.name.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name}: {:?}", self.names()))
    }

    fn names(&self) -> BTreeSet<&str> {
        self.all.iter().map(|r| r.name.as_str()).collect()
    }

    fn last(&self, name: &str) -> usize {
        self.all.iter().rposition(|r| r.name.starts_with(name)).unwrap()
    }

    fn without(mut self, drop: impl Fn(&Rec) -> bool) -> Self {
        self.all.retain(|r| !drop(r));
        self
    }

    fn each(mut self, which: impl Fn(&Rec) -> bool, mut change: impl FnMut(&mut Rec)) -> Self {
        self.all.iter_mut().filter(|r| which(r)).for_each(&mut change);
        self
    }

    /// The first stack holds one address, and that is this one.
    fn address(mut self, address: u64) -> Self {
        let at = self.all.iter().position(|r| r.is_event() && r.id() == 82).unwrap();
        let mut payload = self.all[at].payload()[..4].to_vec();
        payload.extend(1u32.to_le_bytes());
        payload.extend(address.to_le_bytes());
        self.all[at] = self.all[at].clone().with_payload(&payload);
        self
    }

    /// An image of a process from the beginning on.
    fn image(mut self, pid: u32, base: u64, name: &str) -> Self {
        let mut payload = base.to_le_bytes().to_vec();
        payload.extend(0x1_0000u64.to_le_bytes());
        payload.extend(pid.to_le_bytes());
        payload.extend([0; 12]);
        payload.extend(base.to_le_bytes());
        payload.extend([0; 16]);
        payload.extend(format!("C:\\{name}\0").encode_utf16().flat_map(u16::to_le_bytes));
        let stamp = self.all[0].stamp();
        self.all.insert(0, system(0x1403, 3, stamp, &payload));
        self
    }

    fn written(self) -> Vec<Vec<u8>> {
        vec![write(&self.file, &self.all)]
    }
}

fn edited() -> Edited {
    Edited::new(sound())
}

fn is(name: &'static str) -> impl Fn(&Rec) -> bool {
    move |r| r.name.starts_with(name)
}

fn of_pid(pid: u32) -> impl Fn(&Rec) -> bool {
    move |r| r.is_event() && r.pid() == pid
}

/// Four bytes of the header event in buffer 0, by their place in its payload.
fn header_word(mut file: Vec<u8>, place: usize, change: impl Fn(u32) -> u32) -> Vec<u8> {
    let at = 0x48 + 0x20 + place;
    let word = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    file[at..at + 4].copy_from_slice(&change(word).to_le_bytes());
    file
}

fn header_time(mut file: Vec<u8>, place: usize, change: impl Fn(i64) -> i64) -> Vec<u8> {
    let at = 0x48 + 0x20 + place;
    let time = i64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    file[at..at + 8].copy_from_slice(&change(time).to_le_bytes());
    file
}

/// A field of the header of the last buffer.
fn last_buffer(mut file: Vec<u8>, place: usize, bytes: &[u8]) -> Vec<u8> {
    let at = {
        let trace = Trace::open(file.as_slice(), &Options::default()).unwrap();
        trace.buffers().last().unwrap().offset as usize + place
    };
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

fn sequence(file: &[u8], back: usize) -> i64 {
    let trace = Trace::open(file, &Options::default()).unwrap();
    trace.buffers().iter().rev().nth(back).unwrap().sequence_number
}

/// Starts and stops of an activity of a stranger, by opcode.
fn activities(opcodes: &[(u8, u8)]) -> Vec<Vec<u8>> {
    let mut e = edited();
    let model = e.all[e.find("MethodLoadVerbose")].clone();
    for &(opcode, activity) in opcodes {
        let mut event = model.clone().with_payload(&[]);
        event.put(0x18, &STRANGER.to_bytes());
        event.put(0x28, &[1, 0, 0, 0, 4, opcode, 7, 0]);
        event.put(0x40, &[activity; 16]);
        e.all.push(event.at(e.all.last().unwrap().stamp()));
    }
    e.written()
}

/// Traces that break a rule, and what is told of them.
fn breaking(rule: &str) -> Option<(Vec<Vec<u8>>, Settings)> {
    let told =
        |text: &str| Settings { enabled: Enabled::parse(text).unwrap(), ..Settings::default() };
    let plain = |files: Vec<Vec<u8>>| Some((files, Settings::default()));
    let one = |e: Edited| plain(e.written());
    let file = sound;
    match rule {
        "file.damaged" => {
            let mut bytes = file();
            bytes.truncate(bytes.len() - 0x1000);
            plain(vec![bytes])
        }
        "file.unclosed" => plain(vec![header_time(file(), 0x10, |_| 0)]),
        "file.events-lost" => plain(vec![header_word(file(), 0x30, |_| 3)]),
        "file.buffers-lost" => plain(vec![header_word(file(), 0x114, |_| 3)]),
        "file.sequence-gap" => {
            let number = sequence(&file(), 0) + 5;
            plain(vec![last_buffer(file(), 0x18, &number.to_le_bytes())])
        }
        "file.sequence-twice" => {
            let number = sequence(&file(), 1);
            plain(vec![last_buffer(file(), 0x18, &number.to_le_bytes())])
        }
        "file.buffer-count" => plain(vec![header_word(file(), 0x24, |n| n - 1)]),
        "file.disordered" => {
            let mut e = edited();
            let at = (1..e.all.len())
                .find(|&i| {
                    e.all[i].processor == e.all[i - 1].processor
                        && e.all[i].stamp() > e.all[i - 1].stamp()
                })
                .unwrap();
            e.all.swap(at, at - 1);
            one(e)
        }
        "file.outside-session" => {
            let mut e = edited();
            let last = e.all.len() - 1;
            let late = e.all[last].stamp() + 100 * 10_000_000;
            e.all[last] = e.all[last].clone().at(late);
            one(e)
        }
        "file.processors" => plain(vec![last_buffer(file(), 0x28, &9u16.to_le_bytes())]),
        "filter.not-admitted" => Some((vec![file()], told("runtime:0x8:5"))),
        "filter.silent" => {
            let files = edited().without(is("AssemblyLoad")).written();
            Some((files, told("runtime:0x4001CCBD:5")))
        }
        "rundown.none" => one(edited().without(|r| r.is_event() && r.provider() == RUNDOWN)),
        "rundown.missing" => {
            one(edited().without(|r| r.is_event() && r.provider() == RUNDOWN && r.pid() == 100))
        }
        "rundown.unclosed" => one(edited().without(is("DCEndComplete"))),
        "rundown.no-init" => one(edited().without(is("DCEndInit"))),
        "rundown.nested" => {
            let mut e = edited();
            let at = e.find("DCEndInit");
            e.all.insert(at, e.all[at].clone());
            one(e)
        }
        "rundown.outside" => one(edited()
            .without(|r| r.name.starts_with("DCEndInit") || r.name.starts_with("DCEndComplete"))),
        "rundown.exited" => {
            // No start rundown, and one of the processes ends before the end rundown.
            let e = edited();
            let begin = e.all[e.find("DCEndInit")].stamp();
            let mut e = e.without(|r| {
                let rundown = r.is_event() && r.provider() == RUNDOWN;
                rundown && (r.pid() == 100 || r.stamp() < begin)
            });
            let mut payload = vec![0; 8];
            payload.extend(100u32.to_le_bytes());
            payload.extend([0; 12 + 8 + 4 + 4]);
            payload.extend(b"First.exe\0");
            let at = e.all.iter().position(|r| r.stamp() >= begin).unwrap();
            e.all.insert(at, system(0x0302, 4, begin - 1, &payload));
            one(e)
        }
        "rundown.confused" => {
            let mut e = edited();
            let at = e.find("MethodDCEndVerbose");
            e.all[at].put(0x28, &143u16.to_le_bytes());
            one(e)
        }
        "rundown.order" => {
            let mut e = edited();
            let (init, at) = (e.find("DCEndInit"), e.find("AppDomainDCEnd"));
            let moved = e.all.remove(at).at(e.all[init].stamp());
            e.all.insert(init + 1, Rec { processor: e.all[init].processor, ..moved });
            one(e)
        }
        "rundown.twice" => {
            let mut e = edited();
            let at = e.find("MethodDCEndVerbose");
            e.all.insert(at, e.all[at].clone());
            one(e)
        }
        "rundown.incomplete" => {
            // Of the methods that were loaded inside: the first one's place.
            let mut e = edited();
            let start = e.all[e.find("MethodLoadVerbose")].u64(16);
            e.all.retain(|r| {
                !(r.name.starts_with("MethodDCEnd") && r.payload().len() > 40 && r.u64(16) == start)
            });
            one(e)
        }
        "rundown.empty" => {
            one(edited().without(|r| r.pid() == 100 && r.name.starts_with("MethodDCEnd")))
        }
        "rundown.wrong-provider" => {
            let mut e = edited();
            let at = e.find("MethodDCEndVerbose");
            e.all[at].put(0x18, &RUNTIME.to_bytes());
            e.all[at].put(0x28, &140u16.to_le_bytes());
            one(e)
        }
        "rundown.runaway" => {
            let mut e = edited();
            let (init, complete) = (e.find("DCEndInit"), e.find("DCEndComplete"));
            let (from, to) = (e.all[init].clone(), e.all[complete].clone());
            let to = Rec { processor: from.processor, ..to.at(from.stamp()) };
            for _ in 0..20 {
                e.all.insert(init, to.clone());
                e.all.insert(init, from.clone());
            }
            one(e)
        }
        "rundown.threads" => {
            let mut e = edited();
            let at = e.find("MethodDCEndVerbose");
            e.all[at].put(8, &9_999u32.to_le_bytes());
            one(e)
        }
        "symbols.unresolved" => one(edited().address(NOWHERE)),
        "symbols.coverage" => {
            let policy = Policy { min_coverage: Some(100.0), ..Policy::default() };
            Some((edited().address(NOWHERE).written(), Settings { policy, ..Settings::default() }))
        }
        "symbols.module-unknown" => {
            let mut e = edited();
            let at = e.last("MethodDCEndVerbose");
            e.all[at].set_u64(8, NOWHERE);
            one(e)
        }
        "symbols.assembly-unknown" => {
            let mut e = edited();
            let at = e.last("ModuleDCEnd");
            e.all[at].set_u64(8, NOWHERE);
            one(e)
        }
        "symbols.no-identity" => one(without_identity(edited())),
        "symbols.unnamed" => {
            let e = Edited::new(unnamed());
            let named = e.all.iter().find(|r| r.name.starts_with("MethodLoad_")).map(|r| r.u64(16));
            let at = named.unwrap_or_else(|| panic!("{:?}", e.names()));
            one(without_identity(e.address(at)))
        }
        "symbols.precompiled" => {
            // A native image by the name that the module's event gives it.
            let module = |r: &Rec| r.is_event() && r.pid() == 100 && r.name.starts_with("Module");
            let ready = |r: &mut Rec| r.put(super::edit::HEADER + 16, &0x20u32.to_le_bytes());
            one(without_identity(edited().each(module, ready))
                .image(100, NOWHERE, "Core.dll")
                .address(NOWHERE + 8))
        }
        "symbols.image-identity" => {
            let mut e = edited().image(100, NOWHERE, "native.dll").address(NOWHERE + 8);
            let mut other = 0x5000_0000u64.to_le_bytes().to_vec();
            other.extend(100u32.to_le_bytes());
            other.extend([7; 20]);
            other.extend(b"other.pdb\0");
            e.all.insert(0, full(IMAGE_ID, 36, e.all[0].stamp(), &other));
            one(e)
        }
        "symbols.overlap" => {
            let mut e = edited();
            let (a, b) = (e.find("MethodLoadVerbose"), e.last("MethodLoadVerbose"));
            let pid = e.all[a].pid();
            let inside = e.all[a].u64(16) + 1;
            let mut over = e.all[b].clone();
            over.put(0x0c, &pid.to_le_bytes());
            over.set_u64(16, inside);
            e.all[b] = over;
            one(e)
        }
        "symbols.loaded-twice" => {
            let mut e = edited();
            let at = e.find("MethodLoadVerbose");
            e.all.insert(at, e.all[at].clone());
            one(e)
        }
        "symbols.unload-unknown" => {
            let mut e = edited();
            let at = e.find("MethodLoadVerbose");
            let mut unload = e.all[at].clone();
            unload.put(0x28, &144u16.to_le_bytes());
            unload.set_u64(16, NOWHERE);
            e.all.insert(at, unload);
            one(e)
        }
        "symbols.jit-without-load" => {
            // Long before the process's last word, so that it was not under way.
            let mut e = edited();
            let load = |r: &Rec| r.name.starts_with("MethodLoadVerbose") && r.pid() == 200;
            let at = e.all.iter().position(load).unwrap();
            e.all.remove(at);
            let mut word = e.all[e.find("ExceptionThrown")].clone();
            word.put(0x0c, &200u32.to_le_bytes());
            let last = e.all.last().unwrap().stamp();
            e.all.push(word.at(last));
            one(e)
        }
        "symbols.gone" => {
            // Code that is loaded last cannot run at the first stack.
            let e = edited();
            let stack = e.all.iter().find(|r| r.is_event() && r.id() == 82).unwrap().pid();
            let late = e
                .all
                .iter()
                .rev()
                .find(|r| r.name.starts_with("MethodLoadVerbose") && r.pid() == stack);
            let address = late.unwrap().u64(16);
            one(e.address(address))
        }
        "stacks.undefined-key" => {
            let mut e = edited();
            let mut payload = e.all[0].stamp().to_le_bytes().to_vec();
            payload.extend(100u32.to_le_bytes());
            payload.extend(1u32.to_le_bytes());
            payload.extend(0xabcdu64.to_le_bytes());
            e.all.insert(1, perfinfo(0x1825, e.all[0].stamp(), &payload));
            one(e)
        }
        "stacks.unpaired" => {
            let mut e = edited();
            let at = e.all.iter().position(|r| r.is_event() && r.id() == 82).unwrap();
            e.all.insert(at, e.all[at].clone());
            one(e)
        }
        "stacks.truncated" => {
            let mut e = edited();
            let at = e.all.iter().position(|r| r.is_event() && r.id() == 82).unwrap();
            let payload = e.all[at].payload().to_vec();
            e.all[at] = e.all[at].clone().with_payload(&payload[..payload.len() - 8]);
            one(e)
        }
        "stacks.early" => {
            let mut e = edited();
            let stamp = e.all[0].stamp();
            let mut payload = (stamp + 1).to_le_bytes().to_vec();
            payload.extend(100u32.to_le_bytes());
            payload.extend(1u32.to_le_bytes());
            e.all.insert(1, perfinfo(0x1820, stamp, &payload));
            one(e)
        }
        "merge.clock" => {
            let [a, b] = two();
            plain(vec![a, header_time(b, 0x110, |t| t + 100_000_000)])
        }
        "merge.machine" => {
            let [a, b] = two();
            plain(vec![a, header_word(b, 0x08, |build| build + 1)])
        }
        "merge.seam" => plain(two_files_with_a_gap()),
        "merge.one-sided" => {
            let [a, _] = two();
            plain(vec![a.clone(), a])
        }
        "merge.processes" => {
            let [a, b] = two();
            let b = Edited::new(b).each(of_pid(100), |r| r.put(0x0c, &101u32.to_le_bytes()));
            plain(vec![a, b.written().remove(0)])
        }
        "merge.image-ids" => one(edited().image(100, NOWHERE, "native.dll").address(NOWHERE + 8)),
        "activity.unstopped" => plain(activities(&[(1, 1), (2, 1), (1, 2)])),
        "activity.unstarted" => plain(activities(&[(1, 1), (2, 1), (2, 2)])),
        "activity.parent" => {
            let mut e = edited();
            let model = e.all[e.find("MethodLoadVerbose")].clone();
            let mut event = model.with_payload(&[]);
            event.put(0x18, &STRANGER.to_bytes());
            event.put(0x28, &[1, 0, 0, 0, 4, 1, 7, 0]);
            event.put(0x40, &[9; 16]);
            // One extended item: the activity that it comes from.
            let flags = u16::from_le_bytes([event.bytes[4], event.bytes[5]]) | 1;
            event.put(4, &flags.to_le_bytes());
            let mut item = vec![24, 0, 1, 0, 0, 0, 16, 0];
            item.extend([8; 16]);
            let event = event.with_payload(&item);
            e.all.push(event.at(e.all.last().unwrap().stamp()));
            one(e)
        }
        "payload.short" => {
            let mut e = edited();
            let at = e.find("MethodLoadVerbose");
            let payload = e.all[at].payload().to_vec();
            e.all[at] = e.all[at].clone().with_payload(&payload[..payload.len() - 1]);
            one(e)
        }
        "payload.long" => {
            let mut e = edited();
            let at = e.find("MethodLoadVerbose");
            let mut payload = e.all[at].payload().to_vec();
            payload.extend([1, 2, 3]);
            e.all[at] = e.all[at].clone().with_payload(&payload);
            one(e)
        }
        "payload.descriptor" => {
            let mut e = edited();
            let at = e.find("MethodLoadVerbose");
            e.all[at].put(0x30, &0x8000_0000u64.to_le_bytes());
            one(e)
        }
        "payload.version" => {
            let mut e = edited();
            let at = e.find("MethodLoadVerbose");
            e.all[at].put(0x2a, &[77]);
            one(e)
        }
        _ => None,
    }
}

fn two() -> [Vec<u8>; 2] {
    two_files().try_into().unwrap()
}

/// Modules whose events give no PDB.
fn without_identity(e: Edited) -> Edited {
    let module = |r: &Rec| {
        let event = r.name.starts_with("Module") && r.payload().len() > 40;
        event && !r.name.starts_with("ModuleRange")
    };
    e.each(module, |r| {
        // Two paths and the CLR's id stand before the identities.
        let payload = r.payload().to_vec();
        let mut at = 24;
        for _ in 0..2 {
            while payload[at..at + 2] != [0, 0] {
                at += 2;
            }
            at += 2;
        }
        r.put(super::edit::HEADER + at + 2, &[0; 16]);
    })
}

#[test]
fn sound_traces_keep_every_rule() {
    for (name, files) in [
        ("sound", vec![sound()]),
        ("sound, written anew", edited().written()),
        ("two files", two_files()),
    ] {
        let report = judge(&files, &Settings::default());
        assert!(report.findings.is_empty(), "{name}: {}", report.text());
    }
}

#[test]
fn every_rule_is_broken_by_some_trace() {
    let mut missing = Vec::new();
    for rule in RULES {
        let Some((files, settings)) = breaking(rule.id) else {
            missing.push(format!("{}: no trace breaks it", rule.id));
            continue;
        };
        let report = judge(&files, &settings);
        if !report.findings.iter().any(|f| f.rule == rule.id) {
            let told: BTreeSet<_> = report.findings.iter().map(|f| f.rule).collect();
            missing.push(format!("{}: not noticed, but {told:?}", rule.id));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
