//! A trace's events with their fields by name: `cargo run --example decode_event [FILE.etl]`.
//!
//! The store knows the CLR's and the kernel's events from tables, and learns other events from
//! the trace. It is shown every record in time order, and asked afterwards.

mod input;

use etl_format::read::{Options, Order, Trace};
use etl_schema::render::Renderer;
use etl_schema::store::SchemaStore;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = input::bytes()?;
    let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    let mut store = SchemaStore::default();
    let mut records = trace.records(Order::Time)?;
    let (mut known, mut unknown, mut code) = (0, 0, 0);
    while let Some(record) = records.next_record()? {
        store.learn(&record);
        let Some(mut fields) = store.fields(&record) else {
            unknown += 1;
            continue;
        };
        let schema = fields.schema();
        let size = fields.get("MethodSize");
        known += 1;
        // All fields, as text ...
        let mut line = Vec::new();
        Renderer::new().text_fields(&mut line, &mut fields);
        println!("{}{}", schema.name, String::from_utf8_lossy(&line));
        // ... and one field of one event, by name.
        if schema.name.starts_with("MethodLoadVerbose")
            && let Some(size) = size
        {
            code += size.as_u64().unwrap_or_default();
        }
    }
    println!("{known} events described, {unknown} not; {code} bytes of code");
    if cfg!(test) {
        assert_eq!((known, unknown, code), (4, 0, 384));
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
