//! What events of disks and files state: the kernel's classic events, and the events of
//! Microsoft-Windows-Kernel-Disk and Microsoft-Windows-Kernel-File.

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_schema::providers::{KERNEL_DISK, KERNEL_FILE};
use etl_schema::views::FieldReader;

use super::Operation;
use crate::observe::{EventKind, EventRef};

/// Ids of Microsoft-Windows-Kernel-Disk.
mod disk {
    pub const READ: u16 = 10;
    pub const WRITE: u16 = 11;
    pub const FLUSH: u16 = 14;
}

/// Ids of Microsoft-Windows-Kernel-File.
mod file {
    pub const NAME_CREATE: u16 = 10;
    pub const NAME_DELETE: u16 = 11;
    pub const CREATE: u16 = 12;
    pub const CLOSE: u16 = 14;
    pub const READ: u16 = 15;
    pub const WRITE: u16 = 16;
    pub const OPERATION_END: u16 = 24;
    pub const CREATE_NEW_FILE: u16 = 30;
}

/// Whether the event of Microsoft-Windows-Kernel-File with an id is a read or a write.
pub(in crate::behavior) const fn is_transfer_of_file(id: u16) -> bool {
    matches!(id, file::READ | file::WRITE)
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A disk ended an operation.
    Disk(Operation),
    /// A thread begins an operation of a disk. Before Windows 8 only this event is logged by the
    /// thread, and only it has the thread: the end of the operation interrupts any thread.
    DiskBegin,
    /// A process reads from a file or writes to it.
    File(Operation),
    /// An operation on a file ended.
    FileEnd,
    /// A file has this name.
    Name,
    /// A file had this name until now.
    LastName,
    /// A file object is gone.
    Closed,
}

/// An event with its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepKind {
    pub step: Step,
    /// Whether the kernel logged it as a classic event.
    pub is_classic: bool,
}

impl StepKind {
    pub fn of(event: &EventRef) -> Option<Self> {
        let is_classic = event.kind.hook().is_some();
        let step = match event.kind {
            EventKind::Kernel { hook } => classic_step(hook)?,
            EventKind::Event {
                provider: KERNEL_DISK,
                id,
            } => disk_step(id)?,
            EventKind::Event {
                provider: KERNEL_FILE,
                id,
            } => file_step(id)?,
            _ => return None,
        };
        Some(StepKind { step, is_classic })
    }
}

fn classic_step(hook: u16) -> Option<Step> {
    Some(match hook {
        hook::DISK_READ => Step::Disk(Operation::DiskRead),
        hook::DISK_WRITE => Step::Disk(Operation::DiskWrite),
        hook::DISK_FLUSH => Step::Disk(Operation::DiskFlush),
        hook::DISK_READ_INIT | hook::DISK_WRITE_INIT | hook::DISK_FLUSH_INIT => Step::DiskBegin,
        hook::FILE_READ => Step::File(Operation::FileRead),
        hook::FILE_WRITE => Step::File(Operation::FileWrite),
        hook::FILE_OPERATION_END => Step::FileEnd,
        hook::FILE_NAME | hook::FILE_CREATE | hook::FILE_RUNDOWN => Step::Name,
        hook::FILE_DELETE => Step::LastName,
        _ => return None,
    })
}

fn disk_step(id: u16) -> Option<Step> {
    Some(match id {
        disk::READ => Step::Disk(Operation::DiskRead),
        disk::WRITE => Step::Disk(Operation::DiskWrite),
        disk::FLUSH => Step::Disk(Operation::DiskFlush),
        _ => return None,
    })
}

fn file_step(id: u16) -> Option<Step> {
    Some(match id {
        file::READ => Step::File(Operation::FileRead),
        file::WRITE => Step::File(Operation::FileWrite),
        file::OPERATION_END => Step::FileEnd,
        file::NAME_CREATE | file::CREATE | file::CREATE_NEW_FILE => Step::Name,
        file::NAME_DELETE => Step::LastName,
        file::CLOSE => Step::Closed,
        _ => return None,
    })
}

/// An event of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskFields {
    pub bytes: u64,
    /// Key of the file.
    pub file: Option<u64>,
    /// Ticks of the performance counter that it took.
    pub response: Option<u64>,
    /// The thread that asked for it; events have it since Windows 8.
    pub tid: Option<u64>,
    pub disk: Option<u64>,
    pub offset: Option<u64>,
    /// The request packet.
    pub request: Option<u64>,
}

/// An event of a read from a file, or of a write to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileFields {
    pub bytes: u64,
    /// Key of the file.
    pub file: Option<u64>,
    /// The file object, that is the file as one process has opened it.
    pub object: Option<u64>,
    pub request: Option<u64>,
    pub tid: Option<u64>,
}

/// The key of a file or of a file object, and its name in UTF-16.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameFields<'a> {
    pub key: u64,
    pub name: &'a [u8],
}

/// Reads the fields of events.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    disk: FieldReader<7>,
    disk_event: FieldReader<7>,
    begin: FieldReader<2>,
    file: FieldReader<5>,
    file_event: FieldReader<6>,
    end: FieldReader<1>,
    end_event: FieldReader<1>,
    name: FieldReader<2>,
    name_event: FieldReader<3>,
}

impl Reader {
    pub fn new() -> Self {
        const DISK: [&str; 7] = [
            "TransferSize",
            "FileObject",
            "HighResResponseTime",
            "IssuingThreadId",
            "DiskNumber",
            "ByteOffset",
            "Irp",
        ];
        let mut disk_event = DISK;
        disk_event[6] = "IORequestPacket";
        let file = ["IoSize", "FileKey", "FileObject", "IrpPtr", "TTID"];
        // Version 0, of Windows 7, calls the thread otherwise.
        let file_event = [
            "IOSize",
            "FileKey",
            "FileObject",
            "Irp",
            "IssuingThreadId",
            "ThreadId",
        ];
        let name_event = ["FileKey", "FileName", "FileObject"];
        Reader {
            disk: FieldReader::of_hook(hook::DISK_READ, DISK),
            disk_event: FieldReader::of_event(KERNEL_DISK, disk::READ, disk_event),
            begin: FieldReader::of_hook(hook::DISK_READ_INIT, ["Irp", "IssuingThreadId"]),
            file: FieldReader::of_hook(hook::FILE_READ, file),
            file_event: FieldReader::of_event(KERNEL_FILE, file::READ, file_event),
            end: FieldReader::of_hook(hook::FILE_OPERATION_END, ["IrpPtr"]),
            end_event: FieldReader::of_event(KERNEL_FILE, file::OPERATION_END, ["Irp"]),
            name: FieldReader::of_hook(hook::FILE_NAME, ["FileObject", "FileName"]),
            name_event: FieldReader::of_event(KERNEL_FILE, file::CREATE, name_event),
        }
    }

    pub fn disk(&mut self, record: &Record<'_>, is_classic: bool) -> Option<DiskFields> {
        let reader = match is_classic {
            true => &mut self.disk,
            false => &mut self.disk_event,
        };
        let fields = reader.read(record)?;
        Some(DiskFields {
            bytes: fields.uint(0).unwrap_or(0),
            file: fields.uint(1).filter(|&key| key != 0),
            response: fields.uint(2),
            tid: fields.uint(3),
            disk: fields.uint(4),
            offset: fields.uint(5),
            request: fields.uint(6),
        })
    }

    /// The request packet of an operation of a disk that begins, and its thread.
    pub fn disk_begin(&mut self, record: &Record<'_>) -> Option<DiskRequest> {
        let fields = self.begin.read(record)?;
        Some(DiskRequest {
            request: fields.uint(0)?,
            tid: fields.uint(1),
        })
    }

    pub fn file(&mut self, record: &Record<'_>, is_classic: bool) -> Option<FileFields> {
        if is_classic {
            let fields = self.file.read(record)?;
            return Some(FileFields {
                bytes: fields.uint(0).unwrap_or(0),
                file: fields.uint(1).filter(|&key| key != 0),
                object: fields.uint(2).filter(|&key| key != 0),
                request: fields.uint(3),
                tid: fields.uint(4),
            });
        }
        let fields = self.file_event.read(record)?;
        Some(FileFields {
            bytes: fields.uint(0).unwrap_or(0),
            file: fields.uint(1).filter(|&key| key != 0),
            object: fields.uint(2).filter(|&key| key != 0),
            request: fields.uint(3),
            tid: fields.uint(4).or_else(|| fields.uint(5)),
        })
    }

    /// The request packet of an operation on a file that ended.
    pub fn file_end(&mut self, record: &Record<'_>, is_classic: bool) -> Option<u64> {
        let reader = match is_classic {
            true => &mut self.end,
            false => &mut self.end_event,
        };
        reader.read(record)?.uint(0)
    }

    pub fn name<'a>(&mut self, record: &Record<'a>, is_classic: bool) -> Option<NameFields<'a>> {
        if is_classic {
            let fields = self.name.read(record)?;
            return Some(NameFields {
                key: fields.uint(0)?,
                name: fields.text(1)?,
            });
        }
        let fields = self.name_event.read(record)?;
        Some(NameFields {
            key: fields.uint(0).or_else(|| fields.uint(2))?,
            name: fields.text(1)?,
        })
    }

    /// The file object that is gone.
    pub fn closed(&mut self, record: &Record<'_>) -> Option<u64> {
        self.file_event.read(record)?.uint(2)
    }
}

/// An operation of a disk that begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRequest {
    pub request: u64,
    pub tid: Option<u64>,
}
