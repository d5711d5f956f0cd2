//! Tables about .NET: modules, methods, collections.

use super::facts::{PROCESS, PROCESS_ID};
use super::{TRACE, Table};
use crate::column::{Column, Kind};

/// Modules of .NET.
pub const MODULES: Table = Table {
    name: "modules",
    row: "One module of .NET in a process, from its load to its unload",
    about: "A module that is loaded in several runtimes of a process has a row for each.",
    columns: &[
        TRACE,
        PROCESS_ID,
        PROCESS,
        Column::new("clr", Kind::Int32, "Number of the runtime in the process"),
        Column::new("module_id", Kind::Int64, "Id of the module within its runtime, as bits"),
        Column::new("path", Kind::Text, "Path of its IL").or_null(),
        Column::new("native_path", Kind::Text, "Path of its native image").or_null(),
        Column::new("assembly", Kind::Word, "Full name of its assembly").or_null(),
        Column::new("domain", Kind::Word, "Name of its application domain").or_null(),
        Column::new("pdb_guid", Kind::Text, "GUID of the PDB of its IL").or_null(),
        Column::new("pdb_age", Kind::Int64, "Age of that PDB").or_null(),
        Column::new("loaded", Kind::Time, "When it was loaded; null for before the trace")
            .unit("µs")
            .or_null(),
        Column::new("unloaded", Kind::Time, "When it was unloaded; null for after the trace")
            .unit("µs")
            .or_null(),
    ],
};

/// Code of methods.
pub const METHODS: Table = Table {
    name: "methods",
    row: "One piece of code of a .NET method, at its addresses for its time",
    about: "A method that is compiled again has a row for each piece of its code.",
    columns: &[
        TRACE,
        PROCESS_ID,
        PROCESS,
        Column::new("clr", Kind::Int32, "Number of the runtime in the process"),
        Column::new("method_id", Kind::Int64, "Id of the method within its runtime, as bits"),
        Column::new("module_id", Kind::Int64, "Its module, in `modules`").or_null(),
        Column::new("module", Kind::Word, "File name of its module").or_null(),
        Column::new("type", Kind::Word, "Its type, with the namespace").or_null(),
        Column::new("method", Kind::Text, "Its name").or_null(),
        Column::new("signature", Kind::Text, "Its signature").or_null(),
        Column::new("token", Kind::Int64, "Its metadata token; 0 for what has none"),
        Column::new("address", Kind::Int64, "First address of the code, as bits"),
        Column::new("size", Kind::Int64, "Size of the code").unit("bytes"),
        Column::new("jitted", Kind::Bool, "Whether it was compiled at run time"),
        Column::new("dynamic", Kind::Bool, "Whether it is a dynamic method"),
        Column::new("loaded", Kind::Time, "Since when it was there; null for before the trace")
            .unit("µs")
            .or_null(),
        Column::new("unloaded", Kind::Time, "Until when; null for to the end of the trace")
            .unit("µs")
            .or_null(),
    ],
};

/// Garbage collections.
pub const GCS: Table = Table {
    name: "gcs",
    row: "One garbage collection of .NET, in the order in which they started",
    about: "As `analyze gc` reports them.",
    columns: &[
        TRACE,
        PROCESS_ID,
        PROCESS,
        Column::new("clr", Kind::Int32, "Number of the runtime in the process"),
        Column::new("number", Kind::Int64, "Number of the collection in its runtime"),
        Column::new("generation", Kind::Int32, "Oldest generation that it collects"),
        Column::new("reason", Kind::Word, "Why, by its name or its number"),
        Column::new("type", Kind::Word, "Its type, by its name or its number"),
        Column::new("started", Kind::Time, "When it started").unit("µs"),
        Column::new("ended", Kind::Time, "When it ended; null where the trace does not show it")
            .unit("µs")
            .or_null(),
        Column::new(
            "pauses",
            Kind::Int64,
            "How often the threads of the process were suspended for it",
        ),
        Column::new(
            "paused",
            Kind::Float64,
            "For how long: from the beginning of each suspension to the end of the restart",
        )
        .unit("µs"),
        Column::new("promoted", Kind::Int64, "Bytes that were promoted").unit("bytes").or_null(),
        Column::new("heap", Kind::Int64, "Size of all generations when it ended")
            .unit("bytes")
            .or_null(),
        Column::new("gen0", Kind::Int64, "Size of generation 0 when it ended")
            .unit("bytes")
            .or_null(),
        Column::new("gen1", Kind::Int64, "Size of generation 1").unit("bytes").or_null(),
        Column::new("gen2", Kind::Int64, "Size of generation 2").unit("bytes").or_null(),
        Column::new("loh", Kind::Int64, "Size of the heap of large objects")
            .unit("bytes")
            .or_null(),
        Column::new("poh", Kind::Int64, "Size of the heap of pinned objects")
            .unit("bytes")
            .or_null(),
        Column::new(
            "allocated",
            Kind::Int64,
            "Allocated since the collection before, to about 100 KB for each heap",
        )
        .unit("bytes"),
    ],
};
