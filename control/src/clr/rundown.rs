//! Rules of the CLR's rundown provider.

use super::{Code, Form, INFORMATIONAL, Loader, Method, VERBOSE, key_of};
use crate::enable::{CombinedEnablement, EventKey};
use etl_schema::EventSchema;
pub use etl_schema::clr::Enumeration;
use etl_schema::clr::keyword::{
    COMPILATION, END_RUNDOWN, GC, IL_MAP, JIT, LOADER, NGEN, OVERRIDE_NGEN, PERF_TRACK, STACK,
    START_RUNDOWN, THREADING,
};

/// The rundown provider, as the CLR sees it enabled.
///
/// Everything is raised on the call that enables the provider, by each CLR that is running then. In
/// one process, on one thread, an enumeration is: `RuntimeInformationDCStart`, the settings of
/// tiered compilation, the `Init` marker, domains with their assemblies, modules and methods,
/// threads, the settings of the collector, the `Complete` marker.
///
/// ```
/// use etl_control::clr::{Enumeration, Loader, Rundown};
///
/// let rundown = Rundown::new(0x138, 5);
/// assert!(rundown.enumerates(Enumeration::End) && !rundown.enumerates(Enumeration::Start));
/// assert!(rundown.loader(Enumeration::End, Loader::Module));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rundown {
    sessions: CombinedEnablement,
}

rules_of!(Rundown);

impl From<CombinedEnablement> for Rundown {
    /// Enabled by several sessions at once.
    fn from(sessions: CombinedEnablement) -> Self {
        Rundown { sessions }
    }
}

impl Rundown {
    /// Whether the CLR does anything for this enumeration. `RuntimeInformationDCStart` comes before
    /// each of the two, without any other keyword, and has the same name in both.
    #[must_use]
    pub fn is_enabled(self, which: Enumeration) -> bool {
        match which {
            Enumeration::Start => self.is_on(START_RUNDOWN),
            Enumeration::End => self.is_on(END_RUNDOWN),
        }
    }

    /// Whether a keyword is on for something that the enumeration can list.
    #[must_use]
    pub fn enumerates(self, which: Enumeration) -> bool {
        // One check for each keyword: with a match-all mask, a check of their union would fail
        // where a check of one of them succeeds.
        let keywords = [LOADER, JIT, IL_MAP, PERF_TRACK, THREADING];
        let is_any_on = keywords.into_iter().any(|keyword| self.is_on(keyword));
        self.is_enabled(which) && (is_any_on || self.precompiled())
    }

    /// The markers `Init` and `Complete` around the enumeration.
    ///
    /// They belong to Loader, Jit, NGen and the IL maps: for threads or ranges alone the
    /// enumeration comes without them (erratum X16).
    #[must_use]
    pub fn brackets(self, which: Enumeration) -> bool {
        self.enumerates(which) && self.is_on(LOADER | JIT | NGEN | IL_MAP)
    }

    /// Whether this enumeration has events for these objects.
    #[must_use]
    pub fn loader(self, which: Enumeration, what: Loader) -> bool {
        self.loader_is_on(what) && self.is_enabled(which)
    }

    /// The form of the event for this method; `None` if there is no event.
    #[must_use]
    pub fn method(self, which: Enumeration, method: Method) -> Option<Form> {
        let on = match method.code {
            Code::Jitted | Code::Dynamic => self.is_on(JIT),
            Code::Precompiled => self.precompiled(),
            Code::Helper => false,
        };
        (on && self.is_enabled(which)).then(|| method.form(self.is_enabled_for(VERBOSE, 0)))
    }

    /// IL offsets of each method that was compiled at run time: after its event at the start,
    /// before it at the end. Needs no other keyword.
    #[must_use]
    pub fn il_maps(self, which: Enumeration) -> bool {
        self.is_enabled(which) && self.is_enabled_for(VERBOSE, IL_MAP)
    }

    /// `ThreadDC` for each thread, after all domains.
    ///
    /// The event's keywords are Threading and AppDomainResourceManagement; only Threading makes the
    /// CLR enumerate (erratum X17).
    #[must_use]
    pub fn threads(self, which: Enumeration) -> bool {
        self.is_enabled(which) && self.is_on(THREADING)
    }

    /// `TieredCompilationSettingsDCStart`, which only an enumeration has (erratum X52).
    #[must_use]
    pub fn tiering_settings(self) -> bool {
        let enumerates = Enumeration::ALL
            .into_iter()
            .any(|which| self.enumerates(which));
        enumerates && self.is_on(COMPILATION)
    }

    /// `GCSettingsRundown`. The event has no keyword, but the CLR checks `GC`; nothing has to be
    /// enumerated (erratum X52).
    #[must_use]
    pub fn collector_settings(self) -> bool {
        self.is_any_enabled() && self.is_on(GC)
    }

    /// Whether events have a stack event, which follows them.
    #[must_use]
    pub fn stacks(self) -> bool {
        self.is_enabled_for(0, STACK) && self.is_any_enabled()
    }

    /// Whether the CLR does anything for at least one of the two enumerations.
    fn is_any_enabled(self) -> bool {
        Enumeration::ALL
            .into_iter()
            .any(|which| self.is_enabled(which))
    }

    /// Whether there is a kind of method whose event in this enumeration has this form.
    fn raises_method(self, which: Enumeration, form: Form) -> bool {
        Method::all().any(|method| self.method(which, method) == Some(form))
    }

    /// Whether an event of the provider is ever raised. Events without a rule above are raised with
    /// any enumeration, by their level and keywords.
    #[must_use]
    pub fn raises(self, event: &EventSchema) -> bool {
        key_of(event).is_some_and(|event| self.raises_event(event))
    }

    /// Like `raises`, for the header of an event.
    #[must_use]
    pub fn raises_event(self, event: EventKey) -> bool {
        use Enumeration::{End, Start};
        let id = event.id;
        // Each kind of events has an id for the start and one for the end.
        let which = if id % 2 == u16::from(id < 159) {
            Start
        } else {
            End
        };
        match id {
            0 => self.stacks(),
            10 => self.collector_settings(),
            141 | 142 => self.raises_method(which, Form::Plain),
            143 | 144 => self.raises_method(which, Form::Verbose),
            145..=148 => self.brackets(which),
            149 | 150 => self.il_maps(which),
            151 | 152 => self.loader(which, Loader::DomainModule),
            153 | 154 => self.loader(which, Loader::Module),
            155 | 156 => self.loader(which, Loader::Assembly),
            157 | 158 => self.loader(which, Loader::AppDomain),
            159 => self.threads(Start) || self.threads(End),
            160 | 161 => self.loader(which, Loader::ModuleRange),
            187 => self.is_any_enabled(),
            280 => self.tiering_settings(),
            _ => self.is_any_enabled() && self.is_enabled_for(event.level, event.keyword),
        }
    }
}
