//! `disk`, `network-card`, `display` and `service` nodes.

use super::args::Args;
use crate::model::{DiskPlan, DisplayPlan, MachinePlan, NetworkCardPlan, ServicePlan, VolumePlan};

const GB: u64 = 1 << 30;
/// Parts of one kind.
const MAX_PARTS: usize = 1024;

/// Reads the nodes of a machine. Disks of the script replace the default one.
pub(super) fn parts(args: Args<'_, '_>, machine: &mut MachinePlan) {
    let mut disks = Vec::new();
    args.children(&mut |mut args| {
        let count = match args.name() {
            "disk" => disks.len(),
            "network-card" => machine.network_cards.len(),
            "display" => machine.displays.len(),
            _ => machine.services.len(),
        };
        if count == MAX_PARTS {
            let message = format!("a machine has at most {MAX_PARTS} of them");
            args.error(message, "one too many", None);
        }
        match args.name() {
            "disk" => disks.extend(disk(args)),
            "network-card" => machine.network_cards.extend(network_card(args)),
            "display" => machine.displays.extend(display(args)),
            "service" => machine.services.extend(service(args)),
            _ => args.unknown("a machine", "disk, network-card, display, service"),
        }
    });
    if !disks.is_empty() {
        machine.disks = disks;
    }
}

fn disk(mut args: Args<'_, '_>) -> Option<DiskPlan> {
    let name = args.next_text("its name", 255)?;
    let bytes = gigabytes(&mut args, "gb", 256 * GB);
    let at = args.location();
    let mut volumes = Vec::new();
    let reader = args.children(&mut |mut args| match args.name() {
        "volume" if volumes.len() < 24 => volumes.extend(volume(args)),
        "volume" => args.error("more volumes than letters", "here", None),
        _ => args.unknown("a disk", "volume"),
    });
    let used = volumes
        .iter()
        .fold(0, |sum: u64, v: &VolumePlan| sum.saturating_add(v.bytes));
    if used > bytes {
        reader.error_at(
            &at,
            "the volumes are larger than the disk",
            "the disk",
            None,
        );
    }
    Some(DiskPlan {
        name,
        bytes,
        volumes,
    })
}

fn volume(mut args: Args<'_, '_>) -> Option<VolumePlan> {
    let letter: String = args.next("a letter and a colon")?;
    if !matches!(letter.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic()) {
        let help = Some("volume \"C:\"");
        args.error("a volume has a letter and a colon", letter.as_str(), help);
    }
    let mut plan = VolumePlan::new(letter, gigabytes(&mut args, "gb", 100 * GB));
    plan.free = gigabytes(&mut args, "free-gb", plan.free);
    if plan.free > plan.bytes {
        args.error("free-gb is larger than gb", "free-gb", None);
    }
    plan.file_system = args.text("file-system", 15).unwrap_or(plan.file_system);
    args.finish();
    Some(plan)
}

fn network_card(mut args: Args<'_, '_>) -> Option<NetworkCardPlan> {
    let name = args.next_text("its name", 1024)?;
    let help = Some("up to eight bytes: 00-15-5D-7C-58-28");
    let address = args.parsed("address", address, "address: not a physical address", help);
    let ip = args.text("ip", 4096).unwrap_or_default();
    let dns = args.text("dns", 4096).unwrap_or_default();
    args.finish();
    Some(NetworkCardPlan {
        name,
        address: address.unwrap_or_default(),
        ip,
        dns,
    })
}

/// Up to eight bytes in hexadecimal digits, perhaps with hyphens or colons between.
fn address(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    super::value::bytes(&digits).filter(|bytes| bytes.len() <= 8)
}

fn display(mut args: Args<'_, '_>) -> Option<DisplayPlan> {
    let mut plan = DisplayPlan::new(args.next_text("the name of the adapter", 255)?);
    args.set("width", &mut plan.width);
    args.set("height", &mut plan.height);
    args.set("bits", &mut plan.bits);
    args.set("refresh", &mut plan.refresh);
    if let Some(memory) = args.get::<u32>("memory-mb") {
        plan.memory = memory.saturating_mul(1 << 20);
    }
    args.set("dpi", &mut plan.dpi);
    args.finish();
    Some(plan)
}

fn service(mut args: Args<'_, '_>) -> Option<ServicePlan> {
    let name = args.next_text("its name", 1024)?;
    let display = args.text("display", 1024).unwrap_or_else(|| name.clone());
    let process = args.get("process").unwrap_or_default();
    let group = args.text("group", 1024).unwrap_or_default();
    args.finish();
    Some(ServicePlan {
        name,
        display,
        process,
        group,
    })
}

fn gigabytes(args: &mut Args<'_, '_>, name: &'static str, default: u64) -> u64 {
    args.get(name)
        .map_or(default, |number: u64| number.saturating_mul(GB))
}
