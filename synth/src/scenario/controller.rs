//! Command lines of `xperf`, `logman` and `tracelog`, as documents write them: what they do to the
//! simulated sessions.

use etl_control::controller::{
    Action as Asked, CommandLine, KERNEL_SESSION, Keywords, LineError, ProviderRef, ProviderSpec,
    Session, Tool, kernel_groups, parse_provider_file, tracelog_changes, tracelog_groups,
};
use etl_format::constants::{ClockType, LogFileMode};
use etl_schema::providers::KERNEL_TRACE;
use etl_schema::tables::Registry;

use super::args::Args;
use super::reader::Reader;
use crate::model::{Action, EnablePlan, KernelChange, KernelFlags, SessionPlan, numbered_file};
use crate::time::{Nanos, SECOND};

/// What the lines of a script leave behind for later ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Controllers {
    /// Settings saved by `logman create` without `-ets`.
    saved: Vec<Saved>,
    /// Files of the sessions started so far, by name of the session.
    files: Vec<(String, String)>,
}

/// Settings under a name, and how often they ran.
#[derive(Clone, Debug)]
struct Saved {
    settings: Session,
    runs: u32,
}

/// `run "xperf -start clr -on ... -f clr1.etl"`
pub(super) fn run(reader: &mut Reader<'_>, mut args: Args<'_>, steps: &mut Vec<Action>) {
    args.leaf();
    let at = args.span();
    let line = args.text(reader, "a command line");
    args.finish(reader);
    let Some(line) = line else { return };
    let parsed: Result<CommandLine, LineError> = line.parse();
    let mut command = match parsed {
        Ok(command) => command,
        Err(error) => {
            let message = format!("the command line cannot be read: {error}");
            reader.error(at, message, line, error.hint.clone());
            return;
        }
    };
    if let Err(why) = resolve(reader, &mut command) {
        reader.error(at, why, line, None);
        return;
    }
    let mut state = std::mem::take(&mut reader.controllers);
    let mut stopped = Vec::new();
    for action in &command.actions {
        if let Err(why) = state.translate(command.tool, action, &mut stopped, steps) {
            reader.error(at, why, line.clone(), None);
        }
    }
    reader.controllers = state;
}

/// Puts what files list in the place of their names, and the GUIDs of providers that the script
/// declares in that of theirs.
fn resolve(reader: &Reader<'_>, command: &mut CommandLine) -> Result<(), String> {
    let tool = command.tool;
    for action in &mut command.actions {
        match action {
            Asked::Create(session) | Asked::Start(session) | Asked::Update(session) => {
                let kernel = resolve_all(reader, tool, &mut session.providers)?;
                session.kernel.extend(kernel);
                resolve_all(reader, tool, &mut session.removed)?;
            }
            Asked::Enable { providers, .. }
            | Asked::Disable { providers, .. }
            | Asked::CaptureState { providers, .. } => {
                resolve_all(reader, tool, providers)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same of some providers: flags of the kernel that are listed with them.
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
        let text = reader.beside(name).map_err(|error| format!("{name}: {error}"))?;
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

impl Controllers {
    fn translate(
        &mut self,
        tool: Tool,
        action: &Asked,
        stopped: &mut Vec<String>,
        steps: &mut Vec<Action>,
    ) -> Result<(), String> {
        match action {
            Asked::Create(session) => {
                self.saved.retain(|s| !s.settings.name.eq_ignore_ascii_case(&session.name));
                self.saved.push(Saved { settings: (**session).clone(), runs: 0 });
            }
            Asked::Start(session) => self.start(tool, session, steps)?,
            Asked::Update(session) => self.update(tool, session, steps)?,
            Asked::Enable { session, providers, kernel } => {
                let (added, removed) = tracelog_changes(kernel);
                change(session, KernelChange { added, removed, ..KernelChange::default() }, steps);
                for provider in providers {
                    let plan = enable(provider)?;
                    steps.push(Action::Enable { session: session.clone(), plan });
                }
            }
            Asked::Disable { session, providers, kernel } => {
                let (added, removed) = tracelog_changes(kernel);
                let removed = added.with(removed);
                change(session, KernelChange { removed, ..KernelChange::default() }, steps);
                for provider in providers {
                    let provider = enable(provider)?.provider;
                    steps.push(Action::Disable { session: session.clone(), provider });
                }
            }
            Asked::CaptureState { session, providers } => {
                for provider in providers {
                    let provider = enable(provider)?.provider;
                    steps.push(Action::CaptureState { session: session.clone(), provider });
                }
            }
            Asked::Flush { session, file, .. } => {
                let (session, file) = (session.clone(), file.as_deref().map(base));
                steps.push(Action::Flush { session, file });
            }
            Asked::Stop { session, .. } => {
                stopped.push(session.clone());
                steps.push(Action::Stop { session: session.clone() });
            }
            Asked::Merge { inputs, output, options } => {
                let of_stopped = |name: &String| {
                    let known = self.files.iter().rev();
                    let mut known = known.filter(|(n, _)| n.eq_ignore_ascii_case(name));
                    known.next().map(|(_, file)| file.clone())
                };
                let inputs: Vec<String> = if inputs.is_empty() {
                    stopped.iter().filter_map(of_stopped).collect()
                } else {
                    inputs.iter().map(|f| base(f)).collect()
                };
                let has = |option: &str| options.iter().any(|o| o == option);
                let identities = !has("mergeonly");
                let compress = has("compress");
                steps.push(Action::Merge { inputs, output: base(output), identities, compress });
            }
            Asked::SystemRundown { session } => {
                steps.push(Action::KernelRundown { session: session.clone() });
            }
            // Nothing of it is in any trace.
            Asked::Query { .. } => {}
        }
        Ok(())
    }

    fn start(
        &mut self,
        tool: Tool,
        session: &Session,
        steps: &mut Vec<Action>,
    ) -> Result<(), String> {
        let bare = session.providers.is_empty() && session.kernel.is_empty();
        let bare = bare && session.file.is_none();
        let named = |s: &&mut Saved| s.settings.name.eq_ignore_ascii_case(&session.name);
        let saved = self.saved.iter_mut().find(named).filter(|_| bare);
        let (settings, runs) = match saved {
            Some(saved) => {
                saved.runs += 1;
                (saved.settings.clone(), Some(saved.runs))
            }
            None => (session.clone(), None),
        };
        let mut plan = plan(tool, &settings)?;
        let option = |name: &str| settings.others.iter().find(|o| o.name == name);
        let new_file = settings.others.iter().find(|o| o.name == "cnf");
        let every = new_file.and_then(|o| o.values.first()).and_then(|v| seconds(v));
        let news = plan.mode.has(LogFileMode::NEWFILE) || every.is_some();
        if let Some(file) = &mut plan.file {
            let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "etl"));
            // What was saved counts its runs, unless it says otherwise.
            let version = option("v").and_then(|o| o.values.first()).map(String::as_str);
            let version = version.or(runs.filter(|_| option("-v").is_none()).map(|_| "nnnnnn"));
            if tool == Tool::Logman && news && !file.contains('%') {
                *file = format!("{stem}_%06d.{ending}");
            } else {
                match version {
                    Some("nnnnnn") => *file = format!("{stem}_{:06}.{ending}", runs.unwrap_or(1)),
                    Some("mmddhhmm") => *file = format!("{stem}_{{mmddhhmm}}.{ending}"),
                    Some(other) => return Err(format!("-v {other}: nnnnnn or mmddhhmm")),
                    None => {}
                }
            }
            self.files.push((plan.name.clone(), file.clone()));
        }
        let name = plan.name.clone();
        if let Some(every) = every {
            let pattern = plan.clone();
            plan.file = plan.file.as_deref().map(|file| numbered_file(file, 1));
            steps.push(Action::Start(Box::new(plan)));
            steps.push(Action::Roll { plan: Box::new(pattern), every, number: 1 });
        } else {
            steps.push(Action::Start(Box::new(plan)));
        }
        if let Some(after) = option("rf").and_then(|o| o.values.first()) {
            let after =
                seconds(after).ok_or_else(|| format!("-rf {after}: a time, [[hh:]mm:]ss"))?;
            steps.push(Action::StopAfter { session: name, after });
        }
        Ok(())
    }

    fn update(
        &mut self,
        tool: Tool,
        session: &Session,
        steps: &mut Vec<Action>,
    ) -> Result<(), String> {
        let name = session.name.clone();
        // What is saved is changed where nobody says that the session itself is meant.
        let named = |s: &&mut Saved| s.settings.name.eq_ignore_ascii_case(&name);
        if let Some(saved) = self.saved.iter_mut().find(named).filter(|_| !session.direct) {
            saved.change(session);
            return Ok(());
        }
        change(&name, kernel_change(tool, session)?, steps);
        for provider in session.providers.iter().filter(|p| !is_kernel(p)) {
            let plan = enable(provider)?;
            steps.push(Action::Enable { session: name.clone(), plan });
        }
        for provider in session.removed.iter().filter(|p| !is_kernel(p)) {
            let provider = enable(provider)?.provider;
            steps.push(Action::Disable { session: name.clone(), provider });
        }
        let buffers = session.max_buffers;
        let flush_timer = session.flush_seconds.map(|s| u64::from(s) * SECOND);
        if buffers.is_some() || flush_timer.is_some() {
            steps.push(Action::Update { session: name.clone(), buffers, flush_timer });
        }
        if session.others.iter().any(|o| o.name == "fd") {
            let file = session.file.as_deref().map(base);
            steps.push(Action::Flush { session: name, file });
        }
        Ok(())
    }
}

impl Saved {
    /// Takes what a line says anew.
    fn change(&mut self, new: &Session) {
        let old = &mut self.settings;
        old.providers.retain(|p| {
            let other = |q: &ProviderSpec| q.provider != p.provider;
            new.providers.iter().all(other) && new.removed.iter().all(other)
        });
        old.providers.extend(new.providers.iter().cloned());
        if !new.kernel.is_empty() || new.removed.iter().any(is_kernel) {
            old.kernel.clone_from(&new.kernel);
        }
        let keep = |old: &mut Option<u32>, new: Option<u32>| *old = new.or(*old);
        keep(&mut old.buffer_kb, new.buffer_kb);
        keep(&mut old.min_buffers, new.min_buffers);
        keep(&mut old.max_buffers, new.max_buffers);
        keep(&mut old.max_file, new.max_file);
        keep(&mut old.flush_seconds, new.flush_seconds);
        old.file = new.file.clone().or_else(|| old.file.take());
        old.file_mode = new.file_mode.or(old.file_mode);
        old.clock = new.clock.or(old.clock);
        old.modes = LogFileMode((old.modes.0 | new.modes.0) & !new.modes_off.0);
    }
}

/// The file's own name: files of a scenario have no directories.
fn base(path: &str) -> String {
    let name = file_name(path);
    if name.contains('.') { name.to_owned() } else { format!("{name}.etl") }
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
        // Where the tools write when nobody tells them.
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
        plan.clock = ClockType(clock.raw());
    }
    plan.kernel = kernel(tool, session)?;
    for provider in session.providers.iter().filter(|p| !is_kernel(p)) {
        plan.providers.push(enable(provider)?);
    }
    Ok(plan)
}

/// The step by which a session changes what it asks the kernel for, if it does.
fn change(session: &str, change: KernelChange, steps: &mut Vec<Action>) {
    if change != KernelChange::default() {
        steps.push(Action::Kernel { session: session.to_owned(), change });
    }
}

/// What a line that updates a session changes of what it asks the kernel for. Flags that are given
/// are all that is asked for from then on.
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

/// What a line asks of the kernel.
fn kernel(tool: Tool, session: &Session) -> Result<KernelFlags, String> {
    let mut groups = if tool != Tool::Tracelog {
        kernel_groups(&session.kernel).map_err(|error| error.to_string())?
    } else if session.is_kernel() {
        // It asks for some things by itself, of the kernel's session.
        tracelog_groups(&session.kernel)
    } else {
        tracelog_changes(&session.kernel).0
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

/// Whether a provider is the kernel's own, by the name or the GUID of its session.
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
    let rule = spec.enablement(registry).map_err(|error| error.to_string())?;
    let mut plan = EnablePlan { rule, ..EnablePlan::new(provider, 0, 0) };
    plan.processes = spec.scope.processes.clone();
    plan.executables = spec.scope.executables.clone();
    plan.stack_ids = spec.stack_ids.clone();
    plan.stacks = spec.properties.has(etl_control::enable::EnableProperties::STACK_TRACE);
    Ok(plan)
}
