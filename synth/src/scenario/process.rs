//! Processes and their images.

use etl_format::constants::PointerSize;

use super::managed;
use super::reader::{Args, Reader, unknown};
use super::step;
use crate::model::{ImagePlan, ProcessPlan, Scenario};

/// `process "App.exe" { ... }`
pub(super) fn process(reader: &mut Reader<'_>, mut args: Args<'_>, scenario: &mut Scenario) {
    let node = args.node;
    let Some(name) = args.text(reader, "the name of its executable") else { return };
    let mut plan = ProcessPlan::new(name);
    if let Some(pid) = args.opt_small(reader, "pid") {
        plan.pid = pid;
    }
    if let Some(parent) = args.opt_small(reader, "parent") {
        plan.parent = parent;
    }
    if let Some(line) = args.opt_text(reader, "command-line") {
        plan.command_line = line;
    }
    let bits = [("64", PointerSize::P8), ("32", PointerSize::P4)];
    if let Some(size) = args.opt_choice(reader, "bits", &bits) {
        plan.pointer_size = size;
    }
    if let Some(start) = args.opt_time(reader, "start") {
        plan.start = start;
    }
    plan.exit = args.opt_time(reader, "exit");
    if let Some(threads) = args.opt_small(reader, "threads") {
        plan.threads = threads;
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
            "at" | "every" => step::moment(reader, args, scenario, Some(place)),
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
            Err(_) => reader.wrong(args.span(), "pdb: not a GUID", text, None),
        }
    }
    if let Some(age) = args.opt_small(reader, "age")
        && let Some(pdb) = &mut image.pdb
    {
        pdb.1 = age;
    }
    args.finish(reader);
    Some(image)
}
