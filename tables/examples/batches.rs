//! Prints how many rows each table of a trace has:
//! `cargo run -p etl-tables --example batches -- trace.etl [TABLE [COLUMN...]]`.

use std::fs::File;

use arrow_array::RecordBatchReader;
use etl_format::read::FileSource;
use etl_tables::{Options, Reader, tables};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("name a trace")?;
    let table = args.next();
    let columns: Vec<String> = args.collect();
    let all = tables::ALL.iter().map(|table| table.name.to_owned());
    for table in table.map_or_else(|| all.collect(), |table| vec![table]) {
        let source = FileSource::new(File::open(&path)?)?;
        let reader = Reader::open(source, &table, Options::new(&path).columns(columns.clone()))?;
        let width = reader.schema().fields().len();
        let mut rows = 0;
        for batch in reader {
            rows += batch?.num_rows();
        }
        println!("{table}: {rows} rows, {width} columns");
    }
    Ok(())
}
