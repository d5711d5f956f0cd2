//! Packets pass the network of the machine.

use crate::error::Result;
use crate::etw::{Origin, Registrant};
use crate::model::{Action, Packet, Scenario, Work};
use crate::network::Passing;
use etl_schema::providers::PKTMON;

use super::{Simulator, Task};

/// The process in which drivers run.
const SYSTEM: u32 = 4;
/// The processor that handles what the card receives.
const RECEIVING: usize = 0;

/// Whether any packets pass in a scenario.
fn has_packets(scenario: &Scenario) -> bool {
    scenario.steps.iter().any(|step| {
        matches!(
            step.action,
            Action::Replay { .. }
                | Action::Work {
                    work: Work::Resolve(_) | Work::Exchange(_),
                    ..
                }
        )
    })
}

impl Simulator<'_> {
    /// The packet monitor is called back when a session asks for its state.
    pub(super) fn register_drivers(&mut self) {
        if has_packets(self.scenario) {
            self.etw.register(
                PKTMON,
                false,
                Registrant {
                    pid: SYSTEM,
                    clr: None,
                },
            );
        }
    }

    /// Plans packets from now on. Their sender is a thread, or unknown. Packets that are too many
    /// are dropped, which is reported once.
    pub(super) fn plan_packets(&mut self, packets: &[Packet], thread: Option<usize>) -> Result<()> {
        for packet in packets {
            let at = self.now.saturating_add(packet.after);
            match self.network.keep(Passing {
                packet: packet.clone(),
                thread,
            }) {
                Some(number) => self.plan(at, Task::Packet(number)),
                None if self.network.reported_full => return Ok(()),
                None => {
                    self.network.reported_full = true;
                    let what = "the network has more packets than it can take; it drops new ones \
                                from now on";
                    return self.etw.report_action(self.now, what);
                }
            }
        }
        Ok(())
    }

    /// A packet passes: in its thread if it is sent, otherwise in the thread that the processor
    /// runs.
    pub(super) fn pass(&mut self, number: usize) -> Result<()> {
        let Some(Passing { packet, thread }) = self.network.take(number) else {
            return Ok(());
        };
        let mut sender = None;
        let mut processor = RECEIVING;
        if packet.sent
            && let Some(index) = thread
            && let Some(thread) = self.machine.threads.get(index)
            && thread.started
            && !thread.ended
        {
            sender = Some(index);
            processor = usize::from(thread.processor);
        }
        self.settle(processor, self.now)?;
        let current = sender.or_else(|| self.machine.processors.get(processor)?.current());
        let at = self.now.max(self.machine.horizon(processor));
        let origin = self.origin_on(processor, current, at);
        let until = self.network.log(&mut self.etw, &packet, &origin)?;
        self.machine.advance(processor, until);
        Ok(())
    }

    /// The packet monitor lists its components before a session that enables it ends.
    pub(super) fn list_components_before_stop(&mut self, session: usize) -> Result<()> {
        if !has_packets(self.scenario) || !self.etw.enables(session, PKTMON) {
            return Ok(());
        }
        self.list_components()
    }

    /// The packet monitor lists its components.
    pub(super) fn list_components(&mut self) -> Result<()> {
        self.controller_enters()?;
        let origin = self.controller_origin();
        let at = self.network.log_components(&mut self.etw, &origin)?;
        self.passed(&Origin { at, ..origin });
        self.controller_leaves()
    }
}
