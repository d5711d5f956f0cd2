//! What `etlkit analyze summary` says of the next steps: commands that show more, and how missing
//! data are recorded.

use std::collections::BTreeMap;

use etl_analysis::behavior::presence::{Presence, Subject};
use etl_tables::rows::contents::{CommandRow, EventKindRow, FailureRow};

use crate::diagnostics::plural;

/// Providers that have a command of their own.
const MAX_PROVIDERS: usize = 3;

/// Beginnings of the names of providers whose events describe the recording itself.
const OF_RECORDING: [&str; 3] = ["EventTrace", "SystemConfig", "KernelTraceControl"];

/// How the kernel is recorded if a recording has no event of it that an analysis needs.
const KERNEL: &str = "events of the kernel: xperf -on PROC_THREAD+LOADER+PROFILE+CSWITCH\
                      +DISPATCHER+DISK_IO -stackwalk Profile+CSwitch+ReadyThread";

/// The same for .NET.
const RUNTIME: &str = "events of .NET: xperf -start clr -on \
                       Microsoft-Windows-DotNETRuntime:0x1c039:5";

/// The commands that show more of these files.
pub(super) fn commands(
    files: &[String],
    kinds: &[EventKindRow<'_>],
    failures: &[FailureRow<'_>],
) -> Vec<CommandRow> {
    let files = files.join(" ");
    let mut providers: BTreeMap<&str, u64> = BTreeMap::new();
    for row in kinds {
        let provider = &row.kind().provider;
        if OF_RECORDING.iter().any(|name| provider.starts_with(name)) {
            continue;
        }
        *providers.entry(provider).or_default() += row.count();
    }
    let mut largest: Vec<(&str, u64)> = providers.into_iter().collect();
    largest.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let mut rows = Vec::new();
    if let Some(failure) = failures.first() {
        let provider = quoted(unbraced(&failure.kind().provider));
        let event = quoted(&failure.kind().event);
        rows.push(CommandRow {
            command: format!("etlkit dump -p {provider} --event {event} {files}"),
            shows: "the events with the most frequent failure".to_owned(),
        });
    }
    for (provider, count) in largest.into_iter().take(MAX_PROVIDERS) {
        let provider = quoted(unbraced(provider));
        let events = plural(count, "event", "events");
        rows.push(CommandRow {
            command: format!("etlkit dump -p {provider} {files}"),
            shows: format!("its {events} with all fields"),
        });
    }
    rows.push(CommandRow {
        command: format!("etlkit info {files}"),
        shows: "the session, buffers, losses, all kinds of events".to_owned(),
    });
    rows
}

/// A GUID without its braces, which some shells would interpret.
fn unbraced(provider: &str) -> &str {
    provider.trim_matches(['{', '}'])
}

/// A word of a command line.
fn quoted(word: &str) -> String {
    if word.contains([' ', '(', ')', '&', ';']) {
        format!("\"{word}\"")
    } else {
        word.to_owned()
    }
}

/// What the recording lacks, and what would have recorded it.
pub(super) fn missing(presence: &Presence) -> Vec<String> {
    let mut lines = Vec::new();
    let mut of_kernel = Subject::ALL.to_vec();
    let mut of_runtime = of_kernel.clone();
    of_kernel.retain(|subject| !subject.is_of_runtime());
    of_runtime.retain(|subject| subject.is_of_runtime());
    add_missing(&mut lines, presence, &of_kernel, KERNEL);
    add_missing(&mut lines, presence, &of_runtime, RUNTIME);
    lines
}

/// Adds the subjects that have no events. If none of them has any, one line says so.
fn add_missing(lines: &mut Vec<String>, presence: &Presence, subjects: &[Subject], all: &str) {
    if subjects.iter().all(|&subject| presence.count(subject) == 0) {
        lines.push(all.to_owned());
        return;
    }
    for &subject in subjects {
        if presence.count(subject) == 0 {
            lines.push(format!("{}: {}", subject.name(), subject.recorded_by()));
        }
    }
}
