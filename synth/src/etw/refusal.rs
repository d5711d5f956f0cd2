//! What a controller asks for and does not get.

use core::fmt;

use crate::machine::Nanos;

/// Why ETW refuses what a controller asks for: the codes that the tools print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// What is asked for does not go together.
    InvalidParameter,
    /// The name of the file does not do.
    InvalidName,
    /// A session of this name runs already.
    AlreadyExists,
    /// There are as many as there may be.
    NoSystemResources,
    /// There is no such session.
    NotFound,
}

impl Code {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Code::InvalidParameter => 87,
            Code::InvalidName => 123,
            Code::AlreadyExists => 183,
            Code::NoSystemResources => 1450,
            Code::NotFound => 4201,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Code::InvalidParameter => "ERROR_INVALID_PARAMETER",
            Code::InvalidName => "ERROR_INVALID_NAME",
            Code::AlreadyExists => "ERROR_ALREADY_EXISTS",
            Code::NoSystemResources => "ERROR_NO_SYSTEM_RESOURCES",
            Code::NotFound => "ERROR_WMI_INSTANCE_NOT_FOUND",
        }
    }
}

/// A controller was refused something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When.
    pub at: Nanos,
    /// The session that it was about.
    pub session: String,
    /// What was asked for: `start`, `enable`, `stop`, `flush`.
    pub what: &'static str,
    /// Why, for programs.
    pub code: Code,
    /// Why, for people.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { session, what, code, why, .. } = self;
        let (name, number) = (code.name(), code.number());
        write!(f, "session \"{session}\": {what} is refused, {name} ({number}): {why}")
    }
}
