//! The scripts in the library against those of the directory `corpus`, and the templates.

use std::path::{Path, PathBuf};

use etl_synth::corpus::{CorpusScript, TEMPLATES, include, lock, scripts};
use etl_synth::{Script, Simulation};

/// Files of a directory, by their paths below `top`.
fn files(top: &Path, directory: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(top, &path, out);
        } else if path.file_name().is_none_or(|name| name != "README.md") {
            let name = path
                .strip_prefix(top)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            let text = std::fs::read_to_string(&path)
                .unwrap()
                .replace("\r\n", "\n");
            out.push((name, text));
        }
    }
}

#[test]
fn library_contains_the_files_of_the_corpus() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let corpus = root.join("corpus");
    let mut found = Vec::new();
    files(&corpus, &corpus, &mut found);
    found.sort();
    let mut text = String::new();
    for (path, content) in &found {
        assert!(
            content.ends_with('\n') && !content.contains("\n=== "),
            "{path}"
        );
        text += &format!("=== {path}\n{content}");
    }
    let table = root.join("synth/tables/corpus.txt");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some() {
        std::fs::write(&table, &text).unwrap();
        return;
    }
    let known = std::fs::read_to_string(&table)
        .unwrap()
        .replace("\r\n", "\n");
    let hint = "ETLKIT_WRITE_DOCS=1 cargo test -p etl-synth --test it built_in writes it again";
    assert!(
        known == text,
        "synth/tables/corpus.txt is not the directory corpus: {hint}"
    );
    let names: Vec<&str> = scripts().map(|script| script.name).collect();
    let expected = found
        .iter()
        .filter_map(|(path, _)| path.strip_suffix(".kdl"));
    let expected: Vec<&str> = expected
        .filter(|path| !path.starts_with("parts/"))
        .collect();
    assert_eq!(names, expected);
    assert_ne!(lock(), etl_synth::corpus_lock::CorpusLock::default());
}

#[test]
fn each_script_of_the_library_can_be_read() {
    assert!(scripts().count() > 100);
    for CorpusScript { name, text, .. } in scripts() {
        let parsed = Script::new(name, text).include(&include).parse();
        parsed.unwrap_or_else(|e| panic!("{name}: {e:#?}"));
    }
}

#[test]
fn each_template_makes_a_trace_and_is_commented() {
    for CorpusScript { name, text, .. } in TEMPLATES {
        assert!(text.matches("// ").count() >= 3, "{name} has comments");
        let scenario = Script::new(name, text)
            .parse()
            .unwrap_or_else(|e| panic!("{name}: {e:#?}"));
        assert_eq!(scenario.name, name);
        let files = Simulation::new(&scenario).run_in_memory().unwrap();
        assert!(
            files
                .iter()
                .any(|file| file.name.ends_with(".etl") && file.bytes.len() > 1000)
        );
    }
}

#[test]
fn each_expectation_of_the_corpus_has_a_reason_above_it() {
    let mut expectations = 0;
    for CorpusScript { name, text, .. } in scripts() {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines
            .windows(2)
            .filter(|pair| pair[1].starts_with("expect "))
        {
            let reason = pair[0].strip_prefix("// ");
            assert!(
                reason.is_some_and(|reason| reason.len() > 15),
                "{name}: {}",
                pair[1]
            );
            expectations += 1;
        }
    }
    assert!(expectations > 180, "{expectations}");
}
