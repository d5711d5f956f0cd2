//! What happened when, for people.

use std::io::Write;
use std::ops::Range;

use etl_schema::render::escape_line;

use super::{Present, Witness};
use crate::error::Result;
use crate::etw::{Outcome, Raised, Refusal, SessionReport};
use crate::machine::Nanos;
use crate::model::{Fault, KernelFlags};
use crate::text::duration;

/// Writes a line for each thing that happens; events of one name that follow each other in one
/// process share a line.
#[derive(Debug)]
pub struct Timeline<W> {
    out: W,
    names: Vec<String>,
    run: Option<Run>,
    /// What faults did to the file of a session that ends.
    faults: Vec<String>,
    flipped: u64,
}

/// Events of one kind that follow each other.
#[derive(Debug)]
struct Run {
    pid: u32,
    name: String,
    outcomes: Vec<(usize, Outcome)>,
    first: Nanos,
    last: Nanos,
    count: u64,
}

impl<W: Write> Timeline<W> {
    /// Writes to `out`, which should have a buffer of its own.
    pub fn new(out: W) -> Self {
        Timeline { out, names: Vec::new(), run: None, faults: Vec::new(), flipped: 0 }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// A line: when, and what. Names come of the script: what could act on a terminal is written as
    /// `\u{..}`, as it is wherever etlkit prints names.
    fn line(&mut self, when: &str, what: &str) -> Result<()> {
        let mut line = format!("{when:>16}  ").into_bytes();
        escape_line(&mut line, what);
        line.push(b'\n');
        self.out.write_all(&line)?;
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let mut to = String::new();
        for (session, outcome) in &run.outcomes {
            let name = self.names.get(*session).map_or("", String::as_str);
            to.push_str(&format!("  {name}: {outcome}"));
        }
        let many = if run.count > 1 {
            format!(" x{} until {}", run.count, duration(run.last))
        } else {
            String::new()
        };
        let line = format!("{:>6}  {}{many}{to}", run.pid, run.name);
        self.line(&duration(run.first), &line)
    }
}

impl<W: Write> Witness for Timeline<W> {
    fn event(&mut self, e: &Raised<'_>) -> Result<()> {
        if let Some(run) = &mut self.run
            && run.pid == e.pid
            && run.name == e.schema.name
            && run.outcomes == e.outcomes
        {
            run.count += 1;
            run.last = e.at;
            return Ok(());
        }
        self.end_run()?;
        self.run = Some(Run {
            pid: e.pid,
            name: e.schema.name.to_string(),
            outcomes: e.outcomes.to_vec(),
            first: e.at,
            last: e.at,
            count: 1,
        });
        Ok(())
    }

    fn fault(&mut self, _: usize, fault: &Fault, file: &str, bytes: &Range<u64>) -> Result<()> {
        self.end_run()?;
        match fault {
            Fault::Flipped(_) => self.flipped += 1,
            _ => self.faults.push(format!(
                "{file} is {}: bytes {} to {}",
                fault.name(),
                bytes.start,
                bytes.end
            )),
        }
        if self.flipped == 1 {
            self.faults.push(format!("bits of {file} flip, the first in byte {}", bytes.start));
        }
        Ok(())
    }

    fn session_started(&mut self, index: usize, name: &str, _: Option<&str>) -> Result<()> {
        self.names.resize(self.names.len().max(index + 1), String::new());
        if let Some(slot) = self.names.get_mut(index) {
            name.clone_into(slot);
        }
        Ok(())
    }

    fn kernel(&mut self, session: usize, flags: &KernelFlags, at: Nanos) -> Result<()> {
        let (_, nothing) = flags.in_words();
        if nothing.is_empty() {
            return Ok(());
        }
        self.end_run()?;
        let name = self.names.get(session).map_or("", String::as_str);
        let what = "is in the group masks, and no such event is simulated";
        writeln!(self.out, "{:>16}  session \"{name}\": {nothing}: it {what}", duration(at))?;
        Ok(())
    }

    fn session(&mut self, s: &SessionReport) -> Result<()> {
        self.end_run()?;
        let end = s.stopped.map_or("never stopped".to_owned(), duration);
        let line = format!(
            "session \"{}\": {} events recorded, {} lost, {} lost with {} buffers{}{}",
            s.name,
            s.recorded,
            s.lost,
            s.lost_with_buffers,
            s.buffers_lost,
            if s.delivered > 0 { format!(", {} delivered", s.delivered) } else { String::new() },
            if s.all_files.len() > 1 {
                format!(", into {}", s.all_files.join(", "))
            } else {
                String::new()
            },
        );
        self.line(&end, &line)?;
        self.flipped = 0;
        for fault in std::mem::take(&mut self.faults) {
            self.line(&end, &fault)?;
        }
        Ok(())
    }

    fn refused(&mut self, refusal: &Refusal) -> Result<()> {
        self.end_run()?;
        self.line(&duration(refusal.at), &refusal.to_string())
    }

    fn happened(&mut self, at: Nanos, what: &str) -> Result<()> {
        self.end_run()?;
        self.line(&duration(at), what)
    }

    fn merged(&mut self, _: &str, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn present(&mut self, _: &Present<'_>) -> Result<()> {
        self.end_run()
    }
}
