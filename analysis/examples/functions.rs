//! Prints the functions and source lines at offsets of an image:
//! `cargo run -p etl-analysis --features pdb --example functions -- app.pdb 0x1000 0x1010`.

use std::path::PathBuf;

use etl_analysis::pdb::{Result, functions};

fn main() -> Result<()> {
    let mut args = std::env::args_os()
        .skip(1)
        .filter_map(|arg| arg.into_string().ok());
    let Some(path) = args.next().map(PathBuf::from).filter(|path| path.is_file()) else {
        println!("usage: functions PDB OFFSET...");
        return Ok(());
    };
    let mut offsets = Vec::new();
    for text in args {
        offsets.extend(u32::from_str_radix(text.trim_start_matches("0x"), 16));
    }
    for (offset, functions) in offsets.iter().zip(functions(&path, &offsets)?) {
        for function in functions {
            match &function.source {
                Some(line) => println!("{offset:#x} {} {}:{}", function.name, line.file, line.line),
                None => println!("{offset:#x} {} (unknown line)", function.name),
            }
        }
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
