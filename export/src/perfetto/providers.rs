//! Events of Microsoft-Windows-Kernel-Disk and Microsoft-Windows-Kernel-File as events of the
//! kernel: they state the same operations, with other names of fields.

use etl_format::Guid;
use etl_format::constants::hook;
use etl_schema::providers::{KERNEL_DISK, KERNEL_FILE};

/// An event of one of the providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProviderEvent {
    pub provider: Guid,
    pub id: u16,
    /// The hook of the kernel's event about the same operation.
    pub hook: u16,
}

impl ProviderEvent {
    pub fn of(provider: Guid, id: u16) -> Option<Self> {
        let hook = match provider {
            KERNEL_DISK => disk_hook(id)?,
            KERNEL_FILE => file_hook(id)?,
            _ => return None,
        };
        Some(ProviderEvent { provider, id, hook })
    }

    /// The name of a field of the kernel's event in this event.
    pub fn field_name(self, name: &'static str) -> &'static str {
        match name {
            "Irp" if self.provider == KERNEL_DISK => "IORequestPacket",
            "IrpPtr" => "Irp",
            "TTID" => "IssuingThreadId",
            "OpenPath" => "FileName",
            "FileAttributes" => "CreateAttributes",
            "Offset" => "ByteOffset",
            "IoSize" => "IOSize",
            "IoFlags" => "IOFlags",
            "ExtraInfo" => "ExtraInformation",
            "NtStatus" => "Status",
            "FileName" if is_path(self.hook) => "FilePath",
            name => name,
        }
    }
}

fn is_path(hook: u16) -> bool {
    matches!(
        hook,
        hook::FILE_DELETE_PATH | hook::FILE_RENAME_PATH | hook::FILE_LINK_PATH
    )
}

fn disk_hook(id: u16) -> Option<u16> {
    Some(match id {
        10 => hook::DISK_READ,
        11 => hook::DISK_WRITE,
        14 => hook::DISK_FLUSH,
        _ => return None,
    })
}

fn file_hook(id: u16) -> Option<u16> {
    Some(match id {
        12 => hook::FILE_OPEN,
        13 => hook::FILE_CLEANUP,
        14 => hook::FILE_CLOSE,
        15 => hook::FILE_READ,
        16 => hook::FILE_WRITE,
        17 => hook::FILE_SET_INFO,
        18 => hook::FILE_SET_DELETE,
        19 => hook::FILE_RENAME,
        20 => hook::FILE_DIR_ENUM,
        21 => hook::FILE_FLUSH,
        22 => hook::FILE_QUERY_INFO,
        23 => hook::FILE_FS_CONTROL,
        24 => hook::FILE_OPERATION_END,
        25 => hook::FILE_DIR_NOTIFY,
        26 => hook::FILE_DELETE_PATH,
        27 => hook::FILE_RENAME_PATH,
        28 => hook::FILE_LINK_PATH,
        _ => return None,
    })
}
