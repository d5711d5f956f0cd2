//! Tags of a scenario, for lists of scenarios.

use std::collections::BTreeSet;

use etl_control::enable::IdFilter;
use etl_format::constants::{ClockType, LogFileMode, PointerSize};

use super::{Action, EnablePlan, KernelEvent, ProviderKind, Scenario, SessionPlan, Sku};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

/// Words for the modes of sessions.
const MODES: [(LogFileMode, &str); 10] = [
    (LogFileMode::CIRCULAR, "circular file"),
    (LogFileMode::APPEND, "appending"),
    (LogFileMode::NEWFILE, "new files"),
    (LogFileMode::PREALLOCATE, "preallocated file"),
    (LogFileMode::BUFFERING, "in memory"),
    (LogFileMode::REAL_TIME, "real time"),
    (LogFileMode::NO_PER_PROCESSOR_BUFFERING, "no per-processor buffers"),
    (LogFileMode::INDEPENDENT_SESSION, "independent session"),
    (LogFileMode::SECURE, "secure session"),
    (LogFileMode::SYSTEM_LOGGER, "system logger"),
];

impl Scenario {
    /// Tags of this scenario, sorted: kinds of processes and providers, modes and clocks of
    /// sessions, what they enable, faults, merges.
    #[must_use]
    pub fn covers(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        let narrow = self.machine.pointer_size == PointerSize::P4;
        if narrow {
            found.insert("32-bit machine".to_owned());
        }
        for process in &self.processes {
            if process.pointer_size == Some(PointerSize::P4) && !narrow {
                found.insert("32-bit process (wow64)".to_owned());
            }
            for clr in &process.clrs {
                let sku = if clr.sku == Sku::Desktop { "desktop CLR" } else { "core CLR" };
                found.insert(sku.to_owned());
            }
            if process.clrs.len() > 1 {
                found.insert("two CLRs side by side".to_owned());
            }
        }
        for provider in &self.providers {
            let kind = match provider.kind {
                ProviderKind::Manifest => "manifest provider",
                ProviderKind::TraceLogging => "TraceLogging provider",
                ProviderKind::EventSource => "EventSource",
                ProviderKind::Classic => "classic provider",
                ProviderKind::Wpp => "WPP provider",
            };
            found.insert(kind.to_owned());
        }
        let mut say = |what: &str| {
            found.insert(what.to_owned());
        };
        for step in &self.steps {
            match &step.action {
                Action::Start(plan) => session(plan, &mut say),
                Action::Enable { plan, .. } => enable(plan, &mut say),
                Action::Disable { .. } => say("disabling"),
                Action::CaptureState { .. } => say("capture state"),
                Action::Flush { .. } => say("flush on demand"),
                Action::Merge { .. } => say("merge"),
                Action::Kernel { .. } => say("kernel flags changed"),
                _ => {}
            }
        }
        if self.end.is_some() {
            say("unclosed session");
        }
        found.into_iter().collect()
    }
}

fn session(plan: &SessionPlan, say: &mut dyn FnMut(&str)) {
    let mut sequential = plan.file.is_some();
    for (mode, word) in MODES {
        if plan.mode.has(mode) {
            say(word);
            let other = [LogFileMode::INDEPENDENT_SESSION, LogFileMode::SECURE];
            sequential &= other.contains(&mode) || mode == LogFileMode::NO_PER_PROCESSOR_BUFFERING;
        }
    }
    if plan.file.is_none() {
        say("in memory");
    } else if sequential {
        say(if plan.maximum_size > 0 {
            "sequential file with a largest size"
        } else {
            "sequential file"
        });
    }
    match plan.clock {
        ClockType::SYSTEM_TIME => say("clock: system time"),
        ClockType::CPU_CYCLE => say("clock: cycles"),
        _ => {}
    }
    if !plan.kernel.is_empty() {
        say("kernel events");
    }
    if plan.kernel.logs(KernelEvent::Sample) {
        say("samples");
    }
    if plan.kernel.stacks().next().is_some() {
        say("kernel stacks");
    }
    if plan.kernel.logs(KernelEvent::ContextSwitch) {
        say("context switches");
    }
    if plan.kernel.logs(KernelEvent::ReadyThread) {
        say("ready threads");
    }
    if plan.kernel.names().any(|(_, simulated)| !simulated) {
        say("kernel flags without events");
    }
    for plan in &plan.providers {
        enable(plan, say);
    }
    for fault in &plan.faults {
        say(&format!("fault: {}", fault.name()));
    }
}

fn enable(plan: &EnablePlan, say: &mut dyn FnMut(&str)) {
    let mask = if plan.rule.any == 0 { u64::MAX } else { plan.rule.any };
    if plan.provider == CLR_RUNTIME {
        say("runtime provider");
        if mask & 0x4000_0000 != 0 {
            say("CLR stacks");
        }
    }
    if plan.provider == CLR_RUNDOWN {
        if mask & 0x40 != 0 {
            say("start rundown");
        }
        if mask & 0x100 != 0 {
            say("end rundown");
        }
        if mask & 0x140 == 0 {
            say("rundown provider without a rundown");
        }
    }
    if plan.rule.ids != IdFilter::Any {
        say("filter by id");
    }
    if !plan.processes.is_empty() {
        say("filter by process");
    }
    if plan.rule.all != 0 {
        say("match-all keywords");
    }
    if plan.stacks {
        say("stacks as extended data");
    }
}
