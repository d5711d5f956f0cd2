//! The order of the sources of names.

use etl_format::Guid;
use etl_schema::providers;
use etl_schema::store::SchemaStore;

/// The name of a provider: from the tables of providers, else from a record of it, else from the
/// trace.
pub(crate) fn provider_name<'a>(
    provider: Guid,
    in_record: Option<&'a str>,
    store: &'a SchemaStore,
) -> Option<&'a str> {
    providers::name(provider).or_else(|| learned_provider(provider, in_record, store))
}

/// The name of a provider that no table contains.
pub(crate) fn learned_provider<'a>(
    provider: Guid,
    in_record: Option<&'a str>,
    store: &'a SchemaStore,
) -> Option<&'a str> {
    in_record.or_else(|| store.provider_name(provider))
}
