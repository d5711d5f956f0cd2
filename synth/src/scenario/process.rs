//! `process` and `image` nodes.

use etl_format::ProcessId;
use etl_format::constants::PointerSize;

use super::args::Args;
use super::managed;
use super::step;
use super::value::sid;
use crate::model::{ImagePlan, PdbIdentity, ProcessPlan, Scenario, VersionInfo};

/// Words for pointer sizes.
pub(super) const BITS: [(&str, PointerSize); 2] =
    [("64", PointerSize::P8), ("32", PointerSize::P4)];

/// `process "App.exe" { ... }`
pub(super) fn process(mut args: Args<'_, '_>, scenario: &mut Scenario) {
    let Some(name) = args.next::<String>("the name of its executable") else {
        return;
    };
    let mut plan = ProcessPlan::new(name.as_str());
    if let Some(pid) = args.get("pid") {
        plan.pid = ProcessId::new(pid);
        let user = match pid {
            0 | 4 | 1000 => Some("the system has a process with this id".to_owned()),
            _ => {
                let other = args.reader.declared.pids.insert(pid, name.clone());
                other.map(|other| format!("\"{other}\" has it"))
            }
        };
        if let Some(user) = user {
            args.error(format!("process id {pid} is already used"), user, None);
        }
    }
    args.set("parent", &mut plan.parent);
    args.set("command-line", &mut plan.command_line);
    let help = Some("system, local-service, network-service, or a SID: S-1-5-21-...");
    plan.user = args
        .parsed("user", sid, "user: not a SID", help)
        .unwrap_or_default();
    plan.pointer_size = args.choice("bits", &BITS);
    if plan.pointer_size == Some(PointerSize::P8) {
        let location = args.location();
        args.reader.wide.push(location);
    }
    plan.start = args.time("start").unwrap_or(0);
    plan.exit = args.time("exit");
    if plan.exit.is_some_and(|exit| exit <= plan.start) {
        let help = Some("exit is a time of the scenario, later than start");
        args.error("the process exits before it starts", "exit", help);
    }
    let threads = args.within("threads", 1..=u32::MAX, "a process has at least one thread");
    plan.threads = threads.unwrap_or(plan.threads);
    if !args.reader.charge(args.span(), plan.threads) {
        plan.threads = 0;
    }
    let index = scenario.process(plan);
    args.children(&mut |mut args| {
        let Some(plan) = scenario.processes.get_mut(index) else {
            return;
        };
        match args.name() {
            "image" => plan.images.extend(image(args)),
            "clr" => plan.clrs.extend(managed::clr(args, &name)),
            "at" | "every" => step::timed_block(args, scenario, Some(index)),
            _ => args.unknown("a process", "image, clr, at, every"),
        }
    });
}

/// `image "C:\..." size=0x80000`
pub(super) fn image(mut args: Args<'_, '_>) -> Option<ImagePlan> {
    let mut image = ImagePlan::new(args.next::<String>("the path of the image")?);
    args.set("size", &mut image.size);
    let pdb = args.parsed(
        "pdb",
        |text| match text {
            "none" => Some(None),
            guid => guid.parse().ok().map(Some),
        },
        "pdb: neither a GUID nor none",
        None,
    );
    image.no_pdb = pdb == Some(None);
    image.pdb = pdb
        .flatten()
        .map(|signature| PdbIdentity { signature, age: 1 });
    if let Some(age) = args.get("age") {
        match &mut image.pdb {
            Some(pdb) => pdb.age = age,
            None => args.error("an age needs a pdb", "age", Some("pdb=\"GUID\" age=2")),
        }
    }
    image.about = about(&mut args);
    args.finish();
    Some(image)
}

/// `version="2.1.0.0 (build 7)" description="Takes orders" company="Example" product="Orders"
/// language=1033`
fn about(args: &mut Args<'_, '_>) -> VersionInfo {
    let about = VersionInfo {
        version: args.text("version", 255),
        description: args.text("description", 255),
        company: args.text("company", 255),
        product: args.text("product", 255),
        language: args.get("language"),
        nothing: false,
    };
    let Some(version) = about
        .version
        .as_deref()
        .filter(|version| *version != "none")
    else {
        return VersionInfo {
            nothing: about.version.is_some(),
            ..about
        };
    };
    let numbers = version
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .split('.');
    let numbers: Vec<Option<u16>> = numbers.map(|part| part.parse().ok()).collect();
    if numbers.len() > 4 || numbers.contains(&None) {
        let help = Some("up to four numbers, and perhaps text after them, or none");
        args.error("version: not a version of a file", version, help);
    }
    about
}
