//! Processes with a CLR that logged nothing.

use etl_analysis::address::Range;
use etl_analysis::machine::Process;
use etl_schema::clr::Enumeration;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::checks::Facts;
use crate::checks::times::TimeSpan;
use crate::finding::Severity;
use crate::rules::commands::RUNTIME_LARGE;
use crate::rules::{Check, Rule};

pub(in crate::rules) const SILENT_PROCESS: Rule = Rule {
    id: "filter.silent-process",
    statement: "A process that loads a CLR while its provider is enabled logs events of it, and one \
                that has a CLR during a rundown of others is in it.",
    severity: Severity::Warning,
    source: "what the CLR logs, compared with the kernel's events",
    protocol: &["E7"],
    meaning: "The process ran managed code, and no event of its CLR is in the trace: they were \
              lost, or removed by a filter. A process that is suspended, or whose CLR is set to log \
              nothing, is not in a rundown either.",
    remedy: "Do not filter by process, and use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: silent_process,
};

/// The images of a CLR that logs events.
const RUNTIMES: [&str; 2] = ["clr.dll", "coreclr.dll"];
/// The compiler of these CLRs.
const COMPILER: &str = "clrjit.dll";

fn silent_process(check: &mut Check<'_>) {
    let enablements = || check.facts.admission.enablements(CLR_RUNTIME);
    // Sessions of a low level get none of the events that every CLR logs.
    let gets_starts = enablements().next().is_some()
        && enablements().all(|(enabled, with)| {
            !enabled.is_limited && with.admits_level(RUNTIME_INFORMATION_LEVEL)
        });
    let rundowns = end_rundowns(check.facts);
    for process in check.facts.machine.processes() {
        if process.is_managed() || gets_starts && silent_start(check, process) {
            continue;
        }
        if let Some(rundowns) = rundowns {
            silent_rundown(check, process, rundowns);
        }
    }
}

/// The level of the events that every CLR logs when it starts.
const RUNTIME_INFORMATION_LEVEL: u8 = 4;

/// From the first beginning to the last end of the whole end rundowns, if the kernel's events show
/// which processes lived then.
fn end_rundowns(facts: &Facts) -> Option<TimeSpan> {
    if facts.admission.is_limited(CLR_RUNDOWN) {
        return None;
    }
    let brackets = facts.machine.processes().iter().flat_map(Process::brackets);
    let whole = brackets.filter(|b| b.is_whole() && b.kind == Enumeration::End);
    let span = TimeSpan {
        from: whole.clone().filter_map(|b| b.opened).min()?,
        to: whole.filter_map(|b| b.closed).max()?,
    };
    let kernel = facts.machine.kernel_span()?;
    if span.from > span.to || kernel.last < span.to {
        return None;
    }
    Some(span)
}

/// Adds a finding if a process had a CLR from before the rundowns of others until after them, and
/// logged no event of it.
fn silent_rundown(check: &mut Check<'_>, process: &Process, rundowns: TimeSpan) {
    let TimeSpan { from, to } = rundowns;
    let has_lived = process.started().is_none_or(|started| started < from)
        && process.ended().is_none_or(|ended| ended > to);
    if !has_lived {
        return;
    }
    let images = images_of(check.facts, process).filter(|image| {
        image.range.from.is_none_or(|loaded| loaded < from)
            && image.range.to.is_none_or(|unloaded| unloaded > to)
    });
    let Some(runtime) = runtime_of(images) else {
        return;
    };
    let message = format!(
        "the process had {runtime} loaded during the rundowns of others, but logged no event of it"
    );
    check
        .report(message)
        .about(process, Some(from))
        .unless_lost(Some(from), Some(to));
}

/// An image that a process has or had.
struct LoadedImage<'f> {
    range: Range,
    name: &'f str,
}

/// The images that a process has or had.
fn images_of<'f>(facts: &'f Facts, process: &'f Process) -> impl Iterator<Item = LoadedImage<'f>> {
    let past = process.images().past().iter().copied();
    let ranges = past.chain(process.images().alive());
    ranges.filter_map(|range| {
        let image = facts.machine.images().get(range.tag.id)?;
        Some(LoadedImage {
            range,
            name: &image.name,
        })
    })
}

/// The runtime among the images of a process, if its compiler is also loaded.
fn runtime_of<'f>(images: impl Iterator<Item = LoadedImage<'f>>) -> Option<&'static str> {
    let names: Vec<&str> = images.map(|image| image.name).collect();
    if !names.contains(&COMPILER) {
        return None;
    }
    RUNTIMES.into_iter().find(|name| names.contains(name))
}

/// Adds a finding, and returns true, if a process loaded a CLR while its provider was enabled, and
/// logged no event of it.
fn silent_start(check: &mut Check<'_>, process: &Process) -> bool {
    let facts = check.facts;
    let Some(started) = process.started() else {
        return false;
    };
    let enabled = facts.runtime_on.loader.since(started);
    if enabled.is_none_or(|enabled| enabled >= started) {
        return false;
    }
    let last_event = facts.machine.runtime_span().map(|span| span.last);
    if last_event.is_none_or(|last| last <= started) {
        return false;
    }
    let Some(runtime) = runtime_of(images_of(facts, process)) else {
        return false;
    };
    let message = format!(
        "the process loaded {runtime} while the provider of the CLR was enabled, but logged no \
         event of it"
    );
    check
        .report(message)
        .about(process, Some(started))
        .unless_lost(Some(started), None);
    true
}
