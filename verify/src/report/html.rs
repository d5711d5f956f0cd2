//! The report as one HTML page without external resources.
//!
//! Everything from the trace passes [`printable`] and the template's escaping.

use askama::Template;
use etl_analysis::address::Tally;
use etl_format::FileTime;

use super::words::{INFERRED, duration, resolved, time_of_day};
use super::{Coverage, CoverageRow, EnabledReport, Report, SessionKind, Severity, Verdict};
use crate::finding::Outcome;
use crate::rules::Rule;
use crate::share::percent;
use crate::wrap::printable;

/// Processes with a lane in the timeline and a group of bars; the others are counted.
const MAX_LANES: usize = 40;

/// Processes whose lanes and bars are not folded, so that the findings are not far down the page.
const MAX_UNFOLDED_PROCESSES: usize = 8;

/// Groups of bars before those that are folded: all processes, and some of them.
const GROUPS_SHOWN: usize = 1 + MAX_UNFOLDED_PROCESSES;

/// Enabled providers that are not folded; if there are more, those other than the CLR's are.
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

/// Losses that are not folded, so that the timeline is not far down the page.
const UNFOLDED_LOSSES: usize = 5;

/// Losses that are listed; the others are counted.
const MAX_LOSSES: usize = 20;

/// Marks of the axis, at most: more do not fit on a small screen.
const MAX_TICKS: i64 = 5;

/// Marks at round times, from the start. The label of a mark is on its right, so the last tenth of
/// the axis has none.
fn ticks(duration_us: i64) -> Vec<Tick> {
    let whole = duration_us.max(1);
    let powers = std::iter::successors(Some(1_i64), |power| power.checked_mul(10));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|n| power.saturating_mul(n)));
    let step = steps
        .find(|step| whole / step < MAX_TICKS)
        .unwrap_or(whole)
        .max(1);
    let times = (0..MAX_TICKS).map(|n| n.saturating_mul(step));
    let times = times.filter(|at| *at <= whole / 10 * 9);
    times
        .map(|at| Tick {
            x: at as f64 / whole as f64 * 1000.0,
            label: tick_label(at, step),
        })
        .collect()
}

/// A round time in the largest unit in which the step is whole.
fn tick_label(at: i64, step: i64) -> String {
    match step {
        step if step % 1_000_000 == 0 => format!("{} s", at / 1_000_000),
        step if step % 1_000 == 0 => format!("{} ms", at / 1_000),
        _ => format!("{at} \u{b5}s"),
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
    let (version, title) = (env!("CARGO_PKG_VERSION"), names.join(", "));
    Document {
        version,
        title,
        reports,
    }
    .render()
    .unwrap_or_default()
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

/// Known masks: those of the CLR's providers first, many others folded.
fn enabled(report: &Report) -> Vec<(bool, Vec<&EnabledReport>)> {
    let known = report.enabled.iter().filter(|e| e.mask.is_some());
    let (mut clr, mut others): (Vec<_>, Vec<_>) = known.partition(|e| e.is_clr());
    if clr.len() + others.len() <= MAX_UNFOLDED_PROVIDERS {
        clr.append(&mut others);
    }
    let groups = [(false, clr), (true, others)].into_iter();
    groups.filter(|(_, rows)| !rows.is_empty()).collect()
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
    let whole = report.duration_us.max(1);
    let bar = |span: [i64; 2], color, (y, h), title: String| bar(span, whole, color, (y, h), title);
    let mut lanes = Vec::new();
    for s in &report.sessions {
        let color = match s.kind {
            SessionKind::Events if s.name.contains("rundown") => "rundown",
            SessionKind::Events => "named",
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
        let bars = report
            .losses
            .iter()
            .map(|l| bar(l.span_us, "loss", (2, 12), printable(&l.message)));
        lanes.push(Lane {
            name: "lost".to_owned(),
            label: format!("{} losses", report.losses.len()),
            bars: bars.collect(),
        });
    }
    for p in report.described().take(MAX_LANES) {
        let name = format!("{} {}", p.pid, printable(&p.name));
        let life = format!("{name}: {}", when(p.span_us));
        let mut bars = vec![bar(p.span_us, "life", (5, 6), life.clone())];
        for r in &p.rundowns {
            let title = format!(
                "{} rundown of CLR {}: {}",
                r.kind.name(),
                r.clr_instance,
                when(r.span_us)
            );
            bars.push(bar(r.span_us, "rundown", (1, 14), title));
        }
        lanes.push(Lane {
            name,
            label: life,
            bars,
        });
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
    Bar {
        x,
        w: width,
        y,
        h,
        color,
        title,
    }
}

/// Coverage of all processes, then of each.
fn groups(report: &Report) -> Vec<(String, &Coverage)> {
    let all = ("All processes".to_owned(), &report.coverage);
    let each = report.described().take(MAX_LANES);
    let each = each.map(|p| (format!("{} {}", p.pid, printable(&p.name)), &p.coverage));
    std::iter::once(all)
        .chain(each)
        .filter(|(_, c)| c.filled().next().is_some())
        .collect()
}

/// The parts of addresses that resolve to different things, as pieces of one bar.
fn parts(t: &Tally) -> Vec<Bar> {
    let parts = [
        ("named", "managed, named", t.named),
        (
            "managed",
            "managed, not named",
            t.managed.saturating_sub(t.named),
        ),
        ("image", "image, PDB known", t.identified),
        (
            "unknown-image",
            "image, PDB not known",
            t.image.saturating_sub(t.identified),
        ),
        ("miss", "unresolved", t.unresolved),
    ];
    let mut x = 0.0;
    let filled = parts.into_iter().filter(|(_, _, count)| *count > 0);
    let bar = |(color, what, count)| {
        let w = count as f64 / t.frames.max(1) as f64 * 1000.0;
        let bar = Bar {
            x,
            w,
            y: 0,
            h: 16,
            color,
            title: format!("{what}: {count}"),
        };
        x += w;
        bar
    };
    filled.map(bar).collect()
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
        let short = bar(
            [1_000_000, 1_000_000],
            1_000_000,
            "loss",
            (0, 1),
            String::new(),
        );
        assert_eq!((short.x, short.w), (998.0, 2.0));
        let mut tally = Tally::default();
        (tally.frames, tally.managed, tally.named) = (4, 2, 1);
        (tally.image, tally.unresolved) = (1, 1);
        assert_eq!(parts(&tally).iter().map(|b| b.w).sum::<f64>(), 1000.0);
    }
}
