//! The truth in memory.

use core::ops::Range;

use etl_format::constants::PointerSize;
use etl_format::{EventDescriptor, Guid};
use etl_schema::encode::OwnedValue;

use super::{
    BufferReport, CommandReport, EventOutcome, Fact, ImageIdentity, InventoryItem, IoReport,
    Observer, RaisedEvent, RecordFormat, Refusal, SessionReport,
};
use crate::error::Result;
use crate::model::{Fault, KernelFlags};
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
    pub timestamp: i64,
    /// The processor.
    pub processor: u16,
    /// The process id.
    pub pid: u32,
    /// The thread id.
    pub tid: u32,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The activity id, or zero.
    pub activity: Guid,
    /// The activity from which this one was started.
    pub related_activity: Option<Guid>,
    /// The record format.
    pub format: RecordFormat,
    /// The provider or class.
    pub provider: Guid,
    /// Id, version, level and so on.
    pub descriptor: EventDescriptor,
    /// Name of the event.
    pub name: String,
    /// Names and values of its fields.
    pub fields: Vec<(String, OwnedValue)>,
    /// The stack of the event, innermost frame first.
    pub stack: Vec<u64>,
    /// Sessions whose record of the event contains the stack.
    pub stack_sessions: Vec<usize>,
    /// The outcome in each session.
    pub outcomes: Vec<(usize, EventOutcome)>,
}

impl KnownEvent {
    /// The value of the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&OwnedValue> {
        let (_, value) = self.fields.iter().find(|(field, _)| field == name)?;
        Some(value)
    }

    /// The value of the first field with this name, if it is an unsigned number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.as_u64()
    }

    fn new(e: &RaisedEvent<'_>) -> Self {
        let names = e.schema.fields.iter().map(|f| f.name.to_string());
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
            fields: names.zip(e.values.iter().cloned()).collect(),
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
    pub pid: u32,
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
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(KnownCode {
            at,
            loaded,
            pid,
            clr_instance,
            method_id,
            module_id,
            start,
            size,
            namespace,
            name,
        })
    }
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
    /// Sessions and their buffers. The last report of a buffer is valid.
    pub buffers: Vec<(usize, BufferReport)>,
    /// Bytes that faults changed: session, fault, file, byte range.
    pub faults: Vec<(usize, Fault, String, Range<u64>)>,
    /// Merges: output and inputs.
    pub merges: Vec<(String, Vec<String>)>,
    /// Identities that merges wrote: file and image.
    pub identities: Vec<(String, ImageIdentity)>,
    /// Flags of the kernel's events that sessions set.
    pub kernel: Vec<(usize, KernelFlags)>,
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
    /// Items that exist at the end: one JSON object each, as in `truth.jsonl`.
    pub inventory: Vec<String>,
}

impl InMemoryTruth {
    /// Events that a session recorded.
    pub fn recorded(&self, session: usize) -> impl Iterator<Item = &KnownEvent> {
        self.events.iter().filter(move |e| e.outcomes.contains(&(session, EventOutcome::Recorded)))
    }
}

impl Observer for InMemoryTruth {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        match *fact {
            Fact::Event(event) => self.events.push(KnownEvent::new(event)),
            Fact::SessionEnded(report) => self.sessions.push(report.clone()),
            Fact::Buffer(session, buffer) => self.buffers.push((session, buffer.clone())),
            Fact::Refused(refusal) => self.refused.push(refusal.clone()),
            Fact::Command(report) => self.commands.push(report.clone()),
            Fact::Fault { session, fault, file, bytes } => {
                self.faults.push((session, fault, file.to_owned(), bytes.clone()));
            }
            Fact::Identity(file, image) => self.identities.push((file.to_owned(), image.clone())),
            Fact::KernelFlags { session, flags, .. } => self.kernel.push((session, flags.clone())),
            Fact::Merged { output, inputs } => {
                self.merges.push((output.to_owned(), inputs.to_vec()));
            }
            Fact::Io(report) => self.io.push(report.clone()),
            Fact::Code { at, loaded, code } => self.code.extend(KnownCode::new(at, loaded, code)),
            Fact::Inventory(item) => {
                self.inventory.push(serde_json::to_string(item).map_err(std::io::Error::from)?);
            }
            _ => {}
        }
        Ok(())
    }
}
