//! The pages `docs/rules.md` and `docs/protocol.md` against the rules.

use etl_test_support::root;
use etl_verify::RULES;

fn page(name: &str) -> String {
    let path = root().join("docs").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.replace("\r\n", "\n")
}

#[test]
fn rules_page_is_up_to_date() {
    let made = etl_verify::rules_page();
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(root().join("docs/rules.md"), &made).unwrap();
    }
    let hint = "docs/rules.md is not up to date: run with ETLKIT_WRITE_DOCS=1";
    assert!(page("rules.md") == made, "{hint}");
    // Command lines are not wrapped.
    let tools = ["xperf", "dotnet-trace", "curl"];
    for line in made.lines() {
        let is_command = tools.iter().any(|tool| line.trim_start().starts_with(tool));
        let is_row = line.starts_with('|');
        assert!(
            is_command || is_row || line.chars().count() <= 100,
            "{line}"
        );
    }
}

#[test]
fn protocol_defines_every_cited_fact() {
    let page = page("protocol.md");
    let mut cited = 0;
    for rule in RULES {
        for id in rule.protocol {
            let anchor = format!("<a id=\"{}\"></a>\n### {id}: ", id.to_ascii_lowercase());
            assert_eq!(page.matches(&anchor).count(), 1, "{} cites {id}", rule.id);
            assert!(rule.explain().contains(id), "{} names {id}", rule.id);
            cited += 1;
        }
    }
    assert!(cited > 40, "{cited}");
}

#[test]
fn protocol_states_evidence_for_every_fact() {
    let page = page("protocol.md");
    for fact in page.split("\n### ").skip(1) {
        let title = fact.lines().next().unwrap_or_default();
        assert!(fact.contains("\nEvidence: "), "{title} has no evidence");
    }
}
