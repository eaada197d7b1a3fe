//! Bounded reading of files whose names come from a workspace.
//!
//! A name may belong to a pipe that nobody writes, a device, or a link out of
//! the workspace: opening never blocks, only regular files are read, and never
//! more than asked for.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use std::io;
use std::path::Path;

/// Opening must neither wait for a pipe's writer nor take a terminal.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Which content a name had: changes when the file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// An open regular file.
#[derive(Debug)]
pub(crate) struct RegularFile {
    fd: OwnedFd,
    stamp: Stamp,
}

impl RegularFile {
    /// Opens a path, following links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::check(rustix::fs::open(path, FLAGS, Mode::empty())?)
    }

    /// Opens a path that may not leave `root`, by links or otherwise. On a
    /// kernel before 5.6 the last part may not be a link at all.
    pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(root, path, FLAGS, Mode::empty(), resolve) {
            Err(rustix::io::Errno::NOSYS) => Self::check(rustix::fs::openat(
                root,
                path,
                FLAGS | OFlags::NOFOLLOW,
                Mode::empty(),
            )?),
            opened => Self::check(opened?),
        }
    }

    /// Which content was opened.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Bytes that the file had when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.stamp.size
    }

    /// Reads from the start, at most `max` bytes, and whether there was more.
    pub(crate) fn read(&self, max: usize) -> io::Result<(Vec<u8>, Rest)> {
        // One byte more than the size tells the end of the file in one call.
        let expected = usize::try_from(self.stamp.size).unwrap_or(usize::MAX);
        let mut bytes = vec![0; expected.min(max).saturating_add(1)];
        let length = self.read_at(&mut bytes, 0)?;
        bytes.truncate(length.min(max));
        let rest = if length > max { Rest::More } else { Rest::End };
        Ok((bytes, rest))
    }

    /// Fills `buffer` from `offset` as far as the file goes.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    fn check(fd: OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        let stamp = Stamp::of(&stat);
        Ok(Self { fd, stamp })
    }
}

/// Whether a bounded read came to the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// All was read.
    End,
    /// The bound came first.
    More,
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.cast_unsigned(),
            modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
        }
    }

    /// Whether both names are one file.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Reads a whole small file; a longer one is an error.
pub(crate) fn read_whole(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    match RegularFile::open(path)?.read(max)? {
        (bytes, Rest::End) => Ok(bytes),
        (_, Rest::More) => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("longer than {max} bytes"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_at_the_bound_is_whole_and_one_byte_more_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "abcd").unwrap();
        assert_eq!(read_whole(&path, 4).unwrap(), b"abcd");
        assert_eq!(
            read_whole(&path, 3).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        let file = RegularFile::open(&path).unwrap();
        assert_eq!(file.read(3).unwrap(), (b"abc".to_vec(), Rest::More));
        assert_eq!(file.size(), 4);
    }

    #[test]
    fn a_pipe_without_writer_a_device_and_a_directory_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for path in [&pipe, dir.path(), Path::new("/dev/zero")] {
            let error = RegularFile::open(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }

    #[test]
    fn a_link_inside_is_followed_and_one_that_leaves_is_not() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "a").unwrap();
        symlink("a", dir.path().join("inside")).unwrap();
        symlink(outside.path().join("secret"), dir.path().join("out")).unwrap();
        symlink(outside.path(), dir.path().join("outdir")).unwrap();
        let root = std::fs::File::open(dir.path()).unwrap();
        let open = |path: &str| RegularFile::open_beneath(root.as_fd(), Path::new(path));
        let inside = open("inside").unwrap();
        assert!(inside.stamp().is_same_file(&open("a").unwrap().stamp()));
        for path in ["out", "outdir/secret", "../x", "/etc/passwd"] {
            assert!(open(path).is_err(), "{path}");
        }
    }
}
