//! Access lists of files and directories.

use super::Aligned;
use crate::windows::{AccessLists, Action, SessionSid, Step, list};
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, LocalFree, WIN32_ERROR};
use windows_sys::Win32::Security::Authorization::{
    GetNamedSecurityInfoW, SE_FILE_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{ACL, DACL_SECURITY_INFORMATION};

/// The lists on the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileLists;

impl AccessLists for FileLists {
    fn apply(&self, step: &Step, sid: SessionSid) -> io::Result<()> {
        let Some(entry) = step.action.entry() else {
            return match std::fs::create_dir(&step.path) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
                _ => Ok(()),
            };
        };
        let old = read(&step.path)?;
        let new = list::with(&old, entry, &sid.to_bytes())?;
        if new == old { Ok(()) } else { write(&step.path, &new) }
    }

    fn undo(&self, step: &Step, sid: SessionSid) -> io::Result<()> {
        if step.action == Action::Reserve {
            // A directory that somebody put something into is no longer ours.
            let _ = std::fs::remove_dir(&step.path);
            return Ok(());
        }
        let old = match read(&step.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let new = list::without(&old, &sid.to_bytes())?;
        if new == old { Ok(()) } else { write(&step.path, &new) }
    }
}

/// A path for Windows, which wants a NUL behind it.
fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain(Some(0)).collect()
}

fn succeeded(code: WIN32_ERROR) -> io::Result<()> {
    if code == ERROR_SUCCESS {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(code.cast_signed()))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let path = wide(path);
    let mut found: *mut ACL = ptr::null_mut();
    let mut descriptor = ptr::null_mut();
    // SAFETY: the path ends in a NUL; both pointers are written to, and the rest may be null.
    succeeded(unsafe {
        GetNamedSecurityInfoW(
            path.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            ptr::null_mut(),
            ptr::null_mut(),
            &raw mut found,
            ptr::null_mut(),
            &raw mut descriptor,
        )
    })?;
    let bytes = if found.is_null() {
        let why = "it has no access list, so nothing can be denied there";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    } else {
        // SAFETY: the call succeeded, so this points to a list within the descriptor.
        let size = usize::from(unsafe { (*found).AclSize });
        // SAFETY: a list is as long as it says, and lives as long as the descriptor.
        Ok(unsafe { std::slice::from_raw_parts(found.cast::<u8>(), size) }.to_vec())
    };
    // SAFETY: the call allocated it, and nothing points into it any more.
    unsafe { LocalFree(descriptor) };
    bytes
}

/// Replaces a list. Windows passes what is to be inherited on to everything beneath.
fn write(path: &Path, list: &[u8]) -> io::Result<()> {
    let path = wide(path);
    let list = Aligned::new(list);
    // SAFETY: the path ends in a NUL; the list is one that was read and changed entry by entry.
    succeeded(unsafe {
        SetNamedSecurityInfoW(
            path.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            ptr::null_mut(),
            ptr::null_mut(),
            list.as_ptr(),
            ptr::null(),
        )
    })
}
