//! The truth in memory.

use core::ops::Range;

use etl_format::constants::PointerSize;
use etl_format::{EventDescriptor, Guid, ProcessId, ThreadId, Ticks};
use etl_schema::encode::OwnedValue;

use super::{
    BufferReport, CommandReport, EventOutcome, Fact, ImageIdentity, InterruptReport, InventoryItem,
    IoReport, Observer, RaisedEvent, RecordFormat, Refusal, SessionOutcome, SessionReport,
};
use crate::error::Result;
use crate::model::{Fault, KernelFlags, NamedValue};
use crate::time::Nanos;

/// An event that was raised: [`RaisedEvent`] with its own data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KnownEvent {
    /// Position in the order in which events are raised, from 0.
    pub number: u64,
    /// Simulated time.
    pub at: Nanos,
    /// The performance counter at that time.
    pub timestamp: Ticks,
    /// The processor.
    pub processor: u16,
    /// The process id.
    pub pid: ProcessId,
    /// The thread id.
    pub tid: ThreadId,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The activity id, or zero.
    pub activity: Guid,
    /// The activity that started this one.
    pub related_activity: Option<Guid>,
    /// The record format.
    pub format: RecordFormat,
    /// The provider or class.
    pub provider: Guid,
    /// Id, version, level and so on.
    pub descriptor: EventDescriptor,
    /// Name of the event.
    pub name: String,
    /// Its fields.
    pub fields: Vec<NamedValue<OwnedValue>>,
    /// The stack of the event, innermost frame first.
    pub stack: Vec<u64>,
    /// Sessions whose record of the event contains the stack.
    pub stack_sessions: Vec<usize>,
    /// The outcome in each session.
    pub outcomes: Vec<SessionOutcome>,
}

impl KnownEvent {
    /// The value of the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&OwnedValue> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(&field.value)
    }

    /// The value of the first field with this name, if it is an unsigned number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.as_u64()
    }

    /// The outcome in a session, if it enables or has enabled the provider.
    #[must_use]
    pub fn outcome(&self, session: usize) -> Option<EventOutcome> {
        let entry = self
            .outcomes
            .iter()
            .find(|entry| entry.session == session)?;
        Some(entry.outcome)
    }

    fn new(e: &RaisedEvent<'_>) -> Self {
        let mut fields = Vec::with_capacity(e.values.len());
        for (field, value) in e.schema.fields.iter().zip(e.values) {
            fields.push(NamedValue {
                name: field.name.to_string(),
                value: value.clone(),
            });
        }
        KnownEvent {
            number: e.number,
            at: e.at,
            timestamp: e.timestamp,
            processor: e.processor,
            pid: e.pid,
            tid: e.tid,
            pointer_size: e.pointer_size,
            activity: e.activity,
            related_activity: e.related_activity,
            format: e.format,
            provider: e.provider,
            descriptor: e.descriptor,
            name: e.schema.name.to_string(),
            fields,
            stack: e.stack.to_vec(),
            stack_sessions: e.stack_sessions.to_vec(),
            outcomes: e.outcomes.to_vec(),
        }
    }
}

/// Code of a method that was loaded or unloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownCode {
    /// Simulated time.
    pub at: Nanos,
    /// Whether it was loaded; `false` if it was unloaded.
    pub loaded: bool,
    /// The process id.
    pub pid: ProcessId,
    /// The instance id of the CLR.
    pub clr_instance: u16,
    /// The id of the method.
    pub method_id: u64,
    /// The id of its module.
    pub module_id: u64,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// Namespace and type.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl KnownCode {
    fn new(at: Nanos, loaded: bool, item: &InventoryItem<'_>) -> Option<Self> {
        let &InventoryItem::Code {
            pid,
            clr_instance,
            method_id,
            module_id,
            start,
            size,
            namespace,
            name,
        } = item
        else {
            return None;
        };
        Some(KnownCode {
            at,
            loaded,
            pid,
            clr_instance,
            method_id,
            module_id,
            start,
            size,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// A report of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownBuffer {
    /// The session.
    pub session: usize,
    /// The buffer, and what happened to it.
    pub report: BufferReport,
}

/// Bytes that a fault changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownFault {
    /// The session.
    pub session: usize,
    /// The fault.
    pub fault: Fault,
    /// The file.
    pub file: String,
    /// The bytes. Bytes after the end of a truncated file no longer exist.
    pub bytes: Range<u64>,
}

/// A merge of files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownMerge {
    /// The merged file.
    pub output: String,
    /// The files.
    pub inputs: Vec<String>,
}

/// The identity of an image that a merge wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownIdentity {
    /// The merged file.
    pub file: String,
    /// The image.
    pub image: ImageIdentity,
}

/// Flags of the kernel's events that a session set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownKernelFlags {
    /// The session.
    pub session: usize,
    /// The flags.
    pub flags: KernelFlags,
}

/// Keeps everything that it observes. Sessions are identified by their index.
///
/// ```
/// use etl_synth::truth::InMemoryTruth;
/// use etl_synth::{Script, Simulation};
///
/// let script = r#"
///     process "App.exe" { clr "core"; at "1.5s" { gc 2 } }
///     at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords="GC" level=4 } }
///     at "2s" { stop "clr" }
/// "#;
/// let scenario = Script::new("gc", script).parse()?;
/// let mut truth = InMemoryTruth::default();
/// Simulation::new(&scenario).observer(&mut truth).run_in_memory()?;
/// let start = truth.recorded(0).find(|event| event.name.starts_with("GCStart"));
/// let start = start.ok_or("a collection starts")?;
/// assert_eq!(start.number("Depth"), Some(2));
/// assert_eq!(truth.sessions[0].events_recorded, truth.recorded(0).count() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InMemoryTruth {
    /// Events in the order in which they were raised.
    pub events: Vec<KnownEvent>,
    /// Buffers of the sessions. The last report of a buffer is valid.
    pub buffers: Vec<KnownBuffer>,
    /// Bytes that faults changed.
    pub faults: Vec<KnownFault>,
    /// Merges of files.
    pub merges: Vec<KnownMerge>,
    /// Identities of images that merges wrote.
    pub identities: Vec<KnownIdentity>,
    /// Flags of the kernel's events that sessions set.
    pub kernel: Vec<KnownKernelFlags>,
    /// How the sessions ended.
    pub sessions: Vec<SessionReport>,
    /// Requests that ETW refused.
    pub refused: Vec<Refusal>,
    /// Command lines of tools, and their exit codes.
    pub commands: Vec<CommandReport>,
    /// Code that was loaded and unloaded, in that order.
    pub code: Vec<KnownCode>,
    /// What processes and disks did with files and over the network, in the order of the ends.
    pub io: Vec<IoReport>,
    /// Routines of drivers that interrupted processors, in the order of their ends.
    pub interrupts: Vec<InterruptReport>,
    /// Items that exist at the end: one JSON object each, as in `truth.jsonl`.
    pub inventory: Vec<String>,
}

impl InMemoryTruth {
    /// Events that a session recorded.
    pub fn recorded(&self, session: usize) -> impl Iterator<Item = &KnownEvent> {
        self.events
            .iter()
            .filter(move |e| e.outcome(session) == Some(EventOutcome::Recorded))
    }
}

impl Observer for InMemoryTruth {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        match *fact {
            Fact::Event(event) => self.events.push(KnownEvent::new(event)),
            Fact::SessionEnded(report) => self.sessions.push(report.clone()),
            Fact::Buffer { session, buffer } => {
                self.buffers.push(KnownBuffer {
                    session,
                    report: buffer.clone(),
                });
            }
            Fact::Refused(refusal) => self.refused.push(refusal.clone()),
            Fact::Command(report) => self.commands.push(report.clone()),
            Fact::Fault {
                session,
                fault,
                file,
                bytes,
            } => {
                let file = file.to_owned();
                self.faults.push(KnownFault {
                    session,
                    fault,
                    file,
                    bytes: bytes.clone(),
                });
            }
            Fact::Identity { file, image } => {
                let file = file.to_owned();
                self.identities.push(KnownIdentity {
                    file,
                    image: image.clone(),
                });
            }
            Fact::KernelFlags { session, flags, .. } => {
                self.kernel.push(KnownKernelFlags {
                    session,
                    flags: flags.clone(),
                });
            }
            Fact::Merged { output, inputs } => {
                let output = output.to_owned();
                self.merges.push(KnownMerge {
                    output,
                    inputs: inputs.to_vec(),
                });
            }
            Fact::Interrupt(report) => self.interrupts.push(report.clone()),
            Fact::Io(report) => self.io.push(report.clone()),
            Fact::Code { at, loaded, code } => self.code.extend(KnownCode::new(at, loaded, code)),
            Fact::Inventory(item) => {
                self.inventory
                    .push(serde_json::to_string(item).map_err(std::io::Error::from)?);
            }
            _ => {}
        }
        Ok(())
    }
}
