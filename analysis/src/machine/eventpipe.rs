//! Processes by the events of a trace that was an EventPipe stream (`.nettrace`).

use std::borrow::Cow;

use etl_format::cursor::Cursor;
use etl_format::read::{EventHeader, ExtendedItem, Record};
use etl_format::{ProcessId, Ticks, file_name};
use etl_schema::providers::{DOTNET_EVENT_PIPE, UNIVERSAL_EVENTS, UNIVERSAL_SYSTEM};

use super::Machine;
use super::changes::{Change, Life};
use super::mapped_files::{FileIdentity, MappedFile};
use super::names::text;

/// The channel of events that describe themselves, as all events of this module do.
pub(super) const SELF_DESCRIBING: u8 = 11;

/// The event of a session about its process, which comes when the session stops.
const PROCESS_INFO: u16 = 1;

/// Bytes before the name in the description of an event: its size and its tags.
const BEFORE_NAME: usize = 3;

/// What an event states about its process.
enum ProcessEvent<'a> {
    CommandLine(String),
    /// The name of a process that started, or was there already.
    Named {
        name: Cow<'a, str>,
        is_start: bool,
    },
    Ended,
    /// A file that is mapped into its memory, for execution.
    Mapping(Mapping<'a>),
    /// The identity of files that are mapped.
    Identity(u64, Option<FileIdentity<'a>>),
    /// A function of a file that is mapped.
    Function(Function<'a>),
}

/// A file in the memory of a process.
struct Mapping<'a> {
    id: u64,
    start: u64,
    last: u64,
    path: Cow<'a, str>,
    /// The event with the identity of the file; 0 if there is none.
    identity: u64,
}

impl<'a> Mapping<'a> {
    /// By the payload of its event: its number, its first and its last address, the offset in the
    /// file, the path, and the number of its identity.
    fn of(payload: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64()?;
        let start = cursor.u64()?;
        let last = cursor.u64()?;
        cursor.take(8)?;
        let path = counted_text(&mut cursor)?;
        let identity = cursor.u64().unwrap_or(0);
        Some(Mapping {
            id,
            start,
            last,
            path,
            identity,
        })
    }
}

/// A function of a file in the memory of a process.
struct Function<'a> {
    mapping: u64,
    start: u64,
    last: u64,
    name: Cow<'a, str>,
}

impl<'a> Function<'a> {
    /// By the payload of its event: its number, the number of its mapping, its first and its last
    /// address, and its name.
    fn of(payload: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        cursor.take(8)?;
        Some(Function {
            mapping: cursor.u64()?,
            start: cursor.u64()?,
            last: cursor.u64()?,
            name: counted_text(&mut cursor)?,
        })
    }
}

/// A text after its length.
fn counted_text<'a>(cursor: &mut Cursor<'a>) -> Option<Cow<'a, str>> {
    let len = cursor.u16()?;
    Some(String::from_utf8_lossy(cursor.take(len.into())?))
}

/// The number and the identity in the payload of an event about files.
fn identity(payload: &[u8]) -> Option<ProcessEvent<'_>> {
    let mut cursor = Cursor::new(payload);
    let id = cursor.u64()?;
    let len = cursor.u16()?;
    let json = std::str::from_utf8(cursor.take(len.into())?).ok()?;
    Some(ProcessEvent::Identity(id, FileIdentity::parse(json)))
}

impl<'a> ProcessEvent<'a> {
    fn of(record: &Record<'a>, header: &EventHeader) -> Option<Self> {
        let payload = record.payload();
        match header.provider {
            DOTNET_EVENT_PIPE if header.descriptor.id == PROCESS_INFO => {
                let line = Cursor::new(payload).utf16z()?;
                Some(ProcessEvent::CommandLine(text(line)))
            }
            UNIVERSAL_SYSTEM => match event_name(record)? {
                b"ProcessCreate" => ProcessEvent::named(payload, true),
                b"ExistingProcess" => ProcessEvent::named(payload, false),
                b"ProcessExit" => Some(ProcessEvent::Ended),
                b"ProcessMapping" => Mapping::of(payload).map(ProcessEvent::Mapping),
                b"ProcessMappingMetadata" => identity(payload),
                b"ProcessSymbol" => Function::of(payload).map(ProcessEvent::Function),
                _ => None,
            },
            _ => None,
        }
    }

    /// A process by the payload of its event: its id in its namespace, and its name after a length.
    fn named(payload: &'a [u8], is_start: bool) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        cursor.take(8)?;
        let name = counted_text(&mut cursor)?;
        Some(ProcessEvent::Named { name, is_start })
    }
}

/// The name of an event that describes itself.
pub(crate) fn event_name<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    for item in record.extended() {
        if let ExtendedItem::EventSchema(schema) = item {
            return Cursor::new(schema.get(BEFORE_NAME..)?).ansiz();
        }
    }
    None
}

/// The program of a command line: the text up to a blank, or a quoted text.
fn program(command_line: &str) -> &str {
    let end = match command_line.strip_prefix('"') {
        Some(quoted) => return quoted.split('"').next().unwrap_or_default(),
        None => command_line.find(' '),
    };
    end.and_then(|end| command_line.get(..end))
        .unwrap_or(command_line)
}

impl Machine {
    /// An event that may state the name, the command line or the end of its process.
    #[inline(never)]
    pub(super) fn eventpipe_process(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        timestamp: Ticks,
    ) {
        self.has_native_stacks |= matches!(header.provider, UNIVERSAL_SYSTEM | UNIVERSAL_EVENTS);
        let Some(event) = ProcessEvent::of(record, header) else {
            return;
        };
        let pid = header.process_id;
        match &event {
            ProcessEvent::Mapping(mapping) => return self.mapped_file(pid, mapping, timestamp),
            ProcessEvent::Identity(id, Some(identity)) => {
                return self.mapped_identity(*id, identity);
            }
            ProcessEvent::Identity(_, None) => return,
            ProcessEvent::Function(function) => return self.mapped_function(pid, function),
            _ => {}
        }
        let keeps_texts = self.names.is_some();
        let index = self.process_index(header.process_id);
        let Some(process) = self.processes.get_mut(index.get()) else {
            return;
        };
        match event {
            ProcessEvent::CommandLine(line) => {
                process.name_if_unknown(file_name(program(&line)).as_bytes());
                if keeps_texts {
                    process.command_line = line.into();
                }
            }
            ProcessEvent::Named { name, is_start } => {
                process.name_if_unknown(name.as_bytes());
                if is_start {
                    process.started = Some(timestamp);
                }
            }
            ProcessEvent::Ended => process.ended = Some(timestamp),
            _ => {}
        }
    }

    /// A file that is mapped into the memory of a process: an image.
    fn mapped_file(&mut self, pid: ProcessId, mapping: &Mapping<'_>, timestamp: Ticks) {
        let &Mapping { start, last, .. } = mapping;
        let Some(size) = last.checked_sub(start).and_then(|size| size.checked_add(1)) else {
            return;
        };
        let units = mapping.path.encode_utf16();
        let path: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        let process = self.process_index(pid);
        let tag = self.add_image(pid, start, &path, false);
        let image = tag.id;
        if let Some(names) = &mut self.names {
            names.image(image, &path);
        }
        let file = MappedFile { image, start, last };
        self.mapped_files.add(pid, mapping.id, file);
        if let Some(pdb) = self.mapped_files.pdb(mapping.identity) {
            self.images.set_pdb(image, pdb);
        }
        self.changed(|| Change::Image {
            life: Life::Begun,
            process,
            image,
        });
        if let Some(process) = self.processes.get_mut(process.get()) {
            process.images.add(start, size, Some(timestamp), tag);
        }
    }

    /// The identity of files that are mapped later.
    fn mapped_identity(&mut self, id: u64, identity: &FileIdentity<'_>) {
        self.mapped_files.add_pdb(id, identity.pdb);
        if let Some(names) = &mut self.names {
            names.pdb(identity.pdb, identity.pdb_path.as_bytes());
        }
    }

    /// A function of a file that is mapped.
    fn mapped_function(&mut self, pid: ProcessId, function: &Function<'_>) {
        let Some(names) = &mut self.names else {
            return;
        };
        let Some(file) = self.mapped_files.get(pid, function.mapping) else {
            return;
        };
        // Without rights, the kernel's list of its own functions has only zeros as addresses.
        if file.contains(function.start) {
            names.function(file.image, function.start, function.last, &function.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn program_is_the_first_word_of_a_command_line() {
        assert_eq!(
            program("/usr/bin/dotnet app.dll --port 1"),
            "/usr/bin/dotnet"
        );
        assert_eq!(
            program("\"C:\\Program Files\\a.exe\" -x"),
            "C:\\Program Files\\a.exe"
        );
        assert_eq!(program("app"), "app");
        assert_eq!(program(""), "");
    }
}
