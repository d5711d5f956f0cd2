//! A simulation as a timeline for people.

use std::io::Write;

use etl_schema::render::escape_line;

use etl_format::ProcessId;

use super::{Fact, Observer, RaisedEvent, SessionOutcome, SessionReport};
use crate::error::Result;
use crate::model::Fault;
use crate::time::{Nanos, format_duration};

/// Writes a line for each fact. Consecutive events of one name and process share a line.
///
/// ```
/// use etl_synth::truth::Timeline;
/// use etl_synth::{Script, Simulation};
///
/// let script = r#"
///     at "1s" { session "kernel" file="kernel.etl" { kernel "processes" } }
///     at "2s" { stop "kernel" }
/// "#;
/// let scenario = Script::new("kernel", script).parse()?;
/// let mut timeline = Timeline::new(Vec::new());
/// Simulation::new(&scenario).observer(&mut timeline).run_in_memory()?;
/// let text = String::from_utf8(timeline.into_inner())?;
/// assert!(text.lines().any(|line| line.contains("kernel.etl")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Timeline<W> {
    out: W,
    names: Vec<String>,
    run: Option<Run>,
    /// Descriptions of the faults in the files of the session that ends.
    faults: Vec<String>,
    flipped: u64,
}

/// Consecutive events of one name, process and outcome.
#[derive(Debug)]
struct Run {
    pid: ProcessId,
    name: String,
    outcomes: Vec<SessionOutcome>,
    first: Nanos,
    last: Nanos,
    count: u64,
}

impl<W: Write> Timeline<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Timeline {
            out,
            names: Vec::new(),
            run: None,
            faults: Vec::new(),
            flipped: 0,
        }
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes a line. Names come from the script, so characters that control a terminal are escaped
    /// as `\u{..}`.
    fn line(&mut self, time: &str, text: &str) -> Result<()> {
        let mut line = format!("{time:>16}  ").into_bytes();
        escape_line(&mut line, text);
        line.push(b'\n');
        self.out.write_all(&line)?;
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else {
            return Ok(());
        };
        let mut to = String::new();
        for SessionOutcome { session, outcome } in &run.outcomes {
            let name = self.names.get(*session).map_or("", String::as_str);
            to.push_str(&format!("  {name}: {outcome}"));
        }
        let many = if run.count > 1 {
            format!(" x{} until {}", run.count, format_duration(run.last))
        } else {
            String::new()
        };
        let line = format!("{:>6}  {}{many}{to}", run.pid, run.name);
        self.line(&format_duration(run.first), &line)
    }
}

impl<W: Write> Timeline<W> {
    fn event(&mut self, e: &RaisedEvent<'_>) -> Result<()> {
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

    fn session_ended(&mut self, s: &SessionReport) -> Result<()> {
        let end = s
            .stopped
            .map_or("never stopped".to_owned(), format_duration);
        let mut line = format!(
            "session \"{}\": {} events recorded, {} lost, {} lost in {} buffers",
            s.name, s.events_recorded, s.events_lost, s.events_in_lost_buffers, s.buffers_lost,
        );
        if s.events_delivered > 0 {
            line.push_str(&format!(", {} delivered", s.events_delivered));
        }
        if s.all_files.len() > 1 {
            line.push_str(&format!(", into {}", s.all_files.join(", ")));
        }
        self.line(&end, &line)?;
        self.flipped = 0;
        std::mem::take(&mut self.faults)
            .iter()
            .try_for_each(|fault| self.line(&end, fault))
    }
}

impl<W: Write> Observer for Timeline<W> {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        if let Fact::Event(event) = *fact {
            return self.event(event);
        }
        match *fact {
            Fact::SessionStarted { session, name, .. } => {
                self.names
                    .resize(self.names.len().max(session + 1), String::new());
                if let Some(slot) = self.names.get_mut(session) {
                    name.clone_into(slot);
                }
                Ok(())
            }
            Fact::Fault {
                fault, file, bytes, ..
            } => {
                self.end_run()?;
                let start = bytes.start;
                let end = bytes.end;
                if let Fault::Flipped(_) = fault {
                    self.flipped += 1;
                    if self.flipped == 1 {
                        let text = format!("bits of {file} flip, the first in byte {start}");
                        self.faults.push(text);
                    }
                } else {
                    let name = fault.name();
                    self.faults
                        .push(format!("{file} is {name}: bytes {start} to {end}"));
                }
                Ok(())
            }
            Fact::KernelFlags { session, flags, at } => {
                let unsimulated = flags.not_simulated_text();
                if unsimulated.is_empty() {
                    return Ok(());
                }
                self.end_run()?;
                let name = self.names.get(session).map_or("", String::as_str);
                let text = format!(
                    "session \"{name}\": set in the group masks but not simulated: {unsimulated}"
                );
                self.line(&format_duration(at), &text)
            }
            Fact::SessionEnded(report) => {
                self.end_run()?;
                self.session_ended(report)
            }
            Fact::Refused(refusal) => {
                self.end_run()?;
                self.line(&format_duration(refusal.at), &refusal.to_string())
            }
            // What a command line does is reported by its actions; here is why it failed.
            Fact::Command(report) if report.exit_code != 0 => {
                self.end_run()?;
                self.line(&format_duration(report.at), &report.to_string())
            }
            Fact::Action { at, description } => {
                self.end_run()?;
                self.line(&format_duration(at), description)
            }
            Fact::Inventory(_) => self.end_run(),
            _ => Ok(()),
        }
    }
}
