//! The libraries as a WebAssembly module: opens traces, and answers requests about them. The page
//! (`web/page`) and the npm package (`web/package`) use it.
//!
//! A request is a JSON object with the member `method`. The host asks for memory with [`request`],
//! writes the request there, and calls [`call`]. The reply is then at [`reply`]: JSON, or an error
//! as JSON. Results that may be long, such as exports, go to the import `etlkit.write` piece by
//! piece. Files are read by the import `etlkit.read`, so that they are never in memory as a whole.
//! `web/package/src/module.ts` is the host's side.
#![deny(unsafe_code)]

mod error;
mod events;
mod exports;
mod hex;
mod host;
mod info;
mod profile;
mod query;
mod recording;
mod requests;
mod synth;
mod tables;
mod timeline;
mod verdict;

use std::sync::{Mutex, MutexGuard, PoisonError};

use requests::State;

/// The request, the reply, and the opened traces.
struct Module {
    request: Vec<u8>,
    reply: Vec<u8>,
    state: State,
}

static MODULE: Mutex<Module> = Mutex::new(Module {
    request: Vec::new(),
    reply: Vec::new(),
    state: State::new(),
});

fn module() -> MutexGuard<'static, Module> {
    MODULE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for a request of `length` bytes; 0 if there is not enough memory.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the name of an export")]
pub extern "C" fn request(length: usize) -> *mut u8 {
    let bytes = &mut module().request;
    *bytes = Vec::new();
    if bytes.try_reserve_exact(length).is_err() {
        return std::ptr::null_mut();
    }
    bytes.resize(length, 0);
    bytes.as_mut_ptr()
}

/// Answers the request. Returns 0, or 1 if the reply is an error.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the name of an export")]
pub extern "C" fn call() -> u32 {
    let mut module = module();
    let request = std::mem::take(&mut module.request);
    match module.state.answer(&request) {
        Ok(reply) => {
            module.reply = reply;
            0
        }
        Err(error) => {
            module.reply = error.json();
            1
        }
    }
}

/// The reply, in UTF-8.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the name of an export")]
pub extern "C" fn reply() -> *const u8 {
    module().reply.as_ptr()
}

/// The bytes of the reply.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the name of an export")]
pub extern "C" fn reply_length() -> usize {
    module().reply.len()
}
