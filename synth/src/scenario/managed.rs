//! `clr`, `domain`, `assembly`, `module`, `pdb` and `method` nodes.

use super::args::Args;
use crate::distribution::RandomRange;
use crate::model::{
    AppDomainPlan, AssemblyPlan, ClrPlan, CodeKind, MethodPlan, ModuleKind, ModulePlan, PdbPlan,
    Sku,
};

const SKUS: [(&str, Sku); 4] = [
    ("core", Sku::Core),
    ("desktop", Sku::Desktop),
    ("net", Sku::Core),
    ("framework", Sku::Desktop),
];

const MODULES: [(&str, ModuleKind); 4] = [
    ("il", ModuleKind::Il),
    ("ngen", ModuleKind::NGen),
    ("r2r", ModuleKind::ReadyToRun),
    ("dynamic", ModuleKind::Dynamic),
];

const CODE: [(&str, CodeKind); 5] = [
    ("jitted", CodeKind::Jitted),
    ("precompiled", CodeKind::Precompiled),
    ("dynamic", CodeKind::Dynamic),
    ("generic", CodeKind::Generic),
    ("helper", CodeKind::Helper),
];

/// The version of a product or an assembly: four numbers of 16 bits.
fn version(args: &mut Args<'_, '_>) -> Option<[u16; 4]> {
    let numbers = args.version::<4>("version")?;
    if let Some(large) = numbers.iter().find(|n| **n > u32::from(u16::MAX)) {
        let help = format!("each of its numbers is at most {}", u16::MAX);
        args.error("version is too large", large.to_string(), Some(&help));
    }
    Some(numbers.map(|n| u16::try_from(n).unwrap_or(u16::MAX)))
}

/// Maximum number of frames of a stack in an event.
const MAX_FRAMES: u32 = 190;

/// `clr "core" version="6.0.100" { ... }`
pub(super) fn clr(mut args: Args<'_, '_>, process: &str) -> Option<ClrPlan> {
    let sku = args.next_choice("a product", &SKUS)?;
    let default = if sku == Sku::Core {
        [6, 0, 100, 0]
    } else {
        [4, 0, 30319, 0]
    };
    let mut plan = ClrPlan::new(sku, default);
    if let Some(version) = version(&mut args) {
        plan.version = version;
        let (simulated, help) = match sku {
            Sku::Desktop => (4..=4, "a .NET Framework of version 4: \"4.8.4000\""),
            Sku::Core => (1..=u16::MAX, "a .NET of version 1 or later: \"8.0.0\""),
        };
        if version
            .first()
            .is_some_and(|major| !simulated.contains(major))
        {
            args.error("no such version is simulated", "version", Some(help));
        }
    }
    args.set("instance", &mut plan.instance);
    plan.enumeration_cost = args
        .time("enumeration-cost")
        .unwrap_or(plan.enumeration_cost);
    if let Some(depth) = args.range("stack-depth") {
        let min = depth.min.min(MAX_FRAMES);
        let max = depth.max.min(MAX_FRAMES);
        plan.stack_depth = RandomRange::new(min, max, depth.distribution);
        if depth.max > MAX_FRAMES {
            let message = format!("a stack has at most {MAX_FRAMES} frames");
            args.error(message, "stack-depth", None);
        }
    }
    plan.heaps = args
        .within("heaps", 1..=64, "a clr has 1 to 64 heaps")
        .unwrap_or(plan.heaps);
    // Assemblies outside of domains belong to the default domain.
    let mut default = AppDomainPlan::new(if sku == Sku::Core { "clrhost" } else { process });
    let mut domains = Vec::new();
    args.children(&mut |mut args| match args.name() {
        "domain" => domains.extend(domain(args)),
        "assembly" => default.assemblies.extend(assembly(args)),
        _ => args.unknown("a clr", "domain, assembly"),
    });
    if !default.assemblies.is_empty() || domains.is_empty() {
        plan.domains.push(default);
    }
    plan.domains.extend(domains);
    Some(plan)
}

fn domain(mut args: Args<'_, '_>) -> Option<AppDomainPlan> {
    let mut plan = AppDomainPlan::new(args.next::<String>("a name")?);
    plan.shared = args.flag("shared");
    plan.late = args.flag("late");
    args.children(&mut |mut args| match args.name() {
        "assembly" => plan.assemblies.extend(assembly(args)),
        _ => args.unknown("a domain", "assembly"),
    });
    Some(plan)
}

fn assembly(mut args: Args<'_, '_>) -> Option<AssemblyPlan> {
    let mut plan = AssemblyPlan::new(args.next::<String>("a name")?);
    plan.version = version(&mut args).unwrap_or(plan.version);
    plan.late = args.flag("late");
    plan.collectible = args.flag("collectible");
    plan.signed = args.flag("signed");
    plan.authenticode = args.flag("authenticode");
    args.children(&mut |mut args| match args.name() {
        "module" => plan.modules.extend(module(args)),
        _ => args.unknown("an assembly", "module"),
    });
    Some(plan)
}

fn module(mut args: Args<'_, '_>) -> Option<ModulePlan> {
    let path: String = args.next("the path of its file")?;
    let kind = args.choice("kind", &MODULES).unwrap_or_default();
    let mut plan = ModulePlan::new(path, kind);
    if args.get("pdb") == Some(false) {
        plan.pdb = None;
    }
    args.children(&mut |mut args| match args.name() {
        "pdb" => plan.pdb = Some(pdb(args)),
        "method" | "methods" => plan.methods.extend(methods(args, kind)),
        _ => args.unknown("a module", "method, methods, pdb"),
    });
    Some(plan)
}

fn pdb(mut args: Args<'_, '_>) -> PdbPlan {
    let signature = args.parsed(
        "signature",
        |t| t.parse().ok(),
        "signature: not a GUID",
        None,
    );
    let plan = PdbPlan {
        signature: signature.unwrap_or_default(),
        age: args.get("age").unwrap_or(1),
        path: args.get("path").unwrap_or_default(),
    };
    args.finish();
    plan
}

/// `methods 400 kind="jitted" ready=100` or `method "Namespace.Type::Name"`.
fn methods(mut args: Args<'_, '_>, module: ModuleKind) -> Option<MethodPlan> {
    let natural = match module {
        ModuleKind::Il => CodeKind::Jitted,
        ModuleKind::NGen | ModuleKind::ReadyToRun => CodeKind::Precompiled,
        ModuleKind::Dynamic => CodeKind::Dynamic,
    };
    let single = args.name() == "method";
    let mut plan = if single {
        MethodPlan::named(args.next::<String>("a name")?, natural)
    } else {
        let count: u64 = args.next("how many")?;
        MethodPlan::many(u32::try_from(count).unwrap_or(u32::MAX), natural)
    };
    if single && !plan.name.contains("::") {
        let help = Some("Namespace.Type::Name");
        args.error("a method needs its full name", plan.name.clone(), help);
    }
    if plan.count > 1_000_000 {
        args.error(
            "a module has at most 1000000 methods",
            plan.count.to_string(),
            None,
        );
        plan.count = 0;
    }
    if !args.reader.charge(args.span(), plan.count) {
        plan.count = 0;
    }
    plan.kind = args.choice("kind", &CODE).unwrap_or(natural);
    let image = matches!(module, ModuleKind::NGen | ModuleKind::ReadyToRun);
    if plan.kind == CodeKind::Precompiled && !image {
        let help = Some("a module of kind \"ngen\" or \"r2r\"");
        args.error("precompiled code is in native images only", "here", help);
    }
    plan.generic |= args.flag("generic") || plan.kind == CodeKind::Generic;
    if single {
        plan.ready = u32::from(args.get("ready").unwrap_or(true));
    } else {
        plan.ready = args.get("ready").unwrap_or(plan.count);
        args.set("namespace", &mut plan.name);
    }
    if let Some(size) = args.range("size") {
        plan.size = size;
    }
    plan.cold = args.flag("cold");
    if plan.cold && plan.kind != CodeKind::Precompiled {
        let help = Some("kind=\"precompiled\" in a module of kind \"ngen\" or \"r2r\"");
        args.error("only precompiled code has a cold part", "cold", help);
        plan.cold = false;
    }
    args.finish();
    Some(plan)
}
