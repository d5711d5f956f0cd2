//! Writes the seeds of every fuzz target, or of one, into a directory for each target. Targets
//! whose inputs are text also get a libFuzzer dictionary. Inputs that failed once are seeds too.
//!
//! Run: `cargo run -p etl-tests --example seeds -- DIRECTORY [TARGET]`. Without arguments it lists
//! the targets.

use std::fs;
use std::path::PathBuf;

use etl_tests::fuzz::{TARGETS, regressions::regressions, seeds::Material};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(directory) = args.next().map(PathBuf::from) else {
        for target in TARGETS {
            println!("{}\t{}\t{}", target.name, target.longest, target.about);
        }
        return Ok(());
    };
    let only = args.next();
    let material = Material::load(None);
    let failed = regressions()?;
    for target in TARGETS
        .iter()
        .filter(|t| only.as_ref().is_none_or(|only| t.name == only))
    {
        let words = material.dictionary(target);
        let directory = directory.join(target.name);
        fs::create_dir_all(&directory)?;
        for (name, bytes) in material.seeds(target) {
            fs::write(directory.join(format!("seed-{name}")), bytes)?;
        }
        for input in failed.iter().filter(|input| input.target == target.name) {
            fs::write(
                directory.join(format!("failed-{}", input.name)),
                &input.bytes,
            )?;
        }
        if !words.is_empty() {
            fs::write(directory.with_extension("dict"), words)?;
        }
    }
    Ok(())
}
