//! The report as text: the verdict first, then numbers, then findings, then what to do.
//!
//! Lines end before column 80, except command lines, which are copied, and names that cannot be
//! broken.

use std::fmt::Write;

use askama::Template;

use super::words::{INFERRED, NOT_CHECKED, duration, resolved};
use super::{
    Coverage, CoverageRow, EnabledReport, ProcessReport, Report, RundownReport, Severity, Verdict,
};
use crate::checks::enablement::EnablementSource;
use crate::rules::{RULES, Rule, RuleTexts};
use crate::wrap::{printable, wrap};

/// Rundowns of a process that are shown, and losses. Endless rundowns come by the hundred.
const MAX_SHOWN: usize = 6;

#[derive(Template)]
#[template(path = "report.txt")]
struct Document<'a> {
    report: &'a Report,
    paint: Paint,
}

/// Whether words are coloured, for terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Text without colours.
    Plain,
    /// Colours by the escape sequences of terminals.
    Ansi,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }

    fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// The answer of a report.
    fn answer(self, report: &Report) -> String {
        let worst = if report.error.is_some() {
            Verdict::Incomplete
        } else {
            report.verdict
        };
        self.with(color(worst), report.answer())
    }

    /// A verdict.
    fn words(self, verdict: Verdict) -> String {
        self.with(color(verdict), verdict.words())
    }

    /// A severity, padded to a column's width.
    fn severity(self, severity: Severity) -> String {
        let code = match severity {
            Severity::Error => "31",
            Severity::Warning => "33",
            Severity::Note => "36",
        };
        self.with(code, &format!("{:<8}", severity.name()))
    }
}

fn color(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Complete => "1;32",
        Verdict::Incomplete => "1;31",
        Verdict::CompleteWithWarnings | Verdict::CannotTell => "1;33",
    }
}

pub(super) fn render(report: &Report, paint: Paint) -> String {
    if let Some(error) = &report.error {
        let file = printable(&report.file);
        let verdict = paint.answer(report);
        return format!("{file}\nverdict   {verdict}\n{}\n", wrap(10, 10, error));
    }
    Document { report, paint }.render().unwrap_or_default()
}

/// The verdicts of several traces, then the report on each.
pub(super) fn render_all(reports: &[Report], paint: Paint) -> String {
    let mut parts = vec![summary(reports, paint)];
    for report in reports {
        parts.push(render(report, paint));
    }
    parts.join("\n")
}

/// The verdicts of several traces: the number of each, then a line for each trace.
pub(super) fn summary(reports: &[Report], paint: Paint) -> String {
    let worst_first = Verdict::ALL.into_iter().rev().map(Verdict::words);
    let mut answers = Vec::new();
    for answer in std::iter::once(NOT_CHECKED).chain(worst_first) {
        let count = reports.iter().filter(|r| r.answer() == answer).count();
        if count > 0 {
            answers.push(format!("{count} {answer}"));
        }
    }
    let traces = if reports.len() == 1 {
        "trace"
    } else {
        "traces"
    };
    let out = format!("{} {traces}: {}\n", reports.len(), answers.join(", "));
    out + &lines(reports, paint)
}

/// A line for each trace: verdict, name, and the findings of the verdict.
pub(super) fn lines(reports: &[Report], paint: Paint) -> String {
    let mut out = String::new();
    for report in reports {
        let fill = " ".repeat(24_usize.saturating_sub(report.answer().len()));
        let answer = paint.answer(report);
        let file = printable(&report.file);
        let remark = match &report.error {
            Some(error) => printable(error),
            None => report.counts(),
        };
        // Writing into a String does not fail.
        let _ = writeln!(out, "{answer}{fill}{file}{}", in_brackets(&remark));
    }
    out
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}

/// Shares of resolved addresses by their origins; empty if there are none.
fn table(indent: &str, coverage: &Coverage) -> String {
    let mut out = String::new();
    for CoverageRow { origin, tally } in coverage.filled() {
        if out.is_empty() {
            let title = format!("{indent}addresses");
            out.push_str(&format!(
                "{title:<18}{:>8}{:>11}{:>10}{:>11}{:>11}{:>10}\n",
                "stacks", "frames", "managed", "image", "unresolved", "resolved",
            ));
        }
        let origin = format!("{indent}{origin}");
        out.push_str(&format!(
            "{origin:<18}{:>8}{:>11}{:>10}{:>11}{:>11}{:>10}\n",
            tally.stacks,
            tally.frames,
            tally.managed,
            tally.image,
            tally.unresolved,
            resolved(&tally),
        ));
    }
    let rows = coverage.rows();
    let not_recorded: u64 = rows.iter().map(|row| row.tally.not_recorded).sum();
    if not_recorded > 0 {
        out.push_str(&format!(
            "{indent}{not_recorded} addresses of native code: no session recorded its images\n"
        ));
    }
    out
}

/// Counts of one kind of items of a process.
struct ItemRow {
    name: &'static str,
    known: u64,
    listed: u64,
    loaded: u64,
    unloaded: u64,
}

/// The numbers of items that are known, listed, loaded and unloaded, by kind.
fn items(process: &ProcessReport) -> [ItemRow; 4] {
    let ProcessReport {
        listed,
        loaded,
        unloaded,
        ..
    } = process;
    [
        ItemRow {
            name: "methods",
            known: process.methods,
            listed: listed.methods,
            loaded: loaded.methods,
            unloaded: unloaded.methods,
        },
        ItemRow {
            name: "modules",
            known: process.modules,
            listed: listed.modules,
            loaded: loaded.modules,
            unloaded: unloaded.modules,
        },
        ItemRow {
            name: "assemblies",
            known: process.assemblies,
            listed: listed.assemblies,
            loaded: loaded.assemblies,
            unloaded: unloaded.assemblies,
        },
        ItemRow {
            name: "app domains",
            known: process.app_domains,
            listed: listed.app_domains,
            loaded: loaded.app_domains,
            unloaded: unloaded.app_domains,
        },
    ]
}

/// How the CLR's providers were enabled.
fn enabled(report: &Report) -> Vec<&EnabledReport> {
    report
        .enabled
        .iter()
        .filter(|e| e.is_clr() && e.mask.is_some())
        .collect()
}

fn is_inferred(enabled: &[&EnabledReport]) -> bool {
    enabled
        .iter()
        .any(|e| e.source == EnablementSource::Inferred)
}

/// What to do about the findings of rules with the same remedy.
struct Remedy {
    /// Ids of the rules.
    rules: String,
    texts: RuleTexts,
    commands: Vec<String>,
    /// The first of the rules.
    rule: &'static Rule,
}

/// What to do about the findings above a note, once for each remedy.
fn remedies(report: &Report) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    for rule in RULES {
        let mut findings = report.counted();
        if !findings.any(|f| f.rule == rule.id && f.severity > Severity::Note) {
            continue;
        }
        let texts = report.texts(rule);
        let same = remedies.iter_mut().find(|remedy| {
            remedy.texts.remedy == texts.remedy && remedy.texts.commands == texts.commands
        });
        if let Some(same) = same {
            same.rules.push_str(", ");
            same.rules.push_str(rule.id);
            continue;
        }
        remedies.push(Remedy {
            rules: rule.id.to_owned(),
            texts,
            commands: commands(report, rule, &remedies),
            rule,
        });
    }
    remedies
}

/// The command lines of a rule, or a reference to the same lines of an earlier remedy.
fn commands(report: &Report, rule: &Rule, before: &[Remedy]) -> Vec<String> {
    let lines = report.texts(rule).commands;
    let same = before.iter().find(|remedy| remedy.texts.commands == lines);
    match same {
        Some(remedy) if !lines.is_empty() => {
            vec![format!("(the command lines of {})", remedy.rule.id)]
        }
        _ => report.commands(rule),
    }
}

fn rundown(rundown: &RundownReport) -> String {
    let which = format!("{} of CLR {}", rundown.kind.name(), rundown.clr_instance);
    let [from, to] = rundown.span_us;
    match (&rundown.init_time, &rundown.complete_time) {
        (Some(init), Some(_)) => {
            let duration = duration(to.saturating_sub(from));
            format!("{which} at {init}, {duration}")
        }
        (Some(init), None) => format!("{which} at {init}, no Complete event"),
        (None, Some(complete)) => format!("{which}, no Init event, complete at {complete}"),
        (None, None) => format!("{which}, neither Init nor Complete event"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_adds_colours_and_changes_nothing_else() {
        let report = Report {
            verdict: Verdict::Incomplete,
            ..Report::default()
        };
        let plain = render(&report, Paint::Plain);
        let painted = render(&report, Paint::Ansi);
        assert!(!plain.contains('\u{1b}'));
        assert!(painted.contains("\u{1b}[1;31mincomplete\u{1b}[0m"));
        let mut stripped = painted.replace("\u{1b}[0m", "");
        for code in ["1;31", "1"] {
            stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn summary_counts_verdicts_first() {
        let one = |file: &str, verdict| Report {
            file: file.to_owned(),
            verdict,
            ..Report::default()
        };
        let reports = [
            one("a.etl", Verdict::Complete),
            one("b.etl", Verdict::Incomplete),
        ];
        let text = summary(&reports, Paint::Plain);
        let line = format!("{:<24}a.etl\n", "complete");
        assert!(
            text.starts_with(&format!("2 traces: 1 incomplete, 1 complete\n{line}")),
            "{text}"
        );
    }
}
