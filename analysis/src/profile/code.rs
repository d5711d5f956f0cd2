//! Names of code that the recording does not have: functions of images and source lines, from PDBs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use etl_schema::views::Pdb;
use foldhash::HashMap;

use super::collector::SampleCollector;
use super::il_maps::{IlMaps, MethodKey};
use super::stacks::{Location, Owner, Stacks};
use crate::machine::Machine;
use crate::symbols::{Method, Symbol, Symbols};

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// Path of the file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

/// A function, and the source line at an address in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionName {
    /// Name with its namespaces and classes.
    pub name: Arc<str>,
    /// The line, where it is known.
    pub line: Option<SourceLine>,
}

/// A point in the IL of a method: its metadata token, and the offset in its IL.
pub type IlPoint = (u32, u32);

/// The code that a profile has: what names are wanted for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedCode {
    /// Offsets in images, by the PDBs of the images.
    pub native: BTreeMap<Pdb, BTreeSet<u32>>,
    /// Points in the IL of methods, by the PDBs of their modules.
    pub managed: BTreeMap<Pdb, BTreeSet<IlPoint>>,
}

/// Names of functions and source lines, for
/// [`ProfileOptions::code_names`](super::ProfileOptions::code_names).
#[derive(Clone, Debug, Default)]
pub struct CodeNames {
    functions: HashMap<(Pdb, u32), Vec<FunctionName>>,
    lines: HashMap<(Pdb, IlPoint), SourceLine>,
    maps: IlMaps,
}

impl CodeNames {
    /// No names. `maps` are those that [`SampleCollector::wanted_code`] had.
    #[must_use]
    pub fn new(maps: IlMaps) -> Self {
        CodeNames { maps, ..CodeNames::default() }
    }

    /// Adds the functions at an offset in the image of a PDB: the function itself, then the one
    /// that was inlined there, and so on.
    pub fn add_functions(&mut self, pdb: Pdb, offset: u32, functions: Vec<FunctionName>) {
        if !functions.is_empty() {
            self.functions.insert((pdb, offset), functions);
        }
    }

    /// Adds the source line of a point in the IL of a module.
    pub fn add_line(&mut self, pdb: Pdb, point: IlPoint, line: SourceLine) {
        self.lines.insert((pdb, point), line);
    }

    /// The functions at an offset in the image of a PDB; the one that was inlined innermost last.
    #[must_use]
    pub fn functions(&self, pdb: Pdb, offset: u32) -> &[FunctionName] {
        self.functions.get(&(pdb, offset)).map_or(&[], Vec::as_slice)
    }

    /// The source line of a point in the IL of a module.
    #[must_use]
    pub fn line(&self, pdb: Pdb, point: IlPoint) -> Option<&SourceLine> {
        self.lines.get(&(pdb, point))
    }
}

/// Where the code of a location is, in terms of PDBs.
enum CodePoint {
    Native(Pdb, u32),
    Managed(Pdb, IlPoint),
}

/// What finds the names of locations.
pub(super) struct Namer<'a> {
    names: &'a CodeNames,
    /// Whether samples end in a location: others are return addresses.
    is_end: Vec<bool>,
}

impl<'a> Namer<'a> {
    pub fn new(names: &'a CodeNames, stacks: &Stacks) -> Self {
        Namer { names, is_end: ends(stacks) }
    }

    /// The functions at a location, outermost first, or its source line in a method of a CLR; none
    /// where they are not known.
    pub fn names(
        &self,
        (at, location): (usize, &Location),
        symbol: Option<&Symbol<'_>>,
        process: Option<usize>,
    ) -> (&'a [FunctionName], Option<&'a SourceLine>) {
        let address = lookup(&self.is_end, at, location);
        match point(symbol, address, &self.names.maps, process) {
            Some(CodePoint::Native(pdb, offset)) => (self.names.functions(pdb, offset), None),
            Some(CodePoint::Managed(pdb, point)) => (&[], self.names.line(pdb, point)),
            None => (&[], None),
        }
    }
}

/// Whether samples end in each location.
fn ends(stacks: &Stacks) -> Vec<bool> {
    let mut is_end = vec![false; stacks.locations.len()];
    for node in stacks.nodes.iter().filter(|node| !node.is_root() && node.weight.samples > 0) {
        if let Some(is_end) = is_end.get_mut(node.location as usize) {
            *is_end = true;
        }
    }
    is_end
}

/// The address whose line is that of a location. A return address may be that of the next line, or
/// of the next function; the byte before it belongs to the call.
fn lookup(is_end: &[bool], at: usize, location: &Location) -> u64 {
    let is_end = is_end.get(at).copied().unwrap_or(true);
    if is_end { location.address } else { location.address.saturating_sub(1) }
}

fn point(
    symbol: Option<&Symbol<'_>>,
    address: u64,
    maps: &IlMaps,
    process: Option<usize>,
) -> Option<CodePoint> {
    match symbol? {
        Symbol::Image(image) => {
            let offset = u32::try_from(address.checked_sub(image.start)?).ok()?;
            Some(CodePoint::Native(image.pdb?, offset))
        }
        Symbol::Method(method) => {
            let pdb = method.module.and_then(|module| module.il_pdb)?;
            let il_offset = process.and_then(|process| {
                let offset = u32::try_from(address.checked_sub(method.start)?).ok()?;
                maps.il_offset(key(process, method), offset)
            });
            // Without a map, the line of the method itself.
            Some(CodePoint::Managed(pdb, (method.token, il_offset.unwrap_or(0))))
        }
    }
}

fn key(process: usize, method: &Method<'_>) -> MethodKey {
    MethodKey { process, clr: method.clr, method: method.id, version: method.version }
}

/// The owners of roots, now that the whole recording is known.
pub(super) fn owners(machine: &Machine, stacks: &Stacks) -> Vec<Owner> {
    let owner = |owner: &Owner| Owner {
        process: owner.process.or_else(|| machine.first_process_of_thread(owner.tid)),
        tid: owner.tid,
    };
    stacks.owners.iter().map(owner).collect()
}

/// What is at a location of a process.
pub(super) fn symbol<'m>(
    machine: &'m Machine,
    symbols: &Symbols<'m>,
    owners: &[Owner],
    location: &Location,
) -> Option<Symbol<'m>> {
    let owner = owners.get(location.root as usize);
    let pid = owner.and_then(|owner| machine.processes().get(owner.process?));
    // Addresses of the kernel are the same in all processes.
    let pid = pid.map_or(u32::MAX, |process| process.pid());
    symbols.at(pid, location.address, location.time)
}

impl SampleCollector {
    /// The code that was collected, for which PDBs may have names. `machine` is as for
    /// [`profile`](SampleCollector::profile), and `maps` are those of its methods, if they were
    /// collected.
    #[must_use]
    pub fn wanted_code(&self, machine: &Machine, maps: &IlMaps) -> WantedCode {
        let (symbols, stacks) = (machine.symbols(), &self.stacks);
        let owners = owners(machine, stacks);
        let is_end = ends(stacks);
        let mut wanted = WantedCode::default();
        for (at, location) in stacks.locations.iter().enumerate() {
            let symbol = symbol(machine, &symbols, &owners, location);
            let process = owners.get(location.root as usize).and_then(|owner| owner.process);
            match point(symbol.as_ref(), lookup(&is_end, at, location), maps, process) {
                Some(CodePoint::Native(pdb, offset)) => {
                    wanted.native.entry(pdb).or_default().insert(offset);
                }
                Some(CodePoint::Managed(pdb, point)) => {
                    wanted.managed.entry(pdb).or_default().insert(point);
                }
                None => {}
            }
        }
        wanted
    }
}
