//! `etlkit synth`: simulates a scenario and writes its traces.

use std::fs;
use std::io::{self, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etl_format::write::Output;
use etl_schema::render::is_terminal_unsafe;
use etl_synth::model::Scenario;
use etl_synth::scenario::{self, Mistake, Mistakes, Settings};
use etl_synth::{Memory, Reading, Store, truth};
use miette::{GraphicalReportHandler, GraphicalTheme, NamedSource};

use crate::Outcome;
use crate::error::Failure;
use crate::escape::{Style, escape_controls};
use crate::input;
use crate::output;
use crate::sink;

/// The file that lists every event and whether it was recorded.
const TRUTH: &str = "truth.jsonl";

/// Arguments of `etlkit synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
docs/scenario.md describes the scenario language; corpus/ contains examples.

Exit codes: 0 success, 2 error; with --verify those of etlverify.

Examples:
  etlkit synth corpus/recipe.kdl -o out
  etlkit synth corpus/recipe.kdl -o out --force --verify
  etlkit synth --seed 7 --set processes=40 many.kdl -o out --force
  etlkit synth --check mine.kdl")]
pub(crate) struct Args {
    /// Scenario script; `-` is standard input
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// Write the traces to DIR, which is created if necessary
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["check", "timeline"])]
    output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Seed of the random numbers, instead of the seed in the script
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Set a parameter of the script; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Check the traces with etlverify and print its report
    #[arg(long, conflicts_with = "check")]
    verify: bool,
    /// Only check the script for errors
    #[arg(long, conflicts_with_all = ["timeline", "output"])]
    check: bool,
    /// Print the simulated actions with their times, and write nothing
    #[arg(long, conflicts_with = "output")]
    timeline: bool,
    /// Do not write truth.jsonl, the list of every event and whether it was recorded
    #[arg(long)]
    no_truth: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.script);
    let scenario = parse(&args.script, &args.set, args.seed)?;
    if args.check {
        output::print(&format!("{name}: no errors\n"))?;
        return Ok(Outcome::Success);
    }
    if args.timeline {
        let mut timeline = truth::Timeline::new(Vec::new());
        etl_synth::simulate(&scenario, &mut Memory::default(), &mut timeline)
            .map_err(|error| simulation_failure(&name, error))?;
        output::print(&String::from_utf8_lossy(&timeline.into_inner()))?;
        return Ok(Outcome::Success);
    }
    let Some(out) = &args.output else { return Ok(Outcome::Success) };
    let store = synthesize(&scenario, &name, out, !args.no_truth)?;
    let mut text = String::new();
    let mut traces = Vec::new();
    for (file, size) in store.finish(args.force)? {
        let path = out.join(file);
        text.push_str(&format!("{}  {}\n", path.display(), output::size(size)));
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("etl")) {
            traces.push(path);
        }
    }
    output::print(&text)?;
    if traces.is_empty() {
        stderr_line!("note: {name}: no session of the script writes a trace");
    }
    if !args.verify || traces.is_empty() {
        return Ok(Outcome::Success);
    }
    output::print("\n")?;
    super::verify::report_on(&traces)
}

/// Reads a script, and prints its errors.
pub(super) fn parse(
    script: &Path,
    set: &[(String, String)],
    seed: Option<u64>,
) -> Result<Scenario, Failure> {
    let text = read(script)?;
    let directory = script.parent().unwrap_or(Path::new("")).to_owned();
    let include = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let settings = Settings { set, seed, include: &include };
    let name = input::display(script);
    scenario::parse_with(&name, &text, settings).map_err(|mistakes| explain(&name, &mistakes))
}

/// The failure of a simulation. An impossible action is shown at its position in the script.
fn simulation_failure(name: &str, error: etl_synth::Error) -> Failure {
    match error {
        etl_synth::Error::Impossible { at, what, place: Some(place) } => {
            let label = format!("at {}", etl_synth::text::duration(at));
            let source_code = (*place.source).clone();
            let mistake = Mistake { message: what, label, help: None, at: place.at, source_code };
            explain(name, &Mistakes(vec![mistake]))
        }
        other => Failure::new(name, other.to_string()),
    }
}

/// Simulates a scenario; its files are in a temporary directory until [`Directory::finish`].
pub(super) fn synthesize(
    scenario: &Scenario,
    name: &str,
    out: &Path,
    with_truth: bool,
) -> Result<Directory, Failure> {
    let mut store = Directory::new(out)?;
    let failure = |error| simulation_failure(name, error);
    if with_truth {
        let file = io::BufWriter::with_capacity(1 << 18, store.file(TRUTH)?);
        let mut lines = truth::Lines::new(file);
        etl_synth::simulate(scenario, &mut store, &mut lines).map_err(failure)?;
        lines.into_inner().flush()?;
    } else {
        etl_synth::simulate(scenario, &mut store, &mut truth::Nobody).map_err(failure)?;
    }
    Ok(store)
}

fn read(path: &Path) -> Result<String, Failure> {
    const HINT: &str = "name a scenario script, for example corpus/recipe.kdl";
    const KIND: &str = "a scenario script";
    let text = input::read_text(path, KIND).map_err(|failure| failure.hint(HINT))?;
    // A file of another format is not reported as a script with errors.
    match input::what(text.as_bytes()) {
        Some(what) if what != "text" => {
            Err(Failure::new(input::display(path), format!("this is {what}, not {KIND}"))
                .hint(HINT))
        }
        _ => Ok(text),
    }
}

/// Prints every error at its position in the script.
fn explain(name: &str, mistakes: &Mistakes) -> Failure {
    let theme = if io::stderr().is_terminal() {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
    let mut shown = String::new();
    for mistake in &mistakes.0 {
        // Writing to a String does not fail.
        let _ = handler.render_report(&mut shown, &escaped(mistake));
        shown.push('\n');
    }
    output::write_stderr_escaped(&shown);
    let count = mistakes.0.len();
    let s = if count == 1 { "" } else { "s" };
    Failure::new(name, format!("{count} error{s} in the script"))
        .hint("docs/scenario.md describes the language")
}

/// The error with everything escaped that a terminal could act on. In the text of the script the length
/// in bytes stays, so that positions remain valid.
fn escaped(mistake: &Mistake) -> Mistake {
    let escape = |text: &str| escape_controls(text, Style::Text).into_owned();
    let masked = |c: char| match c {
        '\n' | '\t' | '\r' => c.to_string(),
        c if is_terminal_unsafe(c) => "?".repeat(c.len_utf8()),
        c => c.to_string(),
    };
    let mut mistake = mistake.clone();
    let source: String = mistake.source_code.inner().chars().map(masked).collect();
    let name = escape(mistake.source_code.name());
    mistake.source_code = NamedSource::new(name, Arc::from(source));
    mistake.message = escape(&mistake.message);
    mistake.label = escape(&mistake.label);
    mistake.help = mistake.help.as_deref().map(escape);
    mistake
}

/// A directory that receives its files all at once: until then they are in a temporary directory in it.
pub(super) struct Directory {
    target: PathBuf,
    temporary: tempfile::TempDir,
    files: Vec<String>,
}

impl Directory {
    fn new(target: &Path) -> Result<Self, Failure> {
        let failure = |e: io::Error| {
            sink::directory_failure(target, &e, "choose a directory that you may write to")
        };
        fs::create_dir_all(target).map_err(failure)?;
        // On the same file system, so that files can be renamed.
        let temporary =
            tempfile::Builder::new().prefix(".etlkit-").tempdir_in(target).map_err(failure)?;
        Ok(Directory { target: target.to_owned(), temporary, files: Vec::new() })
    }

    /// The temporary path of a file of the scenario. Names that leave the directory are rejected.
    fn temporary_path(&self, name: &str) -> io::Result<PathBuf> {
        match etl_synth::text::no_file_name(name) {
            None => Ok(self.temporary.path().join(name)),
            Some(why) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("\"{name}\" is not a valid file name: {why}"),
            )),
        }
    }

    /// Creates a file that is not a trace.
    fn file(&mut self, name: &str) -> io::Result<fs::File> {
        fs::File::create(self.temporary.path().join(name))
    }

    /// Moves the files to the target. Returns names and sizes.
    pub fn finish(self, force: bool) -> Result<Vec<(String, u64)>, Failure> {
        let mut files = Vec::new();
        let entries = fs::read_dir(self.temporary.path())?;
        let mut names: Vec<String> = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        // Files in the order of the scenario, then the others.
        names.sort_by_key(|n| {
            (self.files.iter().position(|f| f == n).unwrap_or(usize::MAX), n.clone())
        });
        for name in &names {
            let path = self.target.join(name);
            if !force && path.exists() {
                return Err(Failure::new(path.display().to_string(), "exists already")
                    .hint("--force replaces it"));
            }
        }
        // The truth is removed first and written last: it never describes other traces than those there.
        let truth = self.target.join(TRUTH);
        match fs::remove_file(&truth) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::io(truth.display(), &e));
            }
            _ => {}
        }
        names.sort_by_key(|name| name == TRUTH);
        for name in names {
            let (from, to) = (self.temporary.path().join(&name), self.target.join(&name));
            let failure = |e: io::Error| Failure::io(to.display(), &e);
            let file = fs::File::options().write(true).open(&from).map_err(failure)?;
            // The bytes must be on the disk before the name is.
            file.sync_all().map_err(failure)?;
            let size = file.metadata().map_err(failure)?.len();
            fs::rename(&from, &to).map_err(failure)?;
            files.push((name, size));
        }
        sink::sync_dir(&truth).map_err(|e| Failure::io(self.target.display(), &e))?;
        Ok(files)
    }
}

impl Store for Directory {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let file = fs::File::create(self.temporary_path(name)?)?;
        if !self.files.iter().any(|f| f == name) {
            self.files.push(name.to_owned());
        }
        // The session writes whole buffers: no further buffering is needed.
        Ok(Box::new(etl_format::write::File::new(file)))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn Reading>> {
        Ok(Box::new(fs::File::open(self.temporary_path(name)?)?))
    }

    fn cut(&mut self, name: &str, len: u64) -> io::Result<()> {
        fs::File::options().write(true).open(self.temporary_path(name)?)?.set_len(len)
    }

    fn overwrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::File::options().write(true).open(self.temporary_path(name)?)?;
        file.seek(io::SeekFrom::Start(at))?;
        file.write_all(bytes)
    }
}
