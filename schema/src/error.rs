//! The errors of this crate in one type.

use crate::encode::EncodeError;
use crate::sources::manifest::ManifestError;
use crate::sources::tmf::TmfError;
use crate::sources::trace_event_info::InfoError;
use crate::sources::tracelogging::{BuildError, MetadataError};
use crate::tables::TableError;

/// What cannot be read, built or encoded. The errors of the modules convert to it with `?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A table of events or of errata.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An XML instrumentation manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A WPP trace message format file.
    #[error(transparent)]
    Tmf(#[from] TmfError),
    /// A `TRACE_EVENT_INFO` blob.
    #[error(transparent)]
    TraceEventInfo(#[from] InfoError),
    /// TraceLogging metadata that is read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// TraceLogging metadata that is built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A payload that is encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}
