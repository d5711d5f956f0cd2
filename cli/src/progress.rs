//! A progress bar on standard error, if that is a terminal.

use std::io::IsTerminal;

use etl_format::read::{Options, Source, Trace};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::input::Input;

/// Records between two updates of the bar.
const STEP: u32 = 1 << 15;

/// A bar over the bytes of a trace.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    bytes: u64,
    records: u32,
}

impl Progress {
    /// A bar for `total` bytes; hidden if the command prints events (`prints`) to the terminal.
    pub fn new(total: u64, prints: bool) -> Self {
        let shown = std::io::stderr().is_terminal() && !(prints && std::io::stdout().is_terminal());
        let target = if shown {
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
    pub fn of_trace<S: Source>(trace: &Trace<S>, passes: u64, prints: bool) -> Self {
        Progress::new(used(trace) * passes, prints)
    }

    /// A bar for a pass over traces that a library opens.
    pub fn of_inputs<'i>(inputs: impl IntoIterator<Item = &'i mut Input>) -> Self {
        let size = |input: &mut Input| match input.trace(&Options::salvage()) {
            Ok((trace, _)) => used(&trace),
            Err(_) => 0,
        };
        // It is not seen elsewhere, and the headers of all buffers are read for it.
        let is_shown = std::io::stderr().is_terminal();
        Progress::new(
            if is_shown {
                inputs.into_iter().map(size).sum()
            } else {
                0
            },
            false,
        )
    }

    /// Counts `bytes` bytes, which are those of many records.
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
            (self.bytes, self.records) = (0, 0);
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
