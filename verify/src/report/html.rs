//! The report as one HTML page without external resources.
//!
//! Everything from the trace passes [`printable`] and the template's escaping.

use askama::Template;
use etl_analysis::address::Tally;
use etl_format::FileTime;

use super::words::{INFERRED, duration, resolved, time_of_day};
use super::{
    Coverage, CoverageRow, EnabledReport, ProcessReport, Report, SessionKind, SessionReport,
    Severity, Verdict,
};
use crate::finding::Outcome;
use crate::gates::percent;
use crate::rules::Rule;
use crate::wrap::printable;

/// Processes with a lane in the timeline and a group of bars; the others are counted.
const MAX_LANES: usize = 40;

/// Processes whose lanes and bars are not folded, so that the findings are near the top of the
/// page.
const MAX_UNFOLDED_PROCESSES: usize = 8;

/// Groups of bars before those that are folded: all processes, and some of them.
const GROUPS_SHOWN: usize = 1 + MAX_UNFOLDED_PROCESSES;

/// Enabled providers that are not folded. If there are more, all but the CLR's are folded.
const MAX_UNFOLDED_PROVIDERS: usize = 8;

#[derive(Template)]
#[template(path = "report.html")]
struct Document<'a> {
    version: &'static str,
    title: String,
    reports: &'a [Report],
}

/// A row of the timeline.
struct Lane {
    name: String,
    label: String,
    bars: Vec<Bar>,
}

/// A mark of the axis, on a scale of 1000.
struct Tick {
    x: f64,
    label: String,
}

/// Losses that are not folded, so that the timeline is near the top of the page.
const UNFOLDED_LOSSES: usize = 5;

/// Losses that are listed; the others are counted.
const MAX_LOSSES: usize = 20;

/// Marks of the axis, at most: more do not fit on a small screen.
const MAX_TICKS: i64 = 5;

/// Marks at round times, from the start. The label of a mark is on its right, so the last tenth of
/// the axis has none.
fn ticks(duration_us: i64) -> Vec<Tick> {
    let whole = duration_us.max(1);
    let step = tick_step(whole);
    let mut ticks = Vec::new();
    for n in 0..MAX_TICKS {
        let time = n.saturating_mul(step);
        if time <= whole / 10 * 9 {
            ticks.push(Tick {
                x: time as f64 / whole as f64 * 1000.0,
                label: tick_label(time, step),
            });
        }
    }
    ticks
}

/// The smallest round step that makes few enough marks: 1, 2 or 5 of a power of ten.
fn tick_step(whole: i64) -> i64 {
    for exponent in 0..=18 {
        let power = 10_i64.saturating_pow(exponent);
        for step in [power, power.saturating_mul(2), power.saturating_mul(5)] {
            if whole / step < MAX_TICKS {
                return step;
            }
        }
    }
    whole
}

/// A round time in the largest unit in which the step is whole.
fn tick_label(time: i64, step: i64) -> String {
    match step {
        step if step % 1_000_000 == 0 => format!("{} s", time / 1_000_000),
        step if step % 1_000 == 0 => format!("{} ms", time / 1_000),
        _ => format!("{time} \u{b5}s"),
    }
}

/// A piece of a bar, on a scale of 1000 by 16.
struct Bar {
    x: f64,
    w: f64,
    y: u8,
    h: u8,
    color: &'static str,
    title: String,
}

pub(super) fn render(reports: &[Report]) -> String {
    let names: Vec<_> = reports.iter().map(|r| printable(&r.file)).collect();
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        title: names.join(", "),
        reports,
    };
    document.render().unwrap_or_default()
}

/// The lines of the marks, across a lane.
fn grid(duration_us: i64) -> String {
    ticks(duration_us)
        .iter()
        .map(|tick| format!("M{:.2} 0V16", tick.x))
        .collect()
}

/// The place of a report among others by its verdict: the worst first.
fn order(report: &Report) -> usize {
    let verdict = Verdict::ALL
        .iter()
        .rev()
        .position(|verdict| *verdict == report.verdict);
    if report.error.is_some() {
        0
    } else {
        verdict.unwrap_or_default().saturating_add(1)
    }
}

/// A time without fractions of a second.
fn to_second(time: FileTime) -> String {
    time.to_string()
        .split('.')
        .next()
        .unwrap_or_default()
        .replace('T', " ")
}

/// The class of a verdict.
fn class(report: &Report) -> &'static str {
    if report.error.is_some() {
        "not_checked"
    } else {
        report.verdict.name()
    }
}

/// Enablements that are shown together.
struct EnabledGroup<'a> {
    is_folded: bool,
    rows: Vec<&'a EnabledReport>,
}

/// Enablements with known masks: the CLR's providers first, then the others, folded if they are
/// many.
fn enabled(report: &Report) -> Vec<EnabledGroup<'_>> {
    let mut shown = Vec::new();
    let mut others = Vec::new();
    for enabled in report.enabled.iter().filter(|e| e.mask.is_some()) {
        if enabled.is_clr() {
            shown.push(enabled);
        } else {
            others.push(enabled);
        }
    }
    if shown.len() + others.len() <= MAX_UNFOLDED_PROVIDERS {
        shown.append(&mut others);
    }
    let mut groups = vec![
        EnabledGroup {
            is_folded: false,
            rows: shown,
        },
        EnabledGroup {
            is_folded: true,
            rows: others,
        },
    ];
    groups.retain(|group| !group.rows.is_empty());
    groups
}

/// The order of findings by severity: the most severe first.
fn rank(severity: Severity) -> u8 {
    Severity::Error as u8 - severity as u8
}

/// Lanes before those that are folded.
fn lanes_shown(report: &Report, lanes: &[Lane]) -> usize {
    lanes
        .len()
        .saturating_sub(report.described().take(MAX_LANES).count())
        + MAX_UNFOLDED_PROCESSES
}

/// Sessions, losses, and processes with managed code, from start to end, with their rundowns.
fn lanes(report: &Report) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for session in &report.sessions {
        lanes.push(session_lane(report, session));
    }
    if !report.losses.is_empty() {
        lanes.push(losses_lane(report));
    }
    for process in report.described().take(MAX_LANES) {
        lanes.push(process_lane(report, process));
    }
    lanes
}

fn session_lane(report: &Report, session: &SessionReport) -> Lane {
    let color = match session.kind {
        SessionKind::Events if session.name.contains("rundown") => "rundown",
        SessionKind::Events => "named",
        _ => "session",
    };
    let name = printable(&session.name);
    let title = format!("{name}: {}", when(session.span_us));
    let bar = Bar {
        color,
        title: title.clone(),
        ..Bar::new(report, session.span_us)
    };
    Lane {
        name,
        label: title,
        bars: vec![bar],
    }
}

fn losses_lane(report: &Report) -> Lane {
    let bars = report.losses.iter().map(|loss| Bar {
        color: "loss",
        title: printable(&loss.message),
        ..Bar::new(report, loss.span_us)
    });
    Lane {
        name: "lost".to_owned(),
        label: format!("{} losses", report.losses.len()),
        bars: bars.collect(),
    }
}

fn process_lane(report: &Report, process: &ProcessReport) -> Lane {
    let name = format!("{} {}", process.pid, printable(&process.name));
    let label = format!("{name}: {}", when(process.span_us));
    let mut bars = vec![Bar {
        color: "life",
        title: label.clone(),
        y: 5,
        h: 6,
        ..Bar::new(report, process.span_us)
    }];
    for rundown in &process.rundowns {
        let title = format!(
            "{} rundown of CLR {}: {}",
            rundown.kind.name(),
            rundown.clr_instance,
            when(rundown.span_us)
        );
        bars.push(Bar {
            color: "rundown",
            title,
            y: 1,
            h: 14,
            ..Bar::new(report, rundown.span_us)
        });
    }
    Lane { name, label, bars }
}

/// A span of microseconds in words.
fn when(span_us: [i64; 2]) -> String {
    let [from, to] = span_us.map(|us| us as f64 / 1e6);
    format!("{from:.3} s to {to:.3} s")
}

impl Bar {
    /// A bar without colour and title, over a span of a report's timeline. It is at least wide
    /// enough to be seen, and does not reach beyond the edge.
    fn new(report: &Report, span_us: [i64; 2]) -> Self {
        let whole = report.duration_us.max(1) as f64;
        let [from, to] = span_us.map(|us| us as f64 / whole * 1000.0);
        let width = (to - from).max(2.0);
        Bar {
            x: from.min(1000.0 - width).max(0.0),
            w: width,
            y: 2,
            h: 12,
            color: "",
            title: String::new(),
        }
    }
}

/// The coverage of a process, or of all.
struct CoverageGroup<'a> {
    name: String,
    coverage: &'a Coverage,
}

/// Coverage of all processes, then of each.
fn groups(report: &Report) -> Vec<CoverageGroup<'_>> {
    let mut groups = vec![CoverageGroup {
        name: "All processes".to_owned(),
        coverage: &report.coverage,
    }];
    for process in report.described().take(MAX_LANES) {
        groups.push(CoverageGroup {
            name: format!("{} {}", process.pid, printable(&process.name)),
            coverage: &process.coverage,
        });
    }
    groups.retain(|group| group.coverage.filled().next().is_some());
    groups
}

/// The parts of addresses that resolve to different things, as pieces of one bar.
fn parts(tally: &Tally) -> Vec<Bar> {
    let not_named = tally.managed.saturating_sub(tally.named);
    let not_identified = tally.image.saturating_sub(tally.identified);
    let parts = [
        ("named", "managed, named", tally.named),
        ("managed", "managed, not named", not_named),
        ("image", "image, PDB known", tally.identified),
        ("unknown-image", "image, PDB not known", not_identified),
        ("miss", "unresolved", tally.unresolved),
        ("absent", "native, not recorded", tally.not_recorded),
    ];
    let mut bars = Vec::new();
    let mut x = 0.0;
    for (color, what, count) in parts {
        if count == 0 {
            continue;
        }
        let w = count as f64 / tally.frames.max(1) as f64 * 1000.0;
        bars.push(Bar {
            x,
            w,
            y: 0,
            h: 16,
            color,
            title: format!("{what}: {count}"),
        });
        x += w;
    }
    bars
}

fn titles(bars: &[Bar]) -> String {
    bars.iter()
        .map(|b| b.title.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    #[test]
    fn html_escapes_everything_from_a_trace() {
        let hostile = "</title><script>alert(1)</script>\" onload=x \u{202e}\u{1b}[31m".to_owned();
        let finding = Finding::new("file.damaged", Severity::Error, hostile.clone());
        let finding = Finding {
            because: Some(hostile.clone()),
            ..finding
        };
        let report = Report {
            file: hostile.clone(),
            findings: vec![finding],
            sessions: vec![SessionReport {
                name: hostile.clone(),
                kind: SessionKind::Session,
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
        let broken = Report::unreadable("<i>.etl", "<script>alert(2)</script>");
        let page = super::render(&[report, broken]);
        assert!(!page.contains("<i>") && !page.contains("<script>alert"));
        // The page has one script and loads nothing; its links stay on it.
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains("src=") && !page.contains("url("));
        assert_eq!(
            page.matches("href=").count(),
            page.matches("href=\"#").count()
        );
    }

    #[test]
    fn ticks_are_at_round_times() {
        let labels = |us| {
            ticks(us)
                .into_iter()
                .map(|tick| tick.label)
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(12_582_000), ["0 s", "5 s", "10 s"]);
        assert_eq!(labels(1_000_000), ["0 ms", "500 ms"]);
        assert_eq!(labels(4_900), ["0 ms", "1 ms", "2 ms", "3 ms", "4 ms"]);
        assert_eq!(labels(0), ["0 \u{b5}s"]);
        assert!(ticks(i64::MAX).iter().all(|tick| tick.x <= 900.0));
    }

    #[test]
    fn bar_stays_on_the_scale() {
        let report = Report {
            duration_us: 1_000_000,
            ..Report::default()
        };
        let short = Bar::new(&report, [1_000_000, 1_000_000]);
        assert_eq!((short.x, short.w), (998.0, 2.0));
        let mut tally = Tally::default();
        (tally.frames, tally.managed, tally.named) = (4, 2, 1);
        (tally.image, tally.unresolved) = (1, 1);
        assert_eq!(parts(&tally).iter().map(|b| b.w).sum::<f64>(), 1000.0);
    }
}
