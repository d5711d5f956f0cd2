//! The nodes at the top of a script, and `machine`.

use etl_format::FileTime;
use etl_format::constants::PointerSize;

use super::args::{Args, Time};
use super::process::BITS;
use super::{computer, edit, expect, process, provider, session, step, value};
use crate::model::{Action, MachinePlan, Scenario, Step, WindowsVersion};

/// The first build of Windows 11, which has 64 bits only.
const FIRST_WITHOUT_32_BITS: u32 = 22_000;

/// A node at the top of a script.
pub(super) fn top(mut args: Args<'_, '_>, scenario: &mut Scenario) {
    match args.name() {
        "scenario" => {
            if let Some(name) = args.next("a name") {
                scenario.name = name;
            }
            args.set("seed", &mut scenario.seed);
            args.set("about", &mut scenario.about);
            args.finish();
        }
        "machine" => machine(args, &mut scenario.machine),
        "provider" => scenario.providers.extend(provider::provider(args)),
        "process" => process::process(args, scenario),
        "at" | "every" => step::timed_block(args, scenario, None),
        "session" => {
            // A session at the top starts at the beginning.
            let location = Some(args.location());
            if let Some(plan) = session::session(args) {
                let action = Action::Start(Box::new(plan));
                scenario.steps.push(Step {
                    at: 0,
                    repeat: None,
                    action,
                    location,
                    command: None,
                });
            }
        }
        "fault" => scenario.faults.extend(session::named_fault(args)),
        "edit" => scenario.edits.extend(edit::edit(args)),
        "expect" => expect::expect(args, scenario),
        "end" => {
            scenario.end = args.next("a time").map(|Time(time)| time);
            args.finish();
        }
        _ => {
            let known = "scenario, machine, provider, process, session, fault, at, every, edit, \
                         expect, end; param, repeat, include";
            args.unknown("a script", known);
        }
    }
}

fn machine(mut args: Args<'_, '_>, machine: &mut MachinePlan) {
    let m = &mut *machine;
    if let Some([major, minor, build]) = args.version::<3>("os") {
        if args.reader.declared.needs_build && build != m.os.build {
            let help = Some("an event has the fields of its version");
            args.error(
                "os: events of Windows were raised before the machine",
                "os",
                help,
            );
        }
        match (u8::try_from(major), u8::try_from(minor)) {
            (Ok(major), Ok(minor)) if build > 0 => m.os = WindowsVersion::new(major, minor, build),
            _ => {
                let help = Some("major, minor and build: \"10.0.19045\"");
                args.error("os: not a version of Windows", "os", help);
            }
        }
    }
    m.pointer_size = args.choice("bits", &BITS).unwrap_or(m.pointer_size);
    if m.pointer_size == PointerSize::P4 && m.os.build >= FIRST_WITHOUT_32_BITS {
        let help = Some("Windows 10 and older have 32 bits: os=\"10.0.19045\"");
        args.error("Windows 11 has no 32-bit version", "bits=32", help);
    }
    let message = "a machine has 1 to 2048 processors";
    m.processors = args
        .within("processors", 1..=2048, message)
        .unwrap_or(m.processors);
    let message = "a processor has at least 1 MHz";
    m.cpu_mhz = args
        .within("mhz", 1..=u32::MAX, message)
        .unwrap_or(m.cpu_mhz);
    let message = "a clock ticks 1 to 10^10 times in a second";
    m.frequency = args
        .within("frequency", 1..=10_000_000_000, message)
        .unwrap_or(m.frequency);
    let help = Some("a time in UTC: \"2026-01-05T08:30:00Z\"");
    let start = args.parsed(
        "start",
        value::utc_time,
        "start: not a time since 1601",
        help,
    );
    m.start = start
        .and_then(|start| i64::try_from(start).ok())
        .map_or(m.start, FileTime::new);
    m.uptime = args.time("uptime").unwrap_or(m.uptime);
    if i64::try_from(m.uptime / 100).is_ok_and(|uptime| uptime > m.start.get()) {
        let help = Some("a later start, or a shorter uptime");
        args.error(
            "the machine was started before 1601, where its clock begins",
            "here",
            help,
        );
    }
    let message = "a machine has at least 1 MB";
    m.memory_mb = args
        .within("memory-mb", 1..=u32::MAX, message)
        .unwrap_or(m.memory_mb);
    args.set("time-zone", &mut m.zone);
    let bias = args.parsed(
        "bias",
        |text| text.parse().ok(),
        "bias: minutes to add for UTC",
        None,
    );
    m.bias = bias.unwrap_or(m.bias);
    let message = "of a hundred samples, at most a hundred find an interrupt";
    m.interrupts = args
        .within("interrupts", 0..=100, message)
        .unwrap_or(m.interrupts);
    m.packet_bytes = args.get("packet-bytes").or(m.packet_bytes);
    args.set("disk-bytes-per-second", &mut m.disk_speed);
    m.disk_speed = m.disk_speed.max(1);
    m.computer = args
        .text("computer", 255)
        .unwrap_or_else(|| m.computer.clone());
    m.domain = args.text("domain", 133).unwrap_or_else(|| m.domain.clone());
    computer::parts(args, machine);
}
