//! Input and output of processes: files and connections.

use std::net::SocketAddr;

/// Something that a process does with a file or over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoWork {
    /// Opens a file, which stays open until it is closed.
    Open(String),
    /// Reads or writes a part of a file. A file that is not open is opened for it and closed.
    Transfer(FileTransfer),
    /// Touches a page of a mapped file that is not in memory.
    PageIn(PageRead),
    /// Writes the data of a file that is not on the disk yet.
    Flush(String),
    /// Closes a file that is open.
    Close(String),
    /// Deletes a file that the process has not open.
    Delete(String),
    /// Connects to an address, by TCP.
    Connect(SocketAddr),
    /// Takes a connection from an address to a local port, by TCP.
    Accept(SocketAddr, u16),
    /// Sends or receives data.
    Message(NetworkMessage),
    /// Ends the connection with an address.
    Disconnect(SocketAddr),
}

/// A page of a mapped file that is read because a thread touches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// Path with its drive letter.
    pub path: String,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes that are read, from 1 to 1 MiB.
    pub bytes: u32,
}

/// A read from a file, or a write to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTransfer {
    /// Path with its drive letter.
    pub path: String,
    /// Whether data is written; otherwise it is read.
    pub write: bool,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes, at least 1.
    pub bytes: u32,
    /// Whether the data is in memory, or stays there, so that the disk does nothing.
    pub cached: bool,
}

/// Data that is sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkMessage {
    /// The other side.
    pub remote: SocketAddr,
    /// Whether data is sent; otherwise it is received.
    pub sent: bool,
    /// Bytes.
    pub bytes: u32,
    /// By UDP, with this local port, or one that the system chooses if it is 0; otherwise over the
    /// TCP connection.
    pub udp: Option<u16>,
}
