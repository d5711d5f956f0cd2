//! The truth as JSON lines, `truth.jsonl`. docs/truth.md describes every key.

use std::io::Write;

use etl_control::enable::{IdFilter, Variant};
use etl_format::{FileTime, Guid, ProcessId};
use serde::Serialize;

use super::event_line;
use super::{
    BufferReport, CommandReport, Fact, FileRange, ImageIdentity, InterruptReport, Observer,
    RaisedEvent, Refusal, SessionReport,
};
use crate::error::Result;
use crate::model::{EnablePlan, KernelEvent, KernelFlags, as_text};
use crate::time::Nanos;

/// Version of the format that [`JsonlWriter`] writes. It is raised when a key changes its meaning
/// or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes a JSON object per line.
///
/// ```
/// use etl_synth::truth::JsonlWriter;
/// use etl_synth::{Script, Simulation};
///
/// let scenario = Script::new("empty", "process \"App.exe\"").parse()?;
/// let mut lines = JsonlWriter::new(Vec::new());
/// Simulation::new(&scenario).observer(&mut lines).run_in_memory()?;
/// let text = String::from_utf8(lines.into_inner())?;
/// assert!(text.lines().all(|line| line.starts_with('{')) && text.contains("App.exe"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JsonlWriter<W> {
    out: W,
    line: Vec<u8>,
    /// Unique names of the sessions, by index.
    sessions: Vec<String>,
}

/// A line. Items of the inventory are lines of their own.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Truth {
        schema_version: u32,
        scenario: &'a str,
        seed: u64,
    },
    Buffer {
        session: &'a str,
        #[serde(flatten)]
        buffer: &'a BufferReport,
    },
    Refused(&'a Refusal),
    Command(&'a CommandReport),
    Interrupt(&'a InterruptReport),
    Enable {
        session: &'a str,
        at_ns: Nanos,
        filetime: i64,
        #[serde(serialize_with = "as_text")]
        provider_guid: Guid,
        level: u8,
        match_any_keyword: String,
        match_all_keyword: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        ignore_keyword_0: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_rule: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ids: Option<&'a [u16]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        not_ids: Option<&'a [u16]>,
        #[serde(skip_serializing_if = "<[ProcessId]>::is_empty")]
        pids: &'a [ProcessId],
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        executables: &'a [String],
    },
    Disable {
        session: &'a str,
        at_ns: Nanos,
        filetime: i64,
        #[serde(serialize_with = "as_text")]
        provider_guid: Guid,
    },
    Kernel {
        session: &'a str,
        at_ns: Nanos,
        group_masks: Vec<String>,
        flags: Vec<&'a str>,
        flags_not_simulated: Vec<&'a str>,
        stack_events: Vec<&'a str>,
        stack_events_not_simulated: &'a [String],
    },
    Fault {
        session: &'a str,
        fault: &'a str,
        #[serde(flatten)]
        location: FileRange,
    },
    Session {
        session: &'a str,
        #[serde(flatten)]
        report: &'a SessionReport,
    },
    Merge {
        file: &'a str,
        inputs: &'a [String],
    },
    Identity {
        file: &'a str,
        #[serde(flatten)]
        image: &'a ImageIdentity,
    },
}

fn name(sessions: &[String], session: usize) -> &str {
    sessions.get(session).map_or("", String::as_str)
}

impl<W: Write> JsonlWriter<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        JsonlWriter {
            out,
            line: Vec::new(),
            sessions: Vec::new(),
        }
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes the line that `line` makes with the names of the sessions.
    fn write<'a, L: Serialize + 'a>(
        &'a mut self,
        line: impl FnOnce(&'a [String]) -> L,
    ) -> Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &line(&self.sessions))
            .map_err(std::io::Error::from)?;
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    fn write_event(&mut self, event: &RaisedEvent<'_>) -> Result<()> {
        self.line.clear();
        event_line::write(&mut self.line, event, &self.sessions).map_err(std::io::Error::from)?;
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    /// Gives a session a unique name: a name that was used before gets the index of the session.
    fn name_session(&mut self, session: usize, name: &str) {
        let count = self.sessions.len().max(session + 1);
        self.sessions.resize(count, String::new());
        let is_used = self.sessions.iter().any(|n| n == name);
        if let Some(slot) = self.sessions.get_mut(session) {
            *slot = if is_used {
                format!("{name}#{session}")
            } else {
                name.to_owned()
            };
        }
    }
}

impl<W: Write> Observer for JsonlWriter<W> {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        match *fact {
            Fact::Scenario(scenario) => self.write(|_| Line::Truth {
                schema_version: SCHEMA_VERSION,
                scenario: &scenario.name,
                seed: scenario.seed,
            }),
            Fact::Event(event) => self.write_event(event),
            Fact::SessionStarted { session, name, .. } => {
                self.name_session(session, name);
                Ok(())
            }
            Fact::Buffer { session, buffer } => self.write(|sessions| Line::Buffer {
                session: name(sessions, session),
                buffer,
            }),
            Fact::Refused(refusal) => self.write(|_| Line::Refused(refusal)),
            Fact::Command(report) => self.write(|_| Line::Command(report)),
            Fact::ProviderEnabled {
                session,
                plan,
                at,
                filetime,
            } => self.write(|sessions| enable_line(name(sessions, session), plan, at, filetime)),
            Fact::ProviderDisabled {
                session,
                provider,
                at,
                filetime,
            } => self.write(|sessions| Line::Disable {
                session: name(sessions, session),
                at_ns: at,
                filetime: filetime.get(),
                provider_guid: provider,
            }),
            Fact::KernelFlags { session, flags, at } => {
                self.write(|sessions| kernel_line(name(sessions, session), flags, at))
            }
            Fact::Fault {
                session,
                fault,
                file,
                bytes,
            } => self.write(|sessions| Line::Fault {
                session: name(sessions, session),
                fault: fault.name(),
                location: FileRange {
                    file: file.into(),
                    start: bytes.start,
                    end: bytes.end,
                },
            }),
            Fact::SessionEnded(report) => self.write(|sessions| Line::Session {
                session: name(sessions, report.index),
                report,
            }),
            Fact::Merged { output, inputs } => self.write(|_| Line::Merge {
                file: output,
                inputs,
            }),
            Fact::Identity { file, image } => self.write(|_| Line::Identity { file, image }),
            Fact::Inventory(item) => self.write(|_| item),
            Fact::Interrupt(report) => self.write(|_| Line::Interrupt(report)),
            Fact::Io(report) => self.write(|_| report),
            Fact::Action { .. } | Fact::Code { .. } => Ok(()),
        }
    }
}

fn enable_line<'a>(
    session: &'a str,
    plan: &'a EnablePlan,
    at: Nanos,
    filetime: FileTime,
) -> Line<'a> {
    let rule = &plan.rule;
    let (ids, not_ids) = match &rule.ids {
        IdFilter::Any => (None, None),
        IdFilter::In(ids) => (Some(ids.as_slice()), None),
        IdFilter::Out(ids) => (None, Some(ids.as_slice())),
    };
    Line::Enable {
        session,
        at_ns: at,
        filetime: filetime.get(),
        provider_guid: plan.provider,
        level: rule.level,
        match_any_keyword: hex(rule.any),
        match_all_keyword: hex(rule.all),
        ignore_keyword_0: rule.ignore_keyword_0.then_some(true),
        old_rule: (rule.variant == Variant::Legacy).then_some(true),
        ids,
        not_ids,
        pids: &plan.processes,
        executables: &plan.executables,
    }
}

fn kernel_line<'a>(session: &'a str, flags: &'a KernelFlags, at: Nanos) -> Line<'a> {
    Line::Kernel {
        session,
        at_ns: at,
        group_masks: flags
            .groups
            .0
            .iter()
            .map(|word| hex((*word).into()))
            .collect(),
        flags: flags.simulated().collect(),
        flags_not_simulated: flags.not_simulated().collect(),
        stack_events: flags.stacks().map(KernelEvent::name).collect(),
        stack_events_not_simulated: &flags.other_stacks,
    }
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}
