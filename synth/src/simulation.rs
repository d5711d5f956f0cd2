//! The entry point: a scenario, an observer, and where the files go.

use crate::error::Result;
use crate::file_system::{FileSystem, MemoryFileSystem};
use crate::model::Scenario;
use crate::run;
use crate::truth::Observer;

/// A simulation of a scenario.
///
/// ```
/// use etl_synth::truth::InMemoryTruth;
/// use etl_synth::{Script, Simulation};
///
/// let script = r#"
///     process "App.exe" {
///         clr "core" { assembly "App" { module "C:\\App\\App.dll" { methods 20 ready=5 } } }
///         at "1.5s" { jit 5 }
///     }
///     at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords="Jit" level=4 } }
///     at "2s" { stop "clr" }
/// "#;
/// let scenario = Script::new("jit", script).parse()?;
/// let mut truth = InMemoryTruth::default();
/// let files = Simulation::new(&scenario).observer(&mut truth).run_in_memory()?;
/// assert_eq!(files[0].0, "clr.etl");
/// // At level 4 a compiled method has a plain load event.
/// let names: Vec<&str> = truth.recorded(0).map(|e| e.name.as_str()).collect();
/// assert_eq!(names, ["MethodLoad_V1"; 5]);
/// # Ok::<(), etl_synth::Error>(())
/// ```
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    observer: Option<&'a mut dyn Observer>,
}

impl core::fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Simulation").field("scenario", &self.scenario.name).finish_non_exhaustive()
    }
}

impl<'a> Simulation<'a> {
    /// A simulation of a scenario.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        Simulation { scenario, observer: None }
    }

    /// Reports everything that happens to `observer`.
    #[must_use]
    pub fn observer(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Runs the simulation and writes its files to `files`.
    ///
    /// # Errors
    /// The scenario requests something impossible (to stop a session that does not run, say); a
    /// file cannot be written; the observer returns an error.
    pub fn run(self, files: &mut dyn FileSystem) -> Result<()> {
        match self.observer {
            Some(observer) => run::run(self.scenario, files, observer),
            None => run::run(self.scenario, files, &mut ()),
        }
    }

    /// Runs the simulation and returns the names and bytes of its files, in the order of their
    /// creation.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_in_memory(self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut files = MemoryFileSystem::default();
        self.run(&mut files)?;
        Ok(files.into_files())
    }
}
