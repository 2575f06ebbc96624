//! Archives whose bytes depend on what is in them and on nothing else.

use flate2::{Compression, GzBuilder};
use std::io::Write as _;

/// One file in an archive.
pub(super) struct Entry {
    path: String,
    mode: u32,
    content: Content,
}

enum Content {
    File(Vec<u8>),
    Link(String),
}

impl Entry {
    /// A file that is read.
    pub(super) fn file(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), mode: 0o644, content: Content::File(bytes) }
    }

    /// A file that is run.
    pub(super) fn program(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), mode: 0o755, content: Content::File(bytes) }
    }

    /// Another name for a file.
    pub(super) fn link(path: impl Into<String>, to: &str) -> Self {
        Self { path: path.into(), mode: 0o777, content: Content::Link(to.to_owned()) }
    }

    /// How many bytes it has.
    pub(super) fn size(&self) -> u64 {
        match &self.content {
            Content::File(bytes) => bytes.len() as u64,
            Content::Link(_) => 0,
        }
    }
}

/// A compressed archive of these, with the directories that they are in, all of one time and root's own.
pub(super) fn tar_gz(entries: &[Entry], time: u64) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut made = std::collections::BTreeSet::new();
    for entry in entries {
        let slashes = entry.path.match_indices('/').map(|(at, _)| &entry.path[..=at]);
        for directory in slashes {
            if made.insert(directory.to_owned()) {
                let mut header = header(tar::EntryType::Directory, 0o755, 0, time);
                archive.append_data(&mut header, directory, std::io::empty())?;
            }
        }
        match &entry.content {
            Content::File(bytes) => {
                let mut header = header(tar::EntryType::Regular, entry.mode, entry.size(), time);
                archive.append_data(&mut header, &entry.path, &bytes[..])?;
            }
            Content::Link(to) => {
                let mut header = header(tar::EntryType::Symlink, entry.mode, 0, time);
                archive.append_link(&mut header, &entry.path, to)?;
            }
        }
    }
    gz(&archive.into_inner()?)
}

/// Bytes, compressed.
pub(super) fn gz(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

fn header(kind: tar::EntryType, mode: u32, size: u64, time: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn an_archive_has_what_was_put_in_and_is_the_same_each_time() {
        let entries = || {
            vec![
                Entry::program("a/bin/x", b"program".to_vec()),
                Entry::link("a/bin/y", "x"),
                Entry::file("a/doc", b"text".to_vec()),
            ]
        };
        let bytes = tar_gz(&entries(), 1_000_000_000).unwrap();
        assert_eq!(bytes, tar_gz(&entries(), 1_000_000_000).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((path, entry.header().mode().unwrap(), text));
        }
        let found: Vec<(&str, u32, &str)> =
            found.iter().map(|(path, mode, text)| (path.as_str(), *mode, text.as_str())).collect();
        let expected = [
            ("a/", 0o755, ""),
            ("a/bin/", 0o755, ""),
            ("a/bin/x", 0o755, "program"),
            ("a/bin/y", 0o777, ""),
            ("a/doc", 0o644, "text"),
        ];
        assert_eq!(found, expected);
    }
}
