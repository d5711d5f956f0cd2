//! The brackets of a process's rundowns, from Init to Complete, and what is listed in them.

use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::views::clr;

use super::Process;
use super::events::LogContext;
use crate::machine::runtime::{Bracket, Counts, Listing};

impl Process {
    /// Counts a map of IL to native code.
    #[inline]
    pub(in crate::machine) fn map_seen(&mut self, is_rundown: bool, timestamp: Ticks) {
        if !is_rundown {
            self.maps.add(timestamp);
            return;
        }
        // The map comes right before its method.
        let index = if self.inside_of.is_some() {
            self.inside
        } else {
            self.brackets.len().checked_sub(1)
        };
        if let Some(bracket) = index.and_then(|index| self.brackets.get_mut(index))
            && bracket.closed.is_none()
        {
            bracket.maps += 1;
        }
    }

    /// A rundown begins.
    pub(super) fn init(&mut self, kind: Enumeration, context: LogContext) {
        let is_nested = self.open_bracket(kind, context.instance).is_some();
        let index = self.push(Bracket {
            opened: Some(context.time),
            nested: is_nested,
            ..Bracket::new(kind, context.instance, context.tid, context.time)
        });
        if let Some(index) = index {
            let open = self.open.entry((kind, context.instance)).or_default();
            open.push(index);
        }
    }

    /// A rundown is complete.
    pub(super) fn complete(&mut self, kind: Enumeration, context: LogContext) {
        let open = self.open.get_mut(&(kind, context.instance));
        if let Some(index) = open.and_then(Vec::pop) {
            self.inside_of = None;
            if let Some(bracket) = self.brackets.get_mut(index) {
                bracket.closed = Some(context.time);
                bracket.last = context.time;
                bracket.other_threads += u64::from(bracket.thread != context.tid);
            }
            return;
        }
        if self.open_bracket(other(kind), context.instance).is_some() {
            self.mixed.add(context.time);
        }
        self.push(Bracket {
            closed: Some(context.time),
            ..Bracket::new(kind, context.instance, context.tid, context.time)
        });
    }

    /// Adds a bracket. Returns its index, unless there are too many.
    fn push(&mut self, bracket: Bracket) -> Option<usize> {
        self.inside_of = None;
        if self.brackets.len() >= Self::BRACKETS {
            self.brackets_beyond += 1;
            return None;
        }
        self.brackets.push(bracket);
        Some(self.brackets.len() - 1)
    }

    /// Index of the open bracket of a kind that was opened last.
    fn open_bracket(&self, kind: Enumeration, instance: u16) -> Option<usize> {
        let open = self.open.get(&(kind, instance))?;
        open.last().copied()
    }

    /// An item should be enumerated in a bracket: returns the low byte of the bracket's ordinal, or
    /// 0 if there is no bracket.
    pub(super) fn inside(&mut self, change: clr::Change, context: LogContext) -> u8 {
        let clr::Change::Rundown(kind) = change else {
            return 0;
        };
        let key = (kind, context.instance);
        let index = if self.inside_of == Some(key) {
            self.inside
        } else {
            self.open_bracket(kind, context.instance)
        };
        if let Some(index) = index
            && let Some(bracket) = self.brackets.get_mut(index)
        {
            bracket.last = context.time;
            bracket.other_threads += u64::from(bracket.thread != context.tid);
            self.inside = Some(index);
            self.inside_of = Some(key);
            return u8::try_from(index % 255).map_or(1, |low| low + 1);
        }
        if self.open_bracket(other(kind), context.instance).is_some() {
            self.mixed.add(context.time);
        } else if self.brackets_beyond == 0 {
            self.outside.add(context.time);
        }
        0
    }

    /// Counts a listed item in its bracket.
    pub(super) fn list(
        &mut self,
        mark: u8,
        timestamp: Ticks,
        listing: Listing,
        count: impl FnOnce(&mut Counts) -> &mut u64,
    ) {
        // An item has a mark only while its bracket is open.
        let open = if mark == 0 { None } else { self.inside };
        let Some(bracket) = open.and_then(|index| self.brackets.get_mut(index)) else {
            return;
        };
        *count(&mut bracket.listed) += 1;
        bracket.twice += u64::from(listing.twice);
        if listing.disordered {
            bracket.disordered += 1;
            bracket.first_disordered.get_or_insert(timestamp);
        }
    }
}

fn other(kind: Enumeration) -> Enumeration {
    match kind {
        Enumeration::Start => Enumeration::End,
        Enumeration::End => Enumeration::Start,
    }
}
