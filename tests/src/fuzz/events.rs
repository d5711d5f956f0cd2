//! Targets for the events crate: any input, and conditions on events.

use etl_events::conditions::Conditions;
use etl_events::input::{Input, InputOptions};
use etl_events::survey::Survey;
use etl_format::read::Options;
use etl_schema::store::SchemaStore;

use super::text;

/// Opens any bytes as an input: packed or not, a trace or a stream; surveys it if it is a trace.
pub(super) fn input(data: &[u8]) {
    let mut options = InputOptions::default();
    options.unpacker.max_unpacked = Some(1 << 20);
    for is_pipe in [false, true] {
        let opened = if is_pipe {
            Input::from_reader(std::io::Cursor::new(data.to_vec()), &options)
        } else {
            Input::from_bytes(data.to_vec(), &options)
        };
        let mut input = match opened {
            Ok(input) => input,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let Ok(mut trace) = input.trace(&Options::salvage()) else {
            continue;
        };
        let survey = Survey::of(&mut trace, SchemaStore::default(), |_| {});
        assert!(survey.is_ok_and(|survey| serde_json::to_string(&survey).is_ok()));
    }
}

/// Conditions as users write them, one in each line.
pub(super) fn conditions(data: &[u8]) {
    let written = text(data);
    let none: [&str; 0] = [];
    for line in written.lines().take(50) {
        let patterns = Conditions::new(&[line], &none, &none).expect("any pattern");
        let _ = patterns.admit_name("GCStart_V1");
        let texts = Conditions::new(&none, &none, &[line]);
        assert!(texts.is_ok());
        match Conditions::new(&none, &[line], &none) {
            // A column of rows is no field.
            Ok(fields) => assert!(fields.fields().count() <= 1),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
