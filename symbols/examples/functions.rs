//! Prints what is at offsets of an image: `functions app.pdb 0x1000 0x1010`.
fn main() -> etl_symbols::Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else { return Ok(()) };
    let offsets: Vec<u32> = args
        .filter_map(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok())
        .collect();
    let found = etl_symbols::functions(path.as_ref(), &offsets)?;
    for (offset, functions) in offsets.iter().zip(found) {
        for function in functions {
            let (file, line) =
                (function.file.as_deref().unwrap_or("?"), function.line.unwrap_or(0));
            println!("{offset:#x} {} {file}:{line}", function.name);
        }
    }
    Ok(())
}
