//! Events of Microsoft-Windows-Kernel-Network, -File and -Disk: what the classic events of the
//! kernel state, for sessions that enable these providers. Their layouts are those that Windows
//! registers; no available trace contains them.

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::{KERNEL_DISK, KERNEL_FILE, KERNEL_NETWORK};
use etl_schema::tables::windows;

use super::io::{Ends, IPV6, PAGING, PRIORITY, READS, WRITES, ip, largest_segment};
use super::{DiskRequest, FileRequest, TcpStep};
use crate::error::Result;
use crate::etw::{Etw, Origin};
use crate::machine::{Connection, Handle};
use crate::windows_event::{self, NamedValue};

/// Ids of Microsoft-Windows-Kernel-Network: the types of the classic events; ids of UDP are greater
/// by `UDP`.
mod network {
    pub const SEND: u16 = 10;
    pub const RECEIVE: u16 = 11;
    pub const CONNECT: u16 = 12;
    pub const DISCONNECT: u16 = 13;
    pub const ACCEPT: u16 = 15;
    pub const UDP: u16 = 32;
}

/// Ids of Microsoft-Windows-Kernel-File.
mod file {
    pub const NAME_CREATE: u16 = 10;
    pub const NAME_DELETE: u16 = 11;
    pub const CREATE: u16 = 12;
    pub const CLEANUP: u16 = 13;
    pub const CLOSE: u16 = 14;
    pub const READ: u16 = 15;
    pub const WRITE: u16 = 16;
    pub const SET_DELETE: u16 = 18;
    pub const FLUSH: u16 = 21;
    pub const OPERATION_END: u16 = 24;
}

/// Ids of Microsoft-Windows-Kernel-Disk.
mod disk {
    pub const READ: u16 = 10;
    pub const WRITE: u16 = 11;
    pub const FLUSH: u16 = 14;
}

/// `FileDispositionInformation`: the file is to be deleted.
const DISPOSITION: u32 = 13;

impl Etw<'_> {
    /// An event of a provider as this build of Windows has it, if a session enables the provider.
    fn enabled_event(&self, provider: Guid, id: u16, version: u8) -> Option<&'static EventSchema> {
        if !self.is_enabled(provider) {
            return None;
        }
        let layout = windows::in_build(provider, id, version, self.os().build)?;
        Some(layout.schema)
    }

    /// Version 1 of the events of files, with the id of the thread in 32 bits, came with Windows 8.
    fn file_version(&self) -> u8 {
        if self.is_before_8() { 0 } else { 1 }
    }

    /// Raises the event of a step of a connection.
    pub(super) fn raise_network(
        &mut self,
        step: TcpStep,
        of: &Connection,
        origin: &Origin,
    ) -> Result<()> {
        let mut id = match step {
            TcpStep::Send(_) => network::SEND,
            TcpStep::Receive(_) => network::RECEIVE,
            TcpStep::Connect => network::CONNECT,
            TcpStep::Disconnect => network::DISCONNECT,
            TcpStep::Accept => network::ACCEPT,
        };
        let Ends { to, from } = Ends::of(step, of);
        if of.udp {
            id += network::UDP;
        }
        if to.is_ipv6() {
            id += IPV6;
        }
        let Some(schema) = self.enabled_event(KERNEL_NETWORK, id, 0) else {
            return Ok(());
        };
        let ticks = self.tcp_ticks(origin);
        let values: [NamedValue<'_>; 15] = [
            ("PID", origin.pid.into()),
            ("size", step.bytes().into()),
            ("daddr", ip(to)),
            ("saddr", ip(from)),
            ("dport", to.port().into()),
            ("sport", from.port().into()),
            ("startime", ticks.into()),
            ("endtime", ticks.into()),
            ("mss", largest_segment(to).into()),
            ("sackopt", 1u16.into()),
            ("tsopt", 0u16.into()),
            ("wsopt", 1u16.into()),
            ("rcvwin", 65_536u32.into()),
            ("rcvwinscale", 8u16.into()),
            ("sndwinscale", 8u16.into()),
        ];
        windows_event::raise(self, origin, KERNEL_NETWORK, schema, 0, &values)
    }

    /// Raises the event of a request of a thread to a file system.
    pub(super) fn raise_file(
        &mut self,
        request: FileRequest<'_>,
        irp: u64,
        handle: &Handle,
        origin: &Origin,
    ) -> Result<()> {
        let id = match request {
            FileRequest::Create(..) => file::CREATE,
            FileRequest::Cleanup => file::CLEANUP,
            FileRequest::Close => file::CLOSE,
            FileRequest::Read(..) => file::READ,
            FileRequest::Write(..) => file::WRITE,
            FileRequest::Delete => file::SET_DELETE,
            FileRequest::Flush => file::FLUSH,
        };
        let version = self.file_version();
        let Some(schema) = self.enabled_event(KERNEL_FILE, id, version) else {
            return Ok(());
        };
        let mut values: Vec<NamedValue<'_>> = vec![
            ("Irp", self.kernel_pointer(irp)),
            ("FileObject", self.kernel_pointer(handle.object)),
            ("FileKey", self.kernel_pointer(handle.key)),
            ("ThreadId", OwnedValue::Pointer(origin.tid.into())),
            ("IssuingThreadId", origin.tid.into()),
        ];
        match request {
            FileRequest::Create(path, options, attributes, share) => {
                values.push(("CreateOptions", options.into()));
                values.push(("CreateAttributes", attributes.into()));
                values.push(("ShareAccess", share.into()));
                values.push(("FileName", path.into()));
            }
            FileRequest::Read(offset, bytes) | FileRequest::Write(offset, bytes) => {
                let reads = matches!(request, FileRequest::Read(..));
                let flags = if reads { READS } else { WRITES };
                values.push(("ByteOffset", offset.into()));
                values.push(("IOSize", bytes.into()));
                values.push(("IOFlags", flags.into()));
            }
            FileRequest::Delete => {
                values.push(("ExtraInformation", OwnedValue::Pointer(1)));
                values.push(("InfoClass", DISPOSITION.into()));
            }
            FileRequest::Cleanup | FileRequest::Close | FileRequest::Flush => {}
        }
        windows_event::raise(self, origin, KERNEL_FILE, schema, 0, &values)
    }

    /// Raises the event of the end of a request to a file system.
    pub(super) fn raise_file_end(
        &mut self,
        irp: u64,
        information: u64,
        origin: &Origin,
    ) -> Result<()> {
        let Some(schema) = self.enabled_event(KERNEL_FILE, file::OPERATION_END, 0) else {
            return Ok(());
        };
        let values: [NamedValue<'_>; 2] = [
            ("Irp", self.kernel_pointer(irp)),
            ("ExtraInformation", OwnedValue::Pointer(information)),
        ];
        windows_event::raise(self, origin, KERNEL_FILE, schema, 0, &values)
    }

    /// Raises the event that states the key and the name of a file, when it gets or loses the key.
    pub(super) fn raise_file_name(
        &mut self,
        gone: bool,
        key: u64,
        path: &str,
        origin: &Origin,
    ) -> Result<()> {
        let id = if gone {
            file::NAME_DELETE
        } else {
            file::NAME_CREATE
        };
        let Some(schema) = self.enabled_event(KERNEL_FILE, id, 0) else {
            return Ok(());
        };
        let values: [NamedValue<'_>; 2] = [
            ("FileKey", self.kernel_pointer(key)),
            ("FileName", path.into()),
        ];
        windows_event::raise(self, origin, KERNEL_FILE, schema, 0, &values)
    }

    /// Raises the event of the end of a request to a disk, which took some ticks of the performance
    /// counter.
    pub(super) fn raise_disk(
        &mut self,
        request: &DiskRequest,
        ticks: u64,
        origin: &Origin,
    ) -> Result<()> {
        let id = match (request.bytes, request.write) {
            (0, _) => disk::FLUSH,
            (_, false) => disk::READ,
            (_, true) => disk::WRITE,
        };
        let Some(schema) = self.enabled_event(KERNEL_DISK, id, 0) else {
            return Ok(());
        };
        let flags = if request.bytes == 0 { PRIORITY } else { PAGING };
        let bytes = u32::try_from(request.bytes).unwrap_or(u32::MAX);
        let values: [NamedValue<'_>; 7] = [
            ("DiskNumber", request.disk.into()),
            ("IrpFlags", flags.into()),
            ("TransferSize", bytes.into()),
            ("ByteOffset", request.start.into()),
            ("FileObject", self.kernel_pointer(request.key)),
            ("IORequestPacket", self.kernel_pointer(request.irp)),
            ("HighResResponseTime", ticks.into()),
        ];
        windows_event::raise(self, origin, KERNEL_DISK, schema, 0, &values)
    }
}
