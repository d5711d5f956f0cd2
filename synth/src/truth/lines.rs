//! The truth as JSON lines: `truth.jsonl`.

use std::io::Write;
use std::ops::Range;

use etl_control::enable::IdFilter;
use etl_format::Guid;
use etl_format::constants::ClockType;

use super::json::{put, string, value};
use super::{Present, Witness};
use crate::error::Result;
use crate::etw::{BufferReport, Form, ImageIdentity, Raised, Refusal, SessionReport};
use crate::machine::Nanos;
use crate::model::{EnablePlan, Fault, KernelEvent, KernelFlags, Scenario};

/// Writes a line for each thing.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    line: Vec<u8>,
    names: Vec<String>,
}

impl<W: Write> Lines<W> {
    /// Writes to `out`, which should have a buffer of its own.
    pub fn new(out: W) -> Self {
        Lines { out, line: Vec::new(), names: Vec::new() }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Begins the line of something that a session has.
    fn of_session(&mut self, kind: &str, session: usize) {
        put(&mut self.line, format_args!("{{\"kind\":\"{kind}\",\"session\":"));
        string(&mut self.line, self.names.get(session).map_or("", String::as_str));
    }

    fn end(&mut self) -> Result<()> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

impl<W: Write> Witness for Lines<W> {
    fn begins(&mut self, scenario: &Scenario) -> Result<()> {
        let out = &mut self.line;
        put(out, format_args!("{{\"kind\":\"truth\",\"version\":{}", super::VERSION));
        out.extend(b",\"scenario\":");
        string(out, &scenario.name);
        put(out, format_args!(",\"seed\":{}}}", scenario.seed));
        self.end()
    }

    fn event(&mut self, e: &Raised<'_>) -> Result<()> {
        let out = &mut self.line;
        let form = match e.form {
            Form::Event => "event",
            Form::Full => "full",
            Form::System(_) => "system",
            Form::PerfInfo(_) => "perfinfo",
            Form::Message(_) => "message",
        };
        put(out, format_args!("{{\"kind\":\"event\",\"n\":{},\"at\":{}", e.number, e.at));
        put(out, format_args!(",\"stamp\":{},\"cpu\":{}", e.timestamp, e.processor));
        put(out, format_args!(",\"pid\":{},\"tid\":{}", e.pid, e.tid));
        put(out, format_args!(",\"form\":\"{form}\",\"provider\":\"{}\"", e.provider));
        if let Form::System(hook) | Form::PerfInfo(hook) = e.form {
            put(out, format_args!(",\"hook\":\"0x{hook:04x}\""));
        }
        let d = &e.descriptor;
        put(out, format_args!(",\"id\":{},\"version\":{},\"level\":{}", d.id, d.version, d.level));
        put(out, format_args!(",\"opcode\":{},\"task\":{}", d.opcode, d.task));
        put(out, format_args!(",\"keyword\":\"{:#x}\",\"name\":", d.keyword));
        string(out, &e.schema.name);
        if !e.activity.is_zero() {
            put(out, format_args!(",\"activity\":\"{}\"", e.activity));
        }
        if let Some(related) = e.related {
            put(out, format_args!(",\"related\":\"{related}\""));
        }
        out.extend(b",\"fields\":{");
        for (n, (field, v)) in e.schema.fields.iter().zip(e.values).enumerate() {
            if n > 0 {
                out.push(b',');
            }
            string(out, &field.name);
            out.push(b':');
            value(out, v);
        }
        out.push(b'}');
        if !e.stack.is_empty() {
            put(out, format_args!(",\"stack\":{:?},\"stackIn\":[", e.stack));
            for (n, session) in e.stacked.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                string(out, self.names.get(*session).map_or("", String::as_str));
            }
            out.push(b']');
        }
        out.extend(b",\"sessions\":{");
        for (n, (session, outcome)) in e.outcomes.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            string(out, self.names.get(*session).map_or("", String::as_str));
            put(out, format_args!(":\"{outcome}\""));
        }
        out.extend(b"}}");
        self.end()
    }

    fn session_started(&mut self, index: usize, name: &str, _: Option<&str>) -> Result<()> {
        self.names.resize(self.names.len().max(index + 1), String::new());
        // A name that was used before gets its number.
        let again = self.names.iter().any(|n| n == name);
        if let Some(slot) = self.names.get_mut(index) {
            *slot = if again { format!("{name}#{index}") } else { name.to_owned() };
        }
        Ok(())
    }

    fn buffer(&mut self, session: usize, b: &BufferReport) -> Result<()> {
        self.of_session("buffer", session);
        let out = &mut self.line;
        put(out, format_args!(",\"sequence\":{},\"cpu\":{}", b.sequence, b.processor));
        put(
            out,
            format_args!(",\"first\":{},\"last\":{},\"events\":{}", b.first, b.last, b.events),
        );
        put(out, format_args!(",\"fate\":\"{}\"", b.fate));
        if let Some(file) = &b.file {
            out.extend(b",\"file\":");
            string(out, file);
            put(out, format_args!(",\"from\":{},\"to\":{}", b.place.start, b.place.end));
        }
        out.push(b'}');
        self.end()
    }

    fn refused(&mut self, r: &Refusal) -> Result<()> {
        let out = &mut self.line;
        put(out, format_args!("{{\"kind\":\"refused\",\"at\":{},\"session\":", r.at));
        string(out, &r.session);
        put(out, format_args!(",\"what\":\"{}\",\"code\":{}", r.what, r.code.number()));
        put(out, format_args!(",\"name\":\"{}\",\"why\":", r.code.name()));
        string(out, &r.why);
        out.push(b'}');
        self.end()
    }

    fn enabled(&mut self, session: usize, plan: &EnablePlan, at: Nanos, time: i64) -> Result<()> {
        let out = &mut self.line;
        out.extend(b"{\"kind\":\"enable\",\"session\":");
        string(out, self.names.get(session).map_or("", String::as_str));
        let rule = &plan.rule;
        put(out, format_args!(",\"at\":{at},\"time\":{time},\"provider\":\"{}\"", plan.provider));
        put(out, format_args!(",\"level\":{},\"any\":\"{:#x}\"", rule.level, rule.any));
        put(out, format_args!(",\"all\":\"{:#x}\"", rule.all));
        if rule.ignore_keyword_0 {
            out.extend(b",\"ignoreKeyword0\":true");
        }
        match &rule.ids {
            IdFilter::Any => {}
            IdFilter::In(ids) => put(out, format_args!(",\"ids\":{ids:?}")),
            IdFilter::Out(ids) => put(out, format_args!(",\"notIds\":{ids:?}")),
        }
        if !plan.processes.is_empty() {
            put(out, format_args!(",\"processes\":{:?}", plan.processes));
        }
        if !plan.executables.is_empty() {
            out.extend(b",\"executables\":true");
        }
        out.push(b'}');
        self.end()
    }

    fn kernel(&mut self, session: usize, flags: &KernelFlags, at: Nanos) -> Result<()> {
        self.of_session("kernel", session);
        let out = &mut self.line;
        put(out, format_args!(",\"at\":{at}"));
        let masks: Vec<String> = flags.groups.0.iter().map(|word| format!("{word:#x}")).collect();
        texts(out, "masks", masks.iter().map(String::as_str));
        let named = |has: bool| flags.names().filter(move |n| n.1 == has).map(|n| n.0);
        texts(out, "logged", named(true));
        texts(out, "notSimulated", named(false));
        texts(out, "stacks", flags.stacks().map(KernelEvent::name));
        texts(out, "stacksNotSimulated", flags.other_stacks.iter().map(String::as_str));
        out.push(b'}');
        self.end()
    }

    fn fault(
        &mut self,
        session: usize,
        fault: &Fault,
        file: &str,
        bytes: &Range<u64>,
    ) -> Result<()> {
        self.of_session("fault", session);
        let out = &mut self.line;
        put(out, format_args!(",\"fault\":\"{}\",\"file\":", fault.name()));
        string(out, file);
        put(out, format_args!(",\"from\":{},\"to\":{}}}", bytes.start, bytes.end));
        self.end()
    }

    fn session(&mut self, s: &SessionReport) -> Result<()> {
        let out = &mut self.line;
        out.extend(b"{\"kind\":\"session\",\"name\":");
        string(out, self.names.get(s.index).map_or("", String::as_str));
        if let Some(file) = &s.file {
            out.extend(b",\"file\":");
            string(out, file);
        }
        if let Some(pid) = s.process {
            put(out, format_args!(",\"pid\":{pid}"));
        }
        if s.all_files.len() > 1 {
            out.extend(b",\"allFiles\":[");
            for (n, file) in s.all_files.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                string(out, file);
            }
            out.push(b']');
        }
        put(out, format_args!(",\"started\":{}", s.started));
        if let Some(stopped) = s.stopped {
            put(out, format_args!(",\"stopped\":{stopped}"));
        }
        put(out, format_args!(",\"clock\":\"{}\",\"skew\":{}", clock(s.clock), s.skew));
        put(out, format_args!(",\"recorded\":{},\"lost\":{}", s.recorded, s.lost));
        put(out, format_args!(",\"lostWithBuffers\":{}", s.lost_with_buffers));
        if s.delivered > 0 {
            put(out, format_args!(",\"delivered\":{}", s.delivered));
        }
        put(out, format_args!(",\"buffersLost\":{},\"written\":{}", s.buffers_lost, s.written));
        put(out, format_args!(",\"buffers\":{},\"files\":{}}}", s.buffers_written, s.files));
        self.end()
    }

    fn merged(&mut self, output: &str, inputs: &[String]) -> Result<()> {
        let out = &mut self.line;
        out.extend(b"{\"kind\":\"merge\",\"file\":");
        string(out, output);
        out.extend(b",\"of\":[");
        for (n, input) in inputs.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            string(out, input);
        }
        out.extend(b"]}");
        self.end()
    }

    fn identified(&mut self, file: &str, image: &ImageIdentity) -> Result<()> {
        let out = &mut self.line;
        out.extend(b"{\"kind\":\"identity\",\"file\":");
        string(out, file);
        let ImageIdentity { pid, base, size, link_time, path, pdb, version } = image;
        put(out, format_args!(",\"pid\":{pid},\"base\":{base},\"size\":{size}"));
        put(out, format_args!(",\"timeStamp\":{link_time},\"path\":"));
        string(out, path);
        put_pdb(out, *pdb);
        if let Some(v) = version {
            for (name, text) in [
                ("version", &v.version),
                ("description", &v.description),
                ("company", &v.company),
                ("product", &v.product),
            ] {
                put(out, format_args!(",\"{name}\":"));
                string(out, text);
            }
            put(out, format_args!(",\"language\":{}", v.language));
        }
        out.push(b'}');
        self.end()
    }

    fn present(&mut self, thing: &Present<'_>) -> Result<()> {
        present(thing, &mut self.line);
        self.end()
    }
}

/// The PDB of an image, if it has one.
fn put_pdb(out: &mut Vec<u8>, pdb: Option<(Guid, u32)>) {
    if let Some((signature, age)) = pdb {
        put(out, format_args!(",\"pdb\":\"{signature}\",\"age\":{age}"));
    }
}

/// A list of texts.
fn texts<'t>(out: &mut Vec<u8>, name: &str, texts: impl Iterator<Item = &'t str>) {
    put(out, format_args!(",\"{name}\":["));
    for (n, text) in texts.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        string(out, text);
    }
    out.push(b']');
}

/// A word for a session's clock.
const fn clock(clock: ClockType) -> &'static str {
    match clock {
        ClockType::SYSTEM_TIME => "system",
        ClockType::CPU_CYCLE => "cycle",
        _ => "qpc",
    }
}

/// A thing that is there at the end.
pub(super) fn present(thing: &Present<'_>, out: &mut Vec<u8>) {
    match *thing {
        Present::Process { pid, name, exited } => {
            put(out, format_args!("{{\"kind\":\"process\",\"pid\":{pid},\"name\":"));
            string(out, name);
            if let Some(exited) = exited {
                put(out, format_args!(",\"exited\":{exited}"));
            }
        }
        Present::Thread { pid, tid } => {
            put(out, format_args!("{{\"kind\":\"thread\",\"pid\":{pid},\"tid\":{tid}"));
        }
        Present::Image { pid, path, base, size, pdb } => {
            put(out, format_args!("{{\"kind\":\"image\",\"pid\":{pid},\"base\":{base}"));
            put(out, format_args!(",\"size\":{size},\"path\":"));
            string(out, path);
            put_pdb(out, pdb);
        }
        Present::AppDomain { pid, clr, id, name } => {
            put(out, format_args!("{{\"kind\":\"appDomain\",\"pid\":{pid},\"clr\":{clr}"));
            put(out, format_args!(",\"id\":{id},\"name\":"));
            string(out, name);
        }
        Present::Assembly { pid, clr, id, domain, name } => {
            put(out, format_args!("{{\"kind\":\"assembly\",\"pid\":{pid},\"clr\":{clr}"));
            put(out, format_args!(",\"id\":{id},\"domain\":{domain},\"name\":"));
            string(out, name);
        }
        Present::Module { pid, clr, id, assembly, path, pdb } => {
            put(out, format_args!("{{\"kind\":\"module\",\"pid\":{pid},\"clr\":{clr},\"id\":{id}"));
            put(out, format_args!(",\"assembly\":{assembly},\"pdb\":\"{pdb}\",\"path\":"));
            string(out, path);
        }
        Present::Code { pid, clr, method, module, start, size, namespace, name } => {
            put(out, format_args!("{{\"kind\":\"code\",\"pid\":{pid},\"clr\":{clr}"));
            put(out, format_args!(",\"method\":{method},\"module\":{module}"));
            put(out, format_args!(",\"start\":{start},\"size\":{size},\"namespace\":"));
            string(out, namespace);
            out.extend(b",\"name\":");
            string(out, name);
        }
    }
    out.push(b'}');
}
