//! The fields of packages that registries and docs.rs show.

use crate::workspace::crates;

/// Fields that each published crate has.
const FIELDS: &[&str] = &[
    "description",
    "license",
    "repository",
    "homepage",
    "documentation",
    "readme",
    "rust_version",
];

#[test]
fn each_published_crate_has_the_fields_of_registries() {
    let mut missing = Vec::new();
    for published in crates() {
        for field in FIELDS {
            if !published.package[field].is_string() {
                missing.push(format!("{}: {field}", published.name));
            }
        }
        if published.package["metadata"]["docs"]["rs"]["all-features"] != true {
            missing.push(format!(
                "{}: [package.metadata.docs.rs] all-features",
                published.name
            ));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
