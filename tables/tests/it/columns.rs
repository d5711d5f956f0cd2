//! The names, types and units of columns.

use std::collections::BTreeMap;
use std::fs;

use etl_tables::dataset::{self, Added, Dataset};
use etl_tables::{Column, Options, tables};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{counts, described_late};

/// All tables with their columns.
fn declared() -> Vec<(&'static str, Vec<Column>)> {
    let of_data_sets = tables::ALL
        .iter()
        .map(|table| (table.name, table.data_set_columns()));
    let of_reports = tables::REPORTS
        .iter()
        .map(|table| (table.name, table.columns()));
    of_data_sets.chain(of_reports).collect()
}

#[test]
fn names_are_plain_and_come_once() {
    let all = declared();
    let tables = counts(all.iter().map(|(name, _)| *name));
    assert!(tables.values().all(|&count| count == 1), "{tables:?}");
    for (table, columns) in all {
        let names = counts(columns.iter().map(|column| column.name));
        assert!(names.values().all(|&count| count == 1), "{table}");
        let plain = |name: &str| {
            name.chars()
                .all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
        };
        assert!(names.keys().all(|name| plain(name)), "{table}");
        assert!(
            columns.iter().all(|column| !column.meaning.is_empty()),
            "{table}"
        );
    }
}

#[test]
fn a_name_has_one_type_and_one_unit_in_all_tables() {
    let mut known = BTreeMap::new();
    for (table, columns) in declared() {
        for column in columns {
            let new = (column.kind.sql(), column.unit, table);
            let (sql, unit, first) = *known.entry(column.name).or_insert(new);
            assert_eq!(
                (new.0, new.1),
                (sql, unit),
                "{} of {table} and {first}",
                column.name
            );
        }
    }
}

#[test]
fn names_of_numbers_end_with_their_units() {
    /// The words of `dump`.
    const DUMP: [&str; 2] = ["payload_size", "payload_left"];
    const ENDS: [(&str, &str); 6] = [
        ("µs", "_us"),
        ("bytes", "bytes"),
        ("%", "_percent"),
        ("1/s", "_per_second"),
        ("bytes/s", "_bytes_per_second"),
        ("Hz", "_hz"),
    ];
    for (table, columns) in declared() {
        for column in columns.iter().filter(|column| !DUMP.contains(&column.name)) {
            for (unit, end) in ENDS {
                let has_unit = column.unit == unit;
                // "bytes" of "bytes/s" is another unit.
                if has_unit || unit != "1/s" {
                    assert_eq!(
                        column.name.ends_with(end),
                        has_unit,
                        "{} of {table}",
                        column.name
                    );
                }
            }
        }
    }
}

#[test]
fn fields_of_arrow_have_the_unit_and_the_meaning() {
    let schema = tables::GCS.schema();
    let pause = schema.field_with_name("pause_us").unwrap();
    assert_eq!(pause.metadata()["unit"], "µs");
    assert!(pause.metadata()["meaning"].starts_with("Sum of these suspensions"));
    assert!(
        !schema
            .field_with_name("number")
            .unwrap()
            .metadata()
            .contains_key("unit")
    );
}

#[test]
fn columns_of_parquet_have_the_unit_and_the_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = described_late();
    let hash = dataset::hash(&mut bytes.as_slice()).unwrap();
    let dataset = Dataset::open(folder.path())
        .unwrap()
        .tables(&["gcs"])
        .unwrap();
    let added = dataset
        .add(
            bytes.as_slice(),
            "late.etl",
            &hash,
            Options::new("late.etl"),
        )
        .unwrap();
    assert!(matches!(added, Added::Written { .. }), "{added:?}");
    // The trace has no collection, and the table has its columns all the same.
    let path = folder.path().join("gcs/schema.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let heap = reader
        .schema()
        .field_with_name("heap_bytes")
        .unwrap()
        .clone();
    assert_eq!(heap.metadata()["unit"], "bytes");
    assert_eq!(
        heap.metadata()["meaning"],
        "Size of all generations when it ended"
    );
}
