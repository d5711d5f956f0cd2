//! The files that `dotnet-trace collect-linux` lists in the memory of processes.

use etl_format::{Guid, ProcessId};
use etl_schema::views::Pdb;
use foldhash::HashMap;

/// Files whose functions and identities can be added. A machine has some thousands.
const MAX_FILES: usize = 1 << 18;

/// A file in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedFile {
    /// The index of its image.
    pub image: u64,
    /// Its first address.
    pub start: u64,
    /// Its last address.
    pub last: u64,
}

impl MappedFile {
    /// Whether an address is in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..=self.last).contains(&address)
    }
}

/// The files in the memory of processes, by the numbers that events have for them.
#[derive(Debug, Default)]
pub(crate) struct MappedFiles {
    files: HashMap<(ProcessId, u64), MappedFile>,
    pdbs: HashMap<u64, Pdb>,
}

impl MappedFiles {
    /// Adds a file of a process under its number.
    pub fn add(&mut self, pid: ProcessId, id: u64, file: MappedFile) {
        if self.files.len() < MAX_FILES || self.files.contains_key(&(pid, id)) {
            self.files.insert((pid, id), file);
        }
    }

    /// The file of a process with a number.
    pub fn get(&self, pid: ProcessId, id: u64) -> Option<&MappedFile> {
        self.files.get(&(pid, id))
    }

    /// Adds a PDB under the number of an identity.
    pub fn add_pdb(&mut self, id: u64, pdb: Pdb) {
        if self.pdbs.len() < MAX_FILES || self.pdbs.contains_key(&id) {
            self.pdbs.insert(id, pdb);
        }
    }

    /// The PDB under the number of an identity.
    pub fn pdb(&self, id: u64) -> Option<Pdb> {
        self.pdbs.get(&id).copied()
    }
}

/// The identity of a Windows file (PE), as the libraries of .NET are on all systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity<'a> {
    pub pdb: Pdb,
    pub pdb_path: &'a str,
}

impl<'a> FileIdentity<'a> {
    /// By the JSON of an event. Its texts are not escaped: the writer prints them as they are in
    /// the file, and so a path with backslashes is not valid JSON. ELF files have other identities.
    pub fn parse(json: &'a str) -> Option<Self> {
        let signature = text(json, "signature")?;
        if signature.len() != 32 {
            return None;
        }
        let digits = u128::from_str_radix(signature, 16).ok()?;
        let age = value(json, "age")?;
        let end = age.find(|c: char| !c.is_ascii_digit())?;
        let pdb = Pdb {
            // The bytes as they are in the file.
            signature: Guid::from_bytes(digits.to_be_bytes()),
            age: age.get(..end)?.parse().ok()?,
        };
        if pdb.signature.is_zero() {
            return None;
        }
        Some(FileIdentity {
            pdb,
            pdb_path: text(json, "name").unwrap_or(""),
        })
    }
}

/// The rest of a JSON object from the value of a key on.
fn value<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let quoted = format!("\"{key}\"");
    let end = json.find(&quoted)? + quoted.len();
    let rest = json.get(end..)?.trim_start().strip_prefix(':')?;
    Some(rest.trim_start())
}

/// The text of a key.
fn text<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let rest = value(json, key)?.strip_prefix('"')?;
    rest.get(..rest.find('"')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_the_identity_of_a_windows_file() {
        let json = r#"{"type": "PE","name": "C:\obj\App.pdb","date_time": 3531865237,"age": 2,
            "signature": "00112233445566778899aabbccddeeff","perfmap_signature": "57"}"#;
        let identity = FileIdentity::parse(json).unwrap();
        assert_eq!(identity.pdb_path, r"C:\obj\App.pdb");
        assert_eq!(identity.pdb.age, 2);
        // The first three parts of a GUID are little-endian in a file.
        let signature = identity.pdb.signature.to_string();
        assert_eq!(signature, "33221100-5544-7766-8899-aabbccddeeff");
    }

    #[test]
    fn parse_finds_no_pdb_in_other_identities() {
        let elf = r#"{"type": "ELF","build_id": "0101010101010101010101010101010101010101"}"#;
        let zeros = format!(r#"{{"age": 0,"signature": "{}"}}"#, "0".repeat(32));
        for json in ["", "{}", elf, &zeros, r#"{"signature": "12"#] {
            assert_eq!(FileIdentity::parse(json), None, "{json}");
        }
    }
}
