//! Requests of controllers: start, stop, flush, enable and disable sessions, or refuse to.

use etl_control::controller::{GroupMasks, KERNEL_SESSION};
use etl_control::enable::MAX_SESSIONS as MAX_SESSIONS_OF_PROVIDER;
use etl_format::constants::LogFileMode;
use etl_format::{FileTime, Guid};

use super::session::StartRequest;
use super::{EnableCallback, Etw, EtwTask, Session, logfile, session};
use crate::error::{Error, Result};
use crate::file_faults;
use crate::file_system::FileSystem;
use crate::model::{
    EnablePlan, Fault, KernelChange, Request, SessionPlan, WindowsVersion, number_range,
    numbered_file,
};
use crate::time::Nanos;
use crate::truth::{Fact, Refusal, RefusalCode};

/// Placeholder in a file name for month, day, hour and minute of the start.
const START_TIME: &str = "{mmddhhmm}";

/// Placeholder for the number of the start, counted for each session.
const START_NUMBER: &str = "{nnnnnn}";

/// Sessions that can run at a time.
const MAX_SESSIONS: usize = 64;
/// Sessions among them that can log kernel events: since Windows 8, and before.
const MAX_KERNEL_SESSIONS: (usize, usize) = (8, 1);
/// Private sessions of a process.
const MAX_PRIVATE_SESSIONS: usize = 4;

/// A tool that performs its command line: what ETW refuses is the tool's error, not the script's.
#[derive(Debug, Default)]
pub(crate) struct ServedTool {
    /// The first request that was refused.
    refusal: Option<Refusal>,
}

/// A session that was started, and the callbacks of its providers.
pub(crate) struct Started {
    pub index: usize,
    pub callbacks: Vec<EnableCallback>,
}

impl Etw<'_> {
    /// The running sessions of a name: one, or several private ones.
    pub fn running(&self, name: &str) -> Vec<usize> {
        let mut indexes = Vec::new();
        for (index, session) in self.sessions.iter().enumerate() {
            if session.is_running() && session.plan.name.eq_ignore_ascii_case(name) {
                indexes.push(index);
            }
        }
        indexes
    }

    /// The running sessions that a request is for. If there are none, the script is wrong, unless
    /// they were refused.
    pub fn request(&mut self, name: &str, request: &Request, at: Nanos) -> Result<Vec<usize>> {
        let running = self.running(name);
        if !running.is_empty() {
            return Ok(running);
        }
        let expected = self.refused.iter().any(|n| n.eq_ignore_ascii_case(name));
        if !expected && self.tool.is_none() {
            return Err(Error::impossible(
                at,
                format!("no session \"{name}\" is running"),
            ));
        }
        self.refuse(
            name,
            request.name(),
            RefusalCode::NotFound,
            "it does not run".to_owned(),
            at,
        )?;
        Ok(Vec::new())
    }

    /// From now on a tool makes the requests.
    pub fn serve_tool(&mut self) {
        self.tool = Some(ServedTool::default());
    }

    /// The tool is done. Returns its first request that was refused.
    pub fn served_tool(&mut self) -> Option<Refusal> {
        self.tool.take()?.refusal
    }

    /// Refuses what is wrong with a request: an error of the script, unless a tool makes it.
    pub fn fail(
        &mut self,
        of: &str,
        request: &'static str,
        code: RefusalCode,
        message: String,
        at: Nanos,
    ) -> Result<()> {
        if self.tool.is_none() {
            return Err(Error::impossible(at, message));
        }
        self.refuse(of, request, code, message, at)
    }

    /// A tool reads files, and sessions in real time.
    pub fn read(&mut self, files: &[String], sessions: &[String], at: Nanos) -> Result<()> {
        for file in files {
            if self.files.open(file).is_err() {
                let message = format!("{file}: no such file");
                return self.fail(file, "read", RefusalCode::FileNotFound, message, at);
            }
        }
        if let Some(session) = sessions.iter().find(|name| self.running(name).is_empty()) {
            let message = format!("no session \"{session}\" is running");
            return self.fail(session, "query", RefusalCode::NotFound, message, at);
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        session: &str,
        request: &'static str,
        code: RefusalCode,
        message: String,
        at: Nanos,
    ) -> Result<()> {
        let session = session.to_owned();
        let refusal = Refusal {
            at,
            session,
            request,
            code,
            message,
        };
        self.observer.observe(&Fact::Refused(&refusal))?;
        if let Some(tool) = &mut self.tool {
            tool.refusal.get_or_insert(refusal);
        }
        Ok(())
    }

    /// Starts a session, a private one in a process; `None` if it is refused.
    pub fn start(&mut self, request: &StartRequest<'_>) -> Result<Option<Started>> {
        let at = request.at;
        let mut plan = request.plan.clone();
        for named in &self.faults {
            if named.session.eq_ignore_ascii_case(&plan.name) {
                plan.faults.push(named.fault);
            }
        }
        for fault in plan.faults.clone() {
            Self::apply_to_plan(fault, &mut plan);
        }
        if let Some(file) = plan.file.as_mut().filter(|f| f.contains(START_TIME)) {
            *file = file.replace(
                START_TIME,
                &self.clock.month_to_minute(at, self.machine.bias),
            );
        }
        if let Some(file) = plan
            .file
            .as_mut()
            .filter(|file| file.contains(START_NUMBER))
        {
            let before = self
                .sessions
                .iter()
                .filter(|s| s.plan.name.eq_ignore_ascii_case(&plan.name));
            *file = file.replace(START_NUMBER, &format!("{:06}", before.count() + 1));
        }
        let request = StartRequest {
            plan: &plan,
            ..*request
        };
        if let Some((code, why)) = self.refusal_reason(&request) {
            self.refused.push(plan.name.clone());
            self.refuse(&plan.name, "start", code, why, at)?;
            return Ok(None);
        }
        let index = self.sessions.len();
        let config = request.config(self.free_id(), &self.machine, &self.clock);
        let started = config
            .and_then(|config| Session::start(&request, config, self.replaces, &mut self.files));
        let session = started.map_err(session::failed(&plan))?;
        if plan.flush_timer > 0 {
            self.tasks.push((
                at.saturating_add(plan.flush_timer),
                EtwTask::FlushTimer(index),
            ));
        }
        self.sessions.push(session);
        self.report_buffers(index)?;
        self.update_kernel_summary();
        let name = plan.name.as_str();
        let file = plan.file.as_deref();
        self.observer.observe(&Fact::SessionStarted {
            session: index,
            name,
            file,
        })?;
        if !plan.kernel.is_empty() {
            let flags = &plan.kernel;
            self.observer.observe(&Fact::KernelFlags {
                session: index,
                flags,
                at,
            })?;
        }
        let mut callbacks = Vec::new();
        for enable in &plan.providers {
            callbacks.extend(self.enable_in(index, enable, at)?);
        }
        Ok(Some(Started { index, callbacks }))
    }

    /// Changes the settings of a session as a fault requires.
    fn apply_to_plan(fault: Fault, plan: &mut SessionPlan) {
        if let Fault::CircularWrap(kb) = fault {
            let rest = LogFileMode(plan.mode.0 & !LogFileMode::SEQUENTIAL.0);
            plan.mode = rest | LogFileMode::CIRCULAR | LogFileMode::USE_KBYTES_FOR_SIZE;
            plan.maximum_size = kb.max(plan.buffer_size / 1024 * 2);
        }
    }

    /// Why a session cannot be started.
    fn refusal_reason(&mut self, request: &StartRequest<'_>) -> Option<(RefusalCode, String)> {
        let StartRequest { plan, process, .. } = *request;
        let mode = plan.mode;
        let sessions = &self.sessions;
        if self.running(&plan.name).iter().any(|index| {
            sessions
                .get(*index)
                .is_some_and(|session| session.process == process)
        }) {
            let why = "a session of this name runs already".to_owned();
            return Some((RefusalCode::AlreadyExists, why));
        }
        let running = sessions
            .iter()
            .filter(|s| s.is_running() && s.process == process)
            .count();
        let for_kernel = !plan.kernel.is_empty();
        let too_many = match process {
            Some(pid) if running >= MAX_PRIVATE_SESSIONS => Some(format!(
                "process {pid} has {MAX_PRIVATE_SESSIONS} private sessions already"
            )),
            None if running >= MAX_SESSIONS => Some(format!("{MAX_SESSIONS} sessions run already")),
            None if for_kernel => self.kernel_is_full(),
            _ => None,
        };
        if let Some(why) = too_many {
            return Some((RefusalCode::NoSystemResources, why));
        }
        let numbered = plan.file.as_deref().and_then(number_range).is_some();
        if mode.has(LogFileMode::NEWFILE) && !numbered {
            let why = "the file of mode NEWFILE needs %d in its name".to_owned();
            return Some((RefusalCode::InvalidName, why));
        }
        if let Some(why) = mode_conflict(request) {
            return Some(invalid(why));
        }
        let file = plan
            .file
            .as_ref()
            .filter(|_| !mode.has(LogFileMode::BUFFERING))?;
        let first = if mode.has(LogFileMode::NEWFILE) {
            numbered_file(file, 1)
        } else {
            file.clone()
        };
        if let Some(refusal) = self.is_written(&first) {
            return Some(refusal);
        }
        let config = request.config(0, &self.machine, &self.clock).ok()?;
        let header = &config.header;
        let smallest = u64::from(plan.buffer_size) * 2;
        let sized = mode.has(LogFileMode::CIRCULAR) || mode.has(LogFileMode::NEWFILE);
        match header.maximum_bytes() {
            None if sized || mode.has(LogFileMode::PREALLOCATE) => {
                return Some(invalid("the mode needs a largest size of the file"));
            }
            Some(bytes) if bytes < smallest => {
                return Some(invalid("the largest size holds no header and one buffer"));
            }
            _ => {}
        }
        if mode.has(LogFileMode::APPEND)
            && let Some(old) = logfile::bytes_of(&first, &mut self.files)
            && let Some(why) = logfile::mismatch(&old, header)
        {
            let why = format!("{first} cannot be appended to: {why}");
            return Some((RefusalCode::InvalidParameter, why));
        }
        None
    }

    /// Why a file cannot be created: a session writes it, or the consumer of one.
    fn is_written(&self, file: &str) -> Option<(RefusalCode, String)> {
        let writer = self.sessions.iter().find(|s| s.writes(file))?;
        let why = format!("session \"{}\" writes {file}", writer.plan.name);
        Some((RefusalCode::AlreadyExists, why))
    }

    /// Why no other session can log kernel events, if that is so.
    fn kernel_is_full(&self) -> Option<String> {
        let (new, old) = MAX_KERNEL_SESSIONS;
        let most = if self.machine.os >= WindowsVersion::WINDOWS_8 {
            new
        } else {
            old
        };
        let has = self
            .sessions
            .iter()
            .filter(|s| s.is_running() && s.of_kernel)
            .count();
        (has >= most).then(|| format!("{most} sessions log the kernel's events already"))
    }

    /// The lowest session id that no running session has.
    fn free_id(&self) -> u16 {
        (3..)
            .find(|id| !self.sessions.iter().any(|s| s.is_running() && s.id == *id))
            .unwrap_or(u16::MAX)
    }

    fn enable_in(
        &mut self,
        session: usize,
        plan: &EnablePlan,
        at: Nanos,
    ) -> Result<Vec<EnableCallback>> {
        let index = self.provider(plan.provider, false);
        let Some(found) = self.sessions.get(session) else {
            return Ok(Vec::new());
        };
        let process = found.process;
        let name = found.plan.name.clone();
        let mut plan = match found.plan.event_pipe {
            Some(event_pipe) => event_pipe.enablement(plan),
            None => plan.clone(),
        };
        if found.plan.faults.contains(&Fault::WrongKeyword) {
            plan.rule.any = wrong_keyword(plan.rule.any);
        }
        // A private session contains events of its own process only.
        plan.processes = process.map_or(plan.processes, |pid| vec![pid.into()]);
        let sessions = &self.sessions;
        let Some(provider) = self.providers.get_mut(index.0) else {
            return Ok(Vec::new());
        };
        let mut changed;
        if provider.classic {
            let others = provider
                .enables
                .iter()
                .map(|(s, _)| *s)
                .filter(|s| *s != session);
            provider.former.extend(others);
            changed = provider.remove(|_| true);
        } else {
            let others = provider.enables.iter().filter(|(other, _)| {
                *other != session && sessions.get(*other).is_none_or(|s| s.process.is_none())
            });
            if process.is_none() && others.count() >= MAX_SESSIONS_OF_PROVIDER {
                let why = format!(
                    "{} is enabled by {MAX_SESSIONS_OF_PROVIDER} sessions already",
                    plan.provider
                );
                self.refuse(&name, "enable", RefusalCode::NoSystemResources, why, at)?;
                return Ok(Vec::new());
            }
            changed = provider.remove(|s| s == session);
        }
        changed.push(plan.clone());
        provider.former.retain(|s| *s != session);
        provider.enables.push((session, plan.clone()));
        provider.update_union();
        let callbacks = provider.callbacks(&changed, &self.names);
        let filetime = FileTime::new(self.clock.filetime(at));
        self.observer.observe(&Fact::ProviderEnabled {
            session,
            plan: &plan,
            at,
            filetime,
        })?;
        Ok(callbacks)
    }

    /// Disables a provider in a session.
    fn disable_in(
        &mut self,
        index: usize,
        provider: Guid,
        at: Nanos,
    ) -> Result<Vec<EnableCallback>> {
        let mut providers = self.providers.iter_mut();
        let Some(state) = providers.find(|p| p.guid == provider) else {
            return Ok(Vec::new());
        };
        let was_enabled = state.enables.iter().any(|(session, _)| *session == index);
        let callbacks = state.drop_session(index, &self.names);
        if was_enabled {
            self.observer.observe(&Fact::ProviderDisabled {
                session: index,
                provider,
                at,
                filetime: FileTime::new(self.clock.filetime(at)),
            })?;
        }
        Ok(callbacks)
    }

    /// Changes the number of buffers and the flush timer of a session.
    fn update_session(
        &mut self,
        index: usize,
        buffers: Option<u32>,
        flush_timer: Option<Nanos>,
        at: Nanos,
    ) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        session.set_buffers(buffers.unwrap_or(session.plan.buffers));
        let Some(period) = flush_timer else {
            return;
        };
        if session.plan.flush_timer == 0 && period > 0 {
            let next = at.saturating_add(period);
            self.tasks.push((next, EtwTask::FlushTimer(index)));
        }
        session.plan.flush_timer = period;
    }

    /// Performs a request that concerns one session only.
    pub fn perform_request(
        &mut self,
        index: usize,
        name: &str,
        request: &Request,
        at: Nanos,
    ) -> Result<Vec<EnableCallback>> {
        let timestamp = self.timestamp(index, at);
        let filetime = self.clock.filetime(at);
        let file = self
            .sessions
            .get(index)
            .and_then(|session| session.file_of(request));
        if let Some((code, why)) = file.and_then(|file| self.is_written(file)) {
            return self
                .refuse(name, request.name(), code, why, at)
                .map(|()| Vec::new());
        }
        let mut refused = None;
        match request {
            Request::Enable(plan) => return self.enable_in(index, plan, at),
            Request::Disable(provider) => return self.disable_in(index, *provider, at),
            Request::Flush(file) => {
                let file = file.as_deref();
                let done = self.in_session(index, |session, files| {
                    session.flush_now(timestamp, filetime, file, files)
                })?;
                if done == Some(false) {
                    refused = Some("what is in memory needs a file to be written to");
                }
            }
            Request::Consume { speed, file } => {
                let done =
                    self.in_session(index, |s, files| s.consume(*speed, file.as_deref(), files))?;
                if done == Some(false) {
                    refused = Some("it is not in real time, or has a consumer already");
                }
            }
            Request::Leave => {
                self.in_session(index, |session, _| session.leave(filetime))?;
            }
            Request::Update {
                buffers,
                flush_timer,
            } => {
                self.update_session(index, *buffers, *flush_timer, at);
            }
            _ => {}
        }
        if let Some(why) = refused {
            self.refuse(
                name,
                request.name(),
                RefusalCode::InvalidParameter,
                why.to_owned(),
                at,
            )?;
        }
        if matches!(request, Request::Flush(_) | Request::Consume { .. }) {
            self.keep_writing(index, at);
        }
        if matches!(
            request,
            Request::Flush(_) | Request::Consume { .. } | Request::Leave
        ) {
            self.report_buffers(index)?;
        }
        Ok(Vec::new())
    }

    /// Sessions request the state of a provider that they enable.
    pub fn capture_state(
        &mut self,
        name: &str,
        sessions: &[usize],
        guid: Guid,
        at: Nanos,
    ) -> Result<Vec<EnableCallback>> {
        let provider_state = self.providers.iter().find(|p| p.guid == guid);
        let asking = provider_state.map(|p| p.enables.iter().filter(|(s, _)| sessions.contains(s)));
        let asking: Vec<EnablePlan> = asking
            .into_iter()
            .flatten()
            .map(|(_, e)| e.clone())
            .collect();
        let Some(provider) = provider_state.filter(|_| !asking.is_empty()) else {
            let what = format!("session \"{name}\" does not enable {guid}");
            let code = RefusalCode::InvalidParameter;
            return self
                .fail(name, "capture-state", code, what, at)
                .map(|()| Vec::new());
        };
        let callbacks = provider.callbacks(&asking, &self.names);
        Ok(callbacks
            .into_iter()
            .map(|c| EnableCallback {
                capture_state: true,
                ..c
            })
            .collect())
    }

    /// Stops sessions: calls back their providers and writes their buffers.
    pub fn stop(&mut self, sessions: &[usize], at: Nanos) -> Result<Vec<EnableCallback>> {
        let mut callbacks = Vec::new();
        for &session in sessions {
            for provider in &mut self.providers {
                callbacks.extend(provider.drop_session(session, &self.names));
            }
            self.close(session, at, false)?;
        }
        Ok(callbacks)
    }

    /// Private sessions end with their process.
    pub fn end_private(&mut self, pid: u32, at: Nanos) -> Result<()> {
        let mut ending = Vec::new();
        for (index, session) in self.sessions.iter().enumerate() {
            if session.is_running() && session.process == Some(pid) {
                ending.push(index);
            }
        }
        self.stop(&ending, at).map(drop)
    }

    /// Ends the running sessions as a loss of power does.
    pub fn lose_power(&mut self, at: Nanos) -> Result<()> {
        for session in 0..self.sessions.len() {
            self.close(session, at, true)?;
        }
        Ok(())
    }

    fn close(&mut self, index: usize, at: Nanos, abandon: bool) -> Result<()> {
        let Some(session) = self.sessions.get_mut(index).filter(|s| s.is_running()) else {
            return Ok(());
        };
        let abandon = abandon || session.plan.faults.contains(&Fault::NotClosed);
        let closed = session.close(at, abandon, &self.clock, &mut self.files);
        closed.map_err(session::failed(&session.plan))?;
        let report = session.report(index);
        let mut rng = self.source.named("session").named(&report.name).rng();
        for file in &report.all_files {
            for fault in report.plan.faults.iter().filter(|f| f.is_of_the_file()) {
                let last = session.last_buffer(file);
                let size = report.plan.buffer_size;
                let hit = file_faults::apply(fault, file, size, last, &mut rng, &mut self.files)?;
                for bytes in hit {
                    let bytes = &bytes;
                    self.observer.observe(&Fact::Fault {
                        session: index,
                        fault: *fault,
                        file,
                        bytes,
                    })?;
                    let removed = matches!(fault, Fault::Truncated(_));
                    session.damaged(file, bytes, removed);
                }
            }
        }
        self.update_kernel_summary();
        self.report_buffers(index)?;
        self.observer.observe(&Fact::SessionEnded(&report))
    }

    /// Running sessions that can change their kernel flags; the others are refused.
    pub fn kernel_sessions(
        &mut self,
        name: &str,
        sessions: &[usize],
        request: &'static str,
        at: Nanos,
    ) -> Result<Vec<usize>> {
        let mut indexes = Vec::new();
        for &index in sessions {
            let Some(session) = self.sessions.get(index) else {
                continue;
            };
            let may = session.plan.mode.has(LogFileMode::SYSTEM_LOGGER)
                || session.plan.name.eq_ignore_ascii_case(KERNEL_SESSION);
            if session.of_kernel {
                indexes.push(index);
            } else if !may || session.process.is_some() {
                let why = "it is not a kernel session".to_owned();
                self.refuse(name, request, RefusalCode::InvalidParameter, why, at)?;
            } else if let Some(why) = self.kernel_is_full() {
                self.refuse(name, request, RefusalCode::NoSystemResources, why, at)?;
            } else {
                indexes.push(index);
            }
        }
        Ok(indexes)
    }

    /// Changes the kernel flags of a session. Returns the groups before and after.
    pub fn change_kernel(
        &mut self,
        index: usize,
        change: &KernelChange,
        at: Nanos,
    ) -> Result<(GroupMasks, GroupMasks)> {
        let Some(session) = self.sessions.get_mut(index) else {
            return Ok(Default::default());
        };
        let groups = session.change_kernel(change);
        let flags = &session.kernel;
        self.observer.observe(&Fact::KernelFlags {
            session: index,
            flags,
            at,
        })?;
        self.update_kernel_summary();
        Ok(groups)
    }
}

fn invalid(why: &str) -> (RefusalCode, String) {
    (RefusalCode::InvalidParameter, why.to_owned())
}

/// Why the settings of a session exclude each other, if they do.
fn mode_conflict(request: &StartRequest<'_>) -> Option<&'static str> {
    let StartRequest { plan, process, .. } = *request;
    let mode = plan.mode;
    let for_kernel = !plan.kernel.is_empty();
    let filling = [
        LogFileMode::CIRCULAR,
        LogFileMode::NEWFILE,
        LogFileMode::APPEND,
    ];
    let fills = filling.into_iter().filter(|bit| mode.has(*bit)).count();
    let real_time = mode.has(LogFileMode::REAL_TIME);
    let append = mode.has(LogFileMode::APPEND);
    let private = process.is_some();
    let conflicts = [
        (
            fills > 1,
            "the modes circular, append and newfile exclude each other",
        ),
        // Windows Update uses sequential with newfile, although the reference excludes it.
        (
            mode.has(LogFileMode::CIRCULAR) && mode.has(LogFileMode::SEQUENTIAL),
            "the modes circular and sequential exclude each other",
        ),
        (
            mode.has(LogFileMode::BUFFERING) && real_time,
            "a session is in memory or in real time",
        ),
        (
            mode.has(LogFileMode::BUFFERING)
                && (mode.has(LogFileMode::CIRCULAR)
                    || mode.has(LogFileMode::NEWFILE)
                    || mode.has(LogFileMode::PREALLOCATE)),
            "a session in memory is neither circular nor newfile nor preallocate",
        ),
        (
            append && real_time,
            "a real-time session cannot append to a file",
        ),
        (
            append && mode.has(LogFileMode::PREALLOCATE),
            "mode append has no preallocated size",
        ),
        (
            private && (for_kernel || real_time),
            "a private session has neither kernel events nor real time",
        ),
        (
            private && append,
            "a private session does not append to a file",
        ),
    ];
    let (_, why) = conflicts.into_iter().find(|(applies, _)| *applies)?;
    Some(why)
}

/// Replaces EndRundown in a mask by a bit that has no effect in the rundown provider, as some
/// documents print it.
fn wrong_keyword(mask: u64) -> u64 {
    use etl_schema::clr::keyword::{END_ENUMERATION, END_RUNDOWN};
    if mask & END_RUNDOWN == 0 {
        mask
    } else {
        mask & !END_RUNDOWN | END_ENUMERATION
    }
}
