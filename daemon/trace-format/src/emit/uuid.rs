//! Random version 4 UUIDs: instances, channels, clients.

use std::fmt::Write as _;

/// Makes a random version 4 UUID in its text form, 36 lower-case characters.
///
/// One `getrandom` call. Where the kernel refuses it (it cannot after boot), the
/// process id and the clock stand in, which is unique on one host.
#[must_use]
pub fn random() -> String {
    let mut bytes = [0_u8; 16];
    if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()) != Ok(16) {
        let now = super::clock::MonoNanos::now().as_nanos().to_le_bytes();
        bytes[..8].copy_from_slice(&now);
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_uuid_has_version_4_and_the_rfc_variant() {
        let text = super::random();
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
        assert_ne!(text, super::random());
    }
}
