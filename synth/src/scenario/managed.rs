//! CLRs and what is in them.

use miette::SourceSpan;

use super::args::{Args, unknown};
use super::reader::Reader;
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

/// A version of a product or an assembly: each of its numbers has 16 bits.
fn version(reader: &mut Reader<'_>, at: SourceSpan, numbers: [u32; 4]) -> [u16; 4] {
    if let Some(large) = numbers.iter().find(|n| **n > u32::from(u16::MAX)) {
        let help = Some(format!("each of its numbers is at most {}", u16::MAX));
        reader.error(at, "version is too large", large.to_string(), help);
    }
    numbers.map(|n| u16::try_from(n).unwrap_or(u16::MAX))
}

/// Calls of a stack: the kernel takes no more with an event.
const MAX_FRAMES: u32 = 190;

/// `clr "core" version="6.0.100" { ... }`
pub(super) fn clr(reader: &mut Reader<'_>, mut args: Args<'_>, process: &str) -> Option<ClrPlan> {
    let node = args.node;
    let sku = args.choice(reader, "a product", &SKUS)?;
    let default = if sku == Sku::Core { [6, 0, 100, 0] } else { [4, 0, 30319, 0] };
    let mut plan = ClrPlan::new(sku, default);
    if let Some(numbers) = args.opt_version::<4>(reader, "version") {
        plan.version = version(reader, args.span(), numbers);
        let (there, help) = match sku {
            Sku::Desktop => (4..=4, "a .NET Framework of version 4: \"4.8.4000\""),
            Sku::Core => (1..=u16::MAX, "a .NET of version 1 or later: \"8.0.0\""),
        };
        if plan.version.first().is_some_and(|major| !there.contains(major)) {
            let message = "no such version is simulated";
            reader.error(args.span(), message, "version", Some(help.to_owned()));
        }
    }
    if let Some(instance) = args.opt_small(reader, "instance") {
        plan.instance = instance;
    }
    if let Some(cost) = args.opt_time(reader, "enumeration-cost") {
        plan.enumeration_cost = cost;
    }
    if let Some((spread, (low, high))) = args.opt_range(reader, "stack-depth") {
        if high <= MAX_FRAMES {
            plan.stack_depth = (low, high, spread);
        } else {
            let message = format!("a stack holds at most {MAX_FRAMES} calls here");
            reader.error(args.span(), message, "stack-depth", None);
        }
    }
    if let Some(heaps) = args.opt_small::<u32>(reader, "heaps") {
        if (1..=64).contains(&heaps) {
            plan.heaps = heaps;
        } else {
            let help = Some("1, or up to 64 with the collector of servers".to_owned());
            reader.error(args.span(), "a clr has 1 to 64 heaps", heaps.to_string(), help);
        }
    }
    args.finish(reader);
    // Assemblies that stand outside a domain belong to the default one.
    let name = if sku == Sku::Core { "clrhost" } else { process };
    let mut default = AppDomainPlan::new(name);
    let mut domains = Vec::new();
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "domain" => domains.extend(domain(reader, args)),
            "assembly" => default.assemblies.extend(assembly(reader, args)),
            _ => unknown(reader, node, "a clr", "domain, assembly"),
        }
    });
    if !default.assemblies.is_empty() || domains.is_empty() {
        plan.domains.push(default);
    }
    plan.domains.extend(domains);
    Some(plan)
}

fn domain(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<AppDomainPlan> {
    let node = args.node;
    let mut plan = AppDomainPlan::new(args.text(reader, "a name")?);
    plan.shared = args.opt_bool(reader, "shared").unwrap_or(false);
    plan.late = args.opt_bool(reader, "late").unwrap_or(false);
    args.finish(reader);
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "assembly" => plan.assemblies.extend(assembly(reader, args)),
            _ => unknown(reader, node, "a domain", "assembly"),
        }
    });
    Some(plan)
}

fn assembly(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<AssemblyPlan> {
    let node = args.node;
    let mut plan = AssemblyPlan::new(args.text(reader, "a name")?);
    if let Some(numbers) = args.opt_version::<4>(reader, "version") {
        plan.version = version(reader, args.span(), numbers);
    }
    plan.late = args.opt_bool(reader, "late").unwrap_or(false);
    plan.collectible = args.opt_bool(reader, "collectible").unwrap_or(false);
    plan.signed = args.opt_bool(reader, "signed").unwrap_or(false);
    plan.authenticode = args.opt_bool(reader, "authenticode").unwrap_or(false);
    args.finish(reader);
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "module" => plan.modules.extend(module(reader, args)),
            _ => unknown(reader, node, "an assembly", "module"),
        }
    });
    Some(plan)
}

fn module(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<ModulePlan> {
    let node = args.node;
    let path = args.text(reader, "the path of its file")?;
    let kind = args.opt_choice(reader, "kind", &MODULES).unwrap_or_default();
    let mut plan = ModulePlan::new(path, kind);
    if args.opt_bool(reader, "pdb") == Some(false) {
        plan.pdb = None;
    }
    args.finish(reader);
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "pdb" => plan.pdb = Some(pdb(reader, args)),
            "method" | "methods" => plan.methods.extend(methods(reader, args, kind)),
            _ => unknown(reader, node, "a module", "method, methods, pdb"),
        }
    });
    Some(plan)
}

fn pdb(reader: &mut Reader<'_>, mut args: Args<'_>) -> PdbPlan {
    args.leaf();
    let mut plan = PdbPlan { age: 1, ..PdbPlan::default() };
    if let Some(text) = args.opt_text(reader, "signature") {
        match text.parse() {
            Ok(guid) => plan.signature = guid,
            Err(_) => reader.error(args.span(), "signature: not a GUID", text, None),
        }
    }
    if let Some(age) = args.opt_small(reader, "age") {
        plan.age = age;
    }
    if let Some(path) = args.opt_text(reader, "path") {
        plan.path = path;
    }
    args.finish(reader);
    plan
}

/// `methods 400 kind="jitted" ready=100` or `method "Namespace.Type::Name"`.
fn methods(reader: &mut Reader<'_>, mut args: Args<'_>, module: ModuleKind) -> Option<MethodPlan> {
    args.leaf();
    let natural = match module {
        ModuleKind::Il => CodeKind::Jitted,
        ModuleKind::NGen | ModuleKind::ReadyToRun => CodeKind::Precompiled,
        ModuleKind::Dynamic => CodeKind::Dynamic,
    };
    let one = args.name() == "method";
    let at = args.span();
    let mut plan = if one {
        MethodPlan::named(args.text(reader, "a name")?, natural)
    } else {
        let count = args.number(reader, "how many")?;
        MethodPlan::many(u32::try_from(count).unwrap_or(u32::MAX), natural)
    };
    if one && !plan.name.contains("::") {
        let help = Some("Namespace.Type::Name".to_owned());
        reader.error(at, "a method needs its full name", plan.name.clone(), help);
    }
    if plan.count > 1_000_000 {
        reader.error(at, "a module has at most 1000000 methods", plan.count.to_string(), None);
        plan.count = 0;
    }
    if !reader.charge(at, plan.count) {
        plan.count = 0;
    }
    if let Some(kind) = args.opt_choice(reader, "kind", &CODE) {
        plan.kind = kind;
    }
    let image = matches!(module, ModuleKind::NGen | ModuleKind::ReadyToRun);
    if plan.kind == CodeKind::Precompiled && !image {
        let help = Some("a module of kind \"ngen\" or \"r2r\"".to_owned());
        reader.error(at, "precompiled code is in native images only", "here", help);
    }
    plan.generic |=
        args.opt_bool(reader, "generic").unwrap_or(false) || plan.kind == CodeKind::Generic;
    if one {
        plan.ready = u32::from(args.opt_bool(reader, "ready").unwrap_or(true));
    } else {
        plan.ready = args.opt_small(reader, "ready").unwrap_or(plan.count);
        if let Some(namespace) = args.opt_text(reader, "namespace") {
            plan.name = namespace;
        }
    }
    if let Some((spread, size)) = args.opt_range(reader, "size") {
        (plan.spread, plan.size) = (spread, size);
    }
    plan.cold = args.opt_bool(reader, "cold").unwrap_or(false);
    args.finish(reader);
    Some(plan)
}
