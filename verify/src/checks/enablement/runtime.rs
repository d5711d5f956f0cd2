//! When the enablements of the runtime provider promise the events that rules need.

use etl_analysis::machine::Process;
use etl_control::clr::{Code, INFORMATIONAL, Method, Runtime, Unload, VERBOSE};
use etl_control::enable::{CombinedEnablement, Enablement};
use etl_format::{Guid, Ticks};
use etl_schema::clr::keyword::{END_ENUMERATION, JIT, LOADER};
use etl_schema::providers::CLR_RUNTIME;

use super::{Admission, EnablementSource};
use crate::checks::times::Times;

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

impl Admission {
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

#[cfg(test)]
mod tests {
    use etl_analysis::machine::Counted;
    use etl_format::{Clock, FileTime};

    use super::super::tests::declare;
    use super::super::{Enabled, Key};
    use super::*;
    use crate::TraceOrigin;

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
}
