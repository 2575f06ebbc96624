//! Reads and writes at a place of a file, all of it or not at all, wherever another has left the file's own place.

use std::fs::File;
use std::io;

/// Writes all of these bytes there.
///
/// # Errors
/// When not all of them can be written.
#[cfg(unix)]
pub fn write_all_at(file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, place)
}

/// Reads as many bytes as there is room for.
///
/// # Errors
/// When there are not so many.
#[cfg(unix)]
pub fn read_exact_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, place)
}

/// Writes all of these bytes there.
///
/// # Errors
/// When not all of them can be written.
#[cfg(windows)]
pub fn write_all_at(file: &File, mut bytes: &[u8], mut place: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, place)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (bytes, place) = (&bytes[written..], place + written as u64);
    }
    Ok(())
}

/// Reads as many bytes as there is room for.
///
/// # Errors
/// When there are not so many.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut place: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, place)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        place += read as u64;
        bytes = &mut bytes[read..];
    }
    Ok(())
}
