//! Makes a TraceLogging event and a manifest event from field values, writes them to a trace, reads
//! the trace back with its fields, and verifies it: `cargo run --example write_read_verify`.

use etl_events::OpenOptions;
use etl_format::write::Session;
use etl_format::{FileHeader, FileTime};
use etl_schema::sources::manifest;
use etl_schema::{EventEncoder, EventSchema, Field, InType};
use etl_verify::{Verdict, Verifier};

const MANIFEST: &str = r#"
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
  <instrumentation><events>
    <provider name="Shop-Orders" guid="{0f67e49f-fe51-4e9f-b490-6f2948cc6027}" symbol="SHOP">
      <events><event value="7" version="1" symbol="OrderPlaced" template="order"/></events>
      <templates><template tid="order">
        <data name="Number" inType="win:UInt32"/>
        <data name="Customer" inType="win:UnicodeString"/>
      </template></templates>
    </provider>
  </events></instrumentation>
</instrumentationManifest>"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A TraceLogging event describes itself; the schema of the other one is in the manifest.
    let fields = vec![
        Field::new("Count", InType::UInt32),
        Field::new("Item", InType::Utf16),
    ];
    let sold = EventSchema::tracelogging("Shop.Sales", "Sold", fields);
    let schemas = manifest::parse(MANIFEST)?;
    let placed = schemas.first().ok_or("the manifest describes an event")?;

    let mut session = Session::in_memory(FileHeader::starting_at(FileTime::new(
        132_000_000_000_000_000,
    )))?;
    let mut encoder = EventEncoder::new(&sold)?;
    let event = encoder.event(10_000, [("Count", 3u32.into()), ("Item", "tea".into())])?;
    session.write(0, &event.process(100, 104))?;
    let mut encoder = EventEncoder::new(placed)?;
    let event = encoder.event(
        20_000,
        [("Number", 42u32.into()), ("Customer", "Anna".into())],
    )?;
    session.write(0, &event.process(100, 104))?;
    let bytes = session.finish()?;

    let mut trace = OpenOptions::new()
        .schemas(schemas)
        .from_bytes(bytes.as_slice())?;
    let mut events = trace.events();
    let mut lines = Vec::new();
    while let Some(event) = events.next()? {
        if event.record().is_event()
            && let Some(fields) = event.fields()
        {
            lines.push(format!("{} {fields}", event.name()));
        }
    }
    println!("{}", lines.join("\n"));
    assert_eq!(
        lines,
        [
            "Sold Count=3 Item=\"tea\"",
            "OrderPlaced Number=42 Customer=\"Anna\""
        ]
    );

    let report = Verifier::new().verify(bytes.as_slice(), "shop.etl")?;
    print!("{}", report.text());
    assert_eq!(report.verdict, Verdict::Complete);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
