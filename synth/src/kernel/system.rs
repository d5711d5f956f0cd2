//! Events of the kernel about a session and the computer: group masks, and the configuration of
//! the system.
//!
//! The order follows real traces. A session starts with masks of zeros, then come its own, then
//! the rundown and its end. When it is stopped, the configuration comes first, then the masks, the
//! rundown, masks of zeros, and the end of the rundown.

use etl_control::controller::GroupMasks;
use etl_format::constants::{PointerSize, hook};
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{EVENT_TRACE, SYSTEM_CONFIG};

use super::ClassicIdentity;
use crate::error::Result;
use crate::etw::{Etw, LogTarget, Origin, values};
use crate::machine::{FIRST_VOLUME, Machine};
use crate::model::{
    DiskPlan, DisplayPlan, MachinePlan, NetworkCardPlan, ServicePlan, VolumePlan, WindowsVersion,
};
use crate::truth::RecordFormat;

/// The kind of a record of group masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Masks {
    /// The masks from here on.
    Extension = hook::EXTENSION as isize,
    /// The masks up to here.
    EndExtension = hook::GROUP_MASKS_END as isize,
}

impl Etw<'_> {
    /// Logs the group masks of a session.
    pub fn log_masks(
        &mut self,
        session: usize,
        which: Masks,
        masks: GroupMasks,
        origin: &Origin,
    ) -> Result<()> {
        let mut values: Vec<OwnedValue> = masks.0.iter().map(|word| (*word).into()).collect();
        values.push(self.kernel_event_version().into());
        self.log_trace(session, which as u8, &values, origin)
    }

    /// Logs that the rundown of a session is complete.
    pub fn log_rundown_complete(&mut self, session: usize, origin: &Origin) -> Result<()> {
        self.log_trace(session, 8, &[], origin)
    }

    fn log_trace(
        &mut self,
        session: usize,
        opcode: u8,
        values: &[OwnedValue],
        origin: &Origin,
    ) -> Result<()> {
        let to = LogTarget::Session(session);
        let format = RecordFormat::PerfInfo(opcode.into());
        let identity = ClassicIdentity {
            class: EVENT_TRACE,
            opcode,
            layout: 0,
            version: 2,
        };
        self.log_classic(to, identity, format, values, origin)
    }

    /// Logs the configuration of the computer.
    pub fn log_configuration(
        &mut self,
        session: usize,
        plan: &MachinePlan,
        machine: &Machine,
        origin: &Origin,
    ) -> Result<()> {
        let mut events = ConfigurationEvents {
            etw: self,
            session,
            origin,
        };
        let old = plan.os < WindowsVersion::WINDOWS_8;
        let mut cpu = processors(plan);
        if old {
            // Before Windows 8 it ended here.
            cpu.truncate(8);
        }
        events.log(10, if old { 2 } else { 3 }, &cpu)?;
        for display in &plan.displays {
            events.log(28, 2, &values![display.dpi, display.dpi])?;
            events.log(14, 2, &video(display))?;
        }
        for (number, card) in (1u32..).zip(&plan.network_cards) {
            events.log(13, 2, &network_card(number, card))?;
        }
        for (number, service) in (1u32..).zip(&plan.services) {
            events.log(15, 3, &service_of(number, service, machine))?;
        }
        for (number, disk) in (0u32..).zip(&plan.disks) {
            events.log(11, 2, &physical_disk(number, disk))?;
        }
        for (number, disk) in (0u32..).zip(&plan.disks) {
            let mut start = FIRST_VOLUME;
            // Partition 1 is the system partition.
            for (partition, volume) in (2u32..).zip(&disk.volumes) {
                events.log(12, 2, &logical_disk(number, partition, start, volume))?;
                start = start.saturating_add(volume.bytes);
            }
        }
        Ok(())
    }
}

/// Logs the configuration of the computer in one session.
struct ConfigurationEvents<'a, 'e> {
    etw: &'a mut Etw<'e>,
    session: usize,
    origin: &'a Origin,
}

impl ConfigurationEvents<'_, '_> {
    fn log(&mut self, opcode: u8, version: u8, values: &[OwnedValue]) -> Result<()> {
        // Displays have one layout, the oldest.
        let layout = if opcode == 14 { 0 } else { version.into() };
        let identity = ClassicIdentity {
            class: SYSTEM_CONFIG,
            opcode,
            layout,
            version,
        };
        let format = RecordFormat::System(0x0b00 | u16::from(opcode));
        let target = LogTarget::Session(self.session);
        self.etw
            .log_classic(target, identity, format, values, self.origin)
    }
}

/// Bytes of a sector, sectors of a track, tracks of a cylinder: nominal values that Windows reports
/// for every disk.
const GEOMETRY: (u32, u32, u32) = (512, 63, 255);
/// Sectors of a cluster.
const SECTORS_PER_CLUSTER: u32 = 8;

fn processors(plan: &MachinePlan) -> Vec<OwnedValue> {
    // The highest user address is larger since Windows 8.1.
    let highest: u64 = match plan.pointer_size {
        PointerSize::P4 => 0x7ffe_ffff,
        PointerSize::P8 if plan.os < WindowsVersion::new(6, 3, 0) => 0x7ff_fffe_ffff,
        PointerSize::P8 => 0x7fff_fffe_ffff,
    };
    let MachinePlan {
        cpu_mhz: mhz,
        memory_mb: memory,
        computer: name,
        domain,
        ..
    } = plan;
    let none = 0u64;
    let count = u32::from(plan.processors);
    let name = name.as_str();
    let domain = domain.as_str();
    values![
        *mhz,
        count,
        *memory,
        4096u32,
        0x1_0000u32,
        name,
        domain,
        none,
        highest,
        9u16,
        6u16,
        0x9e0au16,
        1u8,
        1u8,
        0u32,
    ]
    .to_vec()
}

fn video(display: &DisplayPlan) -> [OwnedValue; 11] {
    let DisplayPlan {
        name,
        memory,
        width,
        height,
        bits,
        refresh,
        ..
    } = display;
    let name = name.as_str();
    // 5: attached to the desktop, and the primary one.
    values![
        *memory, *width, *height, *bits, *refresh, "", "", name, "", "", 5u32
    ]
}

fn network_card(number: u32, card: &NetworkCardPlan) -> [OwnedValue; 7] {
    let mut address = card.address.clone();
    let length = u32::try_from(address.len()).unwrap_or(8);
    address.resize(8, 0);
    let [name, ip, dns] = [&card.name, &card.ip, &card.dns].map(String::as_str);
    values![address, length, number, number, name, ip, dns]
}

/// A service runs where its process does.
fn service_of(number: u32, service: &ServicePlan, machine: &Machine) -> [OwnedValue; 8] {
    let mut pid = 0;
    // Stopped.
    let mut state = 1u32;
    let mut executable = "";
    if !service.process.is_empty() {
        for process in machine
            .processes
            .iter()
            .filter(|process| process.is_alive())
        {
            let name = process.name.rsplit('\\').next().unwrap_or(&process.name);
            if name.eq_ignore_ascii_case(&service.process) {
                pid = process.pid;
                // Running.
                state = 4;
                executable = name;
                break;
            }
        }
    }
    let [name, display, group] =
        [&service.name, &service.display, &service.group].map(String::as_str);
    values![pid, state, number, name, display, executable, "", group]
}

fn physical_disk(number: u32, disk: &DiskPlan) -> [OwnedValue; 15] {
    let (sector, sectors, tracks) = GEOMETRY;
    let cylinder = u64::from(sector) * u64::from(sectors) * u64::from(tracks);
    let volumes = u32::try_from(disk.volumes.len()).unwrap_or(u32::MAX);
    let boots = disk
        .volumes
        .iter()
        .find(|v| v.letter.eq_ignore_ascii_case("C:"));
    let boots = boots.map_or("", |_| "C");
    let name = disk.name.as_str();
    let cylinders = disk.bytes / cylinder;
    let partitions = volumes.saturating_add(1);
    values![
        number, sector, sectors, tracks, cylinders, 0u32, 0u32, 0u32, 0u32, name, partitions, 1u8,
        0u8, boots, "",
    ]
}

fn logical_disk(disk: u32, partition: u32, start: u64, volume: &VolumePlan) -> [OwnedValue; 16] {
    let cluster = u64::from(GEOMETRY.0) * u64::from(SECTORS_PER_CLUSTER);
    let free = i64::try_from(volume.free / cluster).unwrap_or(i64::MAX);
    let all = i64::try_from(volume.bytes / cluster).unwrap_or(i64::MAX);
    let letter = volume.letter.as_str();
    let system = volume.file_system.as_str();
    // The size of the record.
    let record = 112u32;
    let size = volume.bytes;
    let sectors = SECTORS_PER_CLUSTER;
    let sector = GEOMETRY.0;
    values![
        start, size, disk, record, 1u32, letter, 0u32, partition, sectors, sector, 0u32, free, all,
        system, 0u32, 0u32,
    ]
}
