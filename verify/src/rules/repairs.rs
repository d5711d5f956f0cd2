//! The very command lines that repair a trace, or the next recording, by rule.
//!
//! They run as they stand here: in the shell of the recorded machine those of Windows, anywhere those of this project.

use super::catalogue::Rule;

/// The runtime session of the documents: with loads, unloads and jits at level 5.
const RUNTIME: &str =
    "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl";
/// The same with room for bursts.
const RUNTIME_ROOMY: &str = "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024";
/// The same with StackKeyword.
const RUNTIME_STACKS: &str = "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x4001CCBD:0x5 -f clr1.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024";
/// The same on another disk than Windows'.
const RUNTIME_DISK: &str = "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f D:\\clr1.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024";
/// The same with the clock that all sessions should have.
const RUNTIME_CLOCK: &str = "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl -ClockType PerfCounter";
/// The kernel's processes, images and samples with their stacks.
const KERNEL: &str = "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk PROFILE -f kernel.etl";
/// An end rundown: EndRundown, NGen, Jit and Loader.
const END: &str =
    "xperf -start clrRundown -on a669021c-c450-4609-a035-5af59af4df18:0x138:0x5 -f clr2.etl";
/// The same with room: it writes everything at once.
const END_ROOMY: &str = "xperf -start clrRundown -on a669021c-c450-4609-a035-5af59af4df18:0x138:0x5 -f clr2.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024";
/// A start rundown: StartRundown, NGen, Jit and Loader.
const START: &str =
    "xperf -start clrStart -on a669021c-c450-4609-a035-5af59af4df18:0x78:0x5 -f clr0.etl";
const WAIT: &str = "timeout /t 15";
const WAIT_LONG: &str = "timeout /t 60";
const STOP_START: &str = "xperf -stop clrStart";
const STOP_END: &str = "xperf -stop clrRundown";
const STOP_RUNTIME: &str = "xperf -stop clr";
const STOP_KERNEL: &str = "xperf -stop";
const MERGE: &str = "xperf -merge clr1.etl clr2.etl merged.etl";
const MERGE_KERNEL: &str = "xperf -merge kernel.etl clr1.etl clr2.etl merged.etl";

const WHOLE: &[&str] = &[RUNTIME, END, WAIT, STOP_END, STOP_RUNTIME, MERGE];
const WITH_KERNEL: &[&str] =
    &[KERNEL, RUNTIME, END, WAIT, STOP_END, STOP_RUNTIME, STOP_KERNEL, MERGE_KERNEL];
const RUNDOWN: &[&str] = &[END, WAIT, STOP_END, STOP_RUNTIME, MERGE];
const RUNDOWN_LONG: &[&str] = &[END_ROOMY, WAIT_LONG, STOP_END, STOP_RUNTIME, MERGE];

/// Rules with the same repair, and its lines.
const COMMANDS: &[(&[&str], &[&str])] = &[
    (&["file.damaged", "file.buffer-count"], &["etlkit repair trace.etl -o repaired.etl"]),
    (&["file.out-of-order"], &["etlkit merge trace.etl -o ordered.etl"]),
    (&["file.outside-session", "file.clock"], &["etlkit info trace.etl"]),
    (&["file.buffers-lost"], &[RUNTIME_DISK]),
    (&["file.unclosed"], &[STOP_RUNTIME, "etlkit repair trace.etl -o repaired.etl"]),
    (&["file.events-lost", "filter.missing-loads", "symbols.jit-without-load"], &[RUNTIME_ROOMY]),
    (&["stacks.without-event", "stacks.missing"], &[RUNTIME_STACKS]),
    (
        &["filter.not-enabled"],
        &["etlverify --enable runtime:0x1CCBD:5 --enable rundown:0x138:5 trace.etl"],
    ),
    (
        &[
            "rundown.none",
            "rundown.missing",
            "rundown.outside-bracket",
            "rundown.partial",
            "rundown.endless",
            "rundown.duplicate-items",
        ],
        RUNDOWN,
    ),
    (
        &["rundown.unclosed", "rundown.no-init", "rundown.overlapping", "rundown.incomplete"],
        RUNDOWN_LONG,
    ),
    (
        &[
            "file.overwritten",
            "rundown.process-exited",
            "rundown.mixed",
            "rundown.out-of-order",
            "symbols.module-unknown",
            "symbols.assembly-unknown",
            "symbols.unnamed",
            "symbols.unnamed-precompiled",
            "symbols.overlapping",
            "symbols.loaded-twice",
            "merge.gap",
        ],
        WHOLE,
    ),
    (&["symbols.unload-unknown"], &[START, WAIT, STOP_START]),
    (&["symbols.unresolved", "symbols.coverage"], WITH_KERNEL),
    (&["symbols.no-module-pdb"], &["dotnet publish -c Release -p:DebugType=portable"]),
    (&["merge.one-sided", "file.duplicate-sequence"], &[MERGE]),
    (&["merge.different-machines"], &["etlverify clr1.etl clr2.etl"]),
    (&["merge.no-common-process"], &["etlkit info clr1.etl clr2.etl"]),
    (&["stacks.undefined-key"], &[STOP_KERNEL, MERGE_KERNEL]),
    (&["merge.no-image-ids", "symbols.no-image-pdb"], &[MERGE_KERNEL]),
    (&["merge.different-clocks", "stacks.before-event", "symbols.wrong-time"], &[RUNTIME_CLOCK]),
];

impl Rule {
    /// The file that the command lines of repairs name.
    pub(crate) const EXAMPLE_FILE: &'static str = "trace.etl";

    /// Command lines that repair a trace, or the next recording; none where there is nothing to be run.
    #[must_use]
    pub fn commands(&self) -> &'static [&'static str] {
        COMMANDS.iter().find(|(ids, _)| ids.contains(&self.id)).map_or(&[], |(_, lines)| lines)
    }

    /// The line for lost events of a session that has nothing to do with the CLR.
    pub(crate) fn more_buffers(session: &str) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || " _.-".contains(c);
        let named = !session.trim().is_empty() && session.chars().all(plain);
        let quote = if session.contains(' ') { "\"" } else { "" };
        named.then(|| format!("logman update trace {quote}{session}{quote} -nb 256 1024 -ets"))
    }

    /// What to do, and the command lines behind it, each on a line of its own.
    #[must_use]
    pub fn repair_lines(&self) -> String {
        [&[self.repair], self.commands()].concat().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_control::controller::{Action, CommandLine};

    #[test]
    fn every_line_of_a_controller_is_one_that_it_takes() {
        let mut seen = 0;
        for (ids, lines) in COMMANDS {
            assert!(ids.iter().all(|id| Rule::find(id).is_some()), "{ids:?}");
            for line in *lines {
                let tool = line.split(' ').next().unwrap();
                match tool {
                    "xperf" => {
                        let parsed: CommandLine =
                            line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
                        assert!(!parsed.actions.is_empty(), "{line}");
                        for action in &parsed.actions {
                            if let Action::Start(session) = action {
                                let asks =
                                    !session.providers.is_empty() || !session.kernel.is_empty();
                                assert!(asks, "{line}");
                            }
                        }
                        seen += 1;
                    }
                    "timeout" => {
                        assert!(line.split(' ').nth(2).unwrap().parse::<u32>().is_ok(), "{line}");
                    }
                    // `cli/tests/gates.rs` runs these.
                    "etlkit" | "etlverify" => {}
                    "dotnet" => assert!(line.starts_with("dotnet publish -"), "{line}"),
                    other => panic!("who runs {other}?"),
                }
            }
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn a_session_gets_more_buffers_by_its_name() {
        for name in ["AMSITraceSession", "NT Kernel Logger"] {
            let line = Rule::more_buffers(name).unwrap();
            let parsed: CommandLine = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            let updates = |a: &Action| matches!(a, Action::Update(session) if session.name == name);
            assert!(parsed.actions.iter().any(updates), "{parsed:?}");
        }
        for hostile in ["", " ", "a\" & del *", "%PATH%", "a\nb"] {
            assert_eq!(Rule::more_buffers(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn a_rule_has_one_set_of_lines() {
        let mut ids: Vec<_> = COMMANDS.iter().flat_map(|(ids, _)| ids.iter()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|w| w[0] != w[1]), "{ids:?}");
    }
}
