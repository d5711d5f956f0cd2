//! Verdicts, shares and times in words, as the text and the page print them.

use super::{Report, Severity, Verdict};
use crate::facts::enable::Knowledge;

use super::EnabledReport;

/// What a verdict rests on: `1 error, 2 warnings`.
pub(super) fn answer(report: &Report) -> String {
    match report.verdict {
        Verdict::Sound => match tally(report, true).as_str() {
            "" => "no rule is broken".to_owned(),
            notes => format!("nothing graver than {notes}"),
        },
        Verdict::Broken => {
            let undecided = report.findings.iter().filter(|f| !f.is_decided()).count();
            let open =
                if undecided > 0 { format!(", {undecided} undecided") } else { String::new() };
            tally(report, true) + &open
        }
        Verdict::Undecided if report.processes.is_empty() => {
            "no managed code and no address was recorded".to_owned()
        }
        Verdict::Undecided => {
            format!("what was lost may be what is missing ({})", tally(report, false))
        }
    }
}

/// Findings by severity, decided ones or the others.
fn tally(report: &Report, decided: bool) -> String {
    let words = [
        (Severity::Error, "error", "errors"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ];
    let of = |severity: Severity| {
        let own = report.findings.iter().filter(|f| f.severity == severity);
        own.filter(|f| f.is_decided() == decided).count()
    };
    let counts = words.into_iter().map(|(severity, one, many)| (of(severity), one, many));
    let told = counts.filter(|(n, ..)| *n > 0);
    let told: Vec<_> =
        told.map(|(n, one, many)| format!("{n} {}", if n == 1 { one } else { many })).collect();
    told.join(", ")
}

/// A share in percent, rounded down: only all of it is 100 %.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Microseconds as milliseconds or seconds.
pub(super) fn duration(us: i64) -> String {
    if us.unsigned_abs() < 1_000_000 {
        format!("{:.3} ms", us as f64 / 1e3)
    } else {
        format!("{:.3} s", us as f64 / 1e6)
    }
}

/// The time of day of a moment in ISO 8601, to the millisecond.
pub(super) fn time_of_day(iso: &str) -> String {
    let time = iso.split_once('T').map_or(iso, |(_, time)| time);
    let time = time.trim_end_matches('Z');
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    format!("{seconds}.{thousandths}Z")
}

/// How an enablement is known.
pub(super) fn known_by(e: &EnabledReport) -> String {
    if e.source == Knowledge::Inferred.name() {
        "inferred: the least that explains what was seen".to_owned()
    } else if e.source == Knowledge::Told.name() {
        "as told".to_owned()
    } else {
        e.at.as_deref()
            .map_or_else(|| "recorded".to_owned(), |at| format!("recorded at {}", time_of_day(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_all() {
        assert_eq!(percent(3, 3), "100.00 %");
        assert_eq!(percent(999_999, 1_000_000), "99.99 %");
        assert_eq!(percent(u64::MAX - 1, u64::MAX), "99.99 %");
        assert_eq!(percent(0, 0), "0.00 %");
    }

    #[test]
    fn times() {
        assert_eq!(duration(1_202), "1.202 ms");
        assert_eq!(duration(12_581_000), "12.581 s");
        assert_eq!(time_of_day("2020-07-29T00:07:11.1917366Z"), "00:07:11.191Z");
        assert_eq!(time_of_day("2020-07-29T00:07:11Z"), "00:07:11.000Z");
    }

    #[test]
    fn an_answer_tells_what_it_rests_on() {
        let finding = |severity, answer| crate::Finding {
            rule: "file.damaged",
            severity,
            answer,
            message: String::new(),
            because: None,
            pid: None,
            timestamp: None,
            processor: None,
            offset: None,
            file: None,
            ticks: None,
        };
        let mut report = Report { verdict: Verdict::Sound, ..Report::default() };
        assert_eq!(answer(&report), "no rule is broken");
        report.findings.push(finding(Severity::Note, crate::Answer::Broken));
        assert_eq!(answer(&report), "nothing graver than 1 note");
        report.verdict = Verdict::Broken;
        report.findings.push(finding(Severity::Error, crate::Answer::Broken));
        report.findings.push(finding(Severity::Error, crate::Answer::Undecided));
        assert_eq!(answer(&report), "1 error, 1 note, 1 undecided");
    }
}
