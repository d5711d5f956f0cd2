//! Every target in one program, for runs of all of them: `FUZZ_TARGET` names the one to run. The others
//! here are each a program of their own, as cargo-fuzz has it.
#![no_main]
etl_fuzz::target!(std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target"));
