//! The report as text: the verdict first, then numbers, then findings, then what to do.
//!
//! Lines end before column 80, except command lines, which are copied, and names that cannot be
//! broken.

use std::fmt::{self, Write};

use super::words::{INFERRED, counts, duration, percent, sentence, source};
use super::{EnabledReport, ProcessReport, Report, RundownReport, Severity, Verdict};
use crate::facts::Tally;
use crate::finding::{Finding, Outcome};
use crate::rules::{RULES, Rule};
use crate::wrap::{printable, wrap};

/// Rundowns of a process that are shown, and losses: an endless rundown has hundreds.
const MAX_SHOWN: usize = 6;

/// Whether words are coloured, for terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
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

    fn verdict(self, verdict: Verdict) -> String {
        let code = match verdict {
            Verdict::Sound => "1;32",
            Verdict::Broken => "1;31",
            Verdict::Undecided => "1;33",
        };
        self.with(code, verdict.name())
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

pub(super) fn render(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(report, paint, &mut out);
    out
}

/// The verdicts of several traces: how many of each, then a line for each trace.
pub(super) fn summary(reports: &[Report], paint: Paint) -> String {
    let mut verdicts = Vec::new();
    for verdict in [Verdict::Broken, Verdict::Undecided, Verdict::Sound] {
        let count = reports.iter().filter(|r| r.verdict == verdict).count();
        if count > 0 {
            verdicts.push(format!("{count} {}", verdict.name()));
        }
    }
    let traces = if reports.len() == 1 { "trace" } else { "traces" };
    let mut out = format!("{} {traces}: {}\n", reports.len(), verdicts.join(", "));
    for report in reports {
        let fill = " ".repeat(11_usize.saturating_sub(report.verdict.name().len()));
        let (verdict, file) = (paint.verdict(report.verdict), printable(&report.file));
        // Writing into a String does not fail.
        let _ = writeln!(out, "  {verdict}{fill}{file}{}", in_brackets(&counts(report)));
    }
    out
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

fn write(report: &Report, paint: Paint, out: &mut String) -> fmt::Result {
    writeln!(out, "{}", printable(&report.file))?;
    let (verdict, counts) = (paint.verdict(report.verdict), in_brackets(&counts(report)));
    writeln!(out, "verdict   {verdict}{counts}")?;
    writeln!(out, "          {}", sentence(report))?;
    writeln!(out, "started   {}   records {}", report.start_time, report.records)?;
    writeln!(out)?;
    if report.coverage.rows().iter().any(|(_, table)| table.frames > 0) {
        head(out, "addresses")?;
        for (name, table) in report.coverage.rows() {
            row(out, name, table)?;
        }
    } else {
        writeln!(out, "addresses none recorded")?;
    }
    let managed = report.processes.iter().filter(|p| p.clr_events > 0);
    for process in managed {
        writeln!(out)?;
        write_process(out, process)?;
    }
    write_losses(out, report)?;
    write_unresolved(out, report)?;
    write_enabled(out, report)?;
    let [holds, broken, undecided] =
        [Outcome::Holds, Outcome::Broken, Outcome::Undecided].map(|outcome| report.count(outcome));
    writeln!(out, "\nrules: {holds} hold, {broken} broken, {undecided} undecided")?;
    let left_out = match report.findings_left_out {
        0 => String::new(),
        n => format!(", and {n} left out by the policy"),
    };
    writeln!(out, "findings: {}{left_out}", report.findings.len())?;
    for finding in &report.findings {
        write_finding(out, report, finding, paint)?;
    }
    write_remedies(out, report, paint)
}

fn write_finding(out: &mut String, report: &Report, f: &Finding, paint: Paint) -> fmt::Result {
    let about = f.pid.map_or(String::new(), |pid| format!(" {}", report.process_name(pid)));
    let at = f.time.as_deref().map_or(String::new(), |t| format!(" at {t}"));
    let head = format!("{}{}{at}", paint.strong(f.rule), printable(&about));
    writeln!(out, "  {}{head}", paint.severity(f.severity))?;
    wrap(out, 10, 10, &f.message)?;
    if let Some(location) = f.location(&report.file) {
        wrap(out, 10, 10, &format!("see {location}"))?;
    }
    match &f.because {
        Some(because) => wrap(out, 10, 10, &format!("undecided: {because}")),
        None => Ok(()),
    }
}

/// What to do about the findings above a note, once for each rule.
fn write_remedies(out: &mut String, report: &Report, paint: Paint) -> fmt::Result {
    let matters =
        |id: &str| report.findings.iter().any(|f| f.rule == id && f.severity > Severity::Note);
    // Rules with the same remedy share it.
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
    if !groups.is_empty() {
        writeln!(out, "\nwhat to do")?;
    }
    for (at, (ids, rule)) in groups.iter().enumerate() {
        writeln!(out, "  {}", paint.strong(&ids.join(", ")))?;
        wrap(out, 4, 4, rule.remedy)?;
        let mut before = groups.iter().take(at);
        match before.find(|(_, other)| other.commands == rule.commands) {
            Some((_, other)) if !rule.commands.is_empty() => {
                writeln!(out, "      (the command lines of {})", other.id)?;
            }
            _ => {
                for command in report.commands(rule) {
                    writeln!(out, "      {}", printable(&command))?;
                }
            }
        }
    }
    Ok(())
}

/// What was lost, where and when.
fn write_losses(out: &mut String, report: &Report) -> fmt::Result {
    if report.losses.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nlost")?;
    for loss in report.losses.iter().take(MAX_SHOWN) {
        wrap(out, 2, 6, &loss.message)?;
    }
    match report.losses.len() {
        n if n > MAX_SHOWN => writeln!(out, "  and {} more losses", n - MAX_SHOWN),
        _ => Ok(()),
    }
}

fn write_unresolved(out: &mut String, report: &Report) -> fmt::Result {
    if report.unresolved.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nmost frequent unresolved addresses")?;
    for a in &report.unresolved {
        let what = format!(
            "{:<18} {:>7} times  pid {} {}: {}",
            a.address, a.count, a.pid, a.process, a.message
        );
        wrap(out, 2, 36, &what)?;
    }
    Ok(())
}

/// What the CLR's providers were enabled with.
fn write_enabled(out: &mut String, report: &Report) -> fmt::Result {
    let clr = report.enabled.iter().filter(|e| e.is_clr() && e.mask.is_some());
    let clr: Vec<&EnabledReport> = clr.collect();
    if clr.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nenabled")?;
    for e in &clr {
        let (mask, level) = (e.mask.as_deref().unwrap_or("?"), e.level.unwrap_or(0));
        writeln!(out, "  {:<38}{mask:>14}:{level}  {}", printable(&e.provider), source(e))?;
        for remark in &e.remarks {
            wrap(out, 6, 6, remark)?;
        }
    }
    if clr.iter().any(|e| e.source == "inferred") {
        writeln!(out, "  {INFERRED}")?;
    }
    Ok(())
}

fn head(out: &mut String, name: &str) -> fmt::Result {
    let columns = ["stacks", "frames", "managed", "image", "unresolved", "resolved"];
    let [a, b, c, d, e, f] = columns;
    writeln!(out, "{name:<18}{a:>8}{b:>11}{c:>10}{d:>11}{e:>11}{f:>10}")
}

fn row(out: &mut String, name: &str, t: Tally) -> fmt::Result {
    if t.frames == 0 {
        return Ok(());
    }
    let share = percent(t.frames.saturating_sub(t.unresolved), t.frames);
    writeln!(
        out,
        "{name:<18}{:>8}{:>11}{:>10}{:>11}{:>11}{share:>10}",
        t.stacks, t.frames, t.managed, t.image, t.unresolved
    )
}

fn write_process(out: &mut String, p: &ProcessReport) -> fmt::Result {
    let name = if p.name.is_empty() { "(unknown name)".to_owned() } else { printable(&p.name) };
    writeln!(out, "process {} {name}", p.pid)?;
    for clr in &p.clr_instances {
        let version = clr.version.as_deref().unwrap_or("unknown version");
        let sku = clr.sku.as_deref().map_or(String::new(), |sku| format!("{sku} "));
        writeln!(out, "  CLR {:<6} {sku}{version}", clr.id)?;
    }
    for r in p.rundowns.iter().take(MAX_SHOWN) {
        writeln!(out, "  rundown    {}", rundown(r))?;
    }
    match p.rundowns.len() {
        0 => writeln!(out, "  rundown    none")?,
        n if n > MAX_SHOWN => writeln!(out, "  rundown    and {} more", n - MAX_SHOWN)?,
        _ => {}
    }
    let (r, l, u) = (p.listed, p.loaded, p.unloaded);
    for (name, known, listed, loaded, unloaded) in [
        ("methods", p.methods, r.methods, l.methods, u.methods),
        ("modules", p.modules, r.modules, l.modules, u.modules),
        ("assemblies", p.assemblies, r.assemblies, l.assemblies, u.assemblies),
        ("app domains", p.app_domains, r.app_domains, l.app_domains, u.app_domains),
    ] {
        writeln!(
            out,
            "  {name:<12}{known:>8} known: {listed} listed, {loaded} loaded, {unloaded} unloaded"
        )?;
    }
    if p.coverage.rows().iter().any(|(_, table)| table.frames > 0) {
        head(out, "  addresses")?;
    }
    for (name, table) in p.coverage.rows() {
        row(out, &format!("  {name}"), table)?;
    }
    Ok(())
}

fn rundown(r: &RundownReport) -> String {
    let which = format!("{} of CLR {}", r.kind, r.clr_instance);
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
        let report = Report { verdict: Verdict::Broken, ..Report::default() };
        let plain = render(&report, Paint::Plain);
        let painted = render(&report, Paint::Ansi);
        assert!(!plain.contains('\u{1b}'));
        assert!(painted.contains("\u{1b}[1;31mbroken\u{1b}[0m"));
        let mut stripped = painted.replace("\u{1b}[0m", "");
        for code in ["1;31", "1"] {
            stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn summary_counts_verdicts_first() {
        let one =
            |file: &str, verdict| Report { file: file.to_owned(), verdict, ..Report::default() };
        let reports = [one("a.etl", Verdict::Sound), one("b.etl", Verdict::Broken)];
        let text = summary(&reports, Paint::Plain);
        assert!(text.starts_with("2 traces: 1 broken, 1 sound\n  sound      a.etl\n"), "{text}");
    }
}
