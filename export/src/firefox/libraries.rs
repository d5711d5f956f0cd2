//! Libraries: images with the identities by which symbol servers find their symbols.

use std::ops::Range;

use etl_analysis::Machine;
use etl_analysis::profile::{ModuleInfo, Profile};
use etl_format::file_name;
use etl_schema::views::merge::ImageStamp;
use foldhash::HashMap;
use serde_json::{Value, json};

/// The identity of an unknown PDB: 32 digits of a signature, and an age.
const NO_PDB: &str = "000000000000000000000000000000000";

/// The architecture of 32-bit machines.
pub(super) const NARROW: &str = "x86";

/// Range and path of an image.
type ImageKey<'m> = (u64, u64, &'m str);

/// When the images of a machine were linked; `None` if processes have different images with the
/// same range and path.
fn link_times(machine: &Machine) -> HashMap<ImageKey<'_>, Option<u32>> {
    let mut times = HashMap::default();
    for image in machine.image_lives() {
        if let Some(ImageStamp {
            link_time: time, ..
        }) = image.stamp
            && time != 0
        {
            let key = (image.start, image.end, image.path);
            let link_time = times.entry(key).or_insert(Some(time));
            if *link_time != Some(time) {
                *link_time = None;
            }
        }
    }
    times
}

/// The libraries of a profile.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    list: Vec<Value>,
    /// The index of the library of each module, by index of the module.
    of_module: Vec<Option<u32>>,
}

impl Libraries {
    /// The images among the modules. `arch` is the architecture of the machine.
    pub fn new(profile: &Profile, machine: &Machine, arch: &str) -> Self {
        let link_times = link_times(machine);
        let mut libraries = Libraries::default();
        let mut numbers: HashMap<String, u32> = HashMap::default();
        for module in profile.modules() {
            let library = module.addresses.clone().map(|addresses| {
                let library = library(module, addresses, machine, &link_times, arch);
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
    addresses: Range<u64>,
    machine: &Machine,
    link_times: &HashMap<ImageKey<'_>, Option<u32>>,
    arch: &str,
) -> Value {
    let Range { start, end } = addresses;
    let pdb_name = module.pdb.map(|pdb| file_name(machine.pdb_path(pdb)));
    let pdb_name = pdb_name.filter(|name| !name.is_empty());
    let breakpad_id = match module.pdb {
        Some(pdb) => {
            let signature = pdb.signature.to_string().replace('-', "").to_uppercase();
            format!("{signature}{:x}", pdb.age)
        }
        None => NO_PDB.to_owned(),
    };
    let link_time = link_times
        .get(&(start, end, &*module.path))
        .copied()
        .flatten();
    let code_id = link_time.map(|time| format!("{time:08X}{:x}", end.saturating_sub(start)));
    // Below 4 GB it may be an image of a 32-bit program, which also runs on 64-bit machines.
    let has_arch_of_machine = arch == NARROW || end > 1 << 32;
    let arch = if has_arch_of_machine {
        Some(arch)
    } else {
        None
    };
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
