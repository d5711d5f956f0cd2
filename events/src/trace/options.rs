//! How traces are opened.

use std::io::Read;
use std::path::Path;

use etl_format::read::{Limits, Mode};
use etl_schema::EventSchema;
use etl_schema::store::SchemaStore;

use super::files::{Files, Naming, Settings, TraceFile};
use super::opened::Trace;
use crate::Result;
use crate::error::Error;
use crate::input::{Input, InputOptions, Unpacker};

/// Opens a trace: a file or a named pipe, packed (ZIP, gzip, Zstandard) or not.
///
/// Damaged regions are skipped; [`OpenOptions`] has other choices.
///
/// # Errors
/// When it does not exist, cannot be unpacked, or is not a trace.
///
/// ```no_run
/// let mut trace = etl_events::open("trace.etl.zip")?;
/// let mut events = trace.events().provider("Microsoft-Windows-DotNETRuntime").event("GCStart*");
/// while let Some(event) = events.next()? {
///     println!("{} {:?} {:?}", event.time(), event.process(), event.get("Count"));
/// }
/// # Ok::<(), etl_events::Error>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Trace> {
    OpenOptions::new().open(path)
}

/// Opens several files as one recording, in time order.
///
/// # Errors
/// As [`open`].
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("etl-events-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let [one, two] = ["kernel.etl", "user.etl"].map(|name| directory.join(name));
/// # std::fs::write(&one, etl_events::testing::trace())?;
/// # std::fs::write(&two, etl_events::testing::trace())?;
/// let mut trace = etl_events::open_all([&one, &two])?;
/// let mut events = trace.events().event("GC*");
/// let mut files = Vec::new();
/// while let Some(event) = events.next()? {
///     files.push(event.file().is_some_and(|file| file.ends_with("kernel.etl")));
/// }
/// assert_eq!(files, [true, false, true, false]);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_all<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Trace> {
    OpenOptions::new().open_all(paths)
}

/// Opens the bytes of a trace, packed or not.
///
/// # Errors
/// When they cannot be unpacked, or are not a trace.
///
/// ```
/// let error = etl_events::from_bytes(b"MZ\x90\0".to_vec()).unwrap_err();
/// assert!(error.to_string().contains("not an .etl trace"), "{error}");
/// ```
pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Trace> {
    OpenOptions::new().from_bytes(bytes)
}

/// Reads a pipe to its end, and opens it as a trace, packed or not. Long input is kept in a
/// temporary file (feature `unpack`).
///
/// # Errors
/// As [`open`].
///
/// ```
/// let pipe = std::io::Cursor::new(etl_events::testing::trace());
/// let mut trace = etl_events::from_reader(pipe)?;
/// assert!(trace.events().next()?.is_some());
/// # Ok::<(), etl_events::Error>(())
/// ```
pub fn from_reader(reader: impl Read + 'static) -> Result<Trace> {
    OpenOptions::new().from_reader(reader)
}

/// An input of a recording of several, with its name.
#[derive(Debug)]
#[non_exhaustive]
pub struct NamedInput {
    /// The name, which events and errors have: as a file has its path.
    pub name: String,
    /// The input.
    pub input: Input,
}

impl NamedInput {
    /// An input with this name.
    #[must_use]
    pub fn new(name: impl Into<String>, input: Input) -> Self {
        NamedInput {
            name: name.into(),
            input,
        }
    }
}

/// How a trace is opened. The default skips damaged regions, uses one thread and all tables of
/// schemas, and reads the names of processes and threads.
///
/// ```
/// use etl_events::OpenOptions;
///
/// # let bytes = etl_events::testing::trace();
/// let mut trace = OpenOptions::new().strict().without_names().from_bytes(bytes)?;
/// let mut events = trace.events().event("GCStart*");
/// assert_eq!(events.next()?.and_then(|event| event.process()), None);
/// # Ok::<(), etl_events::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    input: InputOptions,
    settings: Settings,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// The default choices.
    #[must_use]
    pub fn new() -> Self {
        OpenOptions {
            input: InputOptions::default(),
            settings: Settings {
                mode: Mode::Salvage,
                limits: Limits::default(),
                threads: 1,
                store: SchemaStore::new(),
                names: Naming::Names,
            },
        }
    }

    /// Returns an error at the first damaged region, instead of skipping it.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.settings.mode = Mode::Strict;
        self
    }

    /// Bounds on memory.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Threads that decompress buffers and read ahead. The events do not depend on their number.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = threads;
        self
    }

    /// Returns events without names of processes, threads and the drives in paths. By default the
    /// trace is read for them first.
    #[must_use]
    pub fn without_names(mut self) -> Self {
        self.settings.names = Naming::None;
        self
    }

    /// Adds schemas of events, such as the schemas of a manifest or a TMF file.
    ///
    /// ```
    /// use etl_events::OpenOptions;
    /// use etl_events::testing::{UNKNOWN_PROVIDER, trace};
    /// use etl_schema::sources::manifest;
    ///
    /// let text = format!(r#"<instrumentationManifest
    ///     xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events>
    ///     <provider name="Door" guid="{{{UNKNOWN_PROVIDER}}}" symbol="DOOR"><events>
    ///     <event value="5" symbol="Denied" template="T"/></events><templates><template tid="T">
    ///     <data name="Text" inType="win:UnicodeString"/></template></templates>
    ///     </provider></events></instrumentation></instrumentationManifest>"#);
    /// let schemas = manifest::parse(&text)?;
    /// let mut trace = OpenOptions::new().schemas(schemas).from_bytes(trace())?;
    /// let mut events = trace.events().provider("Door");
    /// let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.name(), "Denied");
    /// let text = event.get("Text").ok_or("no text")?;
    /// assert_eq!(text.to_string(), "access denied");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn schemas(mut self, schemas: impl IntoIterator<Item = EventSchema>) -> Self {
        self.settings.store.add_schemas(schemas);
        self
    }

    /// Describes events with this store. Default: all tables.
    #[must_use]
    pub fn store(mut self, store: SchemaStore) -> Self {
        self.settings.store = store;
        self
    }

    /// How packed files are unpacked.
    #[must_use]
    pub fn unpacker(mut self, unpacker: Unpacker) -> Self {
        self.input.unpacker = unpacker;
        self
    }

    /// The size in bytes of the largest file that is mapped into memory; larger files are read in
    /// blocks.
    #[must_use]
    pub fn max_mapped(mut self, bytes: u64) -> Self {
        self.input.max_mapped = bytes;
        self
    }

    /// Opens a trace, as [`open`].
    ///
    /// # Errors
    /// As [`open`]. The error names the file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Trace> {
        self.open_all([path])
    }

    /// Opens several files as one recording, as [`open_all`].
    ///
    /// # Errors
    /// As [`open`]. The error names the file.
    pub fn open_all<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Result<Trace> {
        let mut files = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let file = self
                .open_file(path)
                .map_err(|error| Error::in_file(path, error))?;
            files.push(file);
        }
        Ok(Trace::new(Files::new(files, self.settings.clone())))
    }

    /// Opens the bytes of a trace, as [`from_bytes`].
    ///
    /// # Errors
    /// As [`from_bytes`].
    pub fn from_bytes(&self, bytes: impl Into<Vec<u8>>) -> Result<Trace> {
        self.open_input(Input::from_bytes(bytes.into(), &self.input)?)
    }

    /// Reads a pipe to its end, as [`from_reader`].
    ///
    /// # Errors
    /// As [`open`].
    pub fn from_reader(&self, reader: impl Read + 'static) -> Result<Trace> {
        self.open_input(Input::from_reader(reader, &self.input)?)
    }

    /// Opens several inputs as one recording.
    ///
    /// # Errors
    /// When one is not a trace. The error names it.
    ///
    /// ```
    /// use etl_events::input::{Input, InputOptions};
    /// use etl_events::{NamedInput, OpenOptions};
    ///
    /// # let (kernel, user) = (etl_events::testing::trace(), etl_events::testing::trace());
    /// let options = InputOptions::default();
    /// let inputs = [
    ///     NamedInput::new("kernel.etl", Input::from_bytes(kernel, &options)?),
    ///     NamedInput::new("user.etl", Input::from_bytes(user, &options)?),
    /// ];
    /// let mut trace = OpenOptions::new().open_inputs(inputs)?;
    /// let first = trace.events().next()?.and_then(|event| event.file().map(str::to_owned));
    /// assert_eq!(first.as_deref(), Some("kernel.etl"));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    pub fn open_inputs(&self, inputs: impl IntoIterator<Item = NamedInput>) -> Result<Trace> {
        let mut files = Vec::new();
        for NamedInput { name, input } in inputs {
            let file = TraceFile::new(name.clone(), input, &self.settings)
                .map_err(|error| Error::in_file(Path::new(&name), error))?;
            files.push(file);
        }
        Ok(Trace::new(Files::new(files, self.settings.clone())))
    }

    fn open_input(&self, input: Input) -> Result<Trace> {
        let file = TraceFile::new(String::new(), input, &self.settings)?;
        Ok(Trace::new(Files::new(vec![file], self.settings.clone())))
    }

    fn open_file(&self, path: &Path) -> Result<TraceFile> {
        let input = Input::open(path, &self.input)?;
        TraceFile::new(path.to_string_lossy().into_owned(), input, &self.settings)
    }
}
