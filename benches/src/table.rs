//! The table.

use serde::Serialize;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The trace.
    pub file: String,
    /// What was done with it.
    pub what: String,
    /// How long it took.
    pub seconds: f64,
    /// Bytes of the file.
    pub stored: u64,
    /// Bytes of its buffers, decompressed.
    pub unpacked: u64,
    /// Bytes printed.
    pub output: u64,
    /// Records.
    pub records: u64,
    /// Time as a multiple of the plain pass's; none where that is no measure.
    pub ratio: Option<f64>,
    /// Peak memory of a process that does only this.
    pub peak: Option<u64>,
}

/// Prints the rows, those of a file together.
pub fn print(rows: &[Row]) {
    let mut file = "";
    for row in rows {
        if row.file != file {
            file = &row.file;
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            println!(
                "\n{file}: {:.1} MiB, {:.1} MiB decompressed, {} records",
                mib(row.stored),
                mib(row.unpacked),
                row.records
            );
            println!(
                "  {:<56}{:>12}{:>12}{:>14}{:>12}{:>9}{:>11}",
                "", "seconds", "MB/s", "M records/s", "out MB/s", "ratio", "peak MiB"
            );
        }
        let per_second = |amount: u64| amount as f64 / row.seconds / 1e6;
        let output =
            if row.output > 0 { format!("{:.0}", per_second(row.output)) } else { String::new() };
        let peak =
            row.peak.map_or(String::new(), |p| format!("{:.1}", p as f64 / f64::from(1 << 20)));
        let ratio = row.ratio.map_or(String::new(), |r| format!("{r:.2}"));
        println!(
            "  {:<56}{:>12.6}{:>12.0}{:>14.2}{output:>12}{ratio:>9}{peak:>11}",
            row.what,
            row.seconds,
            per_second(row.unpacked),
            per_second(row.records)
        );
    }
    println!(
        "\nMB/s are of decompressed bytes; ratio is the time as a multiple of the plain pass's."
    );
}
