//! Events of drivers that interrupt threads, and of page faults that read from disks.

use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{PAGE_FAULT, PERF_INFO};

use super::ClassicIdentity;
use crate::error::Result;
use crate::etw::{Etw, LogTarget, Origin, values};
use crate::model::KernelEvent;
use crate::time::Nanos;
use crate::truth::RecordFormat;

/// The vector of the interrupts of devices.
const VECTOR: u16 = 0x91;

/// A routine of a driver that has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverCall {
    pub event: KernelEvent,
    /// Its address.
    pub routine: u64,
    /// When it began.
    pub since: Nanos,
}

/// A page that a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageIn {
    /// When the thread touched it.
    pub since: Nanos,
    /// First byte in the file, and bytes that were read.
    pub offset: u64,
    pub bytes: u32,
    /// The key of the file.
    pub key: u64,
    /// The address that the thread touched.
    pub address: u64,
}

impl Etw<'_> {
    /// Logs a routine of a driver that returns now. Its begin is a timestamp of each session.
    pub fn log_call(&mut self, call: &DriverCall, origin: &Origin) -> Result<()> {
        let event = call.event;
        let mut more = Vec::new();
        if matches!(event, KernelEvent::Isr | KernelEvent::MessageIsr) {
            // It handled the interrupt of its device.
            more.extend(values![1u8, VECTOR, 0u8]);
        }
        if event == KernelEvent::MessageIsr {
            more.push(OwnedValue::from(0u32));
        }
        let layout = if event == KernelEvent::Isr { 2 } else { 0 };
        let identity = ClassicIdentity {
            class: PERF_INFO,
            opcode: event.hook() as u8,
            layout,
            version: 2,
        };
        let format = RecordFormat::PerfInfo(event.hook());
        let routine = OwnedValue::Pointer(call.routine);
        for session in self.sessions_that_log(event) {
            let since = self.timestamp(session, call.since).cast_unsigned();
            let mut values = vec![OwnedValue::from(since), routine.clone()];
            values.extend(more.iter().cloned());
            let to = LogTarget::Session(session);
            self.log_classic(to, identity, format, &values, origin)?;
        }
        Ok(())
    }

    /// Logs that a page was read which a thread waited for.
    pub fn log_hard_fault(&mut self, page: &PageIn, tid: u32, origin: &Origin) -> Result<()> {
        let event = KernelEvent::HardFault;
        let identity = ClassicIdentity {
            class: PAGE_FAULT,
            opcode: event.hook() as u8,
            layout: 0,
            version: 2,
        };
        let key = self.kernel_pointer(page.key);
        for session in self.sessions_that_log(event) {
            let since = self.timestamp(session, page.since).cast_unsigned();
            let values = values![
                since,
                page.offset,
                OwnedValue::Pointer(page.address),
                key.clone(),
                tid,
                page.bytes
            ];
            let to = LogTarget::Session(session);
            let format = RecordFormat::PerfInfo(event.hook());
            self.log_classic(to, identity, format, &values, origin)?;
        }
        Ok(())
    }

    /// The running sessions that log a kind of event.
    fn sessions_that_log(&self, event: KernelEvent) -> Vec<usize> {
        let mut indices = Vec::new();
        for (index, session) in self.sessions.iter().enumerate() {
            if session.is_running() && session.kernel.logs(event) {
                indices.push(index);
            }
        }
        indices
    }
}
