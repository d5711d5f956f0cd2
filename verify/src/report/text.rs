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
use crate::rules::{RULES, Rule};
use crate::wrap::{printable, wrap};

/// Rundowns of a process that are shown, and losses: an endless rundown has hundreds.
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
        let (file, verdict) = (printable(&report.file), paint.answer(report));
        return format!("{file}\nverdict   {verdict}\n{}\n", wrap(10, 10, error));
    }
    Document { report, paint }.render().unwrap_or_default()
}

/// The verdicts of several traces: how many of each, then a line for each trace.
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
        let (answer, file) = (paint.answer(report), printable(&report.file));
        let about = report
            .error
            .as_deref()
            .map_or_else(|| report.counts(), printable);
        // Writing into a String does not fail.
        let _ = writeln!(out, "{answer}{fill}{file}{}", in_brackets(&about));
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
    let row = |name: &str, columns: [&str; 6]| {
        let [a, b, c, d, e, f] = columns;
        let name = format!("{indent}{name}");
        format!("{name:<18}{a:>8}{b:>11}{c:>10}{d:>11}{e:>11}{f:>10}\n")
    };
    let mut out = String::new();
    for CoverageRow {
        origin: name,
        tally: t,
    } in coverage.filled()
    {
        if out.is_empty() {
            let columns = [
                "stacks",
                "frames",
                "managed",
                "image",
                "unresolved",
                "resolved",
            ];
            out.push_str(&row("addresses", columns));
        }
        let counts = [t.stacks, t.frames, t.managed, t.image, t.unresolved];
        let [a, b, c, d, e] = &counts.map(|count| count.to_string());
        out.push_str(&row(name, [a, b, c, d, e, &resolved(&t)]));
    }
    out
}

/// What of each kind is known, listed, loaded and unloaded.
fn items(p: &ProcessReport) -> [(&'static str, u64, u64, u64, u64); 4] {
    let (r, l, u) = (p.listed, p.loaded, p.unloaded);
    [
        ("methods", p.methods, r.methods, l.methods, u.methods),
        ("modules", p.modules, r.modules, l.modules, u.modules),
        (
            "assemblies",
            p.assemblies,
            r.assemblies,
            l.assemblies,
            u.assemblies,
        ),
        (
            "app domains",
            p.app_domains,
            r.app_domains,
            l.app_domains,
            u.app_domains,
        ),
    ]
}

/// What the CLR's providers were enabled with.
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

/// What to do about the findings above a note, once for each remedy: rules, remedy and commands.
fn remedies(report: &Report) -> Vec<(String, &'static str, Vec<String>)> {
    let matters = |id: &str| {
        report
            .counted()
            .any(|f| f.rule == id && f.severity > Severity::Note)
    };
    let mut groups: Vec<(Vec<&str>, &Rule)> = Vec::new();
    for rule in RULES.iter().filter(|rule| matters(rule.id)) {
        let same = |(_, other): &&mut (_, &Rule)| {
            other.remedy == rule.remedy && other.commands == rule.commands
        };
        match groups.iter_mut().find(same) {
            Some((ids, _)) => ids.push(rule.id),
            None => groups.push((vec![rule.id], rule)),
        }
    }
    let commands = |at: usize, rule: &Rule| {
        let mut before = groups.iter().take(at).filter(|_| !rule.commands.is_empty());
        match before.find(|(_, other)| other.commands == rule.commands) {
            Some((_, other)) => vec![format!("(the command lines of {})", other.id)],
            None => report.commands(rule),
        }
    };
    let all = groups.iter().enumerate();
    all.map(|(at, (ids, rule))| (ids.join(", "), rule.remedy, commands(at, rule)))
        .collect()
}

fn rundown(r: &RundownReport) -> String {
    let which = format!("{} of CLR {}", r.kind.name(), r.clr_instance);
    let [from, to] = r.span_us;
    match (&r.init_time, &r.complete_time) {
        (Some(at), Some(_)) => format!("{which} at {at}, {}", duration(to.saturating_sub(from))),
        (Some(at), None) => format!("{which} at {at}, no Complete event"),
        (None, Some(at)) => format!("{which}, no Init event, complete at {at}"),
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
