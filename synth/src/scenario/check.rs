//! The check of names after a script was read: sessions, files, app domains, assemblies.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::constants::{ClockType, LogFileMode, PointerSize};

use super::reader::Reader;
use crate::file_system::file_name_problem;
use crate::model::{Action, ProcessPlan, Request, Scenario, ScriptLocation, Step, Work};
use crate::provider_text::description_name;
use crate::time::SECOND;

/// Names in the help of an error.
const MAX_NAMES: usize = 12;

/// Reports sessions whose clocks count beyond 63 bits before the scenario ends.
fn check_clocks(reader: &mut Reader<'_>, scenario: &Scenario) {
    let machine = &scenario.machine;
    let ends = scenario
        .steps
        .iter()
        .map(|step| step.repeat.map_or(step.at, |r| r.until));
    let end = scenario.end.or(ends.max()).unwrap_or(0);
    let seconds = (u128::from(machine.uptime) + u128::from(end)) / u128::from(SECOND) + 1;
    let highest = i64::MAX as u128 / 2 / seconds;
    for step in &scenario.steps {
        let Action::Start(plan) = &step.action else {
            continue;
        };
        let Some(location) = &step.location else {
            continue;
        };
        let cycles = plan.clock == ClockType::CPU_CYCLE;
        if u128::from(machine.frequency) > highest
            || cycles && u128::from(machine.cpu_mhz) * 1_000_000 > highest
        {
            let help = Some("a shorter uptime of the machine, or a slower clock");
            reader.error_at(location, "the clock of the session overflows", "here", help);
        }
    }
}

/// Reports names of things that do not exist.
pub(super) fn check(reader: &mut Reader<'_>, scenario: &Scenario) {
    check_clocks(reader, scenario);
    let symbols = &ScriptSymbols::of(scenario);
    let mut spelled = BTreeMap::new();
    for (session, location) in &std::mem::take(&mut reader.faulted) {
        Check {
            symbols,
            scenario,
            reader,
            location,
            by_tool: false,
        }
        .session(session);
    }
    for location in std::mem::take(&mut reader.wide) {
        if scenario.machine.pointer_size == PointerSize::P4 {
            let help = Some("machine bits=64, or a process without bits");
            reader.error_at(
                &location,
                "a 32-bit machine runs no 64-bit process",
                "bits=64",
                help,
            );
        }
    }
    for step in &scenario.steps {
        let Some(location) = &step.location else {
            continue;
        };
        let by_tool = step.command.is_some();
        Check {
            symbols,
            scenario,
            reader,
            location,
            by_tool,
        }
        .step(step);
        if let Some(file) = output(&step.action) {
            let before = spelled.entry(file.to_lowercase()).or_insert(file);
            if *before != file {
                let message = format!("\"{before}\" and \"{file}\" are one file on Windows");
                reader.error_at(location, message, "the second", None);
            }
        }
    }
    for expected in &scenario.expectations {
        let Some(location) = &expected.location else {
            continue;
        };
        let mut check = Check {
            symbols,
            scenario,
            reader,
            location,
            by_tool: false,
        };
        expected.files.iter().for_each(|file| check.file(file));
    }
    for edit in &scenario.edits {
        if let Some(location) = &edit.location {
            Check {
                symbols,
                scenario,
                reader,
                location,
                by_tool: false,
            }
            .file(&edit.file);
        }
    }
}

/// The file that an action creates.
fn output(action: &Action) -> Option<&str> {
    match action {
        Action::Start(plan) => plan.file.as_deref(),
        Action::Session(_, Request::Flush(file) | Request::Consume { file, .. }) => file.as_deref(),
        Action::Merge { output, .. } => Some(output),
        _ => None,
    }
}

/// The names in a scenario, for fast lookup.
#[derive(Default)]
struct ScriptSymbols<'s> {
    /// Names of sessions, in lower case.
    sessions: BTreeSet<String>,
    files: BTreeSet<&'s str>,
    /// Files that describe providers, in lower case.
    descriptions: BTreeSet<String>,
    /// Files with a number, a date or a process id in their names: the text before it.
    stems: BTreeSet<&'s str>,
    /// Processes that start threads, and those that load images later, with these.
    starting: BTreeSet<usize>,
    images: BTreeSet<(usize, &'s str)>,
    /// Processes by name and by id.
    processes: BTreeSet<String>,
}

impl<'s> ScriptSymbols<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let mut symbols = ScriptSymbols::default();
        for (index, plan) in scenario.processes.iter().enumerate() {
            symbols.processes.insert(plan.name.clone());
            symbols
                .processes
                .extend((plan.pid != 0).then(|| plan.pid.to_string()));
            symbols
                .images
                .extend(plan.images.iter().map(|image| (index, image.path.as_str())));
        }
        let descriptions = scenario.providers.iter().filter_map(description_name);
        symbols
            .descriptions
            .extend(descriptions.map(|name| name.to_lowercase()));
        for step in &scenario.steps {
            match &step.action {
                Action::Start(plan) => {
                    symbols.sessions.insert(plan.name.to_ascii_lowercase());
                    let private = plan.mode.has(LogFileMode::PRIVATE);
                    if let Some(file) = &plan.file {
                        symbols.makes(file, private && plan.process.is_none());
                    }
                }
                Action::Roll { plan, .. } => {
                    plan.file.iter().for_each(|file| symbols.makes(file, false));
                }
                Action::Session(
                    _,
                    Request::Flush(Some(file))
                    | Request::Consume {
                        file: Some(file), ..
                    },
                ) => {
                    symbols.makes(file, false);
                }
                Action::Merge { output, .. } => symbols.makes(output, false),
                Action::Work {
                    process,
                    work: Work::StartThread,
                } => {
                    symbols.starting.insert(*process);
                }
                Action::Work {
                    process,
                    work: Work::LoadImage(image),
                } => {
                    symbols.images.insert((*process, &image.path));
                }
                _ => {}
            }
        }
        symbols
    }

    /// Adds a file. `many`: private sessions append the process id to its name.
    fn makes(&mut self, file: &'s str, many: bool) {
        match file.split_once(['%', '{']) {
            Some((stem, _)) => self.stems.insert(stem),
            None if many => self.stems.insert(file),
            None => self.files.insert(file),
        };
    }
}

/// The check of a node.
struct Check<'c, 's> {
    symbols: &'c ScriptSymbols<'c>,
    scenario: &'c Scenario,
    reader: &'c mut Reader<'s>,
    location: &'c ScriptLocation,
    /// Whether a tool makes the request, which reports itself what does not exist.
    by_tool: bool,
}

impl<'c> Check<'c, '_> {
    fn error(&mut self, message: String, label: &str, help: Option<&str>) {
        self.reader.error_at(self.location, message, label, help);
    }

    /// Reports a missing name with the known ones.
    fn missing<'n>(&mut self, message: String, what: &str, names: impl Iterator<Item = &'n str>) {
        let mut names: Vec<&str> = names.take(MAX_NAMES + 1).collect();
        if names.len() > MAX_NAMES {
            names.truncate(MAX_NAMES);
            names.push("...");
        }
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        self.error(message, "here", Some(&format!("{what}: {names}")));
    }

    fn step(&mut self, step: &Step) {
        match &step.action {
            Action::Start(plan) => {
                match &plan.file {
                    Some(file) => self.new_file(file),
                    None if !plan.mode.has(LogFileMode::REAL_TIME)
                        && !plan.mode.has(LogFileMode::BUFFERING) =>
                    {
                        let help = format!(
                            "file=\"{}.etl\", or mode=\"real-time\" or \"buffering\"",
                            plan.name
                        );
                        self.error("a session needs a file".to_owned(), "here", Some(&help));
                    }
                    None => {}
                }
                let processes = &self.symbols.processes;
                if let Some(name) = plan.process.as_ref().filter(|n| !processes.contains(*n)) {
                    let message = format!("there is no process \"{name}\"");
                    let names = self.scenario.processes.iter().map(|p| p.name.as_str());
                    self.missing(message, "processes of the script", names);
                }
            }
            Action::Session(_, Request::StopAfter(_))
            | Action::Replay { .. }
            | Action::Interrupt(_)
            | Action::Roll { .. }
            | Action::Collector { .. }
            | Action::Read { .. } => {}
            Action::Session(session, request) => {
                self.session(session);
                if let Request::Flush(Some(file))
                | Request::Consume {
                    file: Some(file), ..
                } = request
                {
                    self.new_file(file);
                }
            }
            Action::Merge { inputs, output, .. } => {
                inputs.iter().for_each(|file| self.file(file));
                self.new_file(output);
            }
            Action::Work { process, work } => {
                if let Some(plan) = self.scenario.processes.get(*process) {
                    self.work(plan, *process, work);
                }
            }
        }
    }

    fn session(&mut self, name: &str) {
        let sessions = &self.symbols.sessions;
        if !self.by_tool && !sessions.contains(&name.to_ascii_lowercase()) {
            let message = format!("no session is called \"{name}\"");
            self.missing(
                message,
                "sessions of the script",
                sessions.iter().map(String::as_str),
            );
        }
    }

    fn file(&mut self, name: &str) {
        let ScriptSymbols { files, stems, .. } = self.symbols;
        if !self.by_tool
            && !files.contains(name)
            && !stems.iter().any(|stem| name.starts_with(stem))
        {
            let message = format!("the script makes no file \"{name}\"");
            self.missing(message, "files of the script", files.iter().copied());
        }
    }

    /// Checks that the name of a new file is valid on every system and unique.
    fn new_file(&mut self, name: &str) {
        let truth = name.eq_ignore_ascii_case("truth.jsonl");
        let problem = truth.then_some("the truth is written there");
        let expected = name.to_ascii_lowercase().ends_with(".expected.json");
        let problem =
            problem.or(expected.then_some("what a verifier has to find is written there"));
        let described = self.symbols.descriptions.contains(&name.to_lowercase());
        let problem = problem.or(described.then_some("the definition of a provider is there"));
        if let Some(problem) = problem.or_else(|| file_name_problem(name)) {
            let help = "a file name without a directory that is valid on every system";
            self.error(
                format!("\"{name}\" cannot be a file here"),
                problem,
                Some(help),
            );
        }
    }

    /// Checks that a process can perform its work.
    fn work(&mut self, plan: &'c ProcessPlan, index: usize, work: &Work) {
        let process = &plan.name;
        let domains = plan.clrs.iter().flat_map(|clr| &clr.domains);
        match work {
            Work::Exit
            | Work::Run(_)
            | Work::Resolve(_)
            | Work::Exchange(_)
            | Work::StartThread
            | Work::EndThread
            | Work::Io(_)
            | Work::LoadImage(_) => {}
            Work::Raise(raise) => {
                let thread = raise.thread;
                let threads = plan.threads as usize;
                if thread >= threads && !self.symbols.starting.contains(&index) {
                    let help = format!("it has {threads}, counted from 0");
                    self.error(
                        format!("\"{process}\" has no thread {thread}"),
                        "here",
                        Some(&help),
                    );
                }
            }
            Work::UnloadImage(path) => {
                let system = path.to_ascii_lowercase().starts_with("c:\\windows\\");
                let images = &self.symbols.images;
                if !system && !images.contains(&(index, path)) {
                    let message = format!("\"{process}\" loads no image \"{path}\"");
                    let names = images.range((index, "")..(index.saturating_add(1), ""));
                    self.missing(message, "its images", names.map(|(_, path)| *path));
                }
            }
            // A CLR performs all other work.
            _ if plan.clrs.is_empty() => {
                let help = "process \"App.exe\" { clr \"core\" { ... } }";
                self.error(
                    format!("\"{process}\" has no clr"),
                    "a clr does this",
                    Some(help),
                );
            }
            Work::EnterDomain(name) | Work::LoadDomain(name) | Work::UnloadDomain(name) => {
                let mut names = domains.map(|d| d.name.as_str());
                if !names.clone().any(|domain| domain == name) {
                    let message = format!("\"{process}\" has no app domain \"{name}\"");
                    self.missing(message, "its app domains", &mut names);
                }
            }
            Work::LoadAssembly(name) | Work::UnloadAssembly(name) => {
                let all = domains.flat_map(|domain| &domain.assemblies);
                let mut found = all.clone().filter(|a| a.name == *name).peekable();
                let unloads = matches!(work, Work::UnloadAssembly(_));
                if found.peek().is_none() {
                    let message = format!("\"{process}\" has no assembly \"{name}\"");
                    self.missing(message, "its assemblies", all.map(|a| a.name.as_str()));
                } else if unloads && !found.any(|a| a.collectible) {
                    let help = "its domain unloads it, or it has collectible=#true";
                    let message = format!("assembly \"{name}\" is not collectible");
                    self.error(message, "cannot be unloaded by itself", Some(help));
                }
            }
            _ => {}
        }
    }
}
