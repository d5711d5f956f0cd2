//! Drive letters of volumes: file names in events begin with the device of a volume.

use std::borrow::Cow;

use etl_format::cursor::Cursor;

use super::names::text;

/// Opcodes of the records by which a merge describes the machine (`SystemConfigEx`).
const SYSTEM_PATHS: u8 = 33;
const VOLUME_MAPPING: u8 = 35;

/// Volumes that are kept.
const MAX_VOLUMES: usize = 1 << 10;

/// A volume: the prefix of its paths in events, and the one that users know.
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
    /// Takes in a record by which a merge describes the machine.
    pub fn record(&mut self, opcode: u8, payload: &[u8]) {
        let mut c = Cursor::new(payload);
        let (Some(first), Some(second)) = (c.utf16z(), c.utf16z()) else {
            return;
        };
        match opcode {
            SYSTEM_PATHS => self.system_root = text(second).trim_end_matches('\\').into(),
            VOLUME_MAPPING => self.add(&text(first), &text(second)),
            _ => {}
        }
    }

    fn add(&mut self, device: &str, path: &str) {
        let ended = |text: &str| format!("{}\\", text.trim_end_matches('\\')).into_boxed_str();
        let volume = Volume {
            device: ended(device),
            path: ended(path),
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
        let rest = |prefix: &str| {
            let head = path.get(..prefix.len())?;
            head.eq_ignore_ascii_case(prefix)
                .then(|| path.get(prefix.len()..))
                .flatten()
        };
        if let Some(rest) = rest("\\SystemRoot\\").filter(|_| !self.system_root.is_empty()) {
            return format!("{}\\{rest}", self.system_root).into();
        }
        if let Some(rest) = rest("\\??\\") {
            return rest.into();
        }
        let known = self
            .list
            .iter()
            .find_map(|v| Some(format!("{}{}", v.path, rest(&v.device)?)));
        known.map_or(Cow::Borrowed(path), Cow::Owned)
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
