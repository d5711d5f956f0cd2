//! Which events a request selects: the filters of `etlkit dump`.

use std::time::Duration;

use etl_events::{Events, Trace};
use etl_format::{FileTime, ProcessId, ThreadId, TimeRange};
use serde::Deserialize;

use crate::error::{Error, Result};

/// A part of the time of a recording, in seconds since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Seconds {
    pub from: Option<f64>,
    pub to: Option<f64>,
}

impl Seconds {
    /// The times in UTC.
    pub fn times(self, start: FileTime) -> TimeRange<FileTime> {
        TimeRange::new(time_at(start, self.from), time_at(start, self.to))
    }
}

fn time_at(start: FileTime, seconds: Option<f64>) -> Option<FileTime> {
    let seconds = seconds?;
    // Negative seconds are before the start, where no event is.
    let duration = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    start.checked_add(duration)
}

/// Which events are selected. Conditions of different kinds must all hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    pub providers: Vec<String>,
    pub events: Vec<String>,
    pub ids: Vec<u16>,
    pub opcodes: Vec<u8>,
    pub level: u8,
    /// A number in hexadecimal or decimal: JSON numbers have too few bits.
    pub keyword: String,
    pub processes: Vec<String>,
    pub children: bool,
    pub pids: Vec<u32>,
    pub threads: Vec<u32>,
    /// Conditions on fields.
    #[serde(rename = "where")]
    pub conditions: Vec<String>,
    pub text: Vec<String>,
    pub from: Option<f64>,
    pub to: Option<f64>,
}

impl Query {
    pub fn seconds(&self) -> Seconds {
        Seconds {
            from: self.from,
            to: self.to,
        }
    }

    /// The selected events of a trace in a range of time.
    pub fn events<'t>(
        &self,
        trace: &'t mut Trace,
        range: TimeRange<FileTime>,
    ) -> Result<Events<'t>> {
        let mut events = trace
            .events()
            .between(range)
            .level(self.level)
            .keyword(self.keyword_mask()?);
        for provider in &self.providers {
            events = events.provider(provider);
        }
        for name in &self.events {
            events = events.event(name);
        }
        for &id in &self.ids {
            events = events.id(id);
        }
        for &opcode in &self.opcodes {
            events = events.opcode(opcode);
        }
        for process in &self.processes {
            events = events.process(process);
        }
        if self.children {
            events = events.with_children();
        }
        for &pid in &self.pids {
            events = events.pid(ProcessId::new(pid));
        }
        for &tid in &self.threads {
            events = events.thread(ThreadId::new(tid));
        }
        for condition in &self.conditions {
            events = events.condition(condition)?;
        }
        for text in &self.text {
            events = events.text(text);
        }
        Ok(events)
    }

    fn keyword_mask(&self) -> Result<u64> {
        let text = self.keyword.trim();
        if text.is_empty() {
            return Ok(0);
        }
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.map_err(|_| Error::new(format!("{text:?} is not a mask of keywords")))
    }
}
