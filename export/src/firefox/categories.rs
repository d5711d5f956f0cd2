//! Categories of frames and markers.

use etl_analysis::profile::{Frame, FrameKind};
use etl_analysis::symbols::tier_name;
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

    /// The tiers that are subcategories, after the subcategory `Other`.
    fn tiers(self) -> &'static [u8] {
        match self {
            Category::TierZero => &TIERS_ZERO,
            Category::TierOne => &TIERS_ONE,
            _ => &[],
        }
    }

    /// The category and the subcategory of a frame.
    pub fn of(frame: &Frame, module: &str) -> (Category, u64) {
        let category = match frame.kind {
            FrameKind::Kernel => Category::Kernel,
            FrameKind::Native if is_compiler(module) => Category::Compiler,
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
        (category, tier.map_or(0, |index| index as u64 + 1))
    }

    /// All categories as the profile lists them.
    pub fn all() -> Value {
        let mut categories = Vec::new();
        for (name, color) in CATEGORIES {
            let tiers = match name {
                "Jitted, tier 0" => Category::TierZero.tiers(),
                "Jitted, tier 1" => Category::TierOne.tiers(),
                _ => &[],
            };
            let mut subcategories = vec!["Other"];
            subcategories.extend(tiers.iter().map(|&tier| tier_name(tier)));
            let category = json!({ "name": name, "color": color, "subcategories": subcategories });
            categories.push(category);
        }
        Value::from(categories)
    }
}

/// Whether a module is a compiler of .NET.
fn is_compiler(module: &str) -> bool {
    COMPILERS.contains(&module.to_lowercase().as_str())
}

/// The files of compilers of .NET.
const COMPILERS: [&str; 4] = [
    "clrjit.dll",
    "mscorjit.dll",
    "compatjit.dll",
    "protojit.dll",
];
