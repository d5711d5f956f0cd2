//! Exceptions of .NET.

use etl_format::{ProcessId, Ticks};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::symbols::{FunctionNames, Symbol};
use etl_analysis::{Machine, ProcessIndex};

use super::{OfProcess, add_process, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `exceptions`.
#[derive(Clone, Debug)]
pub struct ExceptionRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    exception: &'m str,
    method: String,
    thrown: Thrown<'m>,
}

/// The exceptions of one type that a method threw.
#[derive(Clone, Copy, Debug)]
struct Thrown<'m> {
    count: u64,
    first: Ticks,
    last: Ticks,
    /// The message of the first.
    message: &'m str,
}

impl OfProcess for ExceptionRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ExceptionRow<'_> {
    const NAME: &'static str = "exceptions";
    const ROW: &'static str = "The exceptions of one type that a method of a process threw";
    const ABOUT: &'static str =
        "`analyze exceptions` prints the same rows, the most frequent first.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "exceptions.compare.exceptions",
        counted: "",
        largest: "count",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const TYPE: Column = Column::new("type", Kind::Word, "Type of the exceptions").key();
        const METHOD: Column = Column::new(
            "method",
            Kind::Text,
            "Module and method at the address that the events state; since .NET 10 they state none, \
             and it is the innermost method of their stack",
        )
        .key();
        const MESSAGE: Column = Column::new("message", Kind::Text, "Message of the first");
        add_process(columns);
        columns.add(
            Column::count("count", "How many")
                .sum("count_delta", "count_before", "count_after")
                .heading("count"),
            |row| Cell::int(Some(row.thrown.count)),
        );
        columns.add(TYPE.or_null().heading("type"), |row| {
            Cell::text(row.exception)
        });
        columns.add(METHOD.or_null().heading("thrown in"), |row| {
            Cell::text(&row.method)
        });
        columns.add(
            Column::time("first", "Time of the first").heading("first"),
            |row| Cell::time(row.machine.clock(), Some(row.thrown.first)),
        );
        columns.add(
            Column::time("last", "Time of the last").heading("last"),
            |row| Cell::time(row.machine.clock(), Some(row.thrown.last)),
        );
        columns.add(MESSAGE.or_null().heading("first message"), |row| {
            Cell::text(row.thrown.message)
        });
    }
}

impl ExceptionRow<'_> {
    /// How many exceptions.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.thrown.count
    }
}

/// The throwing code at an address: a method of .NET, or a function of an image.
fn method_label(
    machine: &Machine,
    symbol: Option<Symbol<'_>>,
    functions: Option<&dyn FunctionNames>,
) -> String {
    match symbol {
        Some(symbol @ Symbol::Method(_)) => symbol.to_string(),
        Some(symbol @ Symbol::Image(image)) => {
            let function = functions.and_then(|functions| functions.function(machine, &image));
            let name = match (&function, image.function) {
                (Some(function), _) => &function.name,
                (None, Some(function)) => function.name,
                (None, None) => "?",
            };
            format!("{}!{name}", symbol.file_name())
        }
        _ => "?".to_owned(),
    }
}

/// A row for the exceptions of each selected process, type and throwing method, the most frequent
/// first. `functions` names functions of native code.
#[must_use]
pub fn exceptions<'m>(
    machine: &'m Machine,
    exceptions: &'m Exceptions,
    functions: Option<&dyn FunctionNames>,
    selection: &Selection,
) -> Vec<ExceptionRow<'m>> {
    let symbols = machine.symbols();
    // Several addresses of one method are one row.
    let mut by_method: BTreeMap<(ProcessIndex, &'m str, String), Thrown<'m>> = BTreeMap::new();
    for thrown in exceptions.list() {
        if !selection.has_process(Some(thrown.process)) {
            continue;
        }
        let process = machine.process(thrown.process);
        let pid = process.map_or(u32::MAX, |process| process.pid().get());
        let symbol = thrown.thrower(&symbols, ProcessId::new(pid));
        let method = method_label(machine, symbol, functions);
        let all = by_method
            .entry((thrown.process, &*thrown.exception, method))
            .or_insert(Thrown {
                count: 0,
                first: thrown.first,
                last: thrown.last,
                message: &thrown.message,
            });
        all.count += thrown.count;
        all.last = all.last.max(thrown.last);
        if thrown.first < all.first {
            all.first = thrown.first;
            all.message = &thrown.message;
        }
    }
    let mut rows: Vec<ExceptionRow<'_>> = Vec::with_capacity(by_method.len());
    for ((process, exception, method), thrown) in by_method {
        let process = process_label(machine, Some(process));
        rows.push(ExceptionRow {
            machine,
            process,
            exception,
            method,
            thrown,
        });
    }
    rows.sort_by_key(|row| (Reverse(row.thrown.count), row.thrown.first));
    rows
}

#[cfg(test)]
mod tests {
    use etl_analysis::symbols::{FunctionNames, FunctionOffset, Image, Symbol};
    use etl_analysis::{Analysis, Machine, Recording};

    use super::method_label;

    #[derive(Debug)]
    struct Named;

    impl FunctionNames for Named {
        fn function(&self, _: &Machine, image: &Image<'_>) -> Option<FunctionOffset> {
            let is_inside = image.offset >= 0x100;
            is_inside.then(|| FunctionOffset {
                name: "Cart::add".into(),
                offset: 4,
            })
        }
    }

    fn symbol_at(offset: u64) -> Option<Symbol<'static>> {
        Some(Symbol::Image(Image {
            path: r"C:\App\a+b.dll",
            start: 0x1000,
            end: 0x2000,
            offset,
            kernel: false,
            pdb: None,
            function: None,
        }))
    }

    #[test]
    fn throwing_code_of_images_has_its_function() {
        let mut recording = Recording::open([] as [(&[u8], &str); 0]).unwrap();
        let machine = Analysis::new().run(&mut recording, &mut ()).unwrap();
        assert_eq!(
            method_label(&machine, symbol_at(0x104), Some(&Named)),
            "a+b.dll!Cart::add"
        );
        assert_eq!(
            method_label(&machine, symbol_at(4), Some(&Named)),
            "a+b.dll!?"
        );
        let mut recording = Recording::open([] as [(&[u8], &str); 0]).unwrap();
        let machine = Analysis::new().run(&mut recording, &mut ()).unwrap();
        assert_eq!(method_label(&machine, symbol_at(0x104), None), "a+b.dll!?");
        assert_eq!(method_label(&machine, None, Some(&Named)), "?");
    }
}
