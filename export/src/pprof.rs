//! The format of [pprof](https://github.com/google/pprof): a gzip file with one message `Profile`.
//!
//! Each address is a location, with the image that it is in; images have the identity of their PDB,
//! so that native code can be given names later. Samples have the labels `process`, `pid` and, with
//! a tree for each thread, `thread` and `tid`.

use std::io::{self, Write};

use etl_analysis::profile::{Frame, Measure, Profile};
use etl_schema::render::{is_terminal_unsafe, one_line};
use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::protobuf::Message;
use crate::{NANOSECONDS, Unit};

/// Fields of messages, by message.
mod profile_field {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING: u32 = 6;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const PERIOD_TYPE: u32 = 11;
    pub const PERIOD: u32 = 12;
}
mod value_type {
    pub const TYPE: u32 = 1;
    pub const UNIT: u32 = 2;
}
mod sample_field {
    pub const LOCATION: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const LABEL: u32 = 3;
}
mod label_field {
    pub const KEY: u32 = 1;
    pub const TEXT: u32 = 2;
    pub const NUMBER: u32 = 3;
}
mod mapping_field {
    pub const ID: u32 = 1;
    pub const START: u32 = 2;
    pub const LIMIT: u32 = 3;
    pub const FILE: u32 = 5;
    pub const BUILD_ID: u32 = 6;
    pub const HAS_FUNCTIONS: u32 = 7;
    pub const HAS_FILES: u32 = 8;
    pub const HAS_LINES: u32 = 9;
}
mod location_field {
    pub const ID: u32 = 1;
    pub const MAPPING: u32 = 2;
    pub const ADDRESS: u32 = 3;
    pub const LINE: u32 = 4;
}
mod line_field {
    pub const FUNCTION: u32 = 1;
    pub const LINE: u32 = 2;
}
mod function_field {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const FILE: u32 = 4;
}

/// When the samples were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Nanoseconds since 1970.
    pub start: i64,
    /// Nanoseconds.
    pub duration: u64,
}

/// Writes a profile whose frames are addresses
/// ([`Detail::Addresses`](etl_analysis::profile::Detail)).
///
/// # Errors
/// If writing fails.
pub fn write(profile: &Profile, times: Times, out: impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(io::BufWriter::new(out), Compression::fast());
    let mut writer = Writer {
        out: &mut out,
        strings: Strings::default(),
        field: Message::default(),
    };
    writer.strings.number("");
    let is_of_bytes = profile.measure() == Measure::Bytes;
    let events = if is_of_bytes {
        "alloc_events"
    } else {
        "samples"
    };
    writer.sample_type(events, "count", profile_field::SAMPLE_TYPE)?;
    if is_of_bytes {
        writer.sample_type("alloc_space", "bytes", profile_field::SAMPLE_TYPE)?;
        writer.sample_type("space", "bytes", profile_field::PERIOD_TYPE)?;
    }
    // Readers show the last type. Without intervals, all its values would be 0.
    if profile.has_times() {
        writer.sample_type("cpu", "nanoseconds", profile_field::SAMPLE_TYPE)?;
        writer.sample_type("cpu", "nanoseconds", profile_field::PERIOD_TYPE)?;
    }
    let contents = ModuleContent::of_modules(profile);
    let program = program(profile);
    let others = (0..profile.modules().len()).filter(|at| Some(*at) != program);
    for at in program.into_iter().chain(others) {
        let content = contents.get(at).copied().unwrap_or_default();
        writer.mapping(at, profile, content)?;
    }
    writer.functions(profile)?;
    writer.samples(profile)?;
    writer.strings()?;
    let mut rest = Message::default();
    rest.uint(profile_field::TIME_NANOS, times.start.cast_unsigned());
    rest.uint(profile_field::DURATION_NANOS, times.duration);
    let period = u64::from(profile.intervals().first().copied().unwrap_or(0)) * NANOSECONDS;
    rest.uint_unless_zero(profile_field::PERIOD, period);
    out.write_all(rest.bytes())?;
    out.finish()?.flush()
}

/// The module of the program that has the most samples, `App.exe` or the `App.dll` that it starts:
/// readers treat the first mapping as the program.
fn program(profile: &Profile) -> Option<usize> {
    let mut samples: HashMap<String, u64> = HashMap::default();
    for root in profile.roots() {
        let node = profile.nodes().get(root.first);
        let count = node.map_or(0, |node| node.inclusive.samples);
        *samples.entry(stem(&root.process_name)).or_default() += count;
    }
    let mut program = None;
    let mut max_samples = 0;
    for (index, module) in profile.modules().iter().enumerate() {
        // If several have as many samples, this is the first.
        if let Some(&count) = samples.get(&stem(&module.name))
            && (program.is_none() || count > max_samples)
        {
            program = Some(index);
            max_samples = count;
        }
    }
    program
}

/// A file name in lower case without its extension.
fn stem(name: &str) -> String {
    name.rsplit_once('.')
        .map_or(name, |(stem, _)| stem)
        .to_lowercase()
}

/// Texts by number.
#[derive(Debug, Default)]
struct Strings(IndexSet<Box<str>, RandomState>);

impl Strings {
    /// The number of a text. `go tool pprof` prints it as it is.
    fn number(&mut self, text: &str) -> u64 {
        if text.contains(is_terminal_unsafe) {
            return self.0.insert_full(one_line(text).into()).0 as u64;
        }
        let number = match self.0.get_index_of(text) {
            Some(number) => number,
            None => self.0.insert_full(text.into()).0,
        };
        number as u64
    }
}

/// What is known of the frames of a module.
#[derive(Clone, Copy, Debug, Default)]
struct ModuleContent {
    /// Whether any has a name.
    has_names: bool,
    /// Whether any has a source line.
    has_lines: bool,
}

impl ModuleContent {
    /// The contents of all modules, in one pass over the frames.
    fn of_modules(profile: &Profile) -> Vec<Self> {
        let mut contents = vec![ModuleContent::default(); profile.modules().len()];
        for frame in profile.frames() {
            if let Some(content) = contents.get_mut(frame.module) {
                content.has_names |= has_name(frame);
                content.has_lines |= frame.line.is_some();
            }
        }
        contents
    }
}

struct Writer<W> {
    out: W,
    strings: Strings,
    field: Message,
}

impl<W: Write> Writer<W> {
    /// Writes a field of the profile that is a message.
    fn field(&mut self, field: u32, message: &Message) -> io::Result<()> {
        self.field.clear();
        self.field.message(field, message);
        self.out.write_all(self.field.bytes())
    }

    fn sample_type(&mut self, kind: &str, unit: &str, field: u32) -> io::Result<()> {
        let mut message = Message::default();
        message.uint(value_type::TYPE, self.strings.number(kind));
        message.uint(value_type::UNIT, self.strings.number(unit));
        self.field(field, &message)
    }

    fn mapping(&mut self, at: usize, profile: &Profile, content: ModuleContent) -> io::Result<()> {
        let Some(module) = profile.modules().get(at) else {
            return Ok(());
        };
        let mut message = Message::default();
        let addresses = module.addresses.clone().unwrap_or_default();
        message.uint(mapping_field::ID, id(at));
        message.uint_unless_zero(mapping_field::START, addresses.start);
        message.uint_unless_zero(mapping_field::LIMIT, addresses.end);
        let file = if module.path.is_empty() {
            &module.name
        } else {
            &module.path
        };
        message.uint(mapping_field::FILE, self.strings.number(file));
        if let Some(pdb) = module.pdb {
            let build_id = format!("{}{:X}", pdb.signature, pdb.age)
                .replace('-', "")
                .to_uppercase();
            message.uint(mapping_field::BUILD_ID, self.strings.number(&build_id));
        }
        if content.has_names {
            message.uint(mapping_field::HAS_FUNCTIONS, 1);
        }
        if content.has_lines {
            message.uint(mapping_field::HAS_FILES, 1);
            message.uint(mapping_field::HAS_LINES, 1);
        }
        self.field(profile_field::MAPPING, &message)
    }

    /// Writes locations, and the functions that they are in.
    fn functions(&mut self, profile: &Profile) -> io::Result<()> {
        let mut functions: HashMap<(u64, usize, u64), u64> = HashMap::default();
        for (at, frame) in profile.frames().iter().enumerate() {
            let name = self.strings.number(&profile.label(at));
            let next = functions.len() as u64 + 1;
            let module = profile.modules().get(frame.module);
            let file = frame.file.as_deref().or(module.map(|module| &*module.path));
            let file = self.strings.number(file.unwrap_or_default());
            let function = *functions.entry((name, frame.module, file)).or_insert(next);
            if function == next {
                let mut message = Message::default();
                message.uint(function_field::ID, function);
                message.uint(function_field::NAME, name);
                message.uint(function_field::FILE, file);
                self.field(profile_field::FUNCTION, &message)?;
            }
            let mut line = Message::default();
            line.uint(line_field::FUNCTION, function);
            line.uint_unless_zero(line_field::LINE, frame.line.unwrap_or(0).into());
            let mut message = Message::default();
            message.uint(location_field::ID, id(at));
            message.uint(location_field::MAPPING, id(frame.module));
            message.uint_unless_zero(location_field::ADDRESS, frame.address.unwrap_or(0));
            message.message(location_field::LINE, &line);
            self.field(profile_field::LOCATION, &message)?;
        }
        Ok(())
    }

    fn samples(&mut self, profile: &Profile) -> io::Result<()> {
        let mut stack = Vec::new();
        for root in profile.roots() {
            let mut labels = Vec::new();
            self.label(
                &mut labels,
                "process",
                &root.process_name,
                root.pid.map(|pid| pid.get().into()),
                "pid",
            );
            self.label(
                &mut labels,
                "thread",
                &root.thread_name,
                root.tid.map(|tid| tid.get().into()),
                "tid",
            );
            for node in profile
                .nodes()
                .get(root.first..root.end)
                .unwrap_or_default()
            {
                stack.truncate((node.depth as usize).saturating_sub(1));
                stack.extend(node.frame.map(id));
                if node.exclusive.samples == 0 {
                    continue;
                }
                let mut message = Message::default();
                message.packed(sample_field::LOCATION, stack.iter().rev().copied());
                let size = match Unit::Time.for_profile(profile) {
                    Unit::Samples => None,
                    unit => Some(unit.of(node.exclusive)),
                };
                message.packed(
                    sample_field::VALUE,
                    [node.exclusive.samples].into_iter().chain(size),
                );
                for label in &labels {
                    message.message(sample_field::LABEL, label);
                }
                self.field(profile_field::SAMPLE, &message)?;
            }
        }
        Ok(())
    }

    /// Adds the labels with the name and the number of a process or of a thread.
    fn label(
        &mut self,
        labels: &mut Vec<Message>,
        key: &str,
        name: &str,
        number: Option<u64>,
        number_key: &str,
    ) {
        if !name.is_empty() {
            let mut message = Message::default();
            message.uint(label_field::KEY, self.strings.number(key));
            message.uint(label_field::TEXT, self.strings.number(name));
            labels.push(message);
        }
        if let Some(number) = number {
            let mut message = Message::default();
            message.uint(label_field::KEY, self.strings.number(number_key));
            message.uint(label_field::NUMBER, number);
            labels.push(message);
        }
    }

    fn strings(&mut self) -> io::Result<()> {
        for text in &self.strings.0 {
            self.field.clear();
            self.field.bytes_of(profile_field::STRING, text.as_bytes());
            self.out.write_all(self.field.bytes())?;
        }
        Ok(())
    }
}

/// Whether the function of a frame is known.
fn has_name(frame: &Frame) -> bool {
    frame.kind.is_managed() || &*frame.method != "?"
}

/// Ids begin with 1.
fn id(index: usize) -> u64 {
    index as u64 + 1
}
