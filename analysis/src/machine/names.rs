//! Names of methods, modules, assemblies, domains and images.
//!
//! There may be millions of methods, so names are kept only if they are asked for:
//! [`Analysis::names`](crate::Analysis::with_names). Each text is kept once.

use etl_format::Ticks;
use std::collections::BTreeMap;
use std::hash::BuildHasher;

use etl_format::cursor::utf16_nul;
use etl_schema::decode::{Utf16, ansi_text};
use etl_schema::views::Pdb;
use etl_schema::views::clr::{self, Method, Module};
use foldhash::HashMap;

use crate::keys::ClrKey;

/// Bits of the flags of a method that hold its tier.
const TIER_SHIFT: u32 = 7;
const TIER_MASK: u32 = 0b111;

/// Names of tiers, by number.
const TIERS: [&str; 8] = [
    "unknown",
    "minimum optimization",
    "optimized",
    "tier 0",
    "tier 1",
    "tier 1 OSR",
    "tier 0 instrumented",
    "tier 1 instrumented",
];

/// The number of the tier in the flags of a method; 0 if none is stated.
#[must_use]
pub(crate) const fn tier_of(flags: u32) -> u8 {
    ((flags >> TIER_SHIFT) & TIER_MASK) as u8
}

/// The name of a tier, by its number.
#[must_use]
pub fn tier_name(tier: u8) -> &'static str {
    TIERS.get(usize::from(tier)).copied().unwrap_or("unknown")
}

/// The number of a text; 0 is the empty one.
type Text = u32;

/// Texts, each kept once.
#[derive(Clone, Debug, Default)]
struct Texts {
    /// Numbers by the hash of the text. If several texts have the same hash, the later ones have
    /// the next free hashes.
    numbers: HashMap<u64, Text>,
    /// The texts, one after the other.
    all: String,
    /// Where each text ends in `all`.
    ends: Vec<usize>,
}

impl Texts {
    fn number(&mut self, units: &[u8]) -> Text {
        self.number_of(Utf16::new(until_nul(units)))
    }

    /// The number of a text without NUL.
    fn number_of(&mut self, text: Utf16<'_>) -> Text {
        if text.is_empty() {
            return 0;
        }
        let start = self.all.len();
        text.push_to(&mut self.all);
        let text = self.all.get(start..).unwrap_or_default();
        let mut hash = self.numbers.hasher().hash_one(text);
        while let Some(&number) = self.numbers.get(&hash) {
            if self.get(number) == text {
                self.all.truncate(start);
                return number;
            }
            hash = hash.wrapping_add(1);
        }
        self.ends.push(self.all.len());
        // No memory holds more.
        let number = u32::try_from(self.ends.len()).unwrap_or(0);
        self.numbers.insert(hash, number);
        number
    }

    fn get(&self, number: Text) -> &str {
        self.find(number).unwrap_or("")
    }

    fn find(&self, number: Text) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.all.get(start..*self.ends.get(index)?)
    }
}

/// A text in UTF-16 without its NUL and all after it.
fn until_nul(units: &[u8]) -> &[u8] {
    let end = utf16_nul(units).unwrap_or(units.len() & !1);
    units.get(..end).unwrap_or(units)
}

/// A text in UTF-16, up to its NUL.
pub(crate) fn text(units: &[u8]) -> String {
    let mut text = String::new();
    Utf16::new(until_nul(units)).push_to(&mut text);
    text
}

/// The file name of a path in UTF-16, in lower case.
pub(super) fn file_name(path: &[u8]) -> Box<str> {
    let mut units = path.chunks_exact(2);
    let separator = units.rposition(|unit| matches!(unit, [b'\\' | b'/', 0]));
    let start = separator.map_or(0, |index| 2 * (index + 1));
    let name = text(path.get(start..).unwrap_or_default());
    name.to_lowercase().into()
}

/// What events state of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodNames {
    /// Id within its CLR.
    pub id: u64,
    /// Id of its module; 0 for helpers of the runtime.
    pub module: u64,
    /// Metadata token; 0 for a method without metadata.
    pub token: u32,
    /// Flags, as [`Method::flags`].
    pub flags: u32,
    /// ReJIT id; `None` if the events are too old to have it.
    pub version: Option<u64>,
    /// Whether an event names it.
    pub named: bool,
    namespace: Text,
    name: Text,
    signature: Text,
}

impl MethodNames {
    fn texts(&self) -> [Text; 3] {
        [self.namespace, self.name, self.signature]
    }
}

/// What events state of a module, as long as it has its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModuleNames {
    /// Time of its load, if it was seen.
    pub from: Option<Ticks>,
    /// Time of its unload, if it was seen.
    pub to: Option<Ticks>,
    /// Its assembly.
    pub assembly: u64,
    /// Flags, as [`Module::flags`].
    pub flags: u32,
    /// PDB of its IL.
    pub il_pdb: Option<Pdb>,
    /// PDB of its native image.
    pub native_pdb: Option<Pdb>,
    path: Text,
    native_path: Text,
    /// When this module and all modules that had the id before it were unloaded; [`Ticks::MAX`] if
    /// one of them was not.
    gone: Ticks,
}

/// What events state of an assembly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AssemblyNames<'a> {
    /// Its full name.
    pub name: &'a str,
    /// Id of its domain.
    pub domain: u64,
}

/// A function of an image that the recording names. Streams of `dotnet-trace collect-linux` do;
/// kernel traces of Windows do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFunction<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its first address.
    pub start: u64,
}

/// The names of methods, modules, assemblies, domains and images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    texts: Texts,
    methods: Vec<MethodNames>,
    /// Number of the last method with an id and a version, by CLR.
    latest: HashMap<(ClrKey, u64, Option<u64>), u32>,
    /// The modules that had an id, one after the other.
    modules: BTreeMap<(ClrKey, u64), Vec<ModuleNames>>,
    /// Id of the domain, and name.
    assemblies: HashMap<(ClrKey, u64), (u64, Text)>,
    domains: HashMap<(ClrKey, u64), Text>,
    /// Paths of images, by index.
    images: Vec<Text>,
    /// Paths of PDBs.
    pdbs: HashMap<Pdb, Text>,
    /// Functions of images.
    functions: BTreeMap<FunctionPlace, FunctionName>,
}

/// Functions of images that are kept: each takes 48 bytes and its name.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Where a function of an image begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionPlace {
    /// The index of the image.
    image: u64,
    start: u64,
}

/// The name of a function of an image.
#[derive(Clone, Copy, Debug)]
struct FunctionName {
    /// Its last address.
    last: u64,
    name: Text,
}

impl Names {
    /// Keeps the names in an event of a CLR. For a method, returns its number, under which its code
    /// is to be kept.
    pub fn learn(
        &mut self,
        clr: ClrKey,
        decoded: &clr::Decoded<'_>,
        timestamp: Ticks,
    ) -> Option<u64> {
        match &decoded.event {
            clr::Event::Method(_, method) => {
                let text = method.text();
                return Some(self.method(clr, method, &text.unwrap_or_default()).into());
            }
            clr::Event::Module(via, module) => self.module(clr, *via, module, timestamp),
            clr::Event::Assembly(_, assembly) => {
                let name = assembly.name().unwrap_or_default();
                let name = self.texts.number(name);
                self.assemblies
                    .insert((clr, assembly.id), (assembly.domain, name));
            }
            clr::Event::AppDomain(_, domain) => {
                let name = domain.name().unwrap_or_default();
                let name = self.texts.number(name);
                self.domains.insert((clr, domain.id), name);
            }
            _ => {}
        }
        None
    }

    fn method(&mut self, clr: ClrKey, method: &Method<'_>, text: &clr::MethodText<'_>) -> u32 {
        let new = MethodNames {
            id: method.id,
            module: method.module,
            token: text.token,
            flags: method.flags,
            version: text.version,
            named: method.is_named(),
            namespace: self.texts.number_of(Utf16::new(text.namespace)),
            name: self.texts.number_of(Utf16::new(text.name)),
            signature: self.texts.number_of(Utf16::new(text.signature)),
        };
        let key = (clr, method.id, text.version);
        let known = self.latest.get(&key).copied();
        if let Some(number) = known
            && let Some(before) = self.methods.get_mut(number as usize)
        {
            // A plain event is about the method that a verbose event named. If the names differ,
            // another method has the id now.
            let has_same_names = before.named && before.texts() == new.texts();
            if !new.named || has_same_names {
                return number;
            }
            if !before.named && before.token == new.token && before.module == new.module {
                *before = new;
                return number;
            }
        }
        let number = u32::try_from(self.methods.len()).unwrap_or(u32::MAX);
        self.methods.push(new);
        self.latest.insert(key, number);
        number
    }

    fn module(&mut self, clr: ClrKey, via: clr::Change, module: &Module<'_>, timestamp: Ticks) {
        let text = module.text();
        let new = ModuleNames {
            from: (via == clr::Change::Load).then_some(timestamp),
            to: (via == clr::Change::Unload).then_some(timestamp),
            assembly: module.assembly,
            flags: module.flags,
            il_pdb: text.il_pdb,
            native_pdb: text.native_pdb,
            path: self.texts.number(text.il_path),
            native_path: self.texts.number(text.native_path),
            gone: Ticks::MAX,
        };
        self.module_pdb(text.il_pdb, text.il_pdb_path);
        self.module_pdb(text.native_pdb, text.native_pdb_path);
        add_module(self.modules.entry((clr, module.id)).or_default(), new);
    }

    /// Keeps the path of a PDB, in UTF-16.
    fn module_pdb(&mut self, pdb: Option<Pdb>, path: &[u8]) {
        if let Some(pdb) = pdb
            && !path.is_empty()
        {
            let path = self.texts.number(path);
            self.pdbs.entry(pdb).or_insert(path);
        }
    }

    /// Keeps the path of an image, by its index.
    pub fn image(&mut self, index: u64, path: &[u8]) {
        let Ok(index) = usize::try_from(index) else {
            return;
        };
        let path = self.texts.number(path);
        if self.images.len() <= index {
            self.images.resize(index + 1, 0);
        }
        if let Some(known) = self.images.get_mut(index)
            && *known == 0
        {
            *known = path;
        }
    }

    /// Keeps the name of a function of an image, by its first and its last address.
    pub fn function(&mut self, image: u64, start: u64, last: u64, name: &str) {
        if self.functions.len() >= MAX_FUNCTIONS {
            return;
        }
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let name = self.texts.number(&units);
        let place = FunctionPlace { image, start };
        self.functions.insert(place, FunctionName { last, name });
    }

    /// The function at an address of an image.
    #[must_use]
    pub fn function_at(&self, image: u64, address: u64) -> Option<ImageFunction<'_>> {
        let end = FunctionPlace {
            image,
            start: address,
        };
        let (place, function) = self.functions.range(..=end).next_back()?;
        if place.image != image || function.last < address {
            return None;
        }
        Some(ImageFunction {
            name: self.texts.get(function.name),
            start: place.start,
        })
    }

    /// Keeps the path of a PDB, in the encoding of a linker.
    pub fn pdb(&mut self, pdb: Pdb, path: &[u8]) {
        if !path.is_empty() && !self.pdbs.contains_key(&pdb) {
            let units: Vec<u8> = ansi_text(path)
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect();
            let path = self.texts.number(&units);
            self.pdbs.insert(pdb, path);
        }
    }

    /// Path of a PDB; empty if no event states it.
    #[must_use]
    pub fn pdb_path(&self, pdb: Pdb) -> &str {
        self.pdbs.get(&pdb).map_or("", |&path| self.texts.get(path))
    }

    /// The method with a number.
    #[must_use]
    pub fn method_at(&self, number: u64) -> Option<&MethodNames> {
        self.methods.get(usize::try_from(number).ok()?)
    }

    /// The type with its namespace, the name and the signature of a method.
    #[must_use]
    pub fn names_of(&self, method: &MethodNames) -> [&str; 3] {
        method.texts().map(|text| self.texts.get(text))
    }

    /// The module that had an id at a time. If there are several, returns the first that had not
    /// gone by then.
    #[must_use]
    pub fn module_at(&self, clr: ClrKey, id: u64, timestamp: Ticks) -> Option<&ModuleNames> {
        module_at(self.modules.get(&(clr, id))?, timestamp)
    }

    /// All modules: their CLR, their id, and what events state.
    pub fn modules(&self) -> impl Iterator<Item = (ClrKey, u64, &ModuleNames)> {
        self.modules.iter().flat_map(|(&(clr, id), modules)| {
            let modules = modules.iter();
            modules.map(move |module| (clr, id, module))
        })
    }

    /// Paths of the IL and of the native image of a module; empty if there is none.
    #[must_use]
    pub fn paths_of(&self, module: &ModuleNames) -> [&str; 2] {
        [module.path, module.native_path].map(|text| self.texts.get(text))
    }

    /// The names of an assembly.
    #[must_use]
    pub fn assembly(&self, clr: ClrKey, id: u64) -> Option<AssemblyNames<'_>> {
        let &(domain, name) = self.assemblies.get(&(clr, id))?;
        Some(AssemblyNames {
            name: self.texts.get(name),
            domain,
        })
    }

    /// Name of a domain.
    #[must_use]
    pub fn domain(&self, clr: ClrKey, id: u64) -> Option<&str> {
        let &name = self.domains.get(&(clr, id))?;
        Some(self.texts.get(name))
    }

    /// Path of an image; empty if no event states it.
    #[must_use]
    pub fn image_path(&self, index: u64) -> &str {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.images.get(index) {
            Some(&path) => self.texts.get(path),
            None => "",
        }
    }
}

/// Adds what an event states of a module to the modules that had its id before.
fn add_module(modules: &mut Vec<ModuleNames>, new: ModuleNames) {
    match modules.last_mut() {
        // The same module is listed again.
        Some(last) if last.to.is_none() && last.path == new.path => {
            last.to = new.to;
            last.il_pdb = last.il_pdb.or(new.il_pdb);
            last.native_pdb = last.native_pdb.or(new.native_pdb);
            if last.native_path == 0 {
                last.native_path = new.native_path;
            }
        }
        _ => modules.push(new),
    }
    if let Some((last, before)) = modules.split_last_mut() {
        let gone = before.last().map_or(Ticks::MIN, |before| before.gone);
        last.gone = last.to.unwrap_or(Ticks::MAX).max(gone);
    }
}

/// Of the modules that had an id, the first that had not gone by a time, or else the last.
fn module_at(modules: &[ModuleNames], timestamp: Ticks) -> Option<&ModuleNames> {
    let first = modules.partition_point(|module| module.gone < timestamp);
    modules.get(first).or(modules.last())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn texts_are_kept_once() {
        let mut texts = Texts::default();
        let mut list = vec!["a", "A", "Ä", "a\u{10348}", "ab", "\u{fffd}"];
        let numbers: Vec<u32> = list.iter().map(|text| texts.number(&utf16(text))).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        let again: Vec<u32> = list.iter().map(|text| texts.number(&utf16(text))).collect();
        assert_eq!(again, numbers);
        list.insert(0, "");
        assert_eq!(
            (0..7).map(|number| texts.get(number)).collect::<Vec<_>>(),
            list
        );
        // A text ends before a NUL.
        assert_eq!(texts.number(&utf16("ab\0cd")), 5);
        // Half of a pair is replaced.
        let half = texts.number(&[0x48, 0xd8]);
        assert_eq!(texts.get(half), "\u{fffd}");
        assert_eq!(texts.number(&[0]), 0);
    }

    proptest! {
        #[test]
        fn module_at_finds_the_first_that_had_not_gone(
            events in prop::collection::vec((0..3u32, prop::option::of(0..20i64)), 1..20),
        ) {
            let mut spans = Vec::new();
            for (path, to) in events {
                let new = ModuleNames {
                    from: None,
                    to: to.map(Ticks::new),
                    assembly: 0,
                    flags: 0,
                    il_pdb: None,
                    native_pdb: None,
                    path,
                    native_path: 0,
                    gone: Ticks::new(0),
                };
                add_module(&mut spans, new);
                for time in [i64::MIN, i64::MAX].into_iter().chain(-1..21) {
                    let time = Ticks::new(time);
                    let mut modules = spans.iter();
                    let first = modules.find(|module| module.to.is_none_or(|to| time <= to));
                    let first = first.or(spans.last());
                    prop_assert_eq!(module_at(&spans, time), first);
                }
            }
        }
    }

    #[test]
    fn file_name_drops_the_path() {
        assert_eq!(&*file_name(&utf16(r"C:\Windows\A.NI.dll")), "a.ni.dll");
        assert_eq!(&*file_name(&utf16("B.dll")), "b.dll");
        assert_eq!(&*file_name(b""), "");
    }
}
