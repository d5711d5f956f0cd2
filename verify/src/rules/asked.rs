//! What is asked of a trace, in the words of those who ask, and the rules that answer.
//!
//! The catalogue goes by rule; this goes by what may be wrong, so that a question without a rule shows.

use std::fmt::Write;

/// What may be wrong, and the ids of the rules that tell.
type Question = (&'static str, &'static [&'static str]);

/// By family.
const ASKED: &[(&str, &[Question])] = &[
    (
        "file",
        &[
            ("structure: bytes that are no buffer, no record", &["file.damaged"]),
            (
                "sequence: buffers missing, or there twice",
                &["file.sequence-gap", "file.duplicate-sequence"],
            ),
            ("order: records out of time order", &["file.out-of-order"]),
            ("clocks: stamps that do not become times", &["file.clock", "merge.different-clocks"]),
            (
                "header against content",
                &[
                    "file.buffer-count",
                    "file.processor-count",
                    "file.outside-session",
                    "file.clock",
                ],
            ),
            (
                "losses, by processor and span (`losses` in the report tells where)",
                &["file.events-lost", "file.buffers-lost", "file.damaged"],
            ),
            ("not closed", &["file.unclosed"]),
            ("circular, and overwritten", &["file.overwritten"]),
        ],
    ),
    (
        "filter",
        &[
            ("an event that no session can have asked for", &["filter.not-enabled"]),
            (
                "silence where the state proves that something happened",
                &["filter.missing-loads", "symbols.jit-without-load"],
            ),
        ],
    ),
    (
        "rundown",
        &[
            ("brackets by process and CLR: Init without Complete", &["rundown.unclosed"]),
            ("brackets by process and CLR: Complete without Init", &["rundown.no-init"]),
            ("brackets inside each other", &["rundown.overlapping"]),
            ("order of what is listed", &["rundown.out-of-order", "rundown.several-threads"]),
            ("listed outside of a bracket", &["rundown.outside-bracket"]),
            (
                "managed code ran, and no rundown at all",
                &["rundown.none", "rundown.missing", "rundown.process-exited"],
            ),
            (
                "events of rundowns under the runtime provider, others under the rundown provider",
                &["rundown.wrong-provider"],
            ),
            ("start and end rundown confused", &["rundown.mixed"]),
            ("cut short", &["rundown.unclosed", "rundown.incomplete", "rundown.partial"]),
            ("runaway", &["rundown.endless", "rundown.duplicate-items"]),
        ],
    ),
    (
        "symbols",
        &[
            (
                "an address that nothing owns at its time",
                &["symbols.unresolved", "symbols.wrong-time"],
            ),
            ("shares by process and overall, in counts and by samples", &["symbols.coverage"]),
            ("a method whose module is unknown", &["symbols.module-unknown"]),
            (
                "a module without assembly, an assembly without domain",
                &["symbols.assembly-unknown"],
            ),
            ("a method without a name", &["symbols.unnamed"]),
            ("a module without the identity of its PDB", &["symbols.no-module-pdb"]),
            (
                "precompiled code with neither NGEN rundown nor PDB",
                &["symbols.unnamed-precompiled"],
            ),
            (
                "native and kernel images without the identity of their PDB",
                &["symbols.no-image-pdb", "merge.no-image-ids"],
            ),
            ("overlaps", &["symbols.overlapping"]),
            (
                "gaps in what is told of a life",
                &["symbols.wrong-time", "symbols.unload-unknown", "symbols.jit-without-load"],
            ),
            ("reuse of addresses and ids", &["symbols.loaded-twice", "symbols.overlapping"]),
        ],
    ),
    (
        "merge",
        &[
            ("both the runtime and the rundown session in it", &["merge.one-sided"]),
            ("one machine, one boot", &["merge.different-machines"]),
            ("one clock", &["merge.different-clocks"]),
            ("the same processes", &["merge.no-common-process"]),
            ("nothing cut at the seam", &["merge.gap"]),
            ("image ids that a merge adds", &["merge.no-image-ids", "symbols.no-image-pdb"]),
        ],
    ),
    (
        "stacks",
        &[
            ("event 82 without its event, or on another thread", &["stacks.without-event"]),
            ("an event without its event 82", &["stacks.missing"]),
            ("truncated", &["stacks.frame-count"]),
            ("kernel stacks without their event", &["stacks.before-event", "stacks.undefined-key"]),
        ],
    ),
    (
        "activity",
        &[
            ("balance of starts and stops", &["activity.no-stop", "activity.no-start"]),
            ("related ids", &["activity.unknown-parent"]),
        ],
    ),
    (
        "payload",
        &[
            ("size against the schema", &["payload.short", "payload.long"]),
            ("version against the schema", &["payload.unknown-version"]),
            ("level and keywords against the schema", &["payload.wrong-descriptor"]),
        ],
    ),
];

/// The table as a part of the page of rules.
pub(super) fn table() -> String {
    let mut out = String::from(
        "\n## Which rule tells what\n\n| family | what may be wrong | rules |\n|---|---|---|\n",
    );
    for (family, questions) in ASKED {
        for (question, rules) in *questions {
            let rules: Vec<_> = rules.iter().map(|id| format!("`{id}`")).collect();
            // Writing into a String does not fail.
            let _ = writeln!(out, "| {family} | {question} | {} |", rules.join(", "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RULES;

    #[test]
    fn every_rule_answers_something_and_every_answer_is_a_rule() {
        let answers = || ASKED.iter().flat_map(|(_, asked)| asked.iter()).flat_map(|(_, ids)| *ids);
        for rule in RULES {
            assert!(answers().any(|id| *id == rule.id), "nobody asks for {}", rule.id);
        }
        for id in answers() {
            assert!(crate::Rule::find(id).is_some(), "{id} is no rule");
        }
        let families: Vec<_> = ASKED.iter().map(|(family, _)| *family).collect();
        let mut known: Vec<_> = RULES.iter().map(|rule| rule.family()).collect();
        known.dedup();
        assert_eq!(families, known);
    }
}
