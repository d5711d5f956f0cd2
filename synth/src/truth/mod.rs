//! What happened, for whoever wants to know whether a decoder found it.
//!
//! A [`Witness`] is told of each event that was raised and of what every session did with it, of how
//! each session ended, and of what is there at the end. [`Lines`] writes that down as JSON lines,
//! [`Gathered`] keeps it in memory.

mod gathered;
mod json;
mod lines;
mod timeline;

pub use gathered::{Gathered, KnownCode, KnownEvent};
pub use lines::Lines;
pub use timeline::Timeline;

use core::ops::Range;

use etl_format::Guid;

use crate::error::Result;
use crate::etw::{BufferReport, ImageIdentity, Raised, Refusal, SessionReport};
use crate::machine::Nanos;
use crate::model::{EnablePlan, Fault, KernelFlags, Scenario};

/// Version of what [`Lines`] writes; it grows when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// Watches a simulation: what it does not care for, it is told of all the same, and does nothing.
pub trait Witness {
    /// It begins: this is what is simulated.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn begins(&mut self, scenario: &Scenario) -> Result<()> {
        let _ = scenario;
        Ok(())
    }

    /// An event was raised; the sessions have got it or not.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn event(&mut self, event: &Raised<'_>) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// A session has started: its index, name, and file.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn session_started(&mut self, index: usize, name: &str, file: Option<&str>) -> Result<()> {
        let _ = (index, name, file);
        Ok(())
    }

    /// A session, by its index, has enabled a provider, or asks something else of it from now on; `time` is
    /// the wall clock then, FILETIME.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn enabled(&mut self, session: usize, plan: &EnablePlan, at: Nanos, time: i64) -> Result<()> {
        let _ = (session, plan, at, time);
        Ok(())
    }

    /// A session that has started asks the kernel for its events.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn kernel(&mut self, session: usize, flags: &KernelFlags, at: Nanos) -> Result<()> {
        let _ = (session, flags, at);
        Ok(())
    }

    /// A session has ended.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn session(&mut self, session: &SessionReport) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Something became of a buffer of a session, by its index. A buffer in a file is told of again
    /// when it is overwritten or damaged later.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn buffer(&mut self, session: usize, buffer: &BufferReport) -> Result<()> {
        let _ = (session, buffer);
        Ok(())
    }

    /// A fault changed bytes of a file of a session, by its index; behind the new end of a file that
    /// was cut off, they are gone.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn fault(
        &mut self,
        session: usize,
        fault: &Fault,
        file: &str,
        bytes: &Range<u64>,
    ) -> Result<()> {
        let _ = (session, fault, file, bytes);
        Ok(())
    }

    /// A controller was refused what it asked for.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn refused(&mut self, refusal: &Refusal) -> Result<()> {
        let _ = refusal;
        Ok(())
    }

    /// Somebody did something that is no event: a controller, or the system.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn happened(&mut self, at: Nanos, what: &str) -> Result<()> {
        let _ = (at, what);
        Ok(())
    }

    /// Files were merged into one.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn merged(&mut self, output: &str, inputs: &[String]) -> Result<()> {
        let _ = (output, inputs);
        Ok(())
    }

    /// A merge has told in its file what an image is.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn identified(&mut self, file: &str, image: &ImageIdentity) -> Result<()> {
        let _ = (file, image);
        Ok(())
    }

    /// Code of a method is there from a moment on, or is gone from then on. What a process still has when it
    /// exits goes with it and is not told of.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn code(&mut self, at: Nanos, there: bool, code: &Present<'_>) -> Result<()> {
        let _ = (at, there, code);
        Ok(())
    }

    /// Something is there at the end.
    ///
    /// # Errors
    /// Whatever keeps it from noting that.
    fn present(&mut self, thing: &Present<'_>) -> Result<()> {
        let _ = thing;
        Ok(())
    }
}

/// Something that is there when the simulation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Present<'a> {
    /// A process.
    Process {
        /// Its id.
        pid: u32,
        /// Its name.
        name: &'a str,
        /// When it ended, if it did.
        exited: Option<Nanos>,
    },
    /// A thread that has not ended.
    Thread {
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
    },
    /// A native image.
    Image {
        /// Its process.
        pid: u32,
        /// Its path.
        path: &'a str,
        /// First address.
        base: u64,
        /// Bytes.
        size: u64,
        /// Signature and age of its PDB, if it has one.
        pdb: Option<(Guid, u32)>,
    },
    /// An app domain.
    AppDomain {
        /// Its process.
        pid: u32,
        /// Its CLR.
        clr: u16,
        /// Its id.
        id: u64,
        /// Its name.
        name: &'a str,
    },
    /// An assembly.
    Assembly {
        /// Its process.
        pid: u32,
        /// Its CLR.
        clr: u16,
        /// Its id.
        id: u64,
        /// The id of its domain.
        domain: u64,
        /// Its full name.
        name: &'a str,
    },
    /// A module.
    Module {
        /// Its process.
        pid: u32,
        /// Its CLR.
        clr: u16,
        /// Its id.
        id: u64,
        /// The id of its assembly.
        assembly: u64,
        /// Path of its IL.
        path: &'a str,
        /// Signature of its PDB.
        pdb: Guid,
    },
    /// Code of a method.
    Code {
        /// Its process.
        pid: u32,
        /// Its CLR.
        clr: u16,
        /// The method's id.
        method: u64,
        /// The id of its module.
        module: u64,
        /// First address.
        start: u64,
        /// Bytes.
        size: u32,
        /// Namespace and type.
        namespace: &'a str,
        /// Name.
        name: &'a str,
    },
}

/// Notes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Witness for Nobody {}
