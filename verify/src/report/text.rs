//! The report for people: the verdict first, then coverage, then findings.

use std::fmt::{self, Write};

use super::{Answer, CoverageTable, ProcessReport, Report, Severity, Verdict};

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> fmt::Result {
    let answer = match report.verdict {
        Verdict::Sound => "sound: no rule is broken",
        Verdict::Broken => "broken: see the findings",
        Verdict::Undecided if report.processes.is_empty() => {
            "undecided: no managed code and no address was recorded"
        }
        Verdict::Undecided => "undecided: what was lost may be what is missing",
    };
    writeln!(out, "{}", printable(&report.file))?;
    writeln!(out, "verdict   {answer}")?;
    writeln!(out, "started   {}   records {}", report.start_time, report.records)?;
    writeln!(out)?;
    writeln!(
        out,
        "{:<18}{:>10}{:>12}{:>11}{:>11}{:>12}",
        "addresses", "stacks", "frames", "managed", "image", "unresolved"
    )?;
    for (name, table) in report.coverage.rows() {
        if table.frames > 0 {
            row(out, name, table)?;
        }
    }
    let managed = report.processes.iter().filter(|p| p.clr_events > 0);
    for process in managed {
        writeln!(out)?;
        write_process(out, process)?;
    }
    if !report.offenders.is_empty() {
        writeln!(out, "\nmost frequent unresolved addresses")?;
        for o in &report.offenders {
            let name = printable(&o.name);
            writeln!(
                out,
                "  {:<20} {:>6} times   pid {} {name}: {}",
                o.address, o.count, o.pid, o.cause
            )?;
        }
    }
    let left_out = match report.findings_left_out {
        0 => String::new(),
        n => format!(", and {n} left out by --allow"),
    };
    write_enabled(out, report)?;
    let answered = |answer| report.rules.iter().filter(|r| r.answer == answer).count();
    let (holds, broken, undecided) =
        (answered(Answer::Holds), answered(Answer::Broken), answered(Answer::Undecided));
    writeln!(out, "\nrules: {holds} hold, {broken} broken, {undecided} undecided")?;
    writeln!(out, "findings: {}{left_out}", report.findings.len())?;
    for f in &report.findings {
        let pid = f.pid.map_or(String::new(), |pid| format!(" pid {pid}"));
        let at = f.timestamp.as_deref().map_or(String::new(), |t| format!(" at {t}"));
        writeln!(out, "  {:<8}{}{pid}{at}", f.severity.name(), f.rule)?;
        writeln!(out, "          {}", printable(&f.message))?;
        if let Some(because) = &f.because {
            writeln!(out, "          undecided: {}", printable(because))?;
        }
    }
    write_repairs(out, report)
}

/// What to do about the findings graver than a note, once for each rule.
fn write_repairs(out: &mut String, report: &Report) -> fmt::Result {
    let grave =
        |id: &str| report.findings.iter().any(|f| f.rule == id && f.severity > Severity::Note);
    let mut rules = crate::RULES.iter().filter(|rule| grave(rule.id)).peekable();
    if rules.peek().is_some() {
        writeln!(out, "\nwhat to do")?;
    }
    for rule in rules {
        writeln!(out, "  {:<26}{}", rule.id, rule.repair)?;
    }
    Ok(())
}

/// What the CLR's providers were enabled with.
fn write_enabled(out: &mut String, report: &Report) -> fmt::Result {
    let mut clr = report.enabled.iter().filter(|e| e.is_clr() && e.mask.is_some()).peekable();
    if clr.peek().is_some() {
        writeln!(out, "\nenabled")?;
    }
    for e in clr {
        let (mask, level) = (e.mask.as_deref().unwrap_or("?"), e.level.unwrap_or(0));
        writeln!(out, "  {:<34}{mask:>14} level {level}  {}", printable(&e.name), e.how())?;
    }
    Ok(())
}

fn row(out: &mut String, name: &str, t: CoverageTable) -> fmt::Result {
    writeln!(
        out,
        "{name:<18}{:>10}{:>12}{:>11}{:>11}{:>12}",
        t.stacks, t.frames, t.managed, t.image, t.unresolved
    )
}

fn write_process(out: &mut String, p: &ProcessReport) -> fmt::Result {
    writeln!(out, "process {} {}", p.pid, printable(&p.name))?;
    for clr in &p.clr_instances {
        let version = clr.version.as_deref().unwrap_or("version not told");
        let sku = clr.sku.as_deref().unwrap_or("");
        writeln!(out, "  CLR {:<6} {sku} {version}", clr.id)?;
    }
    for b in &p.brackets {
        let opened = b.opened_at.as_deref().unwrap_or("never began");
        let closed = b.closed_at.as_deref().unwrap_or("never complete");
        writeln!(out, "  rundown    {} of CLR {}: {opened} to {closed}", b.kind, b.clr_instance)?;
    }
    if p.brackets.is_empty() {
        writeln!(out, "  rundown    none")?;
    }
    let columns = [
        ("methods", p.methods, p.enumerated.methods, p.loaded.methods, p.unloaded.methods),
        ("modules", p.modules, p.enumerated.modules, p.loaded.modules, p.unloaded.modules),
        (
            "assemblies",
            p.assemblies,
            p.enumerated.assemblies,
            p.loaded.assemblies,
            p.unloaded.assemblies,
        ),
        (
            "app domains",
            p.app_domains,
            p.enumerated.app_domains,
            p.loaded.app_domains,
            p.unloaded.app_domains,
        ),
    ];
    for (name, known, enumerated, loaded, unloaded) in columns {
        writeln!(
            out,
            "  {name:<12}{known:>8} known: {enumerated} enumerated, {loaded} loaded, {unloaded} unloaded"
        )?;
    }
    for (name, table) in p.coverage.rows() {
        if table.frames > 0 {
            writeln!(
                out,
                "  {name:<16}{:>10} addresses: {} managed, {} image, {} unresolved",
                table.frames, table.managed, table.image, table.unresolved
            )?;
        }
    }
    Ok(())
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
