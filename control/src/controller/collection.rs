//! Recordings of EventPipe: what `dotnet-trace` and the settings of a .NET process request.
//!
//! Sources: the source of `dotnet-trace` (`ProviderUtils`, `ListProfilesCommandHandler`,
//! `CollectCommand`) and of the runtime's settings.

use etl_schema::providers::CLR_RUNTIME;
#[cfg(test)]
use etl_schema::sources::provider_guid;
use etl_schema::tables::Registry;

use super::args::{Args, wrong};
use super::error::{Found, LineError};
use super::explain::nearest_providers;
use super::model::{Collection, Keywords, ProviderRef, ProviderSpec};
use super::tokens::Word;
use crate::enable::Variant;

/// The keywords that the runtime uses for its rundown, unless the session chooses others: GC,
/// Loader, Jit, NGen, EndRundown, maps of IL to native code, and ThreadTransfer. .NET Core 3.1 does
/// not use GC.
///
/// ```
/// assert_eq!(etl_control::controller::RUNDOWN_KEYWORDS & 0x138, 0x138);
/// ```
pub const RUNDOWN_KEYWORDS: u64 = 0x8002_0139;

/// The level that `dotnet-trace` uses if a provider has none.
const DEFAULT_LEVEL: u8 = 4;
/// The name of the runtime provider.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The name of the private provider of the runtime.
const PRIVATE: &str = "Microsoft-Windows-DotNETRuntimePrivate";
/// The provider of the sampling thread.
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// A profile of `dotnet-trace`.
struct Profile {
    name: &'static str,
    providers: &'static [ProfileProvider],
    /// The keywords of its rundown; 0 for the usual ones.
    rundown: u64,
}

/// A provider of a profile.
struct ProfileProvider {
    name: &'static str,
    keywords: u64,
    level: u8,
}

const fn provider(name: &'static str, keywords: u64, level: u8) -> ProfileProvider {
    ProfileProvider {
        name,
        keywords,
        level,
    }
}

/// The profiles of all versions. `cpu-sampling` is the former default; `collect-linux` uses the
/// name for samples of the kernel.
const PROFILES: &[Profile] = &[
    Profile {
        name: "dotnet-common",
        providers: &[provider(RUNTIME, 0x10_0003_801d, 4)],
        rundown: 0,
    },
    Profile {
        name: "dotnet-sampled-thread-time",
        providers: &[provider(SAMPLER, 0xf000_0000_0000, 4)],
        rundown: 0,
    },
    Profile {
        name: "gc-verbose",
        providers: &[provider(RUNTIME, 0x8003, 5)],
        rundown: 0,
    },
    Profile {
        name: "gc-collect",
        providers: &[provider(RUNTIME, 1, 4), provider(PRIVATE, 1, 4)],
        rundown: 1,
    },
    Profile {
        name: "database",
        providers: &[
            provider("System.Threading.Tasks.TplEventSource", 0x80, 4),
            provider("Microsoft-Diagnostics-DiagnosticSource", 3, 5),
        ],
        rundown: 0,
    },
    Profile {
        name: "cpu-sampling",
        providers: &[
            provider(SAMPLER, 0xf000_0000_0000, 4),
            provider(RUNTIME, 0x14_c14f_ccbd, 4),
        ],
        rundown: 0,
    },
    Profile {
        name: "thread-time",
        providers: &[],
        rundown: 0,
    },
];

/// The profiles that `dotnet-trace collect` uses if a line requests nothing.
const DEFAULT_PROFILES: [&str; 2] = ["dotnet-common", "dotnet-sampled-thread-time"];

/// The names of keywords of `--clrevents`. The tool's names differ from the names of the manifest.
const CLR_KEYWORDS: &[(&str, u64)] = &[
    ("gc", 0x1),
    ("gchandle", 0x2),
    ("fusion", 0x4),
    ("assemblyloader", 0x4),
    ("loader", 0x8),
    ("jit", 0x10),
    ("ngen", 0x20),
    ("startenumeration", 0x40),
    ("endenumeration", 0x80),
    ("security", 0x400),
    ("appdomainresourcemanagement", 0x800),
    ("jittracing", 0x1000),
    ("interop", 0x2000),
    ("contention", 0x4000),
    ("exception", 0x8000),
    ("threading", 0x1_0000),
    ("jittedmethodiltonativemap", 0x2_0000),
    ("overrideandsuppressngenevents", 0x4_0000),
    ("type", 0x8_0000),
    ("gcheapdump", 0x10_0000),
    ("gcsampledobjectallocationhigh", 0x20_0000),
    ("gcheapsurvivalandmovement", 0x40_0000),
    ("gcheapcollect", 0x80_0000),
    ("managedheadcollect", 0x80_0000),
    ("gcheapandtypenames", 0x100_0000),
    ("gcsampledobjectallocationlow", 0x200_0000),
    ("perftrack", 0x2000_0000),
    ("stack", 0x4000_0000),
    ("threadtransfer", 0x8000_0000),
    ("debugger", 0x1_0000_0000),
    ("monitoring", 0x2_0000_0000),
    ("codesymbols", 0x4_0000_0000),
    ("eventsource", 0x8_0000_0000),
    ("compilation", 0x10_0000_0000),
    ("compilationdiagnostic", 0x20_0000_0000),
    ("methoddiagnostic", 0x40_0000_0000),
    ("typediagnostic", 0x80_0000_0000),
    ("jitinstrumentationdata", 0x100_0000_0000),
    ("profiler", 0x200_0000_0000),
    ("waithandle", 0x400_0000_0000),
    ("allocationsampling", 0x800_0000_0000),
];

/// The names of levels. A higher number means verbose.
const LEVELS: [(&str, u8); 6] = [
    ("logalways", 0),
    ("critical", 1),
    ("error", 2),
    ("warning", 3),
    ("informational", 4),
    ("verbose", 5),
];

/// The level that a text means.
pub(super) fn level(text: &str) -> Option<u8> {
    if let Ok(number) = text.parse::<u32>() {
        return u8::try_from(number.min(5)).ok();
    }
    let mut names = LEVELS.iter();
    let level = names.find(|(name, _)| name.eq_ignore_ascii_case(text));
    level.map(|(_, level)| *level)
}

/// A mask as the tools and the runtime read it: hexadecimal, with or without `0x`.
fn mask(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    u64::from_str_radix(digits.unwrap_or(text), 16).ok()
}

/// A provider of EventPipe by its name: of a table, or an event source whose GUID is the hash of
/// its name. A name that is much like a name of a table stays unknown.
fn provider_ref(name: &str) -> ProviderRef {
    let by_name = ProviderRef::Name(name.to_owned());
    let is_known = by_name.guid(Registry::builtin()).is_some();
    if is_known || !nearest_providers(name).is_empty() {
        by_name
    } else {
        ProviderRef::Hashed(name.to_owned())
    }
}

/// A provider of an EventPipe session.
fn spec(name: &str, keywords: u64, level: u8) -> ProviderSpec {
    ProviderSpec {
        keywords: Some(Keywords::Mask(keywords)),
        level: Some(level),
        variant: Variant::EventPipe,
        ..ProviderSpec::new(provider_ref(name))
    }
}

/// A list `NAME[:MASK[:LEVEL[:ARGUMENTS]]],...`. Without a mask a provider raises only events
/// without keyword, and without a level events up to `default_level`.
pub(super) fn providers(list: &Word, default_level: u8) -> Result<Vec<ProviderSpec>, LineError> {
    let mut out = Vec::new();
    for part in unquoted(&list.text).split(',') {
        if part.trim().is_empty() {
            continue;
        }
        out.push(one_provider(part.trim(), list, default_level)?);
    }
    if out.is_empty() {
        return Err(wrong(list, "providers NAME:MASK:LEVEL with commas between"));
    }
    Ok(out)
}

fn one_provider(text: &str, list: &Word, default_level: u8) -> Result<ProviderSpec, LineError> {
    let mut fields = text.splitn(4, ':');
    let name = fields.next().unwrap_or_default();
    if name.is_empty() {
        return Err(wrong(list, "the name of a provider before the colon"));
    }
    if name.parse::<etl_format::Guid>().is_ok() {
        let error = part(list, name, "the name of a provider");
        return Err(error.hint("EventPipe knows providers by name, not by GUID"));
    }
    let mut provider = spec(name, 0, default_level);
    if let Some(field) = fields.next().filter(|field| !field.is_empty()) {
        let keywords = mask(field).ok_or_else(|| part(list, field, "a hexadecimal mask"))?;
        provider.keywords = Some(Keywords::Mask(keywords));
    }
    if let Some(field) = fields.next().filter(|field| !field.is_empty()) {
        let expected = "a level: 0 to 5, or its name (verbose)";
        provider.level = Some(level(field).ok_or_else(|| part(list, field, expected))?);
    }
    if let Some(arguments) = fields.next() {
        arguments.clone_into(&mut provider.arguments);
    }
    Ok(provider)
}

/// A text without the single quotes that a shell of Unix removes.
pub(super) fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('\'');
    inner.and_then(|t| t.strip_suffix('\'')).unwrap_or(text)
}

/// An error about a part of a word.
fn part(word: &Word, part: &str, expected: &str) -> LineError {
    LineError::new(word.span.clone(), expected, Found::Text(part.to_owned()))
}

/// `--profile A,B`.
pub(super) fn profiles(args: &mut Args) -> Result<Vec<String>, LineError> {
    let word = args.value("profiles with commas between")?;
    let mut out = Vec::new();
    for name in unquoted(&word.text).split(',') {
        let Some(profile) = profile(name.trim()) else {
            let names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
            let error = part(&word, name, "a profile of dotnet-trace");
            return Err(error.hint(format!("its profiles are {}", names.join(", "))));
        };
        out.push(profile.name.to_owned());
    }
    Ok(out)
}

fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES
        .iter()
        .find(|profile| profile.name.eq_ignore_ascii_case(name))
}

/// `--clrevents gc+jit`.
pub(super) fn clr_events(args: &mut Args) -> Result<Vec<String>, LineError> {
    let word = args.value("keywords of the runtime with plus signs between")?;
    let mut out = Vec::new();
    for name in unquoted(&word.text).split('+') {
        let name = name.trim().to_ascii_lowercase();
        if clr_keyword(&name).is_none() {
            let nearest = crate::nearest_names(&name, CLR_KEYWORDS.iter().map(|(name, _)| *name));
            let error = part(&word, &name, "a keyword of --clrevents");
            return Err(match nearest.first() {
                Some(nearest) => error.hint(format!("did you mean {nearest}?")),
                None => error,
            });
        }
        out.push(name);
    }
    Ok(out)
}

fn clr_keyword(name: &str) -> Option<u64> {
    let keyword = CLR_KEYWORDS.iter().find(|(known, _)| *known == name);
    keyword.map(|(_, bit)| *bit)
}

impl Collection {
    /// Computes the providers that the session enables: the named ones, then those of profiles that
    /// are not named, then the runtime by `--clrevents` if nothing else enables it.
    pub(super) fn enable_providers(&mut self) {
        for named in &self.named {
            match same(&mut self.providers, named) {
                Some(existing) => merge(existing, named),
                None => self.providers.push(named.clone()),
            }
        }
        let mut profiles: Vec<&str> = self.profiles.iter().map(String::as_str).collect();
        if self.requests_nothing() {
            profiles = DEFAULT_PROFILES.to_vec();
        }
        for name in profiles {
            // Of the kernel, with another command.
            if self.has_kernel && name == "cpu-sampling" {
                continue;
            }
            let providers = profile(name).map_or(&[][..], |profile| profile.providers);
            for provider in providers {
                let spec = spec(provider.name, provider.keywords, provider.level);
                if same(&mut self.providers, &spec).is_none() {
                    self.providers.push(spec);
                }
            }
        }
        let mut keywords = 0;
        for name in &self.clr_events {
            keywords |= clr_keyword(name).unwrap_or_default();
        }
        if !self.clr_events.is_empty() {
            let runtime = spec(RUNTIME, keywords, self.clr_level.unwrap_or(DEFAULT_LEVEL));
            if same(&mut self.providers, &runtime).is_none() {
                self.providers.push(runtime);
            }
        }
    }

    /// Whether the line names no providers, profiles or keywords.
    #[must_use]
    pub fn requests_nothing(&self) -> bool {
        self.named.is_empty() && self.profiles.is_empty() && self.clr_events.is_empty()
    }

    /// Whether `--clrevents` has no effect, because a provider or a profile enables the runtime.
    #[must_use]
    pub fn ignores_clr_events(&self) -> bool {
        let mut profiles = self.profiles.iter().filter_map(|name| profile(name));
        let is_in_profile = profiles.any(|p| p.providers.iter().any(|p| p.name == RUNTIME));
        let mut named = self.named.iter();
        let is_named =
            named.any(|spec| spec.provider.guid(Registry::builtin()) == Some(CLR_RUNTIME));
        !self.clr_events.is_empty() && (is_in_profile || is_named)
    }

    /// The keywords with which the runtime writes its rundown when the session stops; `None` if it
    /// writes none.
    ///
    /// ```
    /// use etl_control::controller::{Action, CommandLine};
    ///
    /// let line: CommandLine = "dotnet-trace collect -p 4711 --profile gc-collect".parse()?;
    /// let [Action::Collect(collection)] = &line.actions[..] else { panic!("one recording") };
    /// // Only the settings of the collector: methods have no names.
    /// assert_eq!(collection.rundown_keywords(), Some(1));
    /// # Ok::<(), etl_control::controller::LineError>(())
    /// ```
    #[must_use]
    pub fn rundown_keywords(&self) -> Option<u64> {
        let profiles = self.profiles.iter().filter_map(|name| profile(name));
        let chosen = profiles.fold(0, |keywords, profile| keywords | profile.rundown);
        match self.rundown {
            Some(false) => None,
            Some(true) => Some(chosen | RUNDOWN_KEYWORDS),
            None if chosen == 0 => Some(RUNDOWN_KEYWORDS),
            None => Some(chosen),
        }
    }
}

/// The provider of the same name, as the tool compares names.
fn same<'s>(specs: &'s mut [ProviderSpec], other: &ProviderSpec) -> Option<&'s mut ProviderSpec> {
    let name = other.provider.text();
    specs
        .iter_mut()
        .find(|spec| spec.provider.text().eq_ignore_ascii_case(&name))
}

/// Adds the keywords and the level of a provider that is named again.
fn merge(existing: &mut ProviderSpec, other: &ProviderSpec) {
    let keywords = |spec: &ProviderSpec| spec.keywords.as_ref().and_then(Keywords::number);
    let union = keywords(existing).unwrap_or(0) | keywords(other).unwrap_or(0);
    existing.keywords = Some(Keywords::Mask(union));
    existing.level = match (existing.level, other.level) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (first, second) => first.max(second),
    };
    if existing.arguments.is_empty() {
        existing.arguments.clone_from(&other.arguments);
    }
}

/// The providers that a process enables by its settings if none are configured.
pub(super) fn default_settings() -> Vec<ProviderSpec> {
    vec![
        spec(RUNTIME, 0x4_c14f_ccbd, 5),
        spec(PRIVATE, 0x4002_000b, 5),
        spec(SAMPLER, 0, 5),
    ]
}

/// Whether a name has the GUID that event sources have.
#[cfg(test)]
pub(super) fn is_hashed(spec: &ProviderSpec) -> bool {
    let name = spec.provider.text();
    spec.provider.guid(Registry::builtin()) == Some(provider_guid(&name))
}
