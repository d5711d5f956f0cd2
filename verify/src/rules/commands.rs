//! The command lines of remedies.
//!
//! All of them run unchanged: lines with tools of Windows on the recorded machine, lines with tools
//! of this project on any machine.

/// The file that command lines name. Reports replace it by the name of the trace.
pub(crate) const EXAMPLE_FILE: &str = "trace.etl";

macro_rules! runtime {
    ($mask:literal, $rest:literal) => {
        concat!(
            "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:",
            $mask,
            ":0x5 -f ",
            $rest
        )
    };
}

macro_rules! rundown {
    ($name:literal, $mask:literal, $rest:literal) => {
        concat!(
            "xperf -start ",
            $name,
            " -on a669021c-c450-4609-a035-5af59af4df18:",
            $mask,
            ":0x5 -f ",
            $rest
        )
    };
}

/// The runtime session of the documents: loads, unloads and JIT events at level 5.
const RUNTIME: &str = runtime!("0x1CCBD", "clr1.etl");
/// The same with more and larger buffers.
pub(super) const RUNTIME_LARGE: &str = runtime!(
    "0x1CCBD",
    "clr1.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024"
);
/// The same with StackKeyword.
pub(super) const RUNTIME_STACKS: &str = runtime!(
    "0x4001CCBD",
    "clr1.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024"
);
/// The same on another disk.
pub(super) const RUNTIME_DISK: &str = runtime!(
    "0x1CCBD",
    "D:\\clr1.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024"
);
/// The same with the clock that all sessions should use.
pub(super) const RUNTIME_CLOCK: &str = runtime!("0x1CCBD", "clr1.etl -ClockType PerfCounter");
/// The kernel's processes, images, and samples with their stacks.
pub(super) const KERNEL: &str =
    "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk PROFILE -f kernel.etl";
/// An end rundown: EndRundown, NGen, Jit and Loader.
const END: &str = rundown!("clrRundown", "0x138", "clr2.etl");
/// The same with large buffers: a rundown writes everything at once.
const END_LARGE: &str = rundown!(
    "clrRundown",
    "0x138",
    "clr2.etl -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024"
);
/// A start rundown: StartRundown, NGen, Jit and Loader.
const START: &str = rundown!("clrStart", "0x78", "clr0.etl");
const WAIT: &str = "timeout /t 15";
const STOP_END: &str = "xperf -stop clrRundown";
pub(super) const STOP_RUNTIME: &str = "xperf -stop clr";
pub(super) const STOP_KERNEL: &str = "xperf -stop";
pub(super) const MERGE: &str = "xperf -merge clr1.etl clr2.etl merged.etl";
pub(super) const MERGE_KERNEL: &str = "xperf -merge kernel.etl clr1.etl clr2.etl merged.etl";
pub(super) const REPAIR: &str = "etlkit repair trace.etl -o repaired.etl";

/// A whole recording of the CLR.
pub(super) const RECORDING: &[&str] = &[RUNTIME, END, WAIT, STOP_END, STOP_RUNTIME, MERGE];
/// The same with the kernel.
pub(super) const RECORDING_WITH_KERNEL: &[&str] = &[
    KERNEL,
    RUNTIME,
    END,
    WAIT,
    STOP_END,
    STOP_RUNTIME,
    STOP_KERNEL,
    MERGE_KERNEL,
];
/// The end of a recording: an end rundown, and the merge.
pub(super) const END_RUNDOWN: &[&str] = &[END, WAIT, STOP_END, STOP_RUNTIME, MERGE];
/// The same for large processes.
pub(super) const LARGE_END_RUNDOWN: &[&str] =
    &[END_LARGE, "timeout /t 60", STOP_END, STOP_RUNTIME, MERGE];
/// A start rundown in a session of its own.
pub(super) const START_RUNDOWN: &[&str] = &[START, WAIT, "xperf -stop clrStart"];

/// The command line for lost events of a session without CLR events; `None` if the name of the
/// session would have to be escaped.
pub(crate) fn more_buffers(session: &str) -> Option<String> {
    let is_plain = session
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || " _.-".contains(c));
    if session.trim().is_empty() || !is_plain {
        return None;
    }
    let quote = if session.contains(' ') { "\"" } else { "" };
    Some(format!(
        "logman update trace {quote}{session}{quote} -nb 256 1024 -ets"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RULES;
    use etl_control::controller::{Action, CommandLine};

    #[test]
    fn commands_are_accepted_by_the_tools_they_name() {
        let mut seen = 0;
        for line in RULES.iter().flat_map(|rule| rule.commands) {
            match line.split(' ').next().unwrap() {
                "xperf" => {
                    let parsed: CommandLine =
                        line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
                    assert!(!parsed.actions.is_empty(), "{line}");
                    for action in &parsed.actions {
                        if let Action::Start(session) = action {
                            let asks = !session.providers.is_empty() || !session.kernel.is_empty();
                            assert!(asks, "{line}");
                        }
                    }
                    seen += 1;
                }
                "timeout" => {
                    assert!(
                        line.split(' ').nth(2).unwrap().parse::<u32>().is_ok(),
                        "{line}"
                    );
                }
                // `cli/tests/gates.rs` runs these.
                "etlkit" | "etlverify" => {}
                "dotnet" => assert!(line.starts_with("dotnet publish -"), "{line}"),
                other => panic!("unknown tool {other}"),
            }
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn more_buffers_names_a_plain_session_only() {
        for name in ["AMSITraceSession", "NT Kernel Logger"] {
            let line = more_buffers(name).unwrap();
            let parsed: CommandLine = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            let updates = |a: &Action| matches!(a, Action::Update(session) if session.name == name);
            assert!(parsed.actions.iter().any(updates), "{parsed:?}");
        }
        for hostile in ["", " ", "a\" & del *", "%PATH%", "a\nb"] {
            assert_eq!(more_buffers(hostile), None, "{hostile}");
        }
    }
}
