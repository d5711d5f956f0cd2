//! Scenario scripts: KDL text to a [`Scenario`], every mistake shown at its place.
//!
//! [`reader`](self) takes nodes apart and remembers what nobody took; each other file reads one kind
//! of thing. The language is described in `docs/scenario.md`.

mod args;
mod check;
mod computer;
mod controller;
mod edit;
mod managed;
mod nesting;
mod process;
mod provider;
mod reader;
mod report;
mod session;
mod step;
mod system;
mod value;

use std::sync::Arc;

use miette::{NamedSource, SourceSpan};

use crate::model::Scenario;
use reader::Reader;

/// A mistake in a script: what, where, and what was expected.
#[derive(Clone, Debug, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
#[diagnostic()]
pub struct Mistake {
    /// What is wrong.
    pub message: String,
    /// What is at the place.
    pub label: String,
    /// What would be right.
    #[help]
    pub help: Option<String>,
    /// The place, in bytes of the script.
    #[label("{label}")]
    pub at: SourceSpan,
    /// The script.
    #[source_code]
    pub source_code: NamedSource<Arc<str>>,
}

/// Everything that is wrong with a script.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} mistake(s) in the script; the first: {}", .0.len(), .0.first().map_or("", |m| m.message.as_str()))]
pub struct Mistakes(pub Vec<Mistake>);

/// Gives the text of an included script by the name that the script has for it.
pub type Include<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// What is given to a script from outside.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Values of parameters, by name.
    pub set: &'a [(String, String)],
    /// A seed in the place of the script's.
    pub seed: Option<u64>,
    /// Where included scripts come from.
    pub include: Include<'a>,
}

impl core::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Settings").field("set", &self.set).field("seed", &self.seed).finish()
    }
}

/// Reads a script that needs nothing from outside. `name` is what mistakes call it.
///
/// # Errors
/// All mistakes of the script.
pub fn parse(name: &str, text: &str) -> Result<Scenario, Mistakes> {
    let include = |file: &str| Err(format!("{file} cannot be included here"));
    parse_with(name, text, Settings { set: &[], seed: None, include: &include })
}

/// Reads a script.
///
/// # Errors
/// All mistakes of the script, and of the settings.
pub fn parse_with(name: &str, text: &str, settings: Settings<'_>) -> Result<Scenario, Mistakes> {
    let mut reader = Reader::new(name, text, settings);
    let mut scenario = Scenario::new(name.rsplit(['/', '\\']).next().unwrap_or(name));
    if let Some(stem) = scenario.name.strip_suffix(".kdl") {
        scenario.name = stem.to_owned();
    }
    reader.whole(text, &mut |reader, node| system::top(reader, node, &mut scenario));
    if let Some(seed) = settings.seed {
        scenario.seed = seed;
    }
    reader.unknown_settings();
    // Of a script with mistakes not all is there that it names.
    if reader.mistakes.is_empty() {
        check::check(&mut reader, &scenario);
    }
    if reader.mistakes.is_empty() { Ok(scenario) } else { Err(Mistakes(reader.mistakes)) }
}
