//! Events of the kernel for a session when it starts, when its flags change, and when it stops.
//!
//! A start is a change from no flags, and a stop is a change to none. Real traces show both; the
//! events of other changes are derived from them. The order is: end of the old masks, rundown of
//! the removed groups, start of the new masks, rundown of the added groups, end of the rundown.

use etl_control::controller::GroupMasks;

use super::{Simulator, Task};
use crate::error::Result;
use crate::etw::Origin;
use crate::kernel::{Lifecycle, Masks};
use crate::model::{KernelChange, KernelEvent, group};
use crate::time::Nanos;

/// Opcodes of the sample interval event at the start and at the end of sampling, and where the
/// interval changes.
const SAMPLES: (u8, u8) = (73, 74);
const SET_INTERVAL: u8 = 72;

impl Simulator<'_> {
    /// The first events of a session with kernel flags.
    pub(super) fn kernel_begins(&mut self, index: usize) -> Result<()> {
        let Some(groups) = self.groups(index) else {
            return Ok(());
        };
        let origin = self.controller_origin();
        self.turn(index, GroupMasks::default(), groups, &origin)?;
        self.passed(&origin);
        self.watch(index);
        Ok(())
    }

    /// A session changes its kernel flags.
    pub(super) fn change_kernel(
        &mut self,
        name: &str,
        sessions: &[usize],
        request: &'static str,
        change: &KernelChange,
    ) -> Result<()> {
        for index in self
            .etw
            .kernel_sessions(name, sessions, request, self.now)?
        {
            // What happened before the change is logged by the old flags.
            self.settle_all(self.now)?;
            self.controller_enters()?;
            let origin = self.controller_origin();
            let before = self.interval(index);
            let (old, new) = self.etw.change_kernel(index, change, origin.at)?;
            let logged = self
                .etw
                .sessions
                .get(index)
                .map(|s| s.kernel.simulated_text());
            let logged = logged.filter(|words| !words.is_empty());
            let logged = logged.unwrap_or_else(|| "nothing".to_owned());
            let what = format!("session \"{name}\" logs of the kernel from now on {logged}");
            self.etw.report_action(origin.at, &what)?;
            self.turn(index, old, new, &origin)?;
            let samples = KernelEvent::Sample.group();
            if old.has(samples) && new.has(samples) && self.interval(index) != before {
                self.etw
                    .log_interval(index, SET_INTERVAL, before, &origin)?;
            }
            self.passed(&origin);
            self.watch(index);
            self.controller_leaves()?;
        }
        Ok(())
    }

    /// The last events of a session with kernel flags.
    pub(super) fn before_stop(&mut self, index: usize) -> Result<()> {
        self.list_components_before_stop(index)?;
        if !self.etw.sessions.get(index).is_some_and(|s| s.of_kernel) {
            return Ok(());
        }
        let Some(groups) = self.groups(index) else {
            return Ok(());
        };
        self.settle_all(self.now)?;
        self.controller_enters()?;
        let origin = self.controller_origin();
        if !groups.has(group::NO_SYSTEM_CONFIG) {
            let etw = &mut self.etw;
            let machine = &self.machine;
            etw.log_configuration(index, &self.scenario.machine, machine, &origin)?;
        }
        self.turn(index, groups, GroupMasks::default(), &origin)?;
        self.passed(&origin);
        Ok(())
    }

    /// A controller requests a rundown of the kernel for a session.
    pub(super) fn kernel_rundown(&mut self, index: usize) -> Result<()> {
        let Some(groups) = self.groups(index) else {
            return Ok(());
        };
        self.controller_enters()?;
        let origin = self.controller_origin();
        let etw = &mut self.etw;
        let machine = &self.machine;
        etw.log_rundown(Lifecycle::AtStart(index), groups, machine, &origin)?;
        etw.log_rundown_complete(index, &origin)?;
        self.passed(&origin);
        self.controller_leaves()
    }

    /// The groups that the kernel logs for a session.
    fn groups(&self, index: usize) -> Option<GroupMasks> {
        self.etw.sessions.get(index).map(|s| s.kernel.groups)
    }

    /// The interval between samples of a session.
    fn interval(&self, index: usize) -> Nanos {
        self.etw
            .sessions
            .get(index)
            .map_or(0, |session| session.sample_interval)
    }

    /// Logs the change of the groups of a session.
    fn turn(
        &mut self,
        index: usize,
        old: GroupMasks,
        new: GroupMasks,
        origin: &Origin,
    ) -> Result<()> {
        let interval = self.interval(index);
        let etw = &mut self.etw;
        let machine = &self.machine;
        let gone = old.without(new);
        let come = new.without(old);
        if gone.has(KernelEvent::Sample.group()) {
            etw.log_interval(index, SAMPLES.1, interval, origin)?;
        }
        etw.log_masks(index, Masks::EndExtension, old, origin)?;
        etw.log_rundown(Lifecycle::AtEnd(index), gone, machine, origin)?;
        etw.log_masks(index, Masks::Extension, new, origin)?;
        etw.log_rundown(Lifecycle::AtStart(index), come, machine, origin)?;
        if come.has(KernelEvent::Sample.group()) {
            etw.log_interval(index, SAMPLES.0, interval, origin)?;
        }
        etw.log_rundown_complete(index, origin)
    }

    /// Plans samples and switches for the flags of a session.
    fn watch(&mut self, index: usize) {
        let now = self.now;
        let Some(session) = self.etw.sessions.get_mut(index) else {
            return;
        };
        let samples = session.kernel.logs(KernelEvent::Sample);
        if !samples {
            session.next_sample = None;
        } else if session.next_sample.is_none() {
            let next = now.saturating_add(session.sample_interval);
            session.next_sample = Some(next);
            self.plan(next, Task::Sample(index));
        }
        (0..self.machine.processors.len()).for_each(|processor| self.plan_switch(processor));
    }
}
