//! Files with one provider per line, for `logman -pf FILE` and `tracelog -guid FILE`.
//!
//! Sources: the reference of both tools, and the lists that Windows' web server comes with:
//! `{GUID} FLAGS LEVEL NAME`.

use super::args::{Args, GUID, wrong};
use super::error::{Error, LineError};
use super::logman;
use super::model::{ProviderRef, ProviderSpec, Session, Tool};
use super::tokens;

/// What a file lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFile {
    /// The providers, in order.
    pub providers: Vec<ProviderSpec>,
    /// Flags of the kernel, by name.
    pub kernel: Vec<String>,
}

/// Reads a file that lists providers. For `logman` a line has the arguments of `-p`, and the
/// provider's name may follow. For `tracelog` a line is a GUID and a name, and all providers are
/// enabled as `spec` says. Empty lines, and lines that begin with a semicolon, are skipped.
///
/// ```
/// use etl_control::controller::{ProviderRef, ProviderSpec, Tool, parse_provider_file};
/// use etl_schema::providers::CLR_RUNTIME;
///
/// let spec = ProviderSpec { level: Some(5), ..ProviderSpec::new(ProviderRef::Guid(CLR_RUNTIME)) };
/// let text = "; the CLR\n{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4} Runtime\n";
/// let file = parse_provider_file(Tool::Tracelog, &spec, text)?;
/// assert_eq!(file.providers, [spec]);
/// # Ok::<(), etl_control::Error>(())
/// ```
///
/// # Errors
/// The first line that lists no provider.
pub fn parse_provider_file(
    tool: Tool,
    spec: &ProviderSpec,
    text: &str,
) -> Result<ProviderFile, Error> {
    let mut session = Session::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let listed = match tool {
            Tool::Tracelog => guid(spec, line).map(|spec| session.providers.push(spec)),
            _ => tokens::split(line)
                .and_then(|words| logman::one_provider(&mut session, &mut Args::new(line, words))),
        };
        let line = number.saturating_add(1);
        listed.map_err(|error| Error::ProviderFile { line, error })?;
    }
    Ok(ProviderFile {
        providers: session.providers,
        kernel: session.kernel,
    })
}

fn guid(spec: &ProviderSpec, line: &str) -> Result<ProviderSpec, LineError> {
    let words = tokens::split(line)?;
    let mut args = Args::new(line, words);
    let word = args.value("a GUID")?;
    let guid = word
        .text
        .trim_start_matches('#')
        .trim_end_matches([',', ';'])
        .parse();
    let guid = guid.map_err(|_| wrong(&word, GUID))?;
    Ok(ProviderSpec {
        provider: ProviderRef::Guid(guid),
        ..spec.clone()
    })
}
