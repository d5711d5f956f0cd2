//! Rules of the CLR's runtime provider.

use super::{Code, Form, INFORMATIONAL, Loader, Method, Unload, VERBOSE, key_of};
use crate::enable::{CombinedEnablement, EventKey};
use etl_schema::EventSchema;
use etl_schema::clr::keyword::{
    APP_DOMAIN_RESOURCES, END_ENUMERATION, IL_MAP, JIT, LOADER, NGEN, OVERRIDE_NGEN, PERF_TRACK,
    STACK, START_ENUMERATION, THREADING,
};

/// The runtime provider, as the CLR sees it enabled.
///
/// ```
/// use etl_control::clr::{Code, Form, Method, Runtime, Unload};
///
/// let method = Method::new(Code::Jitted);
/// // At level 4 the load event has no names.
/// assert_eq!(Runtime::new(0x10, 4).method_load(method), Some(Form::Plain));
/// assert_eq!(Runtime::new(0x10, 5).method_load(method), Some(Form::Verbose));
/// // The unload event also needs EndEnumerationKeyword.
/// assert_eq!(Runtime::new(0x10, 5).method_unload(method, Unload::OwnerGone), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Runtime(CombinedEnablement);

rules_of!(Runtime);

impl Runtime {
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
            Code::Jitted | Code::Dynamic | Code::Helper => self.is_on(JIT),
            Code::Precompiled => self.precompiled() && self.is_on(START_ENUMERATION),
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

    /// `MethodILToNativeMap`, after a method was compiled. Needs no other keyword.
    #[must_use]
    pub fn il_map(self) -> bool {
        self.is_enabled_for(VERBOSE, IL_MAP)
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
        match event.id {
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
