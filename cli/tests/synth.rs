//! `etlkit synth`, as a person runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::etlkit;

/// The recipe of the documents, in a corpus of its own.
fn with_recipe() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/recipe.kdl");
    std::fs::copy(script, directory.path().join("recipe.kdl")).unwrap();
    directory
}

#[test]
fn the_recipe_is_made_and_judged_in_one_step() {
    let directory = with_recipe();
    let args = ["synth", "recipe.kdl", "-o", "out", "--force", "--verify"];
    let said = etlkit(directory.path(), &args);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!("recipe", said.out);
    assert_eq!(etlkit(directory.path(), &args).out, said.out, "once more, the same");
    let other = etlkit(directory.path(), &[&args[..], &["--set", "rundown=0xB8"]].concat());
    assert_eq!(other.code, 1);
    insta::assert_snapshot!("recipe_without_rundown", other.out);
}

#[test]
fn nothing_is_overwritten_unasked() {
    let directory = with_recipe();
    let args = ["synth", "recipe.kdl", "-o", "out"];
    assert_eq!(etlkit(directory.path(), &args).code, 0);
    let before = std::fs::read(directory.path().join("out/recipe.etl")).unwrap();
    let other = etlkit(directory.path(), &[&args[..], &["--seed", "2"]].concat());
    assert_eq!(other.code, 2);
    assert!(other.err.contains("--force overwrites"), "{}", other.err);
    assert_eq!(std::fs::read(directory.path().join("out/recipe.etl")).unwrap(), before);
    assert_eq!(
        etlkit(directory.path(), &[&args[..], &["--seed", "2", "--force"]].concat()).code,
        0
    );
    assert_ne!(std::fs::read(directory.path().join("out/recipe.etl")).unwrap(), before);
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "scenario \"s\"\nprocess \"a.exe\" { treads 4 }\nat \"2 lightyears\" { stop \"x\" }\n";
    std::fs::write(directory.path().join("bad.kdl"), script).unwrap();
    let said = etlkit(directory.path(), &["synth", "--check", "bad.kdl"]);
    assert_eq!(said.code, 2);
    insta::assert_snapshot!("mistakes", said.err);
}
