//! Functions and source lines by offset in an image, from a Windows PDB.

use std::collections::HashSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elsa::sync::FrozenMap;
use pdb_addr2line::pdb::{FallibleIterator, Module, ModuleInfo, PDB};
use pdb_addr2line::{Context, ModuleProvider, TypeFormatter, TypeFormatterFlags};

use super::error::{Error, Result};
use super::source::BoundedFile;
use super::validate::Records;

/// Longer decorated names are kept as they are.
const MAX_DECORATED: usize = 2048;

/// A function at an address, and the source line there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Function {
    /// Name with its namespaces and classes, without arguments.
    pub name: Arc<str>,
    /// Path of the source file as the compiler knew it.
    pub file: Option<Arc<str>>,
    /// Line in the source file, from 1.
    pub line: Option<u32>,
}

/// The functions at offsets in an image, from its Windows PDB. Each offset has a list: the function
/// itself, then the one that was inlined there, and so on; an empty one where no function is.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn functions(path: &Path, offsets: &[u32]) -> Result<Vec<Vec<Function>>> {
    with_context(path, |context| look_up(context, offsets))
}

/// Functions begin at multiples of this; the padding before counts as part of the function that it
/// follows, as in [`functions`].
const ALIGNMENT: u32 = 16;

/// A function by its offsets in an image: the first one, and the one after the last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
    name: Arc<str>,
}

/// All functions of an image, from its Windows PDB: for addresses that are not known beforehand.
/// Functions that were inlined are those that they were inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionTable(Vec<Range>);

impl FunctionTable {
    /// Reads the functions of a PDB.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<Self> {
        with_context(path, |context| {
            let (mut texts, mut ranges) = (Texts::default(), Vec::new());
            for function in context.functions() {
                let Some(name) = function.name else { continue };
                let end = function.end_rva.and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
                let (start, end) = (function.start_rva, end.unwrap_or(u32::MAX));
                ranges.push(Range { start, end, name: texts.get(&undecorated(name)) });
            }
            ranges.sort_by_key(|range| range.start);
            FunctionTable(ranges)
        })
    }

    /// The name of the function at an offset in the image, and the offset in the function; `None`
    /// where no function is.
    #[must_use]
    pub fn at(&self, offset: u32) -> Option<(&Arc<str>, u32)> {
        let after = self.0.partition_point(|range| range.start <= offset);
        let range = self.0.get(after.checked_sub(1)?).filter(|range| offset < range.end)?;
        Some((&range.name, offset - range.start))
    }
}

/// Opens a PDB for a use of its functions.
fn with_context<T>(path: &Path, read: impl FnOnce(&Context<'_, '_>) -> T) -> Result<T> {
    guarded(path, || {
        let file = File::open(path).and_then(BoundedFile::new);
        let file = file.map_err(|error| Error::new(path, error.to_string()))?;
        open(file, read).map_err(|error| Error::new(path, error))
    })
}

/// Calls a reader of a file. The readers of PDBs are known to panic where lengths in a file
/// contradict each other; that is an error of the file as any other is.
pub(crate) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the reader had is dropped.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(Error::new(path, "the PDB is damaged: its parts contradict each other"))
    })
}

/// The modules (object files) of a PDB, each read when it is needed.
struct Modules<'s> {
    pdb: Mutex<PDB<'s, BoundedFile>>,
    infos: FrozenMap<usize, Box<ModuleInfo<'s>>>,
    /// Those that are not read, because they refer to what cannot be.
    unsound: Mutex<HashSet<usize>>,
    records: Records,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> ModuleProvider<'s> for Modules<'s> {
    fn get_module_info(
        &self,
        index: usize,
        module: &Module<'_>,
    ) -> pdb_addr2line::pdb::Result<Option<&ModuleInfo<'s>>> {
        if let Some(info) = self.infos.get(&index) {
            return Ok(Some(info));
        }
        if lock(&self.unsound).contains(&index) {
            return Ok(None);
        }
        let Some(info) = lock(&self.pdb).module_info(module)? else { return Ok(None) };
        if !self.records.is_sound(&info)? {
            lock(&self.unsound).insert(index);
            return Ok(None);
        }
        Ok(Some(self.infos.insert(index, Box::new(info))))
    }
}

fn open<T>(file: BoundedFile, read: impl FnOnce(&Context<'_, '_>) -> T) -> Result<T, String> {
    let text = |error: pdb_addr2line::pdb::Error| error.to_string();
    let mut pdb = PDB::open(file).map_err(text)?;
    let symbols = pdb.global_symbols().map_err(text)?;
    let debug = pdb.debug_information().map_err(text)?;
    let types = pdb.type_information().map_err(text)?;
    let ids = pdb.id_information().map_err(text)?;
    let map = pdb.address_map().map_err(text)?;
    let strings = pdb.string_table().ok();
    let sections = pdb.sections().map_err(text)?.unwrap_or_default();
    let Some(records) = Records::new(&types, &ids).map_err(text)? else {
        return Err("the PDB is damaged: it states more types than it has".to_owned());
    };
    let list = debug.modules().and_then(|modules| modules.collect()).map_err(text)?;
    let modules = Modules {
        pdb: Mutex::new(pdb),
        infos: FrozenMap::new(),
        unsound: Mutex::default(),
        records,
    };
    // Arguments would make names long, and following their types would have no end in some files.
    let flags = TypeFormatterFlags::NO_FUNCTION_RETURN
        | TypeFormatterFlags::NO_MEMBER_FUNCTION_STATIC
        | TypeFormatterFlags::NAME_ONLY
        | TypeFormatterFlags::NO_ARGUMENTS;
    let formatter = TypeFormatter::new_from_parts(
        &modules,
        list,
        &debug,
        &types,
        &ids,
        strings.as_ref(),
        flags,
    )
    .map_err(text)?;
    let context = Context::new_from_parts(
        &modules,
        &sections,
        &map,
        &symbols,
        strings.as_ref(),
        &debug,
        formatter.into(),
    )
    .map_err(|error| error.to_string())?;
    Ok(read(&context))
}

fn look_up(context: &Context<'_, '_>, offsets: &[u32]) -> Vec<Vec<Function>> {
    let mut texts = Texts::default();
    let mut out = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        // What is wrong with one function says nothing about the others.
        let frames = context.find_frames(offset).ok().flatten().map(|found| found.frames);
        let frames = frames.unwrap_or_default().into_iter().rev();
        out.push(
            frames
                .filter_map(|frame| {
                    // Code without a name says nothing.
                    let name = texts.get(&undecorated(frame.function?));
                    let file =
                        frame.file.filter(|file| !file.is_empty()).map(|file| texts.get(&file));
                    let line = frame.line.filter(|&line| file.is_some() && line > 0);
                    Some(Function { name, file, line })
                })
                .collect(),
        );
    }
    out
}

/// Texts, each kept once.
#[derive(Debug, Default)]
struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}

/// The name of a function as its source has it: `?add@Cart@@QEAAXXZ` is `Cart::add`.
fn undecorated(name: String) -> String {
    if !name.starts_with('?') || name.len() > MAX_DECORATED {
        return name;
    }
    msvc_demangler::demangle(&name, msvc_demangler::DemangleFlags::NAME_ONLY).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::undecorated;

    #[test]
    fn decorated_names_are_those_of_the_source() {
        assert_eq!(undecorated("?add@Cart@@QEAAXXZ".to_owned()), "Cart::add");
        assert_eq!(undecorated("?broken".to_owned()), "?broken");
        assert_eq!(undecorated("main".to_owned()), "main");
    }
}
