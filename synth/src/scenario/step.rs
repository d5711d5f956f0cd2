//! `at` and `every` nodes: requests of controllers, and work of processes.

use super::args::{Args, Time};
use super::{controller, interrupt, io_work, network, process, raise, session};
use crate::distribution::Distribution;
use crate::model::{
    Action, CallPlan, CalledMethods, ClrWork, FieldValue, GcPlan, HandleKind, KernelChange, Repeat,
    Request, Scenario, Step, ThrowPlan, Work,
};

const HANDLES: [(&str, HandleKind); 5] = [
    ("strong", HandleKind::Strong),
    ("pinned", HandleKind::Pinned),
    ("weak", HandleKind::Weak),
    ("weak-long", HandleKind::WeakLong),
    ("dependent", HandleKind::Dependent),
];

/// `at "2s" { ... }` or `every "10ms" from="1s" until="3s" { ... }`; inside of a process the nodes
/// are work of the process.
pub(super) fn timed_block(mut args: Args<'_, '_>, scenario: &mut Scenario, process: Option<usize>) {
    let (at, repeat) = if args.name() == "at" {
        (args.next("a time").map_or(0, |Time(time)| time), None)
    } else {
        every(&mut args)
    };
    let mut steps = Vec::new();
    args.children(&mut |args| {
        let location = args.location();
        let mut add = |action, location| {
            steps.push(Step {
                at,
                repeat,
                action,
                location: Some(location),
                command: None,
            });
        };
        match process {
            Some(process) => {
                if let Some(work) = work(args, scenario) {
                    add(Action::Work { process, work }, location);
                }
            }
            None if args.name() == "in" => inside(args, scenario, &mut add),
            None if args.name() == "run" => {
                for (action, command) in controller::run(args) {
                    let location = Some(location.clone());
                    steps.push(Step {
                        at,
                        repeat,
                        action,
                        location,
                        command: Some(command),
                    });
                }
            }
            None => global(args, &mut |action| add(action, location.clone())),
        }
    });
    scenario.steps.extend(steps);
}

/// The first time and the repetition of `every "10ms" from="1s" until="3s"`.
fn every(args: &mut Args<'_, '_>) -> (u64, Option<Repeat>) {
    let period = args.next("a period").map_or(0, |Time(time)| time);
    let from = args.time("from").unwrap_or(period);
    let errors = args.reader.errors.len();
    let until = args.time("until");
    if until.is_none() && args.reader.errors.len() == errors {
        let help = Some("every \"10ms\" from=\"1s\" until=\"3s\" { ... }");
        args.error("every needs an end", "until is missing", help);
    }
    if until.is_some_and(|until| until < from) {
        let help = Some("it happens first at from, or else after one period");
        args.error("every ends before it begins", "until", help);
    }
    if period == 0 {
        args.error("the period is at least a nanosecond", "0", None);
    }
    let spread = args.choice("spread", &Distribution::WORDS);
    (
        from,
        Some(Repeat {
            period: period.max(1),
            until: until.unwrap_or(0),
            spread,
        }),
    )
}

/// A request of a controller.
fn global(mut args: Args<'_, '_>, add: &mut dyn FnMut(Action)) {
    let name = args.name();
    match name {
        "session" => {
            session::session(args)
                .into_iter()
                .for_each(|plan| add(Action::Start(Box::new(plan))));
        }
        "stop" | "leave" | "flush" | "consume" => session_request(args, add),
        "interrupt" => interrupt::interrupt(args).into_iter().for_each(add),
        "replay" => network::replay(args).into_iter().for_each(add),
        "merge" => merge(args, add),
        "enable" | "kernel" | "disable" | "capture-state" => provider_request(args, add),
        _ => {
            let known = "run, session, stop, merge, enable, kernel, disable, capture-state, \
                         flush, consume, leave, replay, interrupt, in";
            args.unknown("at", known);
        }
    }
}

/// `stop`, `leave`, `flush` and `consume`, which concern one session.
fn session_request(mut args: Args<'_, '_>, add: &mut dyn FnMut(Action)) {
    let name = args.name();
    let mut file = None;
    if matches!(name, "flush" | "consume") {
        file = args.get("into");
    }
    let mut speed = None;
    if name == "consume" {
        speed = args.get("bytes-per-second");
    }
    if let Some(session) = args.next("a session") {
        let request = match name {
            "stop" => Request::Stop,
            "leave" => Request::Leave,
            "flush" => Request::Flush(file),
            _ => Request::Consume {
                speed: speed.unwrap_or(100_000_000),
                file,
            },
        };
        add(Action::Session(session, request));
    }
    args.finish();
}

/// `merge "clr.etl" "kernel.etl" into="all.etl"`
fn merge(mut args: Args<'_, '_>, add: &mut dyn FnMut(Action)) {
    let first: String = args
        .next("the files, separated by spaces")
        .unwrap_or_default();
    let mut inputs: Vec<String> = vec![first];
    inputs.extend(core::iter::from_fn(|| args.maybe("a file")));
    // If there are several arguments, each is a name and may contain spaces.
    if let [only] = &*inputs {
        inputs = only.split_whitespace().map(str::to_owned).collect();
    }
    let identities = args.get("identities").unwrap_or(true);
    let compress = args.flag("compress");
    match args.get("into") {
        Some(output) => add(Action::Merge {
            inputs,
            output,
            identities,
            compress,
        }),
        None => args.error("merge needs an output file", "into is missing", None),
    }
    args.finish();
}

/// `enable`, `disable` and `capture-state` of a provider, and `kernel` flags, `in` a session.
fn provider_request(mut args: Args<'_, '_>, add: &mut dyn FnMut(Action)) {
    let name = args.name();
    let Some(session) = args.get::<String>("in") else {
        let help = match name {
            "kernel" => "kernel \"processes images\" in=\"kernel\"".to_owned(),
            _ => format!("{name} \"runtime\" in=\"clr\""),
        };
        let message = format!("{name} needs a session");
        return args.error(message, "in is missing", Some(&help));
    };
    let request = match name {
        "enable" => {
            let Some(plan) = session::enable(args) else {
                return;
            };
            Request::Enable(plan)
        }
        "kernel" => {
            let (flags, interval) = session::kernel(args);
            Request::Kernel(KernelChange {
                interval,
                ..KernelChange::to(flags)
            })
        }
        _ => {
            let Some(provider) = args.next("a provider") else {
                return;
            };
            args.finish();
            if name == "disable" {
                Request::Disable(provider)
            } else {
                Request::CaptureState(provider)
            }
        }
    };
    add(Action::Session(session, request));
}

/// `in "App.exe" { jit 1 }`: work of a process, given by its name or its id.
fn inside(
    mut args: Args<'_, '_>,
    scenario: &mut Scenario,
    add: &mut dyn FnMut(Action, crate::model::ScriptLocation),
) {
    let name: String = args.next("a process").unwrap_or_default();
    let plans = &scenario.processes;
    let mut index = plans.iter().position(|p| p.name == name);
    if index.is_none() {
        index = plans
            .iter()
            .position(|p| p.pid != 0 && p.pid.to_string() == name);
    }
    if index.is_none() {
        let names: Vec<&str> = plans.iter().map(|p| p.name.as_str()).collect();
        let help = format!("processes so far: {}", names.join(", "));
        args.error(
            format!("there is no process \"{name}\""),
            "here",
            Some(&help),
        );
    }
    args.children(&mut |args| {
        let location = args.location();
        if let (Some(work), Some(process)) = (work(args, scenario), index) {
            add(Action::Work { process, work }, location);
        }
    });
}

/// Work of a process.
fn work(mut args: Args<'_, '_>, scenario: &mut Scenario) -> Option<Work> {
    let work = match args.name() {
        "raise" => return raise::raise(args, scenario),
        "open-file" | "read-file" | "write-file" | "page-in" | "flush-file" | "close-file"
        | "delete-file" | "connect" | "accept" | "send" | "receive" | "disconnect" => {
            return io_work::work(args);
        }
        "load-image" => return process::image(args).map(Work::LoadImage),
        "jit" => Work::Jit(count(&mut args)),
        "tier" => Work::Tier(count(&mut args)),
        "rejit" => Work::Rejit(count(&mut args)),
        "call" => Work::Call(calls(&mut args)?),
        "forget" => Work::Forget(count(&mut args)),
        "allocate" => Work::Clr(ClrWork::Allocate, count(&mut args)),
        "throw" => {
            let plan = ThrowPlan {
                filters: args.get("filters").unwrap_or(0),
                finallys: args.get("finallys").unwrap_or(0),
                inner: args.flag("inner"),
                rethrow: args.flag("rethrow"),
            };
            Work::Clr(ClrWork::Throw(plan), count(&mut args))
        }
        "handle" => {
            let kind = args.choice("kind", &HANDLES).unwrap_or(HandleKind::Strong);
            Work::Clr(ClrWork::TakeHandle(kind), count(&mut args))
        }
        "free-handle" => Work::Clr(ClrWork::FreeHandle, count(&mut args)),
        "add-pressure" => Work::Clr(ClrWork::Press(bytes(&mut args)?), 1),
        "remove-pressure" => Work::Clr(ClrWork::Press(-bytes(&mut args)?), 1),
        "queue-work" => Work::Clr(ClrWork::Queue, count(&mut args)),
        "queue-io" => Work::Clr(ClrWork::QueueIo, count(&mut args)),
        "wait" => Work::Clr(ClrWork::Wait(args.next::<Time>("how long")?.0), 1),
        "enter-domain" => Work::EnterDomain(args.next("an app domain")?),
        "contend" => Work::Clr(ClrWork::Contend, count(&mut args)),
        "gc" => Work::Clr(ClrWork::Gc(collection(&mut args)), 1),
        "grow-pool" | "retire-threads" | "suspend-threads" => {
            let change = i32::try_from(count(&mut args)).unwrap_or(i32::MAX);
            change_threads(&mut args, change)
        }
        "shrink-pool" | "return-threads" | "resume-threads" => {
            let change = i32::try_from(count(&mut args)).unwrap_or(i32::MAX);
            change_threads(&mut args, -change)
        }
        "load" => Work::LoadAssembly(args.next("an assembly")?),
        "unload" => Work::UnloadAssembly(args.next("an assembly")?),
        "load-domain" => Work::LoadDomain(args.next("an app domain")?),
        "unload-domain" => Work::UnloadDomain(args.next("an app domain")?),
        "unload-image" => Work::UnloadImage(args.next("a path")?),
        "resolve" => return network::resolve(args).map(|plan| Work::Resolve(Box::new(plan))),
        "exchange" => return network::exchange(args).map(|plan| Work::Exchange(Box::new(plan))),
        "stub" => Work::Clr(ClrWork::Stub, count(&mut args)),
        "run" => Work::Run(args.next::<Time>("how long")?.0),
        "start-thread" => Work::StartThread,
        "end-thread" => Work::EndThread,
        "exit" => Work::Exit,
        _ => {
            let known = "jit, tier, rejit, call, forget, allocate, gc, handle, free-handle, \
                         add-pressure, remove-pressure, throw, contend, wait, queue-work, \
                         queue-io, grow-pool, shrink-pool, retire-threads, return-threads, \
                         suspend-threads, resume-threads, stub, resolve, exchange, run, raise, \
                         load, unload, load-domain, unload-domain, enter-domain, load-image, \
                         unload-image, start-thread, end-thread, exit";
            args.unknown(
                "the work of a process",
                &format!("{known}, {}", io_work::WORDS),
            );
            return None;
        }
    };
    args.finish();
    Some(work)
}

/// `call "Shop.Cart::Add" times=30 rounds=1000`: calls of a method, or of a number of methods.
fn calls(args: &mut Args<'_, '_>) -> Option<CallPlan> {
    let methods = match args.next("a method, or how many methods")? {
        FieldValue::Number(count) => CalledMethods::First(u32::try_from(count).unwrap_or(u32::MAX)),
        FieldValue::Text(name) => CalledMethods::Named(name),
        FieldValue::Of { .. } => return None,
    };
    Some(CallPlan {
        methods,
        times: args.get("times").unwrap_or(1),
        rounds: args.get("rounds").unwrap_or(1),
    })
}

/// A garbage collection.
fn collection(args: &mut Args<'_, '_>) -> GcPlan {
    let generation: u64 = args.maybe("a generation").unwrap_or(0);
    if generation > 2 {
        let label = generation.to_string();
        args.error("there is no such generation", label, Some("0, 1 or 2"));
    }
    GcPlan {
        generation: generation.min(2) as u8,
        induced: args.flag("induced"),
        background: args.flag("background"),
        compact: args.flag("compact"),
    }
}

/// More or fewer threads of a pool that exist, are retired or are suspended.
fn change_threads(args: &mut Args<'_, '_>, change: i32) -> Work {
    let work = match args.name() {
        "grow-pool" | "shrink-pool" if args.flag("io") => ClrWork::IoPool(change),
        "grow-pool" | "shrink-pool" => ClrWork::Pool(change),
        "retire-threads" | "return-threads" => ClrWork::Retire {
            threads: change,
            io: args.flag("io"),
        },
        _ => ClrWork::Suspend(change),
    };
    Work::Clr(work, 1)
}

/// A number of repetitions or of things; 1 without it.
fn count(args: &mut Args<'_, '_>) -> u32 {
    u32::try_from(args.maybe::<u64>("how many").unwrap_or(1)).unwrap_or(u32::MAX)
}

fn bytes(args: &mut Args<'_, '_>) -> Option<i64> {
    let bytes: u64 = args.next("how many bytes")?;
    Some(i64::try_from(bytes).unwrap_or(i64::MAX))
}
