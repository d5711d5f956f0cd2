//! The requests, by their method.

use etl_events::input::{Bytes, Input, InputOptions, OptionNames};
use etl_events::{NamedInput, OpenOptions, Trace};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::events::{Counted, RowsRequest};
use crate::exports::ExportRequest;
use crate::host::HostFile;
use crate::query::Query;
use crate::synth::SynthRequest;
use crate::tables::TableRequest;
use crate::{events, exports, hex, info, profile, synth, tables, timeline, verdict};

/// What hints of errors suggest.
const OPTIONS: OptionNames = OptionNames {
    member: "the option `member`",
    max_unpacked: "unpack the file first",
    max_memory: "the command line with --max-memory",
};

/// A file of the host.
#[derive(Debug, Deserialize)]
struct FileRequest {
    /// Its number, by which it is read.
    id: u32,
    name: String,
    size: f64,
    /// Which file of a ZIP archive is read, if there are several.
    member: Option<String>,
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
enum Request {
    Open { files: Vec<FileRequest> },
    Close,
    Info,
    Verify { format: Option<String> },
    Rules { origin: String },
    Count { query: Query, bins: Option<usize> },
    Rows(RowsRequest),
    Hex(RowsRequest),
    Tables,
    Table(TableRequest),
    Profile(profile::ProfileRequest),
    Timeline(timeline::TimelineRequest),
    Formats,
    Export(ExportRequest),
    Examples,
    Synth(SynthRequest),
}

/// The opened traces, and what is kept of them.
pub struct State {
    trace: Option<Trace>,
    /// The events that were counted last.
    counted: Option<Counted>,
}

impl State {
    /// Nothing is opened.
    pub const fn new() -> Self {
        State {
            trace: None,
            counted: None,
        }
    }

    /// Answers a request.
    pub fn answer(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        let request: Request = serde_json::from_slice(request)?;
        let value = match request {
            Request::Open { files } => self.open(files)?,
            Request::Close => {
                self.trace = None;
                self.counted = None;
                Value::Null
            }
            Request::Info => info::info(self.trace()?)?,
            Request::Verify { format } => return verdict::verify(self.trace()?, format.as_deref()),
            Request::Rules { origin } => verdict::rules(&origin),
            Request::Count { query, bins } => self.count(query, bins.unwrap_or(0))?,
            Request::Rows(request) => return self.rows(&request),
            Request::Hex(request) => self.hex(&request)?,
            Request::Tables => tables::list(),
            Request::Table(request) => return tables::rows(self.trace()?, &request),
            Request::Profile(request) => return profile::tree(self.trace()?, &request),
            Request::Timeline(request) => timeline::lanes(self.trace()?, &request)?,
            Request::Formats => exports::formats(),
            Request::Export(request) => exports::export(self.trace()?, &request)?,
            Request::Examples => synth::examples(),
            Request::Synth(request) => synth::simulate(&request)?,
        };
        Ok(value.to_string().into_bytes())
    }

    fn trace(&mut self) -> Result<&mut Trace> {
        let trace = self.trace.as_mut();
        trace.ok_or_else(|| Error::new("no trace is open"))
    }

    fn open(&mut self, files: Vec<FileRequest>) -> Result<Value> {
        self.trace = None;
        self.counted = None;
        let mut inputs = Vec::new();
        for file in files {
            let reader = HostFile::new(file.id, file.size as u64);
            let bytes = Bytes::Seekable(Box::new(reader));
            let mut options = InputOptions::default();
            options.unpacker.member = file.member;
            let input = Input::new(bytes, &file.name, &options);
            let input = input.map_err(|error| {
                let message = format!("{}: {error}", file.name);
                match error.hint(OPTIONS) {
                    Some(hint) => Error::new(message).hint(hint),
                    None => Error::new(message),
                }
            })?;
            inputs.push(NamedInput::new(file.name, input));
        }
        let trace = OpenOptions::new().open_inputs(inputs)?;
        let start = trace.start_time();
        let names: Vec<&str> = trace.file_names().collect();
        let reply = json!({ "files": names, "start": start.to_string() });
        self.trace = Some(trace);
        Ok(reply)
    }

    fn count(&mut self, query: Query, bins: usize) -> Result<Value> {
        let counted = events::count(self.trace()?, query, bins)?;
        let reply = counted.json();
        self.counted = Some(counted);
        Ok(reply)
    }

    /// The events that a request is about: counted before, or now.
    fn ensure_counted(&mut self, query: &Query) -> Result<()> {
        let is_counted = self
            .counted
            .as_ref()
            .is_some_and(|counted| counted.query == *query);
        if !is_counted {
            self.count(query.clone(), 0)?;
        }
        Ok(())
    }

    fn rows(&mut self, request: &RowsRequest) -> Result<Vec<u8>> {
        self.ensure_counted(&request.query)?;
        match (&mut self.trace, &self.counted) {
            (Some(trace), Some(counted)) => events::rows(trace, counted, request),
            _ => Err(Error::new("no trace is open")),
        }
    }

    fn hex(&mut self, request: &RowsRequest) -> Result<Value> {
        self.ensure_counted(&request.query)?;
        match (&mut self.trace, &self.counted) {
            (Some(trace), Some(counted)) => hex::event(trace, counted, request.first),
            _ => Err(Error::new("no trace is open")),
        }
    }
}
