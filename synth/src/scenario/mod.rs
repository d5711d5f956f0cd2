//! Scenario scripts: from KDL text to a [`Scenario`], with the location of every error.
//!
//! `walk` goes through the nodes, `args` reads their arguments, `reader` keeps errors and
//! variables, and each other file reads some kinds of nodes. `docs/scenario.md` describes the
//! language.

mod args;
mod beside;
mod check;
mod computer;
mod controller;
mod edit;
mod expect;
mod fields;
mod interrupt;
mod io_work;
mod managed;
mod nearest;
mod nesting;
mod network;
mod process;
mod provider;
mod raise;
mod reader;
mod session;
mod step;
mod system;
mod value;
mod walk;
mod windows;

use core::fmt;
use std::io;

use crate::model::Scenario;
use crate::script_error::ScriptErrors;
pub use beside::{read_capture, read_script};
use reader::Reader;

/// Reads an included script, or another text file, by its name relative to the directory of the
/// script: [`read_script`] reads it from a disk.
pub type Include<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// Reads a binary file by its name relative to the directory of the script: [`read_capture`] reads
/// it from a disk.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

/// A script with its settings, ready to be parsed.
///
/// ```
/// let script = r#"param "n" 1; process "App.exe" threads="{n}""#;
/// let scenario = etl_synth::Script::new("app.kdl", script).parameters([("n", "4")]).parse()?;
/// assert_eq!(scenario.processes[0].threads, 4);
/// # Ok::<(), etl_synth::ScriptErrors>(())
/// ```
#[derive(Clone)]
pub struct Script<'a> {
    name: &'a str,
    text: &'a str,
    parameters: Vec<(String, String)>,
    seed: Option<u64>,
    include: Include<'a>,
    files: ReadFile<'a>,
}

impl fmt::Debug for Script<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<'a> Script<'a> {
    /// A script without settings. `name` is its name in error messages.
    #[must_use]
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Script {
            name,
            text,
            parameters: Vec::new(),
            seed: None,
            include: &no_include,
            files: &no_file,
        }
    }

    /// Sets the values of parameters, by name.
    #[must_use]
    pub fn parameters<N: Into<String>, V: Into<String>>(
        mut self,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.parameters
            .extend(parameters.into_iter().map(|(n, v)| (n.into(), v.into())));
        self
    }

    /// Replaces the seed of the script.
    ///
    /// ```
    /// let scenario = etl_synth::Script::new("a.kdl", r#"scenario "a" seed=3"#).seed(7).parse()?;
    /// assert_eq!(scenario.seed, 7);
    /// # Ok::<(), etl_synth::ScriptErrors>(())
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Reads included scripts with `include`. Without it nothing can be included.
    ///
    /// ```
    /// let include = |_: &str| Ok(r#"process "Included.exe""#.to_owned());
    /// let script = etl_synth::Script::new("a.kdl", r#"include "part.kdl""#).include(&include);
    /// assert_eq!(script.parse()?.processes[0].name, "Included.exe");
    /// # Ok::<(), etl_synth::ScriptErrors>(())
    /// ```
    #[must_use]
    pub fn include(mut self, include: Include<'a>) -> Self {
        self.include = include;
        self
    }

    /// Reads other files with `files`: captures of packets. Without it there are none.
    #[must_use]
    pub fn files(mut self, files: ReadFile<'a>) -> Self {
        self.files = files;
        self
    }

    /// Parses the script.
    ///
    /// # Errors
    /// All errors of the script and of its settings.
    pub fn parse(&self) -> Result<Scenario, ScriptErrors> {
        let name = self.name;
        let mut reader = Reader::new(self);
        let mut scenario = Scenario::new(etl_format::file_name(name));
        if let Some(stem) = scenario.name.strip_suffix(".kdl") {
            scenario.name = stem.to_owned();
        }
        walk::script(&mut reader, &mut |args| system::top(args, &mut scenario));
        let seed = self.seed.unwrap_or(scenario.seed);
        scenario = scenario.with_seed(seed);
        if !self.parameters.is_empty() {
            scenario.expectations.clear();
        }
        // A script with errors lacks items that it names.
        if reader.errors.is_empty() {
            check::check(&mut reader, &scenario);
        }
        if reader.errors.is_empty() {
            Ok(scenario)
        } else {
            Err(ScriptErrors::new(reader.errors))
        }
    }
}

fn no_file(name: &str) -> io::Result<Vec<u8>> {
    Err(io::Error::other(format!("{name} cannot be read here")))
}

fn no_include(name: &str) -> io::Result<String> {
    Err(io::Error::other(format!("{name} cannot be included here")))
}
