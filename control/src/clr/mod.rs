//! Rules of the CLR: which events it raises for the masks and levels of its two providers.
//!
//! The enable rule ([`crate::enable`]) says which of the raised events a session gets. That is not
//! enough to know what a mask selects: the CLR looks at masks and levels itself before it raises
//! anything, and one keyword can change the effect of another. The predicates here say what it
//! raises. They are pure functions, so they apply to a simulated CLR and to a real trace.
//!
//! * [`Runtime`]: the runtime provider. It reports loads, unloads and compilations as they happen.
//! * [`Rundown`]: the rundown provider. It lists what is already loaded when a session enables it.
//! * [`tables`]: the two tables of the documents, computed from the predicates.
//!
//! Both are built from a mask and a level, or from the
//! [`CombinedEnablement`](crate::enable::CombinedEnablement) of all sessions: the CLR sees no
//! single session, only all of them together. Each session then gets the raised events that its own
//! [`Enablement`](crate::enable::Enablement) admits; a session that is the only one gets them all.
//!
//! ```
//! use etl_control::clr::{Code, Enumeration, Method, Rundown, Runtime};
//!
//! // The recipe of the documents: methods have events when they are compiled ...
//! let runtime = Runtime::new(0x1CCBD, 5);
//! assert!(runtime.method_load(Method::new(Code::Jitted)).is_some());
//! // ... but precompiled ones only when StartEnumerationKeyword is on as well.
//! assert!(runtime.method_load(Method::new(Code::Precompiled)).is_none());
//!
//! // One of the masks that the documents print for the rundown enumerates nothing.
//! assert!(!Rundown::new(0xB8, 5).brackets(Enumeration::End));
//! assert!(Rundown::new(0x138, 5).brackets(Enumeration::End));
//! ```
//!
//! Below level 4 the CLR raises none of these. .NET Core raises less than .NET Framework:
//! [`Runtime::in_core`] has its rules, which were measured on .NET Core 3.1, .NET 8 and .NET 10.
//! Other sources: the documents' two tables of keyword combinations, the event tracing source of
//! .NET Core 3.1, and the events of real traces.

/// The rules that both providers share.
macro_rules! rules_of {
    ($provider:ident) => {
        impl $provider {
            /// Enabled by one session with this mask (0: all keywords) and level (0: all levels).
            #[must_use]
            pub fn new(mask: u64, level: u8) -> Self {
                let session = crate::enable::Enablement::new(level, mask);
                $provider::from(CombinedEnablement::of(&[session]))
            }

            /// Whether the provider is enabled at this level for one of these keywords, or at all
            /// if `keywords` is 0. The CLR checks this before it raises an event.
            #[must_use]
            pub fn is_enabled_for(self, level: u8, keywords: u64) -> bool {
                self.sessions.raises(level, keywords)
            }

            /// The same check at the level of almost all events.
            fn is_on(self, keywords: u64) -> bool {
                self.is_enabled_for(INFORMATIONAL, keywords)
            }

            /// Whether the keywords for load events are on. PerfTrackKeyword alone selects modules
            /// and their ranges.
            fn loader_is_on(self, what: Loader) -> bool {
                match what {
                    Loader::Module => self.is_on(LOADER) || self.is_on(PERF_TRACK),
                    Loader::ModuleRange => self.is_on(PERF_TRACK),
                    _ => self.is_on(LOADER),
                }
            }

            /// Whether NGen is on and nothing turns it off again. A mask of all ones turns it off.
            fn precompiled(self) -> bool {
                self.is_on(NGEN) && !self.is_on(OVERRIDE_NGEN)
            }
        }
    };
}

mod method;
mod rundown;
mod runtime;
pub mod tables;
#[cfg(test)]
mod tests;

use etl_schema::{EventSchema, Identity};

use crate::enable::EventKey;
pub use method::{Code, Form, Method, Unload};
pub use rundown::{Enumeration, Rundown};
pub use runtime::Runtime;

/// The key of an event for the enable rule; `None` for a classic event.
fn key_of(event: &EventSchema) -> Option<EventKey> {
    let Identity::Modern { id, .. } = event.identity else {
        return None;
    };
    Some(EventKey {
        id,
        level: event.level.value,
        keyword: event.keywords,
    })
}

/// Objects of the loader that have events of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loader {
    /// An application domain.
    AppDomain,
    /// An assembly, once in the process.
    Assembly,
    /// A module, once in the process.
    Module,
    /// A module in a domain that uses it: once for each domain, and never unloaded by an event.
    DomainModule,
    /// The cold ranges of a precompiled module that was optimized with profiles.
    ModuleRange,
}

impl Loader {
    /// All objects.
    pub const ALL: [Loader; 5] = [
        Loader::AppDomain,
        Loader::Assembly,
        Loader::Module,
        Loader::DomainModule,
        Loader::ModuleRange,
    ];
}

/// The lowest level at which the CLR raises any of these events: informational.
pub const INFORMATIONAL: u8 = 4;
/// The lowest level at which it raises the events of every compilation and names all methods:
/// verbose.
pub const VERBOSE: u8 = 5;
