//! The rundown provider's rules.

use super::{Code, Form, INFORMATIONAL, Loader, Method, VERBOSE};
use crate::enable::{CombinedEnablement, Enablement};
pub use etl_schema::clr::Enumeration;
use etl_schema::clr::keyword::{
    COMPILATION, END_RUNDOWN, IL_MAP, JIT, LOADER, NGEN, OVERRIDE_NGEN, PERF_TRACK, STACK,
    START_RUNDOWN, THREADING,
};
use etl_schema::{EventSchema, Identity};

/// The rundown provider, as the CLR sees it enabled.
///
/// Everything is raised on the call that enables the provider, by each CLR that is running then. In
/// one process, on one thread, an enumeration is: `RuntimeInformationDCStart`, the settings of
/// tiered compilation, the `Init` marker, domains with their assemblies, modules and methods,
/// threads, the `Complete` marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rundown(CombinedEnablement);

impl From<CombinedEnablement> for Rundown {
    /// Enabled by several sessions at once.
    fn from(union: CombinedEnablement) -> Self {
        Rundown(union)
    }
}

impl Rundown {
    /// Enabled by one session with this mask (0: all keywords) and level (0: all levels).
    #[must_use]
    pub fn new(mask: u64, level: u8) -> Self {
        Rundown(CombinedEnablement::of(&[Enablement::new(level, mask)]))
    }

    /// The check that the CLR makes before it raises anything; as for
    /// [`Runtime::is_enabled_for`](super::Runtime::is_enabled_for).
    #[must_use]
    pub fn is_enabled_for(self, level: u8, keywords: u64) -> bool {
        self.0.raises(level, keywords)
    }

    fn precompiled(self) -> bool {
        self.is_enabled_for(INFORMATIONAL, NGEN)
            && !self.is_enabled_for(INFORMATIONAL, OVERRIDE_NGEN)
    }

    /// Whether the CLR does anything for this enumeration.
    #[must_use]
    pub fn is_enabled(self, which: Enumeration) -> bool {
        match which {
            Enumeration::Start => self.is_enabled_for(INFORMATIONAL, START_RUNDOWN),
            Enumeration::End => self.is_enabled_for(INFORMATIONAL, END_RUNDOWN),
        }
    }

    /// `RuntimeInformationDCStart`, which comes before each enumeration whatever else is on; the
    /// name is the same for both.
    #[must_use]
    pub fn runtime_information(self, which: Enumeration) -> bool {
        self.is_enabled(which)
    }

    /// `TieredCompilationSettingsDCStart`, likewise.
    #[must_use]
    pub fn tiered_settings(self, which: Enumeration) -> bool {
        self.is_enabled(which) && self.is_enabled_for(INFORMATIONAL, COMPILATION)
    }

    /// Whether anything that the enumeration can list is on.
    #[must_use]
    pub fn enumerates(self, which: Enumeration) -> bool {
        // One check for each keyword: with a match-all mask that is not the same as one for all.
        let each = [LOADER, JIT, IL_MAP, PERF_TRACK, THREADING];
        self.is_enabled(which)
            && (each.iter().any(|&k| self.is_enabled_for(INFORMATIONAL, k)) || self.precompiled())
    }

    /// The markers `Init` and `Complete` around the enumeration.
    ///
    /// They belong to Loader, Jit, NGen and the IL maps: for threads or ranges alone the
    /// enumeration comes without them (erratum X16).
    #[must_use]
    pub fn brackets(self, which: Enumeration) -> bool {
        self.enumerates(which) && self.is_enabled_for(INFORMATIONAL, LOADER | JIT | NGEN | IL_MAP)
    }

    /// An event for each of these.
    #[must_use]
    pub fn loader(self, which: Enumeration, what: Loader) -> bool {
        let on = match what {
            Loader::AppDomain | Loader::Assembly | Loader::DomainModule => {
                self.is_enabled_for(INFORMATIONAL, LOADER)
            }
            Loader::Module => {
                self.is_enabled_for(INFORMATIONAL, LOADER)
                    || self.is_enabled_for(INFORMATIONAL, PERF_TRACK)
            }
            Loader::ModuleRange => self.is_enabled_for(INFORMATIONAL, PERF_TRACK),
        };
        on && self.is_enabled(which)
    }

    /// The event for this method.
    #[must_use]
    pub fn method(self, which: Enumeration, method: Method) -> Option<Form> {
        let on = match method.code {
            Code::Jitted | Code::Dynamic => self.is_enabled_for(INFORMATIONAL, JIT),
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
        self.is_enabled(which) && self.is_enabled_for(INFORMATIONAL, THREADING)
    }

    /// A stack event right after each event that has one.
    #[must_use]
    pub fn stacks(self) -> bool {
        self.is_enabled_for(0, STACK)
            && Enumeration::ALL.iter().any(|&which| self.is_enabled(which))
    }

    /// Whether an event of the provider is ever raised: by the rules above where they speak of it,
    /// else with any enumeration by its level and keywords.
    #[must_use]
    pub fn raises(self, event: &EventSchema) -> bool {
        use Enumeration::{End, Start};
        let Identity::Modern { id, .. } = event.identity else { return false };
        let any = |rule: fn(Self, Enumeration) -> bool| rule(self, Start) || rule(self, End);
        let methods = |which, form| Method::all().any(|m| self.method(which, m) == Some(form));
        match id {
            0 => self.stacks(),
            141 => methods(Start, Form::Plain),
            142 => methods(End, Form::Plain),
            143 => methods(Start, Form::Verbose),
            144 => methods(End, Form::Verbose),
            145 | 147 => self.brackets(Start),
            146 | 148 => self.brackets(End),
            149 => self.il_maps(Start),
            150 => self.il_maps(End),
            151 => self.loader(Start, Loader::DomainModule),
            152 => self.loader(End, Loader::DomainModule),
            153 => self.loader(Start, Loader::Module),
            154 => self.loader(End, Loader::Module),
            155 => self.loader(Start, Loader::Assembly),
            156 => self.loader(End, Loader::Assembly),
            157 => self.loader(Start, Loader::AppDomain),
            158 => self.loader(End, Loader::AppDomain),
            159 => any(Self::threads),
            160 => self.loader(Start, Loader::ModuleRange),
            161 => self.loader(End, Loader::ModuleRange),
            187 => any(Self::runtime_information),
            280 => any(Self::tiered_settings),
            _ => any(Self::is_enabled) && self.is_enabled_for(event.level.value, event.keywords),
        }
    }
}
