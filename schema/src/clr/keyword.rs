//! Keyword bits of the CLR's providers, after the names of their manifest.
//!
//! The rundown provider's names contain `Rundown` (`LoaderRundownKeyword`); the bits are the same.
//! Exceptions: `StartEnumerationKeyword` of the runtime provider and `StartRundownKeyword` of the
//! rundown provider share a bit, [`END_ENUMERATION`] belongs to the runtime provider only, and
//! [`END_RUNDOWN`] to the rundown provider only.

/// Garbage collection.
pub const GC: u64 = 0x1;
/// Domains, assemblies, modules.
pub const LOADER: u64 = 0x8;
/// Code compiled at run time: methods, dynamic methods, helpers.
pub const JIT: u64 = 0x10;
/// Precompiled code.
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
/// Inlining and tail call decisions of the compiler.
pub const JIT_TRACING: u64 = 0x1000;
/// Threads.
pub const THREADING: u64 = 0x1_0000;
/// IL offsets of native code.
pub const IL_MAP: u64 = 0x2_0000;
/// Turns [`NGEN`] off again (`OverrideAndSuppressNGenEventsKeyword`).
pub const OVERRIDE_NGEN: u64 = 0x4_0000;
/// Types, each when it is first used by another event.
pub const TYPE: u64 = 0x8_0000;
/// The nodes, edges and roots of the managed heap.
pub const GC_HEAP_DUMP: u64 = 0x10_0000;
/// Sampled allocations, at most 100 per second and type.
pub const SAMPLED_HIGH: u64 = 0x20_0000;
/// Objects that survived or moved in a collection.
pub const GC_SURVIVAL: u64 = 0x40_0000;
/// A collection when a session enables it, which writes a heap dump if [`GC_HEAP_DUMP`] is on.
pub const GC_HEAP_COLLECT: u64 = 0x80_0000;
/// Sampled allocations, at most 5 per second and type.
pub const SAMPLED_LOW: u64 = 0x200_0000;
/// Modules, and ranges of precompiled modules.
pub const PERF_TRACK: u64 = 0x2000_0000;
/// A stack after each event that has one.
pub const STACK: u64 = 0x4000_0000;
/// Tiered compilation: its settings and its progress.
pub const COMPILATION: u64 = 0x10_0000_0000;
/// Loads of precompiled entry points.
pub const COMPILATION_DIAGNOSTIC: u64 = 0x20_0000_0000;
/// Details of methods.
pub const METHOD_DIAGNOSTIC: u64 = 0x40_0000_0000;
/// Loads of types.
pub const TYPE_DIAGNOSTIC: u64 = 0x80_0000_0000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Registry;

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn constants_match_the_tables() {
        let runtime = [
            (GC, "GCKeyword"),
            (LOADER, "LoaderKeyword"),
            (JIT, "JitKeyword"),
            (NGEN, "NGenKeyword"),
            (START_ENUMERATION, "StartEnumerationKeyword"),
            (END_ENUMERATION, "EndEnumerationKeyword"),
            (APP_DOMAIN_RESOURCES, "AppDomainResourceManagementKeyword"),
            (JIT_TRACING, "JitTracingKeyword"),
            (THREADING, "ThreadingKeyword"),
            (IL_MAP, "JittedMethodILToNativeMapKeyword"),
            (OVERRIDE_NGEN, "OverrideAndSuppressNGenEventsKeyword"),
            (TYPE, "TypeKeyword"),
            (GC_HEAP_DUMP, "GCHeapDumpKeyword"),
            (GC_HEAP_COLLECT, "GCHeapCollectKeyword"),
            (SAMPLED_HIGH, "GCSampledObjectAllocationHighKeyword"),
            (GC_SURVIVAL, "GCHeapSurvivalAndMovementKeyword"),
            (SAMPLED_LOW, "GCSampledObjectAllocationLowKeyword"),
            (PERF_TRACK, "PerfTrackKeyword"),
            (STACK, "StackKeyword"),
            (COMPILATION, "CompilationKeyword"),
            (COMPILATION_DIAGNOSTIC, "CompilationDiagnosticKeyword"),
            (METHOD_DIAGNOSTIC, "MethodDiagnosticKeyword"),
            (TYPE_DIAGNOSTIC, "TypeDiagnosticKeyword"),
        ];
        let rundown = [
            (START_RUNDOWN, "StartRundownKeyword"),
            (END_RUNDOWN, "EndRundownKeyword"),
        ];
        for (provider, keywords) in [("runtime", &runtime[..]), ("rundown", &rundown[..])] {
            let provider = Registry::builtin().find(provider).unwrap();
            for (bits, name) in keywords {
                assert_eq!(provider.keyword(name), Some(*bits), "{name}");
            }
        }
    }
}
