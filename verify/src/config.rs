//! The configuration file that a user keeps beside the code: `etlverify.toml`.
//!
//! ```toml
//! # Findings of these rules, or families of rules, are errors.
//! deny = ["rundown"]
//! # These are left out.
//! allow = ["file.sequence-gap"]
//! # Least share of addresses that have to resolve, in percent.
//! min-coverage = 99.5
//! # The same in each process, and of the samples.
//! min-process-coverage = 95.0
//! min-sample-coverage = 99.0
//! # Of the addresses in managed code those in a method that an event names; of those in images those
//! # whose image's PDB is known.
//! min-named = 100.0
//! min-identified = 90.0
//! # What sessions are enabled with: providers, or whole command lines of xperf, logman or tracelog.
//! enable = ["xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x1CCBD:5 -f clr1.etl"]
//!
//! # Other weights: error, warning, note, or off.
//! [severity]
//! "rundown.process-exited" = "error"
//! activity = "off"
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::facts::enable::Enabled;
use crate::policy::{Gates, Policy, Weight};
use crate::reading::Settings;

/// The name of the file that is looked for.
pub const FILE_NAME: &str = "etlverify.toml";

/// What a file may hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    allow: Vec<String>,
    min_coverage: Option<f64>,
    min_process_coverage: Option<f64>,
    min_sample_coverage: Option<f64>,
    min_named: Option<f64>,
    min_identified: Option<f64>,
    #[serde(default)]
    enable: Vec<String>,
    #[serde(default)]
    severity: BTreeMap<String, Weight>,
}

/// Reads the text of a configuration file.
///
/// # Errors
/// What is wrong with it: no TOML (with line and column), keys that are not known, names that are no
/// rule's and no family's, values out of range.
pub fn parse(text: &str) -> Result<Settings, String> {
    let written: Written = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
    let gates = Gates {
        coverage: written.min_coverage,
        process_coverage: written.min_process_coverage,
        sample_coverage: written.min_sample_coverage,
        named: written.min_named,
        identified: written.min_identified,
    };
    for (name, least) in gates.named_ones() {
        if let Some(least) = least.filter(|least| !(0.0..=100.0).contains(least)) {
            return Err(format!("{name} is {least}, expected 0 to 100"));
        }
    }
    let policy = Policy {
        deny: written.deny,
        allow: written.allow,
        gates,
        weights: written.severity.into_iter().collect(),
    };
    if let Some(unknown) = policy.unknown() {
        return Err(format!("{unknown:?} is no rule and no family of rules"));
    }
    let mut enabled = Vec::new();
    for text in &written.enable {
        enabled.extend(Enabled::parse(text).map_err(|e| format!("enable = {text:?}: {e}"))?);
    }
    Ok(Settings { policy, enabled, ..Settings::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_everything() {
        let settings = parse(
            r#"
            deny = ["rundown"]
            allow = ["file.sequence-gap"]
            min-coverage = 99.5
            enable = ["runtime:0x1CCBD:5", "xperf -start r -on rundown:0x138:5 -f clr2.etl"]
            [severity]
            "rundown.process-exited" = "error"
            activity = "off"
            "#,
        );
        // `rundown` is a short name of this tool and not of xperf.
        assert!(settings.unwrap_err().contains("rundown"));
        let settings =
            parse("deny = [\"rundown\"]\nmin-coverage = 99.5\n[severity]\nactivity = \"off\"");
        let policy = settings.unwrap().policy;
        assert_eq!(policy.deny, ["rundown"]);
        assert_eq!(policy.gates, Gates { coverage: Some(99.5), ..Gates::default() });
        assert_eq!(policy.weights, [("activity".to_owned(), Weight::Off)]);
        assert_eq!(parse("").unwrap(), Settings::default());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("deny = [\"nothing\"]", "nothing"),
            ("denied = []", "denied"),
            ("min-coverage = 101.0", "0 to 100"),
            ("min-identified = -1.0", "min-identified"),
            ("enable = [\"nobody:1:1\"]", "nobody"),
            ("[severity]\nfile = \"fatal\"", "fatal"),
            ("deny = [", "line 1"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
