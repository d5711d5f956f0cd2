//! The figures of real traces, and how near those of their models have to be.

/// A real trace and its model.
pub struct Pair {
    /// The file among the real traces.
    pub real: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The scenario, and the file of it.
    pub scenario: &'static str,
    pub file: &'static str,
    /// Figures of the real trace, and how far those of the generated one may be from them.
    pub figures: &'static [(&'static str, f64, Within)],
    /// Why figures differ.
    pub differences: &'static str,
}

/// How far a figure may be from another.
#[derive(Clone, Copy)]
pub enum Within {
    /// A share of it.
    Share(f64),
    /// This many, of percentages percentage points.
    Points(f64),
    /// A factor in either direction.
    Factor(f64),
    /// It differs for a reason that is stated.
    Stated,
}

impl Within {
    pub fn holds(self, real: f64, found: f64) -> bool {
        match self {
            Within::Share(share) => (found - real).abs() <= real * share,
            Within::Points(points) => (found - real).abs() <= points,
            Within::Factor(factor) => found <= real * factor && real <= found * factor,
            Within::Stated => true,
        }
    }

    pub fn text(self) -> String {
        match self {
            Within::Share(share) => format!("{:.0} %", share * 100.0),
            Within::Points(points) => format!("{points} points"),
            Within::Factor(factor) => format!("factor {factor}"),
            Within::Stated => "see below".to_owned(),
        }
    }
}

use Within::{Factor, Points, Share, Stated};

const MEDIAN: &str = "time to the next record of a processor, median, µs";
const NINETIETH: &str = "time to the next record of a processor, 90th percentile, µs";

const MERGED: &str = "\
Windows 8, eight processors, ten seconds of 32-bit and 64-bit programs on .NET Framework 4.5 that\n\
allocate; kernel, CLR runtime and CLR rundown, merged and compressed.";

const MERGED_DIFFERS: &str = "\
The model leaves out 5 % of the records of the real trace: names of 3,054 open files (215 bytes\n\
each), disk reads, network events and the CLR's private events. The stacks of samples in the real\n\
trace have keys: 9,107 records of 40 bytes, and 2,921 definitions of 196 bytes. The model writes\n\
each stack in full.";

const KERNEL: &str = "\
Windows 10, four processors, 223 processes; processes and images of the kernel, relogged by the\n\
diagnostics hub of Visual Studio.";

const KERNEL_DIFFERS: &str = "\
The hub left out the images of the list at the start, except 187. The model lists half as many\n\
images, at the start and at the end. A relogged file has full buffers; the file of the model also\n\
has the last buffer of each flush, which is not full.\n\
\n\
The kernel needed 164 ms for the list of 15,017 images, and the thread that wrote it went from\n\
processor to processor. In the model a list takes no time, so most of its records have the\n\
timestamp of the record before. This is deliberate: a recording does not change what happens on the\n\
machine. If a list took time, it would delay the threads of its processor only in traces of this\n\
session. If it took time and delayed no thread, its records would be out of order.\n\
\n\
The timestamps explain 1.4 points of the difference of the compressed sizes: with about 10 µs\n\
between two records the generated trace has 14.5 %, and with equal timestamps the real trace has\n\
18.6 %. Addresses explain most of the rest: the kernel lists the images of a process in the order\n\
of their loads, at addresses that other processes determined; the model places them side by side.\n\
Without addresses, sizes and checksums the real trace has 13.8 %.";

const RUNDOWN: &str = "\
Windows 10, eight processors, a small program on .NET 8; the rundown session of PerfView, which\n\
requests modules first and methods half a second later.";

const RUNDOWN_DIFFERS: &str = "\
Each item of a rundown takes the same time in the model (`enumeration-cost`).";

pub const PAIRS: &[Pair] = &[
    Pair {
        real: "perfview/net.4.5.2.x64.etl",
        about: MERGED,
        scenario: "like-real",
        file: "merged.etl",
        figures: &[
            ("records", 179_474.0, Share(0.1)),
            ("bytes of a record, on average", 128.2, Share(0.1)),
            ("buffers", 360.0, Share(0.1)),
            ("KiB of a buffer", 64.0, Share(0.0)),
            ("fill of a buffer, %", 97.7, Points(3.0)),
            ("compressed to, % of the used bytes", 18.4, Share(0.1)),
            ("EVENT32, % of records", 18.6, Share(0.1)),
            ("EVENT32, bytes on average", 285.8, Share(0.1)),
            ("EVENT64, % of records", 19.4, Share(0.1)),
            ("EVENT64, bytes on average", 206.1, Share(0.1)),
            ("PERFINFO64, % of records", 55.8, Share(0.1)),
            ("PERFINFO64, bytes on average", 49.1, Share(0.15)),
            ("SYSTEM64, % of records", 1.8, Points(2.0)),
            ("FULL64, % of records", 4.4, Share(0.15)),
            ("CLR rundown, % of records", 18.4, Share(0.1)),
            ("CLR runtime, % of records", 9.9, Share(0.2)),
            ("CLR stacks, % of records", 8.3, Share(0.1)),
            ("CLR stacks, bytes on average", 267.1, Share(0.15)),
            ("samples, % of records", 44.3, Points(4.0)),
            ("stacks of the kernel, % of records", 6.8, Points(2.0)),
            ("stacks of the kernel, bytes on average", 77.3, Share(0.2)),
            ("images, % of records", 2.0, Points(0.5)),
            ("images, bytes on average", 184.6, Share(0.1)),
            ("threads, % of records", 0.8, Points(0.2)),
            (MEDIAN, 153.5, Factor(3.0)),
            (NINETIETH, 1005.0, Share(0.05)),
        ],
        differences: MERGED_DIFFERS,
    },
    Pair {
        real: "perfview/diaghub.kernel.1.etl",
        about: KERNEL,
        scenario: "like-kernel",
        file: "kernel.etl",
        figures: &[
            ("records", 16_335.0, Share(0.1)),
            ("bytes of a record, on average", 226.0, Share(0.1)),
            ("buffers", 59.0, Share(0.15)),
            ("KiB of a buffer", 64.0, Share(0.0)),
            ("fill of a buffer, %", 95.6, Points(12.0)),
            ("compressed to, % of the used bytes", 20.1, Points(8.0)),
            ("PERFINFO64, % of records", 93.7, Points(4.0)),
            ("PERFINFO64, bytes on average", 227.2, Share(0.1)),
            ("SYSTEM64, % of records", 6.3, Points(4.0)),
            ("SYSTEM64, bytes on average", 207.6, Share(0.2)),
            ("images, % of records", 94.0, Points(2.0)),
            ("images, bytes on average", 224.2, Share(0.1)),
            ("processes, % of records", 3.5, Points(0.5)),
            ("processes, bytes on average", 300.4, Share(0.2)),
            ("configuration, % of records", 2.5, Points(1.0)),
            ("configuration, bytes on average", 195.6, Share(0.2)),
            (MEDIAN, 8.2, Stated),
            (NINETIETH, 23.4, Stated),
        ],
        differences: KERNEL_DIFFERS,
    },
    Pair {
        real: "perfview/gcrundownevents.etl",
        about: RUNDOWN,
        scenario: "like-gc-rundown",
        file: "rundown.etl",
        figures: &[
            ("records", 112.0, Share(0.0)),
            ("bytes of a record, on average", 314.9, Share(0.1)),
            ("buffers", 2.0, Share(0.0)),
            ("KiB of a buffer", 64.0, Share(0.0)),
            ("fill of a buffer, %", 27.0, Points(3.0)),
            ("compressed to, % of the used bytes", 19.8, Share(0.1)),
            ("EVENT64, % of records", 98.2, Points(0.1)),
            ("EVENT64, bytes on average", 315.7, Share(0.1)),
            ("SYSTEM64, % of records", 1.8, Points(0.1)),
            ("SYSTEM64, bytes on average", 272.0, Share(0.15)),
            (MEDIAN, 5.0, Share(0.1)),
            (NINETIETH, 8.4, Factor(2.0)),
        ],
        differences: RUNDOWN_DIFFERS,
    },
];
