//! Remarks on a mask: what to know before recording with it.

use super::{Explanation, ProviderKind};
use crate::clr::{Code, Enumeration, INFORMATIONAL, Method, Rundown, Runtime, VERBOSE};
use etl_schema::clr::keyword::{
    APP_DOMAIN_RESOURCES, END_ENUMERATION, END_RUNDOWN, GC_HEAP_COLLECT, GC_HEAP_DUMP, IL_MAP, JIT,
    LOADER, METHOD_DIAGNOSTIC, NGEN, OVERRIDE_NGEN, PERF_TRACK, SAMPLED_LOW, START_ENUMERATION,
    START_RUNDOWN, THREADING, TYPE,
};
use etl_schema::tables::{Provider, Registry, TableSet, errata};

/// Windows reserves these bits of the keywords for channels.
const CHANNELS: u64 = 0xffff << 48;

/// A remark on a mask.
///
/// ```
/// use etl_control::mask::explain;
/// use etl_schema::tables::{Registry, TableSet};
///
/// let runtime = Registry::builtin().find("runtime").ok_or("built in")?;
/// let explanation = explain(TableSet::Shipped, runtime, 0xffff_ffff, 5);
/// let remark = &explanation.remarks[0];
/// assert!(remark.message.contains("32 ones"));
/// assert_eq!(remark.suggested_mask, Some(u64::MAX));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The remark, as a sentence without full stop.
    pub message: String,
    /// A mask without the remark's problem.
    pub suggested_mask: Option<u64>,
    /// Errata that it depends on.
    pub errata: Vec<&'static str>,
}

/// Collects remarks.
#[derive(Default)]
struct Remarks(Vec<Remark>);

impl Remarks {
    fn add(
        &mut self,
        message: impl Into<String>,
        suggested_mask: Option<u64>,
        erratum: Option<&'static str>,
    ) {
        let errata = erratum.into_iter().collect();
        self.0.push(Remark {
            message: message.into(),
            suggested_mask,
            errata,
        });
    }
}

pub(super) fn on_mask(
    provider: &Provider,
    mask: u64,
    level: u8,
    tables: TableSet,
    explanation: &Explanation<'_>,
) -> Vec<Remark> {
    let mut out = Remarks::default();
    if mask == u64::from(u32::MAX) {
        let text = "a mask of 32 ones is not \"all\": keywords above bit 31 are off";
        out.add(text, Some(u64::MAX), None);
    } else if mask != u64::MAX {
        // The tables of Windows do not say which events are in which channel.
        let is_of_windows = !Registry::builtin().has(provider.guid);
        let channels = if is_of_windows {
            explanation.unnamed & CHANNELS
        } else {
            0
        };
        if channels != 0 {
            let text = format!("bits {channels:#x} select channels: their events are not listed");
            out.add(text, None, None);
        }
        let nothing = explanation.unnamed & !channels;
        if nothing != 0 {
            let text = format!("bits {nothing:#x} mean nothing to {}", provider.name);
            out.add(text, None, None);
        }
    }
    let kind = ProviderKind::of(provider.guid);
    if kind != ProviderKind::Other && level != 0 && level < INFORMATIONAL {
        let text = format!(
            "below level {INFORMATIONAL} the CLR raises no events for domains, modules, methods and \
             threads"
        );
        out.add(text, None, None);
    }
    match kind {
        ProviderKind::Rundown => rundown(mask, level, tables, &mut out),
        ProviderKind::Runtime => {
            runtime(mask, level, &mut out);
            if tables == TableSet::Shipped {
                runtime_of_core(mask, level, &mut out);
            }
        }
        ProviderKind::Other => {}
    }
    // Masks that the reference pages print.
    for erratum in errata().iter().filter(|e| e.is_of_mask(provider, mask)) {
        if !out
            .0
            .iter()
            .any(|remark| remark.errata.contains(&erratum.id.as_str()))
        {
            let text = format!(
                "the reference pages disagree on the {}: {}",
                erratum.about, erratum.documents
            );
            out.add(text, None, Some(erratum.id.as_str()));
        }
    }
    out.0
}

/// Keywords that name what an enumeration lists.
const ENUMERATES: u64 = LOADER | JIT | NGEN | IL_MAP | PERF_TRACK | THREADING;

fn rundown(mask: u64, level: u8, tables: TableSet, out: &mut Remarks) {
    // A low level has its own remark, so the keywords are judged as at the highest level.
    let verbose = Rundown::new(mask, VERBOSE);
    let start = verbose.is_enabled(Enumeration::Start);
    let end = verbose.is_enabled(Enumeration::End);
    if !end {
        no_end_rundown(mask, start, out);
    }
    if !start && !end {
        let text = format!(
            "neither StartRundownKeyword ({START_RUNDOWN:#x}) nor EndRundownKeyword \
             ({END_RUNDOWN:#x}): the CLR enumerates nothing at all"
        );
        return out.add(text, None, None);
    }
    if start {
        let text = "StartRundownKeyword makes the CLR enumerate while the recording begins, which \
                    disturbs what is recorded; the pages advise an end rundown";
        out.add(text, None, None);
    }
    // The reference pages say that AppDomainResourceManagement makes the CLR enumerate as well.
    let shipped = tables == TableSet::Shipped;
    let enumerating = if shipped {
        ENUMERATES
    } else {
        ENUMERATES | APP_DOMAIN_RESOURCES
    };
    if mask & enumerating == 0 && mask != 0 {
        let text = "nothing to enumerate is named: add Loader (0x8), Jit (0x10) and NGen (0x20)";
        return out.add(text, Some(mask | LOADER | JIT | NGEN), None);
    }
    if shipped {
        shipped_rundown(mask, level, out);
    }
    ngen_off(mask, out);
    missing_keywords(mask, out);
    if level == INFORMATIONAL {
        plain_only(out);
    }
}

fn no_end_rundown(mask: u64, start: bool, out: &mut Remarks) {
    let mut wanted = mask & (ENUMERATES | START_RUNDOWN) | END_RUNDOWN;
    if wanted & ENUMERATES == 0 {
        wanted |= LOADER | JIT | NGEN;
    }
    let listed = if start {
        "after the start rundown"
    } else {
        "before the recording"
    };
    let text = format!(
        "EndRundownKeyword ({END_RUNDOWN:#x}) is missing: there will be no DCEnd events, so \
         methods that were compiled {listed} are not listed; {wanted:#x} has them"
    );
    let erratum = (mask & END_ENUMERATION != 0).then_some("X04");
    out.add(text, Some(wanted), erratum);
}

/// Remarks on rules of the shipped runtimes that the reference pages do not have.
fn shipped_rundown(mask: u64, level: u8, out: &mut Remarks) {
    let rules = Rundown::new(mask, level);
    let enumerates = Enumeration::ALL
        .into_iter()
        .any(|which| rules.enumerates(which));
    let has_markers = Enumeration::ALL
        .into_iter()
        .any(|which| rules.brackets(which));
    if enumerates && !has_markers {
        let text = "threads and ranges alone have no markers (DCStartInit, DCEndComplete and so \
                    on); add Loader, Jit, NGen or the IL maps";
        out.add(text, Some(mask | LOADER), Some("X16"));
    }
    if mask & APP_DOMAIN_RESOURCES != 0 && mask & THREADING == 0 {
        let text = "AppDomainResourceManagement (0x800) alone does not enumerate threads";
        out.add(text, Some(mask | THREADING), Some("X17"));
    }
}

/// Remarks on keywords of a rundown that others need.
fn missing_keywords(mask: u64, out: &mut Remarks) {
    if mask != 0 && mask & JIT == 0 {
        let text = "JitRundownKeyword (0x10) is missing: methods that were compiled at run time are \
                    not listed";
        out.add(text, Some(mask | JIT), None);
    }
    if mask & (JIT | NGEN) != 0 && mask & LOADER == 0 {
        let text = "LoaderRundownKeyword (0x8) is missing: methods will name modules that have no \
                    events";
        out.add(text, Some(mask | LOADER), None);
    }
    if mask & JIT != 0 && mask & NGEN == 0 {
        let text = "NGenRundownKeyword (0x20) is missing: precompiled methods are known by the \
                    symbols of their images only";
        out.add(text, Some(mask | NGEN), None);
    }
}

fn runtime(mask: u64, level: u8, out: &mut Remarks) {
    let has_loader = mask & LOADER != 0;
    let has_jit = mask & JIT != 0;
    let has_ngen = mask & NGEN != 0;
    let has_end_enumeration = mask & END_ENUMERATION != 0;
    if has_ngen && mask & START_ENUMERATION == 0 {
        let text = if has_end_enumeration {
            "without StartEnumerationKeyword (0x40) precompiled methods have events only when they \
             are unloaded"
        } else {
            "NGenKeyword (0x20) alone raises nothing: precompiled methods have events with \
             StartEnumerationKeyword (0x40) when they are prepared, and with \
             EndEnumerationKeyword (0x80) when they are unloaded"
        };
        out.add(text, Some(mask | START_ENUMERATION), None);
    }
    ngen_off(mask, out);
    if has_jit && !has_end_enumeration {
        let text = "without EndEnumerationKeyword (0x80) only dynamic methods have unload events";
        out.add(text, Some(mask | END_ENUMERATION), Some("X25"));
    }
    let jitted = Method::new(Code::Jitted);
    if Runtime::new(mask, level).method_load(jitted).is_some() && level == INFORMATIONAL {
        plain_only(out);
    }
    if has_jit && !has_loader {
        let text = "LoaderKeyword (0x8) is missing: methods will name modules that have no events";
        out.add(text, Some(mask | LOADER), None);
    }
    if mask & PERF_TRACK != 0 && !has_loader {
        let text = "PerfTrackKeyword without LoaderKeyword (0x8) selects modules without domains and \
                    assemblies, and no unloads";
        out.add(text, Some(mask | LOADER), Some("X38"));
    }
    if mask != 0 && !has_jit && !has_ngen {
        let text = "neither JitKeyword (0x10) nor NGenKeyword (0x20): there will be no load \
                    events of methods, so only those that a rundown lists will have names";
        out.add(text, Some(mask | LOADER | JIT), None);
    }
}

/// Remarks on the rules of .NET Core, which raises less than .NET Framework. A mask of 0 has all
/// keywords, so nothing is missing.
fn runtime_of_core(mask: u64, level: u8, out: &mut Remarks) {
    if level != 0 && level < INFORMATIONAL {
        return;
    }
    let core = Runtime::new(mask, level).in_core();
    if (mask == 0 || mask & JIT != 0) && level == INFORMATIONAL {
        let text = "level 4 has no loads of compiled methods in .NET Core: only their unloads; use \
                    level 5, or an end rundown";
        out.add(text, None, Some("X47"));
    }
    if mask & NGEN != 0 && mask & START_ENUMERATION != 0 {
        let text = "StartEnumerationKeyword (0x40) adds nothing in .NET Core: precompiled methods \
                    have no load events there, only unloads and a rundown";
        out.add(text, None, Some("X48"));
    }
    if mask & IL_MAP != 0 && !core.il_map() {
        let text =
            "in .NET Core the maps from IL to native code need JitKeyword (0x10) and level 5";
        out.add(text, (mask & JIT == 0).then_some(mask | JIT), Some("X49"));
    }
    more_keywords(mask, core, out);
}

/// Remarks on events that need more than their own keyword.
fn more_keywords(mask: u64, rules: Runtime, out: &mut Remarks) {
    if mask & METHOD_DIAGNOSTIC != 0 && !rules.method_details() {
        let text = "MethodDetails goes with the load of a method: it needs JitKeyword (0x10) and \
                    level 5";
        out.add(text, (mask & JIT == 0).then_some(mask | JIT), Some("X51"));
    }
    if mask & TYPE != 0 && !rules.types() {
        let text = "BulkType goes with events that name types: add sampled allocations (0x2000000), \
                    GC (0x1) at level 5, or a heap dump (0x900000)";
        out.add(text, Some(mask | SAMPLED_LOW), Some("X51"));
    }
    if mask & GC_HEAP_DUMP != 0 && !rules.heap_dump() {
        let text = "GCHeapDumpKeyword (0x100000) alone raises nothing: GCHeapCollectKeyword \
                    (0x800000) requests the collection that writes the dump";
        out.add(text, Some(mask | GC_HEAP_COLLECT), Some("X51"));
    }
}

fn ngen_off(mask: u64, out: &mut Remarks) {
    // A mask of 0 means all keywords.
    let mask = if mask == 0 { u64::MAX } else { mask };
    if mask & OVERRIDE_NGEN != 0 && mask & NGEN != 0 {
        let text = format!(
            "OverrideAndSuppressNGenEvents ({OVERRIDE_NGEN:#x}) turns NGen off again: there are no \
             events for precompiled methods"
        );
        out.add(text, Some(mask & !OVERRIDE_NGEN), None);
    }
}

fn plain_only(out: &mut Remarks) {
    let text = format!(
        "below level {VERBOSE} only the events of dynamic, generic and helper methods have names"
    );
    out.add(text, None, Some("X02"));
}
