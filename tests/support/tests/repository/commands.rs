//! README.md's two commands, and where else they have to be the same.

use std::path::Path;

use crate::source::read;

/// The lines of the first block of a page that is marked `sh`, without comments.
fn first_commands(page: &str) -> Vec<String> {
    let text = read(Path::new(page));
    let (_, block) = text.split_once("\n```sh\n").unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    let without_comment = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    block
        .lines()
        .map(without_comment)
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn readme_starts_with_the_main_job_and_the_tests() {
    let commands = first_commands("README.md");
    let [main_job, tests] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert!(
        main_job.starts_with("cargo run --bin etlkit -- synth "),
        "{main_job}"
    );
    assert!(main_job.ends_with(" --verify"), "{main_job}");
    assert_eq!(tests, "cargo test");
}

#[test]
fn contributing_starts_with_the_commands_of_the_readme() {
    let mut expected = first_commands("README.md");
    expected.push(".ci/run".to_owned());
    assert_eq!(first_commands("CONTRIBUTING.md"), expected);
}

/// `scripts/page_commands.py` takes the commands from the pages. It has to come before the steps
/// that install programs and build with all features.
#[test]
fn ci_runs_the_commands_of_the_pages_first() {
    let text = read(Path::new(".ci/run"));
    let first_script = text.find("\nscripts/").unwrap();
    let pages = text.find("\nscripts/page_commands.py\n").unwrap();
    assert_eq!(
        pages, first_script,
        "another script comes before the commands of the pages"
    );
    let first_cargo = text.find("\ncargo ").unwrap();
    assert!(
        pages < first_cargo,
        "a build with all features comes before the commands of the pages"
    );
}
