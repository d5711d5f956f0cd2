//! How an assembly is found, and whether it may be loaded.

use super::raise::Runtime;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;

/// The context that assemblies are loaded into where the program makes no other.
const CONTEXT: &str = "Default";
/// Stages of looking for an assembly: among what is loaded, and among what came with the program.
const LOADED: u16 = 0;
const APPLICATION: u16 = 2;
/// Results of a stage.
const FOUND: u16 = 0;
const NOT_FOUND: u16 = 1;

impl Runtime<'_, '_> {
    /// The search for an assembly (since .NET 5).
    pub fn emit_search(&mut self, assembly: usize) -> Result<()> {
        let Some([name, wants, path]) = self.clr.binding(assembly) else {
            return Ok(());
        };
        let id = self.clr.instance;
        let n = name.as_str();
        let p = path.as_str();
        let wants = wants.as_str();
        let asked_by = if wants.is_empty() { "" } else { CONTEXT };
        self.raise(290, 0, &values![id, n, "", wants, CONTEXT, asked_by])?;
        self.raise(296, 0, &values![id, p, 0u16, 0i32])?;
        self.raise(
            292,
            0,
            &values![id, n, LOADED, CONTEXT, NOT_FOUND, "", "", ""],
        )?;
        self.raise(
            292,
            0,
            &values![id, n, APPLICATION, CONTEXT, FOUND, n, p, ""],
        )
    }

    /// The search found the assembly.
    pub fn emit_search_end(&mut self, assembly: usize) -> Result<()> {
        let Some([name, wants, path]) = self.clr.binding(assembly) else {
            return Ok(());
        };
        let id = self.clr.instance;
        let n = name.as_str();
        let p = path.as_str();
        let wants = wants.as_str();
        let asked_by = if wants.is_empty() { "" } else { CONTEXT };
        let values = values![id, n, "", wants, CONTEXT, asked_by, true, n, p, false];
        self.raise(291, 0, &values)
    }

    /// The verification of strong names and publishers by .NET Framework.
    pub fn emit_verification(&mut self, assembly: usize) -> Result<()> {
        let Some(found) = self.clr.assemblies.get(assembly) else {
            return Ok(());
        };
        let signed = found.signed;
        let authenticode = found.authenticode;
        let Some([name, _, path]) = self.clr.binding(assembly) else {
            return Ok(());
        };
        // The flags ask for a verification; no error comes of it.
        for (on, what, ids) in [(signed, name, [181, 182]), (authenticode, path, [183, 184])] {
            for id in ids.into_iter().filter(|_| on) {
                self.raise(
                    id,
                    1,
                    &values![1u32, 0u32, what.as_str(), self.clr.instance],
                )?;
            }
        }
        Ok(())
    }
}

impl Clr {
    /// The names of an assembly and of the one that wants it, and the path of its file.
    fn binding(&self, assembly: usize) -> Option<[String; 3]> {
        let requested = self.assemblies.get(assembly)?;
        let path = requested.modules.first().and_then(|m| self.modules.get(*m));
        let path = path.map(|m| m.path.clone()).unwrap_or_default();
        // The first assembly is wanted by the runtime itself.
        let wants = self
            .assemblies
            .iter()
            .find(|a| a.loaded && a.id != requested.id);
        let wants = wants.map(|a| a.name.clone()).unwrap_or_default();
        Some([requested.name.clone(), wants, path])
    }
}
