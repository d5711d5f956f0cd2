//! Provider GUIDs from names, as EventSource and TraceLogging hash them.

use etl_format::Guid;
use sha1::{Digest, Sha1};

/// The namespace that `EventSource` and TraceLogging hash names in, as its bytes are hashed.
const NAMESPACE: [u8; 16] = [
    0x48, 0x2c, 0x2d, 0xb2, 0xc3, 0x90, 0x47, 0xc8, 0x87, 0xf8, 0x1a, 0x15, 0xbf, 0xc1, 0x30, 0xfb,
];

/// The GUID of the `EventSource` or TraceLogging provider with this name, unless its author chose
/// another: SHA-1 over a namespace and the upper-case name in UTF-16 (big-endian), cut to 16 bytes,
/// with 5 as the version. Case does not matter.
///
/// ```
/// let guid = etl_schema::sources::provider_guid("Microsoft-Diagnostics-DiagnosticSource");
/// assert_eq!(guid.to_string(), "adb401e1-5296-51f8-c125-5fda75826144");
/// ```
#[must_use]
pub fn provider_guid(name: &str) -> Guid {
    let mut hash = Sha1::new();
    hash.update(NAMESPACE);
    for c in name.chars() {
        // One character stays one character, as the producers do it.
        let mut upper = c.to_uppercase();
        let upper = upper.next().filter(|_| upper.len() == 0).unwrap_or(c);
        for unit in upper.encode_utf16(&mut [0; 2]) {
            hash.update(unit.to_be_bytes());
        }
    }
    let digest: [u8; 20] = hash.finalize().into();
    let [mut bytes @ .., _, _, _, _] = digest;
    bytes[7] = (bytes[7] & 0x0f) | 0x50;
    Guid::from_bytes(bytes)
}
