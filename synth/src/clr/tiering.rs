//! Tiered compilation by calls, as .NET Core does it: a thread of the runtime compiles methods
//! again that were called often enough.
//!
//! A method that runs for the first time begins a delay, or prolongs one. When no method ran for
//! the first time for the length of the delay, the calls of all these methods are counted. A method
//! with enough calls waits for the thread. A loop that runs long enough has its method compiled
//! again at once, on the thread that runs it.

use super::call_counts::CALLS;
use super::method::tier;
use super::op::{Call, ClrOp, NO_EFFECT, OpEffect, TargetThread};
use super::raise::Runtime;
use super::state::{Clr, Method};
use crate::error::Result;
use crate::etw::values;
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// The delay without new methods after which calls are counted, by the same settings.
pub(crate) const DELAY: Nanos = 100 * MILLISECOND;
/// Rounds of a loop after which it is reported to the runtime.
const ROUNDS: u32 = 1_000;
/// How often a loop is reported before its method is compiled again.
const REPORTS: u32 = 10;
/// The time of a call, and of a round of a loop.
const CALL: Nanos = 100;
const ROUND: Nanos = 2;
/// The longest time of calls that no other operation interrupts.
const SLICE: Nanos = MILLISECOND;

impl Call {
    /// The time of so many of the calls.
    fn time(&self, times: u32) -> Nanos {
        let one = CALL + Nanos::from(self.rounds) * ROUND;
        one.saturating_mul(times.into())
    }

    /// The calls that remain after some of them.
    fn after(self, times: u32) -> Vec<ClrOp> {
        if self.times <= times {
            return Vec::new();
        }
        vec![ClrOp::Call(Call {
            times: self.times - times,
            ..self
        })]
    }
}

impl Clr {
    /// Whether methods with loops have only optimized code: until .NET 7 can replace code that
    /// runs.
    pub fn optimizes_loops(&self) -> bool {
        self.tiering.counts_calls && !self.is_core(7)
    }

    /// Whether the loops of a method are reported to the runtime: in code of tier 0, until it is
    /// replaced.
    fn reports_loops(&self, method: &Method) -> bool {
        let mut tiers = method.bodies.iter().map(|body| body.tier);
        let newest = method.bodies.last().map_or(0, |body| body.tier);
        self.is_core(7)
            && matches!(newest, tier::QUICK | tier::INSTRUMENTED)
            && !tiers.any(|tier| tier == tier::OSR)
    }
}

impl Runtime<'_, '_> {
    /// A thread calls a method. Calls of which one changes the code of the method end there; the
    /// others follow.
    pub fn call(&mut self, call: Call) -> Result<OpEffect> {
        let Some(method) = self.clr.methods.get_mut(call.method) else {
            return NO_EFFECT;
        };
        method.has_loop |= call.rounds > 1;
        if method.bodies.is_empty() {
            return self.call_first(call);
        }
        let slice = u32::try_from(SLICE / call.time(1)).unwrap_or(1).max(1);
        let mut times = call.times.min(slice);
        if let Some(left) = self.clr.tiering.calls_left.get(&call.method) {
            times = times.min(*left);
        }
        let replaced = self.replace_loop(call, times)?;
        let mut effect = OpEffect::after(call.time(times) + replaced);
        effect.then = call.after(times);
        let is_enough = self.clr.tiering.count(call.method, times);
        if is_enough && self.clr.tiering.begins_work() {
            let work = (TargetThread::Tiering, ClrOp::TierWork);
            effect.other_threads.push(work);
        }
        Ok(effect)
    }

    /// The code of a method is prepared before its first call.
    fn call_first(&mut self, call: Call) -> Result<OpEffect> {
        self.clr.waiting.retain(|waiting| *waiting != call.method);
        let mut effect = self.prepare(call.method)?;
        let has_code = match self.clr.methods.get(call.method) {
            Some(method) => !method.bodies.is_empty(),
            None => false,
        };
        if has_code {
            effect.then.push(ClrOp::Call(call));
        }
        Ok(effect)
    }

    /// The code of a method is replaced while its loop runs, if it runs long enough. Returns how
    /// long that takes.
    fn replace_loop(&mut self, call: Call, times: u32) -> Result<Nanos> {
        let Some(method) = self.clr.methods.get(call.method) else {
            return Ok(0);
        };
        if call.rounds < ROUNDS || !self.clr.reports_loops(method) {
            return Ok(0);
        }
        let reports = self.clr.tiering.reports.entry(call.method).or_default();
        *reports = reports.saturating_add(times.saturating_mul(call.rounds / ROUNDS));
        if *reports < REPORTS {
            return Ok(0);
        }
        let version = self.clr.next_version(call.method);
        self.compile(call.method, tier::OSR, version)
    }

    /// A method ran for the first time: its calls are counted after a delay.
    pub fn note_first_call(&mut self, index: usize) -> Result<()> {
        let tiering = &mut self.clr.tiering;
        tiering.new.push(index);
        if tiering.is_delayed {
            tiering.has_activity = true;
            return Ok(());
        }
        tiering.is_delayed = true;
        tiering.begins_delay = true;
        self.raise(281, 0, &values![self.clr.instance])
    }

    /// The delay is over: calls are counted from now on, and methods compiled again.
    pub fn tier_resume(&mut self) -> Result<OpEffect> {
        let tiering = &mut self.clr.tiering;
        tiering.is_delayed = false;
        let new = std::mem::take(&mut tiering.new);
        for &method in &new {
            tiering.calls_left.insert(method, CALLS);
        }
        let mut then = Vec::new();
        if tiering.begins_work() {
            then.push(ClrOp::TierWork);
        }
        self.raise(282, 0, &values![self.clr.instance, new.len() as u32])?;
        Ok(OpEffect {
            cost: MICROSECOND,
            then,
            ..OpEffect::default()
        })
    }

    /// Methods that were called often enough are compiled again, until none waits.
    pub fn tier_work(&mut self) -> Result<OpEffect> {
        let tiering = &mut self.clr.tiering;
        if tiering.is_delayed || tiering.queue.is_empty() {
            tiering.is_working = false;
            return NO_EFFECT;
        }
        let methods: Vec<usize> = tiering.queue.drain(..).collect();
        let count = methods.len() as u32;
        let mut then = vec![ClrOp::TierBegin(count)];
        then.extend(methods.into_iter().map(ClrOp::Tier));
        then.push(ClrOp::TierEnd(count));
        then.push(ClrOp::TierWork);
        Ok(OpEffect {
            then,
            ..OpEffect::default()
        })
    }
}
