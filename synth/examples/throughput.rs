//! How fast traces are made: simulates a busy process until its session has written as many
//! megabytes as asked for (100 without), discards the bytes, and prints the rate.
//!
//! `cargo run --release -p etl-synth --example throughput -- 2000`

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use etl_format::write::Medium;
use etl_synth::truth::Nobody;
use etl_synth::{Reading, Store, scenario, simulate};

/// Counts what is written, and forgets it.
#[derive(Default)]
struct Counting(Rc<Cell<u64>>);

impl Medium for Counting {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        self.0.set(self.0.get().max(at + bytes.len() as u64));
        Ok(())
    }

    fn can_go_back(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

impl Store for Counting {
    fn create(&mut self, _: &str) -> io::Result<Box<dyn Medium>> {
        Ok(Box::new(Counting(Rc::clone(&self.0))))
    }

    fn open(&mut self, _: &str) -> io::Result<Box<dyn Reading>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn cut(&mut self, _: &str, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn overwrite(&mut self, _: &str, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let megabytes: u64 = std::env::args().nth(1).map_or(Ok(100), |text| text.parse())?;
    // A tick of the allocator takes about 230 bytes, and 100 of them come in 2.5 ms.
    let until = 1_000 + megabytes * 110;
    let script = format!(
        r#"
        machine processors=8 disk-bytes-per-second=4000000000
        process "Busy.exe" threads=8 {{
            clr "core" version="6.0.100" {{
                assembly "Busy" {{ module "C:\\App\\Busy.dll" {{ methods 2000 }} }}
            }}
            every "2500us" from="1s" until="{until}ms" {{ allocate 100 }}
        }}
        at "1s" {{ session "busy" file="busy.etl" buffer-kb=256 buffers=256 {{ enable "runtime" keywords="GC" level=5 }} }}
        at "{}ms" {{ stop "busy" }}
        "#,
        until + 1_000
    );
    let scenario = scenario::parse("throughput", &script)?;
    let mut store = Counting::default();
    let begin = Instant::now();
    simulate(&scenario, &mut store, &mut Nobody)?;
    let seconds = begin.elapsed().as_secs_f64();
    let written = store.0.get() as f64 / 1e6;
    println!("{written:.0} MB in {seconds:.2} s: {:.0} MB/s", written / seconds);
    Ok(())
}
