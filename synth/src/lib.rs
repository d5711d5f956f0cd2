//! Synthesizes Windows event traces (`.etl`) by simulating the machine that would have recorded
//! them.
//!
//! A [`Scenario`](model::Scenario) describes the machine, the processes that run on it, and who
//! traces what and when. A [`Simulation`] runs it in simulated time and writes the `.etl` files of
//! its sessions. Every event is computed from the simulated state: a method has an address because
//! it was compiled, a rundown lists what is loaded, an event is lost because no buffer was free.
//!
//! The same scenario and seed produce the same bytes on every system.
//!
//! Scenarios are written as [scripts](Script), or built in Rust:
//!
//! ```
//! use etl_schema::providers::CLR_RUNTIME;
//! use etl_synth::model::{CodeKind, MethodPlan, ProcessPlan, Scenario, SessionPlan, Work};
//! use etl_synth::truth::InMemoryTruth;
//! use etl_synth::{SECOND, Simulation};
//!
//! let mut scenario = Scenario::new("compilation");
//! let methods = MethodPlan { ready: 15, ..MethodPlan::many(20, CodeKind::Jitted) };
//! let app = scenario.process(ProcessPlan::managed("App.exe", methods));
//! scenario.start(SECOND, SessionPlan::new("clr", "clr.etl").with(CLR_RUNTIME, 0x10, 5));
//! scenario.work(2 * SECOND, app, Work::Jit(5));
//! scenario.stop(3 * SECOND, "clr");
//!
//! let mut truth = InMemoryTruth::default();
//! let files = Simulation::new(&scenario).observer(&mut truth).run_in_memory()?;
//! assert_eq!(files[0].name, "clr.etl");
//! let loads = truth.recorded(0).filter(|event| event.name.starts_with("MethodLoadVerbose"));
//! assert_eq!(loads.count(), 5);
//! # Ok::<(), etl_synth::Error>(())
//! ```
//!
//! [`truth`] reports every event, and what each session did with it, for tests of decoders.
//!
//! # Modules
//! Each module imports only modules above it.
//!
//! * `time`, `rng`, `distribution`: simulated time and random numbers.
//! * [`model`]: a scenario as data.
//! * `scenario`: from a script (KDL) to the model, with the location of every error.
//! * [`truth`]: what the simulation reports, and observers that write or keep it.
//! * `machine`: clock, event queue, processors, processes, threads, address spaces.
//! * `file_faults`: changes to finished files.
//! * `etw`: registration, enablement, routing, buffers, loss, merging.
//! * `kernel`: the events of the kernel.
//! * `clr`: the events of the CLR, and its rundowns.
//! * `run`: the event loop.
//! * [`corpus`]: the scripts of the corpus, and templates.
#![forbid(unsafe_code)]

mod clr;
pub mod corpus;
pub mod corpus_lock;
mod counts;
mod distribution;
mod error;
mod etw;
mod file_faults;
mod file_system;
mod kernel;
mod machine;
pub mod model;
mod network;
mod provider_text;
mod rng;
mod run;
mod scenario;
mod script_error;
mod simulation;
mod time;
pub mod truth;
mod windows_event;

pub use distribution::{Distribution, RandomRange};
pub use error::{Error, Result};
pub use file_system::{FileSystem, MemoryFileSystem, ReadSeek, SimulatedFile, file_name_problem};
pub use scenario::{Include, ReadFile, Script, read_capture, read_script};
pub use script_error::{ScriptError, ScriptErrors};
pub use simulation::Simulation;
pub use time::{MICROSECOND, MILLISECOND, Nanos, SECOND, format_duration, parse_duration};

/// The code in the README runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
