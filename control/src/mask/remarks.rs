//! What a person should know before recording with a mask.

use super::{Explanation, ProviderKind};
use crate::clr::{Code, Enumeration, INFORMATIONAL, Method, Rundown, Runtime, VERBOSE};
use etl_schema::clr::keyword::{
    APP_DOMAIN_RESOURCES, END_ENUMERATION, END_RUNDOWN, IL_MAP, JIT, LOADER, NGEN, OVERRIDE_NGEN,
    PERF_TRACK, START_ENUMERATION, START_RUNDOWN, THREADING,
};
use etl_schema::tables::{Provider, TableSet, errata};

/// A remark on a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The remark, as a sentence without full stop.
    pub message: String,
    /// A mask that would do what this one does not.
    pub suggested_mask: Option<u64>,
    /// Errata that it depends on.
    pub errata: Vec<&'static str>,
}

impl Remark {
    fn new(message: impl Into<String>) -> Self {
        Remark { message: message.into(), suggested_mask: None, errata: Vec::new() }
    }

    fn suggested_mask(self, mask: u64) -> Self {
        Remark { suggested_mask: Some(mask), ..self }
    }

    fn erratum(mut self, id: &'static str) -> Self {
        self.errata.push(id);
        self
    }
}

pub(super) fn of(
    provider: &Provider,
    mask: u64,
    level: u8,
    tables: TableSet,
    explanation: &Explanation<'_>,
) -> Vec<Remark> {
    let mut out = Vec::new();
    if mask == u64::from(u32::MAX) {
        out.push(
            Remark::new("a mask of 32 ones is not \"all\": keywords above bit 31 are off")
                .suggested_mask(u64::MAX),
        );
    }
    if explanation.unnamed != 0 && mask != u64::MAX && mask != u64::from(u32::MAX) {
        let text = format!("bits {:#x} mean nothing to {}", explanation.unnamed, provider.name);
        out.push(Remark::new(text));
    }
    let kind = ProviderKind::of(provider.guid);
    if kind != ProviderKind::Other && level != 0 && level < INFORMATIONAL {
        out.push(Remark::new(format!(
            "below level {INFORMATIONAL} the CLR tells nothing of domains, modules, methods and threads"
        )));
    }
    match kind {
        ProviderKind::Rundown => rundown(mask, level, tables, &mut out),
        ProviderKind::Runtime => runtime(mask, level, &mut out),
        ProviderKind::Other => {}
    }
    // Masks that the pages print.
    for erratum in errata().iter().filter(|e| e.is_of_mask(provider, mask)) {
        let said = out.iter_mut().find(|r| r.errata.contains(&erratum.id.as_str()));
        if said.is_none() {
            let text =
                format!("the pages disagree on the {}: {}", erratum.about, erratum.documents);
            out.push(Remark::new(text).erratum(erratum.id.as_str()));
        }
    }
    out
}

fn rundown(mask: u64, level: u8, tables: TableSet, out: &mut Vec<Remark>) {
    // What makes an enumeration tell of anything.
    const ENUMERATES: u64 = LOADER | JIT | NGEN | IL_MAP | PERF_TRACK | THREADING;
    let rules = Rundown::new(mask, level);
    // The level is spoken of elsewhere.
    let asked = Rundown::new(mask, VERBOSE);
    let (start, end) = (asked.is_enabled(Enumeration::Start), asked.is_enabled(Enumeration::End));
    if !end {
        let wanted = mask & (ENUMERATES | START_RUNDOWN) | END_RUNDOWN;
        let nothing = wanted & ENUMERATES == 0;
        let wanted = if nothing { wanted | LOADER | JIT | NGEN } else { wanted };
        let text = format!(
            "EndRundownKeyword ({END_RUNDOWN:#x}) is missing: no DCEnd event will come, so methods \
             that were compiled before the recording stay unknown; {wanted:#x} would give them"
        );
        let mut remark = Remark::new(text).suggested_mask(wanted);
        if mask & END_ENUMERATION != 0 {
            remark = remark.erratum("X04");
        }
        out.push(remark);
    }
    if !start && !end {
        out.push(Remark::new(format!(
            "neither StartRundownKeyword ({START_RUNDOWN:#x}) nor EndRundownKeyword \
             ({END_RUNDOWN:#x}): the CLR enumerates nothing at all"
        )));
        return;
    }
    if start {
        out.push(Remark::new(
            "StartRundownKeyword makes the CLR enumerate while the recording begins, which disturbs \
             what is recorded; the pages advise an end rundown",
        ));
    }
    // By the pages domains' resources are enumerated by themselves.
    let shipped = tables == TableSet::Shipped;
    let named = if shipped { ENUMERATES } else { ENUMERATES | APP_DOMAIN_RESOURCES };
    if mask & named == 0 && mask != 0 {
        let wanted = mask | LOADER | JIT | NGEN;
        let text = "nothing to enumerate is named: add Loader (0x8), Jit (0x10) and NGen (0x20)";
        out.push(Remark::new(text).suggested_mask(wanted));
        return;
    }
    let any = |f: &dyn Fn(Enumeration) -> bool| Enumeration::ALL.into_iter().any(f);
    if shipped && any(&|w| rules.enumerates(w)) && !any(&|w| rules.brackets(w)) {
        out.push(
            Remark::new(
                "no markers (DCStartInit, DCEndComplete and so on) come for threads and ranges \
                 alone; add Loader, Jit, NGen or the IL maps",
            )
            .suggested_mask(mask | LOADER)
            .erratum("X16"),
        );
    }
    if shipped && mask & APP_DOMAIN_RESOURCES != 0 && mask & THREADING == 0 {
        out.push(
            Remark::new("AppDomainResourceManagement (0x800) alone does not enumerate threads")
                .suggested_mask(mask | THREADING)
                .erratum("X17"),
        );
    }
    ngen_off(mask, out);
    if mask != 0 && mask & JIT == 0 {
        let text = "JitRundownKeyword (0x10) is missing: methods that were compiled at run time stay \
                    unknown";
        out.push(Remark::new(text).suggested_mask(mask | JIT));
    }
    if mask & (JIT | NGEN) != 0 && mask & LOADER == 0 {
        let text = "LoaderRundownKeyword (0x8) is missing: methods will name modules that nothing \
                    tells of";
        out.push(Remark::new(text).suggested_mask(mask | LOADER));
    }
    if mask & JIT != 0 && mask & NGEN == 0 {
        let text = "NGenRundownKeyword (0x20) is missing: precompiled methods are known by the \
                    symbols of their images only";
        out.push(Remark::new(text).suggested_mask(mask | NGEN));
    }
    if level == INFORMATIONAL {
        plain_only(out);
    }
}

fn runtime(mask: u64, level: u8, out: &mut Vec<Remark>) {
    let has = |bit: u64| mask & bit != 0;
    let rules = Runtime::new(mask, level);
    if has(NGEN) && !has(START_ENUMERATION) && !has(END_ENUMERATION) {
        let text = "NGenKeyword (0x20) alone raises nothing: precompiled methods are told with \
                    StartEnumerationKeyword (0x40) when they are prepared and with \
                    EndEnumerationKeyword (0x80) when they go";
        out.push(Remark::new(text).suggested_mask(mask | START_ENUMERATION));
    } else if has(NGEN) && !has(START_ENUMERATION) {
        let text = "without StartEnumerationKeyword (0x40) precompiled methods are told only when \
                    they go";
        out.push(Remark::new(text).suggested_mask(mask | START_ENUMERATION));
    }
    ngen_off(mask, out);
    if has(JIT) && !has(END_ENUMERATION) {
        let text = "without EndEnumerationKeyword (0x80) only dynamic methods tell when they are \
                    unloaded";
        out.push(Remark::new(text).suggested_mask(mask | END_ENUMERATION).erratum("X25"));
    }
    if rules.method_load(Method::new(Code::Jitted)).is_some() && level == INFORMATIONAL {
        plain_only(out);
    }
    if has(JIT) && !has(LOADER) {
        let text =
            "LoaderKeyword (0x8) is missing: methods will name modules that nothing tells of";
        out.push(Remark::new(text).suggested_mask(mask | LOADER));
    }
    if has(PERF_TRACK) && !has(LOADER) {
        let text = "PerfTrackKeyword without LoaderKeyword (0x8) gives modules without domains and \
                    assemblies, and no unloads";
        out.push(Remark::new(text).suggested_mask(mask | LOADER).erratum("X38"));
    }
    if mask != 0 && !has(JIT) && !has(NGEN) {
        let text = "neither JitKeyword (0x10) nor NGenKeyword (0x20): no method will be told, so \
                    addresses in this trace will have no names";
        out.push(Remark::new(text).suggested_mask(mask | LOADER | JIT));
    }
}

fn ngen_off(mask: u64, out: &mut Vec<Remark>) {
    // A mask of 0 stands for all bits, this one among them.
    let asked = if mask == 0 { u64::MAX } else { mask };
    if asked & OVERRIDE_NGEN != 0 && asked & NGEN != 0 {
        out.push(
            Remark::new(format!(
                "OverrideAndSuppressNGenEvents ({OVERRIDE_NGEN:#x}) turns NGen off again: \
                 precompiled methods are not told"
            ))
            .suggested_mask(asked & !OVERRIDE_NGEN),
        );
    }
}

fn plain_only(out: &mut Vec<Remark>) {
    let text = format!(
        "below level {VERBOSE} only dynamic, generic and helper methods are told with their names"
    );
    out.push(Remark::new(text).erratum("X02"));
}
