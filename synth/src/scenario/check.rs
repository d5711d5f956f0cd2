//! What a script names must be in it: sessions, files, app domains, assemblies. Read to its end, it
//! is gone through once more.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::constants::{LogFileMode, PointerSize};

use super::reader::Reader;
use crate::file_system::file_name_problem;
use crate::model::{Action, ProcessPlan, Scenario, ScriptLocation, Step, Work};

/// Names that a mistake offers at most.
const MAX_NAMES: usize = 12;

/// A fault of a session that the script may start further down.
pub(super) struct FaultedSession {
    pub session: String,
    pub location: ScriptLocation,
}

/// Notes what is named and is nowhere.
pub(super) fn check(reader: &mut Reader<'_>, scenario: &Scenario) {
    let there = ScriptSymbols::of(scenario);
    let mut spelled = BTreeMap::new();
    for mention in std::mem::take(&mut reader.mentions) {
        there.session(reader, &mention.location, &mention.session);
    }
    for place in std::mem::take(&mut reader.wide) {
        if scenario.machine.pointer_size == PointerSize::P4 {
            let help = Some("machine bits=64, or leave it out: it is 32 bits wide then".to_owned());
            reader.error_at(&place, "a 32-bit machine runs no 64-bit process", "bits=64", help);
        }
    }
    for step in &scenario.steps {
        if let Some(place) = &step.location {
            there.step(reader, place, step, scenario);
            if let Action::Start(plan) = &step.action
                && let Some(file) = &plan.file
            {
                let before = spelled.entry(file.to_lowercase()).or_insert(file);
                if *before != file {
                    let message = format!("\"{before}\" and \"{file}\" are one file on Windows");
                    reader.error_at(place, message, "the second", None);
                }
            }
        }
    }
    for edit in &scenario.edits {
        if let Some(place) = &edit.location {
            there.file(reader, place, &edit.file);
        }
    }
}

/// What a scenario makes, so that looking for one thing does not mean going through all.
#[derive(Default)]
struct ScriptSymbols<'s> {
    /// Names of sessions, in lower case.
    sessions: BTreeSet<String>,
    files: BTreeSet<&'s str>,
    /// Files whose names are not all told: what they begin with.
    stems: BTreeSet<&'s str>,
    /// Processes that start threads, and those that load images later, with these.
    starting: BTreeSet<usize>,
    images: BTreeSet<(usize, &'s str)>,
    /// Processes by name and by id.
    processes: BTreeSet<String>,
}

impl<'s> ScriptSymbols<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let mut there = ScriptSymbols::default();
        for (index, plan) in scenario.processes.iter().enumerate() {
            there.processes.insert(plan.name.clone());
            there.processes.extend((plan.pid != 0).then(|| plan.pid.to_string()));
            there.images.extend(plan.images.iter().map(|image| (index, image.path.as_str())));
        }
        for step in &scenario.steps {
            match &step.action {
                Action::Start(plan) => {
                    there.sessions.insert(plan.name.to_ascii_lowercase());
                    let private = plan.mode.has(LogFileMode::PRIVATE);
                    if let Some(file) = &plan.file {
                        there.makes(file, private && plan.process.is_none());
                    }
                }
                Action::Roll { plan, .. } => {
                    plan.file.iter().for_each(|file| there.makes(file, false));
                }
                Action::Flush { file, .. } | Action::Consume { file, .. } => {
                    file.iter().for_each(|file| there.makes(file, false));
                }
                Action::Merge { output, .. } => there.makes(output, false),
                Action::Work { process, work: Work::StartThread } => {
                    there.starting.insert(*process);
                }
                Action::Work { process, work: Work::LoadImage(image) } => {
                    there.images.insert((*process, &image.path));
                }
                _ => {}
            }
        }
        there
    }

    /// A file; a number or a date in its name is not known here, nor the id that stands behind that
    /// of private sessions.
    fn makes(&mut self, file: &'s str, many: bool) {
        match file.split_once(['%', '{']) {
            Some((stem, _)) => self.stems.insert(stem),
            None if many => self.stems.insert(file),
            None => self.files.insert(file),
        };
    }

    fn step(
        &self,
        reader: &mut Reader<'_>,
        place: &ScriptLocation,
        step: &Step,
        scenario: &Scenario,
    ) {
        match &step.action {
            Action::Start(plan) => {
                if let Some(file) = &plan.file {
                    new_file(reader, place, file);
                }
                if let Some(name) = plan.process.as_ref().filter(|n| !self.processes.contains(*n)) {
                    let message = format!("there is no process \"{name}\"");
                    let names = scenario.processes.iter().map(|p| p.name.as_str());
                    missing(reader, place, message, "processes of the script", names);
                }
            }
            Action::Stop { session }
            | Action::Enable { session, .. }
            | Action::Disable { session, .. }
            | Action::CaptureState { session, .. }
            | Action::Leave { session }
            | Action::KernelRundown { session }
            | Action::Kernel { session, .. }
            | Action::Update { session, .. } => self.session(reader, place, session),
            Action::Flush { session, file } | Action::Consume { session, file, .. } => {
                self.session(reader, place, session);
                if let Some(file) = file {
                    new_file(reader, place, file);
                }
            }
            Action::Merge { inputs, output, .. } => {
                inputs.iter().for_each(|file| self.file(reader, place, file));
                new_file(reader, place, output);
            }
            Action::StopAfter { .. } | Action::Roll { .. } => {}
            Action::Work { process, work } => {
                if let Some(plan) = scenario.processes.get(*process) {
                    self.work(reader, place, plan, *process, work);
                }
            }
        }
    }

    fn session(&self, reader: &mut Reader<'_>, place: &ScriptLocation, name: &str) {
        if !self.sessions.contains(&name.to_ascii_lowercase()) {
            let message = format!("no session is called \"{name}\"");
            let names = self.sessions.iter().map(String::as_str);
            missing(reader, place, message, "sessions of the script", names);
        }
    }

    fn file(&self, reader: &mut Reader<'_>, place: &ScriptLocation, name: &str) {
        if !self.files.contains(name) && !self.stems.iter().any(|stem| name.starts_with(stem)) {
            let message = format!("nothing in the script makes a file \"{name}\"");
            let names = self.files.iter().copied();
            missing(reader, place, message, "files of the script", names);
        }
    }

    /// What a process is told to do must be possible in it.
    fn work(
        &self,
        reader: &mut Reader<'_>,
        place: &ScriptLocation,
        plan: &ProcessPlan,
        index: usize,
        work: &Work,
    ) {
        match work {
            Work::Exit
            | Work::Run(_)
            | Work::StartThread
            | Work::EndThread
            | Work::LoadImage(_) => {}
            Work::Raise(raise) => {
                let threads = plan.threads as usize;
                if raise.thread >= threads && !self.starting.contains(&index) {
                    let message = format!("\"{}\" has no thread {}", plan.name, raise.thread);
                    let help = format!("it has {threads}, counted from 0");
                    reader.error_at(place, message, "here", Some(help));
                }
            }
            Work::UnloadImage(path) => {
                let system = path.to_ascii_lowercase().starts_with("c:\\windows\\");
                if !system && !self.images.contains(&(index, path)) {
                    let message = format!("\"{}\" loads no image \"{path}\"", plan.name);
                    let its = self.images.range((index, "")..(index.saturating_add(1), ""));
                    missing(reader, place, message, "its images", its.map(|(_, path)| *path));
                }
            }
            // All else is done by a CLR.
            _ if plan.clrs.is_empty() => {
                let help = "process \"App.exe\" { clr \"core\" { ... } }".to_owned();
                let message = format!("\"{}\" has no clr", plan.name);
                reader.error_at(place, message, "a clr does this", Some(help));
            }
            Work::EnterDomain(name) | Work::LoadDomain(name) | Work::UnloadDomain(name) => {
                let domains = plan.clrs.iter().flat_map(|clr| &clr.domains);
                let names: Vec<&str> = domains.map(|d| d.name.as_str()).collect();
                if !names.contains(&name.as_str()) {
                    let message = format!("\"{}\" has no app domain \"{name}\"", plan.name);
                    missing(reader, place, message, "its app domains", names.into_iter());
                }
            }
            Work::LoadAssembly(name) | Work::UnloadAssembly(name) => {
                let domains = plan.clrs.iter().flat_map(|clr| &clr.domains);
                let all: Vec<_> = domains.flat_map(|domain| &domain.assemblies).collect();
                let of_name = all.iter().filter(|a| a.name == *name);
                let unloads = matches!(work, Work::UnloadAssembly(_));
                if of_name.clone().next().is_none() {
                    let names: Vec<&str> = all.iter().map(|a| a.name.as_str()).collect();
                    let message = format!("\"{}\" has no assembly \"{name}\"", plan.name);
                    missing(reader, place, message, "its assemblies", names.into_iter());
                } else if unloads && !of_name.clone().any(|a| a.collectible) {
                    let message = format!("assembly \"{name}\" is not collectible");
                    let help = "its domain unloads it, or it has collectible=#true".to_owned();
                    reader.error_at(place, message, "cannot be unloaded by itself", Some(help));
                }
            }
            _ => {}
        }
    }
}

fn missing<'n>(
    reader: &mut Reader<'_>,
    place: &ScriptLocation,
    message: String,
    what: &str,
    names: impl Iterator<Item = &'n str>,
) {
    let mut names: Vec<&str> = names.take(MAX_NAMES + 1).collect();
    if names.len() > MAX_NAMES {
        names.truncate(MAX_NAMES);
        names.push("...");
    }
    let help = match &*names {
        [] => format!("{what}: none"),
        names => format!("{what}: {}", names.join(", ")),
    };
    reader.error_at(place, message, "here", Some(help));
}

/// A file that is made: its name must do on every system, and not be that of the truth.
fn new_file(reader: &mut Reader<'_>, place: &ScriptLocation, name: &str) {
    let truth = name.eq_ignore_ascii_case("truth.jsonl");
    let why = if truth { Some("the truth is written there") } else { file_name_problem(name) };
    if let Some(why) = why {
        let help = "a file name without a directory, that every system takes".to_owned();
        reader.error_at(place, format!("\"{name}\" cannot be a file here"), why, Some(help));
    }
}
