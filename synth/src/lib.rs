//! Windows event traces from scenarios, by simulating the machine that would have recorded them.
//!
//! A [`Scenario`](model::Scenario) says what machine there is, what runs on it, and who traces what
//! when. [`simulate`] lets it happen, in simulated time, and gives the `.etl` files that the
//! sessions of that machine would have written. Every event comes out of the simulated state: a
//! method has an address because it was compiled, an enumeration tells of what is loaded, an event
//! is missing because no buffer was free.
//!
//! Same scenario, same seed: the same bytes on every system.
//!
//! ```
//! use etl_synth::model::{Action, AppDomainPlan, AssemblyPlan, ClrPlan, CodeKind, MethodPlan};
//! use etl_synth::model::{ModuleKind, ModulePlan, ProcessPlan, Scenario, SessionPlan, Sku, Work};
//! use etl_schema::providers::CLR_RUNDOWN;
//! use etl_synth::SECOND;
//!
//! let module = ModulePlan::new("C:\\App\\App.dll", ModuleKind::Il)
//!     .with_methods(MethodPlan::many(20, CodeKind::Jitted));
//! let assembly = AssemblyPlan::new("App").with_module(module);
//! let clr = ClrPlan::new(Sku::Core, [6, 0, 100, 0])
//!     .with_domain(AppDomainPlan::new("clrhost").with_assembly(assembly));
//! let mut scenario = Scenario::new("rundown");
//! scenario.process(ProcessPlan::new("App.exe").with_clr(clr));
//! let session = SessionPlan::new("clrRundown", "rundown.etl").with(CLR_RUNDOWN, 0x138, 5);
//! scenario.at(2 * SECOND, Action::Start(Box::new(session)));
//! scenario.at(3 * SECOND, Action::Stop { session: "clrRundown".into() });
//! let files = etl_synth::in_memory(&scenario)?;
//! assert_eq!(files[0].0, "rundown.etl");
//! # Ok::<(), etl_synth::Error>(())
//! ```
//!
//! With the truth beside the bytes, for a test of a decoder ([`truth::Gathered`] keeps it in memory;
//! `examples/in_memory.rs` is a whole program):
//!
//! ```
//! use etl_synth::truth::Gathered;
//! use etl_synth::{Fate, Memory, scenario};
//!
//! let script = r#"
//!     process "App.exe" {
//!         clr "core" { assembly "App" { module "C:\\App\\App.dll" { methods 20 ready=5 } } }
//!         at "1.5s" { jit 5 }
//!     }
//!     at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords="Jit" level=4 } }
//!     at "2s" { stop "clr" }
//! "#;
//! let scenario = scenario::parse("jit", script).expect("no mistakes");
//! let (mut files, mut truth) = (Memory::default(), Gathered::default());
//! etl_synth::simulate(&scenario, &mut files, &mut truth)?;
//! // At level 4 a compiled method has a plain event; that it begins to be compiled is of level 5.
//! let names: Vec<&str> = truth.recorded(0).map(|e| e.name.as_str()).collect();
//! assert_eq!(names, ["MethodLoad_V1"; 5]);
//! assert!(truth.buffers.iter().all(|(_, b)| b.fate == Fate::Written));
//! # Ok::<(), etl_synth::Error>(())
//! ```
//!
//! # The rooms
//! * [`model`]: a scenario as data.
//! * [`scenario`]: a script (KDL) to a model, every mistake with its place.
//! * `machine`: clock, calendar, chance, processors, processes, threads, address spaces.
//! * `etw`: registration, enablement, routing, buffers, loss.
//! * `clr`: what a runtime raises, and its two enumerations.
//! * `kernel`: what the kernel logs.
//! * `run`: the loop in which it all happens.
//! * `faults`: what can go wrong, by name; `edit`: finished files changed event by event.
//! * [`truth`]: what happened, for whoever wants to test a decoder.
//!
//! # Examples
//! Programs in `examples/`, each of which runs as it is: `in_memory` builds a scenario in Rust and has its trace and truth in memory,
//! `throughput` measures how fast traces come out, with a store and a witness of its own.
//!
//! # Features
//! None.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

mod clr;
mod edit;
mod error;
mod etw;
mod faults;
mod kernel;
mod machine;
pub mod model;
mod run;
pub mod scenario;
pub mod text;
pub mod truth;

pub use error::{Error, Result};
pub use etw::{
    BufferReport, Code, Counted, Fate, Form, ImageIdentity, Memory, Outcome, Raised, Reading,
    Refusal, SessionReport, Store,
};
pub use machine::{Clock, Dice, Distribution, MICROSECOND, MILLISECOND, Nanos, SECOND};
pub use run::simulate;

/// Lets a scenario happen and gives its files: names and bytes, in the order in which the sessions
/// started.
///
/// # Errors
/// As [`simulate`].
pub fn in_memory(scenario: &model::Scenario) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Memory::default();
    simulate(scenario, &mut files, &mut truth::Nobody)?;
    Ok(files.into_files())
}

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
