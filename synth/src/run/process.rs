//! Processes begin, do what is not managed, and exit.

use etl_format::constants::PointerSize;

use crate::clr::{Clr, ClrOp};
use crate::error::Result;
use crate::etw::{Origin, impossible};
use crate::kernel::{self, Change, To};
use crate::machine::{Dice, Image, MICROSECOND, MILLISECOND, Nanos, Process};
use crate::model::{About, ImagePlan, KernelEvent, ProcessPlan, RaisePlan, Sku};

use super::{Simulation, Task};

/// What a thread does, in one go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// The process and its first thread come into being.
    BeginProcess,
    /// An image is loaded.
    LoadImage(ImagePlan),
    /// An image is unloaded, by its path.
    UnloadImage(String),
    /// Another thread of the process begins.
    BeginThread(usize),
    /// Another thread of the process ends.
    EndThread(usize),
    /// The processor is kept busy.
    Compute(Nanos),
    /// An event of a provider of the scenario's own is raised.
    Raise(Box<RaisePlan>),
    /// An `EventSource` writes its manifest.
    TellManifest(usize),
    /// The process is gone.
    EndProcess,
    /// Something inside a CLR.
    Clr(usize, ClrOp),
}

/// Images of every process.
const COMMON: [(&str, u32); 3] = [
    ("C:\\Windows\\System32\\ntdll.dll", 0x1f_5000),
    ("C:\\Windows\\System32\\kernel32.dll", 0xbd_000),
    ("C:\\Windows\\System32\\KernelBase.dll", 0x2c_e000),
];

/// Images of the kernel.
const KERNEL: [(&str, u64, u64); 3] = [
    ("\\SystemRoot\\system32\\ntoskrnl.exe", 0xffff_f800_1000_0000, 0x104_6000),
    ("\\SystemRoot\\system32\\hal.dll", 0xffff_f800_0fe0_0000, 0x9_4000),
    ("\\SystemRoot\\System32\\drivers\\Ntfs.sys", 0xffff_f800_1200_0000, 0x2d_8000),
];

impl Simulation<'_> {
    /// The processes that every machine has: Idle, System, and the shell that controllers run in.
    pub(super) fn system(&mut self) {
        let width = self.scenario.machine.pointer_size;
        for (pid, name) in [(0, "Idle"), (4, "System"), (1000, "cmd.exe")] {
            self.machine.give_id(pid);
            let mut process = Process::new(pid, name, width);
            process.parent = if pid == 1000 { 4 } else { 0 };
            process.started = true;
            if pid == 4 {
                process.images = KERNEL
                    .iter()
                    .map(|(path, base, size)| Image {
                        path: (*path).to_owned(),
                        base: kernel::address(width, *base),
                        size: *size,
                        checksum: *size as u32,
                        link_time: 0x5f00_0000,
                        pdb: Some(Image::usual_pdb(path)),
                        about: About::default(),
                    })
                    .collect();
            }
            process.images.iter().for_each(|image| self.files.add(image));
            if pid == 1000 {
                process.command_line = "cmd.exe".to_owned();
            }
            self.machine.processes.push(process);
            let thread = self.machine.add_thread(self.machine.processes.len() - 1);
            if let Some(thread) = self.machine.threads.get_mut(thread) {
                thread.started = true;
                // The idle process' thread is thread 0.
                if pid == 0 {
                    thread.tid = 0;
                }
            }
        }
    }

    /// The processes of the scenario, before any of them begins.
    pub(super) fn populate(&mut self) -> Result<()> {
        let scenario = self.scenario;
        for plan in &scenario.processes {
            if scenario.machine.pointer_size == PointerSize::P4
                && plan.pointer_size == Some(PointerSize::P8)
            {
                let what = format!("a 32-bit machine does not run \"{}\" of 64 bits", plan.name);
                return Err(impossible(plan.start, what));
            }
        }
        for plan in scenario.processes.iter().filter(|p| p.pid != 0) {
            if !self.machine.give_id(plan.pid) {
                let what = format!("process id {} is taken", plan.pid);
                return Err(impossible(plan.start, what));
            }
        }
        for (place, plan) in scenario.processes.iter().enumerate() {
            let pid = if plan.pid != 0 { plan.pid } else { self.machine.fresh_id() };
            let index = self.machine.processes.len();
            let process = self.make(place, plan, pid, index);
            self.machine.processes.push(process);
            self.places.push(index);
            // One thread more than work: the system calls providers back on it.
            for _ in 0..plan.threads.saturating_add(1) {
                self.machine.add_thread(index);
            }
            self.plan(plan.start, Task::Begin(place));
            if let Some(exit) = plan.exit {
                self.plan(exit, Task::Exit(place));
            }
        }
        Ok(())
    }

    fn make(&mut self, place: usize, plan: &ProcessPlan, pid: u32, index: usize) -> Process {
        let width = plan.pointer_size.unwrap_or(self.scenario.machine.pointer_size);
        let mut process = Process::new(pid, &plan.name, width);
        process.parent = if plan.parent == 0 { 1000 } else { plan.parent };
        process.command_line = plan.command_line.clone();
        process.user = plan.user.clone();
        for (number, clr) in plan.clrs.iter().enumerate() {
            let stream = 0x1000 + (place as u64) * 0x100 + number as u64;
            let mut dice = Dice::new(self.scenario.seed, stream);
            // Instance ids differ between the processes of a real machine as well.
            let drawn = 9 + number as u16;
            let instance = if clr.instance == 0 { drawn } else { clr.instance };
            let built = Clr::new(clr, instance, index, &mut process.space, &mut dice);
            process.clrs.push(self.clrs.len());
            self.clrs.push(built);
        }
        process
    }

    /// A process begins: its first thread does what the loader does, and starts the CLRs.
    pub(super) fn begin(&mut self, place: usize) -> Result<()> {
        let Some(&index) = self.places.get(place) else { return Ok(()) };
        let Some(plan) = self.scenario.processes.get(place) else { return Ok(()) };
        let Some(process) = self.machine.processes.get(index) else { return Ok(()) };
        let threads = process.threads.clone();
        let what = format!("process {} \"{}\" begins", process.pid, process.name);
        self.etw.witness().happened(self.now, &what)?;
        self.etw.names.insert(process.pid, process.name.clone());
        let mut ops = vec![Op::BeginProcess];
        let exe = ImagePlan {
            size: 0x2_8000,
            ..ImagePlan::new(if plan.name.contains('\\') {
                plan.name.clone()
            } else {
                format!("C:\\App\\{}", plan.name)
            })
        };
        ops.push(Op::LoadImage(exe));
        for (path, size) in COMMON {
            ops.push(Op::LoadImage(ImagePlan { size, ..ImagePlan::new(path) }));
        }
        ops.extend(plan.images.iter().cloned().map(Op::LoadImage));
        ops.extend(threads.iter().skip(1).map(|thread| Op::BeginThread(*thread)));
        for &clr in &process.clrs {
            let Some(runtime) = self.clrs.get(clr) else { continue };
            let jit = match runtime.sku {
                Sku::Desktop => runtime.dll.replace("clr.dll", "clrjit.dll"),
                Sku::Core => runtime.dll.replace("coreclr.dll", "clrjit.dll"),
            };
            ops.push(Op::LoadImage(ImagePlan {
                size: 0x9c_0000,
                ..ImagePlan::new(runtime.dll.as_str())
            }));
            ops.push(Op::LoadImage(ImagePlan { size: 0x12_0000, ..ImagePlan::new(jit) }));
            ops.push(Op::Clr(clr, ClrOp::Start));
            for &thread in &threads {
                let tid = self.machine.threads.get(thread).map_or(0, |t| t.tid);
                ops.push(Op::Clr(clr, ClrOp::ThreadCreated(thread, tid, false)));
            }
        }
        if let Some(&first) = threads.first() {
            self.give(first, ops)?;
        }
        Ok(())
    }

    /// A process is to exit: its CLRs go first, then everything else.
    pub(super) fn exit(&mut self, place: usize) -> Result<()> {
        let Some(&index) = self.places.get(place) else { return Ok(()) };
        let Some(process) = self.machine.processes.get(index).filter(|p| p.is_alive()) else {
            return Ok(());
        };
        let Some(&first) = process.threads.first() else { return Ok(()) };
        let clrs = process.clrs.clone();
        // What the process was about to do does not happen any more.
        for &thread in &process.threads.clone() {
            if let Some(thread) = self.machine.threads.get_mut(thread) {
                thread.ops.clear();
            }
        }
        let mut ops: Vec<Op> = clrs.into_iter().map(|clr| Op::Clr(clr, ClrOp::Stop)).collect();
        ops.push(Op::EndProcess);
        self.give(first, ops)
    }

    /// An operation outside every CLR: what it costs, and what comes next.
    pub(super) fn in_process(
        &mut self,
        thread: usize,
        op: Op,
        origin: &Origin,
    ) -> Result<(Nanos, Vec<Op>)> {
        let Some(index) = self.machine.threads.get(thread).map(|t| t.process) else {
            return Ok((0, Vec::new()));
        };
        let pid = origin.pid;
        let cost = match op {
            Op::BeginProcess => {
                if let Some(process) = self.machine.processes.get_mut(index) {
                    process.started = true;
                    kernel::process(&mut self.etw, To::All, Change::Start, process, origin)?;
                }
                self.begin_thread(thread, thread, origin)?;
                self.register_providers(index, origin)?;
                500 * MICROSECOND
            }
            Op::BeginThread(other) => {
                self.begin_thread(thread, other, origin)?;
                40 * MICROSECOND
            }
            Op::EndThread(other) => {
                self.end_thread(thread, other, origin)?;
                20 * MICROSECOND
            }
            Op::LoadImage(plan) => {
                if let Some(process) = self.machine.processes.get_mut(index) {
                    let size = u64::from(plan.size).next_multiple_of(0x1000);
                    let image = Image {
                        base: process.space.image(size),
                        size,
                        checksum: plan.size ^ 0x1_0000,
                        link_time: 0x5e00_0000 | plan.size >> 4,
                        pdb: (!plan.bare)
                            .then(|| plan.pdb.unwrap_or_else(|| Image::usual_pdb(&plan.path))),
                        path: plan.path,
                        about: plan.about,
                    };
                    process.images.push(image.clone());
                    self.image_comes(thread, pid, &image, origin)?;
                }
                100 * MICROSECOND
            }
            Op::UnloadImage(path) => {
                if let Some(process) = self.machine.processes.get_mut(index) {
                    let at =
                        process.images.iter().rposition(|i| i.path.eq_ignore_ascii_case(&path));
                    if let Some(at) = at {
                        let image = process.images.remove(at);
                        self.image_goes(thread, pid, &image, origin)?;
                    }
                }
                50 * MICROSECOND
            }
            Op::EndProcess => {
                self.end_process(thread, index, origin)?;
                MILLISECOND
            }
            Op::Compute(time) => time,
            Op::Raise(plan) => self.raise(thread, &plan, origin)?,
            Op::TellManifest(provider) => {
                self.tell_manifest(provider, origin)?;
                10 * MICROSECOND
            }
            Op::Clr(..) => 0,
        };
        Ok((cost, Vec::new()))
    }

    /// An image is in a process from now on.
    pub(super) fn image_comes(
        &mut self,
        thread: usize,
        pid: u32,
        image: &Image,
        origin: &Origin,
    ) -> Result<()> {
        self.files.add(image);
        kernel::image(&mut self.etw, To::All, Change::Start, pid, image, origin)?;
        self.take_stack(KernelEvent::ImageLoad, Some(thread), origin)
    }

    /// An image is in a process no more.
    pub(super) fn image_goes(
        &mut self,
        thread: usize,
        pid: u32,
        image: &Image,
        origin: &Origin,
    ) -> Result<()> {
        kernel::image(&mut self.etw, To::All, Change::End, pid, image, origin)?;
        self.take_stack(KernelEvent::ImageUnload, Some(thread), origin)
    }

    /// A thread begins, because another one, or the process itself, starts it.
    fn begin_thread(&mut self, by: usize, thread: usize, origin: &Origin) -> Result<()> {
        let Some(found) = self.machine.threads.get_mut(thread) else { return Ok(()) };
        let process = self.machine.processes.get(found.process);
        let ntdll = process.and_then(|p| p.images.iter().find(|i| i.path.ends_with("ntdll.dll")));
        // The first thread begins in the executable, before anything else is there.
        let executable = match self.scenario.machine.pointer_size {
            PointerSize::P8 => 0x7ff6_0000_1000,
            PointerSize::P4 => 0x0040_1000,
        };
        found.start_address = ntdll.map_or(executable, |i| i.base + 0x5_0000);
        found.started = true;
        kernel::thread(&mut self.etw, To::All, Change::Start, origin.pid, found, origin)?;
        self.take_stack(KernelEvent::ThreadStart, Some(by), origin)
    }

    /// A thread ends, by itself or by another one of its process.
    fn end_thread(&mut self, by: usize, thread: usize, origin: &Origin) -> Result<()> {
        let Some(found) = self.machine.threads.get_mut(thread) else { return Ok(()) };
        if found.ended || !found.started {
            return Ok(());
        }
        found.ended = true;
        found.ops.clear();
        kernel::thread(&mut self.etw, To::All, Change::End, origin.pid, found, origin)?;
        self.take_stack(KernelEvent::ThreadEnd, Some(by), origin)?;
        // Who ends itself has the processor until that is done.
        if by == thread { Ok(()) } else { self.leave_for_good(thread, origin.at) }
    }

    fn end_process(&mut self, by: usize, index: usize, origin: &Origin) -> Result<()> {
        let Some(process) = self.machine.processes.get_mut(index) else { return Ok(()) };
        let threads = process.threads.clone();
        for image in std::mem::take(&mut process.images) {
            kernel::image(&mut self.etw, To::All, Change::End, origin.pid, &image, origin)?;
        }
        process.exited = Some(origin.at);
        let what = format!("process {} \"{}\" is gone", process.pid, process.name);
        self.etw.witness().happened(origin.at, &what)?;
        kernel::process(&mut self.etw, To::All, Change::End, process, origin)?;
        for thread in threads {
            self.end_thread(by, thread, origin)?;
        }
        self.etw.end_private(origin.pid, origin.at)?;
        self.etw.unregister(origin.pid);
        Ok(())
    }
}
