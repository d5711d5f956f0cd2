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
    }
}
