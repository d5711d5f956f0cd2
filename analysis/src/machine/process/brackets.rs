//! The brackets of a process's rundowns, from Init to Complete, and what is listed in them.

use etl_format::{ThreadId, Ticks};
use etl_schema::clr::Enumeration;
use etl_schema::views::clr;

use super::Process;
use crate::machine::runtime::{Bracket, Counts, Listing};

impl Process {
    /// Counts a map of IL to native code.
    #[inline]
    pub(in crate::machine) fn map_seen(&mut self, rundown: bool, timestamp: Ticks) {
        if !rundown {
            self.maps.add(timestamp);
            return;
        }
        // The map comes right before its method.
        let last = self.brackets.len().checked_sub(1);
        let at = if self.inside_of.is_some() {
            self.inside
        } else {
            last
        };
        if let Some(bracket) = at.and_then(|at| self.brackets.get_mut(at))
            && bracket.closed.is_none()
        {
            bracket.maps += 1;
        }
    }

    pub(super) fn push(
        &mut self,
        kind: Enumeration,
        instance: u16,
        (opened, closed): (Option<Ticks>, Option<Ticks>),
        nested: bool,
        (last, thread): (Ticks, ThreadId),
    ) {
        self.inside_of = None;
        if self.brackets.len() >= Self::BRACKETS {
            self.brackets_beyond += 1;
            return;
        }
        if opened.is_some() && closed.is_none() {
            self.open
                .entry((kind, instance))
                .or_default()
                .push(self.brackets.len());
        }
        self.brackets.push(Bracket {
            kind,
            instance,
            opened,
            closed,
            nested,
            thread,
            last,
            listed: Counts::default(),
            twice: 0,
            disordered: 0,
            first_disordered: None,
            other_threads: 0,
            compiled: 0,
            precompiled: 0,
            maps: 0,
        });
    }

    pub(super) fn complete(
        &mut self,
        kind: Enumeration,
        instance: u16,
        timestamp: Ticks,
        tid: ThreadId,
    ) {
        self.inside_of = None;
        if let Some(at) = self.open.get_mut(&(kind, instance)).and_then(Vec::pop) {
            if let Some(bracket) = self.brackets.get_mut(at) {
                bracket.closed = Some(timestamp);
                bracket.last = timestamp;
                bracket.other_threads += u64::from(bracket.thread != tid);
            }
            return;
        }
        if self.open_bracket(other(kind), instance).is_some() {
            self.mixed.add(timestamp);
        }
        self.push(
            kind,
            instance,
            (None, Some(timestamp)),
            false,
            (timestamp, tid),
        );
    }

    /// Index of the open bracket of a kind: the last one opened.
    pub(super) fn open_bracket(&self, kind: Enumeration, instance: u16) -> Option<usize> {
        self.open
            .get(&(kind, instance))
            .and_then(|open| open.last().copied())
    }

    /// An enumerated item should stand in a bracket: returns the bracket's ordinal as its low byte,
    /// 0 for none.
    pub(super) fn inside(
        &mut self,
        via: clr::Change,
        instance: u16,
        timestamp: Ticks,
        tid: ThreadId,
    ) -> u8 {
        let clr::Change::Rundown(kind) = via else {
            return 0;
        };
        let same = self.inside_of == Some((kind, instance));
        let at = if same {
            self.inside
        } else {
            self.open_bracket(kind, instance)
        };
        if let Some(at) = at
            && let Some(bracket) = self.brackets.get_mut(at)
        {
            bracket.last = timestamp;
            bracket.other_threads += u64::from(bracket.thread != tid);
            (self.inside, self.inside_of) = (Some(at), Some((kind, instance)));
            return u8::try_from(at % 255).map_or(1, |low| low + 1);
        }
        if self.open_bracket(other(kind), instance).is_some() {
            self.mixed.add(timestamp);
        } else if self.brackets_beyond == 0 {
            self.outside.add(timestamp);
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
        // The open one: a mark is only given while it is open.
        let open = if mark == 0 { None } else { self.inside };
        let Some(bracket) = open.and_then(|at| self.brackets.get_mut(at)) else {
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
