//! `etlkit analyze`: answers questions about a recording: where the time went, and why.

mod activities;
mod allocations;
mod compare;
mod cpu;
mod faults;
mod gc;
mod io;
mod loader;
mod machine;
mod pool;
mod processors;
mod runtime;
mod summary;
mod summary_commands;
mod waits;

use clap::Subcommand;
use etl_tables::rows::duration;
use etl_tables::{Cell, Column, Report, Selection};

use crate::Outcome;
use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs};
use crate::table::TableFormat;

/// Rows that text has unless the user names another number.
const TOP: usize = 30;

/// Arguments of `etlkit analyze`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Several files are read as one recording. Each report names data that the recording lacks, and how
to record them.

Examples:
  etlkit analyze summary trace.etl
  etlkit analyze cpu --process Orders --tree kernel.etl clr.etl
  etlkit analyze gc --format csv trace.etl > collections.csv")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// A recording on one screen: processes, hottest methods, collections, bytes, losses.
    #[command(after_help = SUMMARY_HELP, mut_arg("thread", hidden))]
    Summary(summary::Args),
    /// The time of processors: samples by method, module, thread or process, call trees, callers
    /// and callees.
    Cpu(cpu::Args),
    /// Garbage collections: generation, reason, pauses, sizes of the heap.
    #[command(after_help = GC_HELP)]
    Gc(compare::ComparableArgs),
    /// Allocations of .NET: types, bytes, stacks, large objects, survivors, pinned objects.
    #[command(after_help = ALLOCATIONS_HELP)]
    Allocations(allocations::Args),
    /// Methods that were compiled at run time: durations and optimization.
    #[command(after_help = JIT_HELP)]
    Jit(compare::ComparableArgs),
    /// Exceptions of .NET: types, throwing methods, messages.
    #[command(after_help = EXCEPTIONS_HELP)]
    Exceptions(runtime::ExceptionArgs),
    /// Waits of threads for locks of .NET.
    #[command(after_help = CONTENTION_HELP)]
    Contention(runtime::ContentionArgs),
    /// The thread pools of .NET: changes of their threads with reasons, waits of work items.
    #[command(after_help = THREADPOOL_HELP, mut_arg("thread", hidden))]
    Threadpool(ReportArgs),
    /// Loads in time order: images, domains, assemblies, modules.
    #[command(after_help = LOADER_HELP)]
    Loader(ReportArgs),
    /// Reads and writes of disks and files: bytes and latencies by process and path.
    #[command(after_help = IO_HELP, mut_arg("thread", hidden))]
    Io(compare::ComparableArgs),
    /// Hard faults: pages that were read from disks, by process and file.
    #[command(after_help = FAULTS_HELP, mut_arg("thread", hidden))]
    Faults(ReportArgs),
    /// The start of processes: loads, compilations, disks, faults, collections on one time axis.
    #[command(after_help = STARTUP_HELP)]
    Startup(faults::StartupArgs),
    /// Connections of TCP and UDP: bytes by process and endpoint.
    #[command(after_help = NETWORK_HELP, mut_arg("thread", hidden))]
    Network(ReportArgs),
    /// Run and wait times of threads, by thread or by stack: context switches.
    #[command(after_help = WAITS_HELP)]
    Waits(waits::WaitsArgs),
    /// Deferred procedure calls and interrupt service routines: time by driver, function and
    /// processor, the longest ones.
    #[command(after_help = DPC_HELP, mut_args(of_machine))]
    Dpc(processors::DpcArgs),
    /// The use of processors over time: shares of intervals that were busy, in DPCs, in ISRs.
    #[command(after_help = PROCESSORS_HELP, mut_args(of_machine))]
    Processors(processors::UseArgs),
    /// What starts and stops by events of any provider: requests, targets of builds, and so on.
    #[command(after_help = ACTIVITIES_HELP)]
    Activities(activities::Args),
    /// Processes as a tree: starts, ends, command lines.
    #[command(after_help = PROCESSES_HELP, mut_arg("thread", hidden))]
    Processes(ReportArgs),
    /// Images of processes: addresses, lifetimes, PDBs, paths.
    #[command(after_help = IMAGES_HELP, mut_arg("thread", hidden))]
    Images(ReportArgs),
    /// Sessions whose headers the files have: times, losses.
    #[command(after_help = SESSIONS_HELP, mut_arg("thread", hidden))]
    Sessions(ReportArgs),
}

/// An option that a kind of report refuses with an explanation.
fn hidden(option: clap::Arg) -> clap::Arg {
    option.hide(true)
}

/// An option of a kind of report that is about the machine: it refuses processes and threads.
fn of_machine(option: clap::Arg) -> clap::Arg {
    let refused = ["process", "children", "thread"];
    if refused.contains(&option.get_id().as_str()) {
        option.hide(true)
    } else {
        option
    }
}

const SUMMARY_HELP: &str = "\
Text has 10 rows of each table by default, and says how to record missing data.

Examples:
  etlkit analyze summary trace.etl
  etlkit analyze summary --format json kernel.etl clr.etl";

const GC_HELP: &str = "\
A pause lasts from the beginning of a suspension to the end of the restart. It belongs to the
collection that started in it, or else to a background collection.

Needs Microsoft-Windows-DotNETRuntime with the keyword GC (0x1) at level 4; level 5 adds
allocations. Sizes before a collection, free space, and sizes by heap are in events of .NET
Framework 4.6, .NET Core and later.

Examples:
  etlkit analyze gc trace.etl
  etlkit analyze gc --compare before.etl after.etl
  etlkit analyze gc --format csv --process Orders trace.etl > collections.csv";

const ALLOCATIONS_HELP: &str = "\
An allocation tick states the bytes since the tick before, about 100 KB, and the type of the object
that was allocated then. With --group-by, --tree or --focus, bytes are shown by the stacks of the
ticks; the type is the innermost frame. `etlkit export flamegraph --weight bytes` draws them.

Needs Microsoft-Windows-DotNETRuntime with the keyword GC (0x1) at level 5, or with
GCSampledObjectAllocationHigh and Type (0x280000) at level 4; the keyword Stack (0x40000000) adds
stacks, GCHeapSurvivalAndMovement (0x400000) survivors.

Examples:
  etlkit analyze allocations trace.etl
  etlkit analyze allocations --tree --process Orders trace.etl
  etlkit analyze allocations --format csv trace.etl > types.csv";

const JIT_HELP: &str = "\
Needs Microsoft-Windows-DotNETRuntime with the keywords Jit and NGen (0x30) at level 5; level 4 has
no times.

Examples:
  etlkit analyze jit --top 10 trace.etl";

const EXCEPTIONS_HELP: &str = "\
Needs Microsoft-Windows-DotNETRuntime with the keyword Exception (0x8000) at level 2, and its
rundown for the names of methods.

Examples:
  etlkit analyze exceptions --from 10 --to 20 trace.etl";

const CONTENTION_HELP: &str = "\
With --group-by, --tree or --focus, waits are shown by the stacks of their beginnings.

Needs Microsoft-Windows-DotNETRuntime with the keyword Contention (0x4000) at level 4; the keyword
Stack (0x40000000) adds stacks.

Examples:
  etlkit analyze contention --process Orders trace.etl
  etlkit analyze contention --tree trace.etl";

const THREADPOOL_HELP: &str = "\
A work item waits from when it is queued until a thread takes it. Percentiles are at most 1/32 above
the real value.

Needs Microsoft-Windows-DotNETRuntime with the keyword Threading (0x10000) at level 4; level 5 adds
work items.

Examples:
  etlkit analyze threadpool trace.etl
  etlkit analyze threadpool --format csv --process Orders trace.etl > changes.csv";

const LOADER_HELP: &str = "\
Code that was loaded before the recording is not in the list: see `etlkit analyze images`.

Needs the kernel's events of images (`xperf -on LOADER`), and Microsoft-Windows-DotNETRuntime with
the keyword Loader (0x8) at level 4. With the keyword Fusion (0x4), .NET 5 and later state how long
the load of an assembly took.

Examples:
  etlkit analyze loader --process Orders trace.etl
  etlkit analyze loader --from 0 --to 2 --format csv kernel.etl clr.etl > loads.csv";

const IO_HELP: &str = "\
Needs the kernel's events of disks (`xperf -on DISK_IO`) and of files (`xperf -on
FILENAME+FILE_IO+FILE_IO_INIT`). Events of disks name their process since Windows 8. Percentiles are
at most 1/32 above the real value.

Examples:
  etlkit analyze io trace.etl
  etlkit analyze io --compare before.etl --normalize after.etl
  etlkit analyze io --process Backup --from 2 --to 3 trace.etl";

const FAULTS_HELP: &str = "\
A hard fault lasts from when a thread touches a page until a disk has read it. Percentiles are at
most 1/32 above the real value.

Needs the kernel's events of hard faults (`xperf -on PROC_THREAD+HARD_FAULTS+FILENAME`).

Examples:
  etlkit analyze faults trace.etl
  etlkit analyze faults --process Orders --format csv trace.etl > faults.csv";

const STARTUP_HELP: &str = "\
Only processes that started during the recording have rows.

Needs the kernel's events of processes, images, disks and hard faults (`xperf -on
PROC_THREAD+LOADER+DISK_IO+HARD_FAULTS+FILENAME`), and for .NET Microsoft-Windows-DotNETRuntime with
the keywords GC, Loader, Jit and NGen (0x39) at level 5.

Examples:
  etlkit analyze startup --process Orders trace.etl
  etlkit analyze startup --process Orders --for 500ms --top 0 trace.etl";

const NETWORK_HELP: &str = "\
Needs the kernel's events of the network (`xperf -on NETWORKTRACE`).

Examples:
  etlkit analyze network trace.etl
  etlkit analyze network --format json trace.etl | jq '.connections[] | select(.sent_bytes > 1e6)'";

const WAITS_HELP: &str = "\
`running` is the time on a processor, `waiting` the time from a switch to another thread until the
thread is ready, and `ready` the time from then until it runs. `reason` is the reason of the longest
waits, and `ended by` the thread that ended most of this time. Percentiles are at most 1/32 above
the real value.

With --group-by, --tree or --focus, waits are shown by the stacks of the threads that waited, or
with --ended-by by the stacks of the threads that ended the waits.

Needs the kernel's context switches (`xperf -on PROC_THREAD+CSWITCH+DISPATCHER`), with stacks for
--tree (`-stackwalk CSwitch+ReadyThread`).

Examples:
  etlkit analyze waits --process Orders trace.etl
  etlkit analyze waits --tree --process Orders trace.etl
  etlkit analyze waits --group-by method --ended-by trace.etl
  etlkit analyze waits --from 2 --to 2.5 --format csv trace.etl > threads.csv";

const DPC_HELP: &str = "\
Drivers run deferred procedure calls (DPCs) and interrupt service routines (ISRs) on any processor,
above all threads. The time of a call includes the calls that interrupted it; `self` does not.
Percentiles are at most 1/32 above the real value.

Needs the kernel's events of both (`xperf -on PROC_THREAD+LOADER+DPC+INTERRUPT`). Samples of the
processors (`xperf -on PROFILE`) say which code they found in a DPC or an ISR.

Examples:
  etlkit analyze dpc trace.etl
  etlkit analyze dpc --symbols drivers --from 2 --to 2.5 trace.etl
  etlkit analyze dpc --format csv trace.etl > routines.csv";

const PROCESSORS_HELP: &str = "\
`busy` is the share of an interval in which threads, DPCs or ISRs ran on a processor. Samples take
the place of events that were not recorded.

Needs the kernel's context switches, and its events of DPCs and ISRs (`xperf -on
PROC_THREAD+LOADER+CSWITCH+DPC+INTERRUPT`), or samples (`xperf -on PROFILE`).

Examples:
  etlkit analyze processors trace.etl
  etlkit analyze processors --interval 100ms --format csv trace.etl > use.csv";

const ACTIVITIES_HELP: &str = "\
An activity lies between a start event and its stop event: events with the opcodes Start and Stop,
or with names such as TargetStarted and TargetFinished. They belong together by their activity id,
or else by their thread, in both cases with provider and task or name. `self` is the time outside
of the activities directly in it. Events of the CLR have reports of their own.

Needs any provider with such events. Names and fields come from the trace, from the tables of
Windows' own providers, or from --manifest.

Examples:
  etlkit analyze activities trace.etl
  etlkit analyze activities --by targetName --process MSBuild build.etl
  etlkit analyze activities --format csv trace.etl > activities.csv";

const PROCESSES_HELP: &str = "\
Needs the kernel's events of processes (`xperf -on PROC_THREAD`), or the provider
Microsoft-Windows-Kernel-Process.

Examples:
  etlkit analyze processes trace.etl
  etlkit analyze processes --process cmd --children trace.etl";

const IMAGES_HELP: &str = "\
Needs the kernel's events of images (`xperf -on LOADER`); PDBs are added by a merge.

Examples:
  etlkit analyze images --process Orders trace.etl";

const SESSIONS_HELP: &str = "\
Examples:
  etlkit analyze sessions merged.etl
  etlkit analyze sessions kernel.etl clr.etl";

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.kind {
        Kind::Summary(args) => summary::summary(args),
        Kind::Cpu(args) => cpu::run(args),
        Kind::Gc(args) => gc::gc(args),
        Kind::Allocations(args) => allocations::run(args),
        Kind::Jit(args) => runtime::jit(args),
        Kind::Exceptions(args) => runtime::exceptions(args),
        Kind::Contention(args) => runtime::contention(args),
        Kind::Threadpool(args) => pool::threadpool(args.of_any_thread()?),
        Kind::Loader(args) => loader::loader(args),
        Kind::Io(args) => io::io(args),
        Kind::Faults(args) => faults::faults(args.of_any_thread()?),
        Kind::Startup(args) => faults::startup(args),
        Kind::Network(args) => io::network(args.of_any_thread()?),
        Kind::Waits(args) => waits::waits(args),
        Kind::Dpc(args) => processors::dpc(args),
        Kind::Processors(args) => processors::processors(args),
        Kind::Activities(args) => activities::run(args),
        Kind::Processes(args) => machine::processes_of(args.of_any_thread()?),
        Kind::Images(args) => machine::images(args.of_any_thread()?),
        Kind::Sessions(args) => machine::sessions(args.of_everything()?),
    }
}

/// A share in percent.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a number from 0 to 100 is expected".to_owned()),
    }
}

/// The arguments of every kind.
#[derive(Debug, clap::Args)]
struct ReportArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Output format (docs/analyze.md)
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
    /// Print the first N rows; 0 prints all [default: 30 in text, all in JSON and CSV]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl ReportArgs {
    /// The number of rows of a table; `None` for all.
    fn rows(&self) -> Option<usize> {
        let default = if self.format == TableFormat::Text {
            TOP
        } else {
            0
        };
        Some(self.top.unwrap_or(default)).filter(|&rows| rows > 0)
    }

    /// The arguments of a kind that does not distinguish threads.
    fn of_any_thread(&self) -> Result<&Self, Failure> {
        if self.recording.thread.is_empty() {
            return Ok(self);
        }
        Err(Failure::new(
            "--thread",
            "this kind of report does not distinguish threads",
        )
        .hint(
            "use --process, or one of `etlkit analyze cpu`, `gc`, `jit`, `exceptions`, \
                 `contention`, `loader` and `waits`",
        ))
    }

    /// The arguments of a kind that is about the machine, not about processes.
    fn of_any_process(&self) -> Result<&Self, Failure> {
        if self.recording.processes.selector().is_empty() {
            return self.of_any_thread();
        }
        let message = "this kind of report is about the machine, not about processes";
        Err(Failure::new("--process", message).hint("leave it out"))
    }

    /// The arguments of a kind that distinguishes neither threads nor processes nor times.
    fn of_everything(&self) -> Result<&Self, Failure> {
        let option = if !self.recording.processes.selector().is_empty() {
            "--process"
        } else if self.recording.has_range() {
            "--from, --to"
        } else {
            return self.of_any_thread();
        };
        let message = "this kind of report is about whole files";
        Err(Failure::new(option, message))
    }

    /// Whether the report is text for people.
    fn is_text(&self) -> bool {
        self.format == TableFormat::Text
    }

    /// The selection of rows of a recording.
    fn selection<O>(&self, analyzed: &Analyzed<O>) -> Selection {
        Selection::new()
            .processes(analyzed.selected.clone())
            .threads(self.recording.thread.clone())
            .within(analyzed.range)
    }

    /// Prints a report.
    fn print(&self, report: &mut Report<'_>, outcome: Outcome) -> Result<Outcome, Failure> {
        if self.recording.has_range() {
            report.missing_heading = "missing at this time";
        }
        self.format.print(report, self.rows())?;
        Ok(outcome)
    }
}

/// The report of a kind, with the first and the last time of the recording.
fn report<'r, O>(kind: &'static str, analyzed: &Analyzed<O>) -> Report<'r> {
    const FROM: Column = Column::time("from", "Time of the first event");
    const TO: Column = Column::time("to", "Time of the last event");
    let clock = analyzed.machine.clock();
    let span = analyzed.machine.span();
    let mut report = Report::new(kind);
    report.files.clone_from(&analyzed.names);
    report.start = clock.start_time;
    report.fact(FROM, Cell::time(clock, span.map(|span| span.first)));
    report.fact(TO, Cell::time(clock, span.map(|span| span.last)));
    report
}

/// The length of the selected time of a recording, in 100 ns.
fn selected_time<O>(analyzed: &Analyzed<O>) -> u64 {
    let span = analyzed.selected_span();
    duration(analyzed.machine.clock(), span.first, span.last)
}
