//! The truth in memory.

use core::ops::Range;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::write::record::Descriptor;
use etl_schema::encode::OwnedValue;

use super::{Present, Witness};
use crate::error::Result;
use crate::etw::{BufferReport, Form, ImageIdentity, Outcome, Raised, Refusal, SessionReport};
use crate::machine::Nanos;
use crate::model::{Fault, KernelFlags};

/// An event that was raised.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownEvent {
    /// Counts from 0 in the order in which events are raised.
    pub number: u64,
    /// When.
    pub at: Nanos,
    /// The performance counter then.
    pub timestamp: i64,
    /// On which processor.
    pub processor: u16,
    /// In which process.
    pub pid: u32,
    /// In which thread.
    pub tid: u32,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The activity, or zero.
    pub activity: Guid,
    /// The activity that this one was started from.
    pub related: Option<Guid>,
    /// How its record is built.
    pub form: Form,
    /// The provider or class.
    pub provider: Guid,
    /// Id, version, level and so on.
    pub descriptor: Descriptor,
    /// Name of the event.
    pub name: String,
    /// Names and values of its fields.
    pub fields: Vec<(String, OwnedValue)>,
    /// The stack that goes with it.
    pub stack: Vec<u64>,
    /// Sessions whose record of it holds that stack.
    pub stacked: Vec<usize>,
    /// What each session did with it.
    pub outcomes: Vec<(usize, Outcome)>,
}

/// Code of a method that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCode {
    /// When.
    pub at: Nanos,
    /// Whether it came.
    pub there: bool,
    /// Its process.
    pub pid: u32,
    /// Its CLR.
    pub clr: u16,
    /// The method's id.
    pub method: u64,
    /// The id of its module.
    pub module: u64,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// Namespace and type, and name.
    pub name: (String, String),
}

/// Keeps everything in memory.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The events, in the order in which they were raised.
    pub events: Vec<KnownEvent>,
    /// What became of buffers: the index of the session, and the buffer. The last word on a buffer
    /// is what counts.
    pub buffers: Vec<(usize, BufferReport)>,
    /// What faults did to files: the index of the session, the fault, the file, the bytes.
    pub faults: Vec<(usize, Fault, String, Range<u64>)>,
    /// Files that were merged: what came out, and of what.
    pub merges: Vec<(String, Vec<String>)>,
    /// What merges told of images: the file, and the image.
    pub identities: Vec<(String, ImageIdentity)>,
    /// What sessions asked the kernel for: the index of the session, and the flags.
    pub kernel: Vec<(usize, KernelFlags)>,
    /// How the sessions ended.
    pub sessions: Vec<SessionReport>,
    /// What controllers were refused.
    pub refused: Vec<Refusal>,
    /// Code that came and went, in the order in which it did.
    pub codes: Vec<KnownCode>,
    /// What is there at the end, a line of JSON for each thing.
    pub present: Vec<String>,
}

impl Gathered {
    /// Events that a session has put into its buffers.
    pub fn recorded(&self, session: usize) -> impl Iterator<Item = &KnownEvent> {
        self.events.iter().filter(move |e| e.outcomes.contains(&(session, Outcome::Recorded)))
    }
}

impl Witness for Gathered {
    fn event(&mut self, e: &Raised<'_>) -> Result<()> {
        let names = e.schema.fields.iter().map(|f| f.name.to_string());
        self.events.push(KnownEvent {
            number: e.number,
            at: e.at,
            timestamp: e.timestamp,
            processor: e.processor,
            pid: e.pid,
            tid: e.tid,
            pointer_size: e.pointer_size,
            activity: e.activity,
            related: e.related,
            form: e.form,
            provider: e.provider,
            descriptor: e.descriptor,
            name: e.schema.name.to_string(),
            fields: names.zip(e.values.iter().cloned()).collect(),
            stack: e.stack.to_vec(),
            stacked: e.stacked.to_vec(),
            outcomes: e.outcomes.to_vec(),
        });
        Ok(())
    }

    fn session_started(&mut self, _: usize, _: &str, _: Option<&str>) -> Result<()> {
        Ok(())
    }

    fn session(&mut self, session: &SessionReport) -> Result<()> {
        self.sessions.push(session.clone());
        Ok(())
    }

    fn buffer(&mut self, session: usize, buffer: &BufferReport) -> Result<()> {
        self.buffers.push((session, buffer.clone()));
        Ok(())
    }

    fn refused(&mut self, refusal: &Refusal) -> Result<()> {
        self.refused.push(refusal.clone());
        Ok(())
    }

    fn fault(
        &mut self,
        session: usize,
        fault: &Fault,
        file: &str,
        bytes: &Range<u64>,
    ) -> Result<()> {
        self.faults.push((session, *fault, file.to_owned(), bytes.clone()));
        Ok(())
    }

    fn identified(&mut self, file: &str, image: &ImageIdentity) -> Result<()> {
        self.identities.push((file.to_owned(), image.clone()));
        Ok(())
    }

    fn kernel(&mut self, session: usize, flags: &KernelFlags, _: Nanos) -> Result<()> {
        self.kernel.push((session, flags.clone()));
        Ok(())
    }

    fn merged(&mut self, output: &str, inputs: &[String]) -> Result<()> {
        self.merges.push((output.to_owned(), inputs.to_vec()));
        Ok(())
    }

    fn code(&mut self, at: Nanos, there: bool, code: &Present<'_>) -> Result<()> {
        if let Present::Code { pid, clr, method, module, start, size, namespace, name } = *code {
            let name = (namespace.to_owned(), name.to_owned());
            let known = KnownCode { at, there, pid, clr, method, module, start, size, name };
            self.codes.push(known);
        }
        Ok(())
    }

    fn present(&mut self, thing: &Present<'_>) -> Result<()> {
        let mut line = Vec::new();
        super::lines::present(thing, &mut line);
        self.present.push(String::from_utf8_lossy(&line).into_owned());
        Ok(())
    }
}
