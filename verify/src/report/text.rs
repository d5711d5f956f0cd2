//! The report for people: the verdict first, then coverage, then findings and what to do about them.
//!
//! Lines end before column 80, but for command lines, which have to be pasteable, and names that cannot be broken.

use std::fmt::{self, Write};

use super::words::{answer, duration, percent, time_of_day};
use super::{
    BracketReport, CoverageTable, EnabledReport, Finding, ProcessReport, Report, Severity, Verdict,
};
use crate::rules::catalogue::Rule;

/// Columns of a terminal as it has always been.
const WIDTH: usize = 80;

/// Brackets of rundowns that are shown of a process, and losses: a rundown that has run away has hundreds.
const SHOWN: usize = 6;

/// Whether words are coloured by what they mean, for terminals.
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

    /// A severity, filled up to a column's width.
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

/// Several verdicts on one page: how many of each, then one line for each trace.
pub(super) fn summary(reports: &[Report], paint: Paint) -> String {
    let mut counts = Vec::new();
    for verdict in [Verdict::Broken, Verdict::Undecided, Verdict::Sound] {
        let count = reports.iter().filter(|r| r.verdict == verdict).count();
        if count > 0 {
            counts.push(format!("{count} {}", verdict.name()));
        }
    }
    let traces = if reports.len() == 1 { "trace" } else { "traces" };
    let mut out = format!("{} {traces}: {}\n", reports.len(), counts.join(", "));
    for report in reports {
        let fill = " ".repeat(11_usize.saturating_sub(report.verdict.name().len()));
        let (verdict, file) = (paint.verdict(report.verdict), printable(&report.file));
        let _ = writeln!(out, "  {verdict}{fill}{file}: {}", answer(report));
    }
    out
}

fn write(report: &Report, paint: Paint, out: &mut String) -> fmt::Result {
    writeln!(out, "{}", printable(&report.file))?;
    writeln!(out, "verdict   {}: {}", paint.verdict(report.verdict), answer(report))?;
    writeln!(out, "started   {}   records {}", report.start_time, report.records)?;
    writeln!(out)?;
    if report.coverage.rows().iter().any(|(_, table)| table.frames > 0) {
        head(out, "addresses")?;
        for (name, table) in report.coverage.rows() {
            row(out, name, table)?;
        }
    } else {
        writeln!(out, "addresses none recorded: there is nothing to resolve")?;
    }
    let managed = report.processes.iter().filter(|p| p.clr_events > 0);
    for process in managed {
        writeln!(out)?;
        write_process(out, process)?;
    }
    write_losses(out, report)?;
    write_offenders(out, report)?;
    write_enabled(out, report)?;
    let (holds, broken, undecided) = report.answers();
    writeln!(out, "\nrules: {holds} hold, {broken} broken, {undecided} undecided")?;
    let left_out = match report.findings_left_out {
        0 => String::new(),
        n => format!(", and {n} left out by --allow"),
    };
    writeln!(out, "findings: {}{left_out}", report.findings.len())?;
    for finding in &report.findings {
        write_finding(out, report, finding, paint)?;
    }
    write_repairs(out, report, paint)
}

fn write_finding(out: &mut String, report: &Report, f: &Finding, paint: Paint) -> fmt::Result {
    let about = f.pid.map_or(String::new(), |pid| format!(" {}", report.process_name(pid)));
    let at = f.timestamp.as_deref().map_or(String::new(), |t| format!(" at {t}"));
    let head = format!("{}{}{at}", paint.strong(f.rule), printable(&about));
    writeln!(out, "  {}{head}", paint.severity(f.severity))?;
    wrapped(out, 10, 10, &f.message)?;
    if let Some(place) = f.place(report) {
        wrapped(out, 10, 10, &format!("shown by {place}"))?;
    }
    match &f.because {
        Some(because) => wrapped(out, 10, 10, &format!("undecided: {because}")),
        None => Ok(()),
    }
}

/// What to do about the findings graver than a note, once for each rule.
fn write_repairs(out: &mut String, report: &Report, paint: Paint) -> fmt::Result {
    let grave =
        |id: &str| report.findings.iter().any(|f| f.rule == id && f.severity > Severity::Note);
    let mut rules = crate::RULES.iter().filter(|rule| grave(rule.id)).peekable();
    if rules.peek().is_some() {
        writeln!(out, "\nwhat to do")?;
    }
    // Rules with the same repair share it; with the same command lines only, those.
    let mut groups: Vec<(Vec<&str>, &Rule)> = Vec::new();
    for rule in rules {
        let same = |(_, other): &&mut (_, &Rule)| {
            other.repair == rule.repair && other.commands() == rule.commands()
        };
        match groups.iter_mut().find(same) {
            Some((ids, _)) => ids.push(rule.id),
            None => groups.push((vec![rule.id], rule)),
        }
    }
    for (at, (ids, rule)) in groups.iter().enumerate() {
        writeln!(out, "  {}", paint.strong(&ids.join(", ")))?;
        wrapped(out, 4, 4, rule.repair)?;
        let mut before = groups.iter().take(at);
        match before.find(|(_, other)| other.commands() == rule.commands()) {
            Some((_, other)) if !rule.commands().is_empty() => {
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
    for loss in report.losses.iter().take(SHOWN) {
        wrapped(out, 2, 6, &loss.to_string())?;
    }
    match report.losses.len() {
        n if n > SHOWN => writeln!(out, "  and {} more losses", n - SHOWN),
        _ => Ok(()),
    }
}

fn write_offenders(out: &mut String, report: &Report) -> fmt::Result {
    if report.offenders.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nmost frequent unresolved addresses")?;
    for o in &report.offenders {
        let what = format!(
            "{:<18} {:>7} times  pid {} {}: {}",
            o.address, o.count, o.pid, o.name, o.cause
        );
        wrapped(out, 2, 36, &what)?;
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
        let how = match e.source {
            "recorded" => {
                e.at.as_deref()
                    .map_or_else(|| "recorded".to_owned(), |at| format!("at {}", time_of_day(at)))
            }
            other => other.to_owned(),
        };
        writeln!(out, "  {:<38}{mask:>14}:{level}  {how}", printable(&e.name))?;
        for remark in &e.remarks {
            wrapped(out, 6, 6, remark)?;
        }
    }
    if clr.iter().any(|e| e.source == "inferred") {
        writeln!(out, "  Inferred are the least mask and level that explain what was seen.")?;
    }
    Ok(())
}

fn head(out: &mut String, name: &str) -> fmt::Result {
    let columns = ["stacks", "frames", "managed", "image", "unresolved", "resolved"];
    let [a, b, c, d, e, f] = columns;
    writeln!(out, "{name:<18}{a:>8}{b:>11}{c:>10}{d:>11}{e:>11}{f:>10}")
}

fn row(out: &mut String, name: &str, t: CoverageTable) -> fmt::Result {
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
    let name = if p.name.is_empty() { "(name not told)".to_owned() } else { printable(&p.name) };
    writeln!(out, "process {} {name}", p.pid)?;
    for clr in &p.clr_instances {
        let version = clr.version.as_deref().unwrap_or("version not told");
        let sku = clr.sku.as_deref().map_or(String::new(), |sku| format!("{sku} "));
        writeln!(out, "  CLR {:<6} {sku}{version}", clr.id)?;
    }
    for b in p.brackets.iter().take(SHOWN) {
        writeln!(out, "  rundown    {}", bracket(b))?;
    }
    match p.brackets.len() {
        0 => writeln!(out, "  rundown    none")?,
        n if n > SHOWN => writeln!(out, "  rundown    and {} more", n - SHOWN)?,
        _ => {}
    }
    let (e, l, u) = (p.enumerated, p.loaded, p.unloaded);
    for (name, known, enumerated, loaded, unloaded) in [
        ("methods", p.methods, e.methods, l.methods, u.methods),
        ("modules", p.modules, e.modules, l.modules, u.modules),
        ("assemblies", p.assemblies, e.assemblies, l.assemblies, u.assemblies),
        ("app domains", p.app_domains, e.app_domains, l.app_domains, u.app_domains),
    ] {
        writeln!(
            out,
            "  {name:<12}{known:>8} known: {enumerated} enumerated, {loaded} loaded, {unloaded} unloaded"
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

fn bracket(b: &BracketReport) -> String {
    let which = format!("{} of CLR {}", b.kind, b.clr_instance);
    let [from, to] = b.span_us;
    match (&b.opened_at, &b.closed_at) {
        (Some(at), Some(_)) => format!("{which} at {at}, {}", duration(to.saturating_sub(from))),
        (Some(at), None) => format!("{which} at {at}, never complete"),
        (None, Some(at)) => format!("{which}, never began, complete at {at}"),
        (None, None) => format!("{which}, neither began nor complete"),
    }
}

/// Text in lines that end before the edge; the first one begins behind `first` spaces, the others behind `rest`.
pub(crate) fn wrapped(out: &mut String, first: usize, rest: usize, text: &str) -> fmt::Result {
    let text = printable(text.trim());
    if text.is_empty() {
        return Ok(());
    }
    write!(out, "{:first$}", "")?;
    let (mut column, mut fresh) = (first, true);
    // What stands in columns is kept as it is: every space is a place to break at, and stays where none is needed.
    for word in text.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column + length > WIDTH - 1 && length > 0 && !fresh {
            out.truncate(out.trim_end().len());
            write!(out, "\n{:rest$}", "")?;
            column = rest;
        }
        out.push_str(word);
        column += word.chars().count();
        fresh = false;
    }
    out.truncate(out.trim_end().len());
    writeln!(out)
}

/// Names come from the trace: nothing of them may act on a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let hidden = c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            let escaped = hidden.then(|| c.escape_unicode());
            escaped.into_iter().flatten().chain((!hidden).then_some(c))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_before_the_edge() {
        let mut out = String::new();
        let text = format!("{} {}", "word ".repeat(40), "x".repeat(90));
        wrapped(&mut out, 2, 6, &text).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines.len() > 3, "{out}");
        assert!(lines.iter().all(|l| l.len() < WIDTH || l.trim().len() == 90), "{out}");
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("      word"), "{out}");
        assert_eq!(out.split_whitespace().count(), 41, "nothing is lost: {out}");
        // Columns stay columns.
        let mut out = String::new();
        wrapped(&mut out, 2, 6, "a    b").unwrap();
        assert_eq!(out, "  a    b\n");
    }

    #[test]
    fn colours_are_put_around_words_only_where_they_are_wanted() {
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
    fn several_verdicts_are_counted_first() {
        let one =
            |file: &str, verdict| Report { file: file.to_owned(), verdict, ..Report::default() };
        let reports = [one("a.etl", Verdict::Sound), one("b.etl", Verdict::Broken)];
        let text = summary(&reports, Paint::Plain);
        assert!(text.starts_with("2 traces: 1 broken, 1 sound\n  sound      a.etl: "), "{text}");
    }
}
