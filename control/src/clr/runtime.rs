//! Rules of the CLR's runtime provider.

use super::{Code, Form, INFORMATIONAL, Loader, Method, Unload, VERBOSE, key_of};
use crate::enable::{CombinedEnablement, EventKey};
use etl_schema::EventSchema;
use etl_schema::clr::keyword::{
    APP_DOMAIN_RESOURCES, END_ENUMERATION, GC, GC_HEAP_COLLECT, GC_HEAP_DUMP, IL_MAP, JIT, LOADER,
    METHOD_DIAGNOSTIC, NGEN, OVERRIDE_NGEN, PERF_TRACK, SAMPLED_HIGH, SAMPLED_LOW, STACK,
    START_ENUMERATION, THREADING, TYPE,
};

/// The runtime provider, as the CLR sees it enabled.
///
/// ```
/// use etl_control::clr::{Code, Form, Method, Runtime, Unload};
///
/// let method = Method::new(Code::Jitted);
/// // At level 4 the load event has no names, and .NET Core does not raise it at all.
/// assert_eq!(Runtime::new(0x10, 4).method_load(method), Some(Form::Plain));
/// assert_eq!(Runtime::new(0x10, 4).in_core().method_load(method), None);
/// assert_eq!(Runtime::new(0x10, 5).method_load(method), Some(Form::Verbose));
/// // The unload event also needs EndEnumerationKeyword.
/// assert_eq!(Runtime::new(0x10, 5).method_unload(method, Unload::OwnerGone), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Runtime {
    sessions: CombinedEnablement,
    /// Whether only the rules of .NET Core apply.
    is_core: bool,
}

rules_of!(Runtime);

impl From<CombinedEnablement> for Runtime {
    /// Enabled by several sessions at once.
    fn from(sessions: CombinedEnablement) -> Self {
        Runtime {
            sessions,
            is_core: false,
        }
    }
}

/// Events that .NET Framework raises and .NET Core does not: phases of marking, the number of
/// working threads, resources of app domains, threads that end or enter a domain, signatures of
/// assemblies, and inlining with ANSI texts.
fn is_of_framework_only(id: u16) -> bool {
    matches!(
        id,
        25..=28 | 60 | 83 | 84 | 86 | 87 | 181..=184 | 186 | 189
    )
}

impl Runtime {
    /// The rules of .NET Core, which raises less than .NET Framework. Without this, an event counts
    /// as raised if either of them raises it.
    ///
    /// - Loads of compiled and dynamic methods need level 5; at level 4 there are only unloads
    ///   (erratum X47).
    /// - Precompiled methods and helpers have no load events, whatever the mask (erratum X48).
    /// - The maps from IL to native code need `Jit` as well (erratum X49).
    /// - Some events never come (erratum X50).
    #[must_use]
    pub fn in_core(self) -> Self {
        Runtime {
            is_core: true,
            ..self
        }
    }

    /// The lowest level at which a compiled method has a load event.
    fn jit_load_level(self) -> u8 {
        if self.is_core { VERBOSE } else { INFORMATIONAL }
    }

    /// Whether the object has a load event.
    #[must_use]
    pub fn loads(self, what: Loader) -> bool {
        self.loader_is_on(what)
    }

    /// Whether the object has an unload event: with its domain or assembly, or at the end of the
    /// process. Modules in a domain and ranges have none.
    #[must_use]
    pub fn unloads(self, what: Loader) -> bool {
        let unloads = matches!(what, Loader::AppDomain | Loader::Assembly | Loader::Module);
        unloads && self.is_on(LOADER)
    }

    /// The form of the load event, which is raised when the method's code is compiled, or prepared
    /// if it is precompiled.
    #[must_use]
    pub fn method_load(self, method: Method) -> Option<Form> {
        let raised = match method.code {
            Code::Jitted | Code::Dynamic => self.is_enabled_for(self.jit_load_level(), JIT),
            Code::Helper => !self.is_core && self.is_on(JIT),
            Code::Precompiled => {
                !self.is_core && self.precompiled() && self.is_on(START_ENUMERATION)
            }
        };
        raised.then(|| method.form(self.is_enabled_for(VERBOSE, 0)))
    }

    /// The form of the method's unload event.
    #[must_use]
    pub fn method_unload(self, method: Method, why: Unload) -> Option<Form> {
        let at_end = self.is_on(END_ENUMERATION);
        let raised = match (method.code, why) {
            (Code::Dynamic, Unload::Destroyed) => self.is_on(JIT),
            (_, Unload::Destroyed) | (Code::Helper, _) => false,
            (Code::Jitted | Code::Dynamic, Unload::OwnerGone) => self.is_on(JIT) && at_end,
            (Code::Precompiled, Unload::OwnerGone) => self.precompiled() && at_end,
        };
        raised.then(|| method.form(self.is_enabled_for(VERBOSE, 0)))
    }

    /// Whether there is a kind of method whose load event has this form.
    fn raises_method_load(self, form: Form) -> bool {
        Method::all().any(|method| self.method_load(method) == Some(form))
    }

    /// Whether there is a kind of method whose unload event, for either reason, has this form.
    fn raises_method_unload(self, form: Form) -> bool {
        Method::all().any(|method| {
            self.method_unload(method, Unload::Destroyed) == Some(form)
                || self.method_unload(method, Unload::OwnerGone) == Some(form)
        })
    }

    /// `MethodJittingStarted`, before a method is compiled.
    #[must_use]
    pub fn jitting_started(self) -> bool {
        self.is_enabled_for(VERBOSE, JIT)
    }

    /// `MethodILToNativeMap`, after a method was compiled. Only .NET Core also needs `Jit`.
    #[must_use]
    pub fn il_map(self) -> bool {
        let has_jit = !self.is_core || self.is_enabled_for(VERBOSE, JIT);
        has_jit && self.is_enabled_for(VERBOSE, IL_MAP)
    }

    /// `MethodDetails`, which goes with the load event of a method.
    #[must_use]
    pub fn method_details(self) -> bool {
        self.is_on(METHOD_DIAGNOSTIC) && self.is_enabled_for(VERBOSE, JIT)
    }

    /// `BulkType`, which goes with the events that name types: sampled allocations, finalized
    /// objects and heap dumps.
    #[must_use]
    pub fn types(self) -> bool {
        let are_named = self.is_on(SAMPLED_HIGH | SAMPLED_LOW)
            || self.is_enabled_for(VERBOSE, GC)
            || self.heap_dump();
        are_named && self.is_on(TYPE)
    }

    /// The nodes, edges and roots of a heap dump: the collection that writes them is requested by
    /// `GCHeapCollect`.
    #[must_use]
    pub fn heap_dump(self) -> bool {
        self.is_on(GC_HEAP_DUMP) && self.is_on(GC_HEAP_COLLECT)
    }

    /// `ThreadCreated`, `ThreadTerminated` and `ThreadDomainEnter`: either keyword selects them.
    #[must_use]
    pub fn threads(self) -> bool {
        self.is_on(APP_DOMAIN_RESOURCES | THREADING)
    }

    /// Whether events have a stack event, which follows on the same thread and has level 0.
    #[must_use]
    pub fn stacks(self) -> bool {
        self.is_enabled_for(0, STACK)
    }

    /// Whether an event of the provider can be raised at all. Events without a rule above are
    /// raised by their level and keywords.
    ///
    /// The ids 135 to 140, 149 and 150 are never raised: only the first release enumerated under
    /// this provider. Later releases have the rundown provider for that.
    #[must_use]
    pub fn raises(self, event: &EventSchema) -> bool {
        key_of(event).is_some_and(|event| self.raises_event(event))
    }

    /// Like `raises`, for the header of an event.
    #[must_use]
    pub fn raises_event(self, event: EventKey) -> bool {
        if self.is_core && is_of_framework_only(event.id) {
            return false;
        }
        match event.id {
            // These need more than their own keyword (erratum X51).
            15 => self.types(),
            16..=19 | 36..=38 => self.heap_dump(),
            72 => self.method_details(),
            82 => self.stacks(),
            85..=87 => self.threads(),
            135..=140 | 149 | 150 => false,
            141 => self.raises_method_load(Form::Plain),
            142 => self.raises_method_unload(Form::Plain),
            143 => self.raises_method_load(Form::Verbose),
            144 => self.raises_method_unload(Form::Verbose),
            145 => self.jitting_started(),
            151 => self.loads(Loader::DomainModule),
            152 => self.loads(Loader::Module),
            153 => self.unloads(Loader::Module),
            154 => self.loads(Loader::Assembly),
            155 => self.unloads(Loader::Assembly),
            156 => self.loads(Loader::AppDomain),
            157 => self.unloads(Loader::AppDomain),
            158 => self.loads(Loader::ModuleRange),
            // The event has no keyword, so any mask selects it.
            187 => self.is_on(0),
            190 => self.il_map(),
            _ => self.is_enabled_for(event.level, event.keyword),
        }
    }
}
