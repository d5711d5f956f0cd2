// A small stream of version 6 as `dotnet-trace collect-linux` writes them. It needs the module
// `write` beside it.

use super::write::{
    BlockStream, EventRow, START_TICKS, block_kind, metadata_row, stack_block, var,
};

/// A millisecond of the stream's clock.
pub const MILLISECOND: u64 = 1_000_000;

/// Ids of metadata.
mod metadata {
    pub const CPU: u32 = 1;
    pub const SWITCH: u32 = 2;
    pub const CREATE: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const MAPPING: u32 = 5;
    pub const SYMBOL: u32 = 6;
    pub const IDENTITY: u32 = 7;
}

/// Rows of threads: the processes themselves, and their threads.
mod thread {
    pub const OF_SERVER: u64 = 0;
    pub const SERVER_1001: u64 = 1;
    pub const SERVER_1002: u64 = 2;
    pub const OF_WORKER: u64 = 3;
    pub const WORKER_2001: u64 = 4;
}

/// A text after its length of 16 bits.
fn counted(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

fn process(name: &str) -> Vec<u8> {
    let mut out = vec![0];
    counted(&mut out, name);
    counted(&mut out, "Unknown");
    out
}

/// A file of 64 KiB. The writer adds two texts that its metadata does not have.
fn mapping(id: u64, start: u64, path: &str, identity: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [id, start, start + 0xffff, 0] {
        var(&mut out, number);
    }
    counted(&mut out, path);
    var(&mut out, identity);
    out.extend([0; 4]);
    out
}

fn symbol(mapping: u64, start: u64, last: u64, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [9, mapping, start, last] {
        var(&mut out, number);
    }
    counted(&mut out, name);
    out
}

fn identity(id: u64, json: &str) -> Vec<u8> {
    let mut out = Vec::new();
    var(&mut out, id);
    counted(&mut out, json);
    counted(&mut out, "{}");
    out
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    var(&mut out, value);
    out
}

fn event(metadata: u32, thread: u64, milliseconds: u64, payload: Vec<u8>) -> EventRow {
    EventRow {
        metadata,
        thread,
        time: START_TICKS + milliseconds * MILLISECOND,
        payload,
        ..EventRow::default()
    }
}

fn of_server(metadata: u32, payload: Vec<u8>) -> EventRow {
    event(metadata, thread::OF_SERVER, 0, payload)
}

fn of_worker(metadata: u32, payload: Vec<u8>) -> EventRow {
    event(metadata, thread::OF_WORKER, 0, payload)
}

fn sample(thread: u64, milliseconds: u64, stack: u32) -> EventRow {
    EventRow {
        stack,
        ..event(metadata::CPU, thread, milliseconds, number(1))
    }
}

/// A thread that is away for some milliseconds.
fn switch(thread: u64, milliseconds: u64, away: u64, stack: u32) -> EventRow {
    EventRow {
        stack,
        ..event(
            metadata::SWITCH,
            thread,
            milliseconds,
            number(away * MILLISECOND),
        )
    }
}

/// The files in memory, and what is known of them.
fn files() -> Vec<EventRow> {
    let elf = r#"{"type": "ELF","build_id": "0101010101010101010101010101010101010101"}"#;
    let pe = r#"{"type": "PE","name": "App.pdb","date_time": 1,"age": 2,
        "signature": "00112233445566778899aabbccddeeff"}"#;
    vec![
        of_server(metadata::CREATE, process("server")),
        of_server(metadata::IDENTITY, identity(1, elf)),
        of_server(
            metadata::MAPPING,
            mapping(1, 0x40_0000, "/usr/bin/server", 1),
        ),
        of_server(metadata::SYMBOL, symbol(1, 0x40_1000, 0x40_10ff, "main")),
        of_server(
            metadata::SYMBOL,
            symbol(1, 0x40_2000, 0x40_20ff, "read_all"),
        ),
        // What the kernel lists without rights.
        of_server(metadata::SYMBOL, symbol(1, 0, u64::MAX, "startup_64")),
        of_server(metadata::IDENTITY, identity(2, pe)),
        of_server(metadata::MAPPING, mapping(2, 0x50_0000, "/app/App.dll", 2)),
        of_worker(metadata::CREATE, process("worker")),
        of_worker(
            metadata::MAPPING,
            mapping(3, 0x40_0000, "/usr/bin/worker", 0),
        ),
        of_worker(metadata::SYMBOL, symbol(3, 0x40_1000, 0x40_10ff, "run")),
    ]
}

/// Samples and context switches. The value of a switch is how long the thread was away.
fn activity() -> Vec<EventRow> {
    vec![
        sample(thread::SERVER_1001, 1, 1),
        sample(thread::SERVER_1001, 2, 1),
        sample(thread::WORKER_2001, 3, 2),
        switch(thread::SERVER_1001, 5, 3, 1),
        switch(thread::WORKER_2001, 6, 100, 2),
        // The processor changes from this thread to the one that was away.
        switch(thread::SERVER_1002, 8, 1, 0),
        sample(thread::SERVER_1001, 9, 3),
        switch(thread::SERVER_1001, 20, 2, 1),
        event(metadata::EXIT, thread::OF_WORKER, 30, Vec::new()),
    ]
}

/// Two processes, each with a program at the same addresses: samples, context switches, symbols.
pub fn collect_linux() -> Vec<u8> {
    let mut stream = BlockStream::new(8);
    let rows = [
        metadata_row(metadata::CPU, "Universal.Events", 1, "cpu", &[]),
        metadata_row(metadata::SWITCH, "Universal.Events", 2, "cswitch", &[]),
        metadata_row(
            metadata::CREATE,
            "Universal.System",
            1,
            "ProcessCreate",
            &[],
        ),
        metadata_row(metadata::EXIT, "Universal.System", 2, "ProcessExit", &[]),
        metadata_row(
            metadata::MAPPING,
            "Universal.System",
            3,
            "ProcessMapping",
            &[],
        ),
        metadata_row(
            metadata::SYMBOL,
            "Universal.System",
            4,
            "ProcessSymbol",
            &[],
        ),
        metadata_row(
            metadata::IDENTITY,
            "Universal.System",
            5,
            "ProcessMappingMetadata",
            &[],
        ),
    ];
    stream.rows(block_kind::METADATA, &[0, 0], &rows);
    let mut threads = Vec::new();
    for (index, pid, tid) in [
        (thread::OF_SERVER, 1000, 0),
        (thread::SERVER_1001, 1000, 1001),
        (thread::SERVER_1002, 1000, 1002),
        (thread::OF_WORKER, 2000, 0),
        (thread::WORKER_2001, 2000, 2001),
    ] {
        let mut row = number(index);
        row.push(2);
        var(&mut row, pid);
        row.push(3);
        var(&mut row, tid);
        threads.push(row);
    }
    stream.rows(block_kind::THREADS, &[], &threads);
    let stacks: [&[u64]; 3] = [
        &[0x40_2010, 0x40_1020],
        &[0x40_1050],
        &[0x50_0100, 0x40_1020],
    ];
    stream.block(block_kind::STACKS, &stack_block(1, 8, &stacks));
    let mut events = files();
    events.extend(activity());
    for (index, event) in events.iter_mut().enumerate() {
        event.sequence = index as u32 + 1;
    }
    stream.events(&events);
    stream.finish()
}
