//! `raise`: an event of a provider that the script declares, or that Windows ships.

use super::args::Args;
use super::{fields, windows};
use crate::model::{ActivityWork, ProviderKind, ProviderPlan, RaisePlan, Scenario, Work};

const ACTIVITIES: [(&str, ActivityWork); 3] = [
    ("none", ActivityWork::None),
    ("start", ActivityWork::Start),
    ("stop", ActivityWork::Stop),
];

/// `raise "Contoso-Orders" "Placed" activity="start" thread=0 { Id 7 }`
pub(super) fn raise(mut args: Args<'_, '_>, scenario: &mut Scenario) -> Option<Work> {
    let name: String = args.next("a provider")?;
    let event: String = args.next("an event")?;
    let activity = args.choice("activity", &ACTIVITIES).unwrap_or_default();
    let thread = args.get("thread").unwrap_or(0);
    let mut providers = scenario.providers.iter();
    let declaration =
        providers.position(|plan| plan.kind != ProviderKind::Windows && plan.name == name);
    let (provider, event) = match declaration {
        Some(at) => (
            at,
            declared(&mut args, scenario.providers.get(at)?, &event)?,
        ),
        None => windows::event(&mut args, scenario, &name, &event)?,
    };
    let schema = scenario.providers.get(provider)?.events.get(event)?;
    let values = fields::values(args, &schema.fields);
    Some(Work::Raise(Box::new(RaisePlan {
        provider,
        event,
        values,
        activity,
        thread,
    })))
}

/// The index of an event of a provider that the script declares.
fn declared(args: &mut Args<'_, '_>, plan: &ProviderPlan, event: &str) -> Option<usize> {
    let index = plan.events.iter().position(|known| known.name == *event);
    if index.is_none() {
        let names: Vec<&str> = plan.events.iter().map(|known| &*known.name).collect();
        let help = format!("its events: {}", names.join(", "));
        args.error(
            format!("the provider has no event \"{event}\""),
            "here",
            Some(&help),
        );
    }
    index
}
