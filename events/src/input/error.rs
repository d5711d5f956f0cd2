//! Why bytes cannot be read as a trace, and what to do about it.

use std::fmt;
use std::io;

#[cfg(feature = "unpack")]
use super::stop::Stop;
#[cfg(feature = "unpack")]
use super::temporary::TemporaryError;

/// Why bytes cannot be read as a trace. It does not name the file.
#[derive(Clone, Debug)]
pub struct Error {
    message: String,
    advice: Option<Advice>,
}

/// What to do about an error.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "unpack"),
    expect(dead_code, reason = "only packed input needs it")
)]
pub(super) enum Advice {
    Text(&'static str),
    /// Raise the limit on the unpacked size.
    RaiseLimit,
    /// The files of an archive, with what to do about them before and after the list.
    Member {
        before: &'static str,
        files: String,
        choose: Choose,
    },
    /// The choice of a file of an archive does not apply.
    OmitMember,
    /// Allow more memory.
    RaiseMemory,
}

#[cfg(feature = "unpack")]
impl Advice {
    /// What to do if unpacking stopped.
    fn after(stop: &Stop) -> Self {
        match stop {
            Stop::Size(_) | Stop::Factor => Advice::RaiseLimit,
            Stop::Broken { .. } => Advice::Text(
                "copy the file again: it may be incomplete. Otherwise unpack it with its own tool, and \
                 run `etlkit repair` on the result",
            ),
        }
    }
}

/// Whether one of the files of an archive can be chosen.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "unpack"),
    expect(dead_code, reason = "only packed input needs it")
)]
pub(super) enum Choose {
    /// Say so after the list.
    After,
    /// Say so before the list.
    Before,
    /// Only list them.
    No,
}

/// How a program spells the options that errors advise.
#[derive(Clone, Copy, Debug)]
pub struct OptionNames {
    /// The option that chooses a file of a ZIP archive, with its value: `--member NAME`.
    pub member: &'static str,
    /// The option that allows a larger unpacked size, with a value of 64 GiB: `--max-unpacked 64G`.
    pub max_unpacked: &'static str,
    /// The option that allows more memory: `--max-memory`.
    pub max_memory: &'static str,
}

impl Error {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Error {
            message: message.into(),
            advice: None,
        }
    }

    pub(super) fn advise(self, advice: Advice) -> Self {
        Error {
            advice: Some(advice),
            ..self
        }
    }

    pub(super) fn hint_text(self, text: &'static str) -> Self {
        self.advise(Advice::Text(text))
    }

    /// Names what the bytes were unpacked from: the user named the archive, not the file in it.
    #[must_use]
    pub fn unpacked_from(mut self, from: Option<&str>) -> Self {
        if let Some(from) = from {
            self.message = format!("{from}: {}", self.message);
        }
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether reading the trace needs more memory than its limits allow.
    #[must_use]
    pub fn needs_memory(&self) -> bool {
        matches!(self.advice, Some(Advice::RaiseMemory))
    }

    /// What the user can do about it, with the options that a program has for it.
    #[must_use]
    pub fn hint(&self, options: OptionNames) -> Option<String> {
        let OptionNames {
            member,
            max_unpacked,
            max_memory,
        } = options;
        Some(match self.advice.as_ref()? {
            Advice::Text(text) => (*text).to_owned(),
            Advice::RaiseLimit => format!("if you trust the file, raise the limit: {max_unpacked}"),
            Advice::RaiseMemory => format!("{max_memory} allows more"),
            Advice::OmitMember => {
                format!("omit {}", member.split([' ', '=']).next().unwrap_or(member))
            }
            Advice::Member {
                before,
                files,
                choose,
            } => match choose {
                Choose::After => format!("{before}{files}; choose one with {member}"),
                Choose::Before => format!("choose one with {member}: {before}{files}"),
                Choose::No => format!("{before}{files}"),
            },
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<&io::Error> for Error {
    /// The failure of reading bytes that may be packed.
    fn from(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::IsADirectory {
            return Error::new("is a directory").hint_text("name the .etl files in it");
        }
        let failure = Error::new(error.to_string());
        #[cfg(feature = "unpack")]
        {
            if TemporaryError::of(error).is_some() {
                return failure.hint_text(TemporaryError::HINT);
            }
            if let Some(stop) = error
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<Stop>())
            {
                return failure.advise(Advice::after(stop));
            }
        }
        failure
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::from(&error)
    }
}
