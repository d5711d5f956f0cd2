//! Links between the pages of the repository.

use std::path::{Path, PathBuf};

use crate::source::{files, read};

/// The lines of a page that are no code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of the links in a page: `[text](target)`.
fn targets(page: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for line in prose(page) {
        for rest in line.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                targets.push(target);
            }
        }
    }
    targets
}

/// The anchors of a page: of its headings, as GitHub makes them, and `<a id="..."></a>`.
fn anchors(page: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    for line in prose(page) {
        if line.starts_with('#') {
            anchors.push(anchor(line.trim_start_matches('#').trim()));
        }
        if let Some((_, rest)) = line.split_once("<a id=\"") {
            anchors.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let mut anchor = String::new();
    for character in heading.to_lowercase().chars() {
        if character == ' ' {
            anchor.push('-');
        } else if character.is_alphanumeric() || "-_".contains(character) {
            anchor.push(character);
        }
    }
    anchor
}

/// What is wrong with a link of a page, if anything is.
fn broken(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let file = if path.is_empty() {
        page.to_owned()
    } else {
        folder.join(path)
    };
    let location = etl_test_support::root().join(&file);
    if !location.exists() {
        return Some(format!("{}: {target} does not exist", page.display()));
    }
    if fragment.is_empty()
        || anchors(&read(&file))
            .iter()
            .any(|anchor| anchor == fragment)
    {
        return None;
    }
    Some(format!("{}: {target} names no heading", page.display()))
}

#[test]
fn links_between_pages_have_targets() {
    let mut wrong = Vec::new();
    for page in files(".", &[".md"]) {
        // Links of templates are made when they are filled in.
        if page
            .components()
            .any(|part| part.as_os_str() == "templates")
        {
            continue;
        }
        let text = read(&page);
        for target in targets(&text) {
            wrong.extend(broken(&page, target));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn index_names_every_page_of_docs() {
    let index = read(Path::new("docs/README.md"));
    let listed = targets(&index);
    for page in files("docs", &[".md"]) {
        let path: PathBuf = page.strip_prefix("docs").unwrap().to_owned();
        let name = path.to_string_lossy().replace('\\', "/");
        assert!(
            name == "README.md" || listed.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[test]
fn anchors_are_made_as_on_github() {
    assert_eq!(anchor("`--format csv`"), "--format-csv");
    assert_eq!(
        anchor("Names of native code: `--symbols`"),
        "names-of-native-code---symbols"
    );
    assert_eq!(
        anchors("# A b\n```\n# code\n```\n## C, d\n<a id=\"e\"></a>"),
        ["a-b", "c-d", "e"]
    );
}
