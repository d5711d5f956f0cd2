//! The rules for traces of EventPipe sessions (`.nettrace`): which are not applicable, and which
//! have other texts.
//!
//! An EventPipe session records the events of one .NET process. It has no events of the kernel and
//! no images, its stacks are in the events, and it has one rundown, which the runtime writes when
//! the session stops.

use super::{Rule, RuleTexts};

/// Rules, and families of rules, that no EventPipe session can break, with the reason. A rule
/// precedes its family.
const NOT_APPLICABLE: &[(&str, &str)] = &[
    (
        "filter.silent-process",
        "an EventPipe session records one process, without events of the kernel",
    ),
    (
        "rundown.missing",
        "an EventPipe session of .NET records one process",
    ),
    (
        "rundown.process-exited",
        "a .NET process that ends writes the rundown of its EventPipe session",
    ),
    (
        "symbols.no-image-pdb",
        "an EventPipe session records no identities of images",
    ),
    (
        "merge.no-image-ids",
        "an EventPipe session records no identities of images",
    ),
    (
        "kernel",
        "an EventPipe session records no events of the kernel",
    ),
    (
        "stacks",
        "the stack of an event of EventPipe is in the event",
    ),
];

/// Why a rule is not applicable to traces of EventPipe sessions; `None` if it is applicable.
pub(super) fn absence(rule: &Rule) -> Option<&'static str> {
    for name in [rule.id, rule.family()] {
        if let Some((_, reason)) = NOT_APPLICABLE.iter().find(|(other, _)| *other == name) {
            return Some(reason);
        }
    }
    None
}

/// Texts of a rule that differ for EventPipe.
struct OwnTexts {
    /// Id of the rule.
    rule: &'static str,
    statement: Option<&'static str>,
    meaning: Option<&'static str>,
    remedy: &'static str,
    commands: &'static [&'static str],
}

impl OwnTexts {
    const fn new(
        rule: &'static str,
        remedy: &'static str,
        commands: &'static [&'static str],
    ) -> Self {
        OwnTexts {
            rule,
            statement: None,
            meaning: None,
            remedy,
            commands,
        }
    }

    const fn stating(self, statement: &'static str) -> Self {
        OwnTexts {
            statement: Some(statement),
            ..self
        }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        OwnTexts {
            meaning: Some(meaning),
            ..self
        }
    }
}

macro_rules! collect {
    ($rest:literal) => {
        concat!(
            "dotnet-trace collect --process-id 4711 --providers \
             Microsoft-Windows-DotNETRuntime:0x1CCBD:5",
            $rest
        )
    };
}

/// The masks of the documents' runtime session, for a running process.
const COLLECT: &str = collect!("");
/// The same with the largest buffer.
const COLLECT_LARGE: &str = collect!(" --buffersize 1024");
/// The same with maps of IL to native code.
const COLLECT_MAPS: &str = "dotnet-trace collect --process-id 4711 --providers \
                            Microsoft-Windows-DotNETRuntime:0x3CCBD:5";
/// The same from the start of a process.
const COLLECT_FROM_START: &str = "dotnet-trace collect --providers \
                                  Microsoft-Windows-DotNETRuntime:0x1CCBD:5 -- dotnet app.dll";
/// The same with the largest buffer.
const COLLECT_FROM_START_LARGE: &str = "dotnet-trace collect --providers \
                                        Microsoft-Windows-DotNETRuntime:0x1CCBD:5 \
                                        --buffersize 1024 -- dotnet app.dll";
/// A recording of one minute.
const COLLECT_MINUTE: &str = collect!(" --duration 00:00:01:00");
/// Collections only.
const COLLECT_GC: &str = "dotnet-trace collect --process-id 4711 --profile gc-verbose";
/// Requests a recording from a `dotnet-monitor` that runs without authentication.
const MONITOR: &str = "curl -o app.nettrace -H Content-Type:application/json -d \
                       '{\"Providers\":[{\"Name\":\"Microsoft-Windows-DotNETRuntime\",\
                       \"Keywords\":\"0x1CCBD\",\"EventLevel\":\"Verbose\"}],\
                       \"RequestRundown\":true,\"BufferSizeInMB\":1024}' \
                       'http://localhost:52323/trace?pid=4711&durationSeconds=60'";
/// Starts this `dotnet-monitor`.
const MONITOR_START: &str = "dotnet-monitor collect --no-auth --urls http://localhost:52323";
/// Prints what is intact of a stream.
const INFO: &str = "etlkit info trace.etl";

/// A recording with a rundown.
pub(super) const RECORD: &[&str] = &[COLLECT];
/// The same, of at most a minute, with both tools.
pub(super) const RECORD_TO_THE_END: &[&str] = &[COLLECT_MINUTE, MONITOR_START, MONITOR];
/// A recording with large buffers, with both tools.
pub(super) const RECORD_LARGE: &[&str] = &[COLLECT_LARGE, MONITOR_START, MONITOR];
/// A recording from the start of the process.
pub(super) const RECORD_FROM_START: &[&str] = &[COLLECT_FROM_START];

const TEXTS: &[OwnTexts] = &[
    OwnTexts::new(
        "file.damaged",
        "Copy the file from the machine again. What is intact in it:",
        &[INFO],
    ),
    OwnTexts::new(
        "file.unclosed",
        "Stop the session before its process is killed (Enter, Ctrl+C or --duration), let \
         dotnet-trace write the rundown, which may take minutes, and then copy the file:",
        RECORD_TO_THE_END,
    )
    .stating("The stream has its end.")
    .meaning(
        "The process was killed or crashed, dotnet-trace was killed, or the file was copied \
         during the recording. All events before the cut are there; the rundown, which comes \
         last, is missing.",
    ),
    OwnTexts::new(
        "file.events-lost",
        "Record again with a larger buffer, and with fewer keywords:",
        RECORD_LARGE,
    )
    .meaning(
        "Events were dropped because the buffer of the session was full, as the numbers of each \
         thread's events show. Any event that is missing from the trace may be among them.",
    ),
    OwnTexts::new(
        "file.buffers-lost",
        "Copy the file from the machine again. What is intact in it:",
        &[INFO],
    )
    .stating("All parts of the stream are readable.")
    .meaning("Parts of the stream are damaged; their events are missing."),
    OwnTexts::new(
        "filter.missing-loads",
        "Use a larger buffer, and start the session together with the process:",
        &[COLLECT_FROM_START_LARGE],
    ),
    OwnTexts::new(
        "rundown.none",
        "Let the session write its rundown: record without --rundown false (dotnet-monitor: with \
         RequestRundown), stop it before its process is killed, and wait until dotnet-trace ends:",
        RECORD_TO_THE_END,
    )
    .meaning(
        "The rundown was not requested, or the session was cut before it: methods that were \
         compiled or loaded before the recording are unknown, and their addresses stay numbers.",
    ),
    OwnTexts::new(
        "rundown.unclosed",
        "Stop the session before its process is killed, and wait until dotnet-trace ends:",
        RECORD_TO_THE_END,
    )
    .meaning(
        "The process was killed during the rundown, the file was cut, or events were lost: the \
         methods that would have been listed last are missing.",
    ),
    OwnTexts::new("rundown.no-init", "Use a larger buffer:", RECORD_LARGE),
    OwnTexts::new("rundown.overlapping", "Record again:", RECORD),
    OwnTexts::new(
        "rundown.outside-bracket",
        "Do not choose keywords of the rundown: those that dotnet-trace requests by itself list \
         all code:",
        RECORD,
    ),
    OwnTexts::new("rundown.mixed", "Record again:", RECORD),
    OwnTexts::new("rundown.out-of-order", "Record again:", RECORD),
    OwnTexts::new("rundown.duplicate-items", "Record again:", RECORD),
    OwnTexts::new(
        "rundown.incomplete",
        "Use a larger buffer, since the rundown is written at once:",
        RECORD_LARGE,
    ),
    OwnTexts::new(
        "rundown.partial",
        "Do not choose keywords of the rundown: those that dotnet-trace requests by itself list \
         all code:",
        RECORD,
    ),
    OwnTexts::new("rundown.endless", "Record again:", RECORD),
    OwnTexts::new(
        "symbols.unresolved",
        "Fix the rundown findings first, if there are any: without a rundown, methods that were \
         compiled before the recording are unknown. A stream has no images, so that addresses in \
         native code never resolve; `dotnet-trace collect-linux` records them:",
        &["dotnet-trace collect-linux --process-id 4711"],
    )
    .stating("Every address is in a managed method.")
    .meaning(
        "These addresses belong to no method that the stream describes: stubs of the runtime, \
         code that was freed, or methods without events. Each stack may have one address in the \
         runtime, so that up to 5 % are usual and only a note, and so are fewer than ten where \
         most resolve. Above 10 % the trace is not usable for the process, which is an error.",
    ),
    OwnTexts::new(
        "symbols.wrong-time",
        "Nothing for a few. Many mean that the file was changed: record again:",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.module-unknown",
        "Enable LoaderKeyword (0x8), and do not suppress the rundown:",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.assembly-unknown",
        "Enable LoaderKeyword (0x8), and do not suppress the rundown:",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.unnamed",
        "Enable the runtime provider at level 5 (verbose):",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.unnamed-precompiled",
        "Do not suppress the rundown, which names precompiled methods:",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.coverage",
        "The other findings show the reasons. A recording like this one has everything that \
         resolves addresses in managed code:",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.overlapping",
        "Enable EndEnumerationKeyword (0x80), which logs unloads:",
        RECORD,
    ),
    OwnTexts::new("symbols.implausible", "Record again:", RECORD),
    OwnTexts::new(
        "symbols.loaded-twice",
        "Enable EndEnumerationKeyword (0x80), which logs unloads:",
        RECORD,
    ),
    OwnTexts::new(
        "symbols.unload-unknown",
        "If the order of loads matters, start the process with the recording, at level 5:",
        RECORD_FROM_START,
    )
    .meaning(
        "The method was there since before the recording: EventPipe has no start rundown. Its \
         addresses resolve all the same. If its CLR started during the recording, the load event \
         is missing, which is a warning.",
    ),
    OwnTexts::new(
        "symbols.jit-without-load",
        "Use a larger buffer:",
        RECORD_LARGE,
    ),
    OwnTexts::new(
        "symbols.not-unloaded",
        "Enable EndEnumerationKeyword (0x80) for the whole recording, and use a larger buffer:",
        RECORD_LARGE,
    )
    .stating("A CLR that ends unloads all that it loaded.")
    .meaning(
        "Unload events are missing: code seems to be there longer than it was. A runtime that \
         ends unloads all code and lists it afterwards in its rundown, which breaks no rule.",
    ),
    OwnTexts::new(
        "symbols.runtime-unknown",
        "Start the process with the recording: the runtime states its version only when it \
         starts, and in its rundown:",
        RECORD_FROM_START,
    ),
    OwnTexts::new(
        "symbols.no-il-map",
        "Use a larger buffer, or enable JittedMethodILToNativeMapKeyword (0x20000) at level 5 for \
         the whole recording:",
        &[COLLECT_MAPS],
    ),
    OwnTexts::new(
        "merge.different-clocks",
        "Check each stream alone: streams of different machines have different clocks.",
        &[],
    ),
    OwnTexts::new(
        "merge.gap",
        "Check each stream alone: each has its own rundown.",
        &[],
    ),
    OwnTexts::new(
        "merge.one-sided",
        "Check each stream alone: each has its own rundown.",
        &[],
    ),
    OwnTexts::new(
        "file.duplicate-sequence",
        "Convert the stream again, and use this file.",
        &[],
    ),
    OwnTexts::new(
        "file.overwritten",
        "Convert the stream again: an EventPipe session has no circular file.",
        &[],
    ),
    OwnTexts::new(
        "gc.incomplete",
        "Enable the GC keyword (1) for the whole recording, and use a larger buffer:",
        &[COLLECT_GC],
    ),
];

/// The texts of a rule for EventPipe: its own ones, or the usual ones.
pub(super) fn texts(rule: &str, usual: RuleTexts) -> RuleTexts {
    let Some(own) = TEXTS.iter().find(|own| own.rule == rule) else {
        return usual;
    };
    RuleTexts {
        statement: own.statement.unwrap_or(usual.statement),
        meaning: own.meaning.unwrap_or(usual.meaning),
        remedy: own.remedy,
        commands: own.commands,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RULES, TraceOrigin};
    use super::*;
    use etl_control::controller::{Action, CommandLine};

    #[test]
    fn event_pipe_rules_name_rules_and_families() {
        for (name, _) in NOT_APPLICABLE {
            let mut rules = RULES.iter();
            assert!(
                rules.any(|r| r.id == *name || r.family() == *name),
                "{name}"
            );
        }
        for own in TEXTS {
            let rule = Rule::find(own.rule).expect(own.rule);
            assert_eq!(absence(rule), None, "{}", rule.id);
        }
    }

    #[test]
    fn event_pipe_commands_are_accepted_by_the_tools_they_name() {
        let mut parsed = 0;
        for line in TEXTS.iter().flat_map(|own| own.commands) {
            if line.starts_with("dotnet-trace") {
                let line: CommandLine = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
                assert!(matches!(&line.actions[..], [Action::Collect(_)]), "{line}");
                parsed += 1;
            }
        }
        assert!(parsed > 20, "{parsed}");
    }

    #[test]
    fn event_pipe_remedies_name_no_tool_of_windows() {
        let applicable = RULES.iter().filter(|rule| absence(rule).is_none());
        for rule in applicable {
            let texts = rule.texts(TraceOrigin::EventPipe);
            let has_commands = !texts.commands.is_empty();
            assert_eq!(texts.remedy.ends_with(':'), has_commands, "{}", rule.id);
            let text = texts.remedy_lines();
            for word in [
                "xperf",
                "logman",
                "tracelog",
                "-BufferSize",
                "rundown session",
            ] {
                assert!(!text.contains(word), "{}: {text}", rule.id);
            }
        }
    }
}
