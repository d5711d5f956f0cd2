//! The Rust recipes of docs/cookbook.md. `ETLKIT_WRITE_DOCS=1` copies them into the page.

mod corpus;
mod decoder;
mod decoder_properties;
mod filter;

/// The page with the current text of these files.
fn updated(page: &str) -> String {
    let of =
        |file: &str| std::fs::read_to_string(etl_test_support::root().join("tests").join(file));
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out += "\n";
        let name = line
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix("`:"));
        let file = match name {
            Some(rust) if rust.starts_with("tests/") && rust.ends_with(".rs") => {
                rust.replace("tests/", "tests/it/cookbook/")
            }
            Some(script) if script.starts_with("cases/") => script.to_owned(),
            _ => continue,
        };
        out += lines.next().unwrap();
        out += "\n";
        out += &of(&file).unwrap().replace("\r\n", "\n");
        out += "```\n";
        assert!(lines.any(|line| line == "```"), "{file}: the block ends");
    }
    out
}

#[test]
fn cookbook_page_contains_these_recipes() {
    let path = etl_test_support::root().join("docs/cookbook.md");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("\r\n", "\n");
    // The project of a filter after it has files of the same names.
    let end = text.find("\n## From an empty directory").unwrap();
    let (page, projects) = text.split_at(end + 1);
    let now = updated(page);
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(path, now + projects).unwrap();
        return;
    }
    assert!(
        page == now,
        "docs/cookbook.md is not up to date: run with ETLKIT_WRITE_DOCS=1"
    );
    // Every recipe in Rust is one of them.
    assert_eq!(page.matches("```rust\n").count(), 4);
    assert_eq!(page.matches("`tests/").count(), 4, "{page}");
}
