//! Tables of keyword combinations.

use std::fmt::Write;

use etl_control::clr::tables::{Cell, Table};
use etl_schema::tables::{Registry, TableSet};
use serde_json::json;

use super::{Printed, rows};
use crate::output::text;

pub(super) fn tables(profile: TableSet, level: u8) -> Printed {
    let tables = etl_control::clr::tables::tables(level);
    rows(tables.iter().enumerate().map(|(index, table)| {
        let text = text(|out| {
            if index > 0 {
                writeln!(out)?;
            }
            print(out, profile, level, table)
        });
        let json = json!({
            "title": table.title,
            "provider": table.provider,
            "level": level,
            "columns": table.columns,
            "rows": table.rows.iter().map(|row| json!({
                "mask": row.mask,
                "mask_hex": format!("{:#x}", row.mask),
                "keywords": combination(table, row.mask),
                "cells": row.cells.iter().map(|cell| json!({
                    "shipped": cell.shipped,
                    "documented": cell.documented,
                    "erratum": cell.erratum,
                    "core": cell.core.map(|core| core.raised),
                    "core_erratum": cell.core.map(|core| core.erratum),
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        });
        Printed { text, json }
    }))
}

fn print(out: &mut String, profile: TableSet, level: u8, table: &Table) -> std::fmt::Result {
    writeln!(out, "{}, at level {level}", table.title)?;
    let mut head = vec!["Keywords".to_owned()];
    head.extend(table.columns.iter().map(|c| (*c).to_owned()));
    let mut rows = vec![head];
    for row in &table.rows {
        let mut cells = vec![combination(table, row.mask).join(" + ")];
        cells.extend(row.cells.iter().map(|cell| cell_text(profile, cell)));
        rows.push(cells);
    }
    let mut widths = vec![0; table.columns.len() + 1];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "  {cell:width$}")?;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The value of a cell, and the value of the other tables if it differs.
fn cell_text(profile: TableSet, cell: &Cell) -> String {
    let (here, there, other) = match profile {
        TableSet::Shipped => (cell.shipped, cell.documented, "documents"),
        TableSet::Documented => (cell.documented, cell.shipped, "shipped"),
    };
    let mut text = match cell.erratum {
        Some(id) => format!("{here} ({other}: {there}) [{id}]"),
        None => here.to_owned(),
    };
    if let Some(core) = cell.core
        && profile == TableSet::Shipped
    {
        text.push_str(&format!(" (.NET Core: {}) [{}]", core.raised, core.erratum));
    }
    text
}

fn combination(table: &Table, mask: u64) -> Vec<String> {
    let provider = Registry::builtin().find(table.provider);
    let names = provider
        .map(|p| p.keyword_names(mask).names)
        .unwrap_or_default();
    names.into_iter().map(str::to_owned).collect()
}
