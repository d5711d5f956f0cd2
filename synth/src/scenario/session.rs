//! `session`, `enable`, `kernel` and `fault` nodes.

use etl_control::controller::kernel_groups;
use etl_control::enable::{Enablement, IdFilter, MAX_IDS, Variant};
use etl_format::ProcessId;
use etl_format::constants::{ClockType, LogFileMode};

use super::args::Args;
use crate::model::{
    EnablePlan, EventPipePlan, Fault, KERNEL_WORDS, KernelEvent, KernelFlags, SessionFault,
    SessionPlan,
};
use crate::time::Nanos;
use etl_schema::providers::CLR_RUNDOWN;

/// The shortest time between two samples.
const MIN_INTERVAL: Nanos = 100_000;
/// Processes of a filter.
const MAX_PROCESSES: usize = 8;

const CLOCKS: [(&str, ClockType); 3] = [
    ("qpc", ClockType::QPC),
    ("system", ClockType::SYSTEM_TIME),
    ("cycle", ClockType::CPU_CYCLE),
];

/// Kinds of sessions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionKind {
    Etw,
    EventPipe,
}

const KINDS: [(&str, SessionKind); 2] = [
    ("etw", SessionKind::Etw),
    ("eventpipe", SessionKind::EventPipe),
];

/// Words for modes.
const MODES: [(&str, LogFileMode); 14] = [
    ("sequential", LogFileMode::SEQUENTIAL),
    ("circular", LogFileMode::CIRCULAR),
    ("newfile", LogFileMode::NEWFILE),
    ("append", LogFileMode::APPEND),
    ("preallocate", LogFileMode::PREALLOCATE),
    ("buffering", LogFileMode::BUFFERING),
    ("real-time", LogFileMode::REAL_TIME),
    ("kbytes", LogFileMode::USE_KBYTES_FOR_SIZE),
    ("independent", LogFileMode::INDEPENDENT_SESSION),
    ("no-per-processor", LogFileMode::NO_PER_PROCESSOR_BUFFERING),
    ("secure", LogFileMode::SECURE),
    ("private", LogFileMode::PRIVATE),
    ("paged-memory", LogFileMode::USE_PAGED_MEMORY),
    ("system-logger", LogFileMode::SYSTEM_LOGGER),
];

/// `session "clr" file="clr.etl" { enable "runtime" keywords=0x98 level=5 }`
pub(super) fn session(mut args: Args<'_, '_>) -> Option<SessionPlan> {
    let mut plan = SessionPlan::new(args.next::<String>("a name")?, "");
    plan.file = args.get("file");
    plan.process = args.get("process");
    if let Some(text) = args.get::<String>("mode") {
        plan.mode = LogFileMode(0);
        for word in words(&text) {
            match MODES.iter().find(|(name, _)| *name == word) {
                Some((_, mode)) => plan.mode = plan.mode | *mode,
                None => {
                    let known = MODES.map(|(name, _)| name).join(", ");
                    args.error(format!("there is no mode \"{word}\""), "mode", Some(&known));
                }
            }
        }
    }
    if let Some(kb) = args.within("buffer-kb", 4..=16_384u32, "a buffer has 4 to 16384 KB") {
        plan.buffer_size = kb * 1024;
    }
    let buffers = args.within("buffers", 1..=u32::MAX, "a session has at least one buffer");
    plan.buffers = buffers.unwrap_or(plan.buffers);
    args.set("maximum-size", &mut plan.maximum_size);
    plan.flush_timer = args.time("flush").unwrap_or(plan.flush_timer);
    plan.clock = args.choice("clock", &CLOCKS).unwrap_or(plan.clock);
    if args.choice("kind", &KINDS) == Some(SessionKind::EventPipe) {
        plan.event_pipe = Some(event_pipe(&mut args, &plan));
    }
    let span = args.span();
    let reader = args.children(&mut |mut args| match args.name() {
        "enable" => plan.providers.extend(enable(args)),
        "kernel" => {
            let (flags, interval) = kernel(args);
            plan.kernel = plan.kernel.clone().and(flags);
            plan.sample_interval = interval.unwrap_or(plan.sample_interval);
        }
        "fault" => plan.faults.extend(fault(args)),
        _ => args.unknown("a session", "enable, kernel, fault"),
    });
    if let Some(message) = event_pipe_conflict(&plan) {
        reader.error(span, message, "here", None);
    }
    Some(plan)
}

/// The settings of an EventPipe session.
fn event_pipe(args: &mut Args<'_, '_>, plan: &SessionPlan) -> EventPipePlan {
    if plan.process.is_none() {
        let help = Some("process=\"app.exe\": a session records one process");
        args.error("an EventPipe session needs a process", "here", help);
    }
    let mut event_pipe = EventPipePlan::default();
    if let Some(keywords) = args.keywords("rundown", CLR_RUNDOWN) {
        event_pipe.rundown = Some(keywords);
    }
    if args.flag("no-rundown") {
        event_pipe.rundown = None;
    }
    event_pipe
}

/// What an EventPipe session cannot record.
fn event_pipe_conflict(plan: &SessionPlan) -> Option<&'static str> {
    plan.event_pipe?;
    if !plan.kernel.is_empty() {
        return Some("an EventPipe session records no events of the kernel");
    }
    let mut providers = plan.providers.iter();
    if providers.any(|enabled| enabled.provider == CLR_RUNDOWN) {
        return Some("EventPipe has no rundown provider: `rundown` has its keywords");
    }
    None
}

/// `enable "runtime" keywords="Loader Jit" level=5`
pub(super) fn enable(mut args: Args<'_, '_>) -> Option<EnablePlan> {
    let provider = args.next("a provider")?;
    let mut rule = Enablement::new(args.get("level").unwrap_or(0), 0);
    rule.any = args.keywords("keywords", provider).unwrap_or(0);
    rule.all = args.keywords("all", provider).unwrap_or(0);
    rule.ignore_keyword_0 = args.flag("ignore-keyword-0");
    if args.flag("old-rule") {
        rule.variant = Variant::Legacy;
    }
    let only = args.list("ids", MAX_IDS);
    let without = args.list("not-ids", MAX_IDS);
    if only.is_some() && without.is_some() {
        let help = Some("a filter includes ids, or excludes ids");
        args.error("ids and not-ids exclude each other", "here", help);
    }
    rule.ids = match without.map(IdFilter::Out).or(only.map(IdFilter::In)) {
        Some(ids) => ids,
        None => IdFilter::Any,
    };
    let mut plan = EnablePlan {
        rule,
        ..EnablePlan::new(provider, 0, 0)
    };
    let processes: Vec<u32> = args.list("processes", MAX_PROCESSES).unwrap_or_default();
    plan.processes = processes.into_iter().map(ProcessId::new).collect();
    if let Some(text) = args.get::<String>("executables") {
        // As ETW separates them: names can contain spaces.
        let names = text
            .split(';')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        plan.executables = names.map(str::to_owned).collect();
    }
    plan.stacks = args.flag("stacks");
    if let Some(ids) = args.list("stack-ids", MAX_IDS) {
        plan.stacks = true;
        plan.stack_ids = IdFilter::In(ids);
    }
    args.finish();
    Some(plan)
}

/// `kernel "processes images profile stacks" interval="1ms" stackwalk="CSwitch"`: the flags, and
/// the time between two samples.
pub(super) fn kernel(mut args: Args<'_, '_>) -> (KernelFlags, Option<Nanos>) {
    let mut flags = KernelFlags::default();
    let text: String = args.next("what the kernel is to log").unwrap_or_default();
    for word in words(&text) {
        let kernel_word = KERNEL_WORDS.iter().find(|(name, _)| *name == word);
        if let Some((_, groups)) = kernel_word {
            groups.iter().for_each(|group| flags.groups.add(*group));
        } else if word == "stacks" {
            flags = flags.with_stack(KernelEvent::Sample);
        } else if let Ok(masks) = kernel_groups(&[word.to_owned()]) {
            flags.groups = flags.groups.with(masks);
        } else {
            let names = KERNEL_WORDS.map(|(name, _)| name).join(", ");
            let help = format!("{names}, stacks, or a flag of xperf or logman");
            args.error(
                format!("the kernel does not log \"{word}\""),
                "here",
                Some(&help),
            );
        }
    }
    let interval = args.time("interval");
    if interval.is_some_and(|time| time < MIN_INTERVAL) {
        args.error("samples are at least 100us apart", "interval", None);
    }
    if let Some(text) = args.get::<String>("stackwalk") {
        flags.take_stacks(&words(&text).map(str::to_owned).collect::<Vec<_>>());
    }
    args.finish();
    (flags, interval)
}

/// Words of a text, separated by spaces, plus signs, bars or commas.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '+', '|', ','])
        .filter(|word| !word.is_empty())
}

/// `fault "truncated" in="clr" percent=60`: a fault of a session that a command line starts.
pub(super) fn named_fault(mut args: Args<'_, '_>) -> Option<SessionFault> {
    let session: Option<String> = args.get("in");
    match session.clone() {
        Some(session) => {
            let location = args.location();
            args.reader.faulted.push((session, location));
        }
        None => {
            let help = Some("fault \"truncated\" in=\"clr\" percent=60");
            args.error("a fault needs a session", "in is missing", help);
        }
    }
    let fault = fault(args)?;
    Some(SessionFault {
        session: session?,
        fault,
    })
}

/// `fault "truncated" percent=60`
fn fault(mut args: Args<'_, '_>) -> Option<Fault> {
    let fault = args.next_choice("its name", &Fault::ALL)?;
    let fault = match fault {
        Fault::Truncated(percent) => {
            let percent = args
                .within("percent", 1..=99, "percent is 1 to 99")
                .unwrap_or(percent);
            Fault::Truncated(percent)
        }
        Fault::Flipped(bits) => Fault::Flipped(count(&mut args, "bits", bits)),
        Fault::LostBuffers(every) => Fault::LostBuffers(count(&mut args, "every", every)),
        Fault::LostEvents(every) => Fault::LostEvents(count(&mut args, "every", every)),
        Fault::CutRundown(after) => Fault::CutRundown(count(&mut args, "after", after)),
        Fault::CircularWrap(kb) => Fault::CircularWrap(count(&mut args, "kb", kb)),
        Fault::Skew(ticks) => Fault::Skew(args.get("ticks").unwrap_or(ticks)),
        other => other,
    };
    args.finish();
    Some(fault)
}

/// A property that is a number from 1, or the default.
fn count(args: &mut Args<'_, '_>, name: &'static str, default: u32) -> u32 {
    args.within(name, 1..=u32::MAX, &format!("{name} is at least 1"))
        .unwrap_or(default)
}
