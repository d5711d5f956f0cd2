//! Command lines of `xperf`, `logman` and `tracelog`, as documents write them: what they do to the
//! simulated sessions.

use etl_format::constants::{ClockType, LogFileMode};
use etl_schema::controller::{
    Action as Asked, CommandLine, KERNEL_SESSION, LineError, ProviderSpec, Session,
    expand_kernel_flags,
};
use etl_schema::tables::Registry;

use super::reader::{Args, Reader};
use crate::machine::SECOND;
use crate::model::{Action, EnablePlan, KernelFlags, SessionPlan};

/// What the lines of a script leave behind for later ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Controllers {
    /// Settings saved by `logman create` without `-ets`.
    saved: Vec<Session>,
    /// Files of the sessions started so far, by name of the session.
    files: Vec<(String, String)>,
}

/// `run "xperf -start clr -on ... -f clr1.etl"`
pub(super) fn run(reader: &mut Reader<'_>, mut args: Args<'_>, steps: &mut Vec<Action>) {
    args.leaf();
    let at = args.span();
    let line = args.text(reader, "a command line");
    args.finish(reader);
    let Some(line) = line else { return };
    let parsed: Result<CommandLine, LineError> = line.parse();
    let command = match parsed {
        Ok(command) => command,
        Err(error) => {
            let message = format!("the command line cannot be read: {error}");
            reader.wrong(at, message, line, error.hint.clone());
            return;
        }
    };
    let mut state = std::mem::take(&mut reader.controllers);
    let mut stopped = Vec::new();
    for action in &command.actions {
        if let Err(why) = state.translate(action, &mut stopped, steps) {
            reader.wrong(at, why, line.clone(), None);
        }
    }
    reader.controllers = state;
}

impl Controllers {
    fn translate(
        &mut self,
        action: &Asked,
        stopped: &mut Vec<String>,
        steps: &mut Vec<Action>,
    ) -> Result<(), String> {
        match action {
            Asked::Create(session) => {
                self.saved.retain(|s| !s.name.eq_ignore_ascii_case(&session.name));
                self.saved.push((**session).clone());
            }
            Asked::Start(session) => {
                let saved = self.saved.iter().find(|s| s.name.eq_ignore_ascii_case(&session.name));
                let bare = session.providers.is_empty() && session.file.is_none();
                let session = if bare { saved.unwrap_or(session) } else { session };
                let plan = plan(session)?;
                if let Some(file) = &plan.file {
                    self.files.push((plan.name.clone(), file.clone()));
                }
                steps.push(Action::Start(Box::new(plan)));
            }
            Asked::Update(session) => {
                for provider in &session.providers {
                    let (session, plan) = (session.name.clone(), enable(provider)?);
                    steps.push(Action::Enable { session, plan });
                }
                for provider in &session.removed {
                    let (session, plan) = (session.name.clone(), enable(provider)?);
                    steps.push(Action::Disable { session, provider: plan.provider });
                }
            }
            Asked::Enable { session, providers, .. } => {
                for provider in providers {
                    let plan = enable(provider)?;
                    steps.push(Action::Enable { session: session.clone(), plan });
                }
            }
            Asked::Disable { session, providers, .. } => {
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
            Asked::Flush { session, .. } => steps.push(Action::Flush { session: session.clone() }),
            Asked::Stop { session, .. } => {
                stopped.push(session.clone());
                steps.push(Action::Stop { session: session.clone() });
            }
            Asked::Merge { inputs, output, .. } => {
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
                steps.push(Action::Merge { inputs, output: base(output) });
            }
            // Nothing of it is in any trace.
            Asked::Query { .. } | Asked::SystemRundown { .. } => {}
        }
        Ok(())
    }
}

/// The file's own name: files of a scenario have no directories.
fn base(path: &str) -> String {
    let name = path.rsplit(['\\', '/', ':']).next().unwrap_or(path);
    if name.contains('.') { name.to_owned() } else { format!("{name}.etl") }
}

fn plan(session: &Session) -> Result<SessionPlan, String> {
    let mut plan = SessionPlan::new(session.name.clone(), "");
    plan.file = session.file.as_deref().map(base);
    let mode = session.log_file_mode();
    let buffering = mode.has(LogFileMode::BUFFERING) || session.real_time();
    if plan.file.is_none() && !buffering {
        // Where the tools write when nobody tells them.
        let name = if session.name == KERNEL_SESSION { "kernel" } else { "user" };
        plan.file = Some(format!("{name}.etl"));
    }
    // Real time is not in the mode that a file states.
    plan.mode = LogFileMode(mode.0 & !LogFileMode::REAL_TIME.0);
    if plan.mode.0 == 0 {
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
    plan.kernel = kernel(&session.kernel, &session.stack_walk);
    for provider in &session.providers {
        plan.providers.push(enable(provider)?);
    }
    Ok(plan)
}

fn kernel(flags: &[String], stacks: &[String]) -> KernelFlags {
    let named = expand_kernel_flags(flags);
    let has =
        |names: &[&str]| named.iter().any(|n| names.iter().any(|w| w.eq_ignore_ascii_case(n)));
    KernelFlags {
        processes: has(&["PROC_THREAD", "process", "thread"]),
        images: has(&["LOADER", "img"]),
        profile: has(&["PROFILE", "profile"]),
        stacks: stacks.iter().any(|s| s.eq_ignore_ascii_case("profile")),
    }
}

fn enable(spec: &ProviderSpec) -> Result<EnablePlan, String> {
    let registry = Registry::builtin();
    let guid = spec.provider.guid(registry);
    let provider = guid.ok_or_else(|| format!("provider {:?} is not known", spec.provider))?;
    let rule =
        spec.enablement(registry).map_err(|k| format!("the provider has no keyword \"{k}\""))?;
    let mut plan = EnablePlan { rule, ..EnablePlan::new(provider, 0, 0) };
    plan.stacks = spec.properties.has(etl_schema::enable::EnableProperties::STACK_TRACE);
    Ok(plan)
}
