use etl_schema::encode::OwnedValue;
use etl_schema::tables::{Registry, TableEvent};
use etl_schema::testing::strategies::{GeneratedEvent, events_like};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// A method, as the decoder under test returns it.
struct Method {
    address: u64,
    name: Vec<u16>,
}

/// The decoder under test: `MethodLoadVerbose_V1`.
fn decode(payload: &[u8]) -> Option<Method> {
    let address = u64::from_le_bytes(payload.get(16..24)?.try_into().ok()?);
    let mut texts = payload
        .get(36..)?
        .chunks_exact(2)
        .map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    // The namespace comes before the name.
    texts.by_ref().find(|unit| *unit == 0)?;
    let name = texts.take_while(|unit| *unit != 0).collect();
    Some(Method { address, name })
}

fn method_load() -> &'static TableEvent {
    let runtime = Registry::builtin().find("runtime").unwrap();
    let mut events = runtime.events.iter();
    events
        .find(|event| event.schema.name == "MethodLoadVerbose_V1")
        .unwrap()
}

/// The value of a field.
fn field<'e>(event: &'e GeneratedEvent, name: &str) -> &'e OwnedValue {
    let mut fields = event.event.schema.fields.iter();
    let index = fields.position(|field| *field.name == *name).unwrap();
    &event.values[index]
}

proptest! {
    /// Payloads of processes with pointers of either size; the event has no pointers.
    #[test]
    fn decoder_returns_address_and_name(event in events_like(method_load())) {
        let method = decode(&event.payload).unwrap();
        prop_assert_eq!(Some(method.address), field(&event, "MethodStartAddress").as_u64());
        prop_assert_eq!(&OwnedValue::Utf16(method.name), field(&event, "MethodName"));
    }
}

/// The test finds a wrong decoder: one for which all text is Latin-1.
#[test]
fn wrong_decoder_is_found() {
    let found = TestRunner::deterministic().run(&events_like(method_load()), |event| {
        let mut name = decode(&event.payload).unwrap().name;
        name.iter_mut().for_each(|unit| *unit &= 0xff);
        prop_assert_eq!(&OwnedValue::Utf16(name), field(&event, "MethodName"));
        Ok(())
    });
    // The report has names of fields, text and bytes; all that does not matter is 0 or empty.
    let report = found.unwrap_err().to_string();
    assert!(
        report.contains("MethodName = \"Ā\" (UTF-16: 0100)"),
        "{report}"
    );
    assert!(report.contains("MethodStartAddress = 0"), "{report}");
}
