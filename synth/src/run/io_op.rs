//! Operations of threads on files and connections.

use crate::kernel::{FileRequest, PageIn, TcpStep};
use crate::machine::Connection;
use crate::model::FileTransfer;
use crate::time::Nanos;
use crate::truth::FileOperation;

/// An operation of a thread on an open file, by its handle, or on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IoOp {
    /// A file is opened.
    Open(OpenRequest),
    /// A part is read or written.
    Transfer(u64, Transfer),
    /// The disk has done a part of that, or a flush.
    Continue(u64, Transfer),
    /// A thread touches a page of a mapped file, by the index of the file.
    PageIn(usize, PageIn),
    /// The page was read.
    PagedIn(usize, PageIn),
    /// A file is flushed.
    Flush(u64),
    /// A file is deleted.
    Delete(u64),
    /// A file is closed.
    Close(u64),
    /// The process ends: its files are closed, and its connections end.
    CloseAll,
    /// Something happens with a connection, after a wait.
    Network(TcpStep, Connection),
    /// It happens now.
    NetworkDone(TcpStep, Connection),
}

/// A file to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenRequest {
    /// The new handle.
    pub handle: u64,
    /// The index of the file.
    pub file: usize,
    /// The options of `CreateFile`.
    pub options: u32,
    /// What others may do with the file.
    pub share: u32,
}

/// A read, write or flush on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub operation: FileOperation,
    pub offset: u64,
    pub bytes: u64,
    pub cached: bool,
    /// Bytes of whole sectors that the disk has transferred.
    pub done: u64,
    /// When it began, and its request.
    pub since: Nanos,
    pub irp: u64,
}

impl Transfer {
    pub fn new(operation: FileOperation, offset: u64, bytes: u64, cached: bool) -> Self {
        Transfer {
            operation,
            offset,
            bytes,
            cached,
            done: 0,
            since: 0,
            irp: 0,
        }
    }

    pub fn of(plan: &FileTransfer) -> Self {
        let operation = if plan.write {
            FileOperation::Write
        } else {
            FileOperation::Read
        };
        Transfer::new(operation, plan.offset, plan.bytes.into(), plan.cached)
    }

    /// The request to the file system.
    pub fn request(&self) -> FileRequest<'static> {
        let bytes = u32::try_from(self.bytes).unwrap_or(u32::MAX);
        match self.operation {
            FileOperation::Write => FileRequest::Write(self.offset, bytes),
            FileOperation::Flush => FileRequest::Flush,
            _ => FileRequest::Read(self.offset, bytes),
        }
    }
}
