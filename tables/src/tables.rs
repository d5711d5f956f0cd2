//! The list of tables.

use crate::event_columns;
use crate::rows::{
    activities, allocations, code, compilations, contents, context_switches, exceptions, findings,
    gcs, hard_faults, images, interrupts, io, loads, lock_waits, losses, network, packets,
    processes, processor_use, profile_changes, profiles, samples, sessions, stacks, startup,
    summary, thread_pools, thread_waits, threads, traces,
};

pub use crate::table::Table;

macro_rules! tables {
    ($($constant:ident = $table:expr;)*) => {
        $(#[allow(missing_docs)] pub const $constant: Table = $table;)*

        /// The tables of a data set, in the order of the documentation.
        pub const ALL: &[&Table] = &[$(&$constant),*];
    };
}

tables! {
    EVENTS = Table::listed(
        "events",
        "One event, in time order",
        "Numbers that the header of a record does not have are null: kernel events have no id, \
         for example. Stale records, which occur twice in the file, are left out.",
        event_columns::columns,
    );
    EVENT_STACKS = Table::of::<stacks::EventStackRow<'static>>();
    TRACES = Table::of::<traces::TraceRow<'static>>();
    SESSIONS = Table::of::<sessions::SessionRow<'static>>();
    PROCESSES = Table::of::<processes::ProcessRow<'static>>();
    THREADS = Table::of::<threads::ThreadRow<'static>>();
    IMAGES = Table::of::<images::ImageRow<'static>>();
    MODULES = Table::of::<code::ModuleRow<'static>>();
    METHODS = Table::of::<code::MethodRow<'static>>();
    LOADS = Table::of::<loads::LoadRow<'static>>();
    STACKS = Table::of::<stacks::StackRow<'static>>();
    FRAMES = Table::of::<stacks::FrameRow<'static>>();
    SAMPLES = Table::of::<samples::SampleRow<'static>>();
    CONTEXT_SWITCHES = Table::of::<context_switches::ContextSwitchRow<'static>>();
    THREAD_WAITS = Table::of::<thread_waits::ThreadWaitRow<'static>>();
    WAIT_REASONS = Table::of::<thread_waits::WaitReasonRow<'static>>();
    WAKERS = Table::of::<thread_waits::WakerRow<'static>>();
    GCS = Table::of::<gcs::GcRow<'static>>();
    GC_HEAPS = Table::of::<gcs::GcHeapRow<'static>>();
    COMPILATIONS = Table::of::<compilations::CompilationRow<'static>>();
    EXCEPTIONS = Table::of::<exceptions::ExceptionRow<'static>>();
    LOCK_WAITS = Table::of::<lock_waits::LockWaitRow<'static>>();
    THREAD_POOLS = Table::of::<thread_pools::ThreadPoolRow<'static>>();
    THREAD_POOL_CHANGES = Table::of::<thread_pools::ThreadPoolChangeRow<'static>>();
    THREAD_POOL_QUEUES = Table::of::<thread_pools::ThreadPoolQueueRow<'static>>();
    ACTIVITIES = Table::of::<activities::ActivityRow<'static>>();
    ALLOCATIONS = Table::of::<allocations::AllocationRow<'static>>();
    LARGE_OBJECTS = Table::of::<allocations::LargeObjectRow<'static>>();
    INTERRUPTS = Table::of::<interrupts::InterruptRow<'static>>();
    INTERRUPT_SAMPLES = Table::of::<interrupts::InterruptSampleRow<'static>>();
    PROCESSOR_USE = Table::of::<processor_use::ProcessorUseRow<'static>>();
    IO = Table::of::<io::IoRow<'static>>();
    HARD_FAULTS = Table::of::<hard_faults::HardFaultRow<'static>>();
    DISK_OPERATIONS = Table::of::<io::DiskOperationRow<'static>>();
    CONNECTIONS = Table::of::<network::ConnectionRow<'static>>();
    PACKETS = Table::of::<packets::PacketRow<'static>>();
    LOSSES = Table::of::<losses::LossRow<'static>>();
    FINDINGS = Table::of::<findings::FindingRow<'static>>();
}

/// Tables that only reports of `analyze` have: `KIND.MEMBER`, the kind of report and the member of
/// its JSON. The rows of profiles are named `cpu.VIEW.rows`, comparisons `KIND.compare.MEMBER`.
pub const REPORTS: &[Table] = &[
    Table::of::<summary::SummaryProcessRow<'static>>(),
    Table::of::<summary::SummaryMethodRow>(),
    Table::of::<summary::SubjectRow>(),
    Table::of::<contents::EventKindRow<'static>>(),
    Table::of::<contents::FailureRow<'static>>(),
    Table::of::<contents::CommandRow>(),
    Table::of::<profiles::ProfileMethodRow<'static>>(),
    Table::of::<profiles::ProfileModuleRow<'static>>(),
    Table::of::<profiles::ProfileRootRow<'static>>(),
    Table::of::<profiles::ProfileTreeRow<'static>>(),
    Table::of::<profiles::ProfileFocusRow>(),
    Table::of::<profile_changes::ProfileChangeRow>(),
    Table::of::<gcs::GcProcessRow<'static>>(),
    Table::of::<compilations::CompilationProcessRow<'static>>(),
    Table::of::<io::IoProcessRow<'static>>(),
    Table::of::<hard_faults::HardFaultProcessRow<'static>>(),
    Table::of::<startup::StartupKindRow<'static>>(),
    Table::of::<startup::StartupRow<'static>>(),
    Table::of::<activities::OperationRow<'static>>(),
    Table::of::<allocations::AllocationSecondRow<'static>>(),
    Table::of::<allocations::PinnedRow<'static>>(),
    Table::of::<allocations::SurvivorRow<'static>>(),
    Table::of::<interrupts::InterruptProcessorRow<'static>>(),
    Table::of_changes::<gcs::GcRow<'static>>(),
    Table::of_changes::<gcs::GcProcessRow<'static>>(),
    Table::of_changes::<allocations::AllocationRow<'static>>(),
    Table::of_changes::<allocations::PinnedRow<'static>>(),
    Table::of_changes::<allocations::SurvivorRow<'static>>(),
    Table::of_changes::<compilations::CompilationRow<'static>>(),
    Table::of_changes::<compilations::CompilationProcessRow<'static>>(),
    Table::of_changes::<exceptions::ExceptionRow<'static>>(),
    Table::of_changes::<lock_waits::LockWaitRow<'static>>(),
    Table::of_changes::<io::IoRow<'static>>(),
    Table::of_changes::<io::IoProcessRow<'static>>(),
    Table::of_changes::<thread_waits::ThreadWaitRow<'static>>(),
    Table::of_changes::<thread_waits::WaitReasonRow<'static>>(),
    Table::of_changes::<thread_waits::WakerRow<'static>>(),
    Table::of_changes::<activities::OperationRow<'static>>(),
];

impl Table {
    /// The table of a data set with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Table> {
        ALL.iter().copied().find(|table| table.name == name)
    }
}

/// The names of all tables.
#[cfg(feature = "arrow")]
pub(crate) fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|table| table.name).collect();
    names.join(", ")
}
