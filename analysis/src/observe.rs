//! What the users of an analysis see while it runs.

use etl_format::read::{EventHeader, Record};
use etl_format::{Guid, ThreadId, Ticks};
use etl_schema::views::kernel::Interrupt;

use crate::keys::ProcessIndex;
use crate::loss::Loss;
use crate::machine::{Change, Machine};

/// Sees a recording in time order, with the machine as it is then. Every method does nothing by
/// default.
///
/// Samples and stacks come once they are complete, so later than their events, and in the order of
/// these events. The machine is ahead of them by then, so they have what it knew at the time of the
/// event, such as the process of a thread.
///
/// ```no_run
/// use etl_analysis::{Analysis, Joins, Machine, Observer, Recording, Sample};
///
/// /// Counts samples of the kernel.
/// #[derive(Default)]
/// struct KernelSamples(u64);
///
/// impl Observer for KernelSamples {
///     const JOINS: Joins = Joins::Samples;
///
///     fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
///         self.0 += u64::from(!sample.frames.kernel.is_empty());
///     }
///
///     fn restart(&mut self) {
///         self.0 = 0;
///     }
/// }
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let mut samples = KernelSamples::default();
/// Analysis::new().run(&mut recording, &mut samples)?;
/// println!("{} samples with a stack in the kernel", samples.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer {
    /// Which events it needs joined with their stacks.
    const JOINS: Joins = Joins::All;

    /// A record. The machine has been changed by it.
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let _ = (machine, record, event);
    }

    /// A record that [`Within`](crate::Within) does not select: it comes before the time range, or
    /// is of another thread. It can state what selected records refer to, such as a name.
    fn unselected(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let _ = (machine, record, event);
    }

    /// The record that was just shown changed the machine.
    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        let _ = (machine, change, event);
    }

    /// A sample of what a processor was doing, with its stack if there is one.
    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        let _ = (machine, sample);
    }

    /// The stack of an event that is not a sample.
    fn stack(&mut self, machine: &Machine, stack: &Stack<'_>) {
        let _ = (machine, stack);
    }

    /// Records are missing: an operation that began before and has no end yet may have ended.
    fn loss(&mut self, loss: &Loss) {
        let _ = loss;
    }

    /// The recording was read to its end; `machine` does not change any more.
    fn finish(&mut self, machine: &Machine) {
        let _ = machine;
    }

    /// Records came out of order: the recording is read again from its start.
    fn restart(&mut self) {}
}

/// Which events are joined with their stacks: the more, the longer it takes.
///
/// ```
/// use etl_analysis::Joins;
///
/// assert_eq!(Joins::Samples.and(Joins::Kernel), Joins::Kernel);
/// assert!(Joins::All.has(Joins::Samples));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Joins {
    /// None; samples are not shown either.
    Nothing,
    /// Samples.
    Samples,
    /// Samples and other events of the kernel.
    Kernel,
    /// The events of manifest providers as well.
    All,
}

impl Joins {
    /// Joins the events that either joins.
    #[must_use]
    pub const fn and(self, other: Joins) -> Joins {
        if (self as u8) < other as u8 {
            other
        } else {
            self
        }
    }

    /// Whether it joins all events that `other` joins.
    #[must_use]
    pub const fn has(self, other: Joins) -> bool {
        self as u8 >= other as u8
    }
}

impl Observer for () {
    const JOINS: Joins = Joins::Nothing;
}

/// Both see everything.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const JOINS: Joins = A::JOINS.and(B::JOINS);

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.0.record(machine, record, event);
        self.1.record(machine, record, event);
    }

    fn unselected(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.0.unselected(machine, record, event);
        self.1.unselected(machine, record, event);
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.0.change(machine, change, event);
        self.1.change(machine, change, event);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        self.0.sample(machine, sample);
        self.1.sample(machine, sample);
    }

    fn stack(&mut self, machine: &Machine, stack: &Stack<'_>) {
        self.0.stack(machine, stack);
        self.1.stack(machine, stack);
    }

    fn loss(&mut self, loss: &Loss) {
        self.0.loss(loss);
        self.1.loss(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.0.finish(machine);
        self.1.finish(machine);
    }

    fn restart(&mut self) {
        self.0.restart();
        self.1.restart();
    }
}

/// Sees everything, if there is one.
impl<O: Observer> Observer for Option<O> {
    const JOINS: Joins = O::JOINS;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if let Some(observer) = self {
            observer.record(machine, record, event);
        }
    }

    fn unselected(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if let Some(observer) = self {
            observer.unselected(machine, record, event);
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        if let Some(observer) = self {
            observer.change(machine, change, event);
        }
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        if let Some(observer) = self {
            observer.sample(machine, sample);
        }
    }

    fn stack(&mut self, machine: &Machine, stack: &Stack<'_>) {
        if let Some(observer) = self {
            observer.stack(machine, stack);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if let Some(observer) = self {
            observer.loss(loss);
        }
    }

    fn finish(&mut self, machine: &Machine) {
        if let Some(observer) = self {
            observer.finish(machine);
        }
    }

    fn restart(&mut self) {
        if let Some(observer) = self {
            observer.restart();
        }
    }
}

/// An event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRef {
    /// Which record of the recording, from 0, in time order.
    pub number: u64,
    /// Index of its file.
    pub file: usize,
    /// Its session: the index of the first file of the session, which may have written several.
    pub session: usize,
    /// Time in ticks of the recording's clock.
    pub time: Ticks,
    /// What kind of event it is.
    pub kind: EventKind,
    /// Its process; for a sample, the process that was running.
    pub process: Option<ProcessIndex>,
    /// Its thread; for a sample, the thread that was running.
    pub tid: Option<ThreadId>,
    /// The processor that logged it.
    pub processor: u16,
}

/// What kind of event a record is.
///
/// ```
/// use etl_analysis::EventKind;
///
/// assert_eq!(EventKind::Kernel { hook: 0xf2e }.hook(), Some(0xf2e));
/// assert_eq!(EventKind::Other.hook(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An event of the kernel.
    Kernel {
        /// Group and type.
        hook: u16,
    },
    /// An event of a manifest, or a TraceLogging event.
    Event {
        /// The provider.
        provider: Guid,
        /// Its id.
        id: u16,
    },
    /// A classic event.
    Classic {
        /// Its class.
        class: Guid,
        /// Its opcode.
        opcode: u8,
    },
    /// Anything else.
    Other,
}

impl EventKind {
    /// Group and type of an event of the kernel.
    #[must_use]
    #[inline]
    pub const fn hook(self) -> Option<u16> {
        match self {
            EventKind::Kernel { hook } => Some(hook),
            _ => None,
        }
    }
}

/// A sample of what a processor was doing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The event, with the thread that was running, and its process.
    pub event: EventRef,
    /// The instruction pointer.
    pub address: u64,
    /// What interrupted the thread: the code is not part of it.
    pub interrupt: Option<Interrupt>,
    /// The stack; empty if none was recorded.
    pub frames: Frames<'a>,
}

/// The stack of an event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stack<'a> {
    /// The event that it was taken at.
    pub event: EventRef,
    /// Its addresses.
    pub frames: Frames<'a>,
}

/// The addresses of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frames<'a> {
    /// In the kernel, innermost first.
    pub kernel: &'a [u64],
    /// In the process, innermost first.
    pub user: &'a [u64],
    /// Whether a part is missing: its key is not defined, or it did not come before the memory
    /// limits were reached.
    pub is_partial: bool,
}

impl<'a> Frames<'a> {
    /// All addresses, innermost first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + use<'a> {
        self.kernel.iter().chain(self.user).copied()
    }

    /// Whether there are no addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kernel.is_empty() && self.user.is_empty()
    }
}

/// Sees every record before the machine is changed by it; see
/// [`Analysis::run_split`](crate::Analysis::run_split).
///
/// With several threads this runs on the thread that reads, ahead of the machine, so it cannot see
/// the machine. Every method does nothing by default.
pub trait RecordObserver {
    /// Any record of the file with this index, before the method for its kind is called.
    #[inline]
    fn record(&mut self, record: &Record<'_>, file: usize) {
        let _ = (record, file);
    }

    /// An event of a manifest provider.
    #[inline]
    fn event(&mut self, record: &Record<'_>, header: &EventHeader, time: Ticks) {
        let _ = (record, header, time);
    }

    /// A sample of the thread `tid`.
    #[inline]
    fn sample(&mut self, record: &Record<'_>, tid: ThreadId, time: Ticks) {
        let _ = (record, tid, time);
    }

    /// Any other record.
    #[inline]
    fn other(&mut self, record: &Record<'_>, time: Ticks) {
        let _ = (record, time);
    }

    /// Records came out of order: the traces are read again from their start.
    fn restart(&mut self) {}
}

impl RecordObserver for () {}
