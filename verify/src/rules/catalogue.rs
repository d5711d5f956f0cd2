//! Every rule: what it says, where it is from, what it means for the user, how to repair a trace.
//!
//! `docs/rules.md` is made from this table, and so is `etlverify --explain`.

use std::fmt::Write;

use super::asked;
use crate::report::{Severity, wrapped};

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id, `family.name`; never changes.
    pub id: &'static str,
    /// What holds in a good trace.
    pub statement: &'static str,
    /// How grave it is when it does not.
    pub severity: Severity,
    /// Where the rule is from.
    pub source: &'static str,
    /// What it means for the user when it is broken.
    pub meaning: &'static str,
    /// What to do.
    pub repair: &'static str,
}

impl Rule {
    /// The part of the id before the dot.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(family, _)| family)
    }

    /// The scenario of the corpus, by name, whose traces break this rule and no other.
    #[must_use]
    pub fn broken_by(&self) -> String {
        format!("rules/{}", self.id)
    }

    /// The scenario of the corpus, by name, whose traces keep this rule, and hold what it is about.
    #[must_use]
    pub fn kept_by(&self) -> String {
        let known = KEPT_BY.iter().find(|(_, ids)| ids.contains(&self.id));
        format!("rules/{}", known.map_or("sound", |(scenario, _)| scenario))
    }

    /// The rule with this id.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id == id)
    }

    /// The rule for people who ask for it.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut out = format!("{} ({})\n\n", self.id, self.severity.name());
        // Writing into a String does not fail.
        let _ = wrapped(&mut out, 0, 0, self.statement);
        out.push('\n');
        let _ = wrapped(&mut out, 0, 9, &format!("Meaning  {}", self.meaning));
        let _ = wrapped(&mut out, 0, 9, &format!("Repair   {}", self.repair));
        for command in self.commands() {
            let _ = writeln!(out, "           {command}");
        }
        let _ = wrapped(&mut out, 0, 9, &format!("Source   {}", self.source));
        out
    }
}

/// Rules that need more than `rules/sound` to be about something, by the scenario that has it.
const KEPT_BY: &[(&str, &[&str])] = &[
    (
        "small",
        &[
            "rundown.none",
            "rundown.missing",
            "rundown.process-exited",
            "rundown.mixed",
            "rundown.partial",
            "rundown.endless",
            "rundown.wrong-provider",
            "symbols.no-module-pdb",
        ],
    ),
    (
        "stacks",
        &[
            "symbols.unnamed-precompiled",
            "symbols.no-image-pdb",
            "stacks.undefined-key",
            "stacks.without-event",
            "stacks.missing",
            "stacks.frame-count",
            "stacks.before-event",
            "merge.no-image-ids",
        ],
    ),
    (
        "two-files",
        &[
            "merge.different-clocks",
            "merge.different-machines",
            "merge.gap",
            "merge.one-sided",
            "merge.no-common-process",
        ],
    ),
    ("tokens", &["symbols.unnamed", "symbols.coverage"]),
    ("circular", &["file.overwritten"]),
];

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $severity:ident, $statement:literal, $source:literal, $meaning:literal, $repair:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: Rule = Rule {
            id: $id,
            statement: $statement,
            severity: Severity::$severity,
            source: $source,
            meaning: $meaning,
            repair: $repair,
        };)*

        /// Every rule, by family.
        pub const RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    FILE_DAMAGED = "file.damaged", Error,
        "Every buffer and record of the file can be read.",
        "the format",
        "Events are missing at the places named. What was read around them is judged all the same.",
        "Copy the file again from the machine; a file cut off while copying is the usual cause. What is left can be made a sound file:";
    FILE_UNCLOSED = "file.unclosed", Warning,
        "The session was stopped, so that its header says when it ended.",
        "the format",
        "The machine or the session died, or the file was copied while the session ran: the last events are missing.",
        "Stop the session before copying, by its name (logman stop NAME -ets does as well). If the machine is gone, the file can be closed:";
    FILE_EVENTS_LOST = "file.events-lost", Warning,
        "No event was lost.",
        "the header event's count",
        "Some events were dropped because no buffer was free. Anything that is missing may be among them.",
        "More and larger buffers:";
    FILE_BUFFERS_LOST = "file.buffers-lost", Warning,
        "No buffer was lost.",
        "the header event's count",
        "Whole buffers could not be written: the disk was too slow, or full.",
        "Write to another disk than the one that the recorded programs work on, with more and larger buffers; or record less:";
    FILE_SEQUENCE_GAP = "file.sequence-gap", Note,
        "Buffers are numbered without gaps.",
        "the format; empty buffers are numbered and not written",
        "A number is missing. By itself that is no loss: a buffer that stayed empty is not written.",
        "Nothing, unless events or buffers are reported lost as well.";
    FILE_BUFFER_COUNT = "file.buffer-count", Note,
        "The header counts as many buffers as there are.",
        "the format",
        "The file was cut, or grew after its header was written.",
        "See what else is said about the file. If it was cut, what is left can be made a sound file:";
    FILE_SEQUENCE_TWICE = "file.duplicate-sequence", Warning,
        "Every buffer has a number of its own.",
        "the format",
        "Two buffers bear the same number: the file was put together from pieces, or written to by two.",
        "Copy the file again; merge files with a tool that knows their format, not by appending them:";
    FILE_DISORDERED = "file.out-of-order", Warning,
        "Records stand in time order within their buffer.",
        "the format; it holds in every trace seen",
        "A tool that does not keep order wrote the file, or its bytes were altered. Time order was restored for the judgement.",
        "Go back to the file as the session wrote it; or have the records put in order:";
    FILE_OUTSIDE_SESSION = "file.outside-session", Note,
        "Records lie between the start and the end that the header states, give or take a minute.",
        "the format; what a merge adds may lie a few seconds behind the end",
        "Header and content are not of one recording, or the clock was set meanwhile.",
        "Go by the stamps of the records:";
    FILE_PROCESSORS = "file.processor-count", Note,
        "No buffer is of a processor beyond the number that the header states.",
        "the format",
        "The header was made on another machine than the records, or by a tool that does not count processors.",
        "Nothing, if the file was relogged; else go back to the file as the session wrote it.";
    FILE_OVERWRITTEN = "file.overwritten", Note,
        "A circular file still holds what was recorded first.",
        "the format; the header counts the buffers that were written, the file holds those that are left",
        "The file was full, and the newest went over the oldest, as its mode asks for: loads, starts and rundowns of the time that is gone are missing.",
        "Ask for the end rundown last, as it lists what is there however long ago it came; or record with a larger -MaxFile, or without -FileMode Circular:";
    FILE_CLOCK = "file.clock", Warning,
        "The header tells how stamps become times: a clock that is known, how fast it ticks, and an end that is not before the start.",
        "the format",
        "Times of events, and whatever is judged by them, are guesses: stamps were taken for ticks of the performance counter.",
        "Go back to the file as the session wrote it; if the machine's time was set meanwhile, go by the differences between stamps. What the header says:";
    FILTER_NOT_ADMITTED = "filter.not-enabled", Warning,
        "Every event is one that its provider's enablement admits.",
        "the enable rule, F1 to F4",
        "The trace holds events that the sessions cannot have asked for by what is known of them: another session's file was merged in, or the enablement told is not the one used.",
        "Tell all of it, once for each session, with the masks and levels that were used; `etlkit spec mask` takes masks apart:";
    FILTER_SILENT = "filter.missing-loads", Warning,
        "What a rundown lists and what came to be inside the recording was told of when it came.",
        "CLR rules E1 and E2 against R3",
        "Loads inside the recording were not told although their keyword was on: they were lost, or left out by a filter.",
        "No filters by event id for loads; stop the runtime session after the rundown, so that there is no gap between them; and more buffers:";
    RUNDOWN_NONE = "rundown.none", Error,
        "A trace in which managed code ran holds a rundown.",
        "CLR rundown protocol, R7",
        "Methods that were compiled or loaded before the recording are unknown; their addresses stay numbers.",
        "Before stopping the runtime session ask for an end rundown, wait for it to be complete, and merge both files:";
    RUNDOWN_MISSING = "rundown.missing", Error,
        "Every process that ran managed code and was alive during the rundown has one.",
        "CLR rundown protocol, R1 and R7",
        "This process was not run down, though others were: it was hung, shutting down, or its events were lost.",
        "Ask for the rundown while the process is alive, and wait longer before stopping it:";
    RUNDOWN_UNCLOSED = "rundown.unclosed", Error,
        "A rundown that begins is completed.",
        "CLR rundown protocol, R5",
        "The rundown session was stopped too early, the process ended meanwhile, or events were lost: the methods enumerated last are missing.",
        "Wait for DCEndComplete before stopping the rundown session; large processes need a minute, and buffers:";
    RUNDOWN_NO_INIT = "rundown.no-init", Warning,
        "A rundown that is completed began.",
        "CLR rundown protocol, R5",
        "The first events of the rundown are missing, the enumeration that they began perhaps as well.",
        "More buffers for the rundown session:";
    RUNDOWN_NESTED = "rundown.overlapping", Warning,
        "Rundowns of one kind and CLR follow each other.",
        "CLR rundown protocol, R5",
        "A second one began before the first was complete: the first one's Complete is missing.",
        "Ask for a rundown once, and wait for it to be complete:";
    RUNDOWN_OUTSIDE = "rundown.outside-bracket", Warning,
        "What is enumerated stands between Init and Complete.",
        "CLR rundown protocol, R4",
        "Enumerated items without their bracket: Init was lost, or the session had only Threading or PerfTrack on.",
        "Enable the rundown provider with EndRundown, Loader, Jit and NGen, which is 0x138:";
    RUNDOWN_EXITED = "rundown.process-exited", Note,
        "A process that ran managed code lives until the rundown.",
        "CLR rundown protocol, R7",
        "The process ended before: only what it loaded and compiled during the recording is known.",
        "Record short-lived processes from before their start, with Loader, Jit and NGen events on:";
    RUNDOWN_CONFUSED = "rundown.mixed", Error,
        "A start rundown lists what was there at the start, an end rundown what is there at the end.",
        "CLR rundown protocol, R2 and R3",
        "Events of the one enumeration stand in the bracket of the other: the file was altered, or the events' ids are read wrongly.",
        "A tool that wrote this file mixed up the ids of the runtime and the rundown provider. Go back to the files as the sessions wrote them, or record again:";
    RUNDOWN_ORDER = "rundown.out-of-order", Warning,
        "A start rundown lists domains before their assemblies and those before their modules; an end rundown the other way round.",
        "CLR rundown protocol, R3",
        "The events were put out of order after they were written.",
        "Go back to the files as the sessions wrote them, or record again:";
    RUNDOWN_TWICE = "rundown.duplicate-items", Note,
        "A rundown lists each thing once.",
        "CLR rundown protocol, R3",
        "Things are listed more than once in one bracket: two enumerations ran into each other, or events were doubled.",
        "Enable the rundown provider once per recording:";
    RUNDOWN_INCOMPLETE = "rundown.incomplete", Warning,
        "A whole end rundown lists everything that was loaded, or listed at the start, before it and is still there.",
        "CLR rundown protocol, R3",
        "Events inside the rundown are missing, though it has a beginning and an end.",
        "More buffers for the rundown session, as it writes everything at once:";
    RUNDOWN_EMPTY = "rundown.partial", Warning,
        "A CLR's rundowns, taken together, list methods as well as modules.",
        "CLR rundown protocol, R2 and R3",
        "The rundown had Loader on and neither Jit nor NGen, or the other way round: addresses find no method, or methods no module.",
        "Enable the rundown provider with EndRundown, NGen, Jit and Loader, which is 0x138:";
    RUNDOWN_WRONG_PROVIDER = "rundown.wrong-provider", Note,
        "Enumerations come from the rundown provider, loads and unloads from the runtime provider.",
        "CLR rundown protocol, R4; capture state and the first release of .NET Framework 4 do otherwise",
        "Enumerated items stand under the runtime provider, or loads under the rundown provider.",
        "Nothing, if the runtime is that old or a tool asked for capture state; readers that go by ids alone mistake these events.";
    RUNDOWN_RUNAWAY = "rundown.endless", Warning,
        "A rundown comes to an end after having listed what there is.",
        "CLR rundown protocol, R1",
        "The same things are listed again and again: the rundown was asked for many times, or does not end. Traces grow by gigabytes.",
        "Enable the rundown provider once, wait for DCEndComplete, and stop its session:";
    RUNDOWN_THREADS = "rundown.several-threads", Note,
        "A rundown comes from one thread.",
        "CLR rundown protocol, R2; seen in .NET Framework 4.5 to .NET 8",
        "Events of one bracket come from several threads: what belongs to which enumeration is not certain.",
        "Nothing by itself.";
    SYMBOLS_UNRESOLVED = "symbols.unresolved", Warning,
        "Every address lies in a managed method or in an image.",
        "symbol resolution, S1 and S7",
        "These addresses have no owner: stubs that the runtime makes, code that was freed, or methods that nothing tells of. Up to 2 % of a process's addresses are usual where nothing is missing, and a note, as fewer than ten are where most resolve; above 5 % the trace is not usable for the process, and this is an error.",
        "If rundown findings stand beside this one, mend those first. A few are nothing to mend: stubs of the runtime have no events. Many, in all processes, are resolved by the kernel's events of images (LOADER), the runtime's loads and a rundown:";
    SYMBOLS_COVERAGE = "symbols.coverage", Error,
        "The shares of addresses that resolve, that have a name, whose image has an identity, are at least those asked for.",
        "--min-coverage, --min-process-coverage, --min-sample-coverage, --min-named, --min-identified",
        "The trace does not reach the gate that was set for it.",
        "See the other findings for the reasons. All that resolves addresses is in a recording like this one:";
    SYMBOLS_MODULE_UNKNOWN = "symbols.module-unknown", Warning,
        "Every module that a method or a domain names is told of.",
        "symbol resolution, S4",
        "Methods of these modules have no module name, and no PDB can be found for them.",
        "Enable LoaderKeyword (0x8) in both sessions:";
    SYMBOLS_ASSEMBLY_UNKNOWN = "symbols.assembly-unknown", Warning,
        "Every assembly that a module names, and every domain that an assembly names, is told of.",
        "symbol resolution, S4",
        "Modules of these assemblies cannot be put to their assembly or domain.",
        "Enable LoaderKeyword (0x8) in both sessions:";
    SYMBOLS_NO_IDENTITY = "symbols.no-module-pdb", Note,
        "Every module with a file has the identity of its PDB.",
        "symbol resolution, S6",
        "Source lines, and names where methods are told without them, cannot be found for these modules: they were built without debug information, or their runtime is too old to tell.",
        "Build with debug information (portable or full PDBs):";
    SYMBOLS_UNNAMED = "symbols.unnamed", Warning,
        "Every address in managed code lies in a method that is named, or whose module's PDB is known.",
        "symbol resolution, S3",
        "The session's level was below 5: methods are told by token, and nothing in the trace leads from there to a name.",
        "Enable both providers at level 5 (verbose):";
    SYMBOLS_PRECOMPILED = "symbols.unnamed-precompiled", Warning,
        "Every address in a native image of managed code lies in a method that a rundown told of, or the image's PDB is known.",
        "symbol resolution, S5",
        "Precompiled methods cannot be named: neither does the rundown list them nor is there a PDB to look them up in.",
        "Merge on the machine with NGEN PDBs made (PerfView does so), or enable NGenKeyword (0x20) in the rundown session:";
    SYMBOLS_IMAGE_IDENTITY = "symbols.no-image-pdb", Note,
        "A merged trace has the identity of every image that addresses lie in.",
        "symbol resolution, S7; what a merge adds",
        "Native addresses in these images cannot be named: the image had no debug information, or could not be read when the trace was merged.",
        "Merge on the machine of the recording, as an administrator, before files change:";
    SYMBOLS_OVERLAP = "symbols.overlapping", Note,
        "At any time an address belongs to one method.",
        "symbol resolution, S2",
        "Code was told of where other code still was: an unload was not seen.",
        "Enable EndEnumerationKeyword (0x80) in the runtime session, so that unloads are told:";
    SYMBOLS_LOADED_TWICE = "symbols.loaded-twice", Note,
        "What is loaded is not there already.",
        "symbol resolution, S2",
        "Code, a module, an assembly or a domain was loaded twice without an unload between: the unload was not told, or the load was doubled.",
        "Enable EndEnumerationKeyword (0x80) in the runtime session, so that unloads are told:";
    SYMBOLS_UNLOAD_UNKNOWN = "symbols.unload-unknown", Note,
        "Code that is unloaded was loaded or listed before.",
        "symbol resolution, S1",
        "The method was there since before the recording, and no start rundown told of it. Its addresses resolve all the same.",
        "If the order of things matters, ask for a start rundown (0x40) as well:";
    SYMBOLS_JIT_WITHOUT_LOAD = "symbols.jit-without-load", Warning,
        "What began to be compiled was loaded.",
        "CLR rule E6",
        "The compiler was at work on methods whose load never came: it was lost, or compilation failed.",
        "More buffers:";
    SYMBOLS_GONE = "symbols.wrong-time", Note,
        "Code and images are told of at the times when addresses lie in them.",
        "symbol resolution, S1 and S7",
        "Addresses lie in code or images that the trace knows, but not at that time: they ran before the load was told of, or after the unload. Where nothing else is unresolved, their share weighs as in symbols.unresolved.",
        "Nothing for a few; many mean that clocks of merged files do not agree. Start all sessions with the same one:";
    MERGE_CLOCK = "merge.different-clocks", Warning,
        "Files judged together have one clock.",
        "merging, M1",
        "The stamps of the files cannot be compared exactly: different clocks, or the clock was set between. They were brought together by time of day.",
        "Start all sessions of a recording with the same clock:";
    MERGE_MACHINE = "merge.different-machines", Error,
        "Files judged together are from one machine and one boot.",
        "merging, M1",
        "Boot time, processors or version of Windows differ: process ids and addresses of one file mean nothing in the other.",
        "Name only files that belong together, or judge each by itself:";
    MERGE_SEAM = "merge.gap", Warning,
        "The rundown begins before the runtime session ends.",
        "merging, M2",
        "Between the two nothing told of loads and jits: what came in between is listed by the rundown but not dated, what went is unknown.",
        "Start the rundown session first, wait for it to be complete, then stop the runtime session:";
    MERGE_ONE_SIDED = "merge.one-sided", Warning,
        "What is merged or judged together holds both the runtime's events and a rundown.",
        "merging, M1 and M2",
        "One of the two files is missing from the merge, or its session recorded nothing.",
        "Merge again with all files:";
    MERGE_PROCESSES = "merge.no-common-process", Warning,
        "The rundown is of processes that the runtime session saw.",
        "merging, M2",
        "No process has both runtime events and a rundown: the files are of different recordings, or the processes had nothing to tell.",
        "Check that the files belong together:";
    MERGE_IMAGE_IDS = "merge.no-image-ids", Note,
        "A trace with native addresses holds the identities of its images.",
        "what a merge adds",
        "The trace was not merged on its machine: native frames can be attributed to images, but their symbols cannot be found elsewhere.",
        "Merge on the machine of the recording (PerfView does so as well):";
    STACKS_UNDEFINED_KEY = "stacks.undefined-key", Warning,
        "Every key of a kernel stack is defined.",
        "kernel stack compression",
        "Stacks told by such keys cannot be shown.",
        "Stop the kernel session in order, as the definitions come last, and merge its file:";
    STACKS_UNPAIRED = "stacks.without-event", Warning,
        "Each stack of the CLR follows the event it belongs to, on the same thread.",
        "CLR rule E9",
        "Stacks stand without their event: the event was lost, or it is put to the wrong thread. A session that has only StackKeyword on, beside another one, gets such stacks, too.",
        "Turn on the keywords of the events whose stacks are wanted; and more buffers:";
    STACKS_MISSING = "stacks.missing", Note,
        "Where stacks are asked for, the CLR's events that have one are followed by it, on the same thread.",
        "CLR rule E9",
        "Stacks of these events are missing, though stacks came before on their threads and later in their process: they were lost, or another session had the events and not the stacks.",
        "More buffers:";
    STACKS_TRUNCATED = "stacks.frame-count", Warning,
        "A stack of the CLR holds as many addresses as it says.",
        "CLR rule E9",
        "Addresses are missing from the stacks, or bytes were added to them.",
        "Go back to the file as the session wrote it.";
    STACKS_EARLY = "stacks.before-event", Warning,
        "A kernel stack is of an event that came before it.",
        "kernel stack walking",
        "Stacks cannot be put to their events: the clocks of merged files do not agree.",
        "Start all sessions of a recording with the same clock:";
    ACTIVITY_UNSTOPPED = "activity.no-stop", Note,
        "An activity that starts stops, in tasks whose activities do so at all.",
        "activities, A1",
        "Activities were under way when the recording ended, or their stops are missing.",
        "Nothing, if they were under way.";
    ACTIVITY_UNSTARTED = "activity.no-start", Note,
        "An activity that stops has started, in tasks whose activities do so at all.",
        "activities, A1",
        "Activities were under way when the recording began, or their starts are missing.",
        "Nothing, if they were under way.";
    ACTIVITY_PARENT = "activity.unknown-parent", Note,
        "The activity that another comes from has events.",
        "activities, A1",
        "The provider that the activity came from was not enabled, or its events are missing.",
        "Enable the provider of the outer activity as well.";
    PAYLOAD_SHORT = "payload.short", Warning,
        "A payload holds all fields of its event.",
        "the schemas of the tables and of the trace",
        "Payloads end before their last field: they were cut, or the event is not the one that its id and version say.",
        "Go back to the file as the session wrote it; if a manifest was given, see that it is the right one.";
    PAYLOAD_LONG = "payload.long", Note,
        "A payload ends with the last field of its event.",
        "the schemas of the tables and of the trace",
        "Payloads go on behind what is known of their event: a newer provider added fields without a new version.",
        "Nothing; the fields known are read.";
    PAYLOAD_DESCRIPTOR = "payload.wrong-descriptor", Note,
        "A CLR event has the level and keywords that its manifest gives it.",
        "the tables, and what real traces hold",
        "The event's header was altered, or a runtime that is not known here gives it others: filters that go by them see something else.",
        "Nothing, if the runtime is new.";
    PAYLOAD_VERSION = "payload.unknown-version", Note,
        "The version of a CLR event is one that is known.",
        "the tables",
        "A newer runtime has versions of events that are not known here; their payloads were not compared.",
        "Nothing.";
}

/// The catalogue as a page of documentation.
#[must_use]
pub fn page() -> String {
    let mut out = String::from(
        "# Rules of etlverify\n\nMade from the table in the code (`etlverify --rules`); `etlverify --explain RULE` \
         prints one. Ids never change.\n\nThree answers: a rule holds, or it is broken and gives a finding, or it \
         cannot be decided and the report's verdict says so.\n",
    );
    out.push_str(&asked::table());
    let mut family = "";
    for rule in RULES {
        if rule.family() != family {
            family = rule.family();
            // Writing into a String does not fail.
            let _ = write!(out, "\n## {family}\n");
        }
        let _ = write!(
            out,
            "\n### {}\n{} ({})\n\n- **Meaning:** {}\n- **Source:** {}\n- **Broken by** \
             `corpus/{}.kdl`, **kept by** `corpus/{}.kdl`\n- **Repair:** {}\n",
            rule.id,
            rule.statement,
            rule.severity.name(),
            rule.meaning,
            rule.source,
            rule.broken_by(),
            rule.kept_by(),
            rule.repair
        );
        if !rule.commands().is_empty() {
            let _ = write!(out, "\n  ```\n  {}\n  ```\n", rule.commands().join("\n  "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_have_a_family() {
        let ids: BTreeSet<_> = RULES.iter().map(|r| r.id).collect();
        assert_eq!(ids.len(), RULES.len());
        assert!(RULES.iter().all(|r| r.id.contains('.') && r.statement.ends_with('.')));
        // What ends in a colon goes on with command lines, and nothing else does.
        for rule in RULES {
            assert_eq!(rule.repair.ends_with(':'), !rule.commands().is_empty(), "{}", rule.id);
        }
        assert_eq!(Rule::find("rundown.none"), Some(&RUNDOWN_NONE));
        assert_eq!(Rule::find("rundown"), None);
    }
}
