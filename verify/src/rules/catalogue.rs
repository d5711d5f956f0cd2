//! Every rule: what it says, where it is from, what it means for the user, how to repair a trace.
//!
//! `docs/rules.md` is made from this table, and so is `etlverify --explain`.

use std::fmt::Write;

use crate::report::Severity;

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

    /// The rule with this id.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id == id)
    }

    /// The rule for people who ask for it.
    #[must_use]
    pub fn explain(&self) -> String {
        format!(
            "{} ({})\n\n{}\n\nMeaning  {}\nRepair   {}\nSource   {}\n",
            self.id,
            self.severity.name(),
            self.statement,
            self.meaning,
            self.repair,
            self.source
        )
    }
}

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
        "Copy the file again from the machine; a file cut off while copying is the usual cause.";
    FILE_UNCLOSED = "file.unclosed", Warning,
        "The session was stopped, so that its header says when it ended.",
        "the format",
        "The machine or the session died, or the file was copied while the session ran: the last events are missing.",
        "Stop the session before copying: xperf -stop NAME, or logman stop NAME -ets.";
    FILE_EVENTS_LOST = "file.events-lost", Warning,
        "No event was lost.",
        "the header event's count",
        "Some events were dropped because no buffer was free. Anything that is missing may be among them.",
        "More and larger buffers: xperf -start NAME ... -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024.";
    FILE_BUFFERS_LOST = "file.buffers-lost", Warning,
        "No buffer was lost.",
        "the header event's count",
        "Whole buffers could not be written: the disk was too slow, or full.",
        "Write to a faster disk, or record less.";
    FILE_SEQUENCE_GAP = "file.sequence-gap", Note,
        "Buffers are numbered without gaps.",
        "the format; empty buffers are numbered and not written",
        "A number is missing. By itself that is no loss: a buffer that stayed empty is not written.",
        "Nothing, unless events or buffers are reported lost as well.";
    FILE_BUFFER_COUNT = "file.buffer-count", Note,
        "The header counts as many buffers as there are.",
        "the format",
        "The file was cut, or grew after its header was written.",
        "See what else is said about the file.";
    RUNDOWN_NONE = "rundown.none", Error,
        "A trace in which managed code ran holds a rundown.",
        "CLR rundown protocol, R7",
        "Methods that were compiled or loaded before the recording are unknown; their addresses stay numbers.",
        "Before stopping: xperf -start clrRundown -on a669021c-c450-4609-a035-5af59af4df18:0x138:0x5 -f clr2.etl, wait for it to be quiet, stop it, and merge both files.";
    RUNDOWN_MISSING = "rundown.missing", Error,
        "Every process that ran managed code and was alive during the rundown has one.",
        "CLR rundown protocol, R1 and R7",
        "This process was not run down, though others were: it was hung, shutting down, or its events were lost.",
        "Run the rundown again while the process is alive, with more buffers, and wait longer before stopping it.";
    RUNDOWN_UNCLOSED = "rundown.unclosed", Error,
        "A rundown that begins is completed.",
        "CLR rundown protocol, R5",
        "The rundown session was stopped too early, the process ended meanwhile, or events were lost: the methods enumerated last are missing.",
        "Wait for DCEndComplete before stopping the rundown session; large processes need seconds.";
    RUNDOWN_NO_INIT = "rundown.no-init", Warning,
        "A rundown that is completed began.",
        "CLR rundown protocol, R5",
        "The first events of the rundown are missing, the enumeration that they began perhaps as well.",
        "More buffers for the rundown session; see file.events-lost.";
    RUNDOWN_NESTED = "rundown.nested", Warning,
        "Rundowns of one kind and CLR follow each other.",
        "CLR rundown protocol, R5",
        "A second one began before the first was complete: the first one's Complete is missing.",
        "As for rundown.unclosed.";
    RUNDOWN_OUTSIDE = "rundown.outside", Warning,
        "What is enumerated stands between Init and Complete.",
        "CLR rundown protocol, R4",
        "Enumerated items without their bracket: Init was lost, or the session had only Threading or PerfTrack on.",
        "Enable the rundown provider with Loader, Jit and NGen: 0x138.";
    RUNDOWN_EXITED = "rundown.exited", Note,
        "A process that ran managed code lives until the rundown.",
        "CLR rundown protocol, R7",
        "The process ended before: only what it loaded and compiled during the recording is known.",
        "For short-lived processes record from before their start, with Loader, Jit and NGen events on.";
    SYMBOLS_UNRESOLVED = "symbols.unresolved", Warning,
        "Every address lies in a managed method or in an image.",
        "symbol resolution, S1 and S7",
        "These addresses have no owner: stubs that the runtime makes, code that was freed, or methods that nothing tells of. Above 5 % of a process's addresses this is an error.",
        "If rundown findings stand beside this one, mend those first.";
    SYMBOLS_COVERAGE = "symbols.coverage", Error,
        "The share of addresses that resolve is at least the one asked for.",
        "--min-coverage",
        "The trace does not reach the gate that was set for it.",
        "See the other findings for the reasons.";
    SYMBOLS_MODULE_UNKNOWN = "symbols.module-unknown", Warning,
        "Every module that a method names is told of.",
        "symbol resolution, S4",
        "Methods of these modules have no module name, and no PDB can be found for them.",
        "Enable LoaderKeyword (0x8) in both sessions.";
    SYMBOLS_OVERLAP = "symbols.overlap", Note,
        "At any time an address belongs to one method.",
        "symbol resolution, S2",
        "Code was told of where other code still was: an unload was not seen.",
        "Enable EndEnumerationKeyword (0x80) in the runtime session, so that unloads are told.";
    STACKS_UNDEFINED_KEY = "stacks.undefined-key", Warning,
        "Every key of a kernel stack is defined.",
        "kernel stack compression",
        "Stacks told by such keys cannot be shown.",
        "Stop the kernel session in order: the definitions come last.";
}

/// The catalogue as a page of documentation.
#[must_use]
pub fn page() -> String {
    let mut out = String::from(
        "# Rules of etlverify\n\nMade from the table in the code (`etlverify --rules`); `etlverify --explain RULE` \
         prints one. Ids never change.\n\nThree answers: a rule holds, or it is broken and gives a finding, or it \
         cannot be decided and the report's verdict says so.\n",
    );
    let mut family = "";
    for rule in RULES {
        if rule.family() != family {
            family = rule.family();
            // Writing into a String does not fail.
            let _ = write!(out, "\n## {family}\n");
        }
        let _ = write!(
            out,
            "\n### {}\n{} ({})\n\n- **Meaning:** {}\n- **Repair:** {}\n- **Source:** {}\n",
            rule.id,
            rule.statement,
            rule.severity.name(),
            rule.meaning,
            rule.repair,
            rule.source
        );
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
        assert_eq!(Rule::find("rundown.none"), Some(&RUNDOWN_NONE));
        assert_eq!(Rule::find("rundown"), None);
    }

    #[test]
    fn the_page_is_the_table() {
        let written = include_str!("../../../docs/rules.md");
        assert_eq!(written, page(), "write it anew: etlverify --rules > docs/rules.md");
    }
}
