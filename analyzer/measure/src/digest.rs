//! SHA-256 of files and texts, by which programs and drivers are known again.

use sha2::{Digest as _, Sha256};
use std::io::{self, Read as _};
use std::path::Path;

/// Lower-case hex of the digest of a file's bytes.
///
/// # Errors
/// It cannot be read.
pub fn of_file(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    Ok(hex(hash))
}

/// Lower-case hex of the digest of bytes.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hex(hash)
}

fn hex(hash: Sha256) -> String {
    let hex: Vec<String> = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_standard() {
        // FIPS 180-4, example for "abc".
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(of_file(&path).unwrap(), expected);
        assert_eq!(of_bytes(b"abc"), expected);
        assert!(of_file(&dir.path().join("gone")).is_err());
    }
}
