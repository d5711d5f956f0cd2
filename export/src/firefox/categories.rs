//! Categories: what kind of code a frame is, and what a marker is about.

use etl_analysis::machine::names::tier_name;
use etl_analysis::profile::{Frame, FrameKind};
use serde_json::{Value, json};

/// A category, with its index in the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Other,
    Kernel,
    Native,
    Precompiled,
    Jitted,
    TierZero,
    TierOne,
    Gc,
    Compiler,
    Runtime,
    Loader,
    Activity,
}

/// Name and colour of each category, in the order of their indices.
const CATEGORIES: [(&str, &str); 12] = [
    ("Other", "grey"),
    ("Kernel", "orange"),
    ("Native", "blue"),
    ("Precompiled", "lightblue"),
    ("Jitted", "green"),
    ("Jitted, tier 0", "yellow"),
    ("Jitted, tier 1", "green"),
    ("GC", "red"),
    ("JIT compiler", "purple"),
    ("Runtime", "magenta"),
    ("Loader", "brown"),
    ("Activity", "lightblue"),
];

/// Numbers of tiers of code that is to be compiled again, and of optimised code.
const TIERS_ZERO: [u8; 3] = [3, 6, 1];
const TIERS_ONE: [u8; 3] = [4, 7, 2];

impl Category {
    pub fn index(self) -> u64 {
        self as u64
    }

    /// The subcategories of tiers; the first one stands for none.
    fn tiers(self) -> &'static [u8] {
        match self {
            Category::TierZero => &TIERS_ZERO,
            Category::TierOne => &TIERS_ONE,
            _ => &[],
        }
    }

    /// The category and the subcategory of a frame.
    pub fn of(frame: &Frame, module: &str) -> (Category, u64) {
        let is_compiler = || {
            let name = module.to_lowercase();
            COMPILERS.contains(&name.as_str())
        };
        let category = match frame.kind {
            FrameKind::Kernel => Category::Kernel,
            FrameKind::Native if is_compiler() => Category::Compiler,
            FrameKind::Native => Category::Native,
            FrameKind::Precompiled => Category::Precompiled,
            FrameKind::Jitted | FrameKind::Managed => match frame.tier {
                tier if TIERS_ZERO.contains(&tier) => Category::TierZero,
                tier if TIERS_ONE.contains(&tier) => Category::TierOne,
                _ => Category::Jitted,
            },
            _ => Category::Other,
        };
        let tier = category.tiers().iter().position(|&tier| tier == frame.tier);
        (category, tier.map_or(0, |at| at as u64 + 1))
    }

    /// All of them as the profile lists them.
    pub fn all() -> Value {
        let tiers = |name: &str| match name {
            "Jitted, tier 0" => Category::TierZero.tiers(),
            "Jitted, tier 1" => Category::TierOne.tiers(),
            _ => &[],
        };
        let one = |(name, color): (&str, &str)| {
            let tiers = tiers(name).iter().map(|&tier| tier_name(tier));
            let subcategories: Vec<&str> = ["Other"].into_iter().chain(tiers).collect();
            json!({ "name": name, "color": color, "subcategories": subcategories })
        };
        Value::from(CATEGORIES.map(one).to_vec())
    }
}

/// The files of compilers of .NET.
const COMPILERS: [&str; 4] = ["clrjit.dll", "mscorjit.dll", "compatjit.dll", "protojit.dll"];
