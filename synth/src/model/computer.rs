//! Hardware and services of the computer, as the kernel reports them to its sessions.

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlan {
    /// Its name from its manufacturer.
    pub name: String,
    /// Bytes on it.
    pub bytes: u64,
    /// Its volumes in their order on the disk, after the system partition.
    pub volumes: Vec<VolumePlan>,
}

/// A volume with a drive letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePlan {
    /// Its drive letter and a colon.
    pub letter: String,
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes free.
    pub free: u64,
    /// Its file system.
    pub file_system: String,
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkCardPlan {
    /// Its name from its driver.
    pub name: String,
    /// Its physical address: up to eight bytes.
    pub address: Vec<u8>,
    /// Its IP addresses, with semicolons between.
    pub ip: String,
    /// Addresses of name servers, with semicolons between.
    pub dns: String,
}

/// A display and its adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayPlan {
    /// The name of the adapter from its driver.
    pub name: String,
    /// Memory of the adapter in bytes.
    pub memory: u32,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Bits of a pixel.
    pub bits: u32,
    /// Refresh rate in Hz.
    pub refresh: u32,
    /// Dots per inch.
    pub dpi: u32,
}

/// A service. It runs when its process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    /// Its name.
    pub name: String,
    /// Its display name.
    pub display: String,
    /// File name of the executable that it runs in; empty if it does not run.
    pub process: String,
    /// Its group in `svchost.exe`; empty if it has its own process.
    pub group: String,
}

const GB: u64 = 1 << 30;

impl Default for DiskPlan {
    /// 256 GB with a volume C: on it.
    fn default() -> Self {
        DiskPlan {
            name: "Virtual Disk".to_owned(),
            bytes: 256 * GB,
            volumes: vec![VolumePlan::new("C:", 255 * GB)],
        }
    }
}

impl VolumePlan {
    /// An NTFS volume, half of it free.
    #[must_use]
    pub fn new(letter: impl Into<String>, bytes: u64) -> Self {
        let file_system = "NTFS".to_owned();
        VolumePlan {
            letter: letter.into(),
            bytes,
            free: bytes / 2,
            file_system,
        }
    }
}

impl DisplayPlan {
    /// A display of 1920 by 1080 pixels.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        DisplayPlan {
            name: name.into(),
            memory: 64 << 20,
            width: 1920,
            height: 1080,
            bits: 32,
            refresh: 60,
            dpi: 96,
        }
    }
}
