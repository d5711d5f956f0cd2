//! Deferred procedure calls and interrupt service routines of drivers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::interrupts::{
    CallKind, Calls, CodeSamples, Interrupts, ProcessorCalls, ProcessorClass,
};
use etl_analysis::profile::Weight;
use etl_analysis::symbols::{FunctionNames, Symbol, Symbols};
use etl_analysis::{Interrupt, Machine};
use etl_format::{ProcessId, Ticks};

use super::{CPU, Durations, HasDurations, add_durations, ticks};
use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

const DRIVER: Column = Column::new("driver", Kind::Word, "File name of the driver or image");
const FUNCTION: Column = Column::new("function", Kind::Text, "Function, if its PDB was given");
const SAMPLES: Column = Column::count("samples", "Samples of the processors");
const CPU_TIME: Column = Column::micros(
    "cpu_us",
    "Their time; null if the recording states no interval of samples",
)
.or_null();

const LONGEST: Column = Column::time("longest_at", "When the longest one began").or_null();

/// When the longest call began.
fn began<'r>(machine: &Machine, calls: &Calls) -> Cell<'r> {
    Cell::time(machine.clock(), calls.longest.map(|call| call.started))
}

/// The code of a driver at an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DriverCode<'m> {
    driver: &'m str,
    function: Cow<'m, str>,
}

/// Names the code at addresses of the kernel.
#[derive(Debug)]
struct DriverNames<'m, 'f> {
    machine: &'m Machine,
    symbols: Symbols<'m>,
    functions: Option<&'f dyn FunctionNames>,
}

impl<'m, 'f> DriverNames<'m, 'f> {
    fn new(machine: &'m Machine, functions: Option<&'f dyn FunctionNames>) -> Self {
        DriverNames {
            machine,
            symbols: machine.symbols(),
            functions,
        }
    }

    fn at(&self, address: u64, time: Ticks) -> DriverCode<'m> {
        // Addresses of the kernel are the same in all processes.
        let symbol = self.symbols.at(ProcessId::UNKNOWN, address, time);
        let mut function = None;
        if let Some(Symbol::Image(image)) = symbol
            && let Some(functions) = self.functions
        {
            function = functions.function(self.machine, &image);
        }
        DriverCode {
            driver: symbol.map_or("", |symbol| symbol.file_name()),
            function: function.map_or(Cow::Borrowed(""), |function| {
                Cow::Owned(function.name.to_string())
            }),
        }
    }
}

/// A row of `interrupts`.
#[derive(Clone, Debug)]
pub struct InterruptRow<'m> {
    machine: &'m Machine,
    kind: CallKind,
    address: u64,
    code: DriverCode<'m>,
    durations: Durations,
    calls: &'m Calls,
}

impl HasDurations for InterruptRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl InterruptRow<'_> {
    /// How many calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.calls.durations.count()
    }
}

impl Row for InterruptRow<'_> {
    const NAME: &'static str = "interrupts";
    const ROW: &'static str =
        "The DPCs or ISRs of one routine of a driver, the longest in sum first";
    const ABOUT: &'static str = "`analyze dpc` prints the same rows. Single calls are in events \
        (`PerfInfo.DPC`).";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const KIND: Column = Column::new(
            "kind",
            Kind::Word,
            "`DPC`, `timer DPC`, `threaded DPC`, `ISR` or `ISR of a message`",
        );
        const COUNT: Column = Column::count("count", "Calls");
        const OWN: Column = Column::micros(
            "self_us",
            "Sum of their time without the calls that interrupted them",
        );
        const LONGEST_CPU: Column = Column::new("longest_cpu", Kind::Int32, "Its processor");
        const ADDRESS: Column = Column::address("address", "Address of the routine");
        columns.add(KIND.heading("kind"), |row| Cell::Text(row.kind.name()));
        columns.add(DRIVER.or_null().heading("driver"), |row| {
            Cell::text(row.code.driver)
        });
        columns.add(FUNCTION.or_null().heading("function"), |row| {
            Cell::text(&row.code.function)
        });
        columns.add(ADDRESS.heading("address"), |row| {
            Cell::bits(Some(row.address))
        });
        columns.add(COUNT.heading("count"), |row| Cell::int(Some(row.count())));
        add_durations(columns);
        columns.add(OWN.heading("self ms"), |row| {
            Cell::micros(Some(ticks(row.machine.clock(), row.calls.own)))
        });
        columns.add(LONGEST.heading("longest at"), |row| {
            began(row.machine, row.calls)
        });
        columns.add(LONGEST_CPU.or_null().heading("on cpu"), |row| {
            Cell::int(row.calls.longest.map(|call| call.processor))
        });
    }
}

/// A row for the calls of each routine, the longest in sum first. `functions` names functions.
#[must_use]
pub fn interrupts<'m>(
    machine: &'m Machine,
    interrupts: &'m Interrupts,
    functions: Option<&dyn FunctionNames>,
) -> Vec<InterruptRow<'m>> {
    let names = DriverNames::new(machine, functions);
    let mut rows = Vec::new();
    for (routine, calls) in interrupts.routines() {
        rows.push(InterruptRow {
            machine,
            kind: routine.kind,
            address: routine.address,
            code: names.at(routine.address, calls.last),
            durations: Durations::of_ticks(&calls.durations, machine.clock()),
            calls,
        });
    }
    rows.sort_by_key(|row| Reverse(row.calls.durations.total()));
    rows
}

/// A row of `interrupt_samples`.
#[derive(Clone, Debug)]
pub struct InterruptSampleRow<'m> {
    interrupt: Interrupt,
    code: DriverCode<'m>,
    weight: Weight,
}

impl Row for InterruptSampleRow<'_> {
    const NAME: &'static str = "interrupt_samples";
    const ROW: &'static str =
        "The samples that found one driver or function running in a DPC or ISR, the most first";
    const ABOUT: &'static str = "`analyze dpc` prints the same rows. The code may be a function \
        that the routine called, also of another image.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const KIND: Column = Column::new("kind", Kind::Word, "`DPC` or `ISR`");
        columns.add(KIND.heading("in"), |row| Cell::Text(row.interrupt.name()));
        columns.add(DRIVER.or_null().heading("driver"), |row| {
            Cell::text(row.code.driver)
        });
        columns.add(FUNCTION.or_null().heading("function"), |row| {
            Cell::text(&row.code.function)
        });
        columns.add(SAMPLES.heading("samples"), |row| {
            Cell::int(Some(row.weight.samples))
        });
        columns.add(CPU_TIME.heading("ms"), |row| sampled_time(row.weight));
    }
}

impl InterruptSampleRow<'_> {
    /// How many samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.weight.samples
    }
}

/// The time of samples.
fn sampled_time(weight: Weight) -> Cell<'static> {
    if weight.time == 0 && weight.samples > 0 {
        Cell::Null
    } else {
        Cell::micros(Some(weight.time))
    }
}

/// What the samples of a row have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SampledKey<'m> {
    interrupt: Interrupt,
    code: DriverCode<'m>,
}

/// A row for the samples of each driver or function in calls, the most first.
#[must_use]
pub fn interrupt_samples<'m>(
    machine: &'m Machine,
    interrupts: &Interrupts,
    functions: Option<&dyn FunctionNames>,
) -> Vec<InterruptSampleRow<'m>> {
    let names = DriverNames::new(machine, functions);
    let mut sums: BTreeMap<SampledKey<'_>, Weight> = BTreeMap::new();
    for (code, samples) in interrupts.code() {
        let CodeSamples { weight, last, .. } = *samples;
        let key = SampledKey {
            interrupt: code.interrupt,
            code: names.at(code.address, last),
        };
        *sums.entry(key).or_default() += weight;
    }
    let mut rows = Vec::new();
    for (key, weight) in sums {
        rows.push(InterruptSampleRow {
            interrupt: key.interrupt,
            code: key.code,
            weight,
        });
    }
    rows.sort_by_key(|row| Reverse(row.weight.samples));
    rows
}

/// A row of the sums of `analyze dpc`.
#[derive(Clone, Debug)]
pub struct InterruptProcessorRow<'m> {
    machine: &'m Machine,
    class: ProcessorClass,
    processor: &'m ProcessorCalls,
    durations: Durations,
    /// The selected time, in 100 ns.
    time: u64,
}

impl HasDurations for InterruptProcessorRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl InterruptProcessorRow<'_> {
    /// The own time of its calls, in 100 ns.
    #[must_use]
    pub fn own(&self) -> u64 {
        ticks(self.machine.clock(), self.processor.calls.own)
    }
}

impl Row for InterruptProcessorRow<'_> {
    const NAME: &'static str = "dpc.processors";
    const ROW: &'static str = "The DPCs or the ISRs of one processor";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const KIND: Column = Column::new("kind", Kind::Word, "`DPC` or `ISR`");
        const COUNT: Column = Column::count("count", "Calls");
        const OWN: Column = Column::micros(
            "self_us",
            "Sum of their time without the calls that interrupted them",
        );
        const SHARE: Column = Column::percent("self_percent", "Its share of the selected time");
        columns.add(CPU.heading("cpu"), |row| {
            Cell::int(Some(row.class.processor))
        });
        columns.add(KIND.heading("kind"), |row| {
            Cell::Text(row.class.interrupt.name())
        });
        columns.add(COUNT.heading("count"), |row| {
            Cell::int(Some(row.processor.calls.durations.count()))
        });
        add_durations(columns);
        columns.add(OWN.heading("self ms"), |row| Cell::micros(Some(row.own())));
        columns.add(SHARE.heading("%"), |row| Cell::share(row.own(), row.time));
        columns.add(LONGEST.heading("longest at"), |row| {
            began(row.machine, &row.processor.calls)
        });
        columns.add(SAMPLES.heading("samples"), |row| {
            Cell::int(Some(row.processor.sampled.samples))
        });
        columns.add(CPU_TIME.heading("sampled ms"), |row| {
            sampled_time(row.processor.sampled)
        });
    }
}

/// A row for the calls of each processor and class. `time` is the selected time, in 100 ns.
#[must_use]
pub fn interrupt_processors<'m>(
    machine: &'m Machine,
    interrupts: &'m Interrupts,
    time: u64,
) -> Vec<InterruptProcessorRow<'m>> {
    let mut rows = Vec::new();
    for (&class, processor) in interrupts.processors() {
        rows.push(InterruptProcessorRow {
            machine,
            class,
            processor,
            durations: Durations::of_ticks(&processor.calls.durations, machine.clock()),
            time,
        });
    }
    rows
}
