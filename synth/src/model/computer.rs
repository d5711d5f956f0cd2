//! What the computer is made of, as the kernel tells it to its sessions.

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlan {
    /// What its maker calls it.
    pub name: String,
    /// Bytes on it.
    pub bytes: u64,
    /// Its volumes in their order on the disk, behind a small one that the system starts from.
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
    /// What its driver calls it.
    pub name: String,
    /// Its physical address: up to eight bytes.
    pub address: Vec<u8>,
    /// Its IP addresses, with semicolons between.
    pub ip: String,
    /// Addresses of name servers, with semicolons between.
    pub dns: String,
}

/// A display and what drives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayPlan {
    /// What the adapter's driver calls it.
    pub name: String,
    /// Memory of the adapter in bytes.
    pub memory: u32,
    /// Pixels across and down.
    pub size: (u32, u32),
    /// Bits of a pixel.
    pub bits: u32,
    /// Times in a second that it is drawn.
    pub refresh: u32,
    /// Dots in an inch, as the system takes them to be.
    pub dpi: u32,
}

/// A service. It runs when its process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    /// Its name.
    pub name: String,
    /// The name that people see.
    pub display: String,
    /// File name of the executable that it runs in; empty for one that nobody starts.
    pub process: String,
    /// The group of `svchost.exe` that it is in; empty for one with a process of its own.
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
    /// An NTFS volume of which half is free.
    #[must_use]
    pub fn new(letter: impl Into<String>, bytes: u64) -> Self {
        let file_system = "NTFS".to_owned();
        VolumePlan { letter: letter.into(), bytes, free: bytes / 2, file_system }
    }
}

impl DisplayPlan {
    /// A display of 1920 by 1080 pixels.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        DisplayPlan {
            name: name.into(),
            memory: 64 << 20,
            size: (1920, 1080),
            bits: 32,
            refresh: 60,
            dpi: 96,
        }
    }
}
