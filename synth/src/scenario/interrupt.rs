//! `interrupt`: a device interrupts a processor.

use super::args::Args;
use crate::model::{Action, DpcKind, InterruptPlan};

/// `interrupt "storport.sys" processor=1 isr="8us" dpc="60us" kind="timer" nested="5us"`
pub(super) fn interrupt(mut args: Args<'_, '_>) -> Option<Action> {
    let driver = args.next_text("the file name of a driver", 64)?;
    let plan = InterruptPlan {
        driver,
        processor: args.get("processor").unwrap_or(0),
        isr: args.time("isr"),
        message: args.flag("message"),
        dpc: args.time("dpc"),
        dpc_kind: args.choice("kind", &DpcKind::WORDS).unwrap_or_default(),
        nested: args.time("nested"),
    };
    if plan.driver.contains(['\\', '/']) {
        let help = Some("\"storport.sys\"");
        args.error("a driver is a file name", plan.driver.clone(), help);
    }
    if plan.isr.is_none() && plan.dpc.is_none() {
        let help = Some("isr=\"8us\" dpc=\"60us\"");
        args.error("an interrupt runs something", "neither isr nor dpc", help);
    }
    if plan.nested.is_some() && plan.dpc.is_none() {
        let help = Some("dpc=\"60us\" nested=\"5us\"");
        args.error("nothing is interrupted", "nested without dpc", help);
    }
    args.finish();
    Some(Action::Interrupt(plan))
}
