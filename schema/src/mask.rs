//! What a mask and a level ask of a provider, taken apart.

use crate::enable::Enablement;
use crate::tables::{Provider, TableEvent};

/// What a mask asks for, and what it will not give.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    /// Names of its bits.
    pub names: Vec<&'a str>,
    /// Bits that mean nothing to the provider.
    pub unnamed: u64,
    /// Events that the enable rule admits and the CLR raises for it.
    pub raised: Vec<&'a TableEvent>,
    /// What a person should know before recording with it.
    pub remarks: Vec<String>,
}

const START_RUNDOWN: u64 = 0x40;
const END_RUNDOWN: u64 = 0x100;
/// Loader, Jit, NGen, IL maps, PerfTrack, Threading: what makes a rundown enumerate anything.
const ENUMERATES: u64 = 0x8 | 0x10 | 0x20 | 0x2_0000 | 0x2000_0000 | 0x1_0000;

/// Takes a mask apart for a provider of the tables.
#[must_use]
pub fn explain(provider: &Provider, mask: u64, level: u8) -> Explanation<'_> {
    let (names, unnamed) = provider.keyword_names(mask);
    let session = Enablement::new(level, mask);
    // A mask of 0 stands for all 64 bits.
    let asked = if mask == 0 { u64::MAX } else { mask };
    let rundown = is_rundown(provider);
    let admitted = provider.events.iter().filter(|e| {
        session.admits_level(e.schema.level.value) && session.admits_keyword(e.schema.keywords)
    });
    let raised = admitted.filter(|e| !rundown || is_enumerated(e, asked)).collect();
    let mut remarks = Vec::new();
    if mask == u64::from(u32::MAX) {
        remarks.push(
            "a mask of 32 ones is not \"all\": keywords above bit 31 are off; write 0 or 64 ones"
                .to_owned(),
        );
    }
    if unnamed != 0 && mask != u64::MAX && mask != u64::from(u32::MAX) {
        remarks.push(format!("bits {unnamed:#x} mean nothing to {}", provider.name));
    }
    if rundown {
        rundown_remarks(asked, mask, &mut remarks);
    } else if provider.keyword("EndEnumerationKeyword").is_some() {
        runtime_remarks(asked, level, &mut remarks);
    }
    Explanation { names, unnamed, raised, remarks }
}

fn is_rundown(provider: &Provider) -> bool {
    provider.keyword("EndRundownKeyword").is_some()
}

/// Whether an event of the rundown provider belongs to an enumeration that the mask asks for.
fn is_enumerated(event: &TableEvent, mask: u64) -> bool {
    let (start, end) = (mask & START_RUNDOWN != 0, mask & END_RUNDOWN != 0);
    let symbol = &*event.schema.name;
    // The runtime's own description comes before either enumeration, whatever its name says.
    let both = event.schema.keywords == 0 || symbol.starts_with("Tiered");
    if both || !(symbol.contains("DCStart") || symbol.contains("DCEnd")) {
        start || end
    } else if symbol.contains("DCStart") {
        start
    } else {
        end
    }
}

fn rundown_remarks(asked: u64, mask: u64, remarks: &mut Vec<String>) {
    if asked & END_RUNDOWN == 0 {
        let wanted = mask & (ENUMERATES | START_RUNDOWN) | END_RUNDOWN;
        remarks.push(format!(
            "EndRundownKeyword (0x100) is missing: no DCEnd event will come, so methods that were \
             compiled before the recording stay unknown; {wanted:#x} would give them"
        ));
    }
    if asked & (START_RUNDOWN | END_RUNDOWN) == 0 {
        remarks.push(
            "neither StartRundownKeyword (0x40) nor EndRundownKeyword (0x100): the CLR enumerates \
             nothing at all"
                .to_owned(),
        );
    } else if asked & ENUMERATES == 0 {
        remarks.push(
            "nothing to enumerate is named: add Loader (0x8), Jit (0x10) and NGen (0x20)"
                .to_owned(),
        );
    }
}

fn runtime_remarks(asked: u64, level: u8, remarks: &mut Vec<String>) {
    let has = |bit: u64| asked & bit != 0;
    if has(0x20) && !has(0x40) && !has(0x80) {
        remarks.push(
            "NGenKeyword (0x20) alone raises nothing: methods of precompiled code are told with \
             StartEnumerationKeyword (0x40) when they are prepared and with EndEnumerationKeyword \
             (0x80) when they go"
                .to_owned(),
        );
    }
    if has(0x40000) && has(0x20) {
        remarks
            .push("OverrideAndSuppressNGenEventsKeyword (0x40000) turns NGen off again".to_owned());
    }
    if has(0x10) && !has(0x80) {
        remarks.push(
            "without EndEnumerationKeyword (0x80) only dynamic methods tell when they are unloaded"
                .to_owned(),
        );
    }
    if has(0x10) && level != 0 && level < 5 {
        remarks.push(
            "below level 5 only dynamic, generic and helper methods are told with their names"
                .to_owned(),
        );
    }
    if !has(0x8) && has(0x10) {
        remarks.push(
            "LoaderKeyword (0x8) is missing: methods will name modules that nothing tells of"
                .to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Registry;

    fn explained(provider: &str, mask: u64) -> Explanation<'static> {
        explain(Registry::builtin().find(provider).unwrap(), mask, 5)
    }

    fn symbols(e: &Explanation<'_>) -> Vec<String> {
        e.raised.iter().map(|e| e.schema.name.to_string()).collect()
    }

    #[test]
    fn the_rundown_of_the_recipe_ends_with_dcend() {
        let good = explained("rundown", 0x138);
        assert!(good.remarks.is_empty(), "{:?}", good.remarks);
        let symbols = symbols(&good);
        for wanted in
            ["DCEndInit_V1", "DCEndComplete_V1", "MethodDCEndVerbose_V1", "ModuleDCEnd_V2"]
        {
            assert!(symbols.iter().any(|s| s == wanted), "{wanted}");
        }
        assert!(!symbols.iter().any(|s| s == "MethodDCStart_V1"));
    }

    #[test]
    fn the_other_mask_of_the_documents_gives_nothing() {
        let bad = explained("rundown", 0xb8);
        assert!(bad.raised.is_empty());
        assert_eq!(bad.unnamed, 0x80);
        assert!(bad.remarks.iter().any(|r| r.contains("0x138")), "{:?}", bad.remarks);
        assert!(bad.remarks.iter().any(|r| r.contains("nothing at all")));
    }

    #[test]
    fn runtime_masks_of_the_documents() {
        let names = explained("runtime", 0x1ccbd).names;
        assert_eq!(
            names,
            [
                "GCKeyword",
                "FusionKeyword",
                "LoaderKeyword",
                "JitKeyword",
                "NGenKeyword",
                "EndEnumerationKeyword",
                "SecurityKeyword",
                "AppDomainResourceManagementKeyword",
                "ContentionKeyword",
                "ExceptionKeyword",
                "ThreadingKeyword",
            ]
        );
        let all_but = explained("runtime", 0x1fc1f);
        assert!(!all_but.names.contains(&"NGenKeyword"));
        assert!(all_but.remarks.iter().any(|r| r.contains("0x80")));
    }

    #[test]
    fn zero_is_all_and_32_ones_are_not() {
        assert!(explained("rundown", 0).remarks.is_empty());
        let ones = explained("runtime", 0xffff_ffff);
        assert!(ones.remarks.iter().any(|r| r.contains("32 ones")));
        assert!(!symbols(&ones).iter().any(|s| s == "MethodDetails"));
    }
}
