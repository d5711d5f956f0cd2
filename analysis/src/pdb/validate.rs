//! Checks the references of a PDB before its reader follows them: a reader that trusts them would
//! not end, or would take all memory, if they were made to do so.

use pdb_addr2line::pdb::{
    FallibleIterator, IdData, IdInformation, ItemIndex, ModuleInfo, Result, SymbolData,
    SymbolIndex, TypeInformation,
};

/// Records below this index are types without parts.
const FIRST_INDEX: u32 = 0x1000;

/// How deep inlined functions, or scopes of functions, may be nested.
const MAX_DEPTH: usize = 256;

/// Kinds of records.
mod kind {
    pub const PROCEDURE: u16 = 0x1008;
    pub const MEMBER_FUNCTION: u16 = 0x1009;
    pub const CLASS: u16 = 0x1504;
    pub const ENUM: u16 = 0x1507;
    pub const INTERFACE: u16 = 0x1519;
    pub const FUNCTION_ID: u16 = 0x1601;
    pub const MEMBER_FUNCTION_ID: u16 = 0x1602;
    pub const STRING_ID: u16 = 0x1605;
    pub const CLASS2: u16 = 0x1608;
    pub const INTERFACE2: u16 = 0x160b;
}

/// Which records of a PDB are sound.
#[derive(Debug)]
pub(crate) struct Records {
    /// Kinds of types.
    types: Vec<u16>,
    /// Of ids that name functions and scopes: how deep their scopes are nested; 0 for others.
    scopes: Vec<u16>,
}

impl Records {
    /// Walks through the types and ids of a PDB; `None` if their lists contradict themselves.
    pub fn new(types: &TypeInformation<'_>, ids: &IdInformation<'_>) -> Result<Option<Self>> {
        let mut records = Records {
            types: Vec::new(),
            scopes: Vec::new(),
        };
        let mut iter = types.iter();
        while let Some(item) = iter.next()? {
            records.types.push(item.raw_kind());
        }
        let mut iter = ids.iter();
        while let Some(item) = iter.next()? {
            let depth = match item.raw_kind() {
                kind::STRING_ID => 1,
                kind::FUNCTION_ID | kind::MEMBER_FUNCTION_ID => match item.parse() {
                    Ok(IdData::Function(function))
                        if records.is_function(function.function_type) =>
                    {
                        let above = function.scope.map_or(1, |scope| records.scope(scope));
                        if above == 0 {
                            0
                        } else {
                            above.saturating_add(1)
                        }
                    }
                    Ok(IdData::MemberFunction(method))
                        if records.is_function(method.function_type)
                            && records.is_class(method.parent) =>
                    {
                        2
                    }
                    _ => 0,
                },
                _ => 0,
            };
            let is_bounded = usize::from(depth) <= MAX_DEPTH;
            records.scopes.push(if is_bounded { depth } else { 0 });
        }
        // Its reader reserves memory for as many as the header states.
        let is_whole = types.len() <= records.types.len() && ids.len() <= records.scopes.len();
        Ok(is_whole.then_some(records))
    }

    fn kind(&self, index: u32) -> Option<u16> {
        self.types
            .get(index.checked_sub(FIRST_INDEX)? as usize)
            .copied()
    }

    /// Whether a type is the type of a function.
    fn is_function(&self, index: impl ItemIndex) -> bool {
        matches!(
            self.kind(index.into()),
            Some(kind::PROCEDURE | kind::MEMBER_FUNCTION)
        )
    }

    fn is_class(&self, index: impl ItemIndex) -> bool {
        let kind = self.kind(index.into());
        kind.is_some_and(|kind| {
            matches!(kind, kind::CLASS..=kind::ENUM | kind::INTERFACE | kind::CLASS2..=kind::INTERFACE2)
        })
    }

    /// How deep the scopes of an id are nested; 0 if it is not sound.
    fn scope(&self, index: impl ItemIndex) -> u16 {
        let at = index.into().checked_sub(FIRST_INDEX).map(|at| at as usize);
        at.and_then(|at| self.scopes.get(at)).copied().unwrap_or(0)
    }

    /// Whether the symbols of a module can be followed: their ends come after them, they are nested
    /// to a sensible depth, and they have types and ids of functions.
    pub fn is_sound(&self, module: &ModuleInfo<'_>) -> Result<bool> {
        let mut open: Vec<SymbolIndex> = Vec::new();
        let mut symbols = module.symbols()?;
        while let Some(symbol) = symbols.next()? {
            let index = symbol.index();
            while open.last().is_some_and(|&end| end <= index) {
                open.pop();
            }
            if !symbol_kind::FOLLOWED.contains(&symbol.raw_kind()) {
                continue;
            }
            let (end, is_known) = match symbol.parse() {
                Ok(SymbolData::Procedure(procedure)) => {
                    let index = procedure.type_index;
                    let is_plain = u32::from(index) < FIRST_INDEX;
                    (procedure.end, is_plain || self.is_function(index))
                }
                Ok(SymbolData::InlineSite(site)) => (site.end, self.scope(site.inlinee) > 0),
                // The reader does not follow what it cannot parse.
                _ => continue,
            };
            open.push(end);
            if end <= index || !is_known || open.len() > MAX_DEPTH {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Kinds of symbols.
mod symbol_kind {
    /// Procedures and inlined functions, in their old and new forms.
    pub const FOLLOWED: [u16; 10] = [
        0x110f, 0x1110, 0x100a, 0x100b, 0x1146, 0x1147, 0x114d, 0x115d, 0x1155, 0x1156,
    ];
}
