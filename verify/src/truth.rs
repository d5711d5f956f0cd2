//! How the sessions of a simulated trace enabled providers, from the `truth.jsonl` of `etlkit
//! synth`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use etl_control::enable::{Enablement, IdFilter};
use etl_format::{FileTime, Guid};
use serde::Deserialize;

use crate::checks::enablement::Enabled;
use crate::{Error, Result};

/// How sessions enabled providers, by the files that the sessions wrote.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    enabled: Vec<Enabled>,
    /// Names of sessions by file.
    sessions: BTreeMap<String, Vec<String>>,
    /// The inputs of each merged file.
    merges: BTreeMap<String, Vec<String>>,
    /// The FILETIME at which the simulation started, if a line states it.
    zero: Option<i64>,
}

/// A line of the file. Lines of other kinds are ignored.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Enable(Request),
    Disable {
        session: String,
        filetime: i64,
        provider_guid: String,
    },
    Session {
        session: String,
        file: Option<String>,
        /// All files, if there are several.
        #[serde(default)]
        all_files: Vec<String>,
        /// When it was stopped, in nanoseconds since the start of the simulation.
        stopped_ns: Option<i64>,
    },
    Merge {
        file: String,
        inputs: Vec<String>,
    },
    #[serde(other)]
    Other,
}

/// A session enables a provider.
#[derive(Debug, Deserialize)]
struct Request {
    session: String,
    at_ns: i64,
    filetime: i64,
    provider_guid: String,
    level: u8,
    match_any_keyword: String,
    match_all_keyword: String,
    #[serde(default)]
    ignore_keyword_0: bool,
    #[serde(default)]
    old_rule: bool,
    ids: Option<Vec<u16>>,
    not_ids: Option<Vec<u16>>,
    #[serde(default)]
    pids: Vec<u32>,
    #[serde(default)]
    executables: Vec<String>,
}

impl Request {
    fn enabled(self) -> Result<Enabled, String> {
        let provider = guid(&self.provider_guid)?;
        let mut with = Enablement::new(self.level, mask(&self.match_any_keyword)?);
        let all = mask(&self.match_all_keyword)?;
        with.all = if self.old_rule && with.any == 0 {
            0
        } else {
            all
        };
        with.ignore_keyword_0 = self.ignore_keyword_0;
        with.ids = match (self.ids, self.not_ids) {
            (Some(ids), _) => IdFilter::In(ids),
            (None, Some(ids)) => IdFilter::Out(ids),
            (None, None) => IdFilter::Any,
        };
        let any_process = self.pids.is_empty() && self.executables.is_empty();
        Ok(Enabled {
            is_limited: with.ids != IdFilter::Any || !any_process,
            since: Some(FileTime::new(self.filetime)),
            session: Some(self.session),
            ..Enabled::declared(provider, with)
        })
    }
}

impl Truth {
    /// Reads the lines of a `truth.jsonl`.
    ///
    /// ```no_run
    /// use std::fs::File;
    /// use std::io::BufReader;
    ///
    /// use etl_verify::{Truth, Verifier};
    ///
    /// let truth = Truth::read(BufReader::new(File::open("out/truth.jsonl")?))?;
    /// let enabled = truth.of("clr.etl").unwrap_or_default();
    /// let trace = std::fs::read("out/clr.etl")?;
    /// let report = Verifier::new().enabled(enabled).verify(trace.as_slice(), "clr.etl")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Truth`], with the number of the line that cannot be read.
    pub fn read(lines: impl BufRead) -> Result<Self> {
        let mut truth = Truth::default();
        for (index, line) in lines.lines().enumerate() {
            let added = match line {
                Ok(line) => truth.add_text(&line),
                Err(error) => Err(error.to_string()),
            };
            added.map_err(|reason| Error::Truth {
                line: index.saturating_add(1),
                reason,
            })?;
        }
        Ok(truth)
    }

    fn add_text(&mut self, line: &str) -> Result<(), String> {
        // Most lines are events. They are long, and their start is enough to skip them.
        if line.trim().is_empty() || line.starts_with("{\"kind\":\"event\"") {
            return Ok(());
        }
        let line = serde_json::from_str(line).map_err(|error| error.to_string())?;
        self.add(line)
    }

    fn add(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Enable(request) => {
                self.zero = Some(request.filetime.saturating_sub(request.at_ns / 100));
                let enabled = request.enabled()?;
                if let (Some(session), Some(since)) = (&enabled.session, enabled.since) {
                    self.end(session, enabled.provider, since.get());
                }
                self.enabled.push(enabled);
            }
            Line::Disable {
                session,
                filetime,
                provider_guid,
            } => {
                self.end(&session, guid(&provider_guid)?, filetime);
            }
            Line::Session {
                session,
                file,
                all_files,
                stopped_ns,
            } => {
                if let (Some(zero), Some(stopped)) = (self.zero, stopped_ns) {
                    self.stop(&session, FileTime::new(zero.saturating_add(stopped / 100)));
                }
                for file in BTreeSet::from_iter(file.into_iter().chain(all_files)) {
                    self.sessions.entry(file).or_default().push(session.clone());
                }
            }
            Line::Merge { file, inputs } => {
                self.merges.insert(file, inputs);
            }
            Line::Other => {}
        }
        Ok(())
    }

    /// A session was stopped.
    fn stop(&mut self, session: &str, time: FileTime) {
        for enabled in &mut self.enabled {
            if enabled.session.as_deref() == Some(session) && enabled.stopped.is_none() {
                enabled.stopped = Some(time);
            }
        }
    }

    /// A session no longer enables a provider, or enables it in another way from now on.
    fn end(&mut self, session: &str, provider: Guid, filetime: i64) {
        for enabled in &mut self.enabled {
            let is_of_session = enabled.session.as_deref() == Some(session);
            if enabled.provider == provider && is_of_session && enabled.until.is_none() {
                enabled.until = Some(FileTime::new(filetime));
            }
        }
    }

    /// How sessions enabled the providers whose events are in a file; `None` for an unknown file.
    ///
    /// The sessions of a merged file are the sessions of its inputs. Other sessions are included
    /// and marked: they make providers raise events, but do not write them to the file.
    #[must_use]
    pub fn of(&self, file: &str) -> Option<Vec<Enabled>> {
        let sessions = self.sessions_of(file);
        if sessions.is_empty() {
            return None;
        }
        let mut all = self.enabled.clone();
        for enabled in &mut all {
            let session = enabled.session.as_deref();
            enabled.is_elsewhere = session.is_none_or(|session| !sessions.contains(session));
        }
        Some(all)
    }

    /// The sessions that wrote a file, or any of the files that it was merged from.
    fn sessions_of<'a>(&'a self, file: &'a str) -> BTreeSet<&'a str> {
        let mut sessions = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut files = vec![file];
        while let Some(file) = files.pop() {
            if !seen.insert(file) {
                continue;
            }
            if let Some(names) = self.sessions.get(file) {
                sessions.extend(names.iter().map(String::as_str));
            }
            if let Some(inputs) = self.merges.get(file) {
                files.extend(inputs.iter().map(String::as_str));
            }
        }
        sessions
    }

    /// The names of the simulated files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.sessions
            .keys()
            .chain(self.merges.keys())
            .map(String::as_str)
    }
}

fn guid(text: &str) -> Result<Guid, String> {
    text.parse().map_err(|_| format!("{text:?} is not a GUID"))
}

fn mask(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is not a mask"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"kind":"enable","session":"clr","at_ns":5,"filetime":130000000000000000,"provider_guid":"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4","level":5,"match_any_keyword":"0x98","match_all_keyword":"0x0"}
{"kind":"enable","session":"other","at_ns":5,"filetime":130000000000000000,"provider_guid":"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4","level":4,"match_any_keyword":"0x8","match_all_keyword":"0x0","not_ids":[1,2],"pids":[7]}
{"kind":"event","whatever":
{"kind":"buffer","session":"clr"}
{"kind":"session","session":"clr","file":"clr.etl","started_ns":5}
{"kind":"session","session":"other","file":"other.etl","started_ns":5}
{"kind":"session","session":"clr","file":"part1.etl","all_files":["part1.etl","part2.etl"],"started_ns":5}
{"kind":"merge","file":"all.etl","inputs":["clr.etl","other.etl"]}
"#;

    #[test]
    fn of_finds_the_sessions_of_a_file() {
        let truth = Truth::read(LINES.as_bytes()).unwrap();
        let own = |file| -> Vec<_> {
            truth
                .of(file)
                .unwrap()
                .into_iter()
                .filter(|e| !e.is_elsewhere)
                .collect()
        };
        let [clr] = &own("clr.etl")[..] else {
            panic!("one session")
        };
        assert_eq!(clr.with, Some(Enablement::new(5, 0x98)));
        assert_eq!(
            (clr.since, clr.is_limited),
            (Some(FileTime::new(130_000_000_000_000_000)), false)
        );
        let [other] = &own("other.etl")[..] else {
            panic!("one session")
        };
        assert!(other.is_limited);
        assert_eq!(truth.of("part2.etl"), truth.of("part1.etl"));
        assert_eq!((own("part2.etl").len(), own("all.etl").len()), (1, 2));
        assert_eq!(
            truth.of("part2.etl").unwrap().len(),
            2,
            "the other session, too"
        );
        assert_eq!(truth.of("unknown.etl"), None);
    }

    #[test]
    fn match_all_does_not_count_beside_0_by_the_old_rule() {
        let all = LINES.replace(
            r#""match_all_keyword":"0x0""#,
            r#""match_all_keyword":"0x4""#,
        );
        let old = all.replace("\"0x4\"}", "\"0x4\",\"old_rule\":true}");
        let all_of = |lines: &str| {
            let truth = Truth::read(lines.as_bytes()).unwrap();
            truth.of("clr.etl").unwrap()[0].with.as_ref().unwrap().all
        };
        assert_eq!((all_of(&all), all_of(&old)), (4, 4));
        let zero = |lines: &str| lines.replace("0x98", "0x0");
        assert_eq!((all_of(&zero(&all)), all_of(&zero(&old))), (4, 0));
    }

    #[test]
    fn enabling_again_and_disabling_end_what_was_enabled() {
        let again = LINES
            .lines()
            .next()
            .unwrap()
            .replace("130000000000000000", "130000000000000007");
        let disable = r#"{"kind":"disable","session":"clr","at_ns":9,"filetime":130000000000000009,"provider_guid":"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"}"#;
        let truth = Truth::read(format!("{LINES}{again}\n{disable}\n").as_bytes()).unwrap();
        let end_times = |file| -> Vec<_> {
            let own = truth
                .of(file)
                .unwrap()
                .into_iter()
                .filter(|e| !e.is_elsewhere);
            own.map(|e| e.until).collect()
        };
        let [first, second] =
            [7, 9].map(|tick| Some(FileTime::new(130_000_000_000_000_000 + tick)));
        assert_eq!(
            (end_times("clr.etl"), end_times("other.etl")),
            (vec![first, second], vec![None])
        );
    }

    #[test]
    fn read_names_the_line_that_is_wrong() {
        for (text, part) in [
            ("no json", "line 1"),
            ("\n{\"kind\":\"enable\"}", "line 2"),
            (&LINES.replace("0x98", "all"), "not a mask"),
        ] {
            let error = Truth::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
