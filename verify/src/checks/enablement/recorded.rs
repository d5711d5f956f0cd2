//! What events record about sessions: which providers they enable, and when they end.

use etl_control::controller::KERNEL_SESSION;
use etl_control::enable::Enablement;
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::{EventHeader, Record};
use etl_format::{Guid, Ticks};
use etl_schema::providers::{CLR_RUNTIME, KERNEL_EVENT_TRACING, PERFVIEW};

use super::{Admission, Enabled, EnablementSource};

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

/// Ids of the kernel's events about event tracing.
mod event_tracing {
    /// A session was stopped.
    pub const SESSION_STOPPED: u16 = 11;
    /// A session enables a provider.
    pub const PROVIDER_ENABLED: u16 = 14;
    /// A session disables a provider.
    pub const PROVIDER_DISABLED: u16 = 15;
}

/// An event about the end of sessions, or of an enablement.
#[derive(Clone, Debug)]
pub(super) struct RecordedEnd {
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

impl Admission {
    /// Whether an event records how a session enabled a provider.
    pub(crate) fn is_enablement(header: &EventHeader) -> bool {
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
    pub(crate) fn learn(&mut self, record: &Record<'_>, header: &EventHeader, timestamp: Ticks) {
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
    use etl_format::Clock;
    use etl_schema::providers::CLR_RUNDOWN;

    use super::super::tests::declare;
    use super::*;
    use crate::TraceOrigin;

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
}
