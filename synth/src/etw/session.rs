//! A session: its buffers, and the file they go to.

use core::fmt;

use etl_format::constants::{ClockType, LogFileMode, PointerSize};
use etl_format::write::record::Record;
use etl_format::write::{
    HeaderGroup, LogFileHeader, Session as Writer, SessionConfig, Summary, TimeZone,
};

use super::ledger::{Ledger, Watched};
use super::store::{Nowhere, Store};
use crate::error::{Error, Result};
use crate::machine::{Clock, Nanos};
use crate::model::{Fault, MachinePlan, SessionPlan};

/// Bytes of a buffer that hold no record.
const BUFFER_HEADER: usize = 0x48;

/// A session, running or stopped.
pub(crate) struct Session {
    pub plan: SessionPlan,
    pub id: u16,
    pub started: Nanos,
    pub stopped: Option<Nanos>,
    writer: Option<Writer<Watched>>,
    /// What becomes of its buffers.
    pub(super) ledger: Ledger,
    summary: Summary,
    /// Events put into its buffers, and events lost before.
    pub recorded: u64,
    pub lost: u64,
    /// Buffers sealed so far, for the fault that loses some.
    sealed: u64,
    disk_busy: bool,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionReport {
    /// Its index: what [`super::Raised::outcomes`] names it by.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: Option<String>,
    /// When it started.
    pub started: Nanos,
    /// When it was stopped; `None` when nobody did.
    pub stopped: Option<Nanos>,
    /// The clock of its stamps.
    pub clock: ClockType,
    /// Ticks by which its stamps run ahead of that clock.
    pub skew: i64,
    /// Events put into its buffers.
    pub recorded: u64,
    /// Events lost because no buffer was free.
    pub lost: u64,
    /// Events in buffers that were lost.
    pub lost_with_buffers: u64,
    /// Buffers lost.
    pub buffers_lost: u64,
    /// Events in buffers that were written, those overwritten later included.
    pub written: u64,
    /// Buffers written, each file's buffer 0 included.
    pub buffers_written: u64,
    /// Files written.
    pub files: u32,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("plan", &self.plan).field("writer", &self.writer).finish()
    }
}

impl Session {
    pub fn start(
        plan: &SessionPlan,
        id: u16,
        at: Nanos,
        controller: (u32, u32),
        machine: &MachinePlan,
        clock: &Clock,
        store: &mut dyn Store,
    ) -> Result<Self> {
        let medium = match &plan.file {
            Some(file) => store.create(file).map_err(|e| failed(plan, e.into()))?,
            None => Box::new(Nowhere),
        };
        let config = config(plan, id, at, controller, machine, clock)
            .map_err(|source| failed(plan, source))?;
        let ledger = Ledger::new(may_change(plan));
        let medium = ledger.watch(plan.file.as_deref().unwrap_or_default(), medium);
        let writer = Writer::create(medium, config).map_err(|source| failed(plan, source))?;
        Ok(Session {
            plan: plan.clone(),
            id,
            started: at,
            stopped: None,
            writer: Some(writer),
            ledger,
            summary: Summary::default(),
            recorded: 0,
            lost: 0,
            sealed: 0,
            disk_busy: false,
        })
    }

    pub fn is_running(&self) -> bool {
        self.writer.is_some()
    }

    /// The raw stamp of a moment in this session.
    pub fn stamp(&self, clock: &Clock, at: Nanos) -> i64 {
        clock.stamp(self.plan.clock, at).saturating_add(skew(&self.plan))
    }

    /// Whether a record of this length finds room, in the current buffer of its processor or in a
    /// free one.
    pub fn has_room(&self, processor: u16, len: usize) -> bool {
        let Some(writer) = &self.writer else { return false };
        let room = writer.room(processor);
        let whole = (self.plan.buffer_size as usize).saturating_sub(BUFFER_HEADER);
        if len > whole {
            return false;
        }
        if room < whole && len <= room {
            return true;
        }
        let in_use = writer.current_buffers() + writer.sealed_buffers();
        in_use < self.plan.buffers as usize
    }

    /// Whether what does not fit here is lost here alone.
    pub fn is_independent(&self) -> bool {
        self.plan.mode.has(LogFileMode::INDEPENDENT_SESSION)
    }

    /// Puts the record of an event into the buffer of its processor; says whether a buffer was
    /// sealed.
    pub fn write(
        &mut self,
        processor: u16,
        number: u64,
        record: &impl Record,
        len: usize,
    ) -> Result<bool> {
        let lane = self.lane(processor);
        let Some(writer) = &mut self.writer else { return Ok(false) };
        let mut run = || {
            let full = len > writer.room(processor);
            if full {
                self.sealed += 1;
                let lost = self.plan.faults.iter().any(|fault| match fault {
                    Fault::LostBuffers(n) => self.sealed.is_multiple_of(u64::from((*n).max(1))),
                    _ => false,
                });
                if lost {
                    writer.lose_buffer(processor)?;
                    self.ledger.lose(lane);
                } else {
                    self.ledger.seal(lane);
                }
            }
            writer.write(processor, record)?;
            self.ledger.event(lane, number);
            Ok(full)
        };
        let sealed = run().map_err(|source| failed(&self.plan, source))?;
        self.recorded += 1;
        Ok(sealed)
    }

    /// The processor whose buffer one writes to.
    fn lane(&self, processor: u16) -> u16 {
        let one = self.plan.mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
        if one { 0 } else { processor }
    }

    /// An event did not get in.
    pub fn lose(&mut self, processor: u16) -> Result<()> {
        self.lost += 1;
        if let Some(writer) = &mut self.writer {
            writer.lose_events(processor, 1).map_err(|source| failed(&self.plan, source))?;
        }
        Ok(())
    }

    pub fn seal_all(&mut self) {
        // What is only in memory stays there until somebody asks for it.
        if let Some(writer) = self.writer.as_mut().filter(|_| self.plan.file.is_some()) {
            writer.seal_all();
            self.ledger.seal_all();
        }
    }

    /// The disk takes the next buffer, if it is free and there is one: bytes to write.
    pub fn next_write(&mut self) -> Option<u32> {
        let writer = self.writer.as_ref()?;
        if self.disk_busy || writer.sealed_buffers() == 0 {
            return None;
        }
        self.disk_busy = true;
        Some(self.plan.buffer_size)
    }

    /// The disk has taken a buffer.
    pub fn written(&mut self, stamp: i64) -> Result<()> {
        self.disk_busy = false;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        flush_one(writer, &mut self.ledger, stamp).map_err(|source| failed(&self.plan, source))?;
        Ok(())
    }

    /// Writes everything at once.
    pub fn flush_now(&mut self, stamp: i64) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.seal_all();
        self.ledger.seal_all();
        while flush_one(writer, &mut self.ledger, stamp)
            .map_err(|source| failed(&self.plan, source))?
        {}
        Ok(())
    }

    pub fn close(&mut self, at: Nanos, abandon: bool, clock: &Clock) -> Result<()> {
        let stamp = self.stamp(clock, at);
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let ended = if abandon {
            writer.abandon()
        } else {
            writer.seal_all();
            self.ledger.seal_all();
            let mut write_all = || {
                while flush_one(&mut writer, &mut self.ledger, stamp)? {}
                Ok(())
            };
            write_all().and_then(|()| writer.close(Some(clock.filetime(at))))
        };
        let (_, summary) = ended.map_err(|source| failed(&self.plan, source))?;
        self.ledger.end();
        self.summary = summary;
        self.stopped = (!abandon).then_some(at);
        Ok(())
    }

    pub fn report(&self, index: usize) -> SessionReport {
        SessionReport {
            index,
            name: self.plan.name.clone(),
            file: self.plan.file.clone(),
            started: self.started,
            stopped: self.stopped,
            clock: self.plan.clock,
            skew: skew(&self.plan),
            recorded: self.recorded,
            lost: self.lost,
            lost_with_buffers: self.summary.events_in_lost_buffers,
            buffers_lost: self.summary.buffers_lost,
            written: self.summary.events_written,
            buffers_written: self.summary.buffers_written,
            files: self.summary.files,
        }
    }
}

/// Ticks by which the stamps of a session run ahead.
fn skew(plan: &SessionPlan) -> i64 {
    plan.faults.iter().fold(0, |sum: i64, fault| match fault {
        Fault::Skew(ticks) => sum.saturating_add(*ticks),
        _ => sum,
    })
}

/// Whether something may happen to buffers of this session that stand in its file.
fn may_change(plan: &SessionPlan) -> bool {
    plan.mode.has(LogFileMode::CIRCULAR) || plan.faults.iter().any(Fault::is_of_the_file)
}

/// Writes the buffer that was sealed first; `false` when there is none.
fn flush_one(
    writer: &mut Writer<Watched>,
    ledger: &mut Ledger,
    stamp: i64,
) -> etl_format::Result<bool> {
    let lost = writer.summary().buffers_lost;
    let any = writer.flush_one(stamp)?;
    if any {
        ledger.flushed(writer.summary().buffers_lost == lost);
    }
    Ok(any)
}

fn failed(plan: &SessionPlan, source: etl_format::Error) -> Error {
    Error::Trace { session: plan.name.clone(), source }
}

/// What the kernel writes into buffer 0.
fn config(
    plan: &SessionPlan,
    id: u16,
    at: Nanos,
    (pid, tid): (u32, u32),
    machine: &MachinePlan,
    clock: &Clock,
) -> etl_format::Result<SessionConfig> {
    let (os_major, os_minor, build) = machine.os;
    let large = plan.buffer_size > 1 << 20;
    let mut time_zone = TimeZone { bias: machine.bias, ..TimeZone::default() };
    for (slot, unit) in time_zone.standard_name.iter_mut().zip(machine.zone.encode_utf16().take(31))
    {
        *slot = unit;
    }
    let one = plan.mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
    let header = LogFileHeader {
        thread_id: tid,
        process_id: pid,
        stamp: clock.stamp(plan.clock, at).saturating_add(skew(plan)),
        buffer_size: plan.buffer_size,
        os_major,
        os_minor,
        log_major: if large { 2 } else { 1 },
        log_minor: if large { 0 } else { 5 },
        build,
        processors: if one { 1 } else { machine.processors.into() },
        maximum_file_size: plan.maximum_size,
        mode: plan.mode,
        cpu_mhz: machine.cpu_mhz,
        logger_name_word: 5,
        log_file_name_word: 6,
        time_zone,
        boot_time: clock.boot(),
        perf_freq: i64::try_from(machine.frequency).unwrap_or(i64::MAX),
        start_time: clock.filetime(at),
        clock_type: plan.clock,
        logger_name: plan.name.encode_utf16().collect(),
        log_file_name: match &plan.file {
            Some(file) => format!("C:\\traces\\{file}").encode_utf16().collect(),
            None => Vec::new(),
        },
        ..LogFileHeader::new()
    };
    let stamp = header.stamp;
    let mut config = SessionConfig::new(header);
    config.logger_id = id;
    config.hold_sealed = true;
    if build >= 17_763 {
        let partition = HeaderGroup::Partition {
            partition_type: 0,
            qpc_offset: 0,
            ids: [etl_format::Guid::ZERO; 2],
        };
        let mut payload = Vec::new();
        partition.encode(&mut payload);
        config.add_extra(&partition.record(&payload, PointerSize::P8, stamp, pid, tid))?;
    }
    Ok(config)
}
