//! How sessions enabled providers: declared by the user, or recorded in the trace. [`infer`] finds
//! the rest from the events.
//!
//! [`infer`]: super::infer

use std::collections::BTreeMap;

use etl_control::clr::{Code, INFORMATIONAL, Method, Runtime, Unload, VERBOSE};
use etl_control::controller::{
    Action, Collection, CommandLine, KERNEL_SESSION, LineError, ProviderSpec,
};
use etl_control::enable::{CombinedEnablement, Enablement, EventKey, Variant};
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::{EventHeader, Record};
use etl_format::{Clock, FileHeader, FileTime, Guid, Ticks, parse_number};
use etl_schema::clr::keyword::{END_ENUMERATION, JIT, LOADER, NGEN};
use etl_schema::providers::{self, CLR_RUNDOWN, CLR_RUNTIME, KERNEL_EVENT_TRACING, PERFVIEW};
use etl_schema::tables::Registry;
use foldhash::HashMap;

use etl_analysis::machine::{Counted, Process};

use super::times::{TimeSpan, Times};
use crate::TraceOrigin;

/// The event with the manifest of an `EventSource`: every session gets it.
pub(super) const MANIFEST: u16 = 0xfffe;

/// Ids of PerfView's events about its sessions.
mod perfview {
    /// Its sessions are about to stop.
    pub const STOP: u16 = 3;
    /// The name of a session.
    pub const SESSION_NAME: u16 = 11;
    /// How a session enables the CLR's runtime provider.
    pub const CLR_ENABLED: u16 = 13;
    /// How a session enables another provider.
    pub const PROVIDER_ENABLED: u16 = 14;
}

/// The keywords by which a rundown lists code.
const CODE: u64 = LOADER | JIT | NGEN;

/// Ids of the kernel's events about event tracing.
mod event_tracing {
    /// A session was stopped.
    pub const SESSION_STOPPED: u16 = 11;
    /// A session enables a provider.
    pub const PROVIDER_ENABLED: u16 = 14;
    /// A session disables a provider.
    pub const PROVIDER_DISABLED: u16 = 15;
}

etl_schema::named! {
    /// How an enablement is known.
    EnablementSource {
        /// The user declared it: there is no other enablement of the provider.
        Declared "declared",
        /// The trace records it; others may not be recorded.
        Recorded "recorded",
        /// It is the smallest that explains the events.
        Inferred "inferred",
    }
}

/// How a session enabled a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// The provider.
    pub(crate) provider: Guid,
    /// Level and masks; `None` if the trace only records that the provider was enabled.
    pub(crate) with: Option<Enablement>,
    /// How it is known.
    pub(crate) source: EnablementSource,
    /// When it began, as a timestamp of the trace, if that is known.
    pub(crate) from: Option<Ticks>,
    /// When it began, if `truth.jsonl` states it.
    pub(crate) since: Option<FileTime>,
    /// When it ended, as a timestamp of the trace, if that is known.
    pub(crate) to: Option<Ticks>,
    /// When its session enabled the provider again or disabled it, if `truth.jsonl` states that.
    pub(crate) until: Option<FileTime>,
    /// When its session was stopped, if `truth.jsonl` states that.
    pub(crate) stopped: Option<FileTime>,
    /// Whether it applies to some processes or ids only: then a missing event proves nothing.
    pub(crate) is_limited: bool,
    /// Whether its session wrote none of the files: it made the provider raise events, but it does
    /// not decide which of them are in the trace.
    pub(crate) is_elsewhere: bool,
    /// The name of the session, if it is recorded.
    pub(crate) session: Option<String>,
}

impl Enabled {
    /// GUID of the provider.
    #[must_use]
    pub fn provider(&self) -> Guid {
        self.provider
    }

    /// The name of the session that enabled it, if that is known.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Parses `PROVIDER:MASK:LEVEL`, several of them joined by `+`, or a command line of `xperf`,
    /// `logman`, `tracelog` or `dotnet-trace`. A provider is a GUID, a name, or the end of a name
    /// (`runtime`,
    /// `Kernel-Process`). Mask and level are optional and written as in command lines of xperf.
    ///
    /// ```
    /// use etl_verify::Enabled;
    ///
    /// let enabled = Enabled::parse("runtime:0x1CCBD:5+rundown:0x138")?;
    /// assert_eq!(enabled.len(), 2);
    ///
    /// let line = "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x1CCBD:5 -f clr.etl";
    /// assert_eq!(Enabled::parse(line)?[0].session(), Some("clr"));
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text has another form, or the provider's name is unknown.
    pub fn parse(text: &str) -> crate::Result<Vec<Self>> {
        Self::parse_text(text).map_err(|reason| crate::Error::Enable {
            text: text.to_owned(),
            reason,
        })
    }

    fn parse_text(text: &str) -> Result<Vec<Self>, String> {
        let first = text
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let tool = first.trim_end_matches(".exe");
        if ["xperf", "logman", "tracelog", "dotnet-trace"]
            .iter()
            .any(|name| tool.ends_with(name))
        {
            return Self::parse_command_line(text);
        }
        text.split('+').map(Self::parse_provider).collect()
    }

    /// The providers that a command line of a tool enables.
    fn parse_command_line(text: &str) -> Result<Vec<Self>, String> {
        let line: CommandLine = text.parse().map_err(|e: LineError| e.to_string())?;
        let mut out = Vec::new();
        for action in &line.actions {
            match action {
                Action::Start(s) | Action::Create(s) | Action::Update(s) => {
                    for spec in &s.providers {
                        out.push(Self::by_session(&s.name, spec)?);
                    }
                }
                Action::Enable {
                    session, providers, ..
                } => {
                    for spec in providers {
                        out.push(Self::by_session(session, spec)?);
                    }
                }
                Action::Collect(collection) => out.extend(Self::by_collection(collection)?),
                _ => {}
            }
        }
        if out.is_empty() {
            Err("the line enables no provider".to_owned())
        } else {
            Ok(out)
        }
    }

    /// The providers of a recording of EventPipe, and its rundown.
    fn by_collection(collection: &Collection) -> Result<Vec<Self>, String> {
        let mut out = Vec::new();
        for spec in &collection.providers {
            out.push(Self::by_session(FileHeader::EVENT_PIPE_NAME, spec)?);
        }
        if let Some(keywords) = collection.rundown_keywords() {
            let with = Enablement {
                variant: Variant::EventPipe,
                ..Enablement::new(VERBOSE, keywords)
            };
            out.push(Enabled::declared(CLR_RUNDOWN, with));
        }
        Ok(out)
    }

    /// A provider that a session enables.
    fn by_session(session: &str, spec: &ProviderSpec) -> Result<Self, String> {
        let registry = Registry::builtin();
        let provider = spec.provider.guid(registry).ok_or_else(|| {
            format!(
                "the GUID of {} is unknown: use the GUID instead",
                spec.provider
            )
        })?;
        let with = spec.enablement(registry).map_err(|e| e.to_string())?;
        Ok(Enabled {
            session: Some(session.to_owned()),
            ..Enabled::declared(provider, with)
        })
    }

    /// `PROVIDER:MASK:LEVEL`.
    fn parse_provider(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().trim();
        let provider = providers::find(name).ok_or_else(|| {
            format!(
                "{name:?} is neither a GUID, nor the name or the end of the name of one known \
                 provider (see `etlkit spec providers`)"
            )
        })?;
        let any = match parts.next().map(str::trim) {
            None | Some("" | "*") => 0,
            Some(mask) => parse_number(mask).ok_or_else(|| format!("{mask:?} is not a mask"))?,
        };
        let level = match parts.next().map(str::trim) {
            None | Some("" | "*") => 0,
            Some(level) => parse_number(level)
                .ok_or_else(|| format!("{level:?} is not a level from 0 to 255"))?,
        };
        // xperf allows stack options after the level, which filter nothing.
        if let Some(rest) = parts.next().filter(|rest| !rest.contains("stack")) {
            return Err(format!("{rest:?} is one part too many"));
        }
        Ok(Enabled::declared(provider, Enablement::new(level, any)))
    }

    /// An enablement that the user declares, without a session and for the whole recording.
    pub(crate) fn declared(provider: Guid, with: Enablement) -> Self {
        Enabled {
            provider,
            with: Some(with),
            source: EnablementSource::Declared,
            from: None,
            since: None,
            to: None,
            until: None,
            stopped: None,
            is_limited: false,
            is_elsewhere: false,
            session: None,
        }
    }

    /// The known time in which it applies; without a beginning or an end, all times before or
    /// after.
    fn span(&self) -> TimeSpan {
        TimeSpan {
            from: self.from.unwrap_or(Ticks::MIN),
            to: self.to.unwrap_or(Ticks::MAX),
        }
    }
}

/// Masks and level in words.
pub(crate) fn words(with: &Enablement) -> String {
    let all = if with.all == 0 {
        String::new()
    } else {
        format!(" and all of {:#x}", with.all)
    };
    format!("{:#x}{all} at level {}", with.any, with.level)
}

/// When the known enablements of a provider admit something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The times of the enablements for all processes and ids.
    pub times: Times,
    /// How the provider's enablements are known; `None` if none is.
    pub source: Option<EnablementSource>,
    /// Whether an enablement for some processes or ids admits it.
    pub has_limited: bool,
    /// Whether the end of any of the provider's enablements is known.
    pub has_ends: bool,
}

/// When a keyword of a provider was on, by its enablements and by its events.
#[derive(Clone, Debug)]
pub(crate) struct On {
    /// By the enablements.
    pub known: Known,
    /// The first event that shows it.
    first: Option<Ticks>,
}

impl On {
    /// The beginning of the time without a break, until `time`, in which it was on: `Ticks::MIN` if
    /// the user declared it, or the time at which a record or the first event shows it.
    pub fn since(&self, time: Ticks) -> Option<Ticks> {
        let known = self.known.times.around(time).map(|span| span.from);
        // If ends are known, the events belong to the known times.
        if self.known.has_ends {
            return known;
        }
        known.into_iter().chain(self.first).min()
    }
}

/// When the keywords of the runtime provider were on that rules need.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeOn {
    /// Loads and unloads of modules, assemblies and domains.
    pub loader: On,
    /// Loads of compiled methods in .NET Framework.
    framework_jit: On,
    /// Loads of compiled methods in .NET Core, which need a higher level.
    core_jit: On,
    /// Unloads of methods.
    pub end_enumeration: On,
    /// Loads of precompiled methods.
    pub precompiled: Known,
    /// Unloads of precompiled methods.
    pub precompiled_unloads: Known,
}

impl RuntimeOn {
    pub fn new(admission: &Admission) -> Self {
        RuntimeOn {
            loader: admission.on(CLR_RUNTIME, LOADER, INFORMATIONAL),
            framework_jit: On {
                known: admission.known(CLR_RUNTIME, logs_framework_jit_loads),
                ..admission.on(CLR_RUNTIME, JIT, INFORMATIONAL)
            },
            core_jit: On {
                known: admission.known(CLR_RUNTIME, logs_core_jit_loads),
                ..admission.on(CLR_RUNTIME, JIT, VERBOSE)
            },
            end_enumeration: admission.on(CLR_RUNTIME, END_ENUMERATION, INFORMATIONAL),
            precompiled: admission.known(CLR_RUNTIME, logs_precompiled_loads),
            precompiled_unloads: admission.known(CLR_RUNTIME, logs_precompiled_unloads),
        }
    }
}

impl RuntimeOn {
    /// When loads of compiled methods were on for a process.
    pub fn jit(&self, process: &Process) -> &On {
        self.jit_of_product(is_core(process))
    }

    /// The same for every process of .NET Framework, or of .NET Core.
    pub fn jit_of_product(&self, is_core: bool) -> &On {
        if is_core {
            &self.core_jit
        } else {
            &self.framework_jit
        }
    }
}

/// The SKU of .NET Core in the event about a runtime.
pub(crate) const CORE_SKU: u16 = 2;

/// Whether a process has a CLR of .NET Core, as far as an event states it.
pub(crate) fn is_core(process: &Process) -> bool {
    let mut clrs = process.clrs().values();
    clrs.any(|clr| clr.sku() == Some(CORE_SKU))
}

/// Whether an enablement of the runtime provider makes .NET Framework log loads of compiled
/// methods.
fn logs_framework_jit_loads(with: &Enablement) -> bool {
    let runtime = Runtime::from(CombinedEnablement::of([with]));
    runtime.method_load(Method::new(Code::Jitted)).is_some()
}

/// The same for .NET Core.
fn logs_core_jit_loads(with: &Enablement) -> bool {
    let runtime = Runtime::from(CombinedEnablement::of([with])).in_core();
    runtime.method_load(Method::new(Code::Jitted)).is_some()
}

/// Whether an enablement of the runtime provider makes it log loads of precompiled methods.
fn logs_precompiled_loads(with: &Enablement) -> bool {
    let runtime = Runtime::from(CombinedEnablement::of([with]));
    runtime
        .method_load(Method::new(Code::Precompiled))
        .is_some()
}

/// Whether an enablement of the runtime provider makes it log unloads of precompiled methods.
fn logs_precompiled_unloads(with: &Enablement) -> bool {
    let runtime = Runtime::from(CombinedEnablement::of([with]));
    let method = Method::new(Code::Precompiled);
    runtime.method_unload(method, Unload::OwnerGone).is_some()
}

/// A kind of events that no known enablement of their provider admits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAdmitted {
    pub provider: Guid,
    pub event: EventKey,
    pub counted: Counted,
    /// How the provider's enablements are known.
    pub source: EnablementSource,
}

/// A kind of event as the enable rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    provider: Guid,
    keyword: u64,
    id: u16,
    level: u8,
}

/// Counts of events by kind, and the known enablements.
#[derive(Clone, Debug)]
pub struct Admission {
    seen: Vec<(Key, Counted)>,
    /// The index of each kind in `seen`.
    indexes: HashMap<Key, usize>,
    /// Enablements, declared ones first, in the order in which they appeared.
    pub enabled: Vec<Enabled>,
    /// Enablements by sessions that wrote none of the files.
    elsewhere: Vec<Enabled>,
    /// Whether sessions that nobody declared may have enabled the declared providers as well.
    has_other_sessions: bool,
    /// Sessions that the trace names.
    pub sessions: Vec<RecordedSession>,
    /// Ends of sessions and enablements that the trace records.
    ends: Vec<RecordedEnd>,
}

/// An event about the end of sessions, or of an enablement.
#[derive(Clone, Debug)]
struct RecordedEnd {
    time: Ticks,
    /// The session that ended; `None` for the sessions of PerfView.
    session: Option<String>,
    /// The provider that was disabled; `None` if the session ended.
    provider: Option<Guid>,
}

/// A session that an event names.
#[derive(Clone, Debug)]
pub(crate) struct RecordedSession {
    /// The time of the event.
    pub time: Ticks,
    /// The session's name.
    pub name: String,
}

/// What the user states about the sessions.
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    /// How sessions enabled providers.
    pub enabled: Vec<Enabled>,
    /// Whether other sessions may have enabled these providers as well.
    pub has_other_sessions: bool,
}

impl Admission {
    /// No events yet, with the enablements that the user declared, of a trace of an origin: a mask
    /// of 0 requests all keywords of ETW, and none of EventPipe.
    #[must_use]
    pub fn new(declaration: &Declaration, clock: &Clock, origin: TraceOrigin) -> Self {
        let mut enabled = Vec::new();
        let mut elsewhere = Vec::new();
        for mut declared in declaration.enabled.iter().cloned() {
            if let Some(since) = declared.since {
                declared.from = Some(clock.ticks_at(since));
            }
            if let Some(until) = declared.until {
                declared.to = Some(clock.ticks_at(until));
            }
            if origin == TraceOrigin::EventPipe
                && let Some(with) = &mut declared.with
            {
                with.variant = Variant::EventPipe;
            }
            if declared.is_elsewhere {
                elsewhere.push(declared);
            } else {
                enabled.push(declared);
            }
        }
        Admission {
            seen: Vec::new(),
            indexes: HashMap::default(),
            enabled,
            elsewhere,
            has_other_sessions: declaration.has_other_sessions,
            sessions: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Kinds of events that are kept.
    const MAX_KINDS: usize = 1 << 16;
    /// Enablements that are kept.
    const MAX_ENABLED: usize = 1 << 12;

    /// The index of an event's kind; `None` if too many kinds are kept.
    pub(super) fn index(&mut self, header: &EventHeader) -> Option<usize> {
        let descriptor = &header.descriptor;
        let key = Key {
            provider: header.provider,
            keyword: descriptor.keyword,
            id: descriptor.id,
            level: descriptor.level,
        };
        if let Some(&index) = self.indexes.get(&key) {
            return Some(index);
        }
        if self.seen.len() >= Self::MAX_KINDS {
            return None;
        }
        self.seen.push((key, Counted::default()));
        self.indexes.insert(key, self.seen.len() - 1);
        Some(self.seen.len() - 1)
    }

    /// Counts an event of the kind with an index.
    #[inline]
    pub(super) fn count(&mut self, index: Option<u32>, timestamp: Ticks) {
        if let Some((_, counted)) = index.and_then(|index| self.seen.get_mut(index as usize)) {
            counted.add(timestamp);
        }
    }

    /// Whether an event records how a session enabled a provider.
    pub(super) fn is_enablement(header: &EventHeader) -> bool {
        match header.provider {
            PERFVIEW => true,
            KERNEL_EVENT_TRACING => matches!(
                header.descriptor.id,
                event_tracing::SESSION_STOPPED
                    | event_tracing::PROVIDER_ENABLED
                    | event_tracing::PROVIDER_DISABLED
            ),
            _ => false,
        }
    }

    /// Adds an event that [`Admission::is_enablement`]. An event that is too short is ignored.
    #[cold]
    pub(super) fn learn(&mut self, record: &Record<'_>, header: &EventHeader, timestamp: Ticks) {
        let mut payload = Cursor::new(record.payload());
        let _ = match (header.provider, header.descriptor.id) {
            (PERFVIEW, perfview::SESSION_NAME) => self.session_name(&mut payload, timestamp),
            (PERFVIEW, perfview::CLR_ENABLED) => self.clr_enabled(&mut payload, timestamp),
            (PERFVIEW, perfview::PROVIDER_ENABLED) => {
                self.provider_enabled(&mut payload, timestamp)
            }
            (PERFVIEW, perfview::STOP) => self.add_end(timestamp, None, None),
            (PERFVIEW, _) => None,
            (_, event_tracing::SESSION_STOPPED) => self.session_stopped(&mut payload, timestamp),
            (_, event_tracing::PROVIDER_DISABLED) => {
                self.provider_disabled(&mut payload, timestamp)
            }
            _ => self.kernel_enablement(&mut payload, timestamp),
        };
    }

    fn add_recorded(&mut self, provider: Guid, timestamp: Ticks, recorded: RecordedEnablement) {
        if self.enabled.len() < Self::MAX_ENABLED {
            self.enabled.push(Enabled {
                provider,
                with: recorded.with,
                source: EnablementSource::Recorded,
                from: Some(timestamp),
                since: None,
                to: None,
                until: None,
                stopped: None,
                is_limited: false,
                is_elsewhere: false,
                session: recorded.session,
            });
        }
    }

    /// PerfView's event with the name of a session.
    fn session_name(&mut self, payload: &mut Cursor<'_>, timestamp: Ticks) -> Option<()> {
        let name = payload.utf16z()?;
        if self.sessions.len() < Self::MAX_ENABLED {
            self.sessions.push(RecordedSession {
                time: timestamp,
                name: text(name),
            });
        }
        Some(())
    }

    /// PerfView's event with mask and level of the CLR's runtime provider. It has no GUID, and
    /// means this provider also while PerfView requests a rundown (DynamicEvents of
    /// dotnet/performance): the rundown provider has an event with its GUID.
    fn clr_enabled(&mut self, payload: &mut Cursor<'_>, timestamp: Ticks) -> Option<()> {
        let any = payload.u64()?;
        let level = payload.u32()?;
        self.add_recorded(CLR_RUNTIME, timestamp, RecordedEnablement::new(level, any));
        Some(())
    }

    /// PerfView's event with name, GUID, level and mask of another provider.
    fn provider_enabled(&mut self, payload: &mut Cursor<'_>, timestamp: Ticks) -> Option<()> {
        let _name = payload.utf16z()?;
        let provider = payload.guid()?;
        let level = payload.u32()?;
        let any = payload.u64()?;
        self.add_recorded(provider, timestamp, RecordedEnablement::new(level, any));
        Some(())
    }

    /// The kernel's event with the provider's GUID and the session's name, but no mask.
    fn kernel_enablement(&mut self, payload: &mut Cursor<'_>, timestamp: Ticks) -> Option<()> {
        let provider = payload.guid()?;
        let recorded = RecordedEnablement {
            with: None,
            session: payload.utf16z().map(text),
        };
        self.add_recorded(provider, timestamp, recorded);
        Some(())
    }

    fn add_end(
        &mut self,
        time: Ticks,
        session: Option<String>,
        provider: Option<Guid>,
    ) -> Option<()> {
        if self.ends.len() < Self::MAX_ENABLED {
            self.ends.push(RecordedEnd {
                time,
                session,
                provider,
            });
        }
        Some(())
    }

    /// The kernel's event with a session's GUID, mode and name.
    fn session_stopped(&mut self, payload: &mut Cursor<'_>, timestamp: Ticks) -> Option<()> {
        let _session = payload.guid()?;
        let _mode = payload.u32()?;
        let name = text(payload.utf16z()?);
        self.add_end(timestamp, Some(name), None)
    }

    /// The kernel's event with the provider's GUID and the session's name.
    fn provider_disabled(&mut self, payload: &mut Cursor<'_>, timestamp: Ticks) -> Option<()> {
        let provider = payload.guid()?;
        let name = text(payload.utf16z()?);
        self.add_end(timestamp, Some(name), Some(provider))
    }

    /// When the first recorded enablement of a provider ended, if the trace records that.
    pub fn recorded_end(&self, provider: Guid) -> Option<Ticks> {
        let recorded = self
            .enablements(provider)
            .filter(|(enabled, _)| enabled.source == EnablementSource::Recorded);
        let (first, _) = recorded.min_by_key(|(enabled, _)| enabled.from)?;
        let ends = self.ends.iter().filter(|end| self.is_end_of(end, first));
        ends.map(|end| end.time).min()
    }

    /// Whether an event is about the end of an enablement. PerfView does not name the session in
    /// its events about enablements: it is one of the sessions that it names before.
    fn is_end_of(&self, end: &RecordedEnd, enabled: &Enabled) -> bool {
        let is_of_provider = end
            .provider
            .is_none_or(|provider| provider == enabled.provider);
        let is_of_session = match (&end.session, &enabled.session) {
            (None, session) => session.is_none(),
            (Some(ended), Some(session)) => ended == session,
            (Some(ended), None) => self.is_named_by_perfview(ended),
        };
        is_of_provider && is_of_session && Some(end.time) > enabled.from
    }

    /// Whether PerfView names a session that enables providers.
    fn is_named_by_perfview(&self, name: &str) -> bool {
        let is_kernel = name.eq_ignore_ascii_case(KERNEL_SESSION);
        !is_kernel && self.sessions.iter().any(|session| session.name == name)
    }

    /// Providers with events, by GUID, with the kinds of their events.
    #[must_use]
    pub fn providers(&self) -> BTreeMap<Guid, Vec<(EventKey, Counted)>> {
        let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut seen = self.seen.clone();
        seen.sort_unstable_by_key(|(key, _)| *key);
        for (key, counted) in seen {
            let event = EventKey {
                id: key.id,
                level: key.level,
                keyword: key.keyword,
            };
            out.entry(key.provider).or_default().push((event, counted));
        }
        out
    }

    /// The enablements of a provider with known masks, each with its masks. If the user declared
    /// some, these are all, and what the trace records is ignored.
    pub fn enablements(
        &self,
        provider: Guid,
    ) -> impl Iterator<Item = (&Enabled, &Enablement)> + Clone {
        let of_provider = self
            .enabled
            .iter()
            .filter(move |enabled| enabled.provider == provider);
        let all = of_provider.filter_map(|enabled| Some((enabled, enabled.with.as_ref()?)));
        let source = all.clone().map(|(enabled, _)| enabled.source).min();
        all.filter(move |(enabled, _)| Some(enabled.source) == source)
    }

    /// Whether a known enablement of the rundown provider requests code. Sessions for garbage
    /// collections only (PerfView's `-GCCollectOnly`, mask 0x1000000101) request none on purpose.
    pub fn requests_code(&self) -> bool {
        self.enablements(CLR_RUNDOWN)
            .any(|(_, with)| with.any == 0 || with.any & CODE != 0)
    }

    /// How the enablements of a provider are known; `None` if none is.
    pub fn source(&self, provider: Guid) -> Option<EnablementSource> {
        let (enabled, _) = self.enablements(provider).next()?;
        Some(enabled.source)
    }

    /// Whether the user declared all enablements of a provider: then what they do not request is
    /// wrong, and what they request is missing if it is not there.
    pub fn is_closed(&self, provider: Guid) -> bool {
        !self.has_other_sessions && self.source(provider) == Some(EnablementSource::Declared)
    }

    /// All enablements of a provider with known masks, the ones of sessions that wrote none of the
    /// files included.
    pub fn all_enablements(&self, provider: Guid) -> impl Iterator<Item = (&Enabled, &Enablement)> {
        let elsewhere = self.elsewhere.iter().filter_map(move |enabled| {
            let with = enabled.with.as_ref()?;
            (enabled.provider == provider).then_some((enabled, with))
        });
        self.enablements(provider).chain(elsewhere)
    }

    /// When the session of each declared enablement of a provider was stopped, the last of them;
    /// `None` if that is not known of all.
    pub fn stopped(&self, provider: Guid, clock: &Clock) -> Option<Ticks> {
        let mut last = None;
        for (enabled, _) in self.enablements(provider) {
            last = last.max(Some(clock.ticks_at(enabled.stopped?)));
        }
        last
    }

    /// Whether a known enablement of a provider applies to some processes or ids only.
    pub fn is_limited(&self, provider: Guid) -> bool {
        self.enablements(provider)
            .any(|(enabled, _)| enabled.is_limited)
    }

    /// When the first known enablement of a provider began; `Ticks::MIN` if its time is not known.
    pub fn first_enabled(&self, provider: Guid) -> Option<Ticks> {
        self.enablements(provider)
            .map(|(enabled, _)| enabled.span().from)
            .min()
    }

    /// Whether a known enablement of a provider explains events, the first of which was recorded at
    /// a time: it admits them, and did not begin later. PerfView enables the runtime provider again
    /// for its rundown, with other keywords, which do not explain the events before the rundown.
    /// Events before all enablements are explained by the first one.
    pub fn explains(&self, provider: Guid, event: &EventKey, first: Option<Ticks>) -> bool {
        let begin = self.first_enabled(provider);
        self.enablements(provider).any(|(enabled, with)| {
            let from = enabled.span().from;
            let is_later = enabled.source == EnablementSource::Recorded
                && Some(from) != begin
                && first.is_some_and(|first| first < from);
            with.admits(event) && !is_later
        })
    }

    /// The enablements that made a provider raise events: the known ones, and the ones of sessions
    /// that wrote none of the files.
    pub fn raising(&self, provider: Guid) -> impl Iterator<Item = &Enablement> + Clone {
        let elsewhere = self
            .elsewhere
            .iter()
            .filter(move |enabled| enabled.provider == provider)
            .filter_map(|enabled| enabled.with.as_ref());
        self.enablements(provider)
            .map(|(_, with)| with)
            .chain(elsewhere)
    }

    /// Kinds of events that no known enablement of their provider explains; none for providers
    /// without a known enablement.
    #[must_use]
    pub fn not_admitted(&self) -> Vec<NotAdmitted> {
        let mut out = Vec::new();
        for (provider, kinds) in self.providers() {
            let Some(source) = self.source(provider) else {
                continue;
            };
            for (event, counted) in kinds {
                if event.id != MANIFEST && !self.explains(provider, &event, counted.first) {
                    out.push(NotAdmitted {
                        provider,
                        event,
                        counted,
                        source,
                    });
                }
            }
        }
        out
    }

    /// When the known enablements of a provider admit something, which `admits` decides for each.
    pub(crate) fn known(&self, provider: Guid, admits: impl Fn(&Enablement) -> bool) -> Known {
        let mut known = Known::default();
        let mut spans = Vec::new();
        for (enabled, with) in self.enablements(provider) {
            known.source = Some(enabled.source);
            known.has_ends |= enabled.to.is_some();
            if !admits(with) {
                continue;
            }
            if enabled.is_limited {
                known.has_limited = true;
            } else {
                spans.push(enabled.span());
            }
        }
        known.times = Times::of(spans);
        known
    }

    /// When events of a keyword and a level of a provider were enabled.
    fn on(&self, provider: Guid, keyword: u64, level: u8) -> On {
        let shown = self.seen.iter().filter(|(key, _)| {
            // Only this keyword admits it, and only this level or a higher one.
            let has_only_keyword = key.keyword != 0 && key.keyword & !keyword == 0;
            key.provider == provider && has_only_keyword && key.level >= level
        });
        On {
            known: self.known(provider, |with| {
                with.admits_level(level) && with.admits_keyword(keyword)
            }),
            first: shown.filter_map(|(_, counted)| counted.first).min(),
        }
    }
}

/// The content of an event about an enablement.
struct RecordedEnablement {
    with: Option<Enablement>,
    session: Option<String>,
}

impl RecordedEnablement {
    fn new(level: u32, any: u64) -> Self {
        let level = u8::try_from(level).unwrap_or(u8::MAX);
        RecordedEnablement {
            with: Some(Enablement::new(level, any)),
            session: None,
        }
    }
}

fn text(units: &[u8]) -> String {
    let units = units.chunks_exact(2).filter_map(|u| u.u16_at(0));
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declare(enabled: &[Enabled]) -> Declaration {
        Declaration {
            enabled: enabled.to_vec(),
            has_other_sessions: false,
        }
    }

    #[test]
    fn parse_reads_provider_mask_and_level() {
        let parsed = |text: &str| Enabled::parse(text).unwrap().remove(0);
        let rundown = parsed("a669021c-c450-4609-a035-5af59af4df18:0x138:5");
        assert_eq!(rundown.provider, CLR_RUNDOWN);
        assert_eq!(rundown.with, Some(Enablement::new(5, 0x138)));
        let runtime = parsed("Microsoft-Windows-DotNETRuntime:0x1CCBD:0x5:'stack'");
        assert_eq!(
            (runtime.provider, runtime.with),
            (CLR_RUNTIME, Some(Enablement::new(5, 0x1ccbd)))
        );
        assert_eq!(parsed("runtime").with, Some(Enablement::new(0, 0)));
        assert_eq!(
            Enabled::parse("runtime:1:5+rundown:0x138:5").unwrap().len(),
            2
        );
        for windows in [
            "Microsoft-Windows-Kernel-Process:0x10:5",
            "kernel-process:0x10:5",
        ] {
            assert_eq!(parsed(windows).provider, providers::KERNEL_PROCESS);
        }
        for wrong in [
            "",
            "unknown:1:1",
            "runtime:mask",
            "runtime:1:256",
            "runtime:1:1:1",
        ] {
            assert!(Enabled::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn recorded_end_is_the_end_of_the_session_that_enabled_first() {
        let clock = Clock::assumed(Ticks::new(0));
        let enable = |admission: &mut Admission, time: i64, session: Option<&str>| {
            let recorded = RecordedEnablement {
                session: session.map(str::to_owned),
                ..RecordedEnablement::new(5, 0x98)
            };
            admission.add_recorded(CLR_RUNTIME, Ticks::new(time), recorded);
        };
        let name = |name: &str| Some(name.to_owned());
        // PerfView stops its sessions, and enables the provider again for its rundown.
        let mut perfview = Admission::new(&declare(&[]), &clock, TraceOrigin::Etw);
        enable(&mut perfview, 10, None);
        assert_eq!(perfview.recorded_end(CLR_RUNTIME), None);
        perfview.add_end(Ticks::new(5), None, None);
        perfview.add_end(Ticks::new(20), None, None);
        enable(&mut perfview, 30, None);
        perfview.add_end(Ticks::new(40), None, None);
        assert_eq!(perfview.recorded_end(CLR_RUNTIME), Some(Ticks::new(20)));
        assert_eq!(perfview.recorded_end(CLR_RUNDOWN), None);
        // The kernel names the session that stopped, or the provider that it disabled.
        let mut named = Admission::new(&declare(&[]), &clock, TraceOrigin::Etw);
        enable(&mut named, 10, Some("clr"));
        named.add_end(Ticks::new(15), name("other"), None);
        named.add_end(Ticks::new(20), name("clr"), Some(CLR_RUNDOWN));
        assert_eq!(named.recorded_end(CLR_RUNTIME), None);
        named.add_end(Ticks::new(30), name("clr"), None);
        named.add_end(Ticks::new(25), name("clr"), Some(CLR_RUNTIME));
        assert_eq!(named.recorded_end(CLR_RUNTIME), Some(Ticks::new(25)));
    }

    #[test]
    fn on_since_sees_a_break_between_enablements_of_a_session() {
        let clock = Clock::assumed(Ticks::new(1_000));
        let enabled = |any, since, until| Enabled {
            since: Some(since),
            until,
            ..Enabled::declared(CLR_RUNTIME, Enablement::new(5, any))
        };
        let history = [
            enabled(0x98, FileTime::new(100), Some(FileTime::new(200))),
            enabled(0x8, FileTime::new(200), Some(FileTime::new(300))),
            enabled(0x98, FileTime::new(300), Some(FileTime::new(400))),
            enabled(0x18, FileTime::new(400), Some(FileTime::new(500))),
        ];
        let admission = Admission::new(&declare(&history), &clock, TraceOrigin::Etw);
        let on = |keyword, at| {
            admission
                .on(CLR_RUNTIME, keyword, INFORMATIONAL)
                .since(clock.ticks_at(FileTime::new(at)))
        };
        let at = |filetime| Some(clock.ticks_at(FileTime::new(filetime)));
        assert_eq!(
            (on(0x8, 450), on(0x10, 150), on(0x10, 450)),
            (at(100), at(100), at(300))
        );
        assert_eq!(
            (on(0x10, 250), on(0x80, 450), on(0x10, 550)),
            (None, None, None)
        );
        // Another session had it all the time.
        let other = Enabled::declared(CLR_RUNTIME, Enablement::new(4, 0x80));
        let both = declare(&[&history[..], &[other]].concat());
        let both = Admission::new(&both, &clock, TraceOrigin::Etw);
        assert_eq!(
            both.on(CLR_RUNTIME, 0x80, INFORMATIONAL)
                .since(clock.ticks_at(FileTime::new(450))),
            Some(Ticks::MIN)
        );
        // Without an end, it lasts.
        let lasting = [
            enabled(0x98, FileTime::new(100), None),
            enabled(0x8, FileTime::new(200), None),
        ];
        let admission = Admission::new(&declare(&lasting), &clock, TraceOrigin::Etw);
        assert_eq!(
            admission
                .on(CLR_RUNTIME, 0x10, INFORMATIONAL)
                .since(Ticks::MAX),
            at(100)
        );
    }

    #[test]
    fn on_needs_the_keywords_of_which_all_must_be_there() {
        let since = |all| {
            let with = Enablement {
                all,
                ..Enablement::new(5, 0x98)
            };
            let declared = Enabled::declared(CLR_RUNTIME, with);
            let clock = Clock::assumed(Ticks::new(1_000));
            let admission = Admission::new(&declare(&[declared]), &clock, TraceOrigin::Etw);
            admission
                .on(CLR_RUNTIME, 0x10, INFORMATIONAL)
                .since(Ticks::new(9))
        };
        assert_eq!(
            (since(0), since(0x10), since(0x8)),
            (Some(Ticks::MIN), Some(Ticks::MIN), None)
        );
    }

    #[test]
    fn on_needs_the_level_of_the_events() {
        let clock = Clock::assumed(Ticks::new(1_000));
        let since = |level, event_level| {
            let declared = Enabled::declared(CLR_RUNTIME, Enablement::new(level, 0x98));
            let mut admission = Admission::new(&declare(&[declared]), &clock, TraceOrigin::Etw);
            let key = Key {
                provider: CLR_RUNTIME,
                keyword: 0x10,
                id: 143,
                level: event_level,
            };
            admission.seen.push((
                key,
                Counted {
                    count: 1,
                    first: Some(Ticks::new(7)),
                },
            ));
            admission
                .on(CLR_RUNTIME, 0x10, INFORMATIONAL)
                .since(Ticks::new(9))
        };
        assert_eq!(
            [since(0, 4), since(4, 4), since(5, 0)],
            [Some(Ticks::MIN); 3]
        );
        assert_eq!(
            (since(3, 4), since(3, 3), since(3, 0)),
            (Some(Ticks::new(7)), None, None)
        );
    }

    #[test]
    fn parse_reads_command_lines() {
        let line =
            "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl";
        let enabled = Enabled::parse(line).unwrap();
        let [runtime] = enabled.as_slice() else {
            panic!("one provider")
        };
        assert_eq!(runtime.provider, CLR_RUNTIME);
        assert_eq!(runtime.with, Some(Enablement::new(5, 0x1ccbd)));
        assert_eq!(runtime.session.as_deref(), Some("clr"));
        let all = "tracelog -enableex clr -guid #e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 \
                   -matchanykw 0x98 -matchallkw 0x10 -level 5";
        let [all] = &Enabled::parse(all).unwrap()[..] else {
            panic!("one provider")
        };
        assert_eq!(
            words(all.with.as_ref().unwrap()),
            "0x98 and all of 0x10 at level 5"
        );
        let windows = "logman start a -p Microsoft-Windows-Kernel-Process \
                       (WINEVENT_KEYWORD_PROCESS,WINEVENT_KEYWORD_IMAGE) 5 -ets";
        let [windows] = &Enabled::parse(windows).unwrap()[..] else {
            panic!("one provider")
        };
        assert_eq!(windows.with, Some(Enablement::new(5, 0x50)));
        assert!(Enabled::parse("xperf -stop clr").is_err());
        assert!(Enabled::parse("logman").is_err());
    }
}
