//! A session, its buffers and its files.

use core::fmt;
use core::ops::Range;

use etl_control::controller::GroupMasks;
use etl_format::constants::{BUFFER_HEADER_SIZE, LogFileMode, hook};
use etl_format::write::record::{Raw, Record};
use etl_format::write::{Resume, Session as Writer, SessionConfig, SessionSummary};
use etl_format::{FileHeader, FileTime, ProcessId, Result, Ticks, TimeZone};

use super::buffer_tracker::BufferTracker;
use super::file_sequence::FileSequence;
use super::logfile::LogFile;
use super::pool::{BufferPool, Consumer, in_copy};
use super::unsettled::Unsettled;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::machine::Clock;
use crate::model::{Fault, KernelChange, KernelFlags, MachinePlan, Request, SessionPlan};
use crate::time::Nanos;
use crate::truth::{BufferReport, SessionReport};

/// An error of the trace of a session.
pub(super) fn failed(plan: &SessionPlan) -> impl FnOnce(etl_format::Error) -> Error + use<> {
    let session = plan.name.clone();
    move |source| Error::Trace { session, source }
}

/// A session, running or stopped.
pub(crate) struct Session {
    pub plan: SessionPlan,
    pub id: u16,
    /// The process of a private session.
    pub process: Option<u32>,
    /// Whether it is an EventPipe session whose rundown has begun.
    pub is_ending: bool,
    /// Its current kernel flags, and the time between two samples.
    pub kernel: KernelFlags,
    pub sample_interval: Nanos,
    /// Whether it has, or had, kernel flags.
    pub of_kernel: bool,
    /// Kinds of kernel events that it logged before a change of its flags, a bit for each.
    pub logged_before: u64,
    /// The time of its next sample.
    pub next_sample: Option<Nanos>,
    pub started: Nanos,
    pub stopped: Option<Nanos>,
    running: bool,
    file: Option<LogFile>,
    pool: Option<BufferPool>,
    /// Without buffers per processor, the records that wait for earlier ones.
    unsettled: Option<Unsettled>,
    config: SessionConfig,
    summary: SessionSummary,
    /// The files that it wrote.
    pub files: Vec<String>,
    /// The outcomes of the buffers in its files, after its end.
    closed: Option<BufferTracker>,
    /// Recorded and lost events.
    pub recorded: u64,
    pub lost: u64,
    /// Events raised for it, and events of the rundown provider among them, for faults.
    pub seen: u64,
    pub enumerated: u32,
    flushed: u64,
    delivered: u64,
    /// Delivered events that the consumer kept.
    kept: u64,
    /// Buffers sealed so far, for the fault that loses some.
    sealed: u64,
    disk_busy: bool,
    consumer_busy: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// `replaces`: whether its files may be created again later.
    pub fn start(
        request: &StartRequest<'_>,
        config: SessionConfig,
        replaces: bool,
        store: &mut dyn FileSystem,
    ) -> Result<Self> {
        let plan = request.plan;
        let can_change = replaces || may_change(plan);
        let buffering = plan.mode.has(LogFileMode::BUFFERING);
        let real_time = plan.mode.has(LogFileMode::REAL_TIME);
        let file = match &plan.file {
            // The file of a session in memory is where a flush goes.
            Some(file) if !buffering => {
                Some(LogFile::create(file, config.clone(), can_change, store)?)
            }
            _ => None,
        };
        let one = plan.mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
        let wraps = buffering || file.is_some();
        let in_memory = file.is_none() || real_time;
        let pool =
            in_memory.then(|| BufferPool::new(&config, plan.buffers, one, wraps, can_change));
        Ok(Session {
            plan: plan.clone(),
            id: config.logger_id,
            process: request.process,
            is_ending: false,
            kernel: plan.kernel.clone(),
            sample_interval: plan.sample_interval,
            of_kernel: !plan.kernel.is_empty(),
            logged_before: 0,
            next_sample: None,
            started: request.at,
            stopped: None,
            running: true,
            file,
            pool,
            unsettled: one.then(Unsettled::default),
            config,
            summary: SessionSummary::default(),
            files: Vec::new(),
            closed: None,
            recorded: 0,
            lost: 0,
            seen: 0,
            enumerated: 0,
            flushed: 0,
            delivered: 0,
            kept: 0,
            sealed: 0,
            disk_busy: false,
            consumer_busy: false,
        })
    }

    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Changes its kernel flags. Returns the groups before and after.
    pub fn change_kernel(&mut self, change: &KernelChange) -> (GroupMasks, GroupMasks) {
        let old = self.kernel.groups;
        self.logged_before |= self.kernel.logged_bits();
        self.kernel = change.of(&self.kernel);
        self.sample_interval = change.interval.unwrap_or(self.sample_interval);
        self.of_kernel = true;
        (old, self.kernel.groups)
    }

    /// Sets the maximum number of buffers.
    pub fn set_buffers(&mut self, most: u32) {
        self.plan.buffers = most;
        if let Some(pool) = &mut self.pool {
            pool.most = most as usize;
        }
    }

    /// Whether it runs and writes, or has written, a file, or its consumer writes it.
    pub fn writes(&self, name: &str) -> bool {
        let written = self.file.as_ref().into_iter().flat_map(|file| &file.files);
        let consumer = self.pool.as_ref().and_then(|pool| pool.consumer.as_ref());
        let copy = consumer.and_then(|consumer| consumer.copy.as_ref());
        let mut files = written.chain(copy.map(|(_, file)| file));
        self.running && files.any(|file| file.eq_ignore_ascii_case(name))
    }

    /// The file that a request creates: for what is in memory, or for a consumer.
    pub fn file_of<'a>(&'a self, request: &'a Request) -> Option<&'a str> {
        match request {
            Request::Flush(file) if self.plan.mode.has(LogFileMode::BUFFERING) => {
                file.as_deref().or(self.plan.file.as_deref())
            }
            Request::Consume { file, .. } => file.as_deref(),
            _ => None,
        }
    }

    /// The outcomes of the buffers in its closed files.
    fn in_files(&mut self) -> Option<&mut BufferTracker> {
        let memory = self.pool.as_mut().map(|pool| &mut pool.tracker);
        self.closed.as_mut().or(memory)
    }

    /// Its buffers in a file are gone, because the file was created again. Returns whether it had
    /// any there.
    pub fn replaced(&mut self, file: &str) -> bool {
        self.in_files()
            .is_some_and(|tracker| tracker.replaced(file))
    }

    /// The bytes of the buffer that it wrote last to a file, if its files can change.
    pub fn last_buffer(&mut self, file: &str) -> Option<Range<u64>> {
        self.in_files()?.last_in(file)
    }

    /// The raw timestamp of this session at a time.
    pub fn timestamp(&self, clock: &Clock, at: Nanos) -> i64 {
        clock
            .timestamp(self.plan.clock, at)
            .saturating_add(skew(&self.plan))
    }

    /// Bytes of the largest record that fits in one of its buffers.
    pub fn largest_record(&self) -> usize {
        (self.plan.buffer_size as usize).saturating_sub(BUFFER_HEADER_SIZE)
    }

    /// Whether a record of this length, after the waiting records, fits in the current buffer of
    /// its processor or in free buffers.
    pub fn has_space(&self, processor: u16, len: usize) -> bool {
        let whole = self.largest_record();
        if len > whole || !self.running {
            return false;
        }
        let len = len.saturating_add(self.unsettled.as_ref().map_or(0, Unsettled::len));
        if let Some(file) = &self.file
            && !self.can_hold(len, file.free_bytes(processor), file.in_use())
        {
            return false;
        }
        match &self.pool {
            Some(pool) if !pool.can_replace() => {
                self.can_hold(len, pool.free_bytes(processor), pool.in_use())
            }
            _ => true,
        }
    }

    /// Whether `len` bytes fit in the `free` bytes of a current buffer and in the buffers that are
    /// not in use.
    fn can_hold(&self, len: usize, free: usize, in_use: usize) -> bool {
        let whole = self.largest_record();
        let in_current = if free < whole { free } else { 0 };
        let more_buffers = len.saturating_sub(in_current).div_ceil(whole.max(1));
        more_buffers == 0 || in_use.saturating_add(more_buffers) <= self.plan.buffers as usize
    }

    /// Whether an event that does not fit is lost in this session only.
    pub fn is_independent(&self) -> bool {
        self.plan.mode.has(LogFileMode::INDEPENDENT_SESSION)
    }

    /// Writes the record of an event into the buffer of its processor, or keeps it until it is
    /// settled. Returns whether a buffer was sealed.
    pub fn write(
        &mut self,
        at: Nanos,
        processor: u16,
        number: u64,
        record: &impl Record,
        len: usize,
    ) -> Result<bool> {
        self.recorded += 1;
        match &mut self.unsettled {
            Some(waiting) => waiting
                .push(at, processor, number, record, len)
                .map(|()| false),
            None => self.put(processor, number, record, len),
        }
    }

    /// Writes the records before a time that waited for it. Returns whether a buffer was sealed.
    pub fn settle(&mut self, before: Nanos) -> Result<bool> {
        let mut any = false;
        while let Some(record) = self.unsettled.as_mut().and_then(|w| w.pop_before(before)) {
            let raw = Raw {
                bytes: &record.bytes,
                timestamp: record.timestamp,
            };
            any |= self.put(record.processor, record.number, &raw, record.len)?;
        }
        Ok(any)
    }

    /// Whether no record waits.
    pub fn is_settled(&self) -> bool {
        self.unsettled.as_ref().is_none_or(Unsettled::is_empty)
    }

    fn put(
        &mut self,
        processor: u16,
        number: u64,
        record: &impl Record,
        len: usize,
    ) -> Result<bool> {
        let Session {
            plan,
            sealed,
            file,
            pool,
            ..
        } = self;
        let mut any = false;
        if let Some(file) = file {
            any |= file.write(processor, number, record, len, || {
                *sealed += 1;
                plan.faults.iter().any(|fault| match fault {
                    Fault::LostBuffers(n) => sealed.is_multiple_of(u64::from((*n).max(1))),
                    _ => false,
                })
            })?;
        }
        if let Some(pool) = pool {
            any |= pool.write(processor, number, record, len)?;
        }
        Ok(any)
    }

    /// Counts an event that was lost.
    pub fn drop_event(&mut self, processor: u16) -> Result<()> {
        self.lost += 1;
        if let Some(file) = &mut self.file {
            file.drop_event(processor)?;
        }
        if let Some(pool) = &mut self.pool {
            pool.lose_event(processor);
        }
        Ok(())
    }

    /// The flush timer expires.
    pub fn seal_all(&mut self) {
        if let Some(file) = &mut self.file {
            file.seal_all();
        }
        // A session in memory keeps its buffers until it is flushed.
        if let Some(pool) = self.pool.as_mut().filter(|pool| pool.consumer.is_some()) {
            pool.seal_all();
        }
    }

    /// Starts to write the next buffer if the disk is free. Returns the bytes to write.
    pub fn next_write(&mut self) -> Option<u32> {
        let waiting = self.file.as_ref().is_some_and(LogFile::has_sealed);
        if !self.running || self.disk_busy || !waiting {
            return None;
        }
        self.disk_busy = true;
        Some(self.plan.buffer_size)
    }

    /// Starts to deliver the next buffer. Returns its bytes, and the bytes per second of the
    /// consumer.
    pub fn next_delivery(&mut self) -> Option<(u32, u64)> {
        let pool = self.pool.as_ref().filter(|pool| pool.has_sealed())?;
        let speed = pool.consumer.as_ref().map(|consumer| consumer.speed)?;
        if self.consumer_busy {
            return None;
        }
        self.consumer_busy = true;
        Some((self.plan.buffer_size, speed))
    }

    /// The disk has written a buffer.
    pub fn written(&mut self, timestamp: i64, store: &mut dyn FileSystem) -> Result<()> {
        self.disk_busy = false;
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.flush_one(timestamp, store)?;
        Ok(())
    }

    /// The consumer has received a buffer.
    pub fn delivered(&mut self, timestamp: i64) -> Result<()> {
        self.consumer_busy = false;
        let Some(pool) = &mut self.pool else {
            return Ok(());
        };
        pool.deliver(timestamp)
    }

    /// A consumer starts to read the session, and keeps a file of it if one is named.
    pub fn consume(
        &mut self,
        speed: u64,
        file: Option<&str>,
        store: &mut dyn FileSystem,
    ) -> Result<bool> {
        let Some(pool) = self.pool.as_mut().filter(|pool| pool.consumer.is_none()) else {
            return Ok(false);
        };
        if !self.plan.mode.has(LogFileMode::REAL_TIME) {
            return Ok(false);
        }
        let copy = match file {
            Some(file) => {
                add_file(&mut self.files, file);
                let copy = copy(&self.config, file, self.lost, &mut pool.tracker, store)?;
                Some((copy, file.to_owned()))
            }
            None => None,
        };
        pool.consumer = Some(Consumer {
            speed,
            copy,
            lost: 0,
        });
        Ok(true)
    }

    /// The consumer stops reading.
    pub fn leave(&mut self, filetime: i64) -> Result<()> {
        let Some(pool) = &mut self.pool else {
            return Ok(());
        };
        pool.leave(filetime)
    }

    /// Writes all buffers; a session in memory writes them to the file of this name. Returns
    /// `false` if it has no file.
    pub fn flush_now(
        &mut self,
        timestamp: i64,
        filetime: i64,
        to: Option<&str>,
        store: &mut dyn FileSystem,
    ) -> Result<bool> {
        if let Some(file) = &mut self.file {
            file.flush(timestamp, store)?;
            self.seal_all();
            return Ok(true);
        }
        if !self.plan.mode.has(LogFileMode::BUFFERING) {
            self.seal_all();
            return Ok(true);
        }
        let Some(name) = to.map(str::to_owned).or_else(|| self.plan.file.clone()) else {
            return Ok(false);
        };
        let Some(pool) = &mut self.pool else {
            return Ok(false);
        };
        pool.seal_all();
        let mut copy = copy(&self.config, &name, self.lost, &mut pool.tracker, store)?;
        self.flushed += pool.write_all(&mut copy, timestamp)?;
        let summary = copy.close(Some(FileTime::new(filetime)))?.report;
        pool.tracker.note_written();
        self.summary.buffers_written += in_copy(&summary);
        self.summary.files += 1;
        add_file(&mut self.files, &name);
        Ok(true)
    }

    /// Takes the reports of its buffers since the last call.
    pub fn take_buffer_reports(&mut self) -> Vec<BufferReport> {
        // The buffers of a real-time session with a file are copies of the buffers in the file.
        let memory = self
            .pool
            .as_mut()
            .map(|pool| pool.tracker.take_reports())
            .unwrap_or_default();
        match (&mut self.file, &mut self.closed) {
            (Some(file), _) => file.tracker.take_reports(),
            (None, Some(tracker)) => tracker.take_reports(),
            (None, None) => memory,
        }
    }

    /// A fault changed bytes of one of its files.
    pub fn damaged(&mut self, file: &str, bytes: &Range<u64>, removed: bool) {
        if let Some(tracker) = self.in_files() {
            tracker.damaged(file, bytes, removed);
        }
    }

    pub fn close(
        &mut self,
        at: Nanos,
        abandon: bool,
        clock: &Clock,
        store: &mut dyn FileSystem,
    ) -> Result<()> {
        if !std::mem::take(&mut self.running) {
            return Ok(());
        }
        let timestamp = self.timestamp(clock, at);
        let filetime = clock.filetime(at);
        self.settle(Nanos::MAX)?;
        if let Some(pool) = &mut self.pool {
            pool.end(timestamp, filetime)?;
            self.delivered = pool.delivered;
            self.kept = pool.kept;
        }
        if let Some(file) = self.file.take() {
            let end = (!abandon).then_some((timestamp, filetime));
            let (summary, files, tracker) = file.close(end, store)?;
            self.summary = summary;
            let copies = std::mem::replace(&mut self.files, files);
            copies
                .iter()
                .for_each(|file| add_file(&mut self.files, file));
            self.closed = Some(tracker);
        }
        if let Some(BufferPool {
            copied_files: files,
            copied_buffers: buffers,
            ..
        }) = &self.pool
        {
            self.summary.files = self.summary.files.saturating_add(*files);
            self.summary.buffers_written = self.summary.buffers_written.saturating_add(*buffers);
        }
        self.stopped = (!abandon).then_some(at);
        Ok(())
    }

    pub fn report(&self, index: usize) -> SessionReport {
        SessionReport {
            index,
            name: self.plan.name.clone(),
            plan: self.plan.clone(),
            file: self.files.first().cloned(),
            all_files: self.files.clone(),
            process: self.process.map(ProcessId::new),
            started: self.started,
            stopped: self.stopped,
            clock: self.plan.clock,
            skew_ticks: skew(&self.plan),
            events_recorded: self.recorded,
            events_lost: self.lost,
            events_in_lost_buffers: self.summary.events_in_lost_buffers,
            buffers_lost: self.summary.buffers_lost,
            events_written: self
                .summary
                .events_written
                .saturating_add(self.flushed + if self.closed.is_some() { 0 } else { self.kept }),
            events_delivered: self.delivered,
            buffers_written: self.summary.buffers_written,
            files_written: self.summary.files,
        }
    }
}

/// Adds a file that a session writes; one that it creates again stays in its place.
fn add_file(files: &mut Vec<String>, file: &str) {
    if !files.iter().any(|f| f == file) {
        files.push(file.to_owned());
    }
}

/// A file for buffers in memory: it has the header of the session, and buffers keep their numbers.
fn copy(
    config: &SessionConfig,
    name: &str,
    lost: u64,
    tracker: &mut BufferTracker,
    store: &mut dyn FileSystem,
) -> Result<Writer<FileSequence>> {
    tracker.replaced(name);
    let mut config = config.clone();
    let header = &mut config.header;
    header.maximum_file_size = 0;
    header.events_lost = u32::try_from(lost).unwrap_or(u32::MAX);
    header.log_file_name = format!("C:\\traces\\{name}").encode_utf16().collect();
    let size = header.buffer_size;
    let timestamp = header.timestamp;
    let resume = Resume {
        at: size.into(),
        buffers: 1,
        next_sequence: tracker.oldest(),
        last_flush: timestamp,
    };
    Writer::append(tracker.watch(name, store.create(name)?), config, resume)
}

/// Ticks by which the timestamps of a session are ahead.
fn skew(plan: &SessionPlan) -> i64 {
    plan.faults.iter().fold(0, |sum: i64, fault| match fault {
        Fault::Skew(ticks) => sum.saturating_add(*ticks),
        _ => sum,
    })
}

/// Whether written buffers of this session can be overwritten or damaged.
fn may_change(plan: &SessionPlan) -> bool {
    plan.mode.has(LogFileMode::CIRCULAR) || plan.faults.iter().any(Fault::is_of_the_file)
}

/// The request to start a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartRequest<'a> {
    pub plan: &'a SessionPlan,
    /// The process of a private session.
    pub process: Option<u32>,
    pub at: Nanos,
    /// The process that writes the header: the controller, or the process of a private session.
    pub writer_pid: u32,
    /// Its thread.
    pub writer_tid: u32,
}

impl StartRequest<'_> {
    /// The content of buffer 0.
    pub fn config(&self, id: u16, machine: &MachinePlan, clock: &Clock) -> Result<SessionConfig> {
        let StartRequest { plan, at, .. } = *self;
        let large = plan.buffer_size > 1 << 20 || machine.processors > 256;
        let mut time_zone = TimeZone {
            bias: machine.bias,
            ..TimeZone::default()
        };
        for (slot, unit) in time_zone
            .standard_name
            .iter_mut()
            .zip(machine.zone.encode_utf16().take(31))
        {
            *slot = unit;
        }
        let one = plan.mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
        let width = machine.pointer_size;
        let mut os = machine.os;
        let mut logger_name = plan.name.as_str();
        if plan.event_pipe.is_some() {
            // As in the trace of a stream, which does not state its system.
            os.major = 0;
            os.minor = 0;
            os.build = 0;
            logger_name = FileHeader::EVENT_PIPE_NAME;
        }
        let header = FileHeader {
            pointer_size: width,
            stated_pointer_size: width.bytes() as u32,
            thread_id: self.writer_tid,
            process_id: self.writer_pid,
            timestamp: Ticks::new(clock.timestamp(plan.clock, at).saturating_add(skew(plan))),
            buffer_size: plan.buffer_size,
            os_major: os.major,
            os_minor: os.minor,
            log_major: if large { 2 } else { 1 },
            log_minor: if large { 0 } else { 5 },
            build: os.build,
            processors: if one { 1 } else { machine.processors.into() },
            maximum_file_size: plan.maximum_size,
            // The header of a file lacks the real-time mode of its session.
            mode: LogFileMode(plan.mode.0 & !LogFileMode::REAL_TIME.0),
            cpu_mhz: machine.cpu_mhz,
            logger_name_word: 5,
            log_file_name_word: 6,
            time_zone,
            boot_time: FileTime::new(clock.boot()),
            perf_freq: i64::try_from(machine.frequency).unwrap_or(i64::MAX),
            start_time: FileTime::new(clock.filetime(at)),
            clock_type: plan.clock,
            logger_name: logger_name.encode_utf16().collect(),
            log_file_name: match &plan.file {
                Some(file) => format!("C:\\traces\\{file}").encode_utf16().collect(),
                None => Vec::new(),
            },
            ..FileHeader::new()
        };
        let mut config = SessionConfig::new(header);
        config.logger_id = id;
        config.hold_sealed = true;
        if os.build >= 17_763 {
            // The root partition of a host: type 0, offset 0, two empty ids.
            config.add_header_group(hook::PARTITION_INFO, &[0; 48])?;
        }
        // The kernel's own sessions state at first that no group is enabled.
        if !plan.kernel.is_empty() {
            let kernel_event_version = machine.kernel_event_version();
            let payload = [&[0; 32][..], &kernel_event_version.to_le_bytes()].concat();
            config.add_header_group(hook::EXTENSION, &payload)?;
        }
        Ok(config)
    }
}
