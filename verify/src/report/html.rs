//! The report as one HTML page without external resources.
//!
//! Everything from the trace passes [`printable`] and the template's escaping.

use askama::Template;

use super::words::{INFERRED, counts, duration, percent, sentence, source, time_of_day};
use super::{Coverage, EnabledReport, Report, Severity};
use crate::facts::Tally;
use crate::finding::{Finding, Outcome};
use crate::rules::Rule;
use crate::wrap::printable;

/// Processes with a lane in the timeline and a group of bars; the others are counted.
const MAX_LANES: usize = 40;

/// Processes whose lanes and bars are not folded, so that the findings are not far down the page.
const MAX_UNFOLDED_PROCESSES: usize = 8;

/// Enabled providers that are not folded; if there are more, those other than the CLR's are.
const MAX_UNFOLDED_PROVIDERS: usize = 8;

#[derive(Template)]
#[template(path = "report.html")]
struct Document {
    version: &'static str,
    inferred: &'static str,
    title: String,
    pages: Vec<Page>,
}

/// One trace.
struct Page {
    file: String,
    verdict: &'static str,
    counts: String,
    sentence: &'static str,
    start: String,
    end: String,
    length: String,
    records: u64,
    holds: usize,
    broken: usize,
    undecided: usize,
    left_out: u64,
    lanes: Vec<Lane>,
    /// Lanes before those that are folded.
    lanes_shown: usize,
    lanes_left_out: usize,
    coverage: Vec<Group>,
    /// Groups before those that are folded.
    groups_shown: usize,
    findings: Vec<FindingRow>,
    unresolved: Vec<AddressRow>,
    enabled: Vec<EnabledGroup>,
    rules: Vec<RuleRow>,
}

/// A row of the timeline.
struct Lane {
    name: String,
    label: String,
    bars: Vec<Bar>,
}

/// A piece of a bar, on a scale of 1000 by 16.
struct Bar {
    x: String,
    w: String,
    y: u8,
    h: u8,
    color: &'static str,
    title: String,
}

struct Group {
    name: String,
    rows: Vec<CoverageRow>,
}

struct CoverageRow {
    name: &'static str,
    frames: u64,
    share: String,
    label: String,
    bars: Vec<Bar>,
}

struct FindingRow {
    rank: u8,
    severity: &'static str,
    open: bool,
    rule: &'static str,
    pid: String,
    pid_key: i64,
    name: String,
    when: String,
    time: String,
    message: String,
    because: String,
    location: String,
    statement: &'static str,
    meaning: &'static str,
    remedy: &'static str,
    commands: Vec<String>,
}

struct AddressRow {
    address: String,
    count: u64,
    pid: u32,
    name: String,
    message: &'static str,
}

/// The CLR's providers, or the others if there are too many to show.
struct EnabledGroup {
    folded: bool,
    rows: Vec<EnabledRow>,
}

struct EnabledRow {
    name: String,
    mask: String,
    keywords: String,
    level: String,
    source: String,
    remarks: Vec<String>,
}

struct RuleRow {
    id: &'static str,
    outcome: &'static str,
    statement: &'static str,
}

pub(super) fn render(reports: &[Report]) -> String {
    let names: Vec<_> = reports.iter().map(|r| printable(&r.file)).collect();
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        inferred: INFERRED,
        title: names.join(", "),
        pages: reports.iter().map(page).collect(),
    };
    // The template only writes strings and numbers into a string, which does not fail.
    document.render().unwrap_or_default()
}

fn page(report: &Report) -> Page {
    let managed = report.processes.iter().filter(|p| p.clr_events > 0).count();
    let lanes = lanes(report);
    Page {
        file: printable(&report.file),
        verdict: report.verdict.name(),
        counts: counts(report),
        sentence: sentence(report),
        start: report.start_time.clone(),
        end: report.end_time.clone(),
        length: duration(report.duration_us),
        records: report.records,
        holds: report.count(Outcome::Holds),
        broken: report.count(Outcome::Broken),
        undecided: report.count(Outcome::Undecided),
        left_out: report.findings_left_out,
        lanes_shown: lanes.len().saturating_sub(managed.min(MAX_LANES)) + MAX_UNFOLDED_PROCESSES,
        lanes,
        lanes_left_out: managed.saturating_sub(MAX_LANES),
        coverage: groups(report),
        groups_shown: 1 + MAX_UNFOLDED_PROCESSES,
        findings: report.findings.iter().map(|f| finding(report, f)).collect(),
        unresolved: report
            .unresolved
            .iter()
            .map(|a| AddressRow {
                address: a.address.clone(),
                count: a.count,
                pid: a.pid,
                name: printable(&a.process),
                message: a.message,
            })
            .collect(),
        enabled: enabled(report),
        rules: report
            .rules
            .iter()
            .filter_map(|r| {
                let statement = Rule::find(r.rule)?.statement;
                Some(RuleRow { id: r.rule, outcome: r.outcome.name(), statement })
            })
            .collect(),
    }
}

/// Known masks: those of the CLR's providers first, many others folded.
fn enabled(report: &Report) -> Vec<EnabledGroup> {
    let row = |e: &EnabledReport| EnabledRow {
        name: printable(&e.provider),
        mask: e.mask.clone().unwrap_or_default(),
        keywords: e.keywords.join(", "),
        level: e.level.map_or_else(String::new, |l| l.to_string()),
        source: source(e),
        remarks: e.remarks.clone(),
    };
    let known = report.enabled.iter().filter(|e| e.mask.is_some());
    let (clr, others): (Vec<_>, Vec<_>) = known.partition(|e| e.is_clr());
    let rows = |list: Vec<&EnabledReport>| list.into_iter().map(row).collect::<Vec<_>>();
    let groups = if clr.len() + others.len() <= MAX_UNFOLDED_PROVIDERS {
        vec![EnabledGroup { folded: false, rows: rows([clr, others].concat()) }]
    } else {
        vec![
            EnabledGroup { folded: false, rows: rows(clr) },
            EnabledGroup { folded: true, rows: rows(others) },
        ]
    };
    groups.into_iter().filter(|group| !group.rows.is_empty()).collect()
}

fn finding(report: &Report, f: &Finding) -> FindingRow {
    let rule = Rule::find(f.rule);
    let named = |pid| report.processes.iter().find(|p| p.pid == pid).map(|p| printable(&p.name));
    let commands = rule.map(|r| report.commands(r)).unwrap_or_default();
    FindingRow {
        rank: match f.severity {
            Severity::Error => 0,
            Severity::Warning => 1,
            Severity::Note => 2,
        },
        severity: f.severity.name(),
        open: !f.is_decided(),
        rule: f.rule,
        pid: f.pid.map_or_else(String::new, |pid| pid.to_string()),
        pid_key: f.pid.map_or(-1, i64::from),
        name: f.pid.and_then(named).unwrap_or_default(),
        when: f.time.clone().unwrap_or_default(),
        time: f.time.as_deref().map_or_else(String::new, time_of_day),
        message: printable(&f.message),
        because: printable(f.because.as_deref().unwrap_or_default()),
        location: printable(&f.location(&report.file).unwrap_or_default()),
        statement: rule.map_or("", |r| r.statement),
        meaning: rule.map_or("", |r| r.meaning),
        remedy: rule.map_or("", |r| r.remedy),
        commands: commands.iter().map(|line| printable(line)).collect(),
    }
}

/// Sessions, losses, and processes with managed code, from start to end, with their rundowns.
fn lanes(report: &Report) -> Vec<Lane> {
    let whole = report.duration_us.max(1);
    let bar = |span: [i64; 2], color, (y, h), title: String| bar(span, whole, color, (y, h), title);
    let mut lanes = Vec::new();
    for s in &report.sessions {
        let color = match s.kind {
            "events" if s.name.contains("rundown") => "rundown",
            "events" => "named",
            _ => "session",
        };
        let title = format!("{}: {}", printable(&s.name), when(s.span_us));
        lanes.push(Lane {
            name: printable(&s.name),
            label: title.clone(),
            bars: vec![bar(s.span_us, color, (2, 12), title)],
        });
    }
    if !report.losses.is_empty() {
        let bars =
            report.losses.iter().map(|l| bar(l.span_us, "loss", (2, 12), printable(&l.message)));
        lanes.push(Lane {
            name: "lost".to_owned(),
            label: format!("{} losses", report.losses.len()),
            bars: bars.collect(),
        });
    }
    for p in report.processes.iter().filter(|p| p.clr_events > 0).take(MAX_LANES) {
        let name = format!("{} {}", p.pid, printable(&p.name));
        let life = format!("{name}: {}", when(p.span_us));
        let mut bars = vec![bar(p.span_us, "life", (5, 6), life.clone())];
        for r in &p.rundowns {
            let title =
                format!("{} rundown of CLR {}: {}", r.kind, r.clr_instance, when(r.span_us));
            bars.push(bar(r.span_us, "rundown", (1, 14), title));
        }
        lanes.push(Lane { name, label: life, bars });
    }
    lanes
}

fn when([from, to]: [i64; 2]) -> String {
    format!("{:.3} s to {:.3} s", from as f64 / 1e6, to as f64 / 1e6)
}

fn bar(
    [from, to]: [i64; 2],
    whole: i64,
    color: &'static str,
    (y, h): (u8, u8),
    title: String,
) -> Bar {
    let at = |us: i64| us as f64 / whole as f64 * 1000.0;
    // A bar is at least wide enough to be seen, and stays within the edge.
    let width = (at(to) - at(from)).max(2.0);
    let x = at(from).min(1000.0 - width).max(0.0);
    Bar { x: format!("{x:.2}"), w: format!("{width:.2}"), y, h, color, title }
}

/// Coverage of all processes, then of each.
fn groups(report: &Report) -> Vec<Group> {
    let mut groups = vec![Group { name: "All processes".to_owned(), rows: rows(&report.coverage) }];
    for p in report.processes.iter().filter(|p| p.clr_events > 0).take(MAX_LANES) {
        let name = format!("{} {}", p.pid, printable(&p.name));
        groups.push(Group { name, rows: rows(&p.coverage) });
    }
    groups.retain(|g| !g.rows.is_empty());
    groups
}

fn rows(coverage: &Coverage) -> Vec<CoverageRow> {
    let filled = coverage.rows().into_iter().filter(|(_, t)| t.frames > 0);
    filled.map(|(name, table)| coverage_row(name, table)).collect()
}

fn coverage_row(name: &'static str, t: Tally) -> CoverageRow {
    let parts = [
        ("named", "managed, named", t.named),
        ("managed", "managed, not named", t.managed.saturating_sub(t.named)),
        ("image", "image, PDB known", t.identified),
        ("unknown-image", "image, PDB not known", t.image.saturating_sub(t.identified)),
        ("miss", "unresolved", t.unresolved),
    ];
    let whole = t.frames.max(1) as f64;
    let mut at = 0.0;
    let mut bars = Vec::new();
    for (color, what, count) in parts.into_iter().filter(|(_, _, count)| *count > 0) {
        let width = count as f64 / whole * 1000.0;
        bars.push(Bar {
            x: format!("{at:.2}"),
            w: format!("{width:.2}"),
            y: 0,
            h: 16,
            color,
            title: format!("{what}: {count}"),
        });
        at += width;
    }
    let resolved = t.frames.saturating_sub(t.unresolved);
    let share = percent(resolved, t.frames);
    let counts = bars.iter().map(|b| b.title.as_str()).collect::<Vec<_>>().join(", ");
    CoverageRow { name, frames: t.frames, share, label: format!("{name}: {counts}"), bars }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    #[test]
    fn html_escapes_everything_from_a_trace() {
        let hostile = "</title><script>alert(1)</script>\" onload=x \u{202e}\u{1b}[31m".to_owned();
        let rule = Rule::find("file.damaged").unwrap();
        let finding = rule.finding(hostile.clone()).undecided(hostile.clone());
        let report = Report {
            file: hostile.clone(),
            findings: vec![finding],
            sessions: vec![SessionReport {
                name: hostile.clone(),
                kind: "session",
                span_us: [0, 10],
                events_lost: None,
            }],
            unresolved: vec![UnresolvedAddress {
                pid: 7,
                process: hostile,
                address: "0x1".to_owned(),
                count: 1,
                cause: crate::UnresolvedCause::Unknown,
                message: "unknown",
            }],
            ..Report::default()
        };
        let page = report.render(Format::Html);
        assert!(!page.contains("<script>alert"));
        assert!(!page.contains("\" onload="));
        assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
        assert!(page.contains("alert(1)"));
        // The page has one script and loads nothing.
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("url("));
    }

    #[test]
    fn bar_stays_on_the_scale() {
        let short = bar([1_000_000, 1_000_000], 1_000_000, "loss", (0, 1), String::new());
        assert_eq!((short.x.as_str(), short.w.as_str()), ("998.00", "2.00"));
        let mut tally = Tally::default();
        (tally.frames, tally.managed, tally.named) = (4, 2, 1);
        (tally.image, tally.unresolved) = (1, 1);
        let row = coverage_row("samples", tally);
        let widths: f64 = row.bars.iter().map(|b| b.w.parse::<f64>().unwrap()).sum();
        assert_eq!((widths, row.share.as_str()), (1000.0, "75.00 %"));
    }
}
