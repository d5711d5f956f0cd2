//! Libraries: images with the identities by which symbol servers find their symbols.

use etl_analysis::profile::{ModuleInfo, Profile};
use etl_format::constants::hook;
use etl_format::read::Record;
use etl_schema::views::{Pdb, kernel, merge};
use foldhash::HashMap;
use serde_json::{Value, json};

/// Identity of a PDB that is not known: 32 digits of a signature, and an age.
const NO_PDB: &str = "000000000000000000000000000000000";

/// The architecture of 32-bit machines.
pub(super) const NARROW: &str = "x86";

/// Range and path of an image.
type ImageKey = (u64, u64, Box<str>);

/// What events state of images beyond what the machine keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct Identities {
    link_times: HashMap<ImageKey, u32>,
    /// Link times by a merge, by range: `None` for different ones of several processes.
    merged: HashMap<(u64, u64), Option<u32>>,
    /// File names of PDBs.
    pdb_names: HashMap<Pdb, Box<str>>,
}

impl Identities {
    pub fn record(&mut self, record: &Record<'_>) {
        if record.hook().is_some() {
            self.image(record);
        } else if let Some(details) = merge::ImageDetails::of(record)
            && let Some(id) = merge::ImageId::of(record)
        {
            if let (Some(path), merge::ImageIdentity::Pdb(pdb)) = (details.pdb_path, id.identity) {
                let path = String::from_utf8_lossy(path);
                self.pdb_names.entry(pdb).or_insert_with(|| file_name(&path).into());
            }
            if let (Some(base), Some(size), Some(time)) = (id.base, details.size, details.link_time)
            {
                let range = (base, base.saturating_add(size));
                let known = self.merged.entry(range).or_insert(Some(time));
                *known = known.filter(|&known| known == time);
            }
        }
    }

    /// An image of the kernel's events; others are left alone.
    fn image(&mut self, record: &Record<'_>) {
        let Some(hook::IMAGE_LOAD | hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END) = record.hook() else {
            return;
        };
        let Some(kernel::Event::Image(_, image)) = kernel::decode(record) else { return };
        if let (Some(path), Some(time)) = (image.path(), image.link_time()) {
            let end = image.base.saturating_add(image.size);
            self.link_times.insert((image.base, end, utf16(path).into()), time);
        }
    }
}

fn utf16(units: &[u8]) -> String {
    let units = units.as_chunks().0.iter().map(|&unit| u16::from_le_bytes(unit));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or_default()
}

/// The libraries of a profile.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    list: Vec<Value>,
    /// The index of the library of each module.
    of_module: Vec<Option<u32>>,
}

impl Libraries {
    /// The images among the modules. `arch` is that of the machine.
    pub fn new(profile: &Profile, identities: &Identities, arch: &str) -> Self {
        let mut libraries = Libraries::default();
        let mut numbers: HashMap<String, u32> = HashMap::default();
        for module in profile.modules() {
            let library = module.addresses.map(|range| {
                let library = library(module, range, identities, arch);
                // Processes may have an image at different addresses.
                let next = libraries.list.len() as u32;
                let number = *numbers.entry(library.to_string()).or_insert(next);
                if number == next {
                    libraries.list.push(library);
                }
                number
            });
            libraries.of_module.push(library);
        }
        libraries
    }

    pub fn list(&self) -> &[Value] {
        &self.list
    }

    /// The library of a module by the index of the module.
    pub fn of(&self, module: usize) -> Option<u64> {
        self.of_module.get(module).copied().flatten().map(u64::from)
    }
}

fn library(
    module: &ModuleInfo,
    (start, end): (u64, u64),
    identities: &Identities,
    arch: &str,
) -> Value {
    let pdb_name = module.pdb.and_then(|pdb| identities.pdb_names.get(&pdb));
    let breakpad_id = module.pdb.map_or_else(
        || NO_PDB.to_owned(),
        |pdb| {
            let signature = pdb.signature.to_string().replace('-', "").to_uppercase();
            format!("{signature}{:x}", pdb.age)
        },
    );
    let key = (start, end, module.path.clone());
    let merged = || identities.merged.get(&(start, end)).copied().flatten();
    let link_time = identities.link_times.get(&key).copied().filter(|&time| time != 0);
    let link_time = link_time.or_else(merged).filter(|&time| time != 0);
    let code_id = link_time.map(|time| format!("{time:08X}{:x}", end.saturating_sub(start)));
    // 32-bit programs run on 64-bit machines, too.
    let arch = (arch == NARROW || end > 1 << 32).then_some(arch);
    json!({
        "arch": arch,
        "name": module.name,
        "path": module.path,
        "debugName": pdb_name.unwrap_or(&module.name),
        "debugPath": pdb_name.unwrap_or(&module.name),
        "breakpadId": breakpad_id,
        "codeId": code_id,
    })
}
