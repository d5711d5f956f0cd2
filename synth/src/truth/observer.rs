//! The interface through which a simulation reports what it does.

use core::ops::Range;

use super::{BufferReport, ImageIdentity, InventoryItem, RaisedEvent, Refusal, SessionReport};
use crate::error::Result;
use crate::model::{EnablePlan, Fault, KernelFlags, Scenario};
use crate::time::Nanos;

/// Observer of a simulation; every method defaults to a no-op.
///
/// Sessions are identified by their index, in the order in which they started. An error ends the
/// simulation.
pub trait Observer {
    /// The simulation of a scenario starts.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn scenario_started(&mut self, scenario: &Scenario) -> Result<()> {
        let _ = scenario;
        Ok(())
    }

    /// An event was raised. Its outcomes say which sessions recorded it.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn event_raised(&mut self, event: &RaisedEvent<'_>) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// A session has started.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn session_started(&mut self, session: usize, name: &str, file: Option<&str>) -> Result<()> {
        let _ = (session, name, file);
        Ok(())
    }

    /// A session enabled a provider, or enabled it with other settings. `filetime` is the
    /// wall-clock time.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn provider_enabled(
        &mut self,
        session: usize,
        plan: &EnablePlan,
        at: Nanos,
        filetime: i64,
    ) -> Result<()> {
        let _ = (session, plan, at, filetime);
        Ok(())
    }

    /// A session set the flags of the kernel's events.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn kernel_flags_set(&mut self, session: usize, flags: &KernelFlags, at: Nanos) -> Result<()> {
        let _ = (session, flags, at);
        Ok(())
    }

    /// A session has ended.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn session_ended(&mut self, report: &SessionReport) -> Result<()> {
        let _ = report;
        Ok(())
    }

    /// The outcome of a buffer is known, or has changed: a buffer in a file is reported again when
    /// it is overwritten or damaged.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn buffer_changed(&mut self, session: usize, buffer: &BufferReport) -> Result<()> {
        let _ = (session, buffer);
        Ok(())
    }

    /// A fault changed bytes of a file. Bytes after the end of a truncated file no longer exist.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn fault_applied(
        &mut self,
        session: usize,
        fault: &Fault,
        file: &str,
        bytes: &Range<u64>,
    ) -> Result<()> {
        let _ = (session, fault, file, bytes);
        Ok(())
    }

    /// ETW refused the request of a controller.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn request_refused(&mut self, refusal: &Refusal) -> Result<()> {
        let _ = refusal;
        Ok(())
    }

    /// A controller or the system did something that is not an event, described in words.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn action(&mut self, at: Nanos, description: &str) -> Result<()> {
        let _ = (at, description);
        Ok(())
    }

    /// Files were merged.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn files_merged(&mut self, output: &str, inputs: &[String]) -> Result<()> {
        let _ = (output, inputs);
        Ok(())
    }

    /// A merge wrote the identity of an image into its output.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn image_identified(&mut self, file: &str, image: &ImageIdentity) -> Result<()> {
        let _ = (file, image);
        Ok(())
    }

    /// Code of a method was loaded or unloaded. The code that a process still has when it exits is
    /// not reported as unloaded.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn code_changed(&mut self, at: Nanos, loaded: bool, code: &InventoryItem<'_>) -> Result<()> {
        let _ = (at, loaded, code);
        Ok(())
    }

    /// An item that exists when the simulation ends.
    ///
    /// # Errors
    /// The observer cannot record it.
    fn inventory_item(&mut self, item: &InventoryItem<'_>) -> Result<()> {
        let _ = item;
        Ok(())
    }
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {}
