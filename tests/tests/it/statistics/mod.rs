//! Compares simulated traces with the real ones that they are modelled on: reports/statistics.md.

mod figures;
mod pairs;

use std::fmt::Write as _;

use etl_synth::Script;
use etl_test_support::{needs, root, trace};

use figures::figures;
use pairs::{PAIRS, Pair};

const ABOUT: &str = "\
# Generated traces compared with real traces

How close simulated traces are to real ones: three real traces of different kinds, each with a
scenario in `benches/scenarios` that is modelled on it. A test computes these figures and fails if
a generated trace differs by more than the last column. etlkit compresses both traces of a pair
(XPRESS, default level). The next record of a processor is the next one in time order.
";

fn real_trace_has_the_figures_of_the_table(pair: &Pair) {
    let found = figures(&std::fs::read(trace(pair.real)).unwrap());
    for (name, figure) in &found {
        println!("{} real (\"{name}\", {figure:.1})", pair.scenario);
    }
    for (name, known, _) in pair.figures {
        let figure = found.get(*name).copied().unwrap_or_default();
        assert!(
            (figure - known).abs() < 0.051,
            "{}: {name}: {figure}, not {known}",
            pair.real
        );
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn merged_trace_has_the_figures_of_the_table() {
    real_trace_has_the_figures_of_the_table(&PAIRS[0]);
}

#[needs(trace = "perfview/diaghub.kernel.1.etl")]
#[test]
fn kernel_trace_has_the_figures_of_the_table() {
    real_trace_has_the_figures_of_the_table(&PAIRS[1]);
}

#[needs(trace = "perfview/gcrundownevents.etl")]
#[test]
fn rundown_trace_has_the_figures_of_the_table() {
    real_trace_has_the_figures_of_the_table(&PAIRS[2]);
}

#[test]
fn generated_traces_are_similar_to_the_real_ones() {
    let (mut page, mut wrong) = (ABOUT.to_owned(), Vec::new());
    for Pair {
        real,
        about,
        scenario,
        file,
        figures: known,
        differences,
    } in PAIRS
    {
        let path = root()
            .join("benches/scenarios")
            .join(format!("{scenario}.kdl"));
        let text = std::fs::read_to_string(path).unwrap();
        let script = Script::new(scenario, &text);
        let parsed = script
            .parse()
            .unwrap_or_else(|errors| panic!("{errors:#?}"));
        let files = etl_synth::Simulation::new(&parsed).run_in_memory().unwrap();
        let simulated = files
            .iter()
            .find(|simulated| simulated.name == *file)
            .unwrap();
        let found = figures(&simulated.bytes);
        let name = real.rsplit('/').next().unwrap();
        write!(
            page,
            "\n## {name} and {scenario}.kdl\n{about}\n\n\
             | figure | real | generated | may differ by |\n|---|---:|---:|---:|\n"
        )
        .unwrap();
        for (name, real, within) in *known {
            let figure = found.get(*name).copied().unwrap_or_default();
            writeln!(
                page,
                "| {name} | {real:.1} | {figure:.1} | {} |",
                within.text()
            )
            .unwrap();
            if !within.holds(*real, figure) {
                wrong.push(format!(
                    "{scenario}: {name}: {figure:.1}, not near {real:.1}"
                ));
            }
        }
        writeln!(page, "\n{differences}").unwrap();
    }
    let path = root().join("reports/statistics.md");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert!(
        known == page,
        "reports/statistics.md is not up to date: run with ETLKIT_WRITE_DOCS=1"
    );
}
