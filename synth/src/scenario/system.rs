//! What stands at the top of a script, and the machine.

use etl_format::constants::PointerSize;
use kdl::KdlNode;

use super::args::{Args, unknown};
use super::reader::Reader;
use super::{process, session, step};
use crate::model::{MachinePlan, Scenario, Step};

/// 100 ns units from 1601 to 1970.
const UNIX_EPOCH: i64 = etl_format::constants::FILETIME_UNIX_EPOCH;

/// The first build of Windows 11, which there is for 64 bits only.
const FIRST_WITHOUT_32_BITS: u32 = 22_000;

/// A node at the top.
pub(super) fn top(reader: &mut Reader<'_>, node: &KdlNode, scenario: &mut Scenario) {
    let mut args = Args::new(node);
    match args.name() {
        "scenario" => {
            args.leaf();
            if let Some(name) = args.text(reader, "a name") {
                scenario.name = name;
            }
            if let Some(seed) = args.opt_number(reader, "seed") {
                scenario.seed = seed;
            }
            if let Some(about) = args.opt_text(reader, "about") {
                scenario.about = about;
            }
            args.finish(reader);
        }
        "machine" => machine(reader, args, &mut scenario.machine),
        "provider" => scenario.providers.extend(super::provider::provider(reader, args)),
        "process" => process::process(reader, args, scenario),
        "at" | "every" => step::timed_block(reader, args, scenario, None),
        "session" => {
            // A session at the top runs from the beginning.
            if let Some(plan) = session::session(reader, args) {
                let action = crate::model::Action::Start(Box::new(plan));
                let location = Some(reader.location(node.name().span()));
                scenario.steps.push(Step { at: 0, repeat: None, action, location });
            }
        }
        "fault" => scenario.faults.extend(session::named_fault(reader, args)),
        "edit" => scenario.edits.extend(super::edit::edit(reader, args)),
        "end" => {
            args.leaf();
            scenario.end = args.time(reader, "a time");
            args.finish(reader);
        }
        _ => {
            let known = "scenario, machine, provider, process, session, fault, at, every, edit, end; param, repeat, include";
            unknown(reader, node, "a script", known);
        }
    }
}

fn machine(reader: &mut Reader<'_>, mut args: Args<'_>, machine: &mut MachinePlan) {
    let node = args.node;
    let at = args.span();
    if let Some([major, minor, build]) = args.opt_version::<3>(reader, "os") {
        match (u8::try_from(major), u8::try_from(minor)) {
            (Ok(major), Ok(minor)) if build > 0 => machine.os = (major, minor, build),
            _ => {
                let help = Some("major, minor and build: \"10.0.19045\"".to_owned());
                reader.error(at, "os is no version of Windows", "os", help);
            }
        }
    }
    let bits = [("64", PointerSize::P8), ("32", PointerSize::P4)];
    if let Some(size) = args.opt_choice(reader, "bits", &bits) {
        machine.pointer_size = size;
    }
    if machine.pointer_size == PointerSize::P4 && machine.os.2 >= FIRST_WITHOUT_32_BITS {
        let help = Some("Windows 10 and older were: os=\"10.0.19045\"".to_owned());
        reader.error(at, "Windows 11 is never 32 bits wide", "bits=32", help);
    }
    if let Some(processors) = args.opt_small::<u16>(reader, "processors") {
        if (1..=2048).contains(&processors) {
            machine.processors = processors;
        } else {
            reader.error(at, "a machine has 1 to 2048 processors", processors.to_string(), None);
        }
    }
    if let Some(mhz) = args.opt_small(reader, "mhz") {
        machine.cpu_mhz = mhz;
        if mhz == 0 {
            reader.error(at, "a processor has at least 1 MHz", "mhz", None);
        }
    }
    if let Some(frequency) = args.opt_number(reader, "frequency") {
        if (1..=10_000_000_000).contains(&frequency) {
            machine.frequency = frequency;
        } else {
            let message = "a clock ticks 1 to 10^10 times in a second";
            reader.error(at, message, frequency.to_string(), None);
        }
    }
    if let Some(text) = args.opt_text(reader, "start") {
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => {
                let units = time.as_nanosecond() / 100 + i128::from(UNIX_EPOCH);
                machine.start = i64::try_from(units).unwrap_or(machine.start);
                if units < 0 {
                    let help = Some("a FILETIME counts from there".to_owned());
                    reader.error(at, "start lies before 1601", "start", help);
                }
            }
            Err(error) => {
                let help = Some("a time in UTC: \"2026-01-05T08:30:00Z\"".to_owned());
                reader.error(at, format!("start: {error}"), "here", help);
            }
        }
    }
    if let Some(uptime) = args.opt_time(reader, "uptime") {
        machine.uptime = uptime;
    }
    if let Some(memory) = args.opt_small(reader, "memory-mb") {
        machine.memory_mb = memory;
        if memory == 0 {
            reader.error(at, "a machine has at least 1 MB", "memory-mb", None);
        }
    }
    if let Some(zone) = args.opt_text(reader, "time-zone") {
        machine.zone = zone;
    }
    if let Some(bias) = args.opt_text(reader, "bias") {
        match bias.parse() {
            Ok(bias) => machine.bias = bias,
            Err(_) => reader.error(at, "bias: minutes to add for UTC", bias, None),
        }
    }
    if let Some(speed) = args.opt_number(reader, "disk-bytes-per-second") {
        machine.disk_speed = speed.max(1);
    }
    if let Some(name) = args.opt_text(reader, "computer") {
        machine.computer = fits(reader, args.span(), name, 255);
    }
    if let Some(name) = args.opt_text(reader, "domain") {
        machine.domain = fits(reader, args.span(), name, 133);
    }
    args.finish(reader);
    super::computer::parts(reader, node, machine);
}

/// A text of so many units at most, as a record has room for it.
pub(super) fn fits(
    reader: &mut Reader<'_>,
    at: miette::SourceSpan,
    text: String,
    most: usize,
) -> String {
    if text.encode_utf16().count() > most {
        reader.error(at, format!("at most {most} characters"), text, None);
        return String::new();
    }
    text
}
