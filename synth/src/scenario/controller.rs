//! `run`: command lines of the tools, and their effect on the simulated sessions.

use etl_control::controller::{
    Action as Command, CommandLine, KERNEL_SESSION, Keywords, LineError, OtherOption, ProviderRef,
    ProviderSpec, Session, Tool, TracelogChanges, kernel_groups, parse_provider_file,
    tracelog_changes, tracelog_groups,
};
use etl_format::ProcessId;
use etl_format::constants::LogFileMode;
use etl_schema::providers::KERNEL_TRACE;
use etl_schema::tables::Registry;

use super::args::Args;
use super::reader::{Controllers, Reader, SavedSession};
use crate::model::{
    Action, CollectorProblem, EnablePlan, KernelChange, KernelFlags, Request, SessionPlan,
    ToolCommand, numbered_file,
};
use crate::time::{Nanos, SECOND};

/// `run "xperf -start clr -on ... -f clr1.etl"`: the actions of the line.
pub(super) fn run(mut args: Args<'_, '_>) -> Vec<(Action, ToolCommand)> {
    let mut actions = Vec::new();
    let mut read = None;
    if let Some(line) = args.next::<String>("a command line") {
        let parsed: Result<CommandLine, LineError> = line.parse();
        match parsed {
            Err(error) => {
                let message = format!("the command line cannot be read: {error}");
                args.error(message, line, error.hint.as_deref());
            }
            Ok(command) => {
                let tool = command.tool;
                match perform(args.reader, command, &mut |action| actions.push(action)) {
                    Ok(()) => read = Some((tool, line)),
                    Err(message) => args.error(message, line, None),
                }
            }
        }
    }
    let number = args.reader.controllers.lines;
    args.reader.controllers.lines += 1;
    args.finish();
    let Some((tool, line)) = read else {
        return Vec::new();
    };
    let parts = actions.len();
    let mut performed = Vec::with_capacity(parts);
    for (part, action) in actions.into_iter().enumerate() {
        performed.push((
            action,
            ToolCommand {
                tool,
                line: line.clone(),
                number,
                part,
                parts,
            },
        ));
    }
    performed
}

/// Adds the actions of a command line.
fn perform(
    reader: &mut Reader<'_>,
    mut command: CommandLine,
    add: &mut dyn FnMut(Action),
) -> Result<(), String> {
    resolve(reader, &mut command)?;
    let state = &mut reader.controllers;
    let mut controller = Controller {
        tool: command.tool,
        state,
        stopped: Vec::new(),
        add,
    };
    command
        .actions
        .iter()
        .try_for_each(|action| controller.translate(action))
}

/// Replaces names of files by the providers that they list, and names of declared providers by
/// their GUIDs.
fn resolve(reader: &Reader<'_>, command: &mut CommandLine) -> Result<(), String> {
    let tool = command.tool;
    for action in &mut command.actions {
        match action {
            Command::Create(session) | Command::Start(session) | Command::Update(session) => {
                let kernel = resolve_all(reader, tool, &mut session.providers)?;
                session.kernel.extend(kernel);
                resolve_all(reader, tool, &mut session.removed)?;
            }
            Command::Enable { providers, .. }
            | Command::Disable { providers, .. }
            | Command::CaptureState { providers, .. } => {
                resolve_all(reader, tool, providers)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same for some providers. Returns the kernel flags in the files.
fn resolve_all(
    reader: &Reader<'_>,
    tool: Tool,
    providers: &mut Vec<ProviderSpec>,
) -> Result<Vec<String>, String> {
    let mut kernel = Vec::new();
    let mut out = Vec::with_capacity(providers.len());
    for spec in providers.drain(..) {
        let ProviderRef::File(file) = &spec.provider else {
            out.push(spec);
            continue;
        };
        let name = file_name(file);
        let text = (reader.script.include)(&reader.beside(name))
            .map_err(|error| format!("{name}: {error}"))?;
        let listed =
            parse_provider_file(tool, &spec, &text).map_err(|error| format!("{name}, {error}"))?;
        kernel.extend(listed.kernel);
        out.extend(listed.providers);
    }
    for spec in &mut out {
        if let ProviderRef::Name(name) = &spec.provider
            && let Some(guid) = reader.declared(name)
        {
            spec.provider = ProviderRef::Guid(guid);
        }
    }
    *providers = out;
    Ok(kernel)
}

/// A tool that performs the commands of a line.
struct Controller<'c> {
    tool: Tool,
    state: &'c mut Controllers,
    /// Sessions that the line has stopped.
    stopped: Vec<String>,
    add: &'c mut dyn FnMut(Action),
}

impl Controller<'_> {
    fn translate(&mut self, action: &Command) -> Result<(), String> {
        match action {
            Command::Create(session) => self.create(session),
            Command::Start(session) => self.start(session)?,
            Command::Update(session) => self.update(session)?,
            Command::Enable {
                session,
                providers,
                kernel,
            } => {
                self.enable_kernel(session, kernel);
                self.enable_all(session, providers)?;
            }
            Command::Disable {
                session,
                providers,
                kernel,
            } => {
                self.disable_kernel(session, kernel);
                self.disable_all(session, providers)?;
            }
            Command::CaptureState { session, providers } => {
                for provider in providers {
                    let guid = enable(provider)?.provider;
                    self.add(session, Request::CaptureState(guid));
                }
            }
            Command::Flush { session, file, .. } => {
                let file = file.as_deref().map(base);
                self.add(session, Request::Flush(file));
            }
            Command::Stop { session, .. } => {
                self.stopped.push(session.clone());
                self.add(session, Request::Stop);
            }
            Command::Delete { session } => self.delete(session),
            Command::Merge {
                inputs,
                output,
                options,
            } => self.merge(inputs, output, options),
            Command::SystemRundown { session } => {
                self.add(session, Request::KernelRundown);
            }
            Command::Decode {
                files, sessions, ..
            } => {
                let files = files.iter().map(|file| base(file)).collect();
                (self.add)(Action::Read {
                    files,
                    sessions: sessions.clone(),
                });
            }
            // A query leaves nothing in a trace.
            Command::Query {
                session: Some(session),
                direct: true,
            } => (self.add)(Action::Read {
                files: Vec::new(),
                sessions: vec![session.clone()],
            }),
            Command::Query { session, .. } => self.query(session.as_deref()),
            Command::ListProviders => self.collector("", None),
            Command::Collect(_) => {
                return Err("recordings of EventPipe are not simulated".to_owned());
            }
        }
        Ok(())
    }

    fn enable_kernel(&mut self, session: &str, flags: &[String]) {
        let TracelogChanges { added, removed, .. } = tracelog_changes(flags);
        let change = KernelChange {
            added,
            removed,
            ..KernelChange::default()
        };
        self.change_kernel(session, change);
    }

    fn disable_kernel(&mut self, session: &str, flags: &[String]) {
        let TracelogChanges { added, removed, .. } = tracelog_changes(flags);
        let change = KernelChange {
            removed: added.with(removed),
            ..KernelChange::default()
        };
        self.change_kernel(session, change);
    }

    fn create(&mut self, session: &Session) {
        let is_saved = self.saved(&session.name).is_some();
        if !is_saved {
            self.state.saved.push(SavedSession {
                settings: session.clone(),
            });
        }
        self.collector(&session.name, is_saved.then_some(CollectorProblem::Exists));
    }

    fn delete(&mut self, session: &str) {
        let is_missing = self.saved(session).is_none();
        self.state
            .saved
            .retain(|s| !s.settings.name.eq_ignore_ascii_case(session));
        self.collector(session, is_missing.then_some(CollectorProblem::Missing));
    }

    /// Asks for the saved settings of a session, or lists all.
    fn query(&mut self, session: Option<&str>) {
        let name = session.unwrap_or_default();
        let is_missing = session.is_some() && self.saved(name).is_none();
        self.collector(name, is_missing.then_some(CollectorProblem::Missing));
    }

    fn merge(&mut self, inputs: &[String], output: &str, options: &[String]) {
        let inputs = if inputs.is_empty() {
            self.files_of_stopped_sessions()
        } else {
            inputs.iter().map(|f| base(f)).collect()
        };
        (self.add)(Action::Merge {
            inputs,
            output: base(output),
            identities: !options.iter().any(|option| option == "mergeonly"),
            compress: options.iter().any(|option| option == "compress"),
        });
    }

    /// The last file of each session that the line has stopped.
    fn files_of_stopped_sessions(&self) -> Vec<String> {
        let mut files = Vec::new();
        for stopped in &self.stopped {
            let mut started = self.state.files.iter().rev();
            if let Some((_, file)) = started.find(|(name, _)| name.eq_ignore_ascii_case(stopped)) {
                files.push(file.clone());
            }
        }
        files
    }

    fn start(&mut self, session: &Session) -> Result<(), String> {
        let has_settings =
            !session.providers.is_empty() || !session.kernel.is_empty() || session.file.is_some();
        let saved = self.saved(&session.name).filter(|_| !has_settings);
        let is_saved = saved.is_some();
        let settings = saved.map_or_else(|| session.clone(), |saved| saved.settings.clone());
        if self.tool == Tool::Logman && !is_saved && !has_settings && !session.direct {
            self.collector(&session.name, Some(CollectorProblem::Missing));
            return Ok(());
        }
        let mut plan = plan(self.tool, &settings)?;
        let every = option_value(&settings, "cnf").and_then(seconds);
        let news = plan.mode.has(LogFileMode::NEWFILE) || every.is_some();
        if let Some(file) = &mut plan.file {
            let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "etl"));
            // Saved settings number their files, unless -v is given.
            let numbers = (is_saved && option(&settings, "-v").is_none()).then_some("nnnnnn");
            let version = option_value(&settings, "v").or(numbers);
            if self.tool == Tool::Logman && news && !file.contains('%') {
                *file = format!("{stem}_%06d.{ending}");
            } else {
                match version {
                    Some("nnnnnn") if is_saved => {
                        *file = format!("{stem}_{{nnnnnn}}.{ending}");
                    }
                    Some("nnnnnn") => *file = format!("{stem}_000001.{ending}"),
                    Some("mmddhhmm") => *file = format!("{stem}_{{mmddhhmm}}.{ending}"),
                    Some(other) => return Err(format!("-v {other}: nnnnnn or mmddhhmm")),
                    None => {}
                }
            }
            self.state.files.push((plan.name.clone(), file.clone()));
        }
        let name = plan.name.clone();
        if let Some(every) = every {
            let pattern = plan.clone();
            plan.file = plan.file.as_deref().map(|file| numbered_file(file, 1));
            (self.add)(Action::Start(Box::new(plan)));
            (self.add)(Action::Roll {
                plan: Box::new(pattern),
                every,
                number: 1,
            });
        } else {
            (self.add)(Action::Start(Box::new(plan)));
        }
        if let Some(after) = option_value(&settings, "rf") {
            let after =
                seconds(after).ok_or_else(|| format!("-rf {after}: a time, [[hh:]mm:]ss"))?;
            self.add(&name, Request::StopAfter(after));
        }
        Ok(())
    }

    fn update(&mut self, session: &Session) -> Result<(), String> {
        let name = session.name.as_str();
        // Saved settings change, unless -ets selects the running session.
        let mut saved = self.state.saved.iter_mut();
        if !session.direct
            && let Some(saved) = saved.find(|s| s.settings.name.eq_ignore_ascii_case(name))
        {
            saved.change(session);
            self.collector(name, None);
            return Ok(());
        }
        self.change_kernel(name, kernel_change(self.tool, session)?);
        let enabled = session.providers.iter().filter(|p| !is_kernel(p));
        self.enable_all(name, enabled)?;
        let disabled = session.removed.iter().filter(|p| !is_kernel(p));
        self.disable_all(name, disabled)?;
        let buffers = session.max_buffers;
        let flush_timer = session.flush_seconds.map(|s| u64::from(s) * SECOND);
        if buffers.is_some() || flush_timer.is_some() {
            self.add(
                name,
                Request::Update {
                    buffers,
                    flush_timer,
                },
            );
        }
        if session.others.iter().any(|o| o.name == "fd") {
            let file = session.file.as_deref().map(base);
            self.add(name, Request::Flush(file));
        }
        Ok(())
    }

    /// The saved settings of a session.
    fn saved(&self, name: &str) -> Option<&SavedSession> {
        self.state
            .saved
            .iter()
            .find(|s| s.settings.name.eq_ignore_ascii_case(name))
    }

    /// Adds what becomes of saved settings.
    fn collector(&mut self, name: &str, problem: Option<CollectorProblem>) {
        (self.add)(Action::Collector {
            name: name.to_owned(),
            problem,
        });
    }

    /// Adds a request to a session.
    fn add(&mut self, session: &str, request: Request) {
        (self.add)(Action::Session(session.to_owned(), request));
    }

    /// Adds a change of the kernel flags of a session, if there is one.
    fn change_kernel(&mut self, session: &str, change: KernelChange) {
        if change != KernelChange::default() {
            self.add(session, Request::Kernel(change));
        }
    }

    fn enable_all<'a>(
        &mut self,
        session: &str,
        providers: impl IntoIterator<Item = &'a ProviderSpec>,
    ) -> Result<(), String> {
        for provider in providers {
            self.add(session, Request::Enable(enable(provider)?));
        }
        Ok(())
    }

    fn disable_all<'a>(
        &mut self,
        session: &str,
        providers: impl IntoIterator<Item = &'a ProviderSpec>,
    ) -> Result<(), String> {
        for provider in providers {
            self.add(session, Request::Disable(enable(provider)?.provider));
        }
        Ok(())
    }
}

/// An option of a command line that has no setting of its own.
fn option<'s>(session: &'s Session, name: &str) -> Option<&'s OtherOption> {
    session.others.iter().find(|o| o.name == name)
}

/// The first value of such an option.
fn option_value<'s>(session: &'s Session, name: &str) -> Option<&'s str> {
    let values = &option(session, name)?.values;
    values.first().map(String::as_str)
}

impl SavedSession {
    /// Replaces the settings in a command line.
    fn change(&mut self, new: &Session) {
        let old = &mut self.settings;
        old.providers.retain(|p| {
            let mut changed = new.providers.iter().chain(&new.removed);
            changed.all(|other| other.provider != p.provider)
        });
        old.providers.extend(new.providers.iter().cloned());
        if !new.kernel.is_empty() || new.removed.iter().any(is_kernel) {
            old.kernel.clone_from(&new.kernel);
        }
        old.buffer_kb = new.buffer_kb.or(old.buffer_kb);
        old.min_buffers = new.min_buffers.or(old.min_buffers);
        old.max_buffers = new.max_buffers.or(old.max_buffers);
        old.max_file = new.max_file.or(old.max_file);
        old.flush_seconds = new.flush_seconds.or(old.flush_seconds);
        old.file = new.file.clone().or_else(|| old.file.take());
        old.file_mode = new.file_mode.or(old.file_mode);
        old.clock = new.clock.or(old.clock);
        old.modes = LogFileMode((old.modes.0 | new.modes.0) & !new.modes_off.0);
    }
}

/// The name of a file without its directory: files of a scenario have no directories.
fn base(path: &str) -> String {
    let name = file_name(path);
    if name.contains('.') {
        name.to_owned()
    } else {
        format!("{name}.etl")
    }
}

/// A path without its directory.
fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/', ':']).next().unwrap_or(path)
}

/// `[[hh:]mm:]ss`
fn seconds(text: &str) -> Option<Nanos> {
    let mut total = 0u64;
    for field in text.split(':') {
        total = total.checked_mul(60)?.checked_add(field.parse().ok()?)?;
    }
    total.checked_mul(SECOND)
}

fn plan(tool: Tool, session: &Session) -> Result<SessionPlan, String> {
    let mut plan = SessionPlan::new(session.name.clone(), "");
    plan.file = session.file.as_deref().map(base);
    let mode = session.log_file_mode();
    let fileless = mode.has(LogFileMode::BUFFERING) || session.real_time();
    if plan.file.is_none() && !fileless {
        // The default files of the tools.
        plan.file = Some(match tool {
            Tool::Logman => format!("{}.etl", session.name),
            _ if session.name == KERNEL_SESSION => "kernel.etl".to_owned(),
            _ => "user.etl".to_owned(),
        });
    }
    plan.mode = mode;
    if mode.0 == 0 {
        plan.mode = LogFileMode::SEQUENTIAL;
    }
    if let Some(kb) = session.buffer_kb {
        plan.buffer_size = kb.clamp(4, 16_384) * 1024;
    }
    if let Some(most) = session.max_buffers.or(session.min_buffers) {
        plan.buffers = most.max(2);
    }
    if let Some(size) = session.max_file {
        plan.maximum_size = size;
    }
    if let Some(seconds) = session.flush_seconds {
        plan.flush_timer = u64::from(seconds) * SECOND;
    }
    if let Some(clock) = session.clock {
        plan.clock = clock;
    }
    plan.kernel = kernel(tool, session)?;
    for provider in session.providers.iter().filter(|p| !is_kernel(p)) {
        plan.providers.push(enable(provider)?);
    }
    Ok(plan)
}

/// The change of kernel flags by a command line. Given flags replace all others.
fn kernel_change(tool: Tool, session: &Session) -> Result<KernelChange, String> {
    let given = session.providers.iter().any(is_kernel) || !session.kernel.is_empty();
    let mut change = KernelChange {
        only: given || session.removed.iter().any(is_kernel),
        ..KernelChange::default()
    };
    if given {
        change.added = kernel(tool, session)?.groups;
    }
    if !session.stack_walk.is_empty() {
        let mut flags = KernelFlags::default();
        flags.take_stacks(&session.stack_walk);
        change.stacks = Some(flags);
    }
    Ok(change)
}

/// The kernel flags of a command line.
fn kernel(tool: Tool, session: &Session) -> Result<KernelFlags, String> {
    let mut groups = if tool != Tool::Tracelog {
        kernel_groups(&session.kernel).map_err(|error| error.to_string())?
    } else if session.is_kernel() {
        // It adds some flags to the flags of the kernel's session.
        tracelog_groups(&session.kernel)
    } else {
        tracelog_changes(&session.kernel).added
    };
    for provider in session.providers.iter().filter(|p| is_kernel(p)) {
        // The kernel's flags as a number.
        match provider.keywords {
            Some(Keywords::Mask(mask)) => groups.add_flags(mask as u32),
            Some(Keywords::Flags(flags)) => groups.add_flags(flags),
            _ => return Err("the kernel's provider needs flags".to_owned()),
        }
    }
    let mut flags = KernelFlags::default();
    flags.groups = groups;
    if !groups.is_empty() {
        flags.take_stacks(&session.stack_walk);
    }
    Ok(flags)
}

/// Whether a provider is the kernel, by the name or the GUID of its session.
fn is_kernel(spec: &ProviderSpec) -> bool {
    match &spec.provider {
        ProviderRef::Guid(guid) => *guid == KERNEL_TRACE,
        ProviderRef::Name(name) => name.eq_ignore_ascii_case("Windows Kernel Trace"),
        _ => false,
    }
}

fn enable(spec: &ProviderSpec) -> Result<EnablePlan, String> {
    let registry = Registry::builtin();
    let guid = spec.provider.guid(registry);
    let provider = guid.ok_or_else(|| format!("provider {} is not known", spec.provider))?;
    let rule = spec
        .enablement(registry)
        .map_err(|error| error.to_string())?;
    let mut plan = EnablePlan {
        rule,
        ..EnablePlan::new(provider, 0, 0)
    };
    plan.processes = spec
        .scope
        .processes
        .iter()
        .copied()
        .map(ProcessId::new)
        .collect();
    plan.executables = spec.scope.executables.clone();
    plan.stack_ids = spec.stack_ids.clone();
    plan.stacks = spec
        .properties
        .has(etl_control::enable::EnableProperties::STACK_TRACE);
    Ok(plan)
}
