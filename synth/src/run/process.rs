//! Processes start, perform unmanaged operations, and exit.

use etl_format::constants::PointerSize;

use crate::clr::{Clr, ClrOp};
use crate::error::{Error, Result};
use crate::etw::Origin;
use crate::kernel::{self, Lifecycle};
use crate::machine::{Image, Process};
use crate::model::{ImagePlan, KernelEvent, ProcessPlan, Sku, VersionInfo};
use crate::rng::Source;
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

use super::interrupts::{self, DRIVER_SIZE};
use super::io_op::IoOp;
use super::op_queue::{Op, OpQueue};
use super::{Simulator, Task, namesakes};

/// Images of every process, with their sizes.
const COMMON_IMAGES: [(&str, u32); 3] = [
    ("C:\\Windows\\System32\\ntdll.dll", 0x1f_5000),
    ("C:\\Windows\\System32\\kernel32.dll", 0xbd_000),
    ("C:\\Windows\\System32\\KernelBase.dll", 0x2c_e000),
];

/// Where the kernel is.
pub(super) const KERNEL: u64 = 0xffff_f800_1000_0000;

/// Images of the kernel: path, base, size.
const KERNEL_IMAGES: [(&str, u64, u64); 3] = [
    ("\\SystemRoot\\system32\\ntoskrnl.exe", KERNEL, 0x104_6000),
    (
        "\\SystemRoot\\system32\\hal.dll",
        0xffff_f800_0fe0_0000,
        0x9_4000,
    ),
    (
        "\\SystemRoot\\System32\\drivers\\Ntfs.sys",
        0xffff_f800_1200_0000,
        0x2d_8000,
    ),
];

impl Simulator<'_> {
    /// Adds the processes of every machine: Idle, System, and the shell in which controllers run.
    pub(super) fn add_system_processes(&mut self) {
        let width = self.scenario.machine.pointer_size;
        for (pid, name) in [(0, "Idle"), (4, "System"), (1000, "cmd.exe")] {
            self.machine.reserve_id(pid);
            let source = Source::new(self.scenario.seed).named("system").named(name);
            let mut process = Process::new(pid, name, width, source);
            process.parent = if pid == 1000 { 4 } else { 0 };
            process.started = true;
            if pid == 4 {
                let known = KERNEL_IMAGES.map(|(path, _, _)| path);
                let drivers = interrupts::drivers(self.scenario, &known);
                let drivers = drivers.iter().map(|d| (&*d.path, d.base, DRIVER_SIZE));
                process.images = KERNEL_IMAGES
                    .into_iter()
                    .chain(drivers)
                    .map(|(path, base, size)| Image {
                        path: path.to_owned(),
                        base: kernel::address(width, base),
                        size,
                        checksum: size as u32,
                        timestamp: 0x5f00_0000,
                        pdb: Some(Image::usual_pdb(path)),
                        about: VersionInfo::default(),
                    })
                    .collect();
            }
            process
                .images
                .iter()
                .for_each(|image| self.image_files.add(image));
            if pid == 1000 {
                process.command_line = "cmd.exe".to_owned();
            }
            self.machine.processes.push(process);
            let thread = self.add_thread(self.machine.processes.len() - 1);
            if let Some(thread) = self.machine.threads.get_mut(thread) {
                thread.started = true;
                // The thread of the Idle process has id 0.
                if pid == 0 {
                    thread.tid = 0;
                }
            }
        }
    }

    /// Adds the processes of the scenario, which start later.
    pub(super) fn add_processes(&mut self) -> Result<()> {
        let scenario = self.scenario;
        for plan in &scenario.processes {
            if scenario.machine.pointer_size == PointerSize::P4
                && plan.pointer_size == Some(PointerSize::P8)
            {
                let message = format!(
                    "a 32-bit machine cannot run the 64-bit process \"{}\"",
                    plan.name
                );
                return Err(Error::impossible(plan.start, message));
            }
        }
        for plan in scenario.processes.iter().filter(|p| p.pid != 0) {
            if !self.machine.reserve_id(plan.pid.get()) {
                let message = format!("process id {} is already used", plan.pid);
                return Err(Error::impossible(plan.start, message));
            }
        }
        for (number, plan) in scenario.processes.iter().enumerate() {
            let pid = if plan.pid != 0 {
                plan.pid.get()
            } else {
                self.machine.new_id()
            };
            let index = self.machine.processes.len();
            let process = self.new_process(number, plan, pid, index);
            self.machine.processes.push(process);
            self.processes.push(index);
            // Besides the workers: one thread for the callbacks of providers, and the threads of
            // the runtime for finalizers and for methods that are compiled again.
            let service_threads = match plan.clrs.is_empty() {
                true => 1,
                false if scenario.calls_methods(number) => 3,
                false => 2,
            };
            for _ in 0..plan.threads.saturating_add(service_threads) {
                self.add_thread(index);
            }
            if let Some(process) = self.machine.processes.get_mut(index) {
                process.service_threads = service_threads as usize;
            }
            self.plan(plan.start, Task::StartProcess(number));
            if let Some(exit) = plan.exit {
                self.plan(exit, Task::ExitProcess(number));
            }
        }
        Ok(())
    }

    fn new_process(
        &mut self,
        number: usize,
        plan: &ProcessPlan,
        pid: u32,
        index: usize,
    ) -> Process {
        let width = plan
            .pointer_size
            .unwrap_or(self.scenario.machine.pointer_size);
        let source = Source::new(self.scenario.seed)
            .named("process")
            .named(&plan.name);
        let source = source.numbered(namesakes(self.scenario, number));
        let mut process = Process::new(pid, &plan.name, width, source);
        process.parent = if plan.parent == 0 {
            1000
        } else {
            plan.parent.get()
        };
        process.command_line = plan.command_line.clone();
        process.user = plan.user.clone();
        for (clr_number, clr) in plan.clrs.iter().enumerate() {
            let source = source.named("clr").numbered(clr_number as u64);
            let default = 9 + clr_number as u16;
            let instance = if clr.instance == 0 {
                default
            } else {
                clr.instance
            };
            let at = self.clrs.len();
            let mut built = Clr::new(clr, instance, index, at, &mut process.space, source);
            built.tiering.counts_calls = built.is_tiered() && self.scenario.calls_methods(number);
            process.clrs.push(at);
            self.clrs.push(built);
        }
        process
    }

    /// A process starts: its first thread loads the images and starts the CLRs.
    pub(super) fn start_process(&mut self, number: usize) -> Result<()> {
        let Some(&index) = self.processes.get(number) else {
            return Ok(());
        };
        let Some(plan) = self.scenario.processes.get(number) else {
            return Ok(());
        };
        let Some(process) = self.machine.processes.get(index) else {
            return Ok(());
        };
        let threads = process.threads.clone();
        let description = format!("process {} \"{}\" starts", process.pid, process.name);
        self.etw.report_action(self.now, &description)?;
        self.etw.names.insert(process.pid, process.name.clone());
        let mut ops = vec![Op::StartProcess];
        let path = if plan.name.contains('\\') {
            plan.name.clone()
        } else {
            format!("C:\\App\\{}", plan.name)
        };
        // The script may describe the executable itself.
        let mut exe = ImagePlan {
            size: 0x2_8000,
            ..ImagePlan::new(path.as_str())
        };
        let mut others = Vec::new();
        for image in &plan.images {
            if image.path.eq_ignore_ascii_case(&path) {
                exe = image.clone();
            } else {
                others.push(Op::LoadImage(image.clone()));
            }
        }
        ops.push(Op::LoadImage(exe));
        for (path, size) in COMMON_IMAGES {
            ops.push(Op::LoadImage(ImagePlan {
                size,
                ..ImagePlan::new(path)
            }));
        }
        ops.extend(others);
        ops.extend(
            threads
                .iter()
                .skip(1)
                .map(|thread| Op::StartThread(*thread)),
        );
        for &clr in &process.clrs {
            let Some(runtime) = self.clrs.get(clr) else {
                continue;
            };
            let jit = match runtime.sku {
                Sku::Desktop => runtime.dll.replace("clr.dll", "clrjit.dll"),
                Sku::Core => runtime.dll.replace("coreclr.dll", "clrjit.dll"),
            };
            ops.push(Op::LoadImage(ImagePlan {
                size: 0x9c_0000,
                ..ImagePlan::new(runtime.dll.as_str())
            }));
            ops.push(Op::LoadImage(ImagePlan {
                size: 0x12_0000,
                ..ImagePlan::new(jit)
            }));
            ops.push(Op::Clr(clr, ClrOp::Start));
            // The thread for callbacks runs no managed code.
            for &thread in threads
                .split_last()
                .map_or(&threads[..], |(_, managed)| managed)
            {
                let tid = self.machine.threads.get(thread).map_or(0, |t| t.tid);
                ops.push(Op::Clr(clr, ClrOp::ThreadCreated(thread, tid, false)));
            }
        }
        if let Some(&first) = threads.first() {
            self.enqueue(first, ops)?;
        }
        Ok(())
    }

    /// A process exits: first its CLRs stop.
    pub(super) fn exit_process(&mut self, number: usize) -> Result<()> {
        let Some(&index) = self.processes.get(number) else {
            return Ok(());
        };
        let Some(process) = self.machine.processes.get(index).filter(|p| p.is_alive()) else {
            return Ok(());
        };
        let Some(&first) = process.threads.first() else {
            return Ok(());
        };
        let clrs = process.clrs.clone();
        // Its pending operations are not performed.
        for thread in &process.threads {
            self.ops.get_mut(*thread).map(OpQueue::clear);
        }
        let pid = process.pid;
        let mut ops = self.event_pipe_ops_at_exit(pid)?;
        ops.extend(clrs.into_iter().map(|clr| Op::Clr(clr, ClrOp::Stop)));
        if self.uses_io(index) {
            ops.push(Op::Io(IoOp::CloseAll));
        }
        ops.push(Op::EndProcess);
        self.enqueue(first, ops)
    }

    /// Maps an image into the process of a thread.
    fn load_image(&mut self, thread: usize, plan: ImagePlan, origin: &Origin) -> Result<()> {
        let Some(process) = self.machine.process_of(thread) else {
            return Ok(());
        };
        let size = u64::from(plan.size).next_multiple_of(0x1000);
        let pdb = if plan.no_pdb {
            None
        } else {
            Some(plan.pdb.unwrap_or_else(|| Image::usual_pdb(&plan.path)))
        };
        let image = Image {
            base: process.space.image(size),
            size,
            checksum: plan.size ^ 0x1_0000,
            timestamp: 0x5e00_0000 | plan.size >> 4,
            pdb,
            path: plan.path,
            about: plan.about,
        };
        process.images.push(image.clone());
        self.image_changed(thread, Lifecycle::Start, &image, origin)
    }

    /// Unmaps the image with this path that was mapped last from the process of a thread.
    fn unload_image(&mut self, thread: usize, path: &str, origin: &Origin) -> Result<()> {
        let Some(process) = self.machine.process_of(thread) else {
            return Ok(());
        };
        let index = process
            .images
            .iter()
            .rposition(|image| image.path.eq_ignore_ascii_case(path));
        let Some(index) = index else {
            return Ok(());
        };
        let image = process.images.remove(index);
        self.image_changed(thread, Lifecycle::End, &image, origin)
    }

    /// Performs an operation outside of a CLR and returns its cost.
    pub(super) fn perform_process_op(
        &mut self,
        thread: usize,
        op: Op,
        origin: &Origin,
    ) -> Result<Nanos> {
        let Some(index) = self.machine.threads.get(thread).map(|t| t.process) else {
            return Ok(0);
        };
        let cost = match op {
            Op::StartProcess => {
                if let Some(process) = self.machine.processes.get_mut(index) {
                    process.started = true;
                    self.etw.log_process(Lifecycle::Start, process, origin)?;
                }
                self.start_thread(thread, thread, origin)?;
                self.register_providers(index, origin)?;
                500 * MICROSECOND
            }
            Op::StartThread(other) => {
                self.start_thread(thread, other, origin)?;
                40 * MICROSECOND
            }
            Op::EndThread(other) => {
                self.end_thread(thread, other, origin)?;
                20 * MICROSECOND
            }
            Op::LoadImage(plan) => {
                self.load_image(thread, plan, origin)?;
                100 * MICROSECOND
            }
            Op::UnloadImage(path) => {
                self.unload_image(thread, &path, origin)?;
                50 * MICROSECOND
            }
            Op::EndProcess => {
                self.end_process(thread, index, origin)?;
                MILLISECOND
            }
            Op::Compute(time) => time,
            Op::Raise(plan) => self.raise(thread, &plan, origin)?,
            Op::SampleThreads(clr) => self.sample_threads(clr, origin)?,
            Op::DescribeProcess(session) => self.describe_process(session, origin)?,
            Op::EndEventPipe(session) => self.finish_event_pipe(session, origin),
            Op::EmitManifest(provider) => {
                self.emit_manifest(provider, origin)?;
                10 * MICROSECOND
            }
            Op::Clr(..) | Op::Io(_) => 0,
        };
        Ok(cost)
    }

    /// An image was loaded, or unloaded.
    pub(super) fn image_changed(
        &mut self,
        thread: usize,
        change: Lifecycle,
        image: &Image,
        origin: &Origin,
    ) -> Result<()> {
        let mut event = KernelEvent::ImageUnload;
        if change == Lifecycle::Start {
            self.image_files.add(image);
            self.name_image(&image.path, origin)?;
            event = KernelEvent::ImageLoad;
        }
        self.etw.log_image(change, origin.pid, image, origin)?;
        self.take_stack(event, Some(thread), origin)
    }

    /// A thread starts, started by thread `by` of its process.
    fn start_thread(&mut self, by: usize, thread: usize, origin: &Origin) -> Result<()> {
        let Some(found) = self.machine.threads.get_mut(thread) else {
            return Ok(());
        };
        let process = self.machine.processes.get(found.process);
        let ntdll = process.and_then(|p| p.images.iter().find(|i| i.path.ends_with("ntdll.dll")));
        // The first thread starts in the executable, before other images are loaded.
        let executable = match self.scenario.machine.pointer_size {
            PointerSize::P8 => 0x7ff6_0000_1000,
            PointerSize::P4 => 0x0040_1000,
        };
        found.start_address = ntdll.map_or(executable, |i| i.base + 0x5_0000);
        found.started = true;
        found.busy = true;
        self.etw
            .log_thread(Lifecycle::Start, origin.pid, found, origin)?;
        if by != thread {
            self.plan(origin.at, Task::RunThread(thread));
        }
        self.take_stack(KernelEvent::ThreadStart, Some(by), origin)
    }

    /// A thread ends, ended by thread `by` of its process.
    fn end_thread(&mut self, by: usize, thread: usize, origin: &Origin) -> Result<()> {
        let Some(found) = self.machine.threads.get_mut(thread) else {
            return Ok(());
        };
        if found.ended || !found.started {
            return Ok(());
        }
        found.ended = true;
        self.ops.get_mut(thread).map(OpQueue::clear);
        self.etw
            .log_thread(Lifecycle::End, origin.pid, found, origin)?;
        self.take_stack(KernelEvent::ThreadEnd, Some(by), origin)?;
        // A thread that ends itself keeps the processor until the operation is done.
        if by == thread {
            Ok(())
        } else {
            self.remove_from_processor(thread, origin.at)
        }
    }

    fn end_process(&mut self, by: usize, index: usize, origin: &Origin) -> Result<()> {
        let Some(process) = self.machine.processes.get_mut(index) else {
            return Ok(());
        };
        let threads = process.threads.clone();
        for image in std::mem::take(&mut process.images) {
            self.etw
                .log_image(Lifecycle::End, origin.pid, &image, origin)?;
        }
        process.exited = Some(origin.at);
        let description = format!("process {} \"{}\" exits", process.pid, process.name);
        self.etw.report_action(origin.at, &description)?;
        self.etw.log_process(Lifecycle::End, process, origin)?;
        for thread in threads {
            self.end_thread(by, thread, origin)?;
        }
        self.etw.end_private(origin.pid, origin.at)?;
        self.etw.unregister(origin.pid);
        Ok(())
    }
}
