//! docs/rules.md is the table of rules.

#[test]
fn the_page_is_the_table() {
    let path = etl_test_support::root().join("docs/rules.md");
    let written = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    assert_eq!(written, etl_verify::rules_page(), "etlverify --rules > docs/rules.md");
}
