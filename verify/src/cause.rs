//! Why addresses do not resolve: codes and words.

use serde::Serialize;

use crate::facts;

/// Why an address does not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnresolvedCause {
    /// The process ran managed code and has no rundown.
    NoRundown,
    /// The process's rundown lacks its Init or its Complete event.
    IncompleteRundown,
    /// A method's code was there, but at another time.
    MethodAtOtherTime,
    /// An image was there, but at another time.
    ImageAtOtherTime,
    /// No known method, module or image was ever there.
    Unknown,
    /// The process has more distinct addresses than are tracked.
    TooManyAddresses,
}

/// The cause as a code and in words.
pub(crate) fn cause(cause: facts::Cause) -> (UnresolvedCause, &'static str) {
    use facts::Cause;
    match cause {
        Cause::NoRundown => (UnresolvedCause::NoRundown, "the process has no rundown"),
        Cause::CutRundown => {
            (UnresolvedCause::IncompleteRundown, "the process's rundown is incomplete")
        }
        Cause::MethodGone => {
            (UnresolvedCause::MethodAtOtherTime, "in the code of a method of another time")
        }
        Cause::ImageGone => (UnresolvedCause::ImageAtOtherTime, "in an image of another time"),
        Cause::Outside => (UnresolvedCause::Unknown, "not in any known method, module or image"),
        Cause::Beyond => {
            (UnresolvedCause::TooManyAddresses, "more distinct addresses than are tracked")
        }
    }
}
