//! What is at the locations of stacks: a method or an image, and its names in PDBs.

use etl_format::ProcessId;
use etl_schema::views::Pdb;

use super::code::{CodeNames, CodeSource, IlPoint, WantedCode};
use super::il_maps::{IlMaps, MethodKey};
use super::stacks::{Location, Owner, Stacks};
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::symbols::{Function, Method, SourceLine, Symbol, Symbols};

/// Where the code of a location is, in terms of PDBs.
enum CodePoint {
    Native(Pdb, u32),
    Managed(Pdb, IlPoint),
}

/// The names at a location.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// The functions of an image, outermost first.
    pub functions: &'a [Function],
    /// The source line in a method of a CLR.
    pub line: Option<&'a SourceLine>,
}

/// What is at the locations of stacks.
#[derive(Debug)]
pub(super) struct Locations<'m> {
    machine: &'m Machine,
    symbols: Symbols<'m>,
    /// The owners of roots, now that the whole recording was read.
    pub owners: Vec<Owner>,
    /// Whether samples end in a location: the other locations are return addresses.
    is_end: Vec<bool>,
    maps: Option<&'m IlMaps>,
    /// What is at each location. Kept only if names are asked for: then it is needed twice.
    resolved: Vec<Option<Symbol<'m>>>,
    names: Option<CodeNames>,
}

impl<'m> Locations<'m> {
    /// The locations of stacks, without names from PDBs.
    pub fn new(machine: &'m Machine, stacks: &Stacks) -> Self {
        Locations {
            machine,
            symbols: machine.symbols(),
            owners: owners(machine, stacks),
            is_end: Vec::new(),
            maps: None,
            resolved: Vec::new(),
            names: None,
        }
    }

    /// Asks a source for the names at all locations. `maps` are the maps of methods to their IL.
    pub fn name(&mut self, stacks: &Stacks, source: &dyn CodeSource, maps: Option<&'m IlMaps>) {
        self.maps = maps;
        self.is_end = ends(stacks);
        let locations = stacks.locations.iter();
        self.resolved = locations.map(|location| self.resolve(location)).collect();
        let wanted = self.wanted(stacks);
        self.names = Some(source.names(self.machine, &wanted));
    }

    /// The process of a location.
    fn process(&self, location: &Location) -> Option<ProcessIndex> {
        self.owners.get(location.root as usize)?.process
    }

    fn resolve(&self, location: &Location) -> Option<Symbol<'m>> {
        let process = self
            .process(location)
            .and_then(|index| self.machine.process(index));
        // Addresses of the kernel are the same in all processes.
        let pid = process.map_or(ProcessId::UNKNOWN, |process| process.pid());
        self.symbols
            .at(ProcessId::new(pid.get()), location.address, location.time)
    }

    /// What is at a location, by its index.
    pub fn symbol(&self, index: usize, location: &Location) -> Option<Symbol<'m>> {
        match self.resolved.get(index) {
            Some(symbol) => *symbol,
            None => self.resolve(location),
        }
    }

    /// The names at a location, by its index.
    pub fn names(
        &self,
        index: usize,
        location: &Location,
        symbol: Option<&Symbol<'_>>,
    ) -> Names<'_> {
        let Some(names) = &self.names else {
            return Names::default();
        };
        match self.point(index, location, symbol) {
            Some(CodePoint::Native(pdb, offset)) => Names {
                functions: names.functions(pdb, offset),
                line: None,
            },
            Some(CodePoint::Managed(pdb, point)) => Names {
                functions: &[],
                line: names.line(pdb, point),
            },
            None => Names::default(),
        }
    }

    /// The code at all locations for which PDBs may have names.
    fn wanted(&self, stacks: &Stacks) -> WantedCode {
        let mut wanted = WantedCode::default();
        for (index, (location, symbol)) in stacks.locations.iter().zip(&self.resolved).enumerate() {
            match self.point(index, location, symbol.as_ref()) {
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

    fn point(
        &self,
        index: usize,
        location: &Location,
        symbol: Option<&Symbol<'_>>,
    ) -> Option<CodePoint> {
        let address = self.lookup_address(index, location);
        match symbol? {
            Symbol::Image(image) => {
                let offset = u32::try_from(address.checked_sub(image.start)?).ok()?;
                Some(CodePoint::Native(image.pdb?, offset))
            }
            Symbol::Method(method) => {
                let pdb = method.module?.il_pdb?;
                // Without a map, the line of the method itself.
                let offset = self
                    .il_offset(self.process(location), method, address)
                    .unwrap_or(0);
                Some(CodePoint::Managed(
                    pdb,
                    IlPoint {
                        token: method.token,
                        offset,
                    },
                ))
            }
        }
    }

    /// The address whose line is the line of a location. A return address may belong to the next
    /// line, or to the next function; the byte before it belongs to the call.
    fn lookup_address(&self, index: usize, location: &Location) -> u64 {
        let is_end = self.is_end.get(index).copied().unwrap_or(true);
        if is_end {
            location.address
        } else {
            location.address.saturating_sub(1)
        }
    }

    fn il_offset(
        &self,
        process: Option<ProcessIndex>,
        method: &Method<'_>,
        address: u64,
    ) -> Option<u32> {
        let offset = u32::try_from(address.checked_sub(method.start)?).ok()?;
        let Method {
            clr, id, version, ..
        } = *method;
        let key = MethodKey {
            process: process?,
            clr,
            method: id,
            version,
        };
        self.maps?.il_offset(key, offset)
    }
}

/// Whether samples end in each location.
fn ends(stacks: &Stacks) -> Vec<bool> {
    let mut is_end = vec![false; stacks.locations.len()];
    for node in stacks
        .nodes
        .iter()
        .filter(|node| !node.is_root() && node.weight.samples > 0)
    {
        if let Some(is_end) = is_end.get_mut(node.location as usize) {
            *is_end = true;
        }
    }
    is_end
}

/// The owners of roots, now that the whole recording was read.
fn owners(machine: &Machine, stacks: &Stacks) -> Vec<Owner> {
    let mut owners = stacks.owners.clone();
    for owner in &mut owners {
        if owner.process.is_none() {
            owner.process = machine.first_process_of_thread(owner.tid);
        }
    }
    owners
}
