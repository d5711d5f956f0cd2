//! A WebAssembly module that verifies a trace from memory. `unsafe` marks the names of its exports
//! only: no pointer is read here.
//!
//! The host asks for memory with [`name`] and [`trace`], writes the bytes there, and calls
//! [`verify`]. The reports are then at [`json`] and [`text`].
//!
//! ```js
//! const { exports } = new WebAssembly.Instance(module, unusedImports(module)); // run.mjs
//! const start = exports.trace(bytes.length);
//! new Uint8Array(exports.memory.buffer, start, bytes.length).set(bytes);
//! exports.verify();
//! const json = new Uint8Array(exports.memory.buffer, exports.json(), exports.json_length());
//! console.log(new TextDecoder().decode(json));
//! ```

mod report;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the host wrote, and the reports.
struct State {
    name: Vec<u8>,
    trace: Vec<u8>,
    json: String,
    text: String,
}

static STATE: Mutex<State> = Mutex::new(State {
    name: Vec::new(),
    trace: Vec::new(),
    json: String::new(),
    text: String::new(),
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for the name of the trace, in UTF-8; 0 if there is not enough memory.
#[unsafe(no_mangle)]
pub extern "C" fn name(length: usize) -> *mut u8 {
    allocate(&mut state().name, length)
}

/// Memory for the bytes of the trace; 0 if there is not enough memory.
#[unsafe(no_mangle)]
pub extern "C" fn trace(length: usize) -> *mut u8 {
    allocate(&mut state().trace, length)
}

fn allocate(bytes: &mut Vec<u8>, length: usize) -> *mut u8 {
    // The earlier bytes are freed first.
    *bytes = Vec::new();
    if bytes.try_reserve_exact(length).is_err() {
        return std::ptr::null_mut();
    }
    bytes.resize(length, 0);
    bytes.as_mut_ptr()
}

/// Verifies the trace and frees its bytes. Returns the exit code of `etlverify`: 0 complete,
/// 1 incomplete or inconclusive, 2 unreadable.
#[unsafe(no_mangle)]
pub extern "C" fn verify() -> u32 {
    let mut state = state();
    let trace = std::mem::take(&mut state.trace);
    let name = String::from_utf8_lossy(&state.name).into_owned();
    let report = report::report(trace, &name);
    state.json = report.json();
    state.text = report.text();
    if report.error.is_some() {
        2
    } else if report.verdict.passes() {
        0
    } else {
        1
    }
}

/// The report as JSON, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn json() -> *const u8 {
    state().json.as_ptr()
}

/// The bytes of the report as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn json_length() -> usize {
    state().json.len()
}

/// The report as text, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    state().text.as_ptr()
}

/// The bytes of the report as text.
#[unsafe(no_mangle)]
pub extern "C" fn text_length() -> usize {
    state().text.len()
}
