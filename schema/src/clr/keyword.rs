//! The keywords that the CLR's rules look at, by value.
//!
//! The rundown provider's names have `Rundown` in them (`LoaderRundownKeyword`); the values are the
//! same. `StartEnumerationKeyword` of the one and `StartRundownKeyword` of the other share a value
//! too, but 0x80 means something to the runtime provider only and 0x100 to the rundown provider only.

/// Domains, assemblies, modules.
pub const LOADER: u64 = 0x8;
/// Code compiled at run time: methods, dynamic methods, helpers.
pub const JIT: u64 = 0x10;
/// Code compiled beforehand.
pub const NGEN: u64 = 0x20;
/// Runtime provider: with [`NGEN`], load events of precompiled methods.
pub const START_ENUMERATION: u64 = 0x40;
/// Rundown provider: enumerate at once, as `DCStart` events.
pub const START_RUNDOWN: u64 = 0x40;
/// Runtime provider: with [`JIT`] or [`NGEN`], unload events of methods.
pub const END_ENUMERATION: u64 = 0x80;
/// Rundown provider: enumerate at once, as `DCEnd` events.
pub const END_RUNDOWN: u64 = 0x100;
/// Memory and threads by application domain.
pub const APP_DOMAIN_RESOURCES: u64 = 0x800;
/// What the compiler inlined and what it did not.
pub const JIT_TRACING: u64 = 0x1000;
/// Threads.
pub const THREADING: u64 = 0x1_0000;
/// IL offsets of native code.
pub const IL_MAP: u64 = 0x2_0000;
/// Turns [`NGEN`] off again.
pub const OVERRIDE_NGEN: u64 = 0x4_0000;
/// Modules, and ranges of precompiled modules.
pub const PERF_TRACK: u64 = 0x2000_0000;
/// A stack after each event that has one.
pub const STACK: u64 = 0x4000_0000;
/// Settings of tiered compilation, and its course.
pub const COMPILATION: u64 = 0x10_0000_0000;
