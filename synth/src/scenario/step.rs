//! Moments, and what happens at them.

use kdl::KdlNode;

use super::args::{Args, unknown};
use super::reader::Reader;
use super::{process, session};
use crate::distribution::Distribution;
use crate::model::{
    Action, GcPlan, HandleKind, KernelChange, ProcessPlan, ProviderPlan, Repeat, Scenario,
    ScriptLocation, Step, ThrowPlan, Work,
};

const HANDLES: [(&str, HandleKind); 5] = [
    ("strong", HandleKind::Strong),
    ("pinned", HandleKind::Pinned),
    ("weak", HandleKind::Weak),
    ("weak-long", HandleKind::WeakLong),
    ("dependent", HandleKind::Dependent),
];

/// `at "2s" { ... }` or `every "10ms" from="1s" until="3s" { ... }`; inside a process what happens
/// is what the process does.
pub(super) fn timed_block(
    reader: &mut Reader<'_>,
    mut args: Args<'_>,
    scenario: &mut Scenario,
    place: Option<usize>,
) {
    let node = args.node;
    let span = args.span();
    let (at, repeat) = if args.name() == "at" {
        (args.time(reader, "a time").unwrap_or(0), None)
    } else {
        let period = args.time(reader, "a period").unwrap_or(0);
        let from = args.opt_time(reader, "from").unwrap_or(period);
        let until = args.opt_time(reader, "until");
        if until.is_none() {
            let help = Some("every \"10ms\" from=\"1s\" until=\"3s\" { ... }".to_owned());
            reader.error(span, "every needs an end", "until is missing", help);
        }
        if until.is_some_and(|until| until < from) {
            let help = Some("from, or else the period, is when it happens first".to_owned());
            reader.error(span, "every ends before it begins", "until", help);
        }
        if period == 0 {
            reader.error(span, "the period is at least a nanosecond", "0", None);
        }
        let spread = args.opt_choice(reader, "spread", &Distribution::WORDS);
        let (period, until) = (period.max(1), until.unwrap_or(0));
        (from, Some(Repeat { period, until, spread }))
    };
    args.finish(reader);
    let mut steps = Vec::new();
    let mut made = Vec::new();
    reader.below(node, &mut |reader, node| {
        match place {
            Some(place) => {
                if let Some(work) = work(reader, node, &scenario.providers) {
                    steps.push(Action::Work { process: place, work });
                }
            }
            None if node.name().value() == "in" => {
                let step = |(action, place)| Step { at, repeat, action, location: Some(place) };
                made.extend(inside(reader, node, scenario).into_iter().map(step));
            }
            None => global(reader, node, &mut steps),
        }
        let place = reader.location(node.name().span());
        let step = |action| Step { at, repeat, action, location: Some(place.clone()) };
        made.extend(steps.drain(..).map(step));
    });
    scenario.steps.extend(made);
}

/// What happens outside of processes.
fn global(reader: &mut Reader<'_>, node: &KdlNode, steps: &mut Vec<Action>) {
    let mut args = Args::new(node);
    match args.name() {
        "session" => {
            steps.extend(session::session(reader, args).map(|p| Action::Start(Box::new(p))));
        }
        "stop" => {
            args.leaf();
            steps.extend(args.text(reader, "a session").map(|session| Action::Stop { session }));
            args.finish(reader);
        }
        "flush" => {
            args.leaf();
            let file = args.opt_text(reader, "into");
            let session = args.text(reader, "a session");
            steps.extend(session.map(|session| Action::Flush { session, file }));
            args.finish(reader);
        }
        "consume" => {
            args.leaf();
            let file = args.opt_text(reader, "into");
            let speed = args.opt_number(reader, "bytes-per-second").unwrap_or(100_000_000);
            let session = args.text(reader, "a session");
            steps.extend(session.map(|session| Action::Consume { session, speed, file }));
            args.finish(reader);
        }
        "leave" => {
            args.leaf();
            steps.extend(args.text(reader, "a session").map(|session| Action::Leave { session }));
            args.finish(reader);
        }
        "run" => super::controller::run(reader, args, steps),
        "merge" => {
            args.leaf();
            let inputs =
                args.text(reader, "the files, with blanks between them").unwrap_or_default();
            let inputs = inputs.split_whitespace().map(str::to_owned).collect();
            let identities = args.opt_bool(reader, "identities").unwrap_or(true);
            let compress = args.opt_bool(reader, "compress").unwrap_or(false);
            if let Some(output) = args.opt_text(reader, "into") {
                steps.push(Action::Merge { inputs, output, identities, compress });
            } else {
                reader.error(args.span(), "merge needs a file to make", "into is missing", None);
            }
            args.finish(reader);
        }
        "enable" => {
            // Named as in a session, and the session besides.
            let session = args.opt_text(reader, "in");
            match session {
                Some(session) => {
                    let plan = session::enable(reader, args);
                    steps.extend(plan.map(|plan| Action::Enable { session, plan }));
                }
                None => {
                    let help =
                        Some("enable \"runtime\" in=\"clr\" keywords=0x8 level=4".to_owned());
                    reader.error(args.span(), "enable needs a session", "in is missing", help);
                }
            }
        }
        "kernel" => {
            let Some(session) = args.opt_text(reader, "in") else {
                let help = Some("kernel \"processes images\" in=\"kernel\"".to_owned());
                reader.error(args.span(), "kernel needs a session", "in is missing", help);
                return;
            };
            let (flags, interval) = session::kernel(reader, args);
            let change = KernelChange { interval, ..KernelChange::to(flags) };
            steps.push(Action::Kernel { session, change });
        }
        "disable" | "capture-state" => {
            let capture = args.name() == "capture-state";
            args.leaf();
            let provider = args.provider(reader);
            let session = args.opt_text(reader, "in");
            if session.is_none() {
                reader.error(args.span(), "needs a session", "in is missing", None);
            }
            if let (Some(provider), Some(session)) = (provider, session) {
                steps.push(if capture {
                    Action::CaptureState { session, provider }
                } else {
                    Action::Disable { session, provider }
                });
            }
            args.finish(reader);
        }
        _ => {
            let known = "run, session, stop, merge, enable, kernel, disable, capture-state, flush, consume, leave, in";
            unknown(reader, node, "a moment", known);
        }
    }
}

/// What a process does, said from outside: `in "App.exe" { jit 1 }`, by its name or its id.
fn inside(
    reader: &mut Reader<'_>,
    node: &KdlNode,
    scenario: &Scenario,
) -> Vec<(Action, ScriptLocation)> {
    let mut args = Args::new(node);
    let name = args.text(reader, "a process").unwrap_or_default();
    let plans = &scenario.processes;
    let by_id = |p: &ProcessPlan| p.pid != 0 && p.pid.to_string() == name;
    let found = plans.iter().position(|p| p.name == name);
    let found = found.or_else(|| plans.iter().position(by_id));
    if found.is_none() {
        let names: Vec<&str> = plans.iter().map(|p| p.name.as_str()).collect();
        let help = Some(format!("processes so far: {}", names.join(", ")));
        reader.error(args.span(), format!("there is no process \"{name}\""), "here", help);
    }
    args.finish(reader);
    let mut made = Vec::new();
    reader.below(node, &mut |reader, node| {
        let work = work(reader, node, &scenario.providers);
        if let (Some(work), Some(process)) = (work, found) {
            made.push((Action::Work { process, work }, reader.location(node.name().span())));
        }
    });
    made
}

/// What a process does.
fn work(reader: &mut Reader<'_>, node: &KdlNode, providers: &[ProviderPlan]) -> Option<Work> {
    if node.name().value() == "raise" {
        return super::provider::raise(reader, node, providers);
    }
    let mut args = Args::new(node);
    args.leaf();
    let bytes = |args: &mut Args<'_>, reader: &mut Reader<'_>| {
        let n = args.number(reader, "how many bytes")?;
        Some(i64::try_from(n).unwrap_or(i64::MAX))
    };
    let count = |args: &mut Args<'_>, reader: &mut Reader<'_>| {
        let n = args.maybe_number(reader, "how many").unwrap_or(1);
        u32::try_from(n).unwrap_or(u32::MAX)
    };
    let work = match args.name() {
        "jit" => Work::Jit(count(&mut args, reader)),
        "tier" => Work::Tier(count(&mut args, reader)),
        "rejit" => Work::Rejit(count(&mut args, reader)),
        "forget" => Work::Forget(count(&mut args, reader)),
        "allocate" => Work::Allocate(count(&mut args, reader)),
        "throw" => {
            let many = count(&mut args, reader);
            let plan = ThrowPlan {
                filters: args.opt_small(reader, "filters").unwrap_or(0),
                finallys: args.opt_small(reader, "finallys").unwrap_or(0),
                inner: args.opt_bool(reader, "inner").unwrap_or(false),
                rethrow: args.opt_bool(reader, "rethrow").unwrap_or(false),
            };
            Work::Throw(many, plan)
        }
        "handle" => {
            let many = count(&mut args, reader);
            let kind = args.opt_choice(reader, "kind", &HANDLES).unwrap_or(HandleKind::Strong);
            Work::TakeHandles(many, kind)
        }
        "free-handle" => Work::FreeHandles(count(&mut args, reader)),
        "add-pressure" => Work::Press(bytes(&mut args, reader)?),
        "remove-pressure" => Work::Press(-bytes(&mut args, reader)?),
        "queue-work" => Work::Queue(count(&mut args, reader)),
        "queue-io" => Work::QueueIo(count(&mut args, reader)),
        "wait" => Work::Wait(args.time(reader, "how long")?),
        "enter-domain" => Work::EnterDomain(args.text(reader, "an app domain")?),
        "contend" => Work::Contend(count(&mut args, reader)),
        "gc" => {
            let generation = args.maybe_number(reader, "a generation").unwrap_or(0);
            if generation > 2 {
                let help = Some("0, 1 or 2".to_owned());
                let label = generation.to_string();
                reader.error(args.span(), "there is no such generation", label, help);
            }
            let generation = generation.min(2) as u8;
            Work::Gc(GcPlan {
                generation,
                induced: args.opt_bool(reader, "induced").unwrap_or(false),
                background: args.opt_bool(reader, "background").unwrap_or(false),
                compact: args.opt_bool(reader, "compact").unwrap_or(false),
            })
        }
        "grow-pool" | "shrink-pool" => {
            let by = i32::try_from(count(&mut args, reader)).unwrap_or(i32::MAX);
            let by = if args.name() == "grow-pool" { by } else { -by };
            let io = args.opt_bool(reader, "io").unwrap_or(false);
            if io { Work::IoPool(by) } else { Work::Pool(by) }
        }
        "load" => Work::LoadAssembly(args.text(reader, "an assembly")?),
        "unload" => Work::UnloadAssembly(args.text(reader, "an assembly")?),
        "load-domain" => Work::LoadDomain(args.text(reader, "an app domain")?),
        "unload-domain" => Work::UnloadDomain(args.text(reader, "an app domain")?),
        "load-image" => return process::image(reader, args).map(Work::LoadImage),
        "unload-image" => Work::UnloadImage(args.text(reader, "a path")?),
        "stub" => Work::Stub(count(&mut args, reader)),
        "run" => Work::Run(args.time(reader, "how long")?),
        "start-thread" => Work::StartThread,
        "end-thread" => Work::EndThread,
        "exit" => Work::Exit,
        _ => {
            let known = "jit, tier, rejit, forget, allocate, gc, handle, free-handle, add-pressure, \
                         remove-pressure, throw, contend, wait, queue-work, queue-io, grow-pool, shrink-pool, \
                         stub, run, raise, load, unload, load-domain, unload-domain, enter-domain, load-image, \
                         unload-image, start-thread, end-thread, exit";
            unknown(reader, node, "a process at a moment", known);
            return None;
        }
    };
    args.finish(reader);
    Some(work)
}
