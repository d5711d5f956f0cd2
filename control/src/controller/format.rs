//! Printing of command lines in their canonical spelling.

use std::fmt::{self, Write};

use super::args::word;
use super::model::{
    Action, CollectedProcess, Collection, CommandLine, KERNEL_SESSION, Keywords, OtherOption,
    ProviderRef, ProviderSpec, Session, Tool,
};
use super::tokens::{is_plain, quote};
use super::{logman, tracelog, xperf};
use crate::enable::{EnableProperties, IdFilter};
use etl_format::Guid;
use etl_format::constants::{ClockType, LogFileMode};

impl fmt::Display for CommandLine {
    /// One spelling of the line: switches in a fixed order, masks in hexadecimal, names in
    /// quotation marks if necessary. Settings for which the tool has no switch are left out; all
    /// providers of a `tracelog` line are enabled like the first one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Line { out: String::new() };
        line.out.push_str(self.tool.name());
        for action in &self.actions {
            match self.tool {
                Tool::Xperf => line.xperf(action),
                Tool::Logman => line.logman(action),
                Tool::Tracelog => line.tracelog(action),
                Tool::Tracerpt | Tool::Tracefmt => line.decoder(action),
                Tool::DotnetTrace => {
                    if let Action::Collect(collection) = action {
                        line.dotnet_trace(collection);
                    }
                }
                Tool::Settings => {
                    if let Action::Collect(collection) = action {
                        line.settings(collection);
                    }
                }
                Tool::Plain => match action {
                    Action::Enable { providers, .. } => {
                        line.out.push_str(&quote(&plain_providers(providers)));
                    }
                    Action::Stop { session, .. } => {
                        line.out.push_str("stop");
                        line.word(session);
                    }
                    _ => {}
                },
            }
        }
        if let Some(remark) = &self.remark {
            write!(line.out, " ({remark})")?;
        }
        f.write_str(&line.out)
    }
}

struct Line {
    out: String,
}

impl Line {
    fn switch(&mut self, name: &str) {
        self.out.push_str(" -");
        self.out.push_str(name);
    }

    fn word(&mut self, word: &str) {
        self.out.push(' ');
        self.out.push_str(&quote(word));
    }

    fn option(&mut self, name: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.switch(name);
            self.word(&value.to_string());
        }
    }

    /// A mask or another number, in hexadecimal.
    fn hex(&mut self, name: &str, value: Option<impl fmt::UpperHex>) {
        self.option(name, value.map(hex));
    }

    /// Names with a separator between them, unless there are none.
    fn list(&mut self, name: &str, separator: &str, names: &[String]) {
        self.option(
            name,
            Some(names.join(separator)).filter(|_| !names.is_empty()),
        );
    }

    /// A switch with a session; the kernel's need not be named.
    fn on_session(&mut self, switch: &str, name: &str) {
        self.switch(switch);
        if name != KERNEL_SESSION {
            self.word(name);
        }
    }

    fn others(&mut self, others: &[OtherOption]) {
        for other in others {
            self.switch(&other.name);
            for value in &other.values {
                self.word(value);
            }
        }
    }

    fn xperf(&mut self, action: &Action) {
        match action {
            Action::Start(session) | Action::Create(session) => {
                // The kernel's session is begun by its flags, unless others were begun before it.
                let plain = session.name == KERNEL_SESSION
                    && !session.kernel.is_empty()
                    && !self.out.contains(' ');
                if !plain {
                    self.switch("start");
                    self.word(&session.name);
                }
                self.xperf_session(session);
            }
            Action::Update(session) => {
                self.switch("update");
                self.word(&session.name);
                self.xperf_session(session);
            }
            Action::CaptureState { session, providers } => {
                self.switch("capturestate");
                self.word(session);
                self.word(&xperf_providers(providers));
            }
            Action::Flush { session, file, .. } => {
                self.on_session("flush", session);
                self.option("f", file.as_ref());
            }
            Action::Stop { session, .. } => self.on_session("stop", session),
            Action::Query { .. } => self.switch("loggers"),
            Action::Merge { inputs, output, .. } if inputs.is_empty() => {
                self.option("d", Some(output));
            }
            Action::Merge {
                inputs,
                output,
                options,
            } => {
                self.switch("merge");
                for word in inputs {
                    self.word(word);
                }
                self.word(output);
                for option in options {
                    self.switch(option);
                }
            }
            Action::Enable { .. }
            | Action::Disable { .. }
            | Action::Delete { .. }
            | Action::SystemRundown { .. }
            | Action::ListProviders
            | Action::Collect(_)
            | Action::Decode { .. } => {}
        }
    }

    fn decoder(&mut self, action: &Action) {
        let Action::Decode {
            files,
            sessions,
            output,
            options,
        } = action
        else {
            return;
        };
        files.iter().for_each(|file| self.word(file));
        sessions
            .iter()
            .for_each(|session| self.option("rt", Some(session)));
        self.option("o", output.as_ref());
        self.others(options);
    }

    /// An option of `dotnet-trace`, which begins with two dashes.
    fn long_option(&mut self, name: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.out.push_str(" --");
            self.out.push_str(name);
            self.word(&value.to_string());
        }
    }

    /// A list of an option of `dotnet-trace`, unless it is empty.
    fn long_list(&mut self, name: &str, separator: &str, values: &[String]) {
        if !values.is_empty() {
            self.long_option(name, Some(values.join(separator)));
        }
    }

    fn dotnet_trace(&mut self, collection: &Collection) {
        self.out.push_str(if collection.has_kernel {
            " collect-linux"
        } else {
            " collect"
        });
        match &collection.process {
            CollectedProcess::Id(id) => self.long_option("process-id", Some(id)),
            CollectedProcess::Name(name) => self.long_option("name", Some(name)),
            CollectedProcess::Port(port) => self.long_option("diagnostic-port", Some(port)),
            CollectedProcess::Unstated | CollectedProcess::Command(_) => {}
        }
        self.long_list("profile", ",", &collection.profiles);
        if !collection.named.is_empty() {
            self.long_option("providers", Some(event_pipe_providers(&collection.named)));
        }
        self.long_list("clrevents", "+", &collection.clr_events);
        self.long_option("clreventlevel", collection.clr_level);
        self.long_option("rundown", collection.rundown);
        self.long_option("buffersize", collection.buffer_mb);
        self.long_option("duration", collection.duration.as_ref());
        self.long_option("format", collection.format);
        self.long_option("output", collection.file.as_ref());
        for other in &collection.others {
            self.out.push_str(" --");
            self.out.push_str(&other.name);
            for value in &other.values {
                self.word(value);
            }
        }
        if let CollectedProcess::Command(command) = &collection.process {
            self.out.push_str(" --");
            for word in command {
                self.word(word);
            }
        }
    }

    /// A setting of a .NET process.
    fn setting(&mut self, name: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            if !self.out.is_empty() {
                self.out.push(' ');
            }
            self.out.push_str(&quote(&format!("DOTNET_{name}={value}")));
        }
    }

    fn settings(&mut self, collection: &Collection) {
        let is_on = !collection.providers.is_empty();
        self.setting("EnableEventPipe", Some(u8::from(is_on)));
        if !collection.named.is_empty() {
            let list = event_pipe_providers(&collection.named);
            self.setting("EventPipeConfig", Some(list));
        }
        self.setting("EventPipeOutputPath", collection.file.as_ref());
        let megabytes = collection.buffer_mb.map(|mb| format!("{mb:X}"));
        self.setting("EventPipeCircularMB", megabytes);
        if let Some(rundown) = collection.rundown
            && is_on
        {
            self.setting("EventPipeRundown", Some(u8::from(rundown)));
        }
        for other in &collection.others {
            self.setting(&other.name, other.values.first());
        }
        if let CollectedProcess::Command(command) = &collection.process {
            command.iter().for_each(|word| self.word(word));
        }
    }

    fn xperf_session(&mut self, s: &Session) {
        if s.is_kernel() {
            self.list("on", "+", &s.kernel);
        } else if !s.providers.is_empty() {
            self.option("on", Some(xperf_providers(&s.providers)));
        }
        self.list("stackwalk", "+", &s.stack_walk);
        self.option("f", s.file.as_ref());
        self.option("BufferSize", s.buffer_kb);
        self.option("MinBuffers", s.min_buffers);
        self.option("MaxBuffers", s.max_buffers);
        self.option(
            "FileMode",
            s.file_mode.and_then(|mode| word(xperf::FILE_MODES, mode)),
        );
        if s.file_mode == Some(LogFileMode::BUFFERING) {
            self.switch("Buffering");
        }
        self.option("MaxFile", s.max_file);
        self.option("FlushTimer", s.flush_seconds);
        self.option(
            "ClockType",
            s.clock.and_then(|clock| word(xperf::CLOCKS, clock)),
        );
        if s.modes.has(LogFileMode::REAL_TIME) {
            self.switch("RealTime");
        }
        if s.modes.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING) {
            self.switch("LowCapacity");
        }
        if !s.processes.is_empty() {
            self.switch("Pids");
            self.numbers(&s.processes);
        }
        self.others(&s.others);
    }

    fn numbers(&mut self, numbers: &[impl fmt::Display]) {
        for number in numbers {
            self.word(&number.to_string());
        }
    }

    fn logman(&mut self, action: &Action) {
        let (verb, session) = match action {
            Action::Start(session) => ("start", session),
            Action::Create(session) => ("create trace", session),
            Action::Update(session) => ("update trace", session),
            Action::Stop { session, direct } => {
                self.out.push_str(" stop");
                self.logman_name(session, false);
                return self.ets(*direct);
            }
            Action::Delete { session } => {
                self.out.push_str(" delete");
                return self.logman_name(session, false);
            }
            Action::Query { session, direct } => {
                self.out.push_str(" query");
                if let Some(session) = session {
                    self.logman_name(session, false);
                }
                return self.ets(*direct);
            }
            _ => return,
        };
        self.out.push(' ');
        self.out.push_str(verb);
        self.logman_name(&session.name, verb.contains(' '));
        self.logman_session(session);
    }

    /// A name, marked as such where it would be taken for the kind of collector.
    fn logman_name(&mut self, name: &str, kind: bool) {
        let mistaken = ["trace", "providers"]
            .iter()
            .any(|word| word.eq_ignore_ascii_case(name));
        if mistaken && !kind {
            self.out.push_str(" trace");
        }
        self.word(name);
    }

    fn ets(&mut self, direct: bool) {
        if direct {
            self.switch("ets");
        }
    }

    fn logman_session(&mut self, s: &Session) {
        if !s.kernel.is_empty() {
            self.option("p", Some("Windows Kernel Trace"));
            self.parentheses(&s.kernel);
        }
        for spec in &s.providers {
            match &spec.provider {
                ProviderRef::File(file) => self.option("pf", Some(file)),
                provider => self.option("p", Some(logman_provider(provider))),
            }
            match &spec.keywords {
                Some(Keywords::Names(names)) => self.parentheses(names),
                None if spec.level.is_none() => {}
                number => {
                    let number = number.as_ref().and_then(Keywords::number);
                    self.word(&hex(number.unwrap_or(0)));
                }
            }
            spec.level
                .into_iter()
                .for_each(|level| self.word(&hex(level)));
        }
        for spec in &s.removed {
            self.option("-p", Some(logman_provider(&spec.provider)));
        }
        self.option("o", s.file.as_ref());
        self.option("bs", s.buffer_kb);
        if let Some(min) = s.min_buffers {
            self.option("nb", Some(min));
            self.numbers(s.max_buffers.as_slice());
        }
        let mut modes = s.modes.0;
        match s.file_mode {
            Some(LogFileMode::SEQUENTIAL) => self.option("f", Some("bin")),
            Some(LogFileMode::CIRCULAR) => self.option("f", Some("bincirc")),
            Some(LogFileMode::APPEND) => self.switch("a"),
            Some(LogFileMode::NEWFILE) => self.switch("cnf"),
            Some(LogFileMode::BUFFERING) => modes |= LogFileMode::BUFFERING.0,
            _ => {}
        }
        self.option("max", s.max_file);
        self.option("ft", s.flush_seconds);
        self.option("ct", s.clock.and_then(|clock| word(logman::CLOCKS, clock)));
        for (name, mode) in [("rt", LogFileMode::REAL_TIME), ("ul", LogFileMode::PRIVATE)] {
            if modes & mode.0 != 0 {
                self.switch(name);
                modes &= !mode.0;
            } else if s.modes_off.0 & mode.0 != 0 {
                self.switch(&format!("-{name}"));
            }
        }
        self.hex("mode", Some(modes).filter(|modes| *modes != 0));
        self.others(&s.others);
        self.ets(s.direct);
    }

    fn parentheses(&mut self, names: &[String]) {
        let list = format!("({})", names.join(","));
        self.out.push(' ');
        if list.chars().all(is_plain) {
            self.out.push_str(&list);
        } else {
            self.out.push_str(&quote(&list));
        }
    }

    fn tracelog(&mut self, action: &Action) {
        let (verb, name, providers) = match action {
            Action::Start(s) => ("start", &s.name, &s.providers),
            Action::Create(s) => ("addautologger", &s.name, &s.providers),
            Action::Update(s) => ("update", &s.name, &s.providers),
            Action::Enable {
                session, providers, ..
            } => ("enable", session, providers),
            Action::Disable {
                session, providers, ..
            } => ("disable", session, providers),
            Action::CaptureState { session, providers } => ("capturestate", session, providers),
            Action::Flush { session, file, .. } => {
                self.on_session("flush", session);
                return self.option("f", file.as_ref());
            }
            Action::Stop { session, .. } => return self.on_session("stop", session),
            Action::SystemRundown { session } => return self.on_session("systemrundown", session),
            Action::Query {
                session: Some(session),
                ..
            } => return self.on_session("q", session),
            Action::Query { session: None, .. } => return self.switch("l"),
            Action::ListProviders => return self.switch("enumguid"),
            Action::Delete { .. }
            | Action::Merge { .. }
            | Action::Collect(_)
            | Action::Decode { .. } => return,
        };
        self.on_session(verb, name);
        self.tracelog_providers(providers);
        match action {
            Action::Start(s) | Action::Create(s) | Action::Update(s) => self.tracelog_session(s),
            Action::Enable { kernel, .. } | Action::Disable { kernel, .. } => {
                kernel.iter().for_each(|flag| self.switch(flag));
            }
            _ => {}
        }
    }

    fn tracelog_providers(&mut self, providers: &[ProviderSpec]) {
        for spec in providers {
            let text = match &spec.provider {
                ProviderRef::Guid(guid) => format!("#{guid}"),
                ProviderRef::Name(name) | ProviderRef::Hashed(name) => format!("*{name}"),
                ProviderRef::File(file) => file.clone(),
            };
            self.option("guid", Some(text));
        }
        let Some(spec) = providers.first() else {
            return;
        };
        match &spec.keywords {
            Some(Keywords::Mask(mask)) => self.hex("matchanykw", Some(*mask)),
            Some(Keywords::Flags(flags)) => self.hex("flag", Some(*flags)),
            Some(Keywords::Names(_)) | None => {}
        }
        self.hex("matchallkw", Some(spec.all).filter(|all| *all != 0));
        self.hex("level", spec.level);
        self.hex(
            "enableproperty",
            Some(spec.properties.0).filter(|bits| *bits != 0),
        );
        self.ids("EventIdFilter", &spec.ids);
        self.ids("StackWalkFilter", &spec.stack_ids);
        let scope = &spec.scope;
        if !scope.processes.is_empty() {
            self.option("PidFilter", Some(scope.processes.len()));
            self.numbers(&scope.processes);
        }
        self.list("ExeFilter", ";", &scope.executables);
        self.list("PkgIdFilter", ";", &scope.packages);
        self.list("PkgAppIdFilter", ";", &scope.apps);
    }

    fn ids(&mut self, switch: &str, ids: &IdFilter) {
        let (side, ids) = match ids {
            IdFilter::Any => return,
            IdFilter::In(ids) => ("in", ids),
            IdFilter::Out(ids) => ("out", ids),
        };
        self.switch(switch);
        self.option(side, Some(ids.len()));
        self.numbers(ids);
    }

    fn tracelog_session(&mut self, s: &Session) {
        s.kernel.iter().for_each(|flag| self.switch(flag));
        self.list("stackwalk", "+", &s.stack_walk);
        self.option("f", s.file.as_ref());
        self.option("b", s.buffer_kb);
        self.option("min", s.min_buffers);
        self.option("max", s.max_buffers);
        let sized = match s.file_mode {
            Some(LogFileMode::CIRCULAR) => "cir",
            Some(LogFileMode::NEWFILE) => "newfile",
            _ => "seq",
        };
        if s.file_mode == Some(LogFileMode::APPEND) {
            self.switch("append");
        }
        self.option(sized, s.max_file);
        // `-seq SIZE` came before it and has its size.
        if s.file_mode == Some(LogFileMode::BUFFERING) {
            self.switch("buffering");
        }
        self.option("ft", s.flush_seconds);
        match s.clock {
            Some(ClockType::QPC) => self.switch("UsePerfCounter"),
            Some(ClockType::SYSTEM_TIME) => self.switch("UseSystemTime"),
            Some(ClockType::CPU_CYCLE) => self.switch("UseCPUCycle"),
            _ => {}
        }
        for (name, mode) in tracelog::MODES {
            if s.modes.has(*mode) {
                self.switch(name);
            }
        }
        for (word, mode) in tracelog::HYBRID_SHUTDOWN {
            if s.modes.has(*mode) {
                self.option("hybridshutdown", Some(word));
            }
        }
        if !s.processes.is_empty() {
            self.option("pids", Some(s.processes.len()));
            self.numbers(&s.processes);
        }
        self.others(&s.others);
    }
}

/// A mask or another number, in hexadecimal.
fn hex(value: impl fmt::UpperHex) -> String {
    format!("0x{value:X}")
}

/// `logman` wants braces around a GUID.
fn logman_provider(provider: &ProviderRef) -> String {
    match provider {
        ProviderRef::Guid(guid) => format!("{{{guid}}}"),
        provider => provider.text(),
    }
}

fn xperf_providers(providers: &[ProviderSpec]) -> String {
    providers
        .iter()
        .map(xperf_provider)
        .collect::<Vec<_>>()
        .join("+")
}

/// A list of providers of EventPipe.
fn event_pipe_providers(providers: &[ProviderSpec]) -> String {
    let mut parts = Vec::new();
    for spec in providers {
        let mask = spec.keywords.as_ref().and_then(Keywords::number);
        let mask = hex(mask.unwrap_or_default());
        let level = spec.level.unwrap_or_default();
        let mut part = format!("{}:{mask}:{level}", spec.provider.text());
        if !spec.arguments.is_empty() {
            part.push(':');
            part.push_str(&spec.arguments);
        }
        parts.push(part);
    }
    parts.join(",")
}

/// A list that is recognized without a tool before it.
fn plain_providers(providers: &[ProviderSpec]) -> String {
    let mut list = xperf_providers(providers);
    // A name alone could be the name of any program.
    if !list.contains(':') && list.parse::<Guid>().is_err() {
        list.push(':');
    }
    list
}

fn xperf_provider(spec: &ProviderSpec) -> String {
    let named_properties = EnableProperties::SID
        .with(EnableProperties::TS_ID)
        .with(EnableProperties::STACK_TRACE);
    let mask = spec.keywords.as_ref().and_then(Keywords::number);
    let mut parts = vec![
        spec.provider.text(),
        mask.map(hex).unwrap_or_default(),
        spec.level.map(hex).unwrap_or_default(),
        match spec.properties.0 {
            0 => String::new(),
            _ if named_properties.has(spec.properties) => format!("'{}'", spec.properties),
            bits => hex(bits),
        },
    ];
    while parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    parts.join(":")
}
