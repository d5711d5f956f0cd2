//! Drive letters of volumes: file names in events begin with the device of a volume.

use std::borrow::Cow;

use etl_format::cursor::Cursor;

use super::names::text;

/// Opcodes of the records by which a merge describes the machine (`SystemConfigEx`).
const SYSTEM_PATHS: u8 = 33;
const VOLUME_MAPPING: u8 = 35;

/// Volumes that are kept.
const MAX_VOLUMES: usize = 1 << 10;

/// A volume: the prefix of its paths in events, and the prefix that users know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volume {
    /// As the kernel has it: `\Device\HarddiskVolume2\`.
    pub device: Box<str>,
    /// As users have it: `C:\`.
    pub path: Box<str>,
}

/// The directory of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemDirectory<'m> {
    /// Its drive: `C:`.
    pub drive: &'m str,
    /// The path on the drive, without a separator at its end: `\Windows`.
    pub directory: &'m str,
}

/// The volumes of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volumes {
    list: Vec<Volume>,
    /// The directory of Windows, with its drive.
    system_root: Box<str>,
}

impl Volumes {
    /// Reads a record by which a merge describes the machine.
    pub fn record(&mut self, opcode: u8, payload: &[u8]) {
        let mut cursor = Cursor::new(payload);
        let Some(first) = cursor.utf16z() else {
            return;
        };
        let Some(second) = cursor.utf16z() else {
            return;
        };
        match opcode {
            SYSTEM_PATHS => self.system_root = text(second).trim_end_matches('\\').into(),
            VOLUME_MAPPING => self.add(&text(first), &text(second)),
            _ => {}
        }
    }

    fn add(&mut self, device: &str, path: &str) {
        let volume = Volume {
            device: with_separator(device),
            path: with_separator(path),
        };
        if self.list.len() < MAX_VOLUMES && !self.list.contains(&volume) {
            self.list.push(volume);
        }
    }

    pub fn list(&self) -> &[Volume] {
        &self.list
    }

    /// The drive of Windows and its directory there: `C:` and `\Windows`.
    pub fn system_drive(&self) -> Option<SystemDirectory<'_>> {
        let (drive, directory) = self.system_root.split_at_checked(2)?;
        if !drive.ends_with(':') || directory.len() < 2 {
            return None;
        }
        Some(SystemDirectory { drive, directory })
    }

    /// A path as users have it.
    pub fn user_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if !self.system_root.is_empty()
            && let Some(rest) = strip_prefix(path, "\\SystemRoot\\")
        {
            return format!("{}\\{rest}", self.system_root).into();
        }
        if let Some(rest) = strip_prefix(path, "\\??\\") {
            return rest.into();
        }
        // Loads of images state paths without a volume: `\Windows\System32\ntdll.dll`. Only the
        // directory of Windows is known to be on its drive.
        if let Some(system) = self.system_drive()
            && let Some(rest) = strip_prefix(path, system.directory)
            && rest.starts_with('\\')
        {
            return format!("{}{path}", system.drive).into();
        }
        for volume in &self.list {
            if let Some(rest) = strip_prefix(path, &volume.device) {
                return format!("{}{rest}", volume.path).into();
            }
        }
        path.into()
    }
}

/// A path with one separator at its end.
fn with_separator(path: &str) -> Box<str> {
    format!("{}\\", path.trim_end_matches('\\')).into()
}

/// The rest of a path that begins with a prefix, case-insensitively.
fn strip_prefix<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let (head, rest) = path.split_at_checked(prefix.len())?;
    if head.eq_ignore_ascii_case(prefix) {
        Some(rest)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_get_the_drive_of_their_volume() {
        let mut volumes = Volumes::default();
        volumes.add(r"\Device\HarddiskVolume1", r"C:\");
        volumes.add(r"\Device\HarddiskVolume12", "D:");
        volumes.system_root = r"C:\Windows".into();
        let path = |path| volumes.user_path(path).into_owned();
        assert_eq!(path(r"\Device\HarddiskVolume1\a\b.dll"), r"C:\a\b.dll");
        assert_eq!(path(r"\device\harddiskvolume12\c.dll"), r"D:\c.dll");
        assert_eq!(
            path(r"\Device\HarddiskVolume3\c.dll"),
            r"\Device\HarddiskVolume3\c.dll"
        );
        assert_eq!(
            path(r"\SystemRoot\System32\ntdll.dll"),
            r"C:\Windows\System32\ntdll.dll"
        );
        assert_eq!(path(r"\??\C:\x.exe"), r"C:\x.exe");
        assert_eq!(
            path(r"\windows\System32\ntdll.dll"),
            r"C:\windows\System32\ntdll.dll"
        );
        for unknown in [r"\Windows.old\x.dll", r"\Program Files\x.dll"] {
            assert_eq!(path(unknown), unknown, "it may be on another drive");
        }
    }
}
