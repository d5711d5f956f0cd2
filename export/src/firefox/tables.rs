//! The tables that all threads share: texts, functions, frames and stacks.

use std::io::{self, Write};

use etl_analysis::profile::{Frame, FrameKind, Profile};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use super::categories::Category;
use super::json::Json;
use super::libraries::Libraries;

/// Tables without rows, with their columns.
const EMPTY: [(&str, &[&str]); 2] = [
    ("nativeSymbols", &["libIndex", "address", "name", "functionSize"]),
    ("sourceLocationTable", &["source", "line", "column"]),
];

/// The name that profiles have for what has none.
const UNKNOWN: &str = "?";

/// A resource that is a library, and what stands for no resource.
const LIBRARY: &str = "1";
const NO_RESOURCE: &str = "-1";

/// Texts by number.
#[derive(Debug, Default)]
pub(super) struct Texts(IndexSet<Box<str>, RandomState>);

impl Texts {
    pub fn number(&mut self, text: &str) -> u64 {
        let known = self.0.get_index_of(text);
        known.unwrap_or_else(|| self.0.insert_full(text.into()).0) as u64
    }
}

/// Stacks beside those of the profile: the same with a frame of another category at the end.
#[derive(Debug)]
pub(super) struct Twins {
    /// Frames and stacks of the profile, after which those of the twins follow.
    frames: usize,
    stacks: usize,
    /// The number of the twin of a frame, and the frames that have one.
    frame_numbers: HashMap<usize, u32>,
    of_frames: Vec<usize>,
    /// The number of the twin of a stack, and the frames and the parents of the twins.
    stack_numbers: HashMap<u64, u32>,
    of_stacks: Vec<(u32, Option<u64>)>,
}

impl Twins {
    pub fn new(profile: &Profile) -> Self {
        Twins {
            frames: profile.frames().len(),
            stacks: profile.nodes().len().saturating_sub(profile.roots().len()),
            frame_numbers: HashMap::default(),
            of_frames: Vec::new(),
            stack_numbers: HashMap::default(),
            of_stacks: Vec::new(),
        }
    }

    /// The twin of a stack, whose last frame and parent these are.
    pub fn stack(&mut self, stack: u64, frame: usize, parent: Option<u64>) -> u64 {
        let next = self.of_frames.len() as u32;
        let twin = *self.frame_numbers.entry(frame).or_insert(next);
        if twin == next {
            self.of_frames.push(frame);
        }
        let next = self.of_stacks.len() as u32;
        let number = *self.stack_numbers.entry(stack).or_insert(next);
        if number == next {
            self.of_stacks.push((twin, parent));
        }
        self.stacks as u64 + u64::from(number)
    }
}

/// The stack of a node of the root with this index, whose own node has no stack. Nodes stand in the
/// order of their roots, and each root has one.
pub(super) fn stack_of(profile: &Profile, root: usize, node: usize) -> Option<u64> {
    let first = profile.roots().get(root)?.first;
    (node > first).then(|| (node - root - 1) as u64)
}

/// Number of its name, index of its module, and index of its source file.
type Function = (u64, Option<usize>, Option<u32>);

/// Functions, each kept once.
#[derive(Debug, Default)]
struct Functions {
    list: IndexSet<Function, RandomState>,
    of_frames: Vec<u32>,
    /// Numbers of the paths of source files.
    sources: IndexSet<u64, RandomState>,
}

impl Functions {
    fn new(profile: &Profile, texts: &mut Texts) -> Self {
        let mut functions = Functions::default();
        for frame in profile.frames() {
            let name = texts.number(&name(profile, frame));
            let source = frame
                .file
                .as_deref()
                .map(|file| functions.sources.insert_full(texts.number(file)).0 as u32);
            let module = (frame.kind != FrameKind::Unknown).then_some(frame.module);
            let (number, _) = functions.list.insert_full((name, module, source));
            functions.of_frames.push(number as u32);
        }
        functions
    }
}

/// The name of a frame: that of its function, or its address until the viewer finds one.
fn name(profile: &Profile, frame: &Frame) -> String {
    match (offset(profile, frame), frame.address) {
        _ if &*frame.method != UNKNOWN => frame.method.to_string(),
        (Some(offset), _) => format!("{offset:#x}"),
        (None, Some(address)) => format!("{address:#x}"),
        (None, None) => UNKNOWN.to_owned(),
    }
}

/// Where a frame is in its image.
fn offset(profile: &Profile, frame: &Frame) -> Option<u64> {
    let (start, _) = profile.modules().get(frame.module)?.addresses?;
    let offset = frame.address?.checked_sub(start)?;
    // Images are smaller than 4 GB.
    u32::try_from(offset).ok().map(u64::from)
}

/// Writes the tables.
pub(super) fn write<W: Write>(
    json: &mut Json<W>,
    profile: &Profile,
    libraries: &Libraries,
    twins: &Twins,
    texts: &mut Texts,
) -> io::Result<()> {
    let functions = Functions::new(profile, texts);
    json.raw("{\"stackTable\":{")?;
    stacks(json, profile, twins)?;
    json.raw(",\n\"frameTable\":{")?;
    frames(json, profile, twins, &functions)?;
    json.raw(",\n\"funcTable\":{")?;
    let rows = functions.list.len();
    let list = || functions.list.iter();
    json.column("name", list(), |out, &(name, ..)| out.number(name))?;
    json.constant("isJS", rows, "false")?;
    json.constant("relevantForJS", rows, "false")?;
    json.column("resource", list(), |out, &(_, module, _)| match module {
        Some(module) => out.number(module as u64),
        None => out.raw(NO_RESOURCE),
    })?;
    json.column("source", list(), |out, &(.., source)| out.optional(source.map(u64::from)))?;
    for name in ["lineNumber", "columnNumber", "originalLocation"] {
        json.constant(name, rows, "null")?;
    }
    json.end(rows)?;
    json.raw(",\n\"resourceTable\":{")?;
    let modules = profile.modules();
    json.constant("type", modules.len(), LIBRARY)?;
    json.column("lib", 0..modules.len(), |out, module| out.optional(libraries.of(module)))?;
    json.column("name", modules, |out, module| out.number(texts.number(&module.name)))?;
    json.constant("host", modules.len(), "null")?;
    json.end(modules.len())?;
    json.raw(",\n\"sources\":{")?;
    let rows = functions.sources.len();
    json.column("filename", &functions.sources, |out, &file| out.number(file))?;
    for (name, value) in [("startLine", "1"), ("startColumn", "1")] {
        json.constant(name, rows, value)?;
    }
    for name in ["id", "sourceMapURL", "content"] {
        json.constant(name, rows, "null")?;
    }
    json.end(rows)?;
    for (name, columns) in EMPTY {
        json.raw(",\n\"")?;
        json.raw(name)?;
        json.raw("\":{")?;
        for column in columns {
            json.constant(column, 0, "")?;
        }
        json.end(0)?;
    }
    json.raw(",\n\"stringArray\":[")?;
    for (at, text) in texts.0.iter().enumerate() {
        json.raw(if at > 0 { "," } else { "" })?;
        json.text(text)?;
    }
    json.raw("]}")
}

fn stacks<W: Write>(json: &mut Json<W>, profile: &Profile, twins: &Twins) -> io::Result<()> {
    let of_nodes = || {
        profile.roots().iter().enumerate().flat_map(move |(root, of)| {
            let nodes = profile.nodes().get(of.first + 1..of.end).unwrap_or_default();
            nodes.iter().map(move |node| (root, node))
        })
    };
    let of_twins = || twins.of_stacks.iter();
    let frames = of_nodes().map(|(_, node)| node.frame.unwrap_or(0));
    let frames = frames.chain(of_twins().map(|&(frame, _)| twins.frames + frame as usize));
    json.column("frame", frames, |out, frame| out.number(frame as u64))?;
    let parents = of_nodes().map(|(root, node)| stack_of(profile, root, node.parent?));
    let parents = parents.chain(of_twins().map(|&(_, parent)| parent));
    json.column("prefixOffset", parents.enumerate(), |out, (at, parent)| {
        out.number(parent.map_or(0, |parent| (at as u64).saturating_sub(parent)))
    })?;
    json.end(twins.stacks + twins.of_stacks.len())
}

fn frames<W: Write>(
    json: &mut Json<W>,
    profile: &Profile,
    twins: &Twins,
    functions: &Functions,
) -> io::Result<()> {
    let rows = twins.frames + twins.of_frames.len();
    // Index of the frame of the profile, and whether the row is its twin.
    let of_twins = twins.of_frames.iter().map(|&frame| (frame, true));
    let list = || (0..twins.frames).map(|frame| (frame, false)).chain(of_twins.clone());
    let get = |frame: usize| profile.frames().get(frame);
    let category = |(frame, is_twin): (usize, bool)| match get(frame) {
        _ if is_twin => (Category::Gc, 0),
        Some(frame) => Category::of(frame, profile.module_name(frame.module)),
        None => (Category::Other, 0),
    };
    json.column("address", list(), |out, (frame, _)| {
        match get(frame).and_then(|frame| offset(profile, frame)) {
            Some(offset) => out.number(offset),
            None => out.raw("-1"),
        }
    })?;
    json.constant("inlineDepth", rows, "0")?;
    json.column("category", list(), |out, row| out.number(category(row).0.index()))?;
    json.column("subcategory", list(), |out, row| out.number(category(row).1))?;
    json.column("func", list(), |out, (frame, _)| {
        out.number(functions.of_frames.get(frame).copied().unwrap_or(0).into())
    })?;
    json.column("line", list(), |out, (frame, _)| {
        out.optional(get(frame).and_then(|frame| frame.line).map(u64::from))
    })?;
    for name in ["nativeSymbol", "innerWindowID", "column", "originalLocation"] {
        json.constant(name, rows, "null")?;
    }
    json.end(rows)
}
