//! Identities of PDBs and of images, and their paths on symbol servers.

use std::fmt::Write;

use etl_format::{Guid, file_name};

/// Identity of a PDB, as the image that belongs to it states it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PdbId {
    name: String,
    guid: Guid,
    age: u32,
}

/// Hexadecimal digits of a GUID, without dashes.
fn digits(guid: Guid) -> String {
    guid.to_string()
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect::<String>()
        .to_uppercase()
}

impl PdbId {
    /// The PDB with a GUID and an age. `path` is its path or its name as the image states it.
    #[must_use]
    pub fn new(path: &str, guid: Guid, age: u32) -> Self {
        PdbId {
            name: file_name(path).to_owned(),
            guid,
            age,
        }
    }

    /// Its file name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Its age: how often the linker wrote it. It says nothing about a portable PDB.
    #[must_use]
    pub fn age(&self) -> u32 {
        self.age
    }

    /// GUID and age as symbol servers spell them.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}{:X}", digits(self.guid), self.age)
    }

    /// Path of the Windows PDB on a symbol server: `app.pdb/0123…DEF1/app.pdb`.
    #[must_use]
    pub fn server_path(&self) -> String {
        format!("{0}/{1}/{0}", self.name, self.key())
    }

    /// Path of the portable PDB on a symbol server: it has `FFFFFFFF` instead of the age.
    #[must_use]
    pub fn portable_server_path(&self) -> String {
        format!("{0}/{1}FFFFFFFF/{0}", self.name, digits(self.guid))
    }
}

/// Path of an image on a symbol server: `app.dll/5F1C6A30a000/app.dll`. `path` is its path or name,
/// `time_date_stamp` is in its header, and `size` is its size in memory.
#[must_use]
pub fn image_server_path(path: &str, time_date_stamp: u32, size: u64) -> String {
    let name = file_name(path);
    let mut out = format!("{name}/");
    // Writing into a string does not fail.
    let _ = write!(out, "{time_date_stamp:08X}{size:x}/{name}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_paths_are_those_of_symbol_servers() {
        let guid = Guid::parse("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9").unwrap();
        let id = PdbId::new(r"C:\build\app.pdb", guid, 12);
        assert_eq!(
            id.server_path(),
            "app.pdb/0A1B2C3D4E5F60718293A4B5C6D7E8F9C/app.pdb"
        );
        let portable = "app.pdb/0A1B2C3D4E5F60718293A4B5C6D7E8F9FFFFFFFF/app.pdb";
        assert_eq!(id.portable_server_path(), portable);
        let image = image_server_path(r"\Device\app.dll", 0x5f1c_6a30, 0xa_b000);
        assert_eq!(image, "app.dll/5F1C6A30ab000/app.dll");
    }
}
