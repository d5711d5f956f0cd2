//! Sessions, in the plain form that needs no controller.

use etl_control::controller::kernel_groups;
use etl_control::enable::{Enablement, IdFilter, MAX_IDS, Variant};
use etl_format::constants::{ClockType, LogFileMode};

use super::args::{Args, unknown};
use super::check::FaultedSession;
use super::reader::Reader;
use crate::model::{EnablePlan, Fault, KERNEL_WORDS, KernelEvent, KernelFlags, SessionPlan};
use crate::time::Nanos;

/// The shortest time between two samples.
const MIN_INTERVAL: Nanos = 100_000;

const CLOCKS: [(&str, ClockType); 3] =
    [("qpc", ClockType::QPC), ("system", ClockType::SYSTEM_TIME), ("cycle", ClockType::CPU_CYCLE)];

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
pub(super) fn session(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<SessionPlan> {
    let node = args.node;
    let at = args.span();
    let mut plan = SessionPlan::new(args.text(reader, "a name")?, "");
    plan.file = args.opt_text(reader, "file");
    plan.process = args.opt_text(reader, "process");
    if let Some(text) = args.opt_text(reader, "mode") {
        plan.mode = LogFileMode(0);
        for word in text.split(['|', ' ', ',', '+']).filter(|w| !w.is_empty()) {
            match MODES.iter().find(|(name, _)| *name == word) {
                Some((_, mode)) => plan.mode = LogFileMode(plan.mode.0 | mode.0),
                None => {
                    let words: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
                    let message = format!("there is no mode \"{word}\"");
                    reader.error(at, message, "mode", Some(words.join(", ")));
                }
            }
        }
    }
    if let Some(kb) = args.opt_small::<u32>(reader, "buffer-kb") {
        if (4..=16_384).contains(&kb) {
            plan.buffer_size = kb * 1024;
        } else {
            reader.error(at, "a buffer has 4 to 16384 KB", kb.to_string(), None);
        }
    }
    if let Some(buffers) = args.opt_small(reader, "buffers") {
        plan.buffers = buffers;
        if buffers == 0 {
            reader.error(at, "a session has at least one buffer", "buffers", None);
        }
    }
    if let Some(size) = args.opt_small(reader, "maximum-size") {
        plan.maximum_size = size;
    }
    if let Some(time) = args.opt_time(reader, "flush") {
        plan.flush_timer = time;
    }
    if let Some(clock) = args.opt_choice(reader, "clock", &CLOCKS) {
        plan.clock = clock;
    }
    args.finish(reader);
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "enable" => plan.providers.extend(enable(reader, args)),
            "kernel" => {
                let (flags, interval) = kernel(reader, args);
                plan.kernel = plan.kernel.clone().and(flags);
                plan.sample_interval = interval.unwrap_or(plan.sample_interval);
            }
            "fault" => plan.faults.extend(fault(reader, args)),
            _ => unknown(reader, node, "a session", "enable, kernel, fault"),
        }
    });
    Some(plan)
}

/// `enable "runtime" keywords="Loader Jit" level=5`
pub(super) fn enable(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<EnablePlan> {
    args.leaf();
    let provider = args.provider(reader)?;
    let mut rule = Enablement::new(0, 0);
    if let Some(level) = args.opt_small(reader, "level") {
        rule.level = level;
    }
    rule.any = args.opt_keywords(reader, "keywords", provider).unwrap_or(0);
    rule.all = args.opt_keywords(reader, "all", provider).unwrap_or(0);
    rule.ignore_keyword_0 = args.opt_bool(reader, "ignore-keyword-0").unwrap_or(false);
    if args.opt_bool(reader, "old-rule").unwrap_or(false) {
        rule.variant = Variant::Legacy;
    }
    let at = args.span();
    let ids = |text: Option<String>, reader: &mut Reader<'_>| {
        let text = text?;
        let ids: Option<Vec<u16>> =
            text.split([' ', ',']).filter(|w| !w.is_empty()).map(|w| w.parse().ok()).collect();
        match &ids {
            None => reader.error(at, "ids are numbers up to 65535", text, None),
            Some(ids) if ids.len() > MAX_IDS => {
                let help = Some(format!("a filter has at most {MAX_IDS}"));
                reader.error(at, "too many ids", ids.len().to_string(), help);
            }
            Some(_) => {}
        }
        ids
    };
    let only = args.opt_text(reader, "ids");
    let without = args.opt_text(reader, "not-ids");
    if only.is_some() && without.is_some() {
        let help = Some("a filter lets ids in, or keeps ids out".to_owned());
        reader.error(at, "ids and not-ids exclude each other", "here", help);
    }
    if let Some(list) = ids(only, reader) {
        rule.ids = IdFilter::In(list);
    }
    if let Some(list) = ids(without, reader) {
        rule.ids = IdFilter::Out(list);
    }
    let processes = args.opt_text(reader, "processes");
    let mut plan = EnablePlan { rule, ..EnablePlan::new(provider, 0, 0) };
    if let Some(text) = processes {
        let pids: Option<Vec<u32>> =
            text.split([' ', ',']).filter(|w| !w.is_empty()).map(|w| w.parse().ok()).collect();
        match pids.filter(|p| p.len() <= 8) {
            Some(pids) => plan.processes = pids,
            None => reader.error(at, "processes: up to eight ids", text, None),
        }
    }
    if let Some(text) = args.opt_text(reader, "executables") {
        plan.executables = text.split([' ', ',', ';']).map(str::to_owned).collect();
        plan.executables.retain(|name| !name.is_empty());
    }
    plan.stacks = args.opt_bool(reader, "stacks").unwrap_or(false);
    let stack_ids = args.opt_text(reader, "stack-ids");
    if let Some(list) = ids(stack_ids, reader) {
        plan.stacks = true;
        plan.stack_ids = IdFilter::In(list);
    }
    args.finish(reader);
    Some(plan)
}

/// `kernel "processes images profile stacks" interval="1ms" stackwalk="CSwitch"`: what is asked
/// for, and the time between two samples.
pub(super) fn kernel(reader: &mut Reader<'_>, mut args: Args<'_>) -> (KernelFlags, Option<Nanos>) {
    args.leaf();
    let at = args.span();
    let mut flags = KernelFlags::default();
    let text = args.text(reader, "what the kernel is to log").unwrap_or_default();
    for word in words(&text) {
        let known = KERNEL_WORDS.iter().find(|(name, _)| *name == word);
        if let Some((_, groups)) = known {
            groups.iter().for_each(|group| flags.groups.add(*group));
        } else if word == "stacks" {
            flags = flags.with_stack(KernelEvent::Sample);
        } else if let Ok(masks) = kernel_groups(&[word.to_owned()]) {
            flags.groups = flags.groups.with(masks);
        } else {
            let names: Vec<&str> = KERNEL_WORDS.iter().map(|(name, _)| *name).collect();
            let help = format!("{}, stacks, or a flag of xperf or logman", names.join(", "));
            let message = format!("the kernel does not log \"{word}\"");
            reader.error(at, message, "here", Some(help));
        }
    }
    let interval = args.opt_time(reader, "interval");
    if interval.is_some_and(|time| time < MIN_INTERVAL) {
        reader.error(at, "samples are at least 100us apart", "interval", None);
    }
    if let Some(text) = args.opt_text(reader, "stackwalk") {
        let names: Vec<String> = words(&text).map(str::to_owned).collect();
        flags.take_stacks(&names);
    }
    args.finish(reader);
    (flags, interval)
}

/// Words of a text, with blanks, plus signs, bars or commas between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '+', '|', ',']).filter(|word| !word.is_empty())
}

/// `fault "truncated" percent=60`
pub(super) fn fault(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<Fault> {
    let fault = fault_of(reader, &mut args);
    args.finish(reader);
    fault
}

/// `fault "truncated" in="clr" percent=60`: of a session that a command line starts.
pub(super) fn named_fault(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<(String, Fault)> {
    let session = args.opt_text(reader, "in");
    if session.is_none() {
        let help = Some("fault \"truncated\" in=\"clr\" percent=60".to_owned());
        reader.error(args.span(), "a fault needs a session", "in is missing", help);
    }
    let location = reader.location(args.span());
    let faulted = session.clone().map(|session| FaultedSession { session, location });
    reader.mentions.extend(faulted);
    let fault = fault_of(reader, &mut args);
    args.finish(reader);
    session.zip(fault)
}

fn fault_of(reader: &mut Reader<'_>, args: &mut Args<'_>) -> Option<Fault> {
    args.leaf();
    let kinds = [
        ("truncated", 0),
        ("flipped", 1),
        ("torn", 2),
        ("not-closed", 3),
        ("lost-buffers", 4),
        ("skew", 5),
        ("lost-events", 6),
        ("cut-rundown", 7),
        ("complete-missing", 8),
        ("wrong-keyword", 9),
        ("unmerged", 10),
        ("circular-wrap", 11),
    ];
    let kind = args.choice(reader, "its name", &kinds)?;
    let at = args.span();
    // A number that makes the fault one, or else its usual one.
    let mut number = |name, usual: u32, most: u32| {
        let number = args.opt_small(reader, name).unwrap_or(usual);
        if !(1..=most).contains(&number) {
            let help = (most < u32::MAX).then(|| format!("at most {most}"));
            let least = format!("{name} is at least 1");
            let message = if number == 0 { least } else { format!("{name} is too large") };
            reader.error(at, message, number.to_string(), help);
        }
        number.clamp(1, most)
    };
    const ANY: u32 = u32::MAX;
    let fault = match kind {
        0 => Fault::Truncated(number("percent", 50, 99) as u8),
        1 => Fault::Flipped(number("bits", 1, ANY)),
        2 => Fault::Torn,
        3 => Fault::NotClosed,
        4 => Fault::LostBuffers(number("every", 2, ANY)),
        5 => Fault::Skew(args.opt_small(reader, "ticks").unwrap_or(10_000)),
        6 => Fault::LostEvents(number("every", 10, ANY)),
        7 => Fault::CutRundown(number("after", 50, ANY)),
        8 => Fault::CompleteMissing,
        9 => Fault::WrongKeyword,
        10 => Fault::Unmerged,
        _ => Fault::CircularWrap(number("kb", 256, ANY)),
    };
    Some(fault)
}
