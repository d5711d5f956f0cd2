//! Functions and source lines by offset in an image, from a Windows PDB.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elsa::sync::FrozenMap;
use pdb_addr2line::pdb::{FallibleIterator, Module, ModuleInfo, PDB};
use pdb_addr2line::{Context, ModuleProvider, TypeFormatter, TypeFormatterFlags};

use super::error::{Error, Reason, Result};
use super::guard::guarded;
use super::source::BoundedFile;
use super::texts::Texts;
use super::validate::Records;
use crate::symbols::{Function, FunctionOffset, SourceLine};

/// Longer decorated names are kept as they are.
const MAX_DECORATED: usize = 2048;

/// The functions at offsets in an image, from its Windows PDB. Each offset has a list: the function
/// itself, then the function that was inlined there, and so on. The list of an offset without a
/// function is empty.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn functions(path: &Path, offsets: &[u32]) -> Result<Vec<Vec<Function>>> {
    with_context(path, |context| look_up(context, offsets))
}

/// Functions begin at multiples of this. The padding before is part of the function that it
/// follows, as in [`functions`].
const ALIGNMENT: u32 = 16;

/// A function: its first offset in the image, and the offset after its last one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
    name: Arc<str>,
}

/// All functions of an image, from its Windows PDB, for addresses that are not known beforehand. An
/// address in an inlined function has the function that it was inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionTable(Vec<Range>);

impl FunctionTable {
    /// Reads the functions of a PDB.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<Self> {
        with_context(path, |context| {
            let mut texts = Texts::default();
            let mut ranges = Vec::new();
            for function in context.functions() {
                let Some(name) = function.name else { continue };
                let end = function
                    .end_rva
                    .and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
                ranges.push(Range {
                    start: function.start_rva,
                    end: end.unwrap_or(u32::MAX),
                    name: texts.get(&undecorated(name)),
                });
            }
            ranges.sort_by_key(|range| range.start);
            FunctionTable(ranges)
        })
    }

    /// The function at an offset in the image; `None` if there is no function.
    #[must_use]
    pub fn at(&self, offset: u32) -> Option<FunctionOffset> {
        let after = self.0.partition_point(|range| range.start <= offset);
        let range = self
            .0
            .get(after.checked_sub(1)?)
            .filter(|range| offset < range.end)?;
        Some(FunctionOffset {
            name: Arc::clone(&range.name),
            offset: offset - range.start,
        })
    }
}

/// Opens a PDB for a use of its functions.
fn with_context<T>(path: &Path, read: impl FnOnce(&Context<'_, '_>) -> T) -> Result<T> {
    guarded(path, || {
        let file = BoundedFile::open(path)?;
        open(file, read).map_err(|reason| Error::new(path, reason))
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
        if !self.has_whole_stream(module)? {
            lock(&self.unsound).insert(index);
            return Ok(None);
        }
        let Some(info) = lock(&self.pdb).module_info(module)? else {
            return Ok(None);
        };
        if !self.records.is_sound(&info)? {
            lock(&self.unsound).insert(index);
            return Ok(None);
        }
        Ok(Some(self.infos.insert(index, Box::new(info))))
    }
}

impl Modules<'_> {
    /// Whether the symbols and lines of a module are inside its stream: its reader panics if they
    /// are not.
    fn has_whole_stream(&self, module: &Module<'_>) -> pdb_addr2line::pdb::Result<bool> {
        let info = module.info();
        let Some(stream) = lock(&self.pdb).raw_stream(info.stream)? else {
            // A module without a stream has neither.
            return Ok(true);
        };
        let lines = info.lines_size.max(info.c13_lines_size);
        let used = u64::from(info.symbols_size) + u64::from(lines);
        Ok(used <= stream.as_slice().len() as u64)
    }
}

fn open<T>(file: BoundedFile, read: impl FnOnce(&Context<'_, '_>) -> T) -> Result<T, Reason> {
    let mut pdb = PDB::open(file).map_err(Reason::malformed)?;
    let symbols = pdb.global_symbols().map_err(Reason::malformed)?;
    let debug = pdb.debug_information().map_err(Reason::malformed)?;
    let types = pdb.type_information().map_err(Reason::malformed)?;
    let ids = pdb.id_information().map_err(Reason::malformed)?;
    let map = pdb.address_map().map_err(Reason::malformed)?;
    let strings = pdb.string_table().ok();
    let sections = pdb
        .sections()
        .map_err(Reason::malformed)?
        .unwrap_or_default();
    let Some(records) = Records::new(&types, &ids).map_err(Reason::malformed)? else {
        return Err(Reason::MissingTypes);
    };
    let list = debug
        .modules()
        .and_then(|modules| modules.collect())
        .map_err(Reason::malformed)?;
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
    .map_err(Reason::malformed)?;
    let context = Context::new_from_parts(
        &modules,
        &sections,
        &map,
        &symbols,
        strings.as_ref(),
        &debug,
        formatter.into(),
    )
    .map_err(Reason::malformed)?;
    Ok(read(&context))
}

fn look_up(context: &Context<'_, '_>, offsets: &[u32]) -> Vec<Vec<Function>> {
    let mut texts = Texts::default();
    let mut out = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        // What is wrong with one function says nothing about the others.
        let found = context.find_frames(offset).ok().flatten();
        let frames = found.map(|found| found.frames).unwrap_or_default();
        let mut functions = Vec::with_capacity(frames.len());
        for frame in frames.into_iter().rev() {
            // Code without a name says nothing.
            let Some(name) = frame.function else { continue };
            let name = texts.get(&undecorated(name));
            let source = match (frame.file, frame.line) {
                (Some(file), Some(line)) if !file.is_empty() && line > 0 => Some(SourceLine {
                    file: texts.get(&file),
                    line,
                }),
                _ => None,
            };
            functions.push(Function { name, source });
        }
        out.push(functions);
    }
    out
}

/// The name of a function as its source has it: `?add@Cart@@QEAAXXZ` is `Cart::add`.
fn undecorated(name: String) -> String {
    if !name.starts_with('?') || name.len() > MAX_DECORATED {
        return name;
    }
    // The types of arguments are not printed.
    let decorated = match plain_name(&name) {
        Some(plain) => format!("{plain}{SOME_TYPE}"),
        None => name.clone(),
    };
    if max_parts(&decorated) > MAX_PARTS {
        return name;
    }
    msvc_demangler::demangle(&decorated, msvc_demangler::DemangleFlags::NAME_ONLY).unwrap_or(name)
}

/// The end of a decorated name that is complete: a global variable, an `int`.
const SOME_TYPE: &str = "3HA";

/// The most parts of a decorated name. The demangler needs some hundred bytes for each.
const MAX_PARTS: u64 = 1 << 18;

/// The name in a decorated name, up to its type, if it has no templates and is not special:
/// `?add@Cart@@` of `?add@Cart@@QEAAXXZ`.
fn plain_name(decorated: &str) -> Option<&str> {
    let end = decorated.find("@@")? + 2;
    let name = decorated.get(..end)?;
    if name.get(1..)?.starts_with(['@', '$']) || name.get(1..)?.contains('?') {
        return None;
    }
    Some(name)
}

/// At most how many parts a decorated name has once the demangler has replaced its back references
/// by copies. A digit may be one; each may repeat everything before it, copies included.
///
/// A digit is none after a lower-case letter up to the next `@`, because types have no lower-case
/// letters, so that an identifier has begun. After one `?` and after `$` it is a number.
fn max_parts(decorated: &str) -> u64 {
    let mut parts = 1_u64;
    let mut is_identifier = false;
    let mut previous = b'?';
    let mut before_previous = b'?';
    for &byte in decorated.as_bytes() {
        match byte {
            b'@' => is_identifier = false,
            b'a'..=b'z' => is_identifier = true,
            _ => {}
        }
        let is_number = match previous {
            b'?' => before_previous != b'?',
            b'$' => true,
            _ => is_identifier,
        };
        parts = match byte {
            b'0'..=b'9' if !is_number => parts.saturating_mul(2),
            _ => parts.saturating_add(1),
        };
        before_previous = previous;
        previous = byte;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::undecorated;
    use proptest::prelude::*;

    #[test]
    fn decorated_names_are_those_of_the_source() {
        assert_eq!(undecorated("?add@Cart@@QEAAXXZ".to_owned()), "Cart::add");
        assert_eq!(undecorated("?broken".to_owned()), "?broken");
        assert_eq!(undecorated("main".to_owned()), "main");
        for (decorated, name) in [
            ("??0Cart@@QEAA@XZ", "Cart::Cart"),
            ("?at@?$List@H@shop@@QEAAHH@Z", "shop::List<int>::at"),
            (
                "?add@?$Map@VKey@shop@@VItem@2@@shop@@QEAAXAEBVKey@2@AEBVItem@2@@Z",
                "shop::Map<class shop::Key,class shop::Item>::add",
            ),
            (
                "?Create12345678901234567890@d3d@@YAXXZ",
                "d3d::Create12345678901234567890",
            ),
        ] {
            assert_eq!(undecorated(decorated.to_owned()), name);
        }
    }

    /// A name with types that each repeat the type before twice.
    fn repeated(scope: &str, count: usize) -> String {
        let mut name = format!("?f@{scope}@YAXP6AXPEAH0@Z");
        for number in 0..count {
            let digit = number % 10;
            name += &format!("P6AX{digit}{digit}@Z");
        }
        name + "@Z"
    }

    #[test]
    fn back_references_do_not_multiply_without_a_limit() {
        assert_eq!(undecorated(repeated("", 10)), "f");
        assert_eq!(undecorated(repeated("Cart@", 60)), "Cart::f");
        let template = repeated("?$T@H@@", 60);
        assert_eq!(undecorated(template.clone()), template);
        let nested = "?$T@V0@".repeat(50);
        let nested = format!("?f@{nested}@@YAXXZ");
        assert_eq!(undecorated(nested.clone()), nested);
    }

    proptest! {
        #[test]
        fn names_have_a_limit(
            pieces in prop::collection::vec(
                prop_oneof!["[0-9]{1,2}", "[A-Za-z]{1,2}", Just("?$".to_owned()),
                    Just("@".to_owned()), Just("@@".to_owned()), Just("P6AX".to_owned()),
                    Just("V".to_owned()), Just("@Z".to_owned())],
                1..120,
            ),
        ) {
            let name = format!("?{}", pieces.concat());
            prop_assert!(undecorated(name.clone()).len() <= name.len().max(1 << 22));
        }
    }
}
