//! `etlkit completions` and `etlkit man`: what packages install with the tools.

use std::path::PathBuf;

use clap::{Command, ValueEnum};
use clap_complete::Shell;

use super::roff;
use crate::Outcome;
use crate::error::Failure;
use crate::input;
use crate::output;
use crate::sink;

/// Arguments of `etlkit completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  etlkit completions bash > ~/.local/share/bash-completion/completions/etlkit
  etlkit completions zsh > ~/.zfunc/_etlkit
  etlkit completions fish > ~/.config/fish/completions/etlkit.fish
  etlkit completions powershell >> $PROFILE
  etlkit completions bash --tool etlverify > ~/.local/share/bash-completion/completions/etlverify")]
pub(crate) struct Args {
    /// Shell to complete in
    shell: Shell,
    /// Tool to complete
    #[arg(long, value_enum, default_value_t)]
    tool: Tool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Tool {
    #[default]
    Etlkit,
    Etlverify,
}

/// Arguments of `etlkit man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  etlkit man | man -l -
  etlkit man ~/.local/share/man/man1 && man etlkit-dump")]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to DIR; without it, print the page of etlkit
    #[arg(value_name = "DIR", value_parser = input::directory())]
    directory: Option<PathBuf>,
}

/// The two tools.
pub(crate) struct Tools {
    pub etlkit: Command,
    pub etlverify: Command,
}

pub(crate) fn run(args: &Args, tools: Tools) -> Result<Outcome, Failure> {
    let (mut command, name) = match args.tool {
        Tool::Etlkit => (tools.etlkit, "etlkit"),
        Tool::Etlverify => (tools.etlverify, "etlverify"),
    };
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Success)
}

pub(crate) fn man(args: &ManArgs, tools: Tools) -> Result<Outcome, Failure> {
    let Some(directory) = &args.directory else {
        output::print(&page(&tools.etlkit, "etlkit")?)?;
        return Ok(Outcome::Success);
    };
    std::fs::create_dir_all(directory).map_err(|e| {
        sink::directory_failure(directory, &e, "choose a directory that you may write to")
    })?;
    let mut all = Vec::new();
    for mut tool in [tools.etlkit, tools.etlverify] {
        // Sets the full name of each command, and the options that all commands share.
        tool = tool.disable_help_subcommand(true);
        tool.build();
        pages(&tool, "", &mut all);
    }
    for (name, command) in &all {
        let page = page(command, name)?;
        let path = directory.join(format!("{name}.1"));
        sink::replace(&path, page.as_bytes())?;
    }
    output::print(&format!("{} pages in {}\n", all.len(), directory.display()))?;
    Ok(Outcome::Success)
}

/// One page.
fn page(command: &Command, title: &str) -> Result<String, Failure> {
    let mut page = Vec::new();
    let source = format!("etlkit {}", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command.clone())
        .title(title)
        .source(source)
        .manual("etlkit");
    man.render(&mut page)?;
    let page = roff::with_literal_examples(&String::from_utf8_lossy(&page));
    let usage = command.clone().render_usage().to_string();
    Ok(roff::with_usage(&page, &title.replace('-', " "), &usage))
}

/// A command and its subcommands, with the names of their pages.
fn pages(command: &Command, parent: &str, all: &mut Vec<(String, Command)>) {
    let name = format!("{parent}{}", command.get_name());
    for subcommand in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages(subcommand, &format!("{name}-"), all);
    }
    // A page shows its command as it is typed, and refers to others by the names of their pages.
    let typed = name.replace('-', " ");
    let page = command.clone().display_name(name.clone()).bin_name(typed);
    all.push((name, page));
}
