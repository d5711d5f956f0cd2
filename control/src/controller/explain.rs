//! Explanation of command lines: what an action enables, and which of its names are unknown.

use etl_schema::Identity;
use etl_schema::tables::{self, Provider, Registry, TableEvent, TableSet, windows};

use super::flags::{expand_kernel_flags, kernel_flag_names, kernel_groups, stack_events};
use super::model::{Action, CommandLine, Keywords, ProviderRef, ProviderSpec, Session, Tool};
use crate::enable::{Enablement, EventKey, Variant};
use crate::{Error, mask, nearest_names};

/// What an action of a command line enables, and which of its names are unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActionExplanation<'a> {
    /// The action.
    pub action: &'a Action,
    /// Kernel flags by name, with groups of flags replaced by their flags.
    pub kernel_flags: Vec<&'a str>,
    /// The kernel flags that no tool has.
    pub unknown_kernel_flags: Vec<UnknownName<'a>>,
    /// The events of `xperf -stackwalk` that it does not have.
    pub unknown_stack_events: Vec<UnknownName<'a>>,
    /// The providers that the action names, in order.
    pub providers: Vec<ProviderExplanation<'a>>,
}

/// What a session receives from a provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderExplanation<'a> {
    /// The provider and its settings.
    pub spec: &'a ProviderSpec,
    /// The provider with its keywords and events, if a table describes it.
    pub provider: Option<&'static Provider>,
    /// The provider's name, if no table has a provider of this name.
    pub unknown_provider: Option<UnknownName<'a>>,
    /// The enablement; `None` if a keyword is unknown.
    pub enablement: Option<Enablement>,
    /// The first keyword that the provider does not have.
    pub unknown_keyword: Option<UnknownName<'a>>,
    /// Explanation of mask and level; `None` without `provider` or `enablement`, and for a mask of
    /// EventPipe without keywords.
    pub mask: Option<mask::Explanation<'static>>,
    /// The events that the provider raises and that pass all filters of the enablement.
    pub events: Vec<&'static TableEvent>,
}

/// A name of a command line that no table has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName<'a> {
    /// The name.
    pub name: &'a str,
    /// The names most like it, the most similar first.
    pub nearest: Vec<&'static str>,
}

impl<'a> UnknownName<'a> {
    fn new(name: &'a str, names: impl Iterator<Item = &'static str>) -> Self {
        UnknownName {
            name,
            nearest: nearest_names(name, names),
        }
    }
}

impl CommandLine {
    /// Explains each action of the line by the tables of this library: what it enables, and which
    /// of its names are unknown.
    ///
    /// ```
    /// use etl_control::controller::CommandLine;
    ///
    /// let text = "xperf -on LOADER+CSWICH -start clr -on Microsoft-Windows-DotNETRuntime:0x10:5";
    /// let line: CommandLine = text.parse()?;
    /// let actions = line.explain();
    /// let unknown_flag = &actions[0].unknown_kernel_flags[0];
    /// assert_eq!((unknown_flag.name, unknown_flag.nearest[0]), ("CSWICH", "CSWITCH"));
    ///
    /// let runtime = &actions[1].providers[0];
    /// let mask = runtime.mask.as_ref().ok_or("a provider of the CLR")?;
    /// assert_eq!(mask.names, ["JitKeyword"]);
    /// assert!(runtime.events.iter().any(|event| event.schema.name.starts_with("MethodLoad")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn explain(&self) -> Vec<ActionExplanation<'_>> {
        self.actions
            .iter()
            .map(|action| explain_action(action, self.tool))
            .collect()
    }

    /// Completes the names of providers in a list without a tool, where the end of a name is
    /// enough: tools accept whole names only.
    ///
    /// ```
    /// use etl_control::controller::CommandLine;
    ///
    /// let mut line: CommandLine = "rundown:0x138:5".parse()?;
    /// line.complete_names();
    /// assert_eq!(line.to_string(), "Microsoft-Windows-DotNETRuntimeRundown:0x138:0x5");
    /// # Ok::<(), etl_control::controller::LineError>(())
    /// ```
    pub fn complete_names(&mut self) {
        if self.tool != Tool::Plain {
            return;
        }
        for action in &mut self.actions {
            let Action::Enable { providers, .. } = action else {
                continue;
            };
            for spec in providers {
                spec.provider.complete_name();
            }
        }
    }
}

fn explain_action(action: &Action, tool: Tool) -> ActionExplanation<'_> {
    let mut explanation = ActionExplanation {
        action,
        kernel_flags: Vec::new(),
        unknown_kernel_flags: Vec::new(),
        unknown_stack_events: Vec::new(),
        providers: Vec::new(),
    };
    match action {
        Action::Start(session) | Action::Create(session) | Action::Update(session) => {
            explanation.explain_session(session, tool);
        }
        Action::Enable {
            providers, kernel, ..
        }
        | Action::Disable {
            providers, kernel, ..
        } => {
            explanation.explain_kernel_flags(kernel, tool);
            explanation.explain_providers(providers);
        }
        Action::CaptureState { providers, .. } => explanation.explain_providers(providers),
        Action::Collect(collection) => explanation.explain_providers(&collection.providers),
        Action::Flush { .. }
        | Action::Stop { .. }
        | Action::Delete { .. }
        | Action::SystemRundown { .. }
        | Action::Query { .. }
        | Action::ListProviders
        | Action::Decode { .. }
        | Action::Merge { .. } => {}
    }
    explanation
}

impl<'a> ActionExplanation<'a> {
    fn explain_session(&mut self, session: &'a Session, tool: Tool) {
        self.explain_kernel_flags(&session.kernel, tool);
        if tool == Tool::Xperf {
            let events = session.stack_walk.iter().map(String::as_str);
            let unknown = events.filter(|event| !is_stack_event(event));
            self.unknown_stack_events = unknown
                .map(|event| UnknownName::new(event, stack_events()))
                .collect();
        }
        self.explain_providers(&session.providers);
    }

    fn explain_kernel_flags(&mut self, flags: &'a [String], tool: Tool) {
        self.kernel_flags = expand_kernel_flags(flags);
        // tracelog has switches instead of flags, which are checked when its line is parsed.
        if tool == Tool::Tracelog {
            return;
        }
        for flag in &self.kernel_flags {
            if kernel_groups(&[(*flag).to_owned()]).is_err() {
                self.unknown_kernel_flags
                    .push(UnknownName::new(flag, kernel_flag_names()));
            }
        }
    }

    fn explain_providers(&mut self, specs: &'a [ProviderSpec]) {
        self.providers = specs.iter().map(explain_provider).collect();
    }
}

/// Whether `xperf -stackwalk` accepts this: an event, a hook, or a file that lists events.
fn is_stack_event(event: &str) -> bool {
    event.starts_with("0x")
        || event.starts_with('@')
        || stack_events().any(|name| name.eq_ignore_ascii_case(event))
}

fn explain_provider(spec: &ProviderSpec) -> ProviderExplanation<'_> {
    let provider = spec.provider.described();
    let mut explanation = ProviderExplanation {
        spec,
        provider,
        unknown_provider: unknown_provider(&spec.provider),
        enablement: None,
        unknown_keyword: None,
        mask: None,
        events: Vec::new(),
    };
    match spec.enablement(Registry::builtin()) {
        Ok(enablement) => explanation.explain_enablement(enablement),
        Err(Error::UnknownKeyword(name)) => {
            explanation.unknown_keyword = unknown_keyword(spec, provider, &name);
        }
        Err(_) => {}
    }
    explanation
}

impl ProviderExplanation<'_> {
    fn explain_enablement(&mut self, enablement: Enablement) {
        if let Some(provider) = self.provider {
            let is_empty = enablement.variant == Variant::EventPipe && enablement.any == 0;
            // A mask of 0 would be explained as all keywords: this bit is of no keyword.
            let any = if is_empty { NO_KEYWORD } else { enablement.any };
            let mask = mask::explain(TableSet::Shipped, provider, any, enablement.level);
            let raised = mask.raised.iter().map(|raised| raised.event);
            self.events = raised
                .filter(|event| enablement.admits(&event_key(event)))
                .collect();
            if !is_empty {
                self.mask = Some(mask);
            }
        }
        self.enablement = Some(enablement);
    }
}

/// A bit that is no keyword of a provider of .NET.
const NO_KEYWORD: u64 = 1 << 63;

fn unknown_provider(provider: &ProviderRef) -> Option<UnknownName<'_>> {
    match provider {
        ProviderRef::Name(name) if provider.guid(Registry::builtin()).is_none() => {
            Some(UnknownName {
                name,
                nearest: nearest_providers(name),
            })
        }
        _ => None,
    }
}

fn unknown_keyword<'a>(
    spec: &'a ProviderSpec,
    provider: Option<&'static Provider>,
    name: &str,
) -> Option<UnknownName<'a>> {
    let Some(Keywords::Names(names)) = &spec.keywords else {
        return None;
    };
    let unknown = names.iter().find(|keyword| *keyword == name)?;
    let keywords = provider.map_or(&[][..], |provider| &provider.keywords);
    Some(UnknownName::new(
        unknown,
        keywords.iter().map(|keyword| keyword.name.as_str()),
    ))
}

/// Returns the names of providers most like one that no provider has.
///
/// ```
/// let nearest = etl_control::controller::nearest_providers("Microsoft-Windows-DotNETRuntim");
/// assert_eq!(nearest[0], "Microsoft-Windows-DotNETRuntime");
/// ```
#[must_use]
pub fn nearest_providers(name: &str) -> Vec<&'static str> {
    let clr = Registry::builtin()
        .providers()
        .map(|provider| provider.name.as_str());
    nearest_names(name, clr.chain(windows::names()))
}

impl ProviderRef {
    /// Returns the provider with its keywords and events, if a table describes it.
    ///
    /// ```
    /// use etl_control::controller::ProviderRef;
    ///
    /// let runtime = ProviderRef::Name("Microsoft-Windows-DotNETRuntime".to_owned());
    /// let keywords = runtime.described().map(|provider| provider.keywords.len());
    /// assert!(keywords.is_some_and(|count| count > 0));
    /// assert!(ProviderRef::File("providers.txt".to_owned()).described().is_none());
    /// ```
    #[must_use]
    pub fn described(&self) -> Option<&'static Provider> {
        let guid = self.guid(Registry::builtin())?;
        tables::provider(TableSet::Shipped, guid)
    }
}

/// What the enable rule reads of an event.
fn event_key(event: &TableEvent) -> EventKey {
    let id = match event.schema.identity {
        Identity::Modern { id, .. } => id,
        Identity::Classic { opcode, .. } => opcode.into(),
        Identity::Message { number } => number,
        Identity::SelfDescribing => 0,
    };
    EventKey {
        id,
        level: event.schema.level.value,
        keyword: event.schema.keywords,
    }
}
