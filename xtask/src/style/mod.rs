//! `cargo xtask style`: counts patterns that make code hard to read, and fails above the limits.

mod places;
mod source;

use std::path::{Path, PathBuf};

use places::Pattern;
use source::SourceFile;

use crate::metadata::Metadata;
use crate::process::Failure;

/// Limits for all crates together.
const MAX_TUPLE_LETS_PER_1000_LINES: f64 = 0.6;
const MAX_NAMED_CLOSURES_PER_1000_LINES: f64 = 1.0;
const MAX_TUPLE_PARAMETERS: usize = 5;
const MAX_LONG_FUNCTIONS: usize = 0;

/// Product code outside of the workspace: its name and its first file.
const PYTHON: (&str, &str) = ("python", "python/src/lib.rs");

/// The package of the tasks: not published, and product code all the same.
const XTASK: &str = "xtask";

/// Counts tuple lets, named closures, tuple parameters, functions over 80 lines and chains of more
/// than two combinators in product code. Tests, examples, benchmarks and the arguments of macros
/// are left out. Lines contain comments and blank lines. Chains have no limit.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Print each place as file:line.
    #[arg(long)]
    list: bool,
    /// Crates. Default: all; the limits apply to all crates together.
    crates: Vec<String>,
}

/// The counts of a crate, or of all.
struct Counts {
    lines: usize,
    /// In the order of `Pattern::ALL`.
    patterns: [usize; Pattern::ALL.len()],
}

impl Counts {
    const NONE: Self = Self {
        lines: 0,
        patterns: [0; Pattern::ALL.len()],
    };

    fn of_files(files: &[SourceFile]) -> Self {
        let mut counts = Self::NONE;
        for file in files {
            counts.lines += file.lines;
            for (count, pattern) in counts.patterns.iter_mut().zip(Pattern::ALL) {
                let places = &file.found.places;
                *count += places
                    .iter()
                    .filter(|place| place.pattern == pattern)
                    .count();
            }
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        for (count, more) in self.patterns.iter_mut().zip(other.patterns) {
            *count += more;
        }
    }

    fn count(&self, pattern: Pattern) -> usize {
        let mut patterns = Pattern::ALL.iter().zip(self.patterns);
        patterns
            .find(|(each, _)| **each == pattern)
            .map_or(0, |(_, count)| count)
    }

    fn per_1000_lines(&self, pattern: Pattern) -> f64 {
        self.count(pattern) as f64 * 1000.0 / self.lines.max(1) as f64
    }

    fn print(&self, name: &str) {
        print!("{name:<14}{:>7}", self.lines);
        for pattern in Pattern::ALL {
            print!(
                "{:>9}{:>8.2}",
                self.count(pattern),
                self.per_1000_lines(pattern)
            );
        }
        println!();
    }

    /// What is above its limit.
    fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let rates = [
            (Pattern::TupleLet, MAX_TUPLE_LETS_PER_1000_LINES),
            (Pattern::NamedClosure, MAX_NAMED_CLOSURES_PER_1000_LINES),
        ];
        for (pattern, max) in rates {
            let rate = self.per_1000_lines(pattern);
            if rate > max {
                let name = pattern.name();
                errors.push(format!(
                    "{rate:.2} {name}s per 1,000 lines; the limit is {max}"
                ));
            }
        }
        let totals = [
            (Pattern::TupleParameter, MAX_TUPLE_PARAMETERS),
            (Pattern::LongFunction, MAX_LONG_FUNCTIONS),
        ];
        for (pattern, max) in totals {
            let count = self.count(pattern);
            if count > max {
                errors.push(format!("{count} {}s; the limit is {max}", pattern.name()));
            }
        }
        errors
    }
}

pub fn style(options: &Options) -> Result<(), Failure> {
    let mut total = Counts::NONE;
    if !options.list {
        println!("Counts, and counts per 1,000 lines of product code:");
        print!("{:<14}{:>7}", "crate", "lines");
        for pattern in Pattern::ALL {
            print!("{:>17}", pattern.name());
        }
        println!();
    }
    for (name, roots) in crates()? {
        if !options.crates.is_empty() && !options.crates.contains(&name) {
            continue;
        }
        let mut files = Vec::new();
        for root in &roots {
            source::read(root, &mut files)?;
        }
        let counts = Counts::of_files(&files);
        total.add(&counts);
        if options.list {
            print_places(&files);
        } else {
            counts.print(&name);
        }
    }
    if !options.list {
        total.print("all");
    }
    let errors = total.errors();
    if errors.is_empty() {
        return Ok(());
    }
    let advice = "`cargo xtask style --list` prints the places";
    Err(Failure::Message(format!(
        "style: {}\n{advice}",
        errors.join("\n       style: ")
    )))
}

fn print_places(files: &[SourceFile]) {
    for file in files {
        for place in &file.found.places {
            println!(
                "{}:{}: {}",
                file.path.display(),
                place.line,
                place.pattern.name()
            );
        }
    }
}

/// The crates with product code, each with its first files.
fn crates() -> Result<Vec<(String, Vec<PathBuf>)>, Failure> {
    let mut crates = Vec::new();
    for package in Metadata::read()?.packages {
        if package.is_published || package.name == XTASK {
            crates.push((package.name, package.roots));
        }
    }
    crates.push((PYTHON.0.to_owned(), vec![Path::new(PYTHON.1).to_owned()]));
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(patterns: [usize; 5]) -> Counts {
        Counts {
            lines: 10_000,
            patterns,
        }
    }

    #[test]
    fn counts_up_to_the_limits_pass() {
        assert_eq!(counts([6, 10, 5, 0, 900]).errors(), [""; 0]);
    }

    #[test]
    fn each_count_above_its_limit_is_an_error() {
        let errors = counts([7, 11, 6, 1, 0]).errors();
        let expected = [
            "0.70 tuple lets per 1,000 lines; the limit is 0.6",
            "1.10 named closures per 1,000 lines; the limit is 1",
            "6 tuple parameters; the limit is 5",
            "1 long functions; the limit is 0",
        ];
        assert_eq!(errors, expected);
    }
}
