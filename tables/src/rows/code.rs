//! Modules and methods of .NET.

use etl_analysis::Machine;
use etl_analysis::symbols::{Method, Module};
use etl_format::Ticks;

use super::{CLR, LOADED, OfProcess, UNLOADED, add_process, file_name, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `modules`.
#[derive(Clone, Debug)]
pub struct ModuleRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    clr: u16,
    module: Module<'m>,
    loaded: Option<Ticks>,
    unloaded: Option<Ticks>,
    pdb_guid: String,
}

impl OfProcess for ModuleRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ModuleRow<'_> {
    const NAME: &'static str = "modules";
    const ROW: &'static str = "One module of .NET in a process, from its load to its unload";
    const ABOUT: &'static str =
        "A module that is loaded in several runtimes of a process has a row for each.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ID: Column =
            Column::count("module_id", "Id of the module within its runtime, as bits");
        const NATIVE: Column = Column::new("native_path", Kind::Text, "Path of its native image");
        const ASSEMBLY: Column = Column::new("assembly", Kind::Word, "Full name of its assembly");
        const DOMAIN: Column = Column::new("domain", Kind::Word, "Name of its application domain");
        const PDB: Column = Column::new("pdb_guid", Kind::Text, "GUID of the PDB of its IL");
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.clr)));
        columns.add(ID, |row| Cell::bits(Some(row.module.id)));
        columns.add(
            Column::new("path", Kind::Text, "Path of its IL").or_null(),
            |row| Cell::text(row.module.path),
        );
        columns.add(NATIVE.or_null(), |row| Cell::text(row.module.native_path));
        columns.add(ASSEMBLY.or_null(), |row| Cell::text(row.module.assembly));
        columns.add(DOMAIN.or_null(), |row| Cell::text(row.module.domain));
        columns.add(PDB.or_null(), |row| Cell::text(&row.pdb_guid));
        columns.add(
            Column::count("pdb_age", "Age of that PDB").or_null(),
            |row| Cell::int(row.module.il_pdb.map(|pdb| pdb.age)),
        );
        columns.add(LOADED, |row| Cell::time(row.machine.clock(), row.loaded));
        columns.add(UNLOADED, |row| {
            Cell::time(row.machine.clock(), row.unloaded)
        });
    }
}

/// A row for each module of the selected processes.
#[must_use]
pub fn modules<'m>(machine: &'m Machine, selection: &Selection) -> Vec<ModuleRow<'m>> {
    let symbols = machine.symbols();
    let mut rows = Vec::new();
    for life in symbols.modules() {
        let process = Some(life.clr.process);
        if selection.has_process(process) {
            let pdb = life.module.il_pdb;
            rows.push(ModuleRow {
                machine,
                process: process_label(machine, process),
                clr: life.clr.clr,
                module: life.module,
                loaded: life.loaded,
                unloaded: life.unloaded,
                pdb_guid: pdb.map_or_else(String::new, |pdb| pdb.signature.to_string()),
            });
        }
    }
    rows
}

/// A row of `methods`.
#[derive(Clone, Debug)]
pub struct MethodRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    method: Method<'m>,
}

impl OfProcess for MethodRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for MethodRow<'_> {
    const NAME: &'static str = "methods";
    const ROW: &'static str = "One piece of code of a .NET method, at its addresses for its time";
    const ABOUT: &'static str =
        "A method that is compiled again has a row for each piece of its code.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ID: Column =
            Column::count("method_id", "Id of the method within its runtime, as bits");
        const MODULE: Column = Column::new("module", Kind::Word, "File name of its module");
        const TYPE: Column = Column::new("type", Kind::Word, "Its type, with the namespace");
        const SIGNATURE: Column = Column::new("signature", Kind::Text, "Its signature");
        const TOKEN: Column = Column::count("token", "Its metadata token; 0 if it has none");
        const ADDRESS: Column = Column::address("address", "First address of the code, as bits");
        const JITTED: Column =
            Column::new("jitted", Kind::Bool, "Whether it was compiled at run time");
        const DYNAMIC: Column =
            Column::new("dynamic", Kind::Bool, "Whether it is a dynamic method");
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.method.clr)));
        columns.add(ID, |row| Cell::bits(Some(row.method.id)));
        columns.add(
            Column::count("module_id", "Its module, in `modules`").or_null(),
            |row| Cell::bits(row.method.module.map(|module| module.id)),
        );
        columns.add(MODULE.or_null(), |row| {
            Cell::text(
                row.method
                    .module
                    .map_or("", |module| file_name(module.path)),
            )
        });
        columns.add(TYPE.or_null(), |row| Cell::text(row.method.namespace));
        columns.add(
            Column::new("method", Kind::Text, "Its name").or_null(),
            |row| Cell::text(row.method.name),
        );
        columns.add(SIGNATURE.or_null(), |row| Cell::text(row.method.signature));
        columns.add(TOKEN, |row| Cell::int(Some(row.method.token)));
        columns.add(ADDRESS, |row| Cell::bits(Some(row.method.start)));
        columns.add(Column::bytes("size_bytes", "Size of the code"), |row| {
            Cell::bits(Some(row.method.end.saturating_sub(row.method.start)))
        });
        columns.add(JITTED, |row| Cell::Bool(row.method.jitted));
        columns.add(DYNAMIC, |row| Cell::Bool(row.method.dynamic));
        columns.add(LOADED, |row| {
            Cell::time(row.machine.clock(), row.method.from)
        });
        columns.add(UNLOADED, |row| {
            Cell::time(row.machine.clock(), row.method.to)
        });
    }
}

/// Passes a row for each piece of code of the selected processes to `add`.
pub fn for_each_method<'m>(
    machine: &'m Machine,
    selection: &Selection,
    mut add: impl FnMut(MethodRow<'m>),
) {
    let symbols = machine.symbols();
    for code in symbols.methods() {
        if selection.has_process(Some(code.process)) {
            add(MethodRow {
                machine,
                process: process_label(machine, Some(code.process)),
                method: code.method,
            });
        }
    }
}
