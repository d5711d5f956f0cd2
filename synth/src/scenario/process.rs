//! Processes and their images.

use etl_format::constants::PointerSize;

use super::args::{Args, unknown};
use super::managed;
use super::reader::Reader;
use super::step;
use super::system::fits;
use crate::model::{ImagePlan, ProcessPlan, Scenario, VersionInfo};

/// `process "App.exe" { ... }`
pub(super) fn process(reader: &mut Reader<'_>, mut args: Args<'_>, scenario: &mut Scenario) {
    let node = args.node;
    let Some(name) = args.text(reader, "the name of its executable") else { return };
    let mut plan = ProcessPlan::new(name);
    if let Some(pid) = args.opt_small(reader, "pid") {
        plan.pid = pid;
        let taken = match pid {
            0 | 4 | 1000 => Some("the system has a process of this id".to_owned()),
            _ => reader.pids.insert(pid, plan.name.clone()).map(|p| format!("\"{p}\" has it")),
        };
        if let Some(by) = taken {
            reader.error(args.span(), format!("process id {pid} is taken"), by, None);
        }
    }
    if let Some(parent) = args.opt_small(reader, "parent") {
        plan.parent = parent;
    }
    if let Some(line) = args.opt_text(reader, "command-line") {
        plan.command_line = line;
    }
    if let Some(user) = args.opt_text(reader, "user") {
        match sid(&user) {
            Some(sid) => plan.user = sid,
            None => {
                let help = "system, local-service, network-service, or a SID: S-1-5-21-...";
                reader.error(args.span(), "user: not a SID", user, Some(help.to_owned()));
            }
        }
    }
    let bits = [("64", PointerSize::P8), ("32", PointerSize::P4)];
    if let Some(size) = args.opt_choice(reader, "bits", &bits) {
        plan.pointer_size = Some(size);
        if size == PointerSize::P8 {
            let place = reader.location(args.span());
            reader.wide.push(place);
        }
    }
    if let Some(start) = args.opt_time(reader, "start") {
        plan.start = start;
    }
    plan.exit = args.opt_time(reader, "exit");
    if plan.exit.is_some_and(|exit| exit <= plan.start) {
        let help = Some("exit is a moment of the scenario, and later than start".to_owned());
        reader.error(args.span(), "the process exits before it starts", "exit", help);
    }
    if let Some(threads) = args.opt_small(reader, "threads") {
        plan.threads = threads;
        if threads == 0 {
            reader.error(args.span(), "a process has at least one thread", "threads", None);
        }
    }
    if !reader.charge(args.span(), plan.threads) {
        plan.threads = 0;
    }
    args.finish(reader);
    let place = scenario.process(plan);
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "image" => {
                if let Some(image) = image(reader, args)
                    && let Some(plan) = scenario.processes.get_mut(place)
                {
                    plan.images.push(image);
                }
            }
            "clr" => {
                let name = scenario.processes.get(place).map(|p| p.name.clone());
                let clr = managed::clr(reader, args, &name.unwrap_or_default());
                if let (Some(clr), Some(plan)) = (clr, scenario.processes.get_mut(place)) {
                    plan.clrs.push(clr);
                }
            }
            "at" | "every" => step::timed_block(reader, args, scenario, Some(place)),
            _ => unknown(reader, node, "a process", "image, clr, at, every"),
        }
    });
}

/// `image "C:\..." size=0x80000`
pub(super) fn image(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<ImagePlan> {
    args.leaf();
    let mut image = ImagePlan::new(args.text(reader, "the path of the image")?);
    if let Some(size) = args.opt_small(reader, "size") {
        image.size = size;
    }
    if let Some(text) = args.opt_text(reader, "pdb") {
        match text.parse() {
            Ok(guid) => image.pdb = Some((guid, 1)),
            Err(_) if text == "none" => image.no_pdb = true,
            Err(_) => reader.error(args.span(), "pdb: not a GUID, and not none", text, None),
        }
    }
    if let Some(age) = args.opt_small(reader, "age") {
        match &mut image.pdb {
            Some(pdb) => pdb.1 = age,
            None => {
                let help = Some("pdb=\"GUID\" age=2".to_owned());
                reader.error(args.span(), "an age needs a pdb", "age", help);
            }
        }
    }
    image.about = about(reader, &mut args);
    args.finish(reader);
    Some(image)
}

/// `version="2.1.0.0 (build 7)" description="Takes orders" company="Example" product="Orders"
/// language=1033`
fn about(reader: &mut Reader<'_>, args: &mut Args<'_>) -> VersionInfo {
    let at = args.span();
    let mut text = |reader: &mut Reader<'_>, name| {
        args.opt_text(reader, name).map(|text| fits(reader, at, text, 255))
    };
    let mut about = VersionInfo {
        nothing: false,
        version: text(reader, "version"),
        description: text(reader, "description"),
        company: text(reader, "company"),
        product: text(reader, "product"),
        language: None,
    };
    about.language = args.opt_small(reader, "language");
    match &about.version {
        Some(version) if version == "none" => about.nothing = true,
        Some(version) => {
            let numbers = version.split_whitespace().next().unwrap_or_default().split('.');
            let numbers: Vec<Option<u16>> = numbers.map(|part| part.parse().ok()).collect();
            if numbers.len() > 4 || numbers.contains(&None) {
                let help = Some("up to four numbers, and words behind them, or none".to_owned());
                reader.error(at, "version: not a version of a file", version.clone(), help);
            }
        }
        None => {}
    }
    about
}

/// A SID by its text, or by what everybody calls it.
pub(super) fn sid(text: &str) -> Option<Vec<u8>> {
    let text = match text {
        "system" => "S-1-5-18",
        "local-service" => "S-1-5-19",
        "network-service" => "S-1-5-20",
        other => other,
    };
    let mut parts = text.strip_prefix("S-1-")?.split('-');
    let authority: u64 = parts.next()?.parse().ok().filter(|a| *a < 1 << 48)?;
    let parts: Option<Vec<u32>> = parts.map(|p| p.parse().ok()).collect();
    let parts = parts.filter(|p| (1..=15).contains(&p.len()))?;
    let mut sid = vec![1, u8::try_from(parts.len()).ok()?];
    sid.extend(authority.to_be_bytes().get(2..)?);
    parts.iter().for_each(|part| sid.extend(part.to_le_bytes()));
    Some(sid)
}
