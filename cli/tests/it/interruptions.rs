//! Commands that are stopped by a full disk, a closed pipe or a kill: no incomplete file gets the
//! name of the output, and existing files stay.
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{TOOLS, directory, etlkit, large};

#[test]
fn full_disk_is_reported() {
    let here = directory(&[("t.etl", &large())]);
    for tool in TOOLS {
        let said = etlkit(here.path(), &[tool, &["-o", "/dev/full"]].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{tool:?}");
        assert!(said.err.contains("No space left"), "{tool:?}: {}", said.err);
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let status = Command::new(env!("CARGO_BIN_EXE_etlkit"))
            .current_dir(here.path())
            .args([tool, &["-o", "-"]].concat())
            .stdout(full)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{tool:?}");
    }
}

#[test]
fn closed_output_pipe_is_an_error() {
    use std::io::Read;
    let here = directory(&[("t.etl", &large())]);
    for tool in TOOLS {
        // The reader reads nothing or a part: in both cases the output does not fit into the pipe.
        for most in [0, 100_000] {
            let (mut reader, writer) = std::io::pipe().unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_etlkit"));
            command
                .current_dir(here.path())
                .args([tool, &["-o", "-"]].concat());
            let child = command
                .stdout(writer)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            drop(command);
            let mut head = vec![0; most];
            reader.read_exact(&mut head).unwrap();
            drop(reader);
            let said = crate::common::CommandOutput::from(child.wait_with_output().unwrap());
            assert_eq!(said.code, 2, "{tool:?} {most}: {}", said.err);
            let error = said.err.lines().next().unwrap_or_default().to_owned();
            assert!(
                error.starts_with("error: (standard output): output pipe closed after "),
                "{error}"
            );
            assert!(error.ends_with("; the output is truncated"), "{error}");
            let after: u64 = error.split(' ').find_map(|word| word.parse().ok()).unwrap();
            assert!(after >= most as u64, "{tool:?} {most}: {error}");
            assert!(said.err.contains("\nhint: "), "{}", said.err);
        }
    }
}

#[test]
fn killed_command_leaves_old_or_complete_output() {
    let file = large();
    let here = directory(&[("t.etl", &file)]);
    let at = |name: &str| here.path().join(name);
    for tool in TOOLS {
        let whole = etlkit(
            here.path(),
            &[tool, &["-o", "whole.etl", "--force"]].concat(),
        );
        assert!(whole.code < 2, "{}", whole.err);
        let whole = std::fs::read(at("whole.etl")).unwrap();
        let (mut killed, mut wait) = (0, Duration::ZERO);
        for round in 0..24 {
            std::fs::write(at("out.etl"), b"what was there").unwrap();
            let mut child = Command::new(env!("CARGO_BIN_EXE_etlkit"))
                .current_dir(here.path())
                .args([tool, &["-o", "out.etl", "--force"]].concat())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(wait);
            child.kill().unwrap();
            let done = child.wait().unwrap().code().is_some();
            let out = std::fs::read(at("out.etl")).unwrap();
            assert!(
                out == whole || (out == b"what was there" && !done),
                "{tool:?}"
            );
            killed += u32::from(!done);
            // Kill later each time, until the tool ends before.
            wait = if done {
                wait / 2
            } else {
                wait + Duration::from_millis(1 + round % 3)
            };
        }
        assert!(killed > 3, "{tool:?} was always done before");
        assert_eq!(std::fs::read(at("t.etl")).unwrap(), file, "the input stays");
        // Files that a kill leaves are recognizable as temporary files.
        for entry in std::fs::read_dir(here.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = ["t.etl", "whole.etl", "out.etl"].contains(&name.as_str());
            assert!(
                known || name.starts_with(".etlkit-") && name.ends_with(".part"),
                "{name}"
            );
        }
    }
}

/// No path to the input overwrites it.
#[test]
fn commands_never_overwrite_inputs() {
    let file = large();
    let here = directory(&[("t.etl", &file)]);
    let at = |name: &str| here.path().join(name);
    std::os::unix::fs::symlink("t.etl", at("soft.etl")).unwrap();
    std::fs::hard_link(at("t.etl"), at("hard.etl")).unwrap();
    std::fs::create_dir(at("sub")).unwrap();
    let absolute = at("t.etl");
    let spellings = [
        "t.etl",
        "./t.etl",
        "sub/../t.etl",
        "soft.etl",
        "hard.etl",
        absolute.to_str().unwrap(),
    ];
    for tool in TOOLS {
        for out in spellings {
            let said = etlkit(here.path(), &[tool, &["-o", out, "--force"]].concat());
            assert_eq!(said.code, 2, "{tool:?} to {out}");
            assert!(
                said.err.contains("one of the inputs"),
                "{tool:?} to {out}: {}",
                said.err
            );
        }
    }
    assert_eq!(std::fs::read(at("t.etl")).unwrap(), file);
    assert!(
        std::fs::symlink_metadata(at("soft.etl"))
            .unwrap()
            .is_symlink()
    );
}

/// Whether this process, and so what it starts, ignores Ctrl-C: a shell starts programs in the
/// background like this.
#[cfg(unix)]
fn is_interrupt_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 << 1 != 0)
}

#[test]
#[cfg(unix)]
fn signals_remove_unfinished_files() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::os::unix::process::ExitStatusExt;
    let file = large();
    let here = directory(&[("t.etl", &file)]);
    for (nth, tool) in TOOLS.into_iter().enumerate() {
        let signal = if nth % 2 == 0 && !is_interrupt_ignored() {
            Signal::INT
        } else {
            Signal::TERM
        };
        let (mut ended, mut wait) = (0, Duration::from_millis(2));
        for round in 0..24 {
            let mut child = Command::new(env!("CARGO_BIN_EXE_etlkit"))
                .current_dir(here.path())
                .args([tool, &["-o", "out.etl", "--force"]].concat())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(wait);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let status = child.wait().unwrap();
            let done = status.code().is_some();
            assert!(done || status.signal() == Some(signal.as_raw()), "{tool:?}");
            ended += u32::from(!done);
            let left = crate::common::names(here.path());
            let expected = ["out.etl", "t.etl"];
            assert!(
                left.iter().all(|name| expected.contains(&name.as_str())),
                "{tool:?} {left:?}"
            );
            wait = if done {
                wait / 2
            } else {
                wait + Duration::from_millis(1 + round % 3)
            };
        }
        assert!(ended > 3, "{tool:?} was always done before");
    }
}

/// Programs that `nohup` or the background of a shell starts go on when the others end.
#[test]
#[cfg(target_os = "linux")]
fn ignored_signals_end_nothing() {
    use rustix::process::{Pid, Signal, kill_process};
    let here = directory(&[("t.etl", &large())]);
    for (name, signal) in [
        ("INT", Signal::INT),
        ("HUP", Signal::HUP),
        ("TERM", Signal::TERM),
    ] {
        let script = format!("trap '' {name}; exec \"$0\" compress t.etl -o out.etl --force");
        let mut child = Command::new("sh")
            .current_dir(here.path())
            .args(["-c", &script, env!("CARGO_BIN_EXE_etlkit")])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Until the shell has become the command.
        let comm = format!("/proc/{}/comm", child.id());
        let is_command =
            || std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "etlkit");
        while !is_command() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = kill_process(Pid::from_child(&child), signal);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
    }
}

/// A file that may not grow further is an error; nothing unfinished is left.
#[test]
#[cfg(target_os = "linux")]
fn limit_of_file_sizes_leaves_no_unfinished_file() {
    let here = directory(&[("t.etl", &large())]);
    for tool in TOOLS {
        let script = "ulimit -f 8; exec \"$0\" \"$@\"";
        let said = Command::new("sh")
            .current_dir(here.path())
            .args(["-c", script, env!("CARGO_BIN_EXE_etlkit")])
            .args(tool.iter())
            .args(["-o", "out.etl"])
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{tool:?}: {err}");
        assert_eq!(crate::common::names(here.path()), ["t.etl"], "{tool:?}");
    }
}

/// Commands raise the limit of open files, which is low on many systems. If that is not allowed, a
/// file is opened again for each read.
#[test]
#[cfg(target_os = "linux")]
fn more_files_are_read_than_may_be_open() {
    let bytes = crate::common::trace();
    let here = directory(&[]);
    let mut names = Vec::new();
    for number in 0..300 {
        let name = format!("{number}.etl");
        std::fs::write(here.path().join(&name), &bytes).unwrap();
        names.push(name);
    }
    let mut outputs = Vec::new();
    for limits in [
        "ulimit -n 1024",
        "ulimit -S -n 64",
        "ulimit -n 256",
        "ulimit -n 32",
    ] {
        for command in [
            &["merge", "--no-mmap", "-o", "out.etl", "--force"][..],
            &["dump", "--merge", "--no-mmap"],
        ] {
            let script = format!("{limits}; exec \"$0\" \"$@\"");
            let said = Command::new("sh")
                .current_dir(here.path())
                .args(["-c", &script, env!("CARGO_BIN_EXE_etlkit")])
                .args(command)
                .args(&names)
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&said.stderr);
            let code = said.status.code();
            assert_eq!((code, &*err), (Some(0), ""), "{limits}, {command:?}");
            outputs.push(said.stdout);
        }
        outputs.push(std::fs::read(here.path().join("out.etl")).unwrap());
    }
    for other in outputs.chunks(3) {
        assert!(other == &outputs[..3]);
    }
}
