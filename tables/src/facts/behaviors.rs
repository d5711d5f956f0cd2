//! Tables of what processes did: their rows are known once all records were read.

use etl_analysis::behavior::activities::Activities;
use etl_analysis::behavior::allocations::Allocations;
use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::contention::Contention;
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::interrupts::Interrupts;
use etl_analysis::behavior::io::{HardFaults, Io};
use etl_analysis::behavior::loads::Loads;
use etl_analysis::behavior::network::Network;
use etl_analysis::behavior::processors::ProcessorUse;
use etl_analysis::behavior::thread_pool::ThreadPool;
use etl_analysis::behavior::waits::Waits;
use etl_analysis::loss::Loss;
use etl_analysis::{EventRef, Machine, Observer, Sample};
use etl_format::read::Record;

use super::rows::Rows;
use super::select::{has_time, selection};
use crate::options::Options;
use crate::rows::{
    activities, allocations, compilations, exceptions, gcs, hard_faults, interrupts, io, loads,
    lock_waits, network, processor_use, thread_pools, thread_waits,
};
use crate::tables::{
    ACTIVITIES, ALLOCATIONS, COMPILATIONS, CONNECTIONS, DISK_OPERATIONS, EXCEPTIONS, GC_HEAPS, GCS,
    HARD_FAULTS, INTERRUPT_SAMPLES, INTERRUPTS, IO, LARGE_OBJECTS, LOADS, LOCK_WAITS,
    PROCESSOR_USE, THREAD_POOL_CHANGES, THREAD_POOL_QUEUES, THREAD_POOLS, THREAD_WAITS, Table,
    WAIT_REASONS, WAKERS,
};

/// The tables that this module fills.
pub(super) const TABLES: &[&Table] = &[
    &GCS,
    &GC_HEAPS,
    &COMPILATIONS,
    &EXCEPTIONS,
    &LOCK_WAITS,
    &THREAD_POOLS,
    &THREAD_POOL_CHANGES,
    &THREAD_POOL_QUEUES,
    &LOADS,
    &THREAD_WAITS,
    &WAIT_REASONS,
    &WAKERS,
    &ACTIVITIES,
    &ALLOCATIONS,
    &LARGE_OBJECTS,
    &INTERRUPTS,
    &INTERRUPT_SAMPLES,
    &PROCESSOR_USE,
    &HARD_FAULTS,
    &IO,
    &DISK_OPERATIONS,
    &CONNECTIONS,
];

/// The tables of this module that need samples.
pub(super) const WITH_SAMPLES: &[&Table] = &[&INTERRUPT_SAMPLES, &PROCESSOR_USE];

/// The length of an interval of the use of processors in 100 ns: a second.
const USE_INTERVAL: u64 = 10_000_000;

/// The analyses that the requested tables need.
#[derive(Debug)]
pub(super) struct Behaviors {
    activities: Option<Activities>,
    allocations: Option<Allocations>,
    collections: Option<Collections>,
    compilations: Option<Compilations>,
    contention: Option<Contention>,
    waits: Option<Waits>,
    interrupts: Option<Interrupts>,
    processors: Option<ProcessorUse>,
    faults: Option<HardFaults>,
    io: Option<Io>,
    exceptions: Option<Exceptions>,
    pools: Option<ThreadPool>,
    loads: Option<Loads>,
    network: Option<Network>,
}

impl Behaviors {
    pub fn new(options: &Options, rows: &Rows<'_>) -> Self {
        const POOLS: [&Table; 3] = [&THREAD_POOLS, &THREAD_POOL_CHANGES, &THREAD_POOL_QUEUES];
        const WAITS: [&Table; 3] = [&THREAD_WAITS, &WAIT_REASONS, &WAKERS];
        let range = options.filter.time;
        Behaviors {
            activities: if_wanted(rows, &[&ACTIVITIES], || {
                Activities::new(options.store.clone())
            }),
            allocations: if_wanted(rows, &[&ALLOCATIONS, &LARGE_OBJECTS], || {
                Allocations::new().within(range)
            }),
            collections: if_wanted(rows, &[&GCS, &GC_HEAPS], || {
                Collections::new().within(range)
            }),
            compilations: if_wanted(rows, &[&COMPILATIONS], || Compilations::new().within(range)),
            contention: if_wanted(rows, &[&LOCK_WAITS], || Contention::new().within(range)),
            waits: if_wanted(rows, &WAITS, || Waits::new().within(range)),
            interrupts: if_wanted(rows, &[&INTERRUPTS, &INTERRUPT_SAMPLES], || {
                Interrupts::new().within(range)
            }),
            processors: if_wanted(rows, &[&PROCESSOR_USE], || {
                ProcessorUse::new(USE_INTERVAL).within(range)
            }),
            faults: if_wanted(rows, &[&HARD_FAULTS], || HardFaults::new().within(range)),
            io: if_wanted(rows, &[&IO, &DISK_OPERATIONS], || new_io(options, rows)),
            exceptions: if_wanted(rows, &[&EXCEPTIONS], Exceptions::new),
            pools: if_wanted(rows, &POOLS, ThreadPool::new),
            loads: if_wanted(rows, &[&LOADS], Loads::new),
            network: if_wanted(rows, &[&CONNECTIONS], Network::new),
        }
    }

    pub fn record(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
        options: &Options,
    ) {
        self.activities.record(machine, record, event);
        self.allocations.record(machine, record, event);
        self.collections.record(machine, record, event);
        self.compilations.record(machine, record, event);
        self.contention.record(machine, record, event);
        self.waits.record(machine, record, event);
        self.interrupts.record(machine, record, event);
        self.processors.record(machine, record, event);
        self.faults.record(machine, record, event);
        self.io.record(machine, record, event);
        // These analyses cannot be limited to a range of time.
        if has_time(options, event.time) {
            let threads = &options.filter.threads;
            if threads.is_empty() || event.tid.is_some_and(|tid| threads.contains(&tid)) {
                self.exceptions.record(machine, record, event);
            }
            self.pools.record(machine, record, event);
            self.loads.record(machine, record, event);
            self.network.record(machine, record, event);
        } else if options.filter.time.to.is_none_or(|to| event.time < to) {
            self.network.unselected(machine, record, event);
        }
    }

    pub fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        self.interrupts.sample(machine, sample);
        self.processors.sample(machine, sample);
    }

    pub fn loss(&mut self, loss: &Loss) {
        self.activities.loss(loss);
        self.allocations.loss(loss);
        self.collections.loss(loss);
        self.compilations.loss(loss);
        self.contention.loss(loss);
        self.waits.loss(loss);
        self.interrupts.loss(loss);
        self.processors.loss(loss);
        self.faults.loss(loss);
        self.io.loss(loss);
        self.exceptions.loss(loss);
        self.pools.loss(loss);
        self.loads.loss(loss);
        self.network.loss(loss);
    }

    pub fn finish(&mut self, machine: &Machine) {
        self.activities.finish(machine);
        self.allocations.finish(machine);
        self.collections.finish(machine);
        self.compilations.finish(machine);
        self.contention.finish(machine);
        self.waits.finish(machine);
        self.interrupts.finish(machine);
        self.processors.finish(machine);
        self.faults.finish(machine);
        self.io.finish(machine);
        self.exceptions.finish(machine);
        self.pools.finish(machine);
        self.loads.finish(machine);
        self.network.finish(machine);
    }

    pub fn restart(&mut self) {
        self.activities.restart();
        self.allocations.restart();
        self.collections.restart();
        self.compilations.restart();
        self.contention.restart();
        self.waits.restart();
        self.interrupts.restart();
        self.processors.restart();
        self.faults.restart();
        self.io.restart();
        self.exceptions.restart();
        self.pools.restart();
        self.loads.restart();
        self.network.restart();
    }

    /// Adds the rows. `machine` is the whole machine, with names.
    pub fn write(&self, machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
        let selection = selection(options, machine);
        let selection = selection.within(options.filter.time);
        if let Some(observed) = &self.activities {
            rows.add_all(activities::activities(machine, observed, &selection));
        }
        if let Some(collections) = &self.collections {
            let gcs = gcs::gcs(machine, collections, &selection);
            rows.add_all(gcs::gc_heaps(&gcs));
            rows.add_all(gcs);
        }
        if let Some(compilations) = &self.compilations {
            rows.add_all(compilations::compilations(
                machine,
                compilations,
                &selection,
            ));
        }
        if let Some(exceptions) = &self.exceptions {
            rows.add_all(exceptions::exceptions(
                machine, exceptions, None, &selection,
            ));
        }
        if let Some(contention) = &self.contention {
            rows.add_all(lock_waits::lock_waits(machine, contention, &selection));
        }
        if let Some(pools) = &self.pools {
            rows.add_all(thread_pools::thread_pools(machine, pools, &selection));
            rows.add_all(thread_pools::thread_pool_changes(
                machine, pools, &selection,
            ));
            rows.add_all(thread_pools::thread_pool_queues(machine, pools, &selection));
        }
        if let Some(loads) = &self.loads {
            rows.add_all(loads::loads(machine, loads, &selection));
        }
        if let Some(waits) = &self.waits {
            let threads = thread_waits::thread_waits(machine, waits, &selection);
            rows.add_all(thread_waits::wait_reasons(machine, waits, &threads));
            rows.add_all(thread_waits::wakers(machine, &threads));
            rows.add_all(threads);
        }
        if let Some(observed) = &self.allocations {
            rows.add_all(allocations::allocations(machine, observed, &selection));
            rows.add_all(allocations::large_objects(machine, observed, &selection));
        }
        if let Some(observed) = &self.interrupts {
            rows.add_all(interrupts::interrupts(machine, observed, None));
            rows.add_all(interrupts::interrupt_samples(machine, observed, None));
        }
        if let Some(processors) = &self.processors {
            rows.add_all(processor_use::processor_use(machine, processors));
        }
        if let Some(faults) = &self.faults {
            rows.add_all(hard_faults::hard_faults(machine, faults, &selection));
        }
        if let Some(io) = &self.io {
            rows.add_all(io::io(machine, io, &selection));
            rows.add_all(io::disk_operations(machine, io, &selection));
        }
        if let Some(network) = &self.network {
            rows.add_all(network::connections(machine, network, &selection));
        }
    }
}

/// An analysis, if any of its tables is requested.
fn if_wanted<T>(rows: &Rows<'_>, tables: &[&Table], new: impl FnOnce() -> T) -> Option<T> {
    let is_wanted = tables.iter().any(|table| rows.wants_table(table.name));
    if is_wanted { Some(new()) } else { None }
}

/// The analysis of input and output; it keeps operations of disks if their table is requested.
fn new_io(options: &Options, rows: &Rows<'_>) -> Io {
    let io = Io::new().within(options.filter.time);
    if rows.wants_table(DISK_OPERATIONS.name) {
        io.keep_disk_operations()
    } else {
        io
    }
}
