//! Prints the functions and source lines at offsets of an image:
//! `cargo run -p etl-analysis --features pdb --example functions -- app.pdb 0x1000 0x1010`.

use std::path::PathBuf;

use etl_analysis::pdb::functions;

fn main() -> etl_analysis::pdb::Result<()> {
    let mut args = std::env::args_os().skip(1).filter_map(|arg| arg.into_string().ok());
    let Some(path) = args.next().map(PathBuf::from).filter(|path| path.is_file()) else {
        println!("usage: functions PDB OFFSET...");
        return Ok(());
    };
    let hex = |text: String| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let offsets: Vec<u32> = args.filter_map(hex).collect();
    for (offset, found) in offsets.iter().zip(functions(&path, &offsets)?) {
        for function in found {
            let (file, line) =
                (function.file.as_deref().unwrap_or("?"), function.line.unwrap_or(0));
            println!("{offset:#x} {} {file}:{line}", function.name);
        }
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
