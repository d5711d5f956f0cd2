#![no_main]
etl_fuzz::target!("printed");
