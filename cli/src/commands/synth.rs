//! `etlkit synth`.

use std::fs;
use std::io::{self, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etl_format::write::Output;
use etl_schema::render::acts;
use etl_synth::model::Scenario;
use etl_synth::scenario::{self, Mistake, Mistakes, Settings};
use etl_synth::{Memory, Reading, Store, truth};
use miette::{GraphicalReportHandler, GraphicalTheme, NamedSource};

use crate::Outcome;
use crate::error::Failure;
use crate::escape::Printable;
use crate::input;
use crate::output;
use crate::sink;

/// The file of what was raised, and what became of it.
const TRUTH: &str = "truth.jsonl";

/// Arguments of `etlkit synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The language of scenarios is described in docs/scenario.md; corpus/ has examples.

Examples:
  etlkit synth corpus/recipe.kdl -o out
  etlkit synth corpus/recipe.kdl -o out --force --verify
  etlkit synth --seed 7 --set processes=40 many.kdl -o out --force
  etlkit synth --check mine.kdl")]
pub(crate) struct Args {
    /// The scenario script; `-` reads standard input
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// Directory for the traces; it is made if it is not there
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["check", "explain"])]
    out: Option<PathBuf>,
    /// Overwrite traces that are there
    #[arg(long)]
    force: bool,
    /// Seed of all chance, in the place of the script's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Give a parameter of the script a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Judge the traces as etlverify does, and print its reports; the exit code is that of etlverify
    #[arg(long, conflicts_with = "check")]
    verify: bool,
    /// Only look for mistakes in the script
    #[arg(long, conflicts_with_all = ["explain", "out"])]
    check: bool,
    /// Print what happens when, and write nothing
    #[arg(long, conflicts_with = "out")]
    explain: bool,
    /// Do not write truth.jsonl: every event that was raised, and what became of it
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
        output::print(&format!("{name}: no mistakes\n"))?;
        return Ok(Outcome::Fine);
    }
    if args.explain {
        let mut timeline = truth::Timeline::new(Vec::new());
        etl_synth::simulate(&scenario, &mut Memory::default(), &mut timeline)
            .map_err(|error| failed(&name, error))?;
        output::print(&String::from_utf8_lossy(&timeline.into_inner()))?;
        return Ok(Outcome::Fine);
    }
    let Some(out) = &args.out else { return Ok(Outcome::Fine) };
    let store = synthesize(&scenario, &name, out, !args.no_truth)?;
    let mut said = String::new();
    let mut traces = Vec::new();
    for (file, size) in store.finish(args.force)? {
        let path = out.join(file);
        said.push_str(&format!("{}  {}\n", path.display(), output::size(size)));
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("etl")) {
            traces.push(path);
        }
    }
    output::print(&said)?;
    if traces.is_empty() {
        tell!("note: {}: no session of the script writes a trace", Printable(&name));
    }
    if !args.verify || traces.is_empty() {
        return Ok(Outcome::Fine);
    }
    output::print("\n")?;
    super::verify::report_on(&traces)
}

/// Reads a script; its mistakes are shown.
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

/// Why a scenario came to no end; what the script asks for is shown at its place, as its other mistakes are.
fn failed(name: &str, error: etl_synth::Error) -> Failure {
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

/// Lets a scenario happen; its files wait in a directory of their own.
pub(super) fn synthesize(
    scenario: &Scenario,
    name: &str,
    out: &Path,
    with_truth: bool,
) -> Result<Directory, Failure> {
    let mut store = Directory::new(out)?;
    let failure = |error| failed(name, error);
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
    const HINT: &str = "name a scenario script; corpus/recipe.kdl is one to begin with";
    const KIND: &str = "a scenario script";
    let text = input::read_text(path, KIND).map_err(|failure| failure.hint(HINT))?;
    // What cannot even begin a script is not to be explained as one with mistakes.
    match input::what(text.as_bytes()) {
        Some(what) if what != "text" => {
            Err(Failure::new(input::display(path), format!("this is {what}, not {KIND}"))
                .hint(HINT))
        }
        _ => Ok(text),
    }
}

/// Shows every mistake at its place.
fn explain(name: &str, mistakes: &Mistakes) -> Failure {
    let theme = if io::stderr().is_terminal() {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
    let mut shown = String::new();
    for mistake in &mistakes.0 {
        // Writing into a String does not fail.
        let _ = handler.render_report(&mut shown, &harmless(mistake));
        shown.push('\n');
    }
    tell!("{}", shown.strip_suffix('\n').unwrap_or(&shown));
    let count = mistakes.0.len();
    let s = if count == 1 { "" } else { "s" };
    Failure::new(name, format!("{count} mistake{s} in the script"))
        .hint("docs/scenario.md describes the language")
}

/// A mistake without anything in it that a terminal could act on: the script may be a stranger's. In the
/// script's text the length in bytes stays, so that places do.
fn harmless(mistake: &Mistake) -> Mistake {
    let told = |c: char| matches!(c, '\n' | '\t' | '\r') || !acts(c);
    let replace = |text: &str| -> String {
        text.chars()
            .map(|c| if told(c) { c.to_string() } else { "?".repeat(c.len_utf8()) })
            .collect()
    };
    let say = |text: &str| -> String {
        let each = |c: char| if told(c) { c.to_string() } else { c.escape_unicode().to_string() };
        text.chars().map(each).collect()
    };
    let mut mistake = mistake.clone();
    let name = say(mistake.source_code.name());
    let source = replace(mistake.source_code.inner());
    mistake.source_code = NamedSource::new(name, Arc::from(source));
    mistake.message = say(&mistake.message);
    mistake.label = say(&mistake.label);
    mistake.help = mistake.help.as_deref().map(say);
    mistake
}

/// A directory that gets its files all at once: until then they are in a directory beside it.
pub(super) struct Directory {
    target: PathBuf,
    temporary: tempfile::TempDir,
    files: Vec<String>,
}

impl Directory {
    fn new(target: &Path) -> Result<Self, Failure> {
        let failure = |e: io::Error| {
            sink::no_directory(target, &e, "name a directory that can be written to")
        };
        fs::create_dir_all(target).map_err(failure)?;
        // In the same directory, so that renaming is all there is to do.
        let temporary =
            tempfile::Builder::new().prefix(".etlkit-").tempdir_in(target).map_err(failure)?;
        Ok(Directory { target: target.to_owned(), temporary, files: Vec::new() })
    }

    /// The path of a file of the scenario's: never one outside of the directory.
    fn inside(&self, name: &str) -> io::Result<PathBuf> {
        match etl_synth::text::no_file_name(name) {
            None => Ok(self.temporary.path().join(name)),
            Some(why) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("\"{name}\" cannot be a file here: {why}"),
            )),
        }
    }

    /// A file that is no trace.
    fn file(&mut self, name: &str) -> io::Result<fs::File> {
        fs::File::create(self.temporary.path().join(name))
    }

    /// Puts the files in their places: names and sizes.
    pub fn finish(self, force: bool) -> Result<Vec<(String, u64)>, Failure> {
        let mut files = Vec::new();
        let entries = fs::read_dir(self.temporary.path())?;
        let mut names: Vec<String> = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        // Those that the scenario names come in its order, what came beside them behind.
        names.sort_by_key(|n| {
            (self.files.iter().position(|f| f == n).unwrap_or(usize::MAX), n.clone())
        });
        for name in &names {
            let path = self.target.join(name);
            if !force && path.exists() {
                return Err(Failure::new(path.display().to_string(), "is there already")
                    .hint("--force overwrites"));
            }
        }
        // The truth goes first and comes last: where it is, all that it speaks of is there, and is what it says.
        let truth = self.target.join(TRUTH);
        match fs::remove_file(&truth) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::new(truth.display().to_string(), e.to_string()));
            }
            _ => {}
        }
        names.sort_by_key(|name| name == TRUTH);
        for name in names {
            let (from, to) = (self.temporary.path().join(&name), self.target.join(&name));
            let failure = |e: io::Error| Failure::new(to.display().to_string(), e.to_string());
            let file = fs::File::options().write(true).open(&from).map_err(failure)?;
            // The name must not be there before the bytes are.
            file.sync_all().map_err(failure)?;
            let size = file.metadata().map_err(failure)?.len();
            fs::rename(&from, &to).map_err(failure)?;
            files.push((name, size));
        }
        sink::keep_names(&truth)
            .map_err(|e| Failure::new(self.target.display().to_string(), e.to_string()))?;
        Ok(files)
    }
}

impl Store for Directory {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let file = fs::File::create(self.inside(name)?)?;
        if !self.files.iter().any(|f| f == name) {
            self.files.push(name.to_owned());
        }
        // The session writes whole buffers: nothing is gained by another one.
        Ok(Box::new(etl_format::write::File::new(file)))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn Reading>> {
        Ok(Box::new(fs::File::open(self.inside(name)?)?))
    }

    fn cut(&mut self, name: &str, len: u64) -> io::Result<()> {
        fs::File::options().write(true).open(self.inside(name)?)?.set_len(len)
    }

    fn overwrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::File::options().write(true).open(self.inside(name)?)?;
        file.seek(io::SeekFrom::Start(at))?;
        file.write_all(bytes)
    }
}
