//! What a scenario's truth says of its sessions: the `truth.jsonl` that `etlkit synth` writes beside the
//! traces tells what each session enabled, when, and which files it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use etl_control::enable::{Enablement, IdFilter};
use serde::Deserialize;

use crate::facts::enable::{Enabled, Knowledge};

/// What sessions enabled, by the files that they wrote.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    enabled: Vec<Enabled>,
    /// Sessions by file.
    sessions: BTreeMap<String, Vec<String>>,
    /// Files that became another one.
    merges: BTreeMap<String, Vec<String>>,
}

/// A line, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Line {
    Enable {
        session: String,
        time: i64,
        provider: String,
        level: u8,
        any: String,
        all: String,
        #[serde(default, rename = "ignoreKeyword0")]
        ignore_keyword_0: bool,
        ids: Option<Vec<u16>>,
        #[serde(rename = "notIds")]
        not_ids: Option<Vec<u16>>,
        #[serde(default)]
        processes: Vec<u32>,
        #[serde(default)]
        executables: bool,
    },
    Session {
        name: String,
        file: Option<String>,
    },
    Merge {
        file: String,
        of: Vec<String>,
    },
    #[serde(other)]
    Other,
}

impl Truth {
    /// Reads the lines; those of events and of what is there at the end are passed over.
    ///
    /// # Errors
    /// The number of a line that is not as it should be, and why; what the medium reports.
    pub fn read(lines: impl BufRead) -> Result<Self, String> {
        let mut truth = Truth::default();
        for (number, line) in lines.lines().enumerate() {
            let wrong = |what: String| format!("line {}: {what}", number.saturating_add(1));
            let line = line.map_err(|e| wrong(e.to_string()))?;
            // Most lines are events, and they are long.
            if line.trim().is_empty() || line.starts_with("{\"kind\":\"event\"") {
                continue;
            }
            let line = serde_json::from_str(&line).map_err(|e| wrong(e.to_string()))?;
            truth.line(line).map_err(wrong)?;
        }
        Ok(truth)
    }

    fn line(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Enable {
                session,
                time,
                provider,
                level,
                any,
                all,
                ignore_keyword_0,
                ids,
                not_ids,
                processes,
                executables,
            } => {
                let guid = provider.parse().map_err(|_| format!("{provider:?} is no GUID"))?;
                let mut with = Enablement::new(level, mask(&any)?);
                with.all = mask(&all)?;
                with.ignore_keyword_0 = ignore_keyword_0;
                if let Some(ids) = ids {
                    with.ids = IdFilter::In(ids);
                } else if let Some(ids) = not_ids {
                    with.ids = IdFilter::Out(ids);
                }
                self.enabled.push(Enabled {
                    provider: guid,
                    limited: with.ids != IdFilter::Any || !processes.is_empty() || executables,
                    with: Some(with),
                    knowledge: Knowledge::Told,
                    at: None,
                    since: Some(time),
                    session: Some(session),
                });
            }
            Line::Session { name, file: Some(file) } => {
                self.sessions.entry(file).or_default().push(name);
            }
            Line::Merge { file, of } => {
                self.merges.insert(file, of);
            }
            Line::Session { file: None, .. } | Line::Other => {}
        }
        Ok(())
    }

    /// What the sessions enabled that wrote a file, or one of those that it was merged of; nothing for a
    /// file that the truth does not know.
    #[must_use]
    pub fn of(&self, file: &str) -> Option<Vec<Enabled>> {
        let mut sessions: BTreeSet<&str> = BTreeSet::new();
        let mut files = vec![file];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(file) = files.pop() {
            if !seen.insert(file) {
                continue;
            }
            let known = self.sessions.get(file);
            sessions.extend(known.into_iter().flatten().map(String::as_str));
            files.extend(self.merges.get(file).into_iter().flatten().map(String::as_str));
        }
        if sessions.is_empty() {
            return None;
        }
        let own = |e: &&Enabled| e.session.as_deref().is_some_and(|s| sessions.contains(s));
        Some(self.enabled.iter().filter(own).cloned().collect())
    }

    /// The files that it knows.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().chain(self.merges.keys()).map(String::as_str)
    }
}

fn mask(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is no mask"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"kind":"enable","session":"clr","at":5,"time":130000000000000000,"provider":"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4","level":5,"any":"0x98","all":"0x0"}
{"kind":"enable","session":"other","at":5,"time":130000000000000000,"provider":"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4","level":4,"any":"0x8","all":"0x0","notIds":[1,2],"processes":[7]}
{"kind":"event","whatever":
{"kind":"buffer","session":"clr"}
{"kind":"session","name":"clr","file":"clr.etl","started":5}
{"kind":"session","name":"other","file":"other.etl","started":5}
{"kind":"merge","file":"all.etl","of":["clr.etl","other.etl"]}
"#;

    #[test]
    fn sessions_are_found_by_their_files() {
        let truth = Truth::read(LINES.as_bytes()).unwrap();
        let [clr] = &truth.of("clr.etl").unwrap()[..] else { panic!("one session") };
        assert_eq!(clr.with, Some(Enablement::new(5, 0x98)));
        assert_eq!((clr.since, clr.limited), (Some(130_000_000_000_000_000), false));
        let [other] = &truth.of("other.etl").unwrap()[..] else { panic!("one session") };
        assert!(other.limited);
        assert_eq!(truth.of("all.etl").unwrap().len(), 2);
        assert_eq!(truth.of("strange.etl"), None);
    }

    #[test]
    fn what_is_no_truth_is_named() {
        for (text, part) in [
            ("no json", "line 1"),
            ("\n{\"kind\":\"enable\"}", "line 2"),
            (&LINES.replace("0x98", "all"), "no mask"),
        ] {
            let error = Truth::read(text.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
