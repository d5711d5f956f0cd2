//! Runs cargo, scripts and other programs, and installs tools.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Why a task ends.
#[derive(Debug)]
pub enum Failure {
    /// A program that has printed its error ended with this exit code.
    Code(u8),
    /// An error to print.
    Message(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

/// The folder of the checkout.
pub fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.parent().unwrap_or(folder).to_owned()
}

/// A command of cargo, in the checkout.
pub fn cargo(command: &str) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut cargo = Command::new(program);
    cargo.current_dir(root()).arg(command);
    cargo
}

/// A script, by its path in the checkout.
pub fn script(path: &str) -> Command {
    let mut script = Command::new(root().join(path));
    script.current_dir(root());
    script
}

/// Another program, in the checkout.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut program = Command::new(name);
    program.current_dir(root());
    program
}

/// Runs a command, which prints to the terminal.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| start_error(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Code(exit_code(status)))
    }
}

/// Runs a command and returns what it prints.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    command.stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| start_error(command, &error))?;
    if !output.status.success() {
        return Err(Failure::Code(exit_code(output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn start_error(command: &Command, error: &std::io::Error) -> Failure {
    let name = command.get_program().display();
    Failure::Message(format!("{name} does not start: {error}"))
}

/// 1 for a program that a signal ended.
fn exit_code(status: ExitStatus) -> u8 {
    match status.code().map(u8::try_from) {
        Some(Ok(code)) => code,
        _ => 1,
    }
}

/// A tool from crates.io in `.cache/tools`.
pub struct Tool {
    /// The package.
    pub package: &'static str,
    /// The program in it.
    pub program: &'static str,
    /// The only version that is used.
    pub version: &'static str,
}

impl Tool {
    /// Installs the tool if another version or none is there, and returns the path of its program.
    pub fn install(&self) -> Result<PathBuf, Failure> {
        let tools = root().join(".cache/tools");
        let installed = std::fs::read_to_string(tools.join(".crates.toml")).unwrap_or_default();
        let entry = format!("\"{} {} ", self.package, self.version);
        if !installed.contains(&entry) {
            let mut install = cargo("install");
            // Without optimisation: building costs more time than running.
            install
                .args(["--quiet", "--locked", "--profile", "dev", "--root"])
                .arg(&tools);
            install.arg("--target-dir").arg(root().join(".cache/build"));
            run(install.args([self.package, "--version", self.version]))?;
        }
        let name = format!("{}{}", self.program, std::env::consts::EXE_SUFFIX);
        Ok(tools.join("bin").join(name))
    }
}

/// `PATH` with the folder of a program first: cargo finds its subcommands there.
pub fn path_with(program: &Path) -> Result<OsString, Failure> {
    let mut folders: Vec<PathBuf> = program.parent().map(Path::to_owned).into_iter().collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| Failure::Message(error.to_string()))
}
