//! Several runs at once, in one data set or one folder.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{directory, etlkit, names};

fn start(here: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_etlkit"))
        .current_dir(here)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn simulations_into_one_folder_do_not_mix() {
    const FIRST: &str = r#"
process "A.exe" {
    clr "core" version="6.0.100" { assembly "A" { module "C:\\A.dll" { methods 9 } } }
    every "5ms" from="1.1s" until="1.5s" { jit 1 }
}
at "1s" { session "s" file="s.etl" { enable "runtime" keywords=0x8019 level=5 } }
at "2s" { stop "s" }
"#;
    let second = FIRST.replace("A.exe", "Other.exe");
    let here = directory(&[
        ("first.kdl", FIRST.as_bytes()),
        ("second.kdl", second.as_bytes()),
    ]);
    for name in ["first", "second"] {
        let script = format!("{name}.kdl");
        let args = ["synth", &script, "-o", name];
        let said = etlkit(here.path(), &args);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let read = |folder: &str| {
        let mut files = Vec::new();
        for name in names(&here.path().join(folder)) {
            let bytes = std::fs::read(here.path().join(folder).join(&name)).unwrap();
            files.push((name, bytes));
        }
        files
    };
    for _ in 0..4 {
        let mut runs = Vec::new();
        for name in ["first.kdl", "second.kdl", "first.kdl", "second.kdl"] {
            let args = ["synth", name, "-o", "both", "--force"];
            runs.push(start(here.path(), &args));
        }
        for mut run in runs {
            assert!(run.wait().unwrap().success());
        }
        let both = read("both");
        assert!(both == read("first") || both == read("second"));
    }
}

#[cfg(feature = "parquet")]
mod data_sets {
    use super::*;
    use crate::common::{large, trace};

    /// The names of all files of a folder with their contents.
    fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    all.push((name, std::fs::read(&path).unwrap()));
                }
            }
        }
        all.sort();
        all
    }

    /// A trace that differs from others by a number.
    fn numbered(number: u8) -> Vec<u8> {
        let mut bytes = trace();
        let end = bytes.len() - 1;
        bytes[end] = number;
        bytes
    }

    #[test]
    fn exports_into_one_data_set_lose_nothing() {
        let here = tempfile::tempdir().unwrap();
        for number in 0..12 {
            let folder = here.path().join(format!("traces/{}", number % 3));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{number}.etl")), numbered(number)).unwrap();
        }
        let export = ["export", "parquet", "--tables", "events,traces,losses"];
        let whole = [&export[..], &["traces", "-o", "whole"]].concat();
        let said = etlkit(here.path(), &whole);
        assert!(said.code < 2, "{}", said.err);
        for round in 0..3 {
            let set = format!("set{round}");
            let mut runs = Vec::new();
            for folder in ["traces/0", "traces/1", "traces/2", "traces/0"] {
                let args = [&export[..], &[folder, "-o", &set]].concat();
                runs.push(start(here.path(), &args));
            }
            for mut run in runs {
                assert!(run.wait().unwrap().code().unwrap() < 2);
            }
            assert!(contents(&here.path().join(&set)) == contents(&here.path().join("whole")));
        }
    }

    #[test]
    #[cfg(unix)]
    fn exports_that_are_killed_leave_nothing_that_stays() {
        let here = directory(&[("t/large.etl", &large()), ("t/small.etl", &trace())]);
        let export = ["export", "parquet", "--tables", "events,traces", "t", "-o"];
        let said = etlkit(here.path(), &[&export[..], &["whole"]].concat());
        assert!(said.code < 2, "{}", said.err);
        let set = here.path().join("set");
        let mut killed = 0;
        for round in 0..10 {
            let mut run = start(here.path(), &[&export[..], &["set"]].concat());
            // It has begun once its folder is there; then at different times.
            while !set.exists() && run.try_wait().unwrap().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            std::thread::sleep(std::time::Duration::from_millis(40 * round));
            let _ = run.kill();
            killed += u32::from(run.wait().unwrap().code().is_none());
            let said = etlkit(here.path(), &[&export[..], &["set"]].concat());
            assert!(said.code < 2, "{}", said.err);
            assert!(
                contents(&set) == contents(&here.path().join("whole")),
                "{round}"
            );
            std::fs::remove_dir_all(&set).unwrap();
        }
        assert!(killed > 1, "it was always done before");
    }

    #[test]
    fn small_traces_beside_large_ones_are_all_added() {
        /// `ETLKIT_ROUNDS=10` for more.
        const ROUNDS: usize = 1;
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("traces");
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..54 {
            std::fs::write(folder.join(format!("{number}.etl")), numbered(number)).unwrap();
        }
        std::fs::write(folder.join("1-large.etl"), large()).unwrap();
        std::fs::write(folder.join("3-large.etl"), [large(), trace()].concat()).unwrap();
        let rounds = std::env::var("ETLKIT_ROUNDS").ok();
        let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
        for round in 0..rounds {
            for jobs in ["1", "2", "4"] {
                let set = format!("set{round}-{jobs}");
                let args = ["export", "parquet", "traces", "-o", &set, "--jobs", jobs];
                // So little that two traces do not fit together.
                let args = [&args[..], &["--max-memory", "64M"]].concat();
                let said = etlkit(here.path(), &args);
                assert!(
                    said.out.ends_with("56 of 56 traces added\n"),
                    "{}",
                    said.err
                );
                std::fs::remove_dir_all(here.path().join(set)).unwrap();
            }
        }
    }
}
