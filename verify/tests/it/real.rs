//! Reports on real traces, against a second, naive computation and
//! `reports/real-trace-findings.md`.

use etl_format::ProcessId;
use std::collections::{BTreeMap, BTreeSet};

use etl_format::cursor::Bytes;
use etl_format::read::{Options, Order, Record, Trace};
use etl_format::rewrite::merge::Merger;
use etl_test_support::{needs, trace};
use etl_verify::{Enumeration, Report, Severity, Tally, UnresolvedCause, Verdict, Verifier};

const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";

/// Ranges of addresses that ever existed, by process: blind to time.
#[derive(Default)]
struct Ever {
    ranges: BTreeMap<u32, Vec<(u64, u64)>>,
}

impl Ever {
    fn add(&mut self, pid: u32, start: u64, size: u64) {
        self.ranges
            .entry(pid)
            .or_default()
            .push((start, start + size));
    }

    fn finish(&mut self) {
        for ranges in self.ranges.values_mut() {
            ranges.sort_unstable();
            ranges.dedup();
        }
    }

    fn covers(&self, pid: u32, address: u64) -> bool {
        self.ranges.get(&pid).is_some_and(|ranges| {
            let at = ranges.partition_point(|&(start, _)| start <= address);
            // Images are the larger ranges and do not nest; a handful of neighbours is enough.
            ranges[at.saturating_sub(8)..at]
                .iter()
                .any(|&(_, end)| address < end)
        })
    }
}

fn verify(bytes: &[u8], name: &str) -> etl_verify::Result<Report> {
    Verifier::new().verify(bytes, name)
}

fn for_each(bytes: &[u8], mut f: impl FnMut(&Record<'_>)) {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        f(&record);
    }
}

/// Counts CLR stacks and samples in two passes: first all methods, images and threads, then the
/// addresses. Shares no code with the verifier.
fn naively(bytes: &[u8]) -> (Tally, Tally) {
    let (mut code, mut images) = (Ever::default(), Ever::default());
    let mut threads = BTreeMap::new();
    for_each(bytes, |r| {
        let p = r.payload();
        let wide = r.kind().to_string().ends_with("64");
        let pointer = |at: usize| {
            if wide {
                p.u64_at(at)
            } else {
                p.u32_at(at).map(u64::from)
            }
        };
        match (r.hook(), r.descriptor()) {
            (Some(0x030a | 0x1402..=0x1404), _) => {
                let width = if wide { 8 } else { 4 };
                let pid = p.u32_at(2 * width).unwrap();
                images.add(pid, pointer(0).unwrap(), pointer(width).unwrap());
            }
            (Some(0x0501..=0x0504), _) => {
                threads.insert(p.u32_at(4).unwrap(), p.u32_at(0).unwrap());
            }
            (_, Some(d)) => {
                let provider = r.provider().unwrap().to_string();
                let method = provider == RUNTIME && (141..=144).contains(&d.id)
                    || provider == RUNDOWN && (141..=144).contains(&d.id);
                if method {
                    let size = u64::from(p.u32_at(24).unwrap());
                    code.add(r.process_id().unwrap().get(), p.u64_at(16).unwrap(), size);
                }
            }
            _ => {}
        }
    });
    code.finish();
    images.finish();
    let (mut stacks, mut samples) = (Tally::default(), Tally::default());
    let count = |table: &mut Tally, pid: u32, address: u64| {
        table.frames += 1;
        if code.covers(pid, address) {
            table.managed += 1;
        } else if [pid, 0, 4].iter().any(|&p| images.covers(p, address)) {
            table.image += 1;
        } else {
            table.unresolved += 1;
        }
    };
    for_each(bytes, |r| {
        let p = r.payload();
        let width = if r.kind().to_string().ends_with("64") {
            8
        } else {
            4
        };
        let address = |a: &[u8]| {
            if width == 8 {
                a.u64_at(0)
            } else {
                a.u32_at(0).map(u64::from)
            }
        };
        if r.hook() == Some(0x0f2e) {
            samples.stacks += 1;
            let tid = p.u32_at(width).unwrap();
            let pid = if tid == 0 { 0 } else { threads[&tid] };
            count(&mut samples, pid, address(p).unwrap());
        }
        let clr = r.provider().is_some_and(|g| g.to_string() == RUNTIME);
        if clr && r.descriptor().is_some_and(|d| d.id == 82) {
            stacks.stacks += 1;
            for a in p[8..].chunks_exact(width) {
                count(
                    &mut stacks,
                    r.process_id().unwrap().get(),
                    address(a).unwrap(),
                );
            }
        }
    });
    (stacks, samples)
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn verify_agrees_with_a_naive_count_on_a_merged_trace() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let bytes = std::fs::read(path).unwrap();
    let report = verify(bytes.as_slice(), "net.4.5.2.x64.etl").unwrap();
    // Threads change nothing.
    for threads in 2..=4 {
        let mut verifier = Verifier::new().threads(threads);
        let other = verifier
            .verify(bytes.as_slice(), "net.4.5.2.x64.etl")
            .unwrap();
        assert_eq!(other.json(), report.json());
    }

    // Addresses: equal to the naive count, and to figures that were computed elsewhere.
    let (stacks, samples) = naively(&bytes);
    let where_found = |mut t: Tally| {
        (t.named, t.identified) = (0, 0);
        t
    };
    assert_eq!(where_found(report.coverage.clr_stacks), stacks);
    assert_eq!(where_found(report.coverage.samples), samples);
    // The sessions were verbose, and the trace was merged on its machine.
    let coverage = report.coverage.clr_stacks;
    assert_eq!(
        (coverage.named, coverage.identified),
        (coverage.managed, coverage.image)
    );
    let figures = |t: Tally| [t.stacks, t.frames, t.managed, t.image, t.unresolved];
    assert_eq!(figures(stacks), [14_983, 337_030, 30_259, 306_740, 31]);
    assert_eq!(figures(samples), [79_528, 79_528, 4_494, 74_850, 184]);
    // Stacks by key and in place: 252 + 2,061 + 7,046 records of hooks 0x1820, 0x1825 and 0x1826.
    assert_eq!(report.coverage.kernel_stacks.stacks, 9_359);

    // Two rundowns of the collecting process: first of its modules, then of its methods.
    let perfview = report.processes.iter().find(|p| p.pid == 3988).unwrap();
    assert_eq!(perfview.name, "PerfView.exe");
    assert_eq!(perfview.rundowns.len(), 2);
    assert!(perfview.rundowns.iter().all(|r| r.kind == Enumeration::End));
    // Enumerated: 16,702 MethodDCEndVerbose, 27 ModuleDCEnd, 27 AssemblyDCEnd, 2 AppDomainDCEnd.
    let e = perfview.listed;
    assert_eq!(
        (e.methods, e.modules, e.assemblies, e.app_domains),
        (16_702, 27, 27, 2)
    );
    assert_eq!(perfview.loaded.methods, 2);
    assert_eq!(
        perfview
            .clr_instances
            .iter()
            .map(|c| c.id)
            .collect::<Vec<_>>(),
        [11]
    );

    // The profiled process ended before the rundown: what is known of it are 288 jitted methods.
    let test = report.processes.iter().find(|p| p.pid == 3676).unwrap();
    assert_eq!(test.name, "Test.x64.exe");
    assert!(test.rundowns.is_empty());
    assert_eq!(
        (test.loaded.methods, test.unloaded.methods, test.methods),
        (288, 288, 288)
    );
    // It lived and ended in the session, whose load events are all there.
    assert!(
        report
            .findings
            .iter()
            .all(|f| f.rule != "rundown.process-exited")
    );

    // A few addresses belong to nothing (stubs that the runtime generates, freed memory): these are
    // notes.
    assert_eq!(report.verdict, Verdict::Complete);
    assert!(
        report.findings.iter().all(|f| f.severity == Severity::Note),
        "{}",
        report.text()
    );
    let rules: BTreeSet<_> = report.findings.iter().map(|f| f.rule).collect();
    let expected = [
        "activity.no-stop",
        "merge.gap",
        "payload.long",
        "symbols.wrong-time",
        "symbols.no-module-pdb",
        "symbols.unresolved",
    ];
    assert_eq!(rules, BTreeSet::from(expected));
    let mut shown = 0;
    for finding in report.findings.iter().filter(|f| f.offset.is_some()) {
        let (mut there, mut clock) = (false, None);
        for_each(&bytes, |r| {
            // The first record is the header.
            let clock = *clock.get_or_insert_with(|| {
                Trace::open(bytes.as_slice(), &Options::default())
                    .unwrap()
                    .clock()
            });
            let time = clock.time(r.timestamp());
            let place = r.location();
            there |= finding.time == Some(time)
                && (finding.offset, finding.processor)
                    == (Some(place.buffer_offset), Some(place.processor));
        });
        assert!(there, "{finding:?}");
        shown += 1;
    }
    // Only the first few notes are located.
    assert!(
        shown >= 6,
        "{shown} of {} findings have a location",
        report.findings.len()
    );
    let worst = &report.unresolved[0];
    assert_eq!(
        (worst.pid, worst.address.as_str(), worst.count),
        (3988, "0x187a08e", 208)
    );
}

#[needs(trace = "perfview/gcrundownevents.etl")]
#[test]
fn verify_finds_nothing_in_an_unmerged_rundown() {
    let path = trace("perfview/gcrundownevents.etl");
    let report = verify(
        std::fs::read(path).unwrap().as_slice(),
        "gcrundownevents.etl",
    )
    .unwrap();
    assert_eq!(report.verdict, Verdict::Complete);
    assert!(report.findings.is_empty());
    let [process] = report.processes.as_slice() else {
        panic!("one process")
    };
    assert_eq!(process.rundowns.len(), 2);
    assert_eq!(
        (process.methods, process.modules, process.assemblies),
        (80, 7, 7)
    );
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn verify_finds_a_rundown_that_is_cut_short() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let bytes = std::fs::read(path).unwrap();
    // The rundown's methods are the last thing in the file.
    let report = verify(&bytes[..bytes.len() - 300_000], "cut.etl").unwrap();
    assert_eq!(report.verdict, Verdict::Incomplete);
    let rules: BTreeSet<_> = report.findings.iter().map(|f| f.rule).collect();
    assert!(rules.contains("file.damaged"), "{rules:?}");
    assert!(rules.contains("rundown.unclosed"), "{rules:?}");
}

/// The rows of reports/real-trace-findings.md: rule, and the process that it is about.
fn explained(page: &str) -> Vec<(String, Option<u32>)> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, rule, processes, what, ..] = cells.as_slice() else {
            panic!("{line}")
        };
        assert!(what.len() > 40, "{rule} is not explained");
        let rule = rule.trim_matches('`').to_owned();
        // Ids, perhaps followed by a name, or a name alone.
        let id = |text: &str| {
            text.split_whitespace()
                .next()
                .and_then(|word| word.parse().ok())
        };
        let ids: Vec<u32> = processes
            .split(',')
            .filter_map(|text| id(text.trim()))
            .collect();
        if ids.is_empty() {
            rows.push((rule.clone(), None));
        }
        rows.extend(ids.into_iter().map(|id| (rule.clone(), Some(id))));
    }
    rows.sort();
    rows
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn findings_page_explains_every_finding_and_no_other() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let bytes = std::fs::read(path).unwrap();
    let report = verify(bytes.as_slice(), "net.4.5.2.x64.etl").unwrap();
    let page = etl_test_support::root().join("reports/real-trace-findings.md");
    let page = std::fs::read_to_string(page).unwrap().replace("\r\n", "\n");
    let mut found: Vec<_> = report
        .findings
        .iter()
        .map(|f| (f.rule.to_owned(), f.pid.map(ProcessId::get)))
        .collect();
    found.sort();
    assert_eq!(found, explained(&page));
    assert!(page.contains(&format!("reports {} findings", found.len())));
    // Figures of the page that the report has as well.
    let counted = |pid, cause| {
        let process = report.processes.iter().find(|p| p.pid == pid).unwrap();
        process
            .causes
            .iter()
            .find(|c| c.cause == cause)
            .map_or(0, |c| c.addresses)
    };
    let outside = UnresolvedCause::Unknown;
    let all = counted(3676, outside);
    assert!(page.contains(&format!(
        "{all} addresses: 36 (18 samples and their stacks) are in that page again. {} are \
         between 0x7f95eaff100",
        all - 2 * 18
    )));
    // One page of the hardware abstraction layer is all that these processes miss: a sample, and
    // the same address on top of its stack.
    let page_of_hal: u64 = [4, 624, 1188, 1408, 1632, 2876]
        .map(|pid| counted(pid, outside))
        .iter()
        .sum();
    assert!(page.contains(&format!("{} samples of these processes", page_of_hal / 2)));
    assert!(page.contains(&format!(
        "{} samples at as many addresses",
        counted(980, outside) / 2
    )));
    let worst = &report.unresolved[0];
    assert!(page.contains(&format!(
        "{} times the address {}",
        worst.count, worst.address
    )));
    let c = report.coverage.clr_stacks;
    let thousands = |n: u64| format!("{},{:03}", n / 1000, n % 1000);
    for figure in [c.stacks, c.managed, c.image] {
        assert!(page.contains(&thousands(figure)), "{figure}");
    }
}

/// Two sessions of a real recording: the runtime's ended at 00:46:50.7010610, the header of the
/// other begins at 00:46:51.1926903, and its first rundown shortly after.
#[needs(traces)]
#[test]
fn merged_real_sessions_have_the_gap_between_them() {
    let inputs = ["gcevents.etl", "gcrundownevents.etl"];
    let inputs = inputs.map(|name| std::fs::read(trace(&format!("perfview/{name}"))).unwrap());
    let slices = inputs.iter().map(Vec::as_slice).collect();
    let merged = Merger::new().run(slices, Vec::new()).unwrap().output;
    let report = Verifier::new()
        .verify(merged.as_slice(), "merged.etl")
        .unwrap();
    let gap = report
        .findings
        .iter()
        .find(|f| f.rule == "merge.gap")
        .unwrap();
    assert_eq!(
        gap.message,
        "the runtime session ended 0.532 s before the rundown began"
    );
    assert_eq!(gap.severity, Severity::Error);
}
