//! Events of disks, files, TCP and UDP. Their records and values follow a real trace of
//! Windows 8: requests to disks contain their thread, other events do not.

use std::net::{IpAddr, SocketAddr};

use etl_format::Guid;
use etl_format::constants::hook;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{DISK_IO, FILE_IO, TCP_IP, UDP_IP};

use crate::error::Result;
use crate::etw::{Etw, LogTarget, Origin, values};
use crate::machine::{Connection, Files, Handle};
use crate::model::{KernelEvent, WindowsVersion};
use crate::time::{MILLISECOND, Nanos};
use crate::truth::RecordFormat;

use super::{ClassicIdentity, address};

/// Flags of requests: no cache, paging, synchronous paging; and two bits of the priority.
pub(super) const PAGING: u32 = 0x6_0043;
/// Those of a flush, and of the operations of programs: read and write, with deferred completion.
pub(super) const PRIORITY: u32 = 0x6_0000;
pub(super) const READS: u32 = 0x6_0900;
pub(super) const WRITES: u32 = 0x6_0a00;
/// A unit of time in events of TCP.
const TCP_TICK: Nanos = 100 * MILLISECOND;
/// What is added to a type of IPv4 for IPv6.
pub(super) const IPV6: u16 = 16;

/// A request to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskRequest {
    /// Number of the disk, first byte on it, bytes; no bytes for a flush.
    pub disk: u32,
    pub start: u64,
    pub bytes: u64,
    pub write: bool,
    pub irp: u64,
    pub key: u64,
    /// When it was issued, and by which thread.
    pub since: Nanos,
    pub tid: u32,
}

impl DiskRequest {
    /// The events of its begin and of its end.
    pub fn events(&self) -> (KernelEvent, KernelEvent) {
        match (self.bytes, self.write) {
            (0, _) => (KernelEvent::DiskFlushInit, KernelEvent::DiskFlush),
            (_, false) => (KernelEvent::DiskReadInit, KernelEvent::DiskRead),
            (_, true) => (KernelEvent::DiskWriteInit, KernelEvent::DiskWrite),
        }
    }
}

/// What a program asks of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRequest<'a> {
    /// The path of the kernel, the options, the attributes, what others may do.
    Create(&'a str, u32, u32, u32),
    Cleanup,
    Close,
    /// First byte and bytes.
    Read(u64, u32),
    Write(u64, u32),
    Delete,
    Flush,
}

impl FileRequest<'_> {
    pub fn event(self) -> KernelEvent {
        match self {
            FileRequest::Create(..) => KernelEvent::FileCreate,
            FileRequest::Cleanup => KernelEvent::FileCleanup,
            FileRequest::Close => KernelEvent::FileClose,
            FileRequest::Read(..) => KernelEvent::FileRead,
            FileRequest::Write(..) => KernelEvent::FileWrite,
            FileRequest::Delete => KernelEvent::FileDelete,
            FileRequest::Flush => KernelEvent::FileFlush,
        }
    }
}

/// What happens with a TCP connection or over UDP: bytes that are sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpStep {
    Connect,
    Accept,
    Send(u32),
    Receive(u32),
    Disconnect,
}

impl TcpStep {
    /// The bytes that are sent or received.
    pub fn bytes(self) -> u32 {
        match self {
            TcpStep::Send(bytes) | TcpStep::Receive(bytes) => bytes,
            TcpStep::Connect | TcpStep::Accept | TcpStep::Disconnect => 0,
        }
    }
}

/// The ends of a connection as an event names them.
pub(super) struct Ends {
    pub to: SocketAddr,
    pub from: SocketAddr,
}

impl Ends {
    /// TCP names the other side first, UDP the destination of the packet.
    pub fn of(step: TcpStep, connection: &Connection) -> Self {
        let received = connection.udp && matches!(step, TcpStep::Receive(_));
        let Connection { local, remote, .. } = *connection;
        match received {
            true => Ends {
                to: local,
                from: remote,
            },
            false => Ends {
                to: remote,
                from: local,
            },
        }
    }
}

/// Bytes of the largest segment that a connection to an address carries.
pub(super) fn largest_segment(to: SocketAddr) -> u16 {
    if to.is_ipv4() { 1460 } else { 1440 }
}

impl Etw<'_> {
    /// The time of an event of TCP.
    pub(super) fn tcp_ticks(&self, origin: &Origin) -> u32 {
        let ticks = self.since_boot(origin.at) / TCP_TICK;
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Whether this is Windows 7 or older.
    pub(super) fn is_before_8(&self) -> bool {
        self.os() < WindowsVersion::WINDOWS_8
    }

    pub(super) fn kernel_pointer(&self, of: u64) -> OwnedValue {
        OwnedValue::Pointer(address(self.pointer_size(), of))
    }

    fn log_io(
        &mut self,
        event: KernelEvent,
        class: Guid,
        hook: u16,
        version: u8,
        values: &[OwnedValue],
        origin: &Origin,
    ) -> Result<()> {
        let opcode = (hook & 0xff) as u8;
        let format = match event {
            KernelEvent::DiskReadInit | KernelEvent::DiskWriteInit | KernelEvent::DiskFlushInit => {
                RecordFormat::System(hook)
            }
            _ => RecordFormat::PerfInfo(hook),
        };
        let identity = ClassicIdentity {
            class,
            opcode,
            layout: version.into(),
            version,
        };
        self.log_classic(LogTarget::Enabled(event), identity, format, values, origin)
    }

    /// Logs the begin of a request to a disk.
    pub fn log_disk_init(&mut self, request: &DiskRequest, origin: &Origin) -> Result<()> {
        let before = self.is_before_8();
        let mut values = vec![self.kernel_pointer(request.irp)];
        values.extend((!before).then(|| request.tid.into()));
        let (event, _) = request.events();
        let version = if before { 2 } else { 3 };
        self.log_io(event, DISK_IO, event.hook(), version, &values, origin)
    }

    /// Logs the end of a request to a disk.
    pub fn log_disk_end(&mut self, request: &DiskRequest, origin: &Origin) -> Result<()> {
        let before = self.is_before_8();
        let started = self.performance_counter(request.since);
        let ended = self.performance_counter(origin.at);
        let took = ended.saturating_sub(started).cast_unsigned();
        let irp = self.kernel_pointer(request.irp);
        let key = self.kernel_pointer(request.key);
        let (_, event) = request.events();
        let bytes = u32::try_from(request.bytes).unwrap_or(u32::MAX);
        let mut values = match event {
            KernelEvent::DiskFlush => values![request.disk, PRIORITY, took, irp].to_vec(),
            _ => values![
                request.disk,
                PAGING,
                bytes,
                0u32,
                request.start,
                key,
                irp,
                took
            ]
            .to_vec(),
        };
        values.extend((!before).then(|| request.tid.into()));
        let version = if before { 2 } else { 3 };
        self.log_io(event, DISK_IO, event.hook(), version, &values, origin)?;
        self.raise_disk(request, took, origin)
    }

    /// Logs that a file gets its key, or loses it.
    pub fn log_file_name(
        &mut self,
        gone: bool,
        key: u64,
        path: &str,
        origin: &Origin,
    ) -> Result<()> {
        let hook = if gone {
            hook::FILE_DELETE
        } else {
            hook::FILE_CREATE
        };
        self.log_name(
            LogTarget::Enabled(KernelEvent::FileName),
            hook,
            key,
            path,
            origin,
        )?;
        self.raise_file_name(gone, key, path, origin)
    }

    /// Logs the keys and names of files for a session that ends.
    pub fn log_file_names(&mut self, session: usize, files: &Files, at: &Origin) -> Result<()> {
        files.named().try_for_each(|(key, file)| {
            let path = files.kernel_path(&file.path);
            self.log_name(
                LogTarget::Session(session),
                hook::FILE_RUNDOWN,
                key,
                &path,
                at,
            )
        })
    }

    fn log_name(
        &mut self,
        to: LogTarget,
        hook: u16,
        key: u64,
        path: &str,
        origin: &Origin,
    ) -> Result<()> {
        let values = [self.kernel_pointer(key), path.into()];
        let opcode = (hook & 0xff) as u8;
        let identity = ClassicIdentity {
            class: FILE_IO,
            opcode,
            layout: 0,
            version: 2,
        };
        self.log_classic(to, identity, RecordFormat::PerfInfo(hook), &values, origin)
    }

    /// Logs a request of a thread to a file system.
    pub fn log_file(
        &mut self,
        request: FileRequest<'_>,
        irp: u64,
        handle: &Handle,
        origin: &Origin,
    ) -> Result<()> {
        let before = self.is_before_8();
        let packet = self.kernel_pointer(irp);
        let [object, key] = [handle.object, handle.key].map(|of| self.kernel_pointer(of));
        // Since Windows 8 the thread comes later, and has 32 bits.
        let tid = origin.tid;
        let (early, late) = match before {
            true => (Some(OwnedValue::Pointer(tid.into())), None),
            false => (None, Some(OwnedValue::from(tid))),
        };
        let named = [Some(packet), early, Some(object)];
        let mut values: Vec<OwnedValue> = Vec::with_capacity(8);
        if let FileRequest::Read(offset, _) | FileRequest::Write(offset, _) = request {
            values.push(offset.into());
        }
        values.extend(named.into_iter().flatten());
        match request {
            FileRequest::Create(path, options, attributes, share) => {
                values.extend(late);
                values.extend(values![options, attributes, share, path]);
            }
            FileRequest::Cleanup | FileRequest::Close | FileRequest::Flush => {
                values.push(key);
                values.extend(late);
            }
            FileRequest::Read(_, bytes) | FileRequest::Write(_, bytes) => {
                let reads = matches!(request, FileRequest::Read(..));
                values.push(key);
                values.extend(late);
                values.extend(values![bytes, if reads { READS } else { WRITES }]);
            }
            FileRequest::Delete => {
                // FileDispositionInformation: the file is to be deleted.
                values.push(key);
                values.push(OwnedValue::Pointer(1));
                values.extend(late);
                values.push(13u32.into());
            }
        }
        let version = if before { 2 } else { 3 };
        let event = request.event();
        self.log_io(event, FILE_IO, event.hook(), version, &values, origin)?;
        self.raise_file(request, irp, handle, origin)
    }

    /// Logs the end of a request to a file system: bytes of a read or write, or how a file was
    /// opened.
    pub fn log_file_end(&mut self, irp: u64, information: u64, origin: &Origin) -> Result<()> {
        let values = [
            self.kernel_pointer(irp),
            OwnedValue::Pointer(information),
            0u32.into(),
        ];
        let version = if self.is_before_8() { 2 } else { 3 };
        let event = KernelEvent::FileOpEnd;
        let format = RecordFormat::PerfInfo(event.hook());
        // All versions have one layout.
        let identity = ClassicIdentity {
            class: FILE_IO,
            opcode: 76,
            layout: 2,
            version,
        };
        self.log_classic(LogTarget::Enabled(event), identity, format, &values, origin)?;
        self.raise_file_end(irp, information, origin)
    }

    /// Logs what happens with a connection.
    pub fn log_network(&mut self, step: TcpStep, of: &Connection, origin: &Origin) -> Result<()> {
        let event = match (step, of.udp) {
            (TcpStep::Connect, _) => KernelEvent::TcpConnect,
            (TcpStep::Accept, _) => KernelEvent::TcpAccept,
            (TcpStep::Disconnect, _) => KernelEvent::TcpDisconnect,
            (TcpStep::Send(_), false) => KernelEvent::TcpSend,
            (TcpStep::Receive(_), false) => KernelEvent::TcpReceive,
            (TcpStep::Send(_), true) => KernelEvent::UdpSend,
            (TcpStep::Receive(_), true) => KernelEvent::UdpReceive,
        };
        let bytes = step.bytes();
        let Ends { to, from } = Ends::of(step, of);
        let [to_ip, from_ip] = [to, from].map(ip);
        let mut values =
            values![origin.pid, bytes, to_ip, from_ip, to.port(), from.port()].to_vec();
        match step {
            TcpStep::Send(_) if !of.udp => {
                let ticks = self.tcp_ticks(origin);
                values.extend(values![ticks, ticks]);
            }
            TcpStep::Connect | TcpStep::Accept => {
                // Selective acknowledgements, no timestamps, scaled windows: 64 KB, by 8 bits.
                let segment = largest_segment(to);
                values.extend(values![segment, 1u16, 0u16, 1u16, 65_536u32, 8i16, 8i16]);
            }
            _ => {}
        }
        // Sequence number and connection are zero in real traces.
        values.push(0u32.into());
        values.push(OwnedValue::Pointer(0));
        let more = if to.is_ipv4() { 0 } else { IPV6 };
        let class = if of.udp { UDP_IP } else { TCP_IP };
        self.log_io(event, class, event.hook() + more, 2, &values, origin)?;
        self.raise_network(step, of, origin)
    }
}

pub(super) fn ip(of: SocketAddr) -> OwnedValue {
    match of.ip() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => ip.into(),
    }
}
