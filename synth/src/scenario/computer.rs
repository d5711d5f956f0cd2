//! What a machine is made of: disks, network cards, displays, services.

use kdl::KdlNode;

use super::args::{Args, unknown};
use super::reader::Reader;
use super::system::fits;
use crate::model::{DiskPlan, DisplayPlan, MachinePlan, NetworkCardPlan, ServicePlan, VolumePlan};

const GB: u64 = 1 << 30;
/// Things of one kind that a machine may have.
const MAX_PARTS: usize = 1024;

/// The nodes below `machine`. A disk of the script's own takes the place of the usual one.
pub(super) fn parts(reader: &mut Reader<'_>, node: &KdlNode, machine: &mut MachinePlan) {
    let mut disks = Vec::new();
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        let at = args.span();
        let count = match args.name() {
            "disk" => {
                disks.extend(disk(reader, args));
                disks.len()
            }
            "network-card" => {
                machine.network_cards.extend(network_card(reader, args));
                machine.network_cards.len()
            }
            "display" => {
                machine.displays.extend(display(reader, args));
                machine.displays.len()
            }
            "service" => {
                machine.services.extend(service(reader, args));
                machine.services.len()
            }
            _ => {
                unknown(reader, node, "a machine", "disk, network-card, display, service");
                0
            }
        };
        if count == MAX_PARTS + 1 {
            reader.error(
                at,
                format!("a machine has at most {MAX_PARTS} of them"),
                "one too many",
                None,
            );
        }
    });
    if !disks.is_empty() {
        machine.disks = disks;
    }
}

fn disk(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<DiskPlan> {
    let (node, at) = (args.node, args.span());
    let name = args.text(reader, "what its maker calls it")?;
    let bytes = gigabytes(args.opt_number(reader, "gb").unwrap_or(256));
    args.finish(reader);
    let name = fits(reader, at, name, 255);
    let mut volumes = Vec::new();
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "volume" if volumes.len() < 24 => volumes.extend(volume(reader, args)),
            "volume" => reader.error(args.span(), "more volumes than letters", "here", None),
            _ => unknown(reader, node, "a disk", "volume"),
        }
    });
    let taken = volumes.iter().fold(0, |sum: u64, v: &VolumePlan| sum.saturating_add(v.bytes));
    if taken > bytes {
        reader.error(at, "the volumes have no room on the disk", "more than it has", None);
    }
    Some(DiskPlan { name, bytes, volumes })
}

fn volume(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<VolumePlan> {
    args.leaf();
    let at = args.span();
    let letter = args.text(reader, "a letter and a colon")?;
    let mut chars = letter.chars();
    let fine = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    if !fine || chars.as_str() != ":" {
        let help = Some("volume \"C:\"".to_owned());
        reader.error(at, "a volume has a letter and a colon", letter.as_str(), help);
    }
    let bytes = gigabytes(args.opt_number(reader, "gb").unwrap_or(100));
    let mut plan = VolumePlan::new(letter, bytes);
    if let Some(free) = args.opt_number(reader, "free-gb") {
        plan.free = gigabytes(free);
    }
    if plan.free > plan.bytes {
        reader.error(at, "more is free than there is", "free-gb", None);
    }
    if let Some(system) = args.opt_text(reader, "file-system") {
        plan.file_system = fits(reader, at, system, 15);
    }
    args.finish(reader);
    Some(plan)
}

fn network_card(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<NetworkCardPlan> {
    args.leaf();
    let at = args.span();
    let name = args.text(reader, "what its driver calls it")?;
    let text = args.opt_text(reader, "address").unwrap_or_default();
    let address = bytes(&text);
    if address.is_none() {
        let help = Some("up to eight bytes: 00-15-5D-7C-58-28".to_owned());
        reader.error(at, "address: not a physical address", text, help);
    }
    let ip = args.opt_text(reader, "ip").unwrap_or_default();
    let dns = args.opt_text(reader, "dns").unwrap_or_default();
    args.finish(reader);
    Some(NetworkCardPlan {
        name: fits(reader, at, name, 1024),
        address: address.unwrap_or_default(),
        ip: fits(reader, at, ip, 4096),
        dns: fits(reader, at, dns, 4096),
    })
}

/// Bytes in hexadecimal digits, with hyphens or colons between, or without.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() || digits.len() > 16 {
        return None;
    }
    pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit).try_into().ok()).collect()
}

fn display(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<DisplayPlan> {
    args.leaf();
    let at = args.span();
    let name = args.text(reader, "what the adapter's driver calls it")?;
    let mut plan = DisplayPlan::new(fits(reader, at, name, 255));
    if let Some(width) = args.opt_small(reader, "width") {
        plan.size.0 = width;
    }
    if let Some(height) = args.opt_small(reader, "height") {
        plan.size.1 = height;
    }
    if let Some(bits) = args.opt_small(reader, "bits") {
        plan.bits = bits;
    }
    if let Some(refresh) = args.opt_small(reader, "refresh") {
        plan.refresh = refresh;
    }
    if let Some(memory) = args.opt_small::<u32>(reader, "memory-mb") {
        plan.memory = memory.saturating_mul(1 << 20);
    }
    if let Some(dpi) = args.opt_small(reader, "dpi") {
        plan.dpi = dpi;
    }
    args.finish(reader);
    Some(plan)
}

fn service(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<ServicePlan> {
    args.leaf();
    let at = args.span();
    let name = args.text(reader, "its name")?;
    let display = args.opt_text(reader, "display").unwrap_or_else(|| name.clone());
    let process = args.opt_text(reader, "process").unwrap_or_default();
    let group = args.opt_text(reader, "group").unwrap_or_default();
    args.finish(reader);
    Some(ServicePlan {
        name: fits(reader, at, name, 1024),
        display: fits(reader, at, display, 1024),
        process,
        group: fits(reader, at, group, 1024),
    })
}

fn gigabytes(number: u64) -> u64 {
    number.saturating_mul(GB)
}
