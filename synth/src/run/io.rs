//! Files, disks and the network: what threads do with them, when they wait, and when they continue.
//!
//! A thread that waits for a disk or for the network leaves its processor. All of it happens, and
//! takes its time, whether or not a session records it.

use crate::error::Result;
use crate::etw::Origin;
use crate::kernel::{DiskRequest, FileRequest, PageIn, TcpStep};
use crate::machine::{Connection, Handle, Process, sectors};
use crate::time::{MICROSECOND, MILLISECOND, Nanos};
use crate::truth::{Fact, FileOperation, IoReport, NetworkOperation};

use super::io_op::{IoOp, OpenRequest, Transfer};
use super::op_queue::Op;
use super::{Simulator, Task};

/// Bytes of the largest request to a disk.
const LARGEST_REQUEST: u64 = 1 << 20;
const NORMAL_FILE: u32 = 0x80;
/// How a file was opened: it existed, or was created.
const OPENED: u64 = 1;
const CREATED: u64 = 2;

/// A request that a disk serves.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    request: DiskRequest,
    thread: usize,
    pid: u32,
    path: String,
}

/// The result of an operation: the time of its last event, its cost after that, what follows.
type Performed = (Nanos, Nanos, Vec<Op>);

impl Simulator<'_> {
    /// A thread performs an operation.
    pub(super) fn perform_io(&mut self, thread: usize, op: IoOp, from: Nanos) -> Result<Performed> {
        let nothing = Ok((from, 0, Vec::new()));
        let Some(process) = self.machine.threads.get(thread).map(|t| t.process) else {
            return nothing;
        };
        if !self
            .machine
            .processes
            .get(process)
            .is_some_and(Process::is_alive)
        {
            return nothing;
        }
        let mut at = self.origin(thread, from);
        match op {
            IoOp::Open(request) => {
                self.open(thread, process, request, &mut at)?;
            }
            IoOp::Transfer(handle, mut transfer) => {
                let Some(open) = self.handle(handle) else {
                    return nothing;
                };
                transfer.since = from;
                transfer.irp = self.machine.files.irps.take(from);
                self.ask(thread, transfer.request(), transfer.irp, &open, &at)?;
                return self.go_on(thread, handle, open, transfer, at);
            }
            IoOp::Continue(handle, transfer) => {
                let Some(open) = self.handle(handle) else {
                    return nothing;
                };
                return self.go_on(thread, handle, open, transfer, at);
            }
            IoOp::PageIn(file, page) => return self.page_in(thread, file, page, at),
            IoOp::PagedIn(file, page) => {
                self.etw.log_hard_fault(&page, at.tid, &at)?;
                self.report_fault(file, &page, &at)?;
            }
            IoOp::Flush(handle) => {
                let flush = Transfer::new(FileOperation::Flush, 0, 0, false);
                return self.perform_io(thread, IoOp::Transfer(handle, flush), from);
            }
            IoOp::Delete(handle) => {
                let Some(open) = self.handle(handle) else {
                    return nothing;
                };
                let irp = self.machine.files.irps.take(at.at);
                self.ask(thread, FileRequest::Delete, irp, &open, &at)?;
                self.answer(thread, irp, 0, &mut at)?;
                self.report_file(FileOperation::Delete, from, &open, None, &at)?;
                // Its name is gone when the last one that has it open closes it.
                self.machine.files.delete_at_close(open.file);
            }
            IoOp::Close(handle) => self.close_file(thread, handle, &mut at)?,
            IoOp::CloseAll => self.close_all(thread, process, &mut at)?,
            IoOp::Network(step, connection) => {
                let wait = self.wait_for(thread, step);
                let then = vec![Op::Io(IoOp::NetworkDone(step, connection))];
                if wait > 0 {
                    self.block(thread);
                    self.plan(from.saturating_add(wait), Task::Resume(thread));
                }
                return Ok((from, 0, then));
            }
            IoOp::NetworkDone(step, connection) => {
                self.communicate(process, step, &connection, &at)?;
            }
        }
        Ok((at.at, MICROSECOND, Vec::new()))
    }

    fn handle(&self, handle: u64) -> Option<Handle> {
        self.machine.files.open.get(&handle).copied()
    }

    /// Draws a time that a thread needs.
    fn draw_time(&mut self, thread: usize, min: Nanos, max: Nanos) -> Nanos {
        let thread = self.machine.threads.get_mut(thread);
        thread.map_or(min, |t| t.rng.between(min, max))
    }

    /// A thread asks a file system for something.
    fn ask(
        &mut self,
        thread: usize,
        request: FileRequest<'_>,
        irp: u64,
        open: &Handle,
        at: &Origin,
    ) -> Result<()> {
        self.etw.log_file(request, irp, open, at)?;
        self.take_stack(request.event(), Some(thread), at)
    }

    /// The file system answers, a little later.
    fn answer(&mut self, thread: usize, irp: u64, what: u64, at: &mut Origin) -> Result<()> {
        let time = self.draw_time(thread, 2 * MICROSECOND, 12 * MICROSECOND);
        at.at = at.at.saturating_add(time);
        self.machine.files.irps.give_back(irp, at.at);
        self.etw.log_file_end(irp, what, at)
    }

    fn open(
        &mut self,
        thread: usize,
        process: usize,
        request: OpenRequest,
        at: &mut Origin,
    ) -> Result<()> {
        let OpenRequest {
            handle,
            file,
            options,
            share,
        } = request;
        let since = at.at;
        let irp = self.machine.files.irps.take(at.at);
        let object = self.machine.files.objects.take(at.at);
        let (key, new, created) = self.machine.files.name(file, at.at);
        let open = Handle {
            process,
            file,
            object,
            key,
        };
        self.machine.files.open.insert(handle, open);
        let path = self.path_of(file);
        let kernel_path = self.machine.files.kernel_path(&path);
        let create = FileRequest::Create(&kernel_path, options, NORMAL_FILE, share);
        self.ask(thread, create, irp, &open, at)?;
        at.at = at.at.saturating_add(5 * MICROSECOND);
        if new {
            self.etw.log_file_name(false, key, &kernel_path, at)?;
        }
        self.answer(thread, irp, if created { CREATED } else { OPENED }, at)?;
        self.report_file(FileOperation::Open, since, &open, None, at)
    }

    /// A thread closes a file: the handle, and then the file object.
    fn close_file(&mut self, thread: usize, handle: u64, at: &mut Origin) -> Result<()> {
        let Some(open) = self.machine.files.open.remove(&handle) else {
            return Ok(());
        };
        let since = at.at;
        for request in [FileRequest::Cleanup, FileRequest::Close] {
            let irp = self.machine.files.irps.take(at.at);
            self.ask(thread, request, irp, &open, at)?;
            at.at = at.at.saturating_add(MICROSECOND);
            if request == FileRequest::Cleanup
                && let Some(key) = self.machine.files.closed(open.file, at.at)
            {
                let path = self.machine.files.kernel_path(&self.path_of(open.file));
                self.etw.log_file_name(true, key, &path, at)?;
            }
            self.answer(thread, irp, 0, at)?;
        }
        self.machine.files.objects.give_back(open.object, at.at);
        self.report_file(FileOperation::Close, since, &open, None, at)
    }

    /// A transfer or flush continues: with the next request to the disk, or to its end.
    fn go_on(
        &mut self,
        thread: usize,
        handle: u64,
        open: Handle,
        mut transfer: Transfer,
        mut at: Origin,
    ) -> Result<Performed> {
        let flush = transfer.operation == FileOperation::Flush;
        let (start, bytes) = sectors(transfer.offset, transfer.bytes);
        let left = bytes.saturating_sub(transfer.done);
        // A flush is one request without bytes.
        let more = if flush { transfer.done == 0 } else { left > 0 };
        if transfer.cached || !more {
            // Memory is copied at 8 bytes in a nanosecond.
            at.at = at.at.saturating_add(transfer.bytes / 8);
            let irp = transfer.irp;
            self.answer(thread, irp, transfer.bytes, &mut at)?;
            self.report_file(
                transfer.operation,
                transfer.since,
                &open,
                Some(&transfer),
                &at,
            )?;
            return Ok((at.at, MICROSECOND, Vec::new()));
        }
        at.at = at.at.saturating_add(3 * MICROSECOND);
        let part = if flush { 0 } else { left.min(LARGEST_REQUEST) };
        let file = self.machine.files.get(open.file);
        let (disk, first) = file.map_or((0, 0), |f| (f.disk, f.start));
        let place = if flush {
            0
        } else {
            first.saturating_add(start + transfer.done)
        };
        let request = DiskRequest {
            disk,
            start: place,
            bytes: part,
            write: transfer.operation == FileOperation::Write,
            irp: self.machine.files.irps.take(at.at),
            key: open.key,
            since: at.at,
            tid: at.tid,
        };
        let path = self.path_of(open.file);
        self.ask_disk(thread, request, path, &at)?;
        transfer.done += if flush { 1 } else { part };
        let then = vec![Op::Io(IoOp::Continue(handle, transfer))];
        Ok((at.at, MICROSECOND, then))
    }

    /// A thread touches a page of a mapped file, and waits until a disk has read it.
    fn page_in(
        &mut self,
        thread: usize,
        file: usize,
        page: PageIn,
        mut at: Origin,
    ) -> Result<Performed> {
        let since = at.at;
        let (key, new, _) = self.machine.files.name(file, at.at);
        if new {
            let path = self.machine.files.kernel_path(&self.path_of(file));
            self.etw.log_file_name(false, key, &path, &at)?;
        }
        at.at = at.at.saturating_add(3 * MICROSECOND);
        let (start, bytes) = sectors(page.offset, page.bytes.into());
        let place = self.machine.files.get(file);
        let (disk, first) = place.map_or((0, 0), |f| (f.disk, f.start));
        let request = DiskRequest {
            disk,
            start: first.saturating_add(start),
            bytes,
            write: false,
            irp: self.machine.files.irps.take(at.at),
            key,
            since: at.at,
            tid: at.tid,
        };
        let path = self.path_of(file);
        self.ask_disk(thread, request, path, &at)?;
        let page = PageIn { since, key, ..page };
        let then = vec![Op::Io(IoOp::PagedIn(file, page))];
        Ok((at.at, MICROSECOND, then))
    }

    /// A thread asks a disk for something, and waits until it is served.
    fn ask_disk(
        &mut self,
        thread: usize,
        request: DiskRequest,
        path: String,
        at: &Origin,
    ) -> Result<()> {
        self.etw.log_disk_init(&request, at)?;
        self.take_stack(request.events().0, Some(thread), at)?;
        let disk = self.machine.disks.get_mut(request.disk as usize);
        let ends = disk.map_or(at.at, |d| d.serve(request.bytes, at.at));
        let irp = request.irp;
        let pending = Pending {
            request,
            thread,
            pid: at.pid,
            path,
        };
        self.requests.insert(irp, pending);
        self.plan(ends, Task::Disk(irp));
        self.block(thread);
        Ok(())
    }

    /// A disk has served a request: it interrupts a processor, and the thread continues.
    pub(super) fn disk_done(&mut self, irp: u64) -> Result<()> {
        let Some(pending) = self.requests.remove(&irp) else {
            return Ok(());
        };
        let Pending {
            request,
            thread,
            pid,
            path,
        } = pending;
        // The first processor serves the interrupts of disks. A flush ends where it began.
        let own_processor = self.machine.threads.get(thread).map_or(0, |t| t.processor);
        let processor = if request.bytes == 0 { own_processor } else { 0 };
        let at = self.now.max(self.machine.horizon(processor.into()));
        self.settle(processor.into(), at)?;
        let current = self
            .machine
            .processors
            .get(usize::from(processor))
            .and_then(|p| p.current());
        let origin = self.origin_on(processor.into(), current, at);
        self.etw.log_disk_end(&request, &origin)?;
        self.machine.advance(processor.into(), at);
        self.machine.files.irps.give_back(irp, at);
        let operation = match (request.bytes, request.write) {
            (0, _) => FileOperation::Flush,
            (_, false) => FileOperation::Read,
            (_, true) => FileOperation::Write,
        };
        self.report_io(IoReport::Disk {
            started_ns: request.since,
            ended_ns: at,
            pid: pid.into(),
            tid: request.tid.into(),
            operation,
            path,
            file_key: request.key,
            irp,
            disk: request.disk,
            offset: request.start,
            bytes: request.bytes,
        })?;
        self.plan(at, Task::Resume(thread));
        Ok(())
    }

    /// A thread waits from now on.
    fn block(&mut self, thread: usize) {
        if let Some(found) = self.machine.threads.get_mut(thread) {
            found.blocked = true;
        }
    }

    /// A thread that waited continues.
    pub(super) fn resume(&mut self, thread: usize) -> Result<()> {
        let Some(found) = self.machine.threads.get_mut(thread) else {
            return Ok(());
        };
        found.blocked = false;
        self.wake(thread)?;
        self.plan(self.now, Task::RunThread(thread));
        Ok(())
    }

    /// How long a thread waits for the other side.
    fn wait_for(&mut self, thread: usize, step: TcpStep) -> Nanos {
        match step {
            TcpStep::Connect | TcpStep::Receive(_) => {
                self.draw_time(thread, 300 * MICROSECOND, 30 * MILLISECOND)
            }
            _ => 0,
        }
    }

    fn communicate(
        &mut self,
        process: usize,
        step: TcpStep,
        of: &Connection,
        at: &Origin,
    ) -> Result<()> {
        let connected = &mut self.machine.network.connected;
        let (operation, bytes) = match step {
            TcpStep::Connect => (NetworkOperation::Connect, 0),
            TcpStep::Accept => (NetworkOperation::Accept, 0),
            TcpStep::Send(bytes) => (NetworkOperation::Send, bytes),
            TcpStep::Receive(bytes) => (NetworkOperation::Receive, bytes),
            TcpStep::Disconnect => (NetworkOperation::Disconnect, 0),
        };
        match step {
            TcpStep::Connect | TcpStep::Accept => {
                connected.insert((of.local, of.remote), process);
            }
            TcpStep::Disconnect => {
                connected.remove(&(of.local, of.remote));
            }
            _ => {}
        }
        self.etw.log_network(step, of, at)?;
        self.report_io(IoReport::Network {
            at_ns: at.at,
            pid: at.pid.into(),
            tid: at.tid.into(),
            operation,
            protocol: if of.udp { "udp" } else { "tcp" },
            local: of.local,
            remote: of.remote,
            bytes,
        })
    }

    /// Whether a process has something open or connected.
    pub(super) fn uses_io(&self, process: usize) -> bool {
        self.machine
            .files
            .open
            .values()
            .any(|open| open.process == process)
            || self
                .machine
                .network
                .connected
                .values()
                .any(|of| *of == process)
    }

    fn close_all(&mut self, thread: usize, process: usize, at: &mut Origin) -> Result<()> {
        let files = &self.machine.files.open;
        let open: Vec<u64> = files
            .iter()
            .filter(|(_, h)| h.process == process)
            .map(|(handle, _)| *handle)
            .collect();
        for handle in open {
            self.close_file(thread, handle, at)?;
        }
        let connected = &self.machine.network.connected;
        let sides_of_process = connected
            .iter()
            .filter(|(_, user)| **user == process)
            .map(|(sides, _)| *sides);
        for (local, remote) in sides_of_process.collect::<Vec<_>>() {
            let connection = Connection {
                local,
                remote,
                udp: false,
            };
            at.at = at.at.saturating_add(MICROSECOND);
            self.communicate(process, TcpStep::Disconnect, &connection, at)?;
        }
        Ok(())
    }

    /// The file of an image is in use.
    pub(super) fn name_image(&mut self, path: &str, origin: &Origin) -> Result<()> {
        let file = self.machine.files.find_image(path);
        let (key, new, _) = self.machine.files.name(file, origin.at);
        if !new {
            return Ok(());
        }
        let path = self.machine.files.kernel_path(path);
        self.etw.log_file_name(false, key, &path, origin)
    }

    fn path_of(&self, file: usize) -> String {
        self.machine
            .files
            .get(file)
            .map(|f| f.path.clone())
            .unwrap_or_default()
    }

    fn report_file(
        &mut self,
        operation: FileOperation,
        started_ns: Nanos,
        open: &Handle,
        transfer: Option<&Transfer>,
        at: &Origin,
    ) -> Result<()> {
        let transfer = transfer.filter(|t| t.operation != FileOperation::Flush);
        self.report_io(IoReport::File {
            started_ns,
            ended_ns: at.at,
            pid: at.pid.into(),
            tid: at.tid.into(),
            operation,
            path: self.path_of(open.file),
            file_key: open.key,
            file_object: open.object,
            offset: transfer.map(|t| t.offset),
            bytes: transfer.map(|t| t.bytes),
            cached: transfer.map(|t| t.cached),
        })
    }

    fn report_fault(&mut self, file: usize, page: &PageIn, at: &Origin) -> Result<()> {
        self.report_io(IoReport::Fault {
            started_ns: page.since,
            ended_ns: at.at,
            pid: at.pid.into(),
            tid: at.tid.into(),
            path: self.path_of(file),
            file_key: page.key,
            offset: page.offset,
            bytes: page.bytes,
        })
    }

    fn report_io(&mut self, report: IoReport) -> Result<()> {
        self.etw.observer.observe(&Fact::Io(&report))
    }
}
