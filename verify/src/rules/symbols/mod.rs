//! Addresses and their names: methods, modules, images, PDB identities.

pub(super) mod addresses;
pub(super) mod described;
pub(super) mod identity;
pub(super) mod lifetime;
pub(super) mod links;
pub(super) mod ranges;
