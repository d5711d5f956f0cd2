//! The state of reading a script: its errors, its variables, and what it has declared and used so
//! far.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use etl_control::controller::Session;
use etl_format::Guid;
use miette::{NamedSource, SourceSpan};

use super::Script;
use crate::model::ScriptLocation;
use crate::script_error::ScriptError;

/// Threads and methods of all processes of a script.
const MAX_MADE: u64 = 1 << 22;
/// Errors that are reported.
const MAX_ERRORS: usize = 1000;
/// Bytes of a text with its variables filled in.
const MAX_TEXT_LENGTH: usize = 1 << 16;
/// Bytes of all texts with their variables filled in.
const MAX_TEXT_TOTAL: usize = 64 << 20;

/// The state of reading.
pub(super) struct Reader<'s> {
    pub script: &'s Script<'s>,
    /// The script that is read: the one above, or an included one.
    pub source: Arc<NamedSource<Arc<str>>>,
    /// Its directory relative to the directory of the script above: empty, or with a separator at
    /// its end.
    pub directory: String,
    pub errors: Vec<ScriptError>,
    /// Valid parameters and loop variables, the latest last.
    pub variables: Vec<(String, String)>,
    pub used: Used,
    pub declared: Declared,
    /// Sessions of faults outside of sessions.
    pub faulted: Vec<(String, ScriptLocation)>,
    /// Processes that must have 64 bits.
    pub wide: Vec<ScriptLocation>,
    pub controllers: Controllers,
}

/// How much of its limits a script has used.
#[derive(Default)]
pub(super) struct Used {
    pub nodes: u64,
    pub rounds: u64,
    pub included: usize,
    pub include_depth: usize,
    made: u64,
    text: usize,
}

/// What a script has declared so far.
#[derive(Default)]
pub(super) struct Declared {
    pub parameters: Vec<String>,
    pub providers: Vec<(String, Guid)>,
    /// Names, in lower case, and GUIDs of providers.
    pub provider_keys: BTreeSet<String>,
    /// Whether events were read whose fields depend on the build of Windows.
    pub needs_build: bool,
    /// Names of processes, by process id.
    pub pids: BTreeMap<u32, String>,
}

/// What the command lines of a script leave for later ones.
#[derive(Default)]
pub(super) struct Controllers {
    /// Settings saved by `logman create` without `-ets`.
    pub saved: Vec<SavedSession>,
    /// Files of the sessions started so far, by name of the session.
    pub files: Vec<(String, String)>,
    /// Command lines so far.
    pub lines: usize,
}

/// Saved settings.
pub(super) struct SavedSession {
    pub settings: Session,
}

impl<'s> Reader<'s> {
    pub fn new(script: &'s Script<'s>) -> Self {
        Reader {
            script,
            source: Arc::new(NamedSource::new(script.name, Arc::from(script.text))),
            directory: String::new(),
            errors: Vec::new(),
            variables: Vec::new(),
            used: Used {
                included: script.text.len(),
                ..Used::default()
            },
            declared: Declared::default(),
            faulted: Vec::new(),
            wide: Vec::new(),
            controllers: Controllers::default(),
        }
    }

    /// The name of a file next to the script that is read, relative to the script above.
    pub fn beside(&self, name: &str) -> String {
        let directory = if Path::new(name).is_absolute() {
            ""
        } else {
            &self.directory
        };
        format!("{directory}{name}")
    }

    /// Counts threads or methods. Returns `false` and reports an error if there are too many.
    pub fn charge(&mut self, at: SourceSpan, many: u32) -> bool {
        self.used.made = self.used.made.saturating_add(many.into());
        let fits = self.used.made <= MAX_MADE;
        if !fits {
            let help = format!("at most {MAX_MADE} threads and methods in one script");
            self.too_much(at, "more threads or methods than a script can have", &help);
        }
        fits
    }

    /// Reports that a limit is exceeded.
    pub fn too_much(&mut self, at: SourceSpan, label: &str, limit: &str) {
        self.error(at, "too much", label, Some(limit));
    }

    /// Reports an error.
    pub fn error(
        &mut self,
        at: SourceSpan,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<&str>,
    ) {
        self.error_at(&self.location(at), message, label, help);
    }

    /// Reports an error at a stored location.
    pub fn error_at(
        &mut self,
        location: &ScriptLocation,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<&str>,
    ) {
        if self.errors.len() < MAX_ERRORS {
            let help = help.map(str::to_owned);
            self.errors.push(ScriptError::new(
                location,
                message.into(),
                label.into(),
                help,
            ));
        }
    }

    /// A location in the script that is read.
    pub fn location(&self, at: SourceSpan) -> ScriptLocation {
        ScriptLocation::new(Arc::clone(&self.source), at)
    }

    /// The GUID of a provider that the script has declared so far.
    pub fn declared(&self, name: &str) -> Option<Guid> {
        let mut providers = self.declared.providers.iter();
        providers
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, guid)| *guid)
    }

    /// Text with its `{variables}` filled in; `{{` is a brace.
    pub fn filled(&mut self, text: &str, at: SourceSpan) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, inner)) = rest.split_once('{') {
            // Parameters may contain each other many times.
            if out.len() > MAX_TEXT_LENGTH || self.used.text > MAX_TEXT_TOTAL {
                let one = MAX_TEXT_LENGTH >> 10;
                let all = MAX_TEXT_TOTAL >> 20;
                let help = format!("at most {one} KiB in one text, {all} MiB in all");
                self.too_much(at, "too long with its variables", &help);
                return String::new();
            }
            out.push_str(before);
            if let Some(after) = inner.strip_prefix('{') {
                out.push('{');
                rest = after;
                continue;
            }
            let Some((name, after)) = inner.split_once('}') else {
                out.push('{');
                rest = inner;
                continue;
            };
            match self.variables.iter().rev().find(|(n, _)| n == name) {
                Some((_, value)) => out.push_str(value),
                None if name.parse::<Guid>().is_ok() => out.push_str(&format!("{{{name}}}")),
                None => {
                    let help = Some("a parameter, or the variable of an outer repeat");
                    let message = format!("nothing is called {{{name}}} here");
                    self.error(at, message, "unknown", help);
                }
            }
            rest = after;
        }
        out.push_str(rest);
        self.used.text = self.used.text.saturating_add(out.len());
        out
    }
}
