//! The interface through which a simulation reports what it does.

use core::ops::Range;

use super::{
    BufferReport, CommandReport, ImageIdentity, InterruptReport, InventoryItem, IoReport,
    RaisedEvent, Refusal, SessionReport,
};
use etl_format::{FileTime, Guid};

use crate::error::Result;
use crate::model::{EnablePlan, Fault, KernelFlags, Scenario};
use crate::time::Nanos;

/// Something that happens in a simulation. Sessions are identified by their index, in the order in
/// which they started.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Fact<'a> {
    /// The simulation of a scenario starts.
    Scenario(&'a Scenario),
    /// An event was raised. Its outcomes say which sessions recorded it.
    Event(&'a RaisedEvent<'a>),
    /// A session has started.
    #[non_exhaustive]
    SessionStarted {
        /// The session.
        session: usize,
        /// Its name.
        name: &'a str,
        /// Its file.
        file: Option<&'a str>,
    },
    /// A session enabled a provider, or enabled it with other settings.
    #[non_exhaustive]
    ProviderEnabled {
        /// The session.
        session: usize,
        /// The provider and the settings.
        plan: &'a EnablePlan,
        /// Simulated time.
        at: Nanos,
        /// Wall-clock time.
        filetime: FileTime,
    },
    /// A session disabled a provider.
    #[non_exhaustive]
    ProviderDisabled {
        /// The session.
        session: usize,
        /// The provider.
        provider: Guid,
        /// Simulated time.
        at: Nanos,
        /// Wall-clock time.
        filetime: FileTime,
    },
    /// A session set the flags of the kernel's events.
    #[non_exhaustive]
    KernelFlags {
        /// The session.
        session: usize,
        /// The flags.
        flags: &'a KernelFlags,
        /// Simulated time.
        at: Nanos,
    },
    /// A session has ended.
    SessionEnded(&'a SessionReport),
    /// The outcome of a buffer of a session is known, or has changed: a buffer in a file is
    /// reported again when it is overwritten or damaged.
    #[non_exhaustive]
    Buffer {
        /// The session.
        session: usize,
        /// The buffer.
        buffer: &'a BufferReport,
    },
    /// A fault changed bytes of a file. Bytes after the end of a truncated file no longer exist.
    #[non_exhaustive]
    Fault {
        /// The session.
        session: usize,
        /// The fault.
        fault: Fault,
        /// The file.
        file: &'a str,
        /// The changed bytes.
        bytes: &'a Range<u64>,
    },
    /// ETW refused the request of a controller.
    Refused(&'a Refusal),
    /// A tool has performed its command line, or has failed.
    Command(&'a CommandReport),
    /// A controller or the system did something that is not an event, described in words.
    #[non_exhaustive]
    Action {
        /// Simulated time.
        at: Nanos,
        /// What it did.
        description: &'a str,
    },
    /// Files were merged.
    #[non_exhaustive]
    Merged {
        /// The merged file.
        output: &'a str,
        /// The files.
        inputs: &'a [String],
    },
    /// A merge wrote the identity of an image.
    #[non_exhaustive]
    Identity {
        /// The merged file.
        file: &'a str,
        /// The image.
        image: &'a ImageIdentity,
    },
    /// Code of a method was loaded or unloaded. The code that a process still has when it exits is
    /// not reported as unloaded.
    #[non_exhaustive]
    Code {
        /// Simulated time.
        at: Nanos,
        /// Whether it was loaded; `false` if it was unloaded.
        loaded: bool,
        /// The code.
        code: &'a InventoryItem<'a>,
    },
    /// A process, or a disk for it, has done something with a file or over the network.
    Io(&'a IoReport),
    /// A routine of a driver that interrupted a processor has returned.
    Interrupt(&'a InterruptReport),
    /// An item that exists when the simulation ends.
    Inventory(&'a InventoryItem<'a>),
}

/// Observer of a simulation. `()` ignores everything.
pub trait Observer {
    /// Observes a fact.
    ///
    /// # Errors
    /// The observer cannot record it; the simulation ends.
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()>;
}

impl Observer for () {
    fn observe(&mut self, _: &Fact<'_>) -> Result<()> {
        Ok(())
    }
}
