//! What the sessions were enabled with: declared by the user, recorded in the trace, or inferred
//! from the events.

use std::collections::BTreeMap;

use etl_control::clr::{Code, INFORMATIONAL, Method, Runtime};
use etl_control::controller::{Action, CommandLine, LineError};
use etl_control::enable::{CombinedEnablement, Enablement, EventKey};
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::{EventHeader, Record};
use etl_format::{Clock, FileTime, Guid, Ticks, parse_number};
use etl_schema::clr::keyword::{END_ENUMERATION, JIT, LOADER};
use etl_schema::providers::{self, CLR_RUNDOWN, CLR_RUNTIME, KERNEL_EVENT_TRACING, PERFVIEW};
use etl_schema::tables::Registry;
use foldhash::HashMap;

use etl_analysis::machine::Counted;

use super::times::Times;

/// The event with the manifest of an `EventSource`: every session gets it.
pub(super) const MANIFEST: u16 = 0xfffe;

etl_schema::named! {
    /// How an enablement is known.
    EnablementSource {
        /// The user declared it: there is no other enablement of the provider.
        Declared "declared",
        /// The trace records it; there may be others that are not recorded.
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
    /// Level and masks; `None` where only the fact is recorded.
    pub(crate) with: Option<Enablement>,
    /// How it is known.
    pub(crate) knowledge: EnablementSource,
    /// Since when, as a timestamp of the trace, where it is known.
    pub(crate) at: Option<Ticks>,
    /// Since when, as FILETIME, if a scenario's truth states it.
    pub(crate) since: Option<FileTime>,
    /// Until when, as a timestamp of the trace, where it is known.
    pub(crate) end: Option<Ticks>,
    /// Until when, as FILETIME, if a scenario's truth states that its session then enabled the
    /// provider again, or disabled it.
    pub(crate) until: Option<FileTime>,
    /// Whether it holds for some processes or ids only: a missing event proves nothing then.
    pub(crate) limited: bool,
    /// Whether its session wrote none of the files: it says what the provider raised, and not which
    /// events are in the trace.
    pub(crate) is_elsewhere: bool,
    /// The session, where it is recorded.
    pub(crate) session: Option<String>,
}

impl Enabled {
    /// The provider.
    #[must_use]
    pub fn provider(&self) -> Guid {
        self.provider
    }

    /// The session that enabled it, where it is known.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Parses `PROVIDER:MASK:LEVEL`, several of them joined by `+`, or a command line of `xperf`,
    /// `logman` or `tracelog`. A provider is a GUID, a name, or the end of a name (`runtime`,
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
    /// When the text has another form, or the provider's name is unknown.
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
        if ["xperf", "logman", "tracelog"]
            .iter()
            .any(|name| tool.ends_with(name))
        {
            return Self::line(text);
        }
        text.split('+').map(Self::one).collect()
    }

    /// What a command line enables.
    fn line(text: &str) -> Result<Vec<Self>, String> {
        let line: CommandLine = text.parse().map_err(|e: LineError| e.to_string())?;
        let mut out = Vec::new();
        for action in &line.actions {
            let (session, providers) = match action {
                Action::Start(s) | Action::Create(s) | Action::Update(s) => (&s.name, &s.providers),
                Action::Enable {
                    session, providers, ..
                } => (session, providers),
                _ => continue,
            };
            for spec in providers {
                let registry = Registry::builtin();
                let provider = spec.provider.guid(registry).ok_or_else(|| {
                    format!(
                        "the GUID of {} is unknown: use the GUID instead",
                        spec.provider
                    )
                })?;
                let with = spec.enablement(registry).map_err(|e| e.to_string())?;
                let session = Some(session.clone());
                out.push(Enabled {
                    session,
                    ..Enabled::declared(provider, with)
                });
            }
        }
        if out.is_empty() {
            Err("the line enables no provider".to_owned())
        } else {
            Ok(out)
        }
    }

    /// One provider.
    fn one(text: &str) -> Result<Self, String> {
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
        // xperf allows stack options after the level; they filter nothing.
        if let Some(rest) = parts.next().filter(|rest| !rest.contains("stack")) {
            return Err(format!("{rest:?} is one part too many"));
        }
        Ok(Enabled::declared(provider, Enablement::new(level, any)))
    }

    /// What the user states, without a session.
    pub(crate) fn declared(provider: Guid, with: Enablement) -> Self {
        Enabled {
            provider,
            with: Some(with),
            knowledge: EnablementSource::Declared,
            at: None,
            since: None,
            end: None,
            until: None,
            limited: false,
            is_elsewhere: false,
            session: None,
        }
    }

    /// The timestamps between which it holds, as far as they are known.
    fn span(&self) -> (Ticks, Ticks) {
        (
            self.at.unwrap_or(Ticks::MIN),
            self.end.unwrap_or(Ticks::MAX),
        )
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
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The times of those that hold for all processes and ids.
    pub times: Times,
    /// How the provider's enablements are known.
    pub knowledge: Option<EnablementSource>,
    /// Whether one that is limited to some processes or ids admits it.
    pub has_limited: bool,
    /// Whether the end of any of the provider's enablements is known.
    pub has_ends: bool,
}

/// When something of a provider was enabled, by its enablements and by an event.
#[derive(Clone, Debug)]
pub(crate) struct On {
    /// By the enablements.
    pub known: Known,
    /// The first event that shows it.
    first: Option<Ticks>,
}

impl On {
    /// Since when it was on, and without a break until `at`: `i64::MIN` if the user declared it, or
    /// the time of the record, or of the first event that shows it.
    pub fn since(&self, at: Ticks) -> Option<Ticks> {
        let known = self.known.times.around(at).map(|(from, _)| from);
        // Where it is known until when, events are of one of the known times.
        if self.known.has_ends {
            return known;
        }
        known.into_iter().chain(self.first).min()
    }
}

/// When the keywords of the runtime provider were enabled that rules ask for.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeOn {
    /// Loads and unloads of modules, assemblies and domains.
    pub loader: On,
    /// Loads of compiled methods.
    pub jit: On,
    /// Unloads of methods.
    pub end_enumeration: On,
}

impl RuntimeOn {
    pub fn of(admission: &Admission) -> Self {
        let on = |keyword| admission.on(CLR_RUNTIME, keyword, INFORMATIONAL);
        let logs_loads = |with: &Enablement| {
            let runtime = Runtime::from(CombinedEnablement::of([with]));
            runtime.method_load(Method::new(Code::Jitted)).is_some()
        };
        RuntimeOn {
            loader: on(LOADER),
            jit: On {
                known: admission.known(CLR_RUNTIME, logs_loads),
                ..on(JIT)
            },
            end_enumeration: on(END_ENUMERATION),
        }
    }
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
    /// Those of sessions that wrote none of the files.
    elsewhere: Vec<Enabled>,
    /// Whether PerfView's rundown has begun: then it enables the rundown provider.
    rundown: bool,
    /// Names of sessions, as the trace records them.
    pub sessions: Vec<(Ticks, String)>,
}

impl Admission {
    /// No events yet, with what the user declared.
    #[must_use]
    pub fn new(declared: &[Enabled], clock: &Clock) -> Self {
        let timed = declared.iter().cloned().map(|mut e| {
            e.at = e.since.map(|since| clock.ticks_at(since)).or(e.at);
            e.end = e.until.map(|until| clock.ticks_at(until)).or(e.end);
            e
        });
        let (elsewhere, enabled) = timed.partition(|e| e.is_elsewhere);
        Admission {
            seen: Vec::new(),
            indexes: HashMap::default(),
            enabled,
            elsewhere,
            rundown: false,
            sessions: Vec::new(),
        }
    }

    /// Kinds of events that are kept.
    const MAX_KINDS: usize = 1 << 16;
    /// Enablements that are kept.
    const MAX_ENABLED: usize = 1 << 12;

    /// The index of an event's kind; `None` if too many kinds are kept.
    pub(super) fn index(&mut self, header: &EventHeader) -> Option<usize> {
        let (provider, d) = (header.provider, header.descriptor);
        let key = Key {
            provider,
            keyword: d.keyword,
            id: d.id,
            level: d.level,
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

    /// Whether an event records what sessions were enabled with.
    pub(super) fn is_enablement(header: &EventHeader) -> bool {
        let provider = header.provider;
        provider == PERFVIEW || provider == KERNEL_EVENT_TRACING && header.descriptor.id == 14
    }

    /// Adds an event that [`Admission::is_enablement`].
    #[cold]
    pub(super) fn learn(&mut self, record: &Record<'_>, header: &EventHeader, timestamp: Ticks) {
        if header.provider == PERFVIEW {
            self.perfview(header.descriptor.id, record.payload(), timestamp);
        } else {
            self.event_tracing(record.payload(), timestamp);
        }
    }

    fn push(
        &mut self,
        provider: Guid,
        with: Option<(u32, u64)>,
        at: Ticks,
        session: Option<String>,
    ) {
        if self.enabled.len() < Self::MAX_ENABLED {
            let with = with
                .map(|(level, any)| Enablement::new(u8::try_from(level).unwrap_or(u8::MAX), any));
            self.enabled.push(Enabled {
                provider,
                with,
                knowledge: EnablementSource::Recorded,
                at: Some(at),
                since: None,
                end: None,
                until: None,
                limited: false,
                is_elsewhere: false,
                session,
            });
        }
    }

    /// PerfView's events: 4 is the beginning of its rundown, 11 a session's name, 13 how it enables
    /// the CLR, 14 how it enables another provider.
    fn perfview(&mut self, id: u16, payload: &[u8], timestamp: Ticks) {
        let mut c = Cursor::new(payload);
        match id {
            4 => self.rundown = true,
            11 => {
                if let Some(name) = c.utf16z()
                    && self.sessions.len() < Self::MAX_ENABLED
                {
                    self.sessions.push((timestamp, text(name)));
                }
            }
            13 => {
                let (Some(any), Some(level)) = (c.u64(), c.u32()) else {
                    return;
                };
                let provider = if self.rundown {
                    CLR_RUNDOWN
                } else {
                    CLR_RUNTIME
                };
                self.push(provider, Some((level, any)), timestamp, None);
            }
            14 => {
                let Some(_name) = c.utf16z() else { return };
                let (Some(guid), Some(level), Some(any)) = (c.guid(), c.u32(), c.u64()) else {
                    return;
                };
                self.push(guid, Some((level, any)), timestamp, None);
            }
            _ => {}
        }
    }

    /// A provider was enabled: the event has its GUID and the session's name, but no mask.
    fn event_tracing(&mut self, payload: &[u8], timestamp: Ticks) {
        let mut c = Cursor::new(payload);
        let Some(provider) = c.guid() else { return };
        let session = c.utf16z().map(text);
        self.push(provider, None, timestamp, session);
    }

    /// Providers with events, by GUID, with the kinds of their events.
    #[must_use]
    pub fn providers(&self) -> BTreeMap<Guid, Vec<(EventKey, Counted)>> {
        let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut keys = self.seen.clone();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, counted) in keys {
            let event = EventKey {
                id: key.id,
                level: key.level,
                keyword: key.keyword,
            };
            out.entry(key.provider).or_default().push((event, counted));
        }
        out
    }

    /// The enablements of a provider with known masks. Where the user declared some, there are no
    /// others: what the trace records beside them is not one of them.
    pub fn of(&self, provider: Guid) -> impl Iterator<Item = (&Enabled, &Enablement)> + Clone {
        let own = self
            .enabled
            .iter()
            .filter(move |e| e.provider == provider && e.with.is_some());
        let known = own.clone().map(|e| e.knowledge).min();
        let own = own.filter(move |e| Some(e.knowledge) == known);
        own.filter_map(|e| e.with.as_ref().map(|with| (e, with)))
    }

    /// The enablements by which a provider raised events: the known ones, and those of sessions
    /// that wrote none of the files.
    pub fn raising(&self, provider: Guid) -> impl Iterator<Item = &Enablement> + Clone {
        let elsewhere = self
            .elsewhere
            .iter()
            .filter(move |e| e.provider == provider);
        let elsewhere = elsewhere.filter_map(|e| e.with.as_ref());
        self.of(provider).map(|(_, with)| with).chain(elsewhere)
    }

    /// Kinds of events that no known enablement of their provider admits; none for providers
    /// without a known enablement.
    #[must_use]
    pub fn not_admitted(&self) -> Vec<(Guid, EventKey, Counted, EnablementSource)> {
        let mut out = Vec::new();
        for (provider, kinds) in self.providers() {
            let Some(knowledge) = self.of(provider).map(|(e, _)| e.knowledge).min() else {
                continue;
            };
            for (event, counted) in kinds {
                if event.id != MANIFEST && !self.of(provider).any(|(_, with)| with.admits(&event)) {
                    out.push((provider, event, counted, knowledge));
                }
            }
        }
        out
    }

    /// When the known enablements of a provider admit what a test accepts.
    pub(crate) fn known(&self, provider: Guid, admits: impl Fn(&Enablement) -> bool) -> Known {
        let own = || self.of(provider);
        let admitting = own().filter(|(_, with)| admits(with)).map(|(e, _)| e);
        let (limited, whole): (Vec<_>, Vec<_>) = admitting.partition(|e| e.limited);
        Known {
            times: Times::of(whole.into_iter().map(Enabled::span)),
            knowledge: own().map(|(e, _)| e.knowledge).min(),
            has_limited: !limited.is_empty(),
            has_ends: own().any(|(e, _)| e.end.is_some()),
        }
    }

    /// When events of a keyword and a level of a provider were enabled.
    fn on(&self, provider: Guid, keyword: u64, level: u8) -> On {
        let admits = |with: &Enablement| with.admits_level(level) && with.admits_keyword(keyword);
        // Only this keyword admits it, and only this level or a higher one.
        let shows = |key: &Key| {
            let is_own = key.keyword != 0 && key.keyword & !keyword == 0;
            key.provider == provider && is_own && key.level >= level
        };
        let seen = self.seen.iter().filter(|(key, _)| shows(key));
        On {
            known: self.known(provider, admits),
            first: seen.filter_map(|(_, counted)| counted.first).min(),
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
        let admission = Admission::new(&history, &clock);
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
        let both = Admission::new(&[&history[..], &[other]].concat(), &clock);
        assert_eq!(
            both.on(CLR_RUNTIME, 0x80, INFORMATIONAL)
                .since(clock.ticks_at(FileTime::new(450))),
            Some(Ticks::MIN)
        );
        // Without an end, it lasts.
        let admission = Admission::new(
            &[
                enabled(0x98, FileTime::new(100), None),
                enabled(0x8, FileTime::new(200), None),
            ],
            &clock,
        );
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
            let admission = Admission::new(&[declared], &Clock::assumed(Ticks::new(1_000)));
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
            let mut admission = Admission::new(&[declared], &clock);
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
