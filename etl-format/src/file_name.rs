//! File names in paths of any system.

/// The part of a path after its last `\` or `/`; empty if the path ends with a separator.
///
/// Traces contain paths of Windows, and of devices such as `\Device\HarddiskVolume2`, which
/// [`std::path`] does not split on other systems.
///
/// ```
/// use etl_format::file_name;
///
/// assert_eq!(file_name(r"\Device\HarddiskVolume2\App\Orders.dll"), "Orders.dll");
/// assert_eq!(file_name("traces/boot.etl"), "boot.etl");
/// assert_eq!(file_name("boot.etl"), "boot.etl");
/// ```
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or_default()
}
