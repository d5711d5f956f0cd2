//! Devices interrupt processors: their drivers run for a time, and threads wait meanwhile.

use crate::error::{Error, Result};
use crate::kernel::{self, DriverCall};
use crate::machine::Image;
use crate::model::{Action, DpcKind, InterruptPlan, KernelEvent, Scenario};
use crate::time::Nanos;
use crate::truth::{Fact, InterruptReport};

use super::Simulator;

/// Where routines are in a driver: service routines, then deferred calls by kind.
const ISR: u64 = 0x1000;
const DPC: u64 = 0x2000;
const TIMER_DPC: u64 = 0x2100;
const THREADED_DPC: u64 = 0x2200;

/// Where drivers are that only interrupts name, and how large they are.
const DRIVERS: u64 = 0xffff_f800_1300_0000;
pub(super) const DRIVER_SIZE: u64 = 0x10_0000;

/// A driver that only interrupts name.
pub(super) struct Driver {
    pub path: String,
    pub base: u64,
}

/// The drivers of the interrupts of a scenario, each once, without the images that every kernel
/// has.
pub(super) fn drivers(scenario: &Scenario, known: &[&str]) -> Vec<Driver> {
    let mut drivers: Vec<Driver> = Vec::new();
    for step in &scenario.steps {
        let Action::Interrupt(plan) = &step.action else {
            continue;
        };
        let is_known = known.iter().any(|path| has_name(path, &plan.driver));
        if is_known || drivers.iter().any(|d| has_name(&d.path, &plan.driver)) {
            continue;
        }
        let base = DRIVERS + drivers.len() as u64 * DRIVER_SIZE;
        let path = format!("\\SystemRoot\\System32\\drivers\\{}", plan.driver);
        drivers.push(Driver { path, base });
    }
    drivers
}

/// Whether a path ends with a file name.
fn has_name(path: &str, name: &str) -> bool {
    let last = path.rsplit('\\').next().unwrap_or_default();
    last.eq_ignore_ascii_case(name)
}

/// A call of a routine on a processor.
struct Call {
    event: KernelEvent,
    offset: u64,
    since: Nanos,
    until: Nanos,
}

impl Simulator<'_> {
    /// A device interrupts a processor, as soon as the processor can be interrupted.
    pub(super) fn interrupt(&mut self, plan: &InterruptPlan) -> Result<()> {
        let processor = usize::from(plan.processor);
        if processor >= self.machine.processors.len() {
            let message = format!("the machine has no processor {processor}");
            return Err(Error::impossible(self.now, message));
        }
        let start = self.now.max(self.machine.horizon(processor));
        self.settle(processor, start)?;
        let mut at = start;
        if let Some(time) = plan.isr {
            let call = Call {
                event: isr_event(plan),
                offset: ISR,
                since: at,
                until: at.saturating_add(time),
            };
            at = call.until;
            self.called(plan, &call)?;
        }
        if let Some(time) = plan.dpc {
            let since = at;
            if let Some(nested) = plan.nested {
                let middle = since.saturating_add(time / 2);
                let call = Call {
                    event: isr_event(plan),
                    offset: ISR,
                    since: middle,
                    until: middle.saturating_add(nested),
                };
                self.called(plan, &call)?;
                at = at.saturating_add(nested);
            }
            let call = Call {
                event: dpc_event(plan.dpc_kind),
                offset: dpc_offset(plan.dpc_kind),
                since,
                until: at.saturating_add(time),
            };
            self.called(plan, &call)?;
        }
        Ok(())
    }

    /// A routine has returned.
    fn called(&mut self, plan: &InterruptPlan, call: &Call) -> Result<()> {
        let processor = usize::from(plan.processor);
        let current = self
            .machine
            .processors
            .get(processor)
            .and_then(|p| p.current());
        let origin = self.origin_on(processor, current, call.until);
        let base = self.driver_base(&plan.driver);
        let routine = kernel::address(self.scenario.machine.pointer_size, base + call.offset);
        let logged = DriverCall {
            event: call.event,
            routine,
            since: call.since,
        };
        self.etw.log_call(&logged, &origin)?;
        self.machine.advance(processor, call.until);
        let report = InterruptReport {
            started_ns: call.since,
            ended_ns: call.until,
            call: call_name(call.event),
            processor: plan.processor,
            driver: plan.driver.clone(),
            routine,
        };
        self.etw.observer.observe(&Fact::Interrupt(&report))
    }

    /// The address of a driver.
    fn driver_base(&self, driver: &str) -> u64 {
        let kernel = self.machine.processes.iter().find(|p| p.pid == 4);
        let images: &[Image] = kernel.map_or(&[], |process| &process.images);
        images
            .iter()
            .find(|image| has_name(&image.path, driver))
            .map_or(0, |image| image.base)
    }
}

fn isr_event(plan: &InterruptPlan) -> KernelEvent {
    if plan.message {
        KernelEvent::MessageIsr
    } else {
        KernelEvent::Isr
    }
}

fn dpc_event(kind: DpcKind) -> KernelEvent {
    match kind {
        DpcKind::Ordinary => KernelEvent::Dpc,
        DpcKind::Timer => KernelEvent::TimerDpc,
        DpcKind::Threaded => KernelEvent::ThreadedDpc,
    }
}

/// Where a deferred call is in its driver.
const fn dpc_offset(kind: DpcKind) -> u64 {
    match kind {
        DpcKind::Ordinary => DPC,
        DpcKind::Timer => TIMER_DPC,
        DpcKind::Threaded => THREADED_DPC,
    }
}

/// The name of a kind of call in the truth.
fn call_name(event: KernelEvent) -> &'static str {
    match event {
        KernelEvent::Isr => "isr",
        KernelEvent::MessageIsr => "message_isr",
        KernelEvent::TimerDpc => "timer_dpc",
        KernelEvent::ThreadedDpc => "threaded_dpc",
        _ => "dpc",
    }
}
