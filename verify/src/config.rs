//! The configuration file `etlverify.toml`, which users keep with their code.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::checks::enablement::Enabled;
use crate::gates::Gates;
use crate::policy::{Policy, SeverityOverride};
use crate::{Error, Result};

/// The settings of an `etlverify.toml`.
///
/// ```toml
/// # Findings of these rules, or families of rules, are errors.
/// deny = ["rundown"]
/// # Findings of these are left out.
/// allow = ["file.sequence-gap"]
/// # Minimum share of addresses that resolve, in percent: of all, in each process, of samples.
/// min-coverage = 99.5
/// min-process-coverage = 95.0
/// min-sample-coverage = 99.0
/// # Minimum share of addresses in managed code whose method has a name, and of addresses in images
/// # whose image has a PDB identity.
/// min-named-methods = 100.0
/// min-pdb-identity = 90.0
/// # What sessions are enabled with: providers, or command lines of xperf, logman or tracelog.
/// enable = ["xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x1CCBD:5 -f clr1.etl"]
///
/// # Severities: error, warning, note, or off.
/// [severity]
/// "rundown.process-exited" = "error"
/// activity = "off"
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Severities, rules to ignore, and gates.
    pub policy: Policy,
    /// What sessions are enabled with.
    pub enabled: Vec<Enabled>,
    /// Whether other sessions may have enabled the same providers.
    pub other_sessions: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
struct File {
    deny: Vec<String>,
    allow: Vec<String>,
    min_coverage: Option<f64>,
    min_process_coverage: Option<f64>,
    min_sample_coverage: Option<f64>,
    min_named_methods: Option<f64>,
    min_pdb_identity: Option<f64>,
    enable: Vec<String>,
    other_sessions: bool,
    severity: BTreeMap<String, SeverityOverride>,
}

impl Config {
    /// The name of the file.
    pub const FILE_NAME: &'static str = "etlverify.toml";

    /// Reads the text of a configuration file.
    ///
    /// ```
    /// use etl_verify::Config;
    ///
    /// let config = Config::parse("deny = [\"rundown\"]\nmin-coverage = 99.5")?;
    /// assert_eq!(config.policy.denied(), ["rundown"]);
    /// assert_eq!(config.policy.gates().coverage, Some(99.5));
    ///
    /// assert!(Config::parse("deny = [\"rundwon\"]").is_err());
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text is not TOML, or has unknown keys, unknown rules, or values out of range.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text)
            .map_err(|error| Error::Config(error.to_string().trim_end().to_owned()))?;
        let gates = Gates {
            coverage: file.min_coverage,
            process_coverage: file.min_process_coverage,
            sample_coverage: file.min_sample_coverage,
            named_methods: file.min_named_methods,
            pdb_identity: file.min_pdb_identity,
        };
        for (key, value) in gates.by_key() {
            if let Some(value) = value.filter(|value| !(0.0..=100.0).contains(value)) {
                return Err(Error::Percentage { key, value });
            }
        }
        let mut policy = Policy::new().require(gates);
        for name in file.deny {
            policy = policy.deny(name)?;
        }
        for name in file.allow {
            policy = policy.allow(name)?;
        }
        for (name, severity) in file.severity {
            policy = policy.severity(name, severity)?;
        }
        let mut enabled = Vec::new();
        for text in &file.enable {
            enabled.extend(Enabled::parse(text)?);
        }
        Ok(Config {
            policy,
            enabled,
            other_sessions: file.other_sessions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_every_key() {
        let config = Config::parse(
            r#"
            deny = ["rundown"]
            allow = ["file.sequence-gap"]
            min-coverage = 99.5
            enable = ["runtime:0x1CCBD:5", "xperf -start r -on a669021c-c450-4609-a035-5af59af4df18:0x138:5 -f r.etl"]
            other-sessions = true
            [severity]
            activity = "off"
            "#,
        );
        let config = config.unwrap();
        assert_eq!(config.policy.denied(), ["rundown"]);
        assert_eq!(
            *config.policy.gates(),
            Gates {
                coverage: Some(99.5),
                ..Gates::default()
            }
        );
        let severities = [("activity".to_owned(), SeverityOverride::Off)];
        assert_eq!(*config.policy.severities(), severities.into());
        assert_eq!(config.enabled.len(), 2);
        assert!(config.other_sessions);
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn parse_names_what_is_wrong() {
        for (text, part) in [
            ("deny = [\"nothing\"]", "nothing"),
            ("denied = []", "denied"),
            ("min-coverage = 101.0", "0 to 100"),
            ("min-pdb-identity = -1.0", "min-pdb-identity"),
            ("enable = [\"unknown:1:1\"]", "unknown"),
            // `rundown` is a short name of this tool, not of xperf.
            (
                "enable = [\"xperf -start r -on rundown:0x138:5 -f clr2.etl\"]",
                "rundown",
            ),
            ("[severity]\nfile = \"fatal\"", "fatal"),
            ("deny = [", "line 1"),
        ] {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
