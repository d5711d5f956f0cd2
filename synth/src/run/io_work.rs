//! What processes are asked to do with files and the network, as operations of their threads.
//!
//! All operations on an open file, or on a connection, are performed by the thread that began with
//! it, so that they are done in the order of the script.

use std::net::SocketAddr;

use crate::error::{Error, Result};
use crate::kernel::{PageIn, TcpStep};
use crate::machine::{Connection, OpenFile, Socket};
use crate::model::IoWork;
use crate::truth::FileOperation;

use super::Simulator;
use super::io_op::{IoOp, OpenRequest, Transfer};
use super::op_queue::Op;

/// Options of an open: the disposition in the high byte (open; open or create), synchronous
/// requests, no directory.
const OPEN: u32 = 0x0100_0060;
const OPEN_IF: u32 = 0x0300_0060;
/// The same for a delete: through links, with the rights of a backup.
const OPEN_TO_DELETE: u32 = 0x0120_4040;
/// What others may do meanwhile: read; read, write and delete.
const SHARE_READ: u32 = 1;
const SHARE_ALL: u32 = 7;

/// Where files are mapped into processes.
const MAPPED: u64 = 0x1000_0000;

impl Simulator<'_> {
    /// A process is asked to use a file or the network: the operations, and the thread that
    /// performs them: `next`, unless another thread has begun with it.
    pub(super) fn io_work(&mut self, process: usize, next: usize, work: &IoWork) -> Result<()> {
        match work {
            IoWork::Open(path) => self.with_file(process, next, path, None, true),
            IoWork::Transfer(plan) => {
                let op = |handle| IoOp::Transfer(handle, Transfer::of(plan));
                self.with_file(process, next, &plan.path, Some(&op), false)
            }
            IoWork::PageIn(plan) => {
                let file = self.file(&plan.path)?;
                let page = PageIn {
                    since: 0,
                    offset: plan.offset,
                    bytes: plan.bytes,
                    key: 0,
                    address: MAPPED + plan.offset % MAPPED,
                };
                self.enqueue(next, [Op::Io(IoOp::PageIn(file, page))])
            }
            IoWork::Flush(path) => self.with_file(process, next, path, Some(&IoOp::Flush), false),
            IoWork::Close(path) => {
                let user_process = self.machine.processes.get_mut(process);
                let open = user_process.and_then(|p| p.files.remove(&path.to_lowercase()));
                let Some(OpenFile { handle, thread }) = open else {
                    return Err(self.impossible(format!("the process has \"{path}\" not open")));
                };
                let thread = self.user(process, thread, next);
                self.enqueue(thread, [Op::Io(IoOp::Close(handle))])
            }
            IoWork::Delete(path) => {
                let file = self.file(path)?;
                if self.open_file(process, path).is_some() {
                    return Err(self.impossible(format!("the process has \"{path}\" open")));
                }
                let handle = self.machine.files.new_handle();
                let open = IoOp::Open(OpenRequest {
                    handle,
                    file,
                    options: OPEN_TO_DELETE,
                    share: SHARE_ALL,
                });
                let ops = [open, IoOp::Delete(handle), IoOp::Close(handle)];
                self.enqueue(next, ops.map(Op::Io))
            }
            IoWork::Connect(remote) => self.connect(process, next, *remote, 0, TcpStep::Connect),
            IoWork::Accept(remote, port) => {
                self.connect(process, next, *remote, *port, TcpStep::Accept)
            }
            IoWork::Message(message) => {
                let bytes = message.bytes;
                let step = if message.sent {
                    TcpStep::Send(bytes)
                } else {
                    TcpStep::Receive(bytes)
                };
                let remote = message.remote;
                let udp = message.udp.is_some();
                let socket = match (self.socket(process, remote, udp), message.udp) {
                    (Some(socket), _) => socket,
                    (None, Some(port)) => self.new_socket(process, next, remote, port, true),
                    (None, None) => return Err(self.not_connected(remote)),
                };
                let op = Op::Io(IoOp::Network(step, socket.connection));
                let thread = self.user(process, socket.thread, next);
                self.enqueue(thread, [op])
            }
            IoWork::Disconnect(remote) => {
                let user_process = self.machine.processes.get_mut(process);
                let socket = user_process.and_then(|p| p.sockets.remove(&(false, *remote)));
                let Some(Socket { connection, thread }) = socket else {
                    return Err(self.not_connected(*remote));
                };
                let op = Op::Io(IoOp::Network(TcpStep::Disconnect, connection));
                let thread = self.user(process, thread, next);
                self.enqueue(thread, [op])
            }
        }
    }

    /// The thread that began with something, or `next` if it has ended.
    fn user(&self, process: usize, thread: usize, next: usize) -> usize {
        let threads = self.machine.processes.get(process).map(|p| &p.threads);
        if threads.is_some_and(|threads| threads.contains(&thread)) {
            thread
        } else {
            next
        }
    }

    fn impossible(&self, what: String) -> Error {
        Error::impossible(self.now, what)
    }

    fn not_connected(&self, remote: SocketAddr) -> Error {
        self.impossible(format!("the process has no connection with {remote}"))
    }

    fn file(&mut self, path: &str) -> Result<usize> {
        let file = self.machine.files.find(path);
        file.ok_or_else(|| self.impossible(format!("the machine has no volume for \"{path}\"")))
    }

    fn open_file(&self, process: usize, path: &str) -> Option<OpenFile> {
        let process = self.machine.processes.get(process)?;
        process.files.get(&path.to_lowercase()).copied()
    }

    /// Does something with a file, which is opened for it unless it is open. `stays`: it is only
    /// opened, and stays open.
    fn with_file(
        &mut self,
        process: usize,
        next: usize,
        path: &str,
        op: Option<&dyn Fn(u64) -> IoOp>,
        stays: bool,
    ) -> Result<()> {
        let file = self.file(path)?;
        let open = self.open_file(process, path);
        if let (Some(OpenFile { handle, thread }), Some(op)) = (open, op) {
            let thread = self.user(process, thread, next);
            return self.enqueue(thread, [Op::Io(op(handle))]);
        }
        if open.is_some() {
            return Err(self.impossible(format!("the process has \"{path}\" open")));
        }
        let handle = self.machine.files.new_handle();
        let op = op.map(|op| op(handle));
        let reads = matches!(&op, Some(IoOp::Transfer(_, t)) if t.operation == FileOperation::Read);
        let options = if reads { OPEN } else { OPEN_IF };
        let open = IoOp::Open(OpenRequest {
            handle,
            file,
            options,
            share: SHARE_READ,
        });
        let close = (!stays).then_some(IoOp::Close(handle));
        let ops = [Some(open), op, close];
        if let Some(found) = self.machine.processes.get_mut(process).filter(|_| stays) {
            found.files.insert(
                path.to_lowercase(),
                OpenFile {
                    handle,
                    thread: next,
                },
            );
        }
        self.enqueue(next, ops.into_iter().flatten().map(Op::Io))
    }

    fn socket(&self, process: usize, remote: SocketAddr, udp: bool) -> Option<Socket> {
        self.machine
            .processes
            .get(process)?
            .sockets
            .get(&(udp, remote))
            .copied()
    }

    fn new_socket(
        &mut self,
        process: usize,
        thread: usize,
        remote: SocketAddr,
        port: u16,
        udp: bool,
    ) -> Socket {
        let local = self.machine.network.local(remote, port);
        let socket = Socket {
            connection: Connection { local, remote, udp },
            thread,
        };
        if let Some(found) = self.machine.processes.get_mut(process) {
            found.sockets.insert((udp, remote), socket);
        }
        socket
    }

    fn connect(
        &mut self,
        process: usize,
        next: usize,
        remote: SocketAddr,
        port: u16,
        step: TcpStep,
    ) -> Result<()> {
        if self.socket(process, remote, false).is_some() {
            let what = format!("the process has a connection with {remote} already");
            return Err(self.impossible(what));
        }
        let socket = self.new_socket(process, next, remote, port, false);
        self.enqueue(next, [Op::Io(IoOp::Network(step, socket.connection))])
    }
}
