#![no_main]
etl_fuzz::target!("event_info");
