//! The kinds of methods that the rules distinguish, and the forms of their events.

/// Where a method's code comes from. It decides which keyword enables the method's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Compiled at run time.
    Jitted,
    /// Compiled beforehand: a native image or ReadyToRun code.
    Precompiled,
    /// Compiled at run time from IL that was made at run time (`DynamicMethod`). It is destroyed on
    /// its own when it is no longer referenced.
    Dynamic,
    /// A helper of the runtime itself. In .NET Framework it has a load event; it is never unloaded
    /// or enumerated.
    Helper,
}

impl Code {
    /// All kinds of code.
    pub const ALL: [Code; 4] = [Code::Jitted, Code::Precompiled, Code::Dynamic, Code::Helper];
}

/// A method, with the properties that the rules look at.
///
/// ```
/// use etl_control::clr::{Code, Method};
///
/// assert_eq!(Method::from_flags(0x1), Method::new(Code::Dynamic));
/// assert!(Method::from_flags(0x1).is_always_named());
/// assert!(!Method::new(Code::Jitted).is_always_named());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method {
    /// Where its code comes from.
    pub code: Code,
    /// Whether it, or its class, is an instance of a generic one.
    pub generic: bool,
}

impl Method {
    /// A method that is not generic.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Method {
            code,
            generic: false,
        }
    }

    /// The method of an event, by its `MethodFlags`.
    #[must_use]
    pub const fn from_flags(flags: u32) -> Self {
        let code = match flags {
            flags if flags & 1 != 0 => Code::Dynamic,
            flags if flags & 0x10 != 0 => Code::Helper,
            flags if flags & 8 != 0 => Code::Jitted,
            _ => Code::Precompiled,
        };
        Method {
            code,
            generic: flags & 6 != 0,
        }
    }

    /// Every kind of method that the rules distinguish.
    pub fn all() -> impl Iterator<Item = Method> {
        Code::ALL
            .into_iter()
            .flat_map(|code| [false, true].map(|generic| Method { code, generic }))
    }

    /// Whether its events carry its name at every level: its token and module alone do not identify
    /// it.
    #[must_use]
    pub const fn is_always_named(self) -> bool {
        self.generic || matches!(self.code, Code::Dynamic | Code::Helper)
    }

    /// The form of its events. `verbose`: whether its provider is enabled at level 5 or above.
    pub(super) const fn form(self, verbose: bool) -> Form {
        if verbose || self.is_always_named() {
            Form::Verbose
        } else {
            Form::Plain
        }
    }
}

/// The two forms in which the events of a method come: one or the other, never both.
///
/// The form depends on the method and on the *session's* level. Both are events of level 4 in
/// shipped runtimes; the documents give level 5 for the verbose one (erratum X02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// `MethodLoad` and similar events: token and module, without names.
    Plain,
    /// `MethodLoadVerbose` and similar events, which also have namespace, name and signature.
    Verbose,
}

/// The reason why a method is unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unload {
    /// The method itself is destroyed. Only dynamic methods are.
    Destroyed,
    /// Its module, domain or process ends.
    OwnerGone,
}
