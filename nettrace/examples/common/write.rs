// Writes small EventPipe streams for examples and tests. The library only reads. The examples of
// the documentation include this file, so that it has no doc comment for the whole file.

/// An event as it is stored. Compressed headers leave out what is the same as in the event before.
#[derive(Clone, Debug, Default)]
pub struct EventRow {
    pub metadata: u32,
    pub sequence: u32,
    pub capture_thread: u64,
    pub processor: u32,
    pub thread: u64,
    pub stack: u32,
    pub time: u64,
    pub activity: [u8; 16],
    pub related: [u8; 16],
    pub labels: u32,
    pub barrier: bool,
    pub payload: Vec<u8>,
}

/// The encoding of event headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// As all writers write them.
    Compressed,
    /// Fields of fixed sizes.
    Plain,
}

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Versions 4 and 5.
    Objects,
    /// Version 6.
    Blocks,
}

/// The clock when the samples start: 2026-11-28 09:26:22.203 UTC.
pub const START_TICKS: u64 = 1_000_000_000;

/// Appends a LEB128 number.
pub fn var(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// UTF-16 text with a NUL.
pub fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// UTF-8 text after its length.
pub fn utf8(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    var(&mut out, text.len() as u64);
    out.extend(text.as_bytes());
    out
}

/// The content of an event block, or of a metadata block of versions 4 and 5.
pub fn event_block(rows: &[EventRow], headers: Headers, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(20u16.to_le_bytes());
    out.extend(u16::from(headers == Headers::Compressed).to_le_bytes());
    out.extend(
        rows.iter()
            .map(|row| row.time)
            .min()
            .unwrap_or(0)
            .to_le_bytes(),
    );
    out.extend(
        rows.iter()
            .map(|row| row.time)
            .max()
            .unwrap_or(0)
            .to_le_bytes(),
    );
    out.truncate(20);
    let mut before = EventRow::default();
    for row in rows {
        match headers {
            Headers::Compressed => compressed(&mut out, &before, row, format),
            Headers::Plain => plain(&mut out, row, format),
        }
        before = row.clone();
    }
    out
}

fn compressed(out: &mut Vec<u8>, before: &EventRow, row: &EventRow, format: Format) {
    let start = out.len();
    let mut flags = 0;
    out.push(0);
    if row.metadata != before.metadata {
        flags |= 1;
        var(out, row.metadata.into());
    }
    let next = match row.metadata {
        0 => before.sequence,
        _ => before.sequence.wrapping_add(1),
    };
    let is_other_thread = row.capture_thread != before.capture_thread;
    if is_other_thread || row.processor != before.processor || row.sequence != next {
        flags |= 2;
        let step = row.sequence.wrapping_sub(before.sequence).wrapping_sub(1);
        var(out, step.into());
        var(out, row.capture_thread);
        var(out, row.processor.into());
    }
    if row.thread != before.thread {
        flags |= 4;
        var(out, row.thread);
    }
    if row.stack != before.stack {
        flags |= 8;
        var(out, row.stack.into());
    }
    var(out, row.time.wrapping_sub(before.time));
    if format == Format::Blocks {
        if row.labels != before.labels {
            flags |= 16;
            var(out, row.labels.into());
        }
    } else {
        if row.activity != before.activity {
            flags |= 16;
            out.extend(row.activity);
        }
        if row.related != before.related {
            flags |= 32;
            out.extend(row.related);
        }
    }
    if row.barrier {
        flags |= 64;
    }
    if row.payload.len() != before.payload.len() {
        flags |= 128;
        var(out, row.payload.len() as u64);
    }
    if let Some(first) = out.get_mut(start) {
        *first = flags;
    }
    out.extend(&row.payload);
}

fn plain(out: &mut Vec<u8>, row: &EventRow, format: Format) {
    let mut event = Vec::new();
    event.extend((row.metadata | u32::from(!row.barrier) << 31).to_le_bytes());
    event.extend(row.sequence.to_le_bytes());
    event.extend(row.thread.to_le_bytes());
    event.extend(row.capture_thread.to_le_bytes());
    event.extend(row.processor.to_le_bytes());
    event.extend(row.stack.to_le_bytes());
    event.extend(row.time.to_le_bytes());
    if format == Format::Blocks {
        event.extend(row.labels.to_le_bytes());
    } else {
        event.extend(row.activity);
        event.extend(row.related);
    }
    event.extend((row.payload.len() as u32).to_le_bytes());
    event.extend(&row.payload);
    while format == Format::Objects && !event.len().is_multiple_of(4) {
        event.push(0);
    }
    out.extend((event.len() as u32).to_le_bytes());
    out.extend(event);
}

/// The content of a stack block.
pub fn stack_block(first_id: u32, pointer_size: usize, stacks: &[&[u64]]) -> Vec<u8> {
    let mut out = first_id.to_le_bytes().to_vec();
    out.extend((stacks.len() as u32).to_le_bytes());
    for stack in stacks {
        out.extend(((stack.len() * pointer_size) as u32).to_le_bytes());
        for address in *stack {
            out.extend(address.to_le_bytes().iter().take(pointer_size));
        }
    }
    out
}

/// What metadata of versions 4 and 5 states before its fields.
pub fn metadata_blob(id: u32, provider: &str, event_id: u32, name: &str) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend(utf16(provider));
    out.extend(event_id.to_le_bytes());
    out.extend(utf16(name));
    out.extend(0xf000_0000_0001u64.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(4u32.to_le_bytes());
    out
}

/// A field as versions 4 and 5 store it.
pub fn field(field_type: u32, name: &str) -> Vec<u8> {
    let mut out = field_type.to_le_bytes().to_vec();
    out.extend(utf16(name));
    out
}

/// The content of a sequence point of versions 4 and 5: numbers of last events by thread.
pub fn sequence_point(time: u64, threads: &[(u64, u32)]) -> Vec<u8> {
    let mut out = time.to_le_bytes().to_vec();
    out.extend((threads.len() as u32).to_le_bytes());
    for (thread, sequence) in threads {
        out.extend(thread.to_le_bytes());
        out.extend(sequence.to_le_bytes());
    }
    out
}

/// Start time, clock, frequency and pointer size, as all versions store them.
fn clock(pointer_size: u32) -> Vec<u8> {
    let date: [u16; 8] = [2026, 11, 6, 28, 9, 26, 22, 203];
    let mut out: Vec<u8> = date.into_iter().flat_map(u16::to_le_bytes).collect();
    out.extend(START_TICKS.to_le_bytes());
    out.extend(1_000_000_000u64.to_le_bytes());
    out.extend(pointer_size.to_le_bytes());
    out
}

/// A stream of versions 4 and 5.
#[derive(Clone, Debug)]
pub struct ObjectStream {
    pub bytes: Vec<u8>,
}

impl ObjectStream {
    pub fn new(pointer_size: u32) -> Self {
        let mut stream = ObjectStream {
            bytes: b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec(),
        };
        stream.begin("Trace", 4);
        stream.bytes.extend(clock(pointer_size));
        for value in [4711u32, 2, 1_000_000] {
            stream.bytes.extend(value.to_le_bytes());
        }
        stream.bytes.push(6);
        stream
    }

    /// The type of an object.
    pub fn begin(&mut self, name: &str, version: u32) {
        self.bytes.extend([5, 5, 1]);
        self.bytes.extend(version.to_le_bytes());
        self.bytes.extend(version.to_le_bytes());
        self.bytes.extend((name.len() as u32).to_le_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(6);
    }

    pub fn block(&mut self, name: &str, content: &[u8]) -> &mut Self {
        self.begin(name, 2);
        self.bytes.extend((content.len() as u32).to_le_bytes());
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        self.bytes.extend(content);
        self.bytes.push(6);
        self
    }

    pub fn metadata(&mut self, blobs: &[Vec<u8>]) -> &mut Self {
        let mut rows = Vec::new();
        for blob in blobs {
            rows.push(EventRow {
                payload: blob.clone(),
                ..EventRow::default()
            });
        }
        let content = event_block(&rows, Headers::Compressed, Format::Objects);
        self.block("MetadataBlock", &content)
    }

    pub fn events(&mut self, rows: &[EventRow]) -> &mut Self {
        let content = event_block(rows, Headers::Compressed, Format::Objects);
        self.block("EventBlock", &content)
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(1);
        self.bytes
    }
}

/// A stream of version 6.
#[derive(Clone, Debug)]
pub struct BlockStream {
    pub bytes: Vec<u8>,
}

/// Kinds of blocks of version 6.
pub mod block_kind {
    pub const TRACE: u8 = 1;
    pub const EVENTS: u8 = 2;
    pub const METADATA: u8 = 3;
    pub const SEQUENCE_POINT: u8 = 4;
    pub const STACKS: u8 = 5;
    pub const THREADS: u8 = 6;
    pub const REMOVED_THREADS: u8 = 7;
    pub const LABEL_LISTS: u8 = 8;
}

impl BlockStream {
    pub fn new(pointer_size: u32) -> Self {
        let mut stream = BlockStream {
            bytes: b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
        };
        let mut content = clock(pointer_size);
        let properties = [
            ("HardwareThreadCount", "2"),
            ("ProcessId", "4711"),
            ("Colour", "red"),
        ];
        content.extend((properties.len() as u32).to_le_bytes());
        for (key, value) in properties {
            content.extend(utf8(key));
            content.extend(utf8(value));
        }
        stream.block(block_kind::TRACE, &content);
        stream
    }

    pub fn block(&mut self, kind: u8, content: &[u8]) -> &mut Self {
        let head = content.len() as u32 | u32::from(kind) << 24;
        self.bytes.extend(head.to_le_bytes());
        self.bytes.extend(content);
        self
    }

    /// Rows with a 16-bit size.
    pub fn rows(&mut self, kind: u8, header: &[u8], rows: &[Vec<u8>]) -> &mut Self {
        let mut content = header.to_vec();
        for row in rows {
            content.extend((row.len() as u16).to_le_bytes());
            content.extend(row);
        }
        self.block(kind, &content)
    }

    pub fn events(&mut self, rows: &[EventRow]) -> &mut Self {
        let content = event_block(rows, Headers::Compressed, Format::Blocks);
        self.block(block_kind::EVENTS, &content)
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0; 4]);
        self.bytes
    }
}

/// Two events of a thread that captured five, with a stack.
pub fn sample() -> Vec<u8> {
    let mut blob = metadata_blob(1, "Contoso-Web", 7, "RequestStart");
    blob.extend(2u32.to_le_bytes());
    blob.extend(field(9, "Count"));
    blob.extend(field(18, "Path"));
    let first = EventRow {
        metadata: 1,
        sequence: 1,
        capture_thread: 31,
        processor: u32::MAX,
        thread: 31,
        stack: 1,
        time: START_TICKS + 50,
        barrier: true,
        payload: [&42u32.to_le_bytes()[..], &utf16("/")].concat(),
        ..EventRow::default()
    };
    let second = EventRow {
        sequence: 2,
        time: START_TICKS + 90,
        activity: [7; 16],
        barrier: false,
        ..first.clone()
    };
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[blob]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[0x7f01, 0x7f02]]));
    stream.events(&[first, second]);
    stream.block("SPBlock", &sequence_point(START_TICKS + 100, &[(31, 5)]));
    stream.finish()
}

/// Metadata of version 6 without fields. `options` follow.
pub fn metadata_row(id: u32, provider: &str, event_id: u32, name: &str, options: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    var(&mut out, id.into());
    out.extend(utf8(provider));
    var(&mut out, event_id.into());
    out.extend(utf8(name));
    out.extend(0u16.to_le_bytes());
    out.extend((options.len() as u16).to_le_bytes());
    out.extend(options);
    out
}

/// Two events of two processes, with a stack and labels, and a sequence point that forgets.
pub fn sample_of_version_6() -> Vec<u8> {
    let options = [1, 10, 3, 0x20, 0, 0, 0, 0, 0, 0, 0, 8, 5, 9, 2];
    let mut labels = [1u32.to_le_bytes(), 2u32.to_le_bytes()].concat();
    labels.extend([1]);
    labels.extend([9; 16]);
    labels.extend([0x80 | 9, 3]);
    labels.extend([0x80 | 6]);
    labels.extend(utf8("n"));
    var(&mut labels, 3);
    let first = EventRow {
        metadata: 1,
        sequence: 1,
        capture_thread: 1,
        thread: 1,
        stack: 1,
        time: START_TICKS + 10,
        labels: 1,
        payload: vec![1, 2, 3],
        ..EventRow::default()
    };
    let second = EventRow {
        capture_thread: 2,
        thread: 2,
        time: START_TICKS + 20,
        labels: 2,
        ..first.clone()
    };
    let mut stream = BlockStream::new(8);
    let row = metadata_row(1, "Contoso-Web", 7, "Request", &options);
    stream.rows(block_kind::METADATA, &[0, 0], &[row]);
    let threads = [
        [&[1, 2, 12, 3, 34, 1][..], &utf8("main")].concat(),
        vec![2, 2, 13, 3, 35],
    ];
    stream.rows(block_kind::THREADS, &[], &threads);
    stream.block(block_kind::STACKS, &stack_block(1, 8, &[&[0x7f01]]));
    stream.block(block_kind::LABEL_LISTS, &labels);
    stream.events(&[first, second]);
    stream.block(block_kind::REMOVED_THREADS, &[2, 4]);
    let mut point = (START_TICKS + 30).to_le_bytes().to_vec();
    point.extend([3, 0, 0, 0, 1, 0, 0, 0, 1, 1]);
    stream.block(block_kind::SEQUENCE_POINT, &point);
    stream.finish()
}
