//! Tags of a scenario, for lists of scenarios.

use std::collections::BTreeSet;

use etl_control::enable::IdFilter;
use etl_format::constants::{ClockType, LogFileMode, PointerSize};
use etl_schema::clr::keyword;

use super::{
    Action, EnablePlan, KernelEvent, ProviderKind, Request, Scenario, SessionPlan, Sku, Work,
};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

/// Words for the modes of sessions.
const MODES: [(LogFileMode, &str); 10] = [
    (LogFileMode::CIRCULAR, "circular file"),
    (LogFileMode::APPEND, "appending"),
    (LogFileMode::NEWFILE, "new files"),
    (LogFileMode::PREALLOCATE, "preallocated file"),
    (LogFileMode::BUFFERING, "in memory"),
    (LogFileMode::REAL_TIME, "real time"),
    (
        LogFileMode::NO_PER_PROCESSOR_BUFFERING,
        "no per-processor buffers",
    ),
    (LogFileMode::INDEPENDENT_SESSION, "independent session"),
    (LogFileMode::SECURE, "secure session"),
    (LogFileMode::SYSTEM_LOGGER, "system logger"),
];

#[derive(Default)]
struct Tags(BTreeSet<String>);

impl Tags {
    fn add(&mut self, tag: &str) {
        self.0.insert(tag.to_owned());
    }
}

impl Scenario {
    /// Tags of this scenario, sorted: kinds of processes and providers, modes and clocks of
    /// sessions, what they enable, faults, merges.
    #[must_use]
    pub fn covers(&self) -> Vec<String> {
        let mut tags = Tags::default();
        let narrow = self.machine.pointer_size == PointerSize::P4;
        if narrow {
            tags.add("32-bit machine");
        }
        for process in &self.processes {
            if process.pointer_size == Some(PointerSize::P4) && !narrow {
                tags.add("32-bit process (wow64)");
            }
            for clr in &process.clrs {
                let sku = if clr.sku == Sku::Desktop {
                    "desktop CLR"
                } else {
                    "core CLR"
                };
                tags.add(sku);
            }
            if process.clrs.len() > 1 {
                tags.add("two CLRs side by side");
            }
        }
        for provider in &self.providers {
            let kind = match provider.kind {
                ProviderKind::Manifest => "manifest provider",
                ProviderKind::TraceLogging => "TraceLogging provider",
                ProviderKind::EventSource => "EventSource",
                ProviderKind::Classic => "classic provider",
                ProviderKind::Wpp => "WPP provider",
                ProviderKind::Windows => "provider of Windows",
            };
            tags.add(kind);
        }
        for step in &self.steps {
            match &step.action {
                Action::Start(plan) => session(plan, &mut tags),
                Action::Session(_, Request::Enable(plan)) => enable(plan, &mut tags),
                Action::Session(_, Request::Disable(_)) => tags.add("disabling"),
                Action::Session(_, Request::CaptureState(_)) => tags.add("capture state"),
                Action::Session(_, Request::Flush(_)) => tags.add("flush on demand"),
                Action::Session(_, Request::Kernel(_)) => tags.add("kernel flags changed"),
                Action::Merge { .. } => tags.add("merge"),
                Action::Interrupt(_) => tags.add("interrupts"),
                Action::Replay { .. }
                | Action::Work {
                    work: Work::Resolve(_) | Work::Exchange(_),
                    ..
                } => tags.add("packets"),
                _ => {}
            }
        }
        if self.end.is_some() {
            tags.add("unclosed session");
        }
        tags.0.into_iter().collect()
    }
}

fn session(plan: &SessionPlan, tags: &mut Tags) {
    let mut sequential = plan.file.is_some();
    for (mode, word) in MODES {
        if plan.mode.has(mode) {
            tags.add(word);
            let other = [LogFileMode::INDEPENDENT_SESSION, LogFileMode::SECURE];
            sequential &= other.contains(&mode) || mode == LogFileMode::NO_PER_PROCESSOR_BUFFERING;
        }
    }
    if plan.file.is_none() {
        tags.add("in memory");
    } else if sequential {
        tags.add(if plan.maximum_size > 0 {
            "sequential file with a largest size"
        } else {
            "sequential file"
        });
    }
    match plan.clock {
        ClockType::SYSTEM_TIME => tags.add("clock: system time"),
        ClockType::CPU_CYCLE => tags.add("clock: cycles"),
        _ => {}
    }
    let kernel = &plan.kernel;
    let conditions = [
        (!kernel.is_empty(), "kernel events"),
        (kernel.logs(KernelEvent::Sample), "samples"),
        (kernel.stacks().next().is_some(), "kernel stacks"),
        (kernel.logs(KernelEvent::ContextSwitch), "context switches"),
        (kernel.logs(KernelEvent::ReadyThread), "ready threads"),
        (
            kernel.not_simulated().next().is_some(),
            "kernel flags without events",
        ),
    ];
    for (applies, tag) in conditions {
        if applies {
            tags.add(tag);
        }
    }
    for plan in &plan.providers {
        enable(plan, tags);
    }
    for fault in &plan.faults {
        tags.add(&format!("fault: {}", fault.name()));
    }
}

fn enable(plan: &EnablePlan, tags: &mut Tags) {
    let mask = if plan.rule.any == 0 {
        u64::MAX
    } else {
        plan.rule.any
    };
    let runtime = plan.provider == CLR_RUNTIME;
    let rundown = plan.provider == CLR_RUNDOWN;
    let start = mask & keyword::START_RUNDOWN != 0;
    let end = mask & keyword::END_RUNDOWN != 0;
    let conditions = [
        (runtime, "runtime provider"),
        (runtime && mask & keyword::STACK != 0, "CLR stacks"),
        (rundown && start, "start rundown"),
        (rundown && end, "end rundown"),
        (
            rundown && !start && !end,
            "rundown provider without a rundown",
        ),
        (plan.rule.ids != IdFilter::Any, "filter by id"),
        (!plan.processes.is_empty(), "filter by process"),
        (plan.rule.all != 0, "match-all keywords"),
        (plan.stacks, "stacks as extended data"),
    ];
    for (applies, tag) in conditions {
        if applies {
            tags.add(tag);
        }
    }
}
