//! The JSON Schema of the JSON report, generated from its types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use super::{Report, SCHEMA_VERSION};

/// What `etlverify --format json` prints.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Output {
    /// One report.
    One(Box<Report>),
    /// A report for each file.
    Several(Vec<Report>),
}

/// The JSON Schema (draft 7) of what `etlverify --format json` prints, as indented JSON that ends
/// in a line feed: the file `docs/schema/verify-3.json`.
#[must_use]
pub fn report_schema() -> String {
    let settings = SchemaSettings::draft07().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Output>();
    let mut schema = schema.to_value();
    if let Some(root) = schema.as_object_mut() {
        let title = format!("etlverify report, version {SCHEMA_VERSION}");
        root.insert("title".to_owned(), title.into());
    }
    // Doc comments link to items of the code.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    for name in ["MAX_UNRESOLVED", "MAX_TOP"] {
        text = text.replace(&format!("](Report::{name})"), "]");
    }
    for link in ["[`", "`]"] {
        text = text.replace(link, "`");
    }
    text.push('\n');
    text
}
