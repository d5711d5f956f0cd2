//! What the user declares about sessions and their providers.

use etl_control::clr::VERBOSE;
use etl_control::controller::{Action, Collection, CommandLine, LineError, ProviderSpec};
use etl_control::enable::{Enablement, Variant};
use etl_format::{FileHeader, FileTime, Guid, Ticks, parse_number};
use etl_schema::providers::{self, CLR_RUNDOWN};
use etl_schema::tables::Registry;

use super::EnablementSource;
use crate::checks::times::TimeSpan;

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
    pub(super) fn span(&self) -> TimeSpan {
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

/// What the user states about the sessions.
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    /// How sessions enabled providers.
    pub enabled: Vec<Enabled>,
    /// Whether other sessions may have enabled these providers as well.
    pub has_other_sessions: bool,
}

#[cfg(test)]
mod tests {
    use etl_schema::providers::CLR_RUNTIME;

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
