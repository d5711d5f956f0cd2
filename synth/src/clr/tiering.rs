//! Tiered compilation by calls, as .NET Core does it: a thread of the runtime compiles methods again
//! that were called often enough.
//!
//! A method that runs for the first time begins a delay, or prolongs one. When no method ran for the
//! first time for the length of the delay, the calls of all these methods are counted. A method
//! with enough calls waits for the thread. A loop that runs long enough has its method compiled
//! again at once, on the thread that runs it.

use std::collections::{BTreeMap, VecDeque};

use super::method::tier;
use super::op::{ClrOp, NO_EFFECT, OpEffect, TargetThread};
use super::raise::Runtime;
use super::state::{Clr, Method};
use crate::error::Result;
use crate::etw::values;
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// Calls after which a method is compiled again, by the settings of .NET Core 3 to .NET 10.
const CALLS: u32 = 30;
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

/// Calls of a method by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The index of the method.
    pub method: usize,
    /// How often.
    pub times: u32,
    /// How often its loop runs in each call.
    pub rounds: u32,
}

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

/// The methods of a CLR whose calls are counted.
#[derive(Debug, Default)]
pub(crate) struct Tiering {
    /// Whether the script calls methods. Otherwise the script states which methods are compiled
    /// again.
    pub counts_calls: bool,
    /// Whether a delay that began has to be timed.
    pub begins_delay: bool,
    is_delayed: bool,
    /// Whether a method ran for the first time since the delay was timed last.
    has_activity: bool,
    /// Methods that ran for the first time during the delay.
    new: Vec<usize>,
    /// Calls that methods still need.
    calls_left: BTreeMap<usize, u32>,
    /// How often the loops of methods were reported.
    reports: BTreeMap<usize, u32>,
    /// Methods that wait for the thread that compiles them again.
    queue: VecDeque<usize>,
    /// Whether that thread works.
    is_working: bool,
}

impl Tiering {
    /// The delay is over if no method ran for the first time meanwhile. Returns whether it goes on.
    pub fn continues_delay(&mut self) -> bool {
        std::mem::take(&mut self.has_activity)
    }

    /// The number of methods that wait to be compiled again.
    pub fn waiting(&self) -> u32 {
        self.queue.len() as u32
    }

    /// The calls of a method with new code are counted.
    pub fn count_again(&mut self, method: usize) {
        self.calls_left.insert(method, CALLS);
    }

    /// The code of a method is gone.
    pub fn forget(&mut self, method: usize) {
        self.calls_left.remove(&method);
        self.reports.remove(&method);
        self.new.retain(|new| *new != method);
        self.queue.retain(|waiting| *waiting != method);
    }

    /// Counts calls. Returns whether the method now has enough.
    fn count(&mut self, method: usize, times: u32) -> bool {
        let Some(left) = self.calls_left.get_mut(&method) else {
            return false;
        };
        *left = left.saturating_sub(times);
        if *left > 0 {
            return false;
        }
        self.calls_left.remove(&method);
        self.queue.push_back(method);
        true
    }

    /// Whether the thread that compiles methods again has to begin. It pauses during a delay.
    fn begins_work(&mut self) -> bool {
        if self.is_delayed || self.is_working || self.queue.is_empty() {
            return false;
        }
        self.is_working = true;
        true
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
