#![no_main]
etl_fuzz::target!("lznt1");
