//! The entry point: a scenario, an observer, and where the files go.

use crate::error::Result;
use crate::file_system::{FileSystem, MemoryFileSystem, SimulatedFile};
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
///     at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords="Jit" level=5 } }
///     at "2s" { stop "clr" }
/// "#;
/// let scenario = Script::new("jit", script).parse()?;
/// let mut truth = InMemoryTruth::default();
/// let files = Simulation::new(&scenario).observer(&mut truth).run_in_memory()?;
/// assert_eq!(files[0].name, "clr.etl");
/// // At level 5 .NET Core raises the load event of a compiled method.
/// let loads = truth.recorded(0).filter(|e| e.name == "MethodLoadVerbose_V1");
/// assert_eq!(loads.count(), 5);
/// # Ok::<(), etl_synth::Error>(())
/// ```
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    observer: Option<&'a mut dyn Observer>,
}

impl core::fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Simulation")
            .field("scenario", &self.scenario.name)
            .finish_non_exhaustive()
    }
}

impl<'a> Simulation<'a> {
    /// A simulation of a scenario.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        Simulation {
            scenario,
            observer: None,
        }
    }

    /// Reports everything that happens to `observer`.
    ///
    /// ```
    /// use etl_synth::truth::{Fact, Observer};
    /// use etl_synth::{Script, Simulation};
    ///
    /// #[derive(Default)]
    /// struct Lost(u64);
    ///
    /// impl Observer for Lost {
    ///     fn observe(&mut self, fact: &Fact<'_>) -> etl_synth::Result<()> {
    ///         if let Fact::SessionEnded(report) = fact {
    ///             self.0 += report.events_lost;
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let script = r#"
    ///     at "1s" { session "kernel" file="kernel.etl" { kernel "processes" } }
    ///     at "2s" { stop "kernel" }
    /// "#;
    /// let scenario = Script::new("kernel", script).parse()?;
    /// let mut lost = Lost::default();
    /// Simulation::new(&scenario).observer(&mut lost).run_in_memory()?;
    /// assert_eq!(lost.0, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Runs the simulation and returns its files, in the order of their creation.
    ///
    /// ```
    /// use etl_synth::{Script, Simulation};
    ///
    /// let script = r#"
    ///     at "1s" { session "kernel" file="kernel.etl" { kernel "processes images" } }
    ///     at "2s" { stop "kernel" }
    /// "#;
    /// let scenario = Script::new("kernel", script).parse()?;
    /// let files = Simulation::new(&scenario).run_in_memory()?;
    /// assert_eq!(files[0].name, "kernel.etl");
    /// assert_eq!(files, Simulation::new(&scenario).run_in_memory()?, "the same bytes again");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_in_memory(self) -> Result<Vec<SimulatedFile>> {
        let mut files = MemoryFileSystem::default();
        self.run(&mut files)?;
        Ok(files.into_files())
    }
}
