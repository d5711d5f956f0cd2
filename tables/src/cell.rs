//! Values of rows.

use std::fmt;

use etl_format::{Clock, FileTime, ProcessId, ThreadId, Ticks};

/// A value of a row. Its column states the type and the unit.
///
/// ```
/// use etl_tables::Cell;
///
/// assert!(matches!(Cell::text(""), Cell::Null));
/// assert!(matches!(Cell::int(Some(7u64)), Cell::Int(7)));
/// // 15,000 times 100 ns are 1,500 µs.
/// assert!(matches!(Cell::micros(Some(15_000)), Cell::Float(1500.0)));
/// assert!(matches!(Cell::share(1, 4), Cell::Share(0.25)));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Cell<'a> {
    /// The value is not known.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number in the unit of the column, or bits.
    Int(i64),
    /// A number in the unit of the column.
    Float(f64),
    /// A share between 0 and 1. The column has it in percent.
    Share(f64),
    /// A time in UTC.
    Time(FileTime),
    /// Text, which is not empty.
    Text(&'a str),
    /// Bytes, or text in UTF-8.
    Bytes(&'a [u8]),
    /// Text, and what people read instead of it.
    Label(&'a Label<'a>),
}

impl<'a> Cell<'a> {
    /// A number. A number that does not fit into 64 bits with a sign is not known.
    pub fn int<T: TryInto<i64>>(value: Option<T>) -> Self {
        match value.map(TryInto::try_into) {
            Some(Ok(value)) => Cell::Int(value),
            _ => Cell::Null,
        }
    }

    /// The bits of a number.
    pub fn bits(value: Option<u64>) -> Self {
        value.map_or(Cell::Null, |value| Cell::Int(value as i64))
    }

    /// A text; `Null` if it is empty.
    pub fn text(text: &'a str) -> Self {
        if text.is_empty() {
            Cell::Null
        } else {
            Cell::Text(text)
        }
    }

    /// A time of a recording, in ticks of its clock.
    pub fn time(clock: &Clock, ticks: Option<Ticks>) -> Self {
        ticks.map_or(Cell::Null, |ticks| Cell::Time(clock.time(ticks)))
    }

    /// A duration in 100 ns as microseconds.
    pub fn micros(duration: Option<u64>) -> Self {
        duration.map_or(Cell::Null, |duration| Cell::Float(duration as f64 / 10.0))
    }

    /// The share of a part in a whole; 0 if the whole is 0.
    pub fn share(part: u64, whole: u64) -> Self {
        Cell::Share(if whole == 0 {
            0.0
        } else {
            part as f64 / whole as f64
        })
    }
}

/// A share of one in percent, with four digits after the point.
pub(crate) fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// A text for programs, whose [`Display`](fmt::Display) is a longer text for people.
///
/// ```
/// use etl_format::ProcessId;
/// use etl_tables::Label;
///
/// let process = Label::Process { name: "Orders.exe", pid: Some(ProcessId::new(4312)) };
/// assert_eq!(process.value(), "Orders.exe");
/// assert_eq!(process.to_string(), "Orders.exe (4312)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label<'a> {
    /// The file name of a process: `Orders.exe (4312)`.
    Process {
        /// The file name; empty if no event states it.
        name: &'a str,
        /// The process id; `None` for an unknown process.
        pid: Option<ProcessId>,
    },
    /// What interrupted idle processors, listed with processes: `DPC of processor 2`.
    Interrupt {
        /// The whole label.
        name: &'a str,
    },
    /// The file name of the process of a thread: `Orders.exe (4312) thread 55`.
    ThreadOf {
        /// The file name; empty if no event states it.
        name: &'a str,
        /// The process id; `None` for an unknown process.
        pid: Option<ProcessId>,
        /// The thread id.
        tid: ThreadId,
    },
    /// The name of a thread: `.NET GC (12)`, or `thread 12` without a name.
    Thread {
        /// The name; empty if no event states it.
        name: &'a str,
        /// The thread id.
        tid: Option<ThreadId>,
    },
    /// A name, indented by its depth in a tree.
    Indented {
        /// The name; empty if no event states it.
        name: &'a str,
        /// Steps of the indentation.
        depth: usize,
    },
}

impl<'a> Label<'a> {
    /// The text for programs; may be empty.
    #[must_use]
    pub const fn value(&self) -> &'a str {
        match *self {
            Label::Process { name, .. }
            | Label::Interrupt { name }
            | Label::ThreadOf { name, .. }
            | Label::Thread { name, .. }
            | Label::Indented { name, .. } => name,
        }
    }

    /// The id of a process.
    #[must_use]
    pub const fn pid(&self) -> Option<ProcessId> {
        match *self {
            Label::Process { pid, .. } | Label::ThreadOf { pid, .. } => pid,
            _ => None,
        }
    }

    /// Whether text has a dash instead of it.
    pub(crate) const fn is_empty(&self) -> bool {
        match *self {
            Label::Thread { name, tid } => name.is_empty() && tid.is_none(),
            _ => false,
        }
    }
}

/// The name, or a question mark.
const fn or_unknown(name: &str) -> &str {
    if name.is_empty() { "?" } else { name }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Label::Process {
                name,
                pid: Some(pid),
            } => write!(f, "{} ({pid})", or_unknown(name)),
            Label::Process { pid: None, .. } => f.write_str("unknown process"),
            Label::ThreadOf { name, pid, tid } => {
                write!(f, "{} thread {tid}", Label::Process { name, pid })
            }
            Label::Interrupt { name } | Label::Thread { name, tid: None } => f.write_str(name),
            Label::Thread {
                name: "",
                tid: Some(tid),
            } => write!(f, "thread {tid}"),
            Label::Thread {
                name,
                tid: Some(tid),
            } => write!(f, "{name} ({tid})"),
            Label::Indented { name, depth } => {
                write!(f, "{}{}", "  ".repeat(depth), or_unknown(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_the_ids_of_processes_and_threads() {
        let process = Label::Process {
            name: "Orders.exe",
            pid: Some(ProcessId::new(4312)),
        };
        assert_eq!(process.to_string(), "Orders.exe (4312)");
        assert_eq!(process.value(), "Orders.exe");
        let unknown = Label::ThreadOf {
            name: "",
            pid: None,
            tid: ThreadId::new(8),
        };
        assert_eq!(unknown.to_string(), "unknown process thread 8");
        assert_eq!(
            Label::Thread {
                name: "",
                tid: Some(ThreadId::new(12))
            }
            .to_string(),
            "thread 12"
        );
        assert_eq!(Label::Indented { name: "", depth: 2 }.to_string(), "    ?");
    }
}
