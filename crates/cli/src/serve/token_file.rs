//! The file in which an agent finds where to ask, and its token.

use sandgate_server::http::Token;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that only the person can read, and that goes with the server.
pub(super) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// Writes it, in a directory that is the person's own.
    pub(super) fn write(
        directory: &Path,
        name: &str,
        address: &str,
        requester: &Token,
    ) -> io::Result<Self> {
        let path = directory.join(format!("{name}.json"));
        let told = serde_json::json!({
            "url": address, "requester_token": requester.reveal(), "pid": std::process::id(),
        });
        let wrong = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        };
        // One that a killed server left: whoever has the address now is us.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(error)),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(wrong)?;
        file.write_all(format!("{told}\n").as_bytes()).map_err(wrong)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
