//! The kernel's events that Perfetto knows as such: context switches, threads that become ready,
//! operations of files and disks, also as Kernel-Disk and Kernel-File state them.

use etl_analysis::EventRef;
use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks};
use etl_schema::views::{FieldReader, FieldValues};
use foldhash::{HashMap, HashSet};

use super::Context;
use super::fields::{etw_bundle, etw_event, packet};
use super::packets::Packets;
use super::providers::ProviderEvent;
use super::storage::Storage;
use crate::protobuf::Message;
use crate::text::utf16;

/// Fields of an event, at most.
const FIELDS: usize = 11;

/// Bytes of events in a packet.
const BUNDLE: usize = 1 << 14;

/// Perfetto ignores events of processors from this one on.
const MAX_PROCESSORS: u16 = 1024;

/// Operations of selected threads whose end is awaited.
const MAX_OPEN: usize = 1 << 16;

/// How a field is encoded.
#[derive(Clone, Copy, Debug)]
enum Coding {
    Uint,
    /// A signed byte, as `int32`.
    Byte,
    /// The lowest bit, as `int32`.
    Bit,
    /// A signed byte, as `sint32`.
    ByteZigzag,
    Text,
}
use Coding::{Bit, Byte, ByteZigzag, Text, Uint};

/// A kind of event: its message, and its fields by name and number.
#[derive(Debug)]
struct Kind {
    message: u32,
    /// The field for the opcode, if several kinds share a message.
    opcode: Option<u32>,
    /// Name of the field with the thread that does the operation; empty if there is none.
    thread: &'static str,
    /// Name of the field with the request; empty if there is none.
    request: &'static str,
    fields: &'static [(&'static str, u32, Coding)],
}

impl Kind {
    /// The index of a field by its name.
    fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.0 == name)
    }

    /// Whether it is an operation of a disk.
    fn is_of_disks(&self) -> bool {
        self.message == etw_event::DISK_IO
    }

    /// Whether it is an operation of a file.
    fn is_of_files(&self) -> bool {
        !self.request.is_empty()
    }
}

/// Fields of [`SWITCH`].
const NEW_THREAD: usize = 0;
const OLD_THREAD: usize = 1;

const SWITCH: Kind = Kind {
    message: etw_event::C_SWITCH,
    opcode: None,
    thread: "",
    request: "",
    // Importers read reason, mode and state from the numbers, not from the enumerations.
    fields: &[
        ("NewThreadId", 1, Uint),
        ("OldThreadId", 2, Uint),
        ("NewThreadPriority", 3, ByteZigzag),
        ("OldThreadPriority", 4, ByteZigzag),
        ("PreviousCState", 5, Uint),
        ("OldThreadWaitReason", 11, Byte),
        ("OldThreadWaitMode", 12, Bit),
        // The mode of newer versions, among other flags.
        ("ThreadFlags", 12, Bit),
        ("OldThreadState", 13, ByteZigzag),
        ("OldThreadWaitIdealProcessor", 9, ByteZigzag),
        ("NewThreadWaitTime", 10, Uint),
    ],
};
const READY: Kind = Kind {
    message: etw_event::READY_THREAD,
    opcode: None,
    thread: "TThreadId",
    request: "",
    fields: &[
        ("TThreadId", 1, Uint),
        ("AdjustReason", 5, Byte),
        ("AdjustIncrement", 3, ByteZigzag),
        ("Flag", 6, Byte),
    ],
};
const DISK: Kind = Kind {
    message: etw_event::DISK_IO,
    opcode: Some(9),
    thread: "IssuingThreadId",
    request: "",
    fields: &[
        ("DiskNumber", 1, Uint),
        ("IrpFlags", 2, Uint),
        ("TransferSize", 3, Uint),
        ("ByteOffset", 4, Uint),
        ("FileObject", 5, Uint),
        ("Irp", 6, Uint),
        ("HighResResponseTime", 7, Uint),
        ("IssuingThreadId", 8, Uint),
    ],
};
const OPEN: Kind = Kind {
    message: etw_event::FILE_CREATE,
    opcode: None,
    thread: "TTID",
    request: "IrpPtr",
    fields: &[
        ("IrpPtr", 1, Uint),
        ("FileObject", 2, Uint),
        ("TTID", 3, Uint),
        ("CreateOptions", 4, Uint),
        ("FileAttributes", 5, Uint),
        ("ShareAccess", 6, Uint),
        ("OpenPath", 7, Text),
    ],
};
const ENUMERATE: Kind = Kind {
    message: etw_event::FILE_ENUMERATE,
    opcode: Some(9),
    thread: "TTID",
    request: "IrpPtr",
    fields: &[
        ("IrpPtr", 1, Uint),
        ("FileObject", 2, Uint),
        ("FileKey", 3, Uint),
        ("TTID", 4, Uint),
        ("Length", 5, Uint),
        ("InfoClass", 6, Uint),
        ("FileIndex", 7, Uint),
        ("FileName", 8, Text),
    ],
};
const INFO: Kind = Kind {
    message: etw_event::FILE_INFO,
    opcode: Some(7),
    thread: "TTID",
    request: "IrpPtr",
    fields: &[
        ("IrpPtr", 1, Uint),
        ("FileObject", 2, Uint),
        ("FileKey", 3, Uint),
        ("ExtraInfo", 4, Uint),
        ("TTID", 5, Uint),
        ("InfoClass", 6, Uint),
    ],
};
const READ_WRITE: Kind = Kind {
    message: etw_event::FILE_READ_WRITE,
    opcode: Some(8),
    thread: "TTID",
    request: "IrpPtr",
    fields: &[
        ("Offset", 1, Uint),
        ("IrpPtr", 2, Uint),
        ("FileObject", 3, Uint),
        ("FileKey", 4, Uint),
        ("TTID", 5, Uint),
        ("IoSize", 6, Uint),
        ("IoFlags", 7, Uint),
    ],
};
const SIMPLE: Kind = Kind {
    message: etw_event::FILE_SIMPLE,
    opcode: Some(5),
    thread: "TTID",
    request: "IrpPtr",
    fields: &[
        ("IrpPtr", 1, Uint),
        ("FileObject", 2, Uint),
        ("FileKey", 3, Uint),
        ("TTID", 4, Uint),
    ],
};
const END: Kind = Kind {
    message: etw_event::FILE_END,
    opcode: None,
    thread: "",
    request: "IrpPtr",
    fields: &[
        ("IrpPtr", 1, Uint),
        ("ExtraInfo", 2, Uint),
        ("NtStatus", 3, Uint),
    ],
};
const PATH: Kind = Kind {
    message: etw_event::FILE_PATH,
    opcode: Some(8),
    thread: "TTID",
    request: "IrpPtr",
    fields: &[
        ("IrpPtr", 1, Uint),
        ("FileObject", 2, Uint),
        ("FileKey", 3, Uint),
        ("ExtraInfo", 4, Uint),
        ("TTID", 5, Uint),
        ("InfoClass", 6, Uint),
        ("FileName", 7, Text),
    ],
};

/// The kind of the events of a hook.
#[inline]
fn kind_of(hook: u16) -> Option<&'static Kind> {
    Some(match hook {
        hook::CSWITCH => &SWITCH,
        hook::READY_THREAD => &READY,
        hook::DISK_READ | hook::DISK_WRITE | hook::DISK_FLUSH => &DISK,
        hook::FILE_OPEN => &OPEN,
        hook::FILE_DIR_ENUM | hook::FILE_DIR_NOTIFY => &ENUMERATE,
        hook::FILE_SET_INFO
        | hook::FILE_SET_DELETE
        | hook::FILE_RENAME
        | hook::FILE_QUERY_INFO
        | hook::FILE_FS_CONTROL => &INFO,
        hook::FILE_READ | hook::FILE_WRITE => &READ_WRITE,
        hook::FILE_CLEANUP | hook::FILE_CLOSE | hook::FILE_FLUSH => &SIMPLE,
        hook::FILE_OPERATION_END => &END,
        hook::FILE_DELETE_PATH | hook::FILE_RENAME_PATH | hook::FILE_LINK_PATH => &PATH,
        _ => return None,
    })
}

/// Reads the events of a hook.
#[derive(Clone, Debug)]
struct Reader {
    fields: FieldReader<FIELDS>,
    thread: Option<usize>,
    request: Option<usize>,
}

impl Reader {
    fn new(kind: &'static Kind, hook: u16) -> Self {
        let mut names = [""; FIELDS];
        for (name, field) in names.iter_mut().zip(kind.fields) {
            *name = field.0;
        }
        Reader::with_fields(kind, FieldReader::of_hook(hook, names))
    }

    fn of_provider(kind: &'static Kind, event: ProviderEvent) -> Self {
        let mut names = [""; FIELDS];
        for (name, field) in names.iter_mut().zip(kind.fields) {
            *name = event.field_name(field.0);
        }
        let fields = FieldReader::of_event(event.provider, event.id, names);
        Reader::with_fields(kind, fields)
    }

    fn with_fields(kind: &'static Kind, fields: FieldReader<FIELDS>) -> Self {
        Reader {
            fields,
            thread: kind.index_of(kind.thread),
            request: kind.index_of(kind.request),
        }
    }
}

/// An event with the thread and the request that its fields name.
#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: &'static Kind,
    hook: u16,
    thread: Option<ThreadId>,
    request: Option<u64>,
}

/// Collects the kernel's events and writes them in packets.
#[derive(Debug, Default)]
pub(super) struct Etw {
    readers: HashMap<u16, Reader>,
    /// The readers of events of providers, by the hook of the same operation.
    provider_readers: HashMap<u16, Reader>,
    /// Whether the kernel itself logs operations of disks, and of files. Then the events of
    /// providers would state them again.
    has_disks: bool,
    has_files: bool,
    /// The threads that run, by processor.
    running: HashMap<u16, ThreadId>,
    /// Requests of selected threads that have not ended.
    requests: HashSet<u64>,
    bundle: Message,
    event: Message,
    values: Message,
    /// Events that were written.
    pub events: u64,
    /// Events that were left out because Perfetto ignores their processors.
    pub left_out: u64,
}

impl Etw {
    /// Writes an event of the kernel, by its hook, if it is selected and Perfetto knows it.
    pub fn record<S: Storage>(
        &mut self,
        context: &Context<'_>,
        record: &Record<'_>,
        event: &EventRef,
        hook: u16,
        packets: &mut Packets<S>,
    ) {
        let Some(kind) = kind_of(hook) else { return };
        self.has_disks |= kind.is_of_disks();
        self.has_files |= kind.is_of_files();
        let reader = self
            .readers
            .entry(hook)
            .or_insert_with(|| Reader::new(kind, hook));
        let thread_index = reader.thread;
        let request_index = reader.request;
        let Some(values) = reader.fields.read(record) else {
            return;
        };
        let operation = Operation {
            kind,
            hook,
            thread: thread_index.and_then(|index| thread_at(&values, index)),
            request: request_index.and_then(|index| values.uint(index)),
        };
        self.write(context, operation, &values, event, packets);
    }

    /// Writes an event of Kernel-Disk or Kernel-File, unless the kernel logs the same operations.
    pub fn provider_record<S: Storage>(
        &mut self,
        context: &Context<'_>,
        record: &Record<'_>,
        event: &EventRef,
        source: ProviderEvent,
        packets: &mut Packets<S>,
    ) {
        let hook = source.hook;
        let Some(kind) = kind_of(hook) else { return };
        if kind.is_of_disks() && self.has_disks || kind.is_of_files() && self.has_files {
            return;
        }
        let reader = self
            .provider_readers
            .entry(hook)
            .or_insert_with(|| Reader::of_provider(kind, source));
        let thread_index = reader.thread;
        let request_index = reader.request;
        let Some(values) = reader.fields.read(record) else {
            return;
        };
        let mut thread = thread_index.and_then(|index| thread_at(&values, index));
        if thread.is_none() && kind.is_of_files() {
            // Version 0 names the field of the thread otherwise; the thread itself logs the event.
            thread = event.tid;
        }
        let operation = Operation {
            kind,
            hook,
            thread,
            request: request_index.and_then(|index| values.uint(index)),
        };
        self.write(context, operation, &values, event, packets);
    }

    /// Writes an event if it is selected.
    fn write<S: Storage>(
        &mut self,
        context: &Context<'_>,
        operation: Operation,
        values: &FieldValues<'_, FIELDS>,
        event: &EventRef,
        packets: &mut Packets<S>,
    ) {
        let Operation {
            kind,
            hook,
            thread,
            request,
        } = operation;
        if hook == hook::CSWITCH {
            let thread = thread_at(values, NEW_THREAD).unwrap_or(ThreadId::new(0));
            self.running.insert(event.processor, thread);
        }
        let mut hidden = [false; 2];
        if !context.selection.is_everything() {
            let is_selected = match hook {
                hook::CSWITCH => {
                    hidden = [NEW_THREAD, OLD_THREAD].map(|index| {
                        let thread = thread_at(values, index);
                        !is_thread_selected(context, thread, event.time)
                    });
                    hidden != [true; 2]
                }
                hook::READY_THREAD => is_thread_selected(context, thread, event.time),
                hook::FILE_OPERATION_END => {
                    request.is_some_and(|request| self.requests.remove(&request))
                }
                _ => {
                    let is_selected = is_thread_selected(context, thread, event.time);
                    if is_selected && let Some(request) = request {
                        self.begin_request(request);
                    }
                    is_selected
                }
            };
            if !is_selected {
                return;
            }
        }
        let logged_by = match hook {
            // The field has the thread that becomes ready. The event is logged by the thread that
            // runs on the processor.
            hook::READY_THREAD => self.running.get(&event.processor).copied(),
            _ => thread,
        };
        if event.processor >= MAX_PROCESSORS {
            self.left_out += 1;
            return;
        }
        encode(kind, values, hidden, &mut self.values);
        if let Some(opcode) = kind.opcode {
            self.values.uint(opcode, (hook & 0xff).into());
        }
        self.event.clear();
        self.event
            .uint(etw_event::TIMESTAMP, context.time.nanos(event.time));
        self.event.message(kind.message, &self.values);
        self.event.uint(etw_event::CPU, event.processor.into());
        if let Some(tid) = logged_by.or(event.tid) {
            self.event.uint(etw_event::THREAD, tid.get().into());
        }
        self.bundle.message(etw_bundle::EVENT, &self.event);
        self.events += 1;
        if self.bundle.bytes().len() >= BUNDLE {
            self.flush(packets);
        }
    }

    fn begin_request(&mut self, request: u64) {
        if self.requests.len() < MAX_OPEN {
            self.requests.insert(request);
        }
    }

    /// Writes the collected events.
    pub fn flush<S: Storage>(&mut self, packets: &mut Packets<S>) {
        if !self.bundle.bytes().is_empty() {
            packets.write(None, packet::ETW_EVENTS, &self.bundle);
            self.bundle.clear();
        }
    }
}

/// The thread whose id is in a field.
#[inline]
fn thread_at(values: &FieldValues<'_, FIELDS>, index: usize) -> Option<ThreadId> {
    values.uint(index).map(|tid| ThreadId::new(tid as u32))
}

fn is_thread_selected(context: &Context<'_>, tid: Option<ThreadId>, time: Ticks) -> bool {
    let machine = context.machine;
    let process = tid.and_then(|tid| machine.process_of_thread(tid));
    context.selection.admits(machine, process, tid, time)
}

/// Encodes the fields of an event. The threads of a switch that are `hidden` get no id.
#[inline]
fn encode(kind: &Kind, values: &FieldValues<'_, FIELDS>, hidden: [bool; 2], out: &mut Message) {
    out.clear();
    for (index, &(_, number, coding)) in kind.fields.iter().enumerate() {
        if hidden.get(index) == Some(&true) {
            continue;
        }
        if matches!(coding, Text) {
            if let Some(units) = values.text(index) {
                out.text(number, &utf16(units));
            }
            continue;
        }
        let Some(value) = values.uint(index) else {
            continue;
        };
        let byte = i64::from(value as u8 as i8);
        match coding {
            Byte => out.uint(number, byte.cast_unsigned()),
            Bit => out.uint(number, value & 1),
            ByteZigzag => out.zigzag(number, byte),
            Uint | Text => out.uint(number, value),
        }
    }
}
