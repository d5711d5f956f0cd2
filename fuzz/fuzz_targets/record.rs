#![no_main]
etl_fuzz::target!("record");
