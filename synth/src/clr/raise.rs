//! How a CLR raises events.

use core::ops::{Range, RangeInclusive};

use etl_control::enable::CombinedEnablement;
use etl_format::Guid;
use etl_schema::Identity;
use etl_schema::encode::OwnedValue;
use etl_schema::tables::{OlderEvent, Registry, TableEvent};

use super::stack::Stack;
use super::state::Clr;
use crate::error::{Error, Result};
use crate::etw::{Etw, Event, Origin, values};
use crate::machine::{Process, Thread};
use crate::model::Sku;
use crate::time::Nanos;
use etl_schema::clr::keyword;
use etl_schema::providers::{CLR_PRIVATE, CLR_RUNDOWN, CLR_RUNTIME};

/// A CLR at work: its state, the process and thread that it works in, and ETW.
pub(crate) struct Runtime<'a, 's> {
    pub clr: &'a mut Clr,
    pub etw: &'a mut Etw<'s>,
    pub process: &'a mut Process,
    pub origin: Origin,
    /// The thread that does it.
    pub thread: &'a mut Thread,
    /// Threads of the process: index, id.
    pub threads: &'a [(usize, u32)],
    /// Whether it lists what exists.
    pub enumerating: bool,
}

impl Runtime<'_, '_> {
    /// Waits until a time: the operation follows from what another thread did then.
    pub fn until(&mut self, time: Nanos) {
        self.origin.at = self.origin.at.max(time);
    }

    /// Lets time pass within the operation. None passes in an enumeration: it does not delay the
    /// program, so that the program does the same with and without it.
    pub fn pass(&mut self, time: Nanos) {
        if !self.enumerating {
            self.origin.at = self.origin.at.saturating_add(time);
        }
    }
}

/// Time that a thread needs for an event, and for its stack, whether or not they are recorded: what
/// is recorded does not change what happens.
const RAISING: Nanos = 300;
const STACK_TAKING: Nanos = 900;

/// Events of the runtime provider that not every product raises.
struct Availability {
    ids: RangeInclusive<u16>,
    /// The major versions of .NET Core that raise them; none raises them if this is empty.
    core: Range<u16>,
    /// The first version of .NET Framework that raises them.
    desktop: Option<(u16, u16)>,
}

/// Every version of .NET Core.
const EVERY: u16 = u16::MAX;

/// Events of .NET Core since a version.
const fn core_since(ids: RangeInclusive<u16>, first: u16) -> Availability {
    core_until(ids, first, EVERY)
}

/// Events of .NET Core since a version, and before another one.
const fn core_until(ids: RangeInclusive<u16>, first: u16, end: u16) -> Availability {
    Availability {
        ids,
        core: first..end,
        desktop: None,
    }
}

/// Events that only .NET Framework raises.
const fn only_desktop(ids: RangeInclusive<u16>, major: u16, minor: u16) -> Availability {
    Availability {
        ids,
        core: 0..0,
        desktop: Some((major, minor)),
    }
}

/// Events of every .NET Core, or of some of its versions, and of .NET Framework since 4.5.
const fn both_since_4_5(ids: RangeInclusive<u16>, end: u16) -> Availability {
    Availability {
        desktop: Some((4, 5)),
        ..core_until(ids, 0, end)
    }
}

/// Events that not every product raises, as the real runtimes of .NET Core 3.1, .NET 8 and .NET 10
/// show.
const AVAILABILITY: [Availability; 22] = [
    both_since_4_5(23..=23, EVERY),
    only_desktop(25..=28, 4, 5),
    both_since_4_5(35..=35, EVERY),
    core_since(59..=59, 8),
    only_desktop(60..=60, 4, 5),
    // Since .NET 6 the pool is managed code, which reports its queue by another provider.
    both_since_4_5(61..=62, 6),
    both_since_4_5(63..=65, EVERY),
    both_since_4_5(70..=70, EVERY),
    core_since(72..=74, 5),
    only_desktop(83..=84, 0, 0),
    only_desktop(86..=87, 0, 0),
    core_since(146..=146, 5),
    core_since(159..=159, 3),
    core_since(160..=160, 5),
    only_desktop(181..=184, 0, 0),
    core_since(202..=202, 0),
    core_since(203..=203, 3),
    core_since(204..=205, 0),
    core_since(208..=208, 5),
    core_until(280..=280, 3, 10),
    core_since(290..=296, 5),
    core_since(303..=303, 10),
];

/// An event of the tables.
pub(crate) fn table(provider: Guid, id: u16, version: u8) -> Result<&'static TableEvent> {
    Registry::builtin()
        .event(provider, Identity::Modern { id, version })
        .ok_or(Error::UnknownEvent {
            provider,
            id,
            version,
        })
}

impl Runtime<'_, '_> {
    /// The combined enablement of the runtime provider.
    pub fn asked(&self) -> CombinedEnablement {
        self.etw.seen(self.clr.runtime, self.process.pid)
    }

    /// The combined enablement of the rundown provider.
    pub fn asked_rundown(&self) -> CombinedEnablement {
        self.etw.seen(self.clr.rundown, self.process.pid)
    }

    /// Raises an event of the runtime provider, if a session enables it.
    pub fn raise(&mut self, id: u16, version: u8, values: &[OwnedValue]) -> Result<()> {
        self.raise_from(false, id, version, values)
    }

    /// The same for an event that comes only if it is `wanted`, besides being enabled.
    pub fn raise_if(
        &mut self,
        wanted: bool,
        id: u16,
        version: u8,
        values: &[OwnedValue],
    ) -> Result<()> {
        if wanted {
            self.raise(id, version, values)
        } else {
            self.skip(false, id, version)
        }
    }

    /// Lets the time of an event pass that is not raised.
    pub fn skip(&mut self, rundown: bool, id: u16, version: u8) -> Result<()> {
        if rundown || self.clr.has_event(id) {
            let provider = if rundown { CLR_RUNDOWN } else { CLR_RUNTIME };
            self.pass(time_of(table(provider, id, version)?));
        }
        Ok(())
    }

    /// Raises an event of one of the two providers, if a session enables it.
    pub fn raise_from(
        &mut self,
        rundown: bool,
        id: u16,
        version: u8,
        values: &[OwnedValue],
    ) -> Result<()> {
        let (guid, provider) = if rundown {
            (CLR_RUNDOWN, self.clr.rundown)
        } else {
            (CLR_RUNTIME, self.clr.runtime)
        };
        if !rundown && !self.clr.has_event(id) {
            return Ok(());
        }
        let event = table(guid, id, version)?;
        let union = self.etw.seen(provider, self.process.pid);
        if !union.enabled {
            self.pass(time_of(event));
            return Ok(());
        }
        let mut raised = Event::new(&event.schema, values);
        // R2RGetEntryPoint has its level since .NET 8; other events differ only in .NET Framework.
        let older = if id == 159 {
            !self.clr.is_core(8)
        } else {
            self.clr.sku == Sku::Desktop
        };
        if let Some(OlderEvent {
            level,
            keywords: keyword,
        }) = event.older.filter(|_| older)
        {
            raised.descriptor.level = level;
            raised.descriptor.keyword = keyword;
        }
        if !union.raises(raised.descriptor.level, raised.descriptor.keyword) {
            self.pass(time_of(event));
            return Ok(());
        }
        self.pass(RAISING);
        let follows = event.stack && union.raises(0, keyword::STACK);
        let attached = self.etw.wants_stacks(provider);
        let stack = if follows || attached {
            self.call_stack()
        } else {
            Stack::default()
        };
        if attached {
            raised.stack = &stack.frames;
            raised.managed_stack = stack.managed();
        }
        self.etw.raise(provider, &self.origin, &raised)?;
        if event.stack {
            self.pass(STACK_TAKING);
        }
        if follows {
            self.raise_stack(rundown, &stack.frames)
        } else {
            Ok(())
        }
    }

    /// Raises an event of the private provider, if a session enables it.
    pub fn raise_private(&mut self, id: u16, version: u8, values: &[OwnedValue]) -> Result<()> {
        let event = table(CLR_PRIVATE, id, version)?;
        let union = self.etw.seen(self.clr.private, self.process.pid);
        let raised = Event::new(&event.schema, values);
        self.pass(RAISING);
        if union.raises(raised.descriptor.level, raised.descriptor.keyword) {
            self.etw.raise(self.clr.private, &self.origin, &raised)?;
        }
        Ok(())
    }

    /// The stack of the thread at this time.
    fn call_stack(&self) -> Stack {
        let rng = &mut self.thread.stack_rng(self.origin.at);
        let runtime = rng.between(1, 4);
        self.clr
            .call_stack(runtime, self.origin.at, self.process, rng)
    }

    /// Raises the stack event right after its event.
    fn raise_stack(&mut self, rundown: bool, frames: &[u64]) -> Result<()> {
        let (guid, id, provider) = if rundown {
            (CLR_RUNDOWN, 0, self.clr.rundown)
        } else {
            (CLR_RUNTIME, 82, self.clr.runtime)
        };
        let addresses: Vec<OwnedValue> = frames.iter().map(|a| OwnedValue::Pointer(*a)).collect();
        let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let values = values![self.clr.instance, 0u8, 0u8, count, addresses];
        let event = table(guid, id, 0)?;
        self.etw
            .raise(provider, &self.origin, &Event::new(&event.schema, &values))
    }
}

/// The time that an event takes.
fn time_of(event: &TableEvent) -> Nanos {
    RAISING + if event.stack { STACK_TAKING } else { 0 }
}

impl Clr {
    fn has_event(&self, id: u16) -> bool {
        let mut limits = AVAILABILITY.iter();
        let Some(limits) = limits.find(|limits| limits.ids.contains(&id)) else {
            return true;
        };
        if self.is_core(0) {
            let [major, ..] = self.version;
            return limits.core.contains(&major);
        }
        match limits.desktop {
            Some((major, minor)) => self.is_desktop(major, minor),
            None => false,
        }
    }
}
