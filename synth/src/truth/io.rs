//! What processes and disks do with files and over the network, whether or not it is recorded.

use std::net::SocketAddr;

use etl_format::{ProcessId, ThreadId};
use serde::Serialize;

use crate::time::Nanos;

/// An operation of a process on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileOperation {
    /// It is opened.
    Open,
    /// A part is read.
    Read,
    /// A part is written.
    Write,
    /// It is flushed.
    Flush,
    /// It is closed.
    Close,
    /// It is deleted.
    Delete,
}

/// An operation of a process on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NetworkOperation {
    /// A connection is made.
    Connect,
    /// A connection is accepted.
    Accept,
    /// Data is sent.
    Send,
    /// Data is received.
    Receive,
    /// The connection is ended.
    Disconnect,
}

/// An operation on a file, a disk or the network. Addresses of kernel objects are the same as in
/// the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum IoReport {
    /// An operation on a file.
    #[serde(rename = "file_io")]
    #[non_exhaustive]
    File {
        /// Its begin and its end, simulated time.
        started_ns: Nanos,
        /// Its end.
        ended_ns: Nanos,
        /// The process.
        pid: ProcessId,
        /// The thread.
        tid: ThreadId,
        /// What was done.
        operation: FileOperation,
        /// The path in the script.
        path: String,
        /// The key of the file.
        file_key: u64,
        /// The file object.
        file_object: u64,
        /// Of a read or write: first byte in the file.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// Of a read or write: bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// Of a read or write: whether the disk did nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        cached: Option<bool>,
    },
    /// A request to a disk.
    #[serde(rename = "disk_io")]
    #[non_exhaustive]
    Disk {
        /// Its begin, simulated time.
        started_ns: Nanos,
        /// Its end.
        ended_ns: Nanos,
        /// The process.
        pid: ProcessId,
        /// The thread that issued it.
        tid: ThreadId,
        /// Read, write or flush.
        operation: FileOperation,
        /// The path in the script.
        path: String,
        /// The key of the file.
        file_key: u64,
        /// The request packet.
        irp: u64,
        /// Number of the disk.
        disk: u32,
        /// First byte on the disk; 0 for a flush.
        offset: u64,
        /// Bytes; 0 for a flush.
        bytes: u64,
    },
    /// A page fault that a disk had to serve.
    #[serde(rename = "hard_fault")]
    #[non_exhaustive]
    Fault {
        /// When the thread touched the page, simulated time.
        started_ns: Nanos,
        /// When it continued.
        ended_ns: Nanos,
        /// The process.
        pid: ProcessId,
        /// The thread.
        tid: ThreadId,
        /// The path in the script.
        path: String,
        /// The key of the file.
        file_key: u64,
        /// First byte in the file.
        offset: u64,
        /// Bytes.
        bytes: u32,
    },
    /// An operation on the network.
    #[serde(rename = "network_io")]
    #[non_exhaustive]
    Network {
        /// Simulated time.
        at_ns: Nanos,
        /// The process.
        pid: ProcessId,
        /// The thread.
        tid: ThreadId,
        /// What was done.
        operation: NetworkOperation,
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// Address and port of this machine.
        local: SocketAddr,
        /// Address and port of the other side.
        remote: SocketAddr,
        /// Bytes that were sent or received; 0 for others.
        bytes: u32,
    },
}
