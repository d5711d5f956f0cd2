//! Stacks of threads of managed processes.

use std::ops::Range;

use super::state::{Clr, CodeBody, Method};
use crate::machine::Process;
use crate::model::Sku;
use crate::rng::Rng;
use crate::time::Nanos;

/// Attempts to pick a method that has code.
const TRIES: usize = 16;

/// A stack of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    /// The addresses, innermost frame first.
    pub frames: Vec<u64>,
    /// The position of the managed frames, which have no native frames between them.
    managed: Range<usize>,
}

impl Stack {
    /// The frames in managed code, which are the stack that EventPipe records.
    pub fn managed(&self) -> &[u64] {
        self.frames.get(self.managed.clone()).unwrap_or_default()
    }
}

impl Clr {
    /// A method that may run at a time, with its code.
    pub fn runner(&self, at: Nanos, rng: &mut Rng) -> Option<(&Method, &CodeBody)> {
        (0..TRIES).find_map(|_| {
            let method = self
                .methods
                .get(*self.live.get(rng.pick(self.live.len()))?)?;
            method.body_at(at).map(|body| (method, body))
        })
    }

    /// A stack of a running thread, innermost first: `runtime` frames of the runtime's own, methods
    /// that have code at that time, and the frames of the system in which every thread begins.
    pub fn call_stack(&self, runtime: u64, at: Nanos, process: &Process, rng: &mut Rng) -> Stack {
        let mut frames = Vec::with_capacity(24);
        let runtime_image = if self.sku == Sku::Desktop {
            "\\clr.dll"
        } else {
            "\\coreclr.dll"
        };
        native(runtime_image, runtime, process, rng, &mut frames);
        let first_managed = frames.len();
        for _ in 0..self.stack_depth.draw(rng) {
            let Some((_, body)) = self.runner(at, rng) else {
                break;
            };
            frames.push(body.start + rng.below(body.size.into()));
        }
        let managed = first_managed..frames.len();
        native("\\kernel32.dll", 1, process, rng, &mut frames);
        native("\\ntdll.dll", 1, process, rng, &mut frames);
        Stack { frames, managed }
    }
}

/// Addresses in an image of a process, if it has that image.
fn native(name: &str, many: u64, process: &Process, rng: &mut Rng, frames: &mut Vec<u64>) {
    let image = process.images.iter().find(|i| i.path.ends_with(name));
    let Some((base, size)) = image.map(|i| (i.base, i.size)) else {
        return;
    };
    for _ in 0..many {
        frames.push(base + 0x1000 + rng.below(size.saturating_sub(0x1000)));
    }
}

/// A stack of a thread of a process, with or without managed code.
pub(crate) fn thread_stack(clrs: &[Clr], process: &Process, at: Nanos, rng: &mut Rng) -> Stack {
    let mut runtimes = process.clrs.iter().filter_map(|c| clrs.get(*c));
    match runtimes.find(|c| c.started) {
        Some(runtime) => runtime.call_stack(0, at, process, rng),
        None => Stack {
            frames: native_stack(process, rng),
            managed: 0..0,
        },
    }
}

fn native_stack(process: &Process, rng: &mut Rng) -> Vec<u64> {
    let mut frames = Vec::new();
    let exe = process
        .images
        .first()
        .map(|i| i.path.clone())
        .unwrap_or_default();
    let depth = rng.between(1, 6);
    native(&exe, depth, process, rng, &mut frames);
    native("\\kernel32.dll", 1, process, rng, &mut frames);
    native("\\ntdll.dll", 1, process, rng, &mut frames);
    frames
}
