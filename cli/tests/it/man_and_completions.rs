//! Manual pages and shell completions.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{directory, etlkit, etlverify};

#[test]
fn man_writes_a_page_for_each_command() {
    let here = directory(&[]);
    let said = etlkit(here.path(), &["man", "share/man1"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let mut pages: Vec<_> = std::fs::read_dir(here.path().join("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    assert_eq!(said.out, format!("{} pages in share/man1\n", pages.len()));
    let read =
        |page: &str| std::fs::read_to_string(here.path().join("share/man1").join(page)).unwrap();
    for page in &pages {
        let name = page.strip_suffix(".1").unwrap();
        let (text, typed) = (read(page), name.replace('-', " "));
        assert!(text.contains(&format!(".TH {name} 1")), "{page}");
        assert!(
            text.contains(&format!("\\fB{typed}\\fR")),
            "{page} shows no {typed}"
        );
        assert!(text.contains("\n.SH EXAMPLES\n.nf\n"), "{page}");
        // Every page that is referred to exists.
        for reference in text.lines().filter_map(|line| line.strip_suffix("(1)")) {
            let other = format!("{}.1", reference.replace('\\', ""));
            assert!(pages.contains(&other), "{page} refers to {other}");
        }
    }
    for page in [
        "etlkit.1",
        "etlkit-dump.1",
        "etlkit-spec-mask.1",
        "etlkit-man.1",
        "etlverify.1",
    ] {
        assert!(pages.contains(&page.to_owned()), "{page}: {pages:?}");
    }
    insta::assert_snapshot!("man_pages", pages.join("\n"));
    insta::assert_snapshot!("man_info", read("etlkit-info.1"));
    // Existing pages are replaced, and the printed page equals the written one.
    assert_eq!(etlkit(here.path(), &["man", "share/man1"]).code, 0);
    assert!(
        etlkit(here.path(), &["man"])
            .out
            .contains("etlkit\\-dump(1)")
    );
    // A directory that cannot be created.
    std::fs::write(here.path().join("file"), "").unwrap();
    let said = etlkit(here.path(), &["man", "file"]);
    assert!(
        said.code == 2 && said.err.contains("\nhint: "),
        "{}",
        said.err
    );
}

/// The examples of a help text, which wraps long lines.
fn examples(help: &str) -> String {
    let (_, examples) = help.split_once("\nExamples:\n").unwrap();
    examples.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of a page's examples, as they would be typed.
fn command_lines(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let (_, section) = text.split_once("\n.SH EXAMPLES\n.nf\n").unwrap();
    let (section, _) = section.split_once(".fi\n").unwrap();
    let mut lines = Vec::new();
    for line in section.lines() {
        // roff replaces these characters: hyphens, quotation marks, accents.
        let plain = ["\\-", "\\*(Aq", "\\(ga", "\\(ti", "\\(ha", "\\(rs"]
            .iter()
            .fold(line.to_owned(), |line, escape| line.replace(escape, ""));
        assert!(
            !plain.contains(['-', '\'', '`', '~', '^', '\\']),
            "{}: {line}",
            page.display()
        );
        let escapes = [
            ("\\-", "-"),
            ("\\*(Aq", "'"),
            ("\\(ga", "`"),
            ("\\(ti", "~"),
            ("\\(ha", "^"),
            ("\\(rs", "\\"),
        ];
        lines.push(
            escapes
                .iter()
                .fold(line.to_owned(), |line, (from, to)| line.replace(from, to)),
        );
    }
    lines
}

#[test]
fn synopses_are_the_usage_of_the_help() {
    let here = directory(&[]);
    assert_eq!(etlkit(here.path(), &["man", "."]).code, 0);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for page in entries(here.path()) {
        let text = std::fs::read_to_string(&page).unwrap();
        let (_, synopsis) = text.split_once("\n.SH SYNOPSIS\n").unwrap();
        let (synopsis, _) = synopsis.split_once("\n.SH DESCRIPTION\n").unwrap();
        let help = help_of(here.path(), &page);
        let (_, usage) = help.split_once("Usage: ").unwrap();
        let (usage, _) = usage.split_once("\n\n").unwrap();
        assert_eq!(
            synopsis
                .replace("\\-", "-")
                .replace("\\fB", "")
                .replace("\\fR", ""),
            one_line(usage),
            "{}",
            page.display()
        );
    }
}

/// The help of the command that a page is about.
fn help_of(here: &Path, page: &Path) -> String {
    let name = page.file_stem().unwrap().to_str().unwrap();
    let mut words: Vec<&str> = name.split('-').collect();
    let tool = words.remove(0);
    words.push("--help");
    match tool {
        "etlkit" => etlkit(here, &words).out,
        "etlverify" => etlverify(here, &words).out,
        other => panic!("{other}"),
    }
}

/// The entries of a directory.
fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// roff neither fills nor hyphenates examples, nor replaces characters in them.
#[test]
fn man_examples_equal_help_examples() {
    let here = directory(&[]);
    assert_eq!(etlkit(here.path(), &["man", "pages"]).code, 0);
    let mut seen = 0;
    for page in entries(&here.path().join("pages")) {
        let lines = command_lines(&page);
        assert_eq!(
            lines.join(" "),
            examples(&help_of(here.path(), &page)),
            "{}",
            page.display()
        );
        for line in &lines {
            let typed = line
                .split(' ')
                .any(|word| word == "etlkit" || word == "etlverify");
            assert!(
                typed && !line.starts_with(' '),
                "{}: {line}",
                page.display()
            );
        }
        seen += lines.len();
        let text = std::fs::read_to_string(&page).unwrap();
        // Tables and lists in the notes are literal.
        let mut as_it_stands = false;
        for line in text.lines() {
            as_it_stands = (as_it_stands || line == ".nf") && line != ".fi";
            assert!(
                as_it_stands || !line.starts_with("  "),
                "{}: {line}",
                page.display()
            );
        }
    }
    assert!(seen > 60, "{seen} examples");
}

/// `man` on a terminal of 80 columns does not wrap examples.
#[test]
fn man_examples_are_not_wrapped() {
    let here = directory(&[]);
    assert_eq!(etlkit(here.path(), &["man", "pages"]).code, 0);
    for page in entries(&here.path().join("pages")) {
        for device in ["-Tascii", "-Tutf8"] {
            let shown = Command::new("groff")
                .args(["-man", device, "-rLL=80n"])
                .arg(&page)
                .output();
            let Ok(shown) = shown else {
                eprintln!("\n*** SKIPPED: there is no groff; this test has shown nothing ***\n");
                return;
            };
            let shown = String::from_utf8_lossy(&shown.stdout);
            for example in command_lines(&page) {
                let whole = shown.lines().any(|line| line.trim() == example);
                assert!(whole, "{} {device}: {example}\n{shown}", page.display());
            }
        }
    }
}

/// groff reports what it does not understand.
#[test]
fn man_pages_pass_groff() {
    let here = directory(&[]);
    assert_eq!(etlkit(here.path(), &["man", "."]).code, 0);
    for page in entries(here.path()) {
        let checked = Command::new("groff")
            .args(["-man", "-Tascii", "-ww", "-z"])
            .arg(&page)
            .output();
        let Ok(output) = checked else {
            eprintln!("\n*** SKIPPED: there is no groff; this test has shown nothing ***\n");
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{}: {said}",
            page.display()
        );
    }
}

#[test]
fn completions_exist_for_every_shell() {
    let here = directory(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        for (tool, words) in [
            ("etlkit", &["dump", "merge", "no-mmap", "spec"][..]),
            ("etlverify", &["explain", "sarif"]),
        ] {
            let said = etlkit(here.path(), &["completions", shell, "--tool", tool]);
            assert_eq!((said.code, said.err.as_str()), (0, ""));
            for word in words {
                // Elvish and PowerShell complete options, not their values.
                let lists = !(["powershell", "elvish"].contains(&shell) && *word == "sarif");
                assert!(!lists || said.out.contains(word), "{shell} {tool}: {word}");
            }
            // The shell parses the script, if it is installed.
            let path = here.path().join("script");
            std::fs::write(&path, &said.out).unwrap();
            if let ("bash" | "zsh" | "fish", Ok(output)) =
                (shell, Command::new(shell).arg("-n").arg(&path).output())
            {
                assert!(
                    output.status.success(),
                    "{shell}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }
    let plain = etlkit(here.path(), &["completions", "bash"]).out;
    assert_eq!(
        plain,
        etlkit(here.path(), &["completions", "bash", "--tool", "etlkit"]).out
    );
}

/// bash completes a word as it would at a prompt.
#[test]
fn bash_completion_completes_a_command() {
    let here = directory(&[]);
    let script = etlkit(here.path(), &["completions", "bash"]).out;
    std::fs::write(here.path().join("script"), script).unwrap();
    let ask = "source ./script; COMP_WORDS=(etlkit sp); COMP_CWORD=1; _etlkit etlkit sp etlkit; \
               echo \"${COMPREPLY[@]}\"";
    match Command::new("bash")
        .args(["-c", ask])
        .current_dir(here.path())
        .output()
    {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "spec\n"),
        Err(_) => eprintln!("\n*** SKIPPED: there is no bash; this test has shown nothing ***\n"),
    }
}
