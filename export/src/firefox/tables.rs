//! The tables that all threads share: texts, functions, frames and stacks.

use std::io::{self, Write};

use etl_analysis::profile::{CallNode, Frame, FrameKind, Profile};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use super::categories::Category;
use super::json::Json;
use super::libraries::Libraries;

/// Tables without rows, with their columns.
const EMPTY: [(&str, &[&str]); 2] = [
    (
        "nativeSymbols",
        &["libIndex", "address", "name", "functionSize"],
    ),
    ("sourceLocationTable", &["source", "line", "column"]),
];

/// The name of frames without a name.
const UNKNOWN: &str = "?";

/// The type of a resource that is a library.
const LIBRARY: &str = "1";
/// The index of a function without a resource.
const NO_RESOURCE: &str = "-1";

/// Texts by number.
#[derive(Debug, Default)]
pub(super) struct Texts(IndexSet<Box<str>, RandomState>);

impl Texts {
    pub fn number(&mut self, text: &str) -> u64 {
        let number = match self.0.get_index_of(text) {
            Some(number) => number,
            None => self.0.insert_full(text.into()).0,
        };
        number as u64
    }
}

/// Additional stacks: copies of stacks of the profile whose last frame has another category.
#[derive(Debug)]
pub(super) struct Twins {
    /// The number of frames of the profile. The twins follow them.
    frames: usize,
    /// The number of stacks of the profile. The twins follow them.
    stacks: usize,
    /// The number of the twin of each frame.
    frame_numbers: HashMap<usize, u32>,
    /// The frames that have a twin, by number of the twin.
    of_frames: Vec<usize>,
    /// The number of the twin of each stack.
    stack_numbers: HashMap<u64, u32>,
    /// The frame and the parent of each twin.
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

/// The stack of a node of the root with this index. The nodes are in the order of their roots, and
/// the first node of each root is not a stack.
pub(super) fn stack_of(profile: &Profile, root: usize, node: usize) -> Option<u64> {
    let first = profile.roots().get(root)?.first;
    (node > first).then(|| (node - root - 1) as u64)
}

/// A function by the numbers of its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Function {
    /// Number of the name.
    name: u64,
    /// Index of the module.
    module: Option<usize>,
    /// Index of the source file.
    source: Option<u32>,
}

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
            let (number, _) = functions.list.insert_full(Function {
                name,
                module,
                source,
            });
            functions.of_frames.push(number as u32);
        }
        functions
    }
}

/// The name of a frame: the name of its function, or its address until the viewer finds a name.
fn name(profile: &Profile, frame: &Frame) -> String {
    if &*frame.method != UNKNOWN {
        return frame.method.to_string();
    }
    match offset(profile, frame).or(frame.address) {
        Some(address) => format!("{address:#x}"),
        None => UNKNOWN.to_owned(),
    }
}

/// The offset of a frame in its image.
fn offset(profile: &Profile, frame: &Frame) -> Option<u64> {
    let module = profile.modules().get(frame.module)?;
    let start = module.addresses.as_ref()?.start;
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
    function_table(json, &functions)?;
    json.raw(",\n\"resourceTable\":{")?;
    let modules = profile.modules();
    json.constant("type", modules.len(), LIBRARY)?;
    json.column("lib", 0..modules.len(), |out, module| {
        out.optional(libraries.of(module))
    })?;
    json.column("name", modules, |out, module| {
        out.number(texts.number(&module.name))
    })?;
    json.constant("host", modules.len(), "null")?;
    json.end(modules.len())?;
    json.raw(",\n\"sources\":{")?;
    let rows = functions.sources.len();
    json.column("filename", &functions.sources, |out, &file| {
        out.number(file)
    })?;
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

fn function_table<W: Write>(json: &mut Json<W>, functions: &Functions) -> io::Result<()> {
    let list = &functions.list;
    let rows = list.len();
    json.column("name", list, |out, function| out.number(function.name))?;
    json.constant("isJS", rows, "false")?;
    json.constant("relevantForJS", rows, "false")?;
    json.column("resource", list, |out, function| match function.module {
        Some(module) => out.number(module as u64),
        None => out.raw(NO_RESOURCE),
    })?;
    json.column("source", list, |out, function| {
        out.optional(function.source.map(u64::from))
    })?;
    for name in ["lineNumber", "columnNumber", "originalLocation"] {
        json.constant(name, rows, "null")?;
    }
    json.end(rows)
}

/// The nodes that are stacks, each with the index of its root: all but the roots' own nodes.
fn stack_nodes(profile: &Profile) -> impl Iterator<Item = (usize, &CallNode)> {
    profile
        .roots()
        .iter()
        .enumerate()
        .flat_map(|(index, root)| {
            let nodes = profile
                .nodes()
                .get(root.first + 1..root.end)
                .unwrap_or_default();
            nodes.iter().map(move |node| (index, node))
        })
}

fn stacks<W: Write>(json: &mut Json<W>, profile: &Profile, twins: &Twins) -> io::Result<()> {
    let frames = stack_nodes(profile).map(|(_, node)| node.frame.unwrap_or(0));
    let twin_frames = twins
        .of_stacks
        .iter()
        .map(|&(frame, _)| twins.frames + frame as usize);
    json.column("frame", frames.chain(twin_frames), |out, frame| {
        out.number(frame as u64)
    })?;
    let parents = stack_nodes(profile).map(|(root, node)| stack_of(profile, root, node.parent?));
    let twin_parents = twins.of_stacks.iter().map(|&(_, parent)| parent);
    let parents = parents.chain(twin_parents).enumerate();
    json.column("prefixOffset", parents, |out, (stack, parent)| {
        out.number(parent.map_or(0, |parent| (stack as u64).saturating_sub(parent)))
    })?;
    json.end(twins.stacks + twins.of_stacks.len())
}

fn frames<W: Write>(
    json: &mut Json<W>,
    profile: &Profile,
    twins: &Twins,
    functions: &Functions,
) -> io::Result<()> {
    let twin_frames = twins.of_frames.iter().map(|&frame| FrameRow {
        frame,
        is_twin: true,
    });
    let rows = (0..twins.frames).map(|frame| FrameRow {
        frame,
        is_twin: false,
    });
    let rows: Vec<FrameRow> = rows.chain(twin_frames).collect();
    json.column("address", &rows, |out, row| {
        let frame = profile.frames().get(row.frame);
        match frame.and_then(|frame| offset(profile, frame)) {
            Some(offset) => out.number(offset),
            None => out.raw("-1"),
        }
    })?;
    json.constant("inlineDepth", rows.len(), "0")?;
    json.column("category", &rows, |out, row| {
        let (category, _) = row.category(profile);
        out.number(category.index())
    })?;
    json.column("subcategory", &rows, |out, row| {
        let (_, subcategory) = row.category(profile);
        out.number(subcategory)
    })?;
    json.column("func", &rows, |out, row| {
        out.number(
            functions
                .of_frames
                .get(row.frame)
                .copied()
                .unwrap_or(0)
                .into(),
        )
    })?;
    json.column("line", &rows, |out, row| {
        let line = profile.frames().get(row.frame).and_then(|frame| frame.line);
        out.optional(line.map(u64::from))
    })?;
    for name in [
        "nativeSymbol",
        "innerWindowID",
        "column",
        "originalLocation",
    ] {
        json.constant(name, rows.len(), "null")?;
    }
    json.end(rows.len())
}

/// A row of the table of frames.
#[derive(Clone, Copy)]
struct FrameRow {
    /// Index of the frame of the profile.
    frame: usize,
    /// Whether the row is its twin.
    is_twin: bool,
}

impl FrameRow {
    fn category(self, profile: &Profile) -> (Category, u64) {
        if self.is_twin {
            return (Category::Gc, 0);
        }
        match profile.frames().get(self.frame) {
            Some(frame) => Category::of(frame, profile.module_name(frame.module)),
            None => (Category::Other, 0),
        }
    }
}
