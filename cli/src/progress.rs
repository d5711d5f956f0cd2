//! A progress bar on standard error, if that is a terminal.

use std::io::IsTerminal;

use etl_format::read::{Options, Source, Trace};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::input::Input;

/// Records between two updates of the bar.
const STEP: u32 = 1 << 15;

/// What a command prints to standard output while it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printing {
    /// Events: a bar would be between them if standard output is a terminal.
    Events,
    /// Nothing until all is read.
    Nothing,
}

/// A bar over the bytes of a trace.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    bytes: u64,
    records: u32,
}

impl Progress {
    /// A bar for `total` bytes; hidden if the command prints events to the terminal.
    pub fn new(total: u64, printing: Printing) -> Self {
        let is_disturbing = printing == Printing::Events && std::io::stdout().is_terminal();
        let target = if std::io::stderr().is_terminal() && !is_disturbing {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress {
            bar,
            bytes: 0,
            records: 0,
        }
    }

    /// A bar for so many passes over a trace.
    pub fn of_trace<S: Source>(trace: &Trace<S>, passes: u64, printing: Printing) -> Self {
        Progress::new(used(trace) * passes, printing)
    }

    /// A bar for a pass over several traces.
    pub fn of_traces<'t, S: Source + 't>(traces: impl IntoIterator<Item = &'t Trace<S>>) -> Self {
        let total = traces.into_iter().map(used).sum();
        Progress::new(total, Printing::Nothing)
    }

    /// A bar for a pass over traces that a library opens.
    pub fn of_inputs<'i>(inputs: impl IntoIterator<Item = &'i mut Input>) -> Self {
        let mut total = 0;
        // Reading the headers of all buffers for a bar that nobody sees would be a waste.
        if std::io::stderr().is_terminal() {
            for input in inputs {
                if let Ok((trace, _)) = input.trace(&Options::salvage()) {
                    total += used(&trace);
                }
            }
        }
        Progress::new(total, Printing::Nothing)
    }

    /// Counts the bytes of many records.
    pub fn add(&mut self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Counts a record of `bytes` bytes.
    #[inline]
    pub fn pass(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.records += 1;
        if self.records == STEP {
            self.bar.inc(self.bytes);
            self.bytes = 0;
            self.records = 0;
        }
    }
}

/// Bytes of the records of a trace, decompressed.
fn used<S: Source>(trace: &Trace<S>) -> u64 {
    trace
        .buffers()
        .iter()
        .map(|buffer| u64::from(buffer.fill))
        .sum()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
