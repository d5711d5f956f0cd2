//! Seeds of the fuzz targets: a few records of each kind from the simulated scenarios of `corpus/`.
//!
//! They are the same in each run. The repository contains no binary seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use etl_format::Ticks;
use etl_format::compress::{Effort, compress};
use etl_format::constants::{CompressionFormat, ExtendedType};
use etl_format::read::{Options, Order, RawItem, Trace};
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_format::write::BufferCompressor;
use etl_format::write::record::Raw;
use etl_schema::sources::eventsource::Chunk;
use etl_schema::tables::{TABLES, TableSource};
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Script, Simulation};

use super::Target;
use super::made::common::packed;
use super::made::common::reading::sound;
use super::made::common::{self, File as Made};

/// The sources of seeds.
#[derive(Debug, Default)]
pub struct Material {
    /// Scripts of scenarios, by name.
    pub scripts: Vec<(String, String)>,
    /// Traces of a few records of each kind, by name.
    pub traces: Vec<(String, Vec<u8>)>,
    /// A record of each kind.
    pub records: Vec<Vec<u8>>,
    /// The first lines of each kind of a scenario's truth, by name.
    pub truths: Vec<(String, Vec<u8>)>,
    /// The kinds of `records`.
    kinds: BTreeSet<String>,
}

/// Maximum number of records of one kind in a trace.
const OF_A_KIND: usize = 2;
/// Maximum number of records in a trace.
const IN_A_TRACE: usize = 60;

impl Material {
    /// Simulates all scenarios of `corpus/`, or those with the given names.
    ///
    /// # Panics
    /// When a scenario cannot be read or does not run.
    #[must_use]
    pub fn load(names: Option<&[&str]>) -> Self {
        let corpus = etl_test_support::root().join("corpus");
        let mut files: Vec<_> = fs::read_dir(&corpus)
            .expect("the corpus")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|e| e == "kdl"))
            .collect();
        files.sort();
        let mut out = Material::default();
        for path in files {
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if names.is_some_and(|names| !names.contains(&name.as_str())) {
                continue;
            }
            let script = fs::read_to_string(&path).expect("a script");
            let (files, truth) = recorded(&name, &script, &corpus);
            let files = files
                .iter()
                .map(|(file, bytes)| (file.as_str(), bytes.as_slice()));
            out.add_scenario(&name, script, files, &truth);
        }
        out
    }

    /// Adds the script of a scenario, its files, and its `truth.jsonl`.
    pub fn add_scenario<'f>(
        &mut self,
        name: &str,
        script: String,
        files: impl Iterator<Item = (&'f str, &'f [u8])>,
        truth: &[u8],
    ) {
        self.truths
            .push((name.to_owned(), lines_of_each_kind(truth)));
        for (file, bytes) in files {
            let stem = file.trim_end_matches(".etl").replace(['/', '\\'], "-");
            self.add_trace(format!("{name}-{stem}"), bytes);
        }
        self.scripts.push((name.to_owned(), script));
    }

    fn add_trace(&mut self, name: String, bytes: &[u8]) {
        let mut kinds = BTreeMap::new();
        let mut kept: Vec<(u16, Vec<u8>, Option<i64>)> = Vec::new();
        // Some scenarios damage the header event.
        let Ok(mut trace) = Trace::open(bytes, &Options::salvage()) else {
            return;
        };
        {
            let mut records = trace.records(Order::Time).expect("in time order");
            while let Ok(Some(record)) = records.next_record() {
                let kind = (record.kind(), record.identity());
                let count = kinds.entry(format!("{kind:?}")).or_insert(0);
                *count += 1;
                if *count > OF_A_KIND || kept.len() >= IN_A_TRACE || record.bytes().len() > 3000 {
                    continue;
                }
                let timestamp = record.has_own_timestamp().then(|| record.timestamp());
                kept.push((
                    record.processor(),
                    record.bytes().to_vec(),
                    timestamp.map(Ticks::get),
                ));
                if self.kinds.insert(format!("{kind:?}")) {
                    self.records.push(record.bytes().to_vec());
                }
            }
        }
        let packings: [Option<CompressionFormat>; 2] = [
            None,
            Some(
                [
                    CompressionFormat::XPRESS,
                    CompressionFormat::LZNT1,
                    CompressionFormat::XPRESS_HUFF,
                ][name.len() % 3],
            ),
        ];
        for packing in packings {
            let mut plan = RelogPlan::copying(&mut trace).expect("a plan");
            plan.header.buffer_size = 0x1000;
            let compressor = packing.map(|format| -> BufferCompressor {
                BufferCompressor::new(format, Effort::Default).expect("a known format")
            });
            let Ok(mut relog) = Relogger::start(plan, Vec::new(), compressor) else {
                continue;
            };
            for (processor, bytes, timestamp) in kept.iter().skip(1) {
                let raw = Raw {
                    bytes,
                    timestamp: timestamp.map(Ticks::new),
                };
                // A record that is too long for the small buffers is left out.
                let _ = relog.insert(*processor, &raw);
            }
            let file = relog.finish(&[]).expect("memory takes everything").output;
            let form = if packing.is_some() { "packed" } else { "plain" };
            self.traces.push((format!("{name}-{form}"), file));
        }
    }

    /// The seeds of a target, by name.
    #[must_use]
    pub fn seeds(&self, target: &Target) -> Vec<(String, Vec<u8>)> {
        let mut out = match target.name {
            "printed" => self.printed(),
            "commands" => self.commands(),
            "converted" => super::nettrace::seeds(),
            "pdb" => super::symbols::seeds(),
            "input" => self.inputs(),
            "unpack" => self.archives(),
            "truth" => self.truths.clone(),
            _ if target.trace => self.traces(),
            "header" => self.beginnings(),
            "buffer" => self.buffers(),
            "record" => self.records.iter().cloned().map(unnamed).collect(),
            "extended" => self.extended(),
            "nettrace" => super::nettrace::seeds(),
            "xpress" => self.packed(CompressionFormat::XPRESS),
            "lznt1" => self.packed(CompressionFormat::LZNT1),
            "huffman" => self.packed(CompressionFormat::XPRESS_HUFF),
            "tracelogging" => self.metadata(),
            "eventsource" => self.chunks(),
            "manifest" => self.manifests(),
            "event_info" => self.event_infos(),
            "scenario" => self
                .scripts
                .iter()
                .map(|(n, s)| (n.clone(), s.clone().into_bytes()))
                .collect(),
            "table" => tables(),
            name => texts(name),
        };
        if out.is_empty() {
            // Any bytes, for targets that build their input from random choices.
            out = (0..8u8)
                .map(|n| unnamed((0..=255u8).map(|i| i.wrapping_mul(n | 1) ^ n).collect()))
                .collect();
        }
        for (number, (name, bytes)) in out.iter_mut().enumerate() {
            if name.is_empty() {
                *name = format!("{number:04}");
            }
            bytes.truncate(target.longest);
        }
        out
    }

    /// The words of a target's seeds as a libFuzzer dictionary; empty if its inputs are not text.
    #[must_use]
    pub fn dictionary(&self, target: &Target) -> String {
        let mut words = BTreeSet::new();
        for (_, bytes) in self.seeds(target).iter().filter(|_| target.text) {
            let text = String::from_utf8_lossy(bytes);
            let all = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.:$%#!".contains(c));
            words.extend(
                all.filter(|w| (2..=24).contains(&w.len()))
                    .map(str::to_owned),
            );
        }
        // More words make libFuzzer slow.
        words
            .into_iter()
            .take(2000)
            .map(|word| format!("\"{word}\"\n"))
            .collect()
    }

    fn traces(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = self.traces.clone();
        let made: [(&str, Made); 3] = [
            ("made", common::small()),
            ("made-xpress", common::small().compressed(3, packed::xpress)),
            ("made-lznt1", common::small().compressed(2, packed::lznt1)),
        ];
        out.extend(made.map(|(name, made)| (name.to_owned(), made.bytes())));
        out
    }

    /// Every trace, each with some of the printing commands.
    fn printed(&self) -> Vec<(String, Vec<u8>)> {
        let traces = self.traces();
        let each = |(number, (name, bytes)): (usize, &(String, Vec<u8>))| {
            let way = (number * 5 % super::cli::WAYS) as u8 | ((number & 1) << 7) as u8;
            // The target's size limit includes the byte after the trace.
            let len = bytes.len().min((1 << 14) - 1);
            (
                format!("{name}-{way:02x}"),
                [&bytes[..len], &[way]].concat(),
            )
        };
        traces.iter().enumerate().map(each).collect()
    }

    /// Every trace, each with some of the other commands.
    fn commands(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for (number, (name, bytes)) in self.traces().iter().enumerate() {
            let way = (number * 7 % super::commands::WAYS) as u8;
            // The target's size limit includes the byte after the trace.
            let len = bytes.len().min((1 << 14) - 1);
            out.push((
                format!("{name}-{way:02x}"),
                [&bytes[..len], &[way]].concat(),
            ));
        }
        out
    }

    /// Traces, packed traces and streams.
    fn inputs(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = self.archives();
        out.extend(super::nettrace::seeds());
        out.extend(self.traces().into_iter().take(6));
        out
    }

    /// Packed traces, and plain ones that the target packs.
    fn archives(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for (name, bytes) in self
            .traces()
            .iter()
            .filter(|(_, bytes)| bytes.len() < 0x3000)
            .take(6)
        {
            let zst = ruzstd::encoding::compress_to_vec(
                &bytes[..],
                ruzstd::encoding::CompressionLevel::Fastest,
            );
            for (form, packed) in [
                ("gz", super::cli::gzip(bytes)),
                ("zst", zst),
                ("zip", super::cli::archive(bytes)),
            ] {
                out.push((format!("{name}-{form}"), packed));
            }
            for way in [0xf0, 0xf1, 0xf2] {
                out.push((
                    format!("{name}-{way:x}"),
                    [&[way], &bytes[..bytes.len().min(4000)]].concat(),
                ));
            }
        }
        out
    }

    fn beginnings(&self) -> Vec<(String, Vec<u8>)> {
        let of = |(name, bytes): &(String, Vec<u8>)| {
            let size = bytes
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b) as usize);
            let used = bytes.get(4..8)?.try_into().map(u32::from_le_bytes).ok()? as usize;
            Some((name.clone(), bytes.get(0x48..used.min(size))?.to_vec()))
        };
        self.traces
            .iter()
            .filter(|(name, _)| name.ends_with("plain"))
            .filter_map(of)
            .collect()
    }

    fn buffers(&self) -> Vec<(String, Vec<u8>)> {
        let of = |(name, bytes): &(String, Vec<u8>)| {
            let size = bytes
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b) as usize);
            let way = [0x80, 0x01, 0x02, 0x03]
                [usize::from(name.ends_with("packed")) * (1 + name.len() % 3)];
            let buffer = bytes.get(size..)?;
            let len = buffer
                .first_chunk()
                .map(|b| u32::from_le_bytes(*b) as usize)?;
            Some((name.clone(), [&[way], buffer.get(..len)?].concat()))
        };
        self.traces.iter().filter_map(of).collect()
    }

    /// The items of a type that any event carries.
    fn items(&self, wanted: Option<ExtendedType>) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for record in &self.records {
            let bytes = Made::new(0x1_0000)
                .buffer(0, std::slice::from_ref(record))
                .bytes();
            let mut reader = Trace::open(bytes.as_slice(), &Options::salvage()).expect("a trace");
            let mut records = reader.records(Order::File).expect("a slice");
            while let Ok(Some(record)) = records.next_record() {
                let mut items = record.extended();
                while let Some(RawItem { kind, data }) = items.next_raw() {
                    if wanted.is_none_or(|w| w == kind) {
                        out.push(data.to_vec());
                    }
                }
            }
        }
        out
    }

    fn extended(&self) -> Vec<(String, Vec<u8>)> {
        let data = self
            .items(None)
            .into_iter()
            .map(|d| [&[1], &d[..]].concat());
        let chains = self
            .records
            .iter()
            .filter(|r| r.len() > 0x50 && r[4] & 1 != 0 && r[2] >= 0x12);
        data.chain(chains.map(|r| [&[0], &r[0x50..]].concat()))
            .map(unnamed)
            .collect()
    }

    fn packed(&self, format: CompressionFormat) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for (name, bytes) in self
            .traces
            .iter()
            .filter(|(name, _)| name.ends_with("plain"))
            .take(12)
        {
            let records: Vec<u8> = sound(bytes)
                .into_iter()
                .flat_map(|r| r.bytes)
                .take(3000)
                .collect();
            let mut stream = vec![0];
            if compress(format, &records, Effort::Default, &mut stream).is_ok() {
                out.push((name.clone(), stream));
            }
        }
        out
    }

    fn metadata(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for kind in [ExtendedType::EVENT_SCHEMA_TL, ExtendedType::PROV_TRAITS] {
            for item in self.items(Some(kind)) {
                let payload = b"\x01\0\0\0t\0e\0x\0t\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0";
                let share = item.len() * 255 / (item.len() + payload.len()) + 1;
                out.push(unnamed([&[share as u8], &item[..], payload].concat()));
            }
        }
        // Arrays, structs in structs, counts, tags.
        let nested = b"\x28\0\0Event\0outer\0\x98\x02inner\0\x98\x02a\0\x44b\0\x21\x03\0c\0\x01";
        out.push(unnamed(
            [&[200], &nested[..], b"\x02\0\x01\0\x02\0abcdefghijklm\0\0"].concat(),
        ));
        out
    }

    fn manifests(&self) -> Vec<(String, Vec<u8>)> {
        let mut out: Vec<(String, Vec<u8>)> =
            self.whole_manifests().into_iter().map(unnamed).collect();
        out.push(unnamed(MANIFEST.as_bytes().to_vec()));
        out
    }

    /// Manifests that fit one chunk.
    fn whole_manifests(&self) -> Vec<Vec<u8>> {
        let payload = |r: &Vec<u8>| -> Option<Vec<u8>> {
            let at = if r[4] & 1 != 0 { return None } else { 0x50 };
            Chunk::parse(r.get(at..)?).map(|chunk| chunk.text.to_vec())
        };
        self.records
            .iter()
            .filter(|r| r.len() > 0x50 && r[2] >= 0x12)
            .filter_map(payload)
            .collect()
    }

    fn chunks(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for text in self
            .whole_manifests()
            .into_iter()
            .chain([MANIFEST.as_bytes().to_vec()])
        {
            for size in [200, 900] {
                let total = text.len().div_ceil(size) as u16;
                let mut bytes = Vec::new();
                for (number, piece) in text.chunks(size).enumerate() {
                    let chunk = Chunk {
                        major_version: 1,
                        minor_version: 0,
                        total,
                        number: number as u16,
                        text: piece,
                    }
                    .build();
                    bytes.extend([chunk.len() as u8, (chunk.len() >> 8) as u8, 1, 1]);
                    bytes.extend(chunk);
                }
                out.push(unnamed(bytes));
            }
        }
        out
    }

    fn event_infos(&self) -> Vec<(String, Vec<u8>)> {
        let mut infos = Vec::new();
        for record in self
            .records
            .iter()
            .filter(|r| r.len() > 0x30 && matches!(r[2], 0x0a | 0x14))
        {
            infos.push(record[0x30..].to_vec());
        }
        infos.push(info());
        let seed = |info: Vec<u8>| {
            let map = map();
            let lens = [map.len() as u16, info.len() as u16]
                .map(u16::to_le_bytes)
                .concat();
            unnamed(
                [
                    &lens[..],
                    &map,
                    &info,
                    b"\x01\0\0\0t\0\0\0\x02\0\0\0\0\0\0\0",
                ]
                .concat(),
            )
        };
        infos.into_iter().map(seed).collect()
    }
}

fn unnamed(bytes: Vec<u8>) -> (String, Vec<u8>) {
    (String::new(), bytes)
}

/// What a scenario's sessions write.
fn recorded(name: &str, script: &str, corpus: &Path) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
    let include = |file: &str| fs::read_to_string(corpus.join(file));
    let scenario = Script::new(name, script)
        .include(&include)
        .parse()
        .expect("a sound script");
    let (mut files, mut truth) = (MemoryFileSystem::default(), JsonlWriter::new(Vec::new()));
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .expect("a scenario that runs");
    let files = files
        .into_files()
        .into_iter()
        .map(|file| (file.name, file.bytes))
        .collect();
    (files, truth.into_inner())
}

/// The first lines of each kind, so that a truth is short.
fn lines_of_each_kind(truth: &[u8]) -> Vec<u8> {
    let mut kinds: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut out = Vec::new();
    for line in truth.split_inclusive(|b| *b == b'\n') {
        let kind: Vec<u8> = line.iter().copied().take_while(|b| *b != b',').collect();
        let count = kinds.entry(kind).or_insert(0);
        *count += 1;
        if *count <= 3 {
            out.extend_from_slice(line);
        }
    }
    out
}

/// A description of one event with a number, text counted by it, and a struct.
fn info() -> Vec<u8> {
    let mut out = vec![0u8; 0x70];
    out[0..16].copy_from_slice(&[7; 16]);
    out[0x20] = 1;
    out[0x64] = 4;
    out[0x68] = 3;
    let names = 0x70 + 4 * 0x18;
    // Flags, name, in-type, out-type, map, count, length.
    for (flags, kind, second, map, count, length) in [
        (0u32, 8u16, 0u16, names + 4, 1u16, 0u16),
        (2, 1, 0, 0, 1, 0),
        (1, 3, 1, 0, 1, 0),
        (4, 6, 0, 0, 0, 0),
    ] {
        out.extend(flags.to_le_bytes());
        out.extend((names as u32).to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(second.to_le_bytes());
        out.extend((map as u32).to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend([0; 4]);
    }
    out.extend(b"n\0\0\0m\0\0\0");
    out
}

/// A map of two values, `m`.
fn map() -> Vec<u8> {
    let words = [32u32, 0, 2, 0, 36, 1, 36, 2];
    let mut out = vec![7; 16];
    out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    out.extend(b"m\0\0\0a\0\0\0");
    out
}

fn tables() -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    for TableSource { name, text } in TABLES {
        out.push(((*name).to_owned(), text.as_bytes().to_vec()));
    }
    // The middle of each, after the line that names the provider.
    for TableSource { name, text } in TABLES {
        let head: String = text
            .lines()
            .filter(|l| l.starts_with("provider "))
            .take(1)
            .collect();
        for (number, at) in [1, 2, 3].into_iter().enumerate() {
            let from = text[..text.len() * at / 4].rfind("\n\n").unwrap_or(0);
            let piece: String = text[from..].chars().take(2000).collect();
            out.push((
                format!("{name}-{number}"),
                format!("{head}\n{piece}").into_bytes(),
            ));
        }
    }
    out
}

fn texts(target: &str) -> Vec<(String, Vec<u8>)> {
    let texts: &[&str] = match target {
        "tmf" => &[TMF],
        "config" => &[
            CONFIG,
            "enable = [\"logman start x -p Microsoft-Windows-DotNETRuntime 0x10 5 -ets\"]\n",
        ],
        "mask" => &[
            "runtime:0x1CCBD:5",
            "Microsoft-Windows-DotNETRuntime:0x1CCBD:5+rundown:0xB8:5",
            "a669021c-c450-4609-a035-5af59af4df18:Loader|Jit|NGen:verbose",
        ],
        "controller" => LINES,
        "conditions" => &[
            "ProcessId = 4\nImageName ~ \"*.dll\"\nSize >= 0x1000\nCount != 3",
            "GC*\nTime < 2020-07-29T00:07:01Z\nsaddr = 10.0.0.1\na.b.c = \"x, y\"",
        ],
        "arguments" => TYPED,
        _ => &[],
    };
    texts
        .iter()
        .map(|t| unnamed(t.as_bytes().to_vec()))
        .collect()
}

const MANIFEST: &str = r##"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
<instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events"><events>
<provider name="Contoso-Web" guid="{01020304-0506-0708-090a-0b0c0d0e0f10}" symbol="P">
<channels><channel name="Contoso-Web/Debug" chid="d" type="Debug" value="17"/></channels>
<levels><level name="Loud" value="20"/></levels>
<tasks><task name="Ask" value="3"><opcodes><opcode name="Try" value="21"/></opcodes></task></tasks>
<opcodes><opcode name="Go" value="20"/></opcodes>
<keywords><keyword name="Net" mask="0x10"/></keywords>
<maps><valueMap name="M"><map value="1" message="$(string.one)"/></valueMap><bitMap name="B"><map value="0x2" message="$(string.one)"/></bitMap></maps>
<templates><template tid="t"><data name="n" inType="win:UInt16" map="M"/><data name="s" inType="win:UnicodeString" length="n"/>
<struct name="list" count="n"><data name="x" inType="win:Pointer" outType="win:HexInt64"/><data name="b" inType="win:Binary" length="4"/></struct>
<data name="who" inType="win:SID"/><data name="z" inType="win:AnsiString"/></template></templates>
<events><event value="1" version="2" level="win:Informational" task="Ask" opcode="Try" keywords="Net win:ResponseTime" template="t" symbol="Asked" message="$(string.said)"/>
<event value="2" level="Loud" opcode="Go" channel="d"/></events></provider></events></instrumentation>
<localization><resources culture="en-US"><stringTable><string id="one" value="One"/><string id="said" value="%1 said %2%n"/></stringTable></resources></localization>
</instrumentationManifest>"##;

const TMF: &str = "// PDB:  driver.pdb\n\
01020304-0506-0708-090a-0b0c0d0e0f10 driver // SRC=driver.c MJ= MN=\n\
#typev driver_c42 10 \"%0read %10!d! %!FUNC! from %11!s!\" //   LEVEL=INFO FLAGS=IO FUNC=Read\n\
{\nlength, ItemLong -- 10\nname, ItemPWString -- 11\nmode, ItemListByte(off,on=5,x) -- 12\nset, ItemSetLong(a,b=31) -- 13\naddr, ItemIPV6Addr -- 14\n}\n\
#typev driver_c50 11 \"%0done\" //   LEVEL=INFO\n{\nstatus, ItemNTSTATUS -- 10\nwhen, ItemTimestamp -- 11\n}\n";

const CONFIG: &str = "deny = [\"rundown\"]\nallow = [\"file.sequence-gap\"]\nmin-coverage = 99.5\n\
enable = [\"xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x1CCBD:5 -f clr1.etl\"]\n\n\
[severity]\n\"rundown.process-exited\" = \"error\"\nactivity = \"off\"\n";

const LINES: &[&str] = &[
    "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr.etl",
    "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile -BufferSize 1024 -MinBuffers 64 -FileMode Circular -MaxFile 100",
    "xperf -stop clr -stop -d merged.etl (stop all profiling)",
    "xperf -start x -on Microsoft-Windows-Diagtrack:1:5:'stack'+43ac453b-97cd-4b51-4376-db7c9bb963ac",
    "xperf -merge clr1.etl clr2.etl merged.etl",
    "logman start hci -p \"{8a1f9517-3a8c-4a9e-a018-4f17a200f277}\" 0xffffffffffffffff 0xff -o x.etl -ets",
    "logman create trace clr -p Microsoft-Windows-DotNETRuntime (LoaderKeyword,JitKeyword) win:Verbose -nb 16 256 -bs 64 -mode Circular -f bincirc -max 512",
    "logman start \"NT Kernel Logger\" -p \"Windows Kernel Trace\" (process,thread,img) -ct perf -o k.etl -ets",
    "logman update x --p A --rt -ets",
    "tracelog -start x -guid #e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 -level 5 -flags 0x1CCBD -f x.etl -rt",
    "tracelog -enableex x -guid a.guid -capturestate -matchanykw 0x10 -eventidfilter -in 2 1 2",
    "A669021C-C450-4609-A035-5AF59AF4DF18:0x138:0x5",
];

/// The command's number, then an argument on each line.
const TYPED: &[&str] = &[
    "\0--format\ncsv\n--columns\ntime,event,Address,message\n--from\n0.5\n--to\n2020-07-29T00:07:01Z",
    "\0--format=jsonl\n-p\nPerfInfo\n--id\n0x10\n--opcode\n46\n--level\n5\n--keyword\n0xffffffffffffffff\n--limit\n3",
    "\0--pid\n4711\n--tid\n1\n--provider\ne13c0d23-ccbc-4e12-931b-d9cc2eee27e4\n--strict\n--threads\n3",
    "\x01--format\njson\n--no-mmap\n--max-unpacked\n10M",
    "\x02--enable\nMicrosoft-Windows-DotNETRuntime:0x1CCBD:5\n--min-coverage\n99.5\n--deny\nrundown\n--allow\nfile.unclosed",
    "\x02--enable\nxperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl\n--format\nsarif",
    "\x02--explain\nrundown.unclosed",
    "\x02--rules",
    "\x03--ignore\ntime,ids\n--window\n9\n--limit\n2\n--format\njson",
    "\x04mask\nruntime\n0x1CCBD\n--level\n4\n--format\njson",
    "\x04events\nrundown\nmethod\n--event-tables\ndocumented",
    "\x04keywords\nruntime\n0x138",
    "\x04line\nlogman start hci -p \"{8a1f9517-3a8c-4a9e-a018-4f17a200f277}\" 0xffffffffffffffff 0xff -o x.etl -ets",
    "\x04providers\ndotnet",
    "\x05--help",
    "\x06bash\n--tool\netlverify",
    "\x07--color\nalways",
];
