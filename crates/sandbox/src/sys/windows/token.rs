//! A token that writes nowhere but where its session's identity may.

use super::{Aligned, done};
use crate::windows::{SessionSid, list};
use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::ptr;
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Security::{
    CreateRestrictedToken, DISABLE_MAX_PRIVILEGE, GetLengthSid, GetTokenInformation, LUA_TOKEN,
    PSID, SID_AND_ATTRIBUTES, SetTokenInformation, TOKEN_ADJUST_DEFAULT, TOKEN_ASSIGN_PRIMARY,
    TOKEN_DEFAULT_DACL, TOKEN_DUPLICATE, TOKEN_GROUPS, TOKEN_INFORMATION_CLASS, TOKEN_QUERY,
    TOKEN_USER, TokenDefaultDacl, TokenGroups, TokenUser, WRITE_RESTRICTED,
};
use windows_sys::Win32::System::SystemServices::SE_GROUP_LOGON_ID;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Everyone. Devices that programs cannot do without, `NUL` among them, are open to this identity.
const EVERYONE: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
/// Windows itself.
const SYSTEM: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];

/// Makes this process's token into one for the commands of a session: no privileges, no rights of an
/// administrator, and every write asks a second time, for the session, the person's log-on and
/// everyone.
pub(crate) fn restricted_token(sid: SessionSid) -> io::Result<OwnedHandle> {
    let own = own_token()?;
    let mut sids = vec![sid.to_bytes(), EVERYONE.to_vec()];
    sids.extend(logon(&own)?);
    let sids: Vec<Aligned> = sids.iter().map(|sid| Aligned::new(sid)).collect();
    let restricting: Vec<SID_AND_ATTRIBUTES> = sids
        .iter()
        .map(|sid| SID_AND_ATTRIBUTES { Sid: sid.as_ptr::<c_void>().cast_mut(), Attributes: 0 })
        .collect();
    let count = u32::try_from(restricting.len()).map_err(io::Error::other)?;
    let flags = DISABLE_MAX_PRIVILEGE | LUA_TOKEN | WRITE_RESTRICTED;
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: a live token, as many identities as are counted, and a place for the result.
    done(unsafe {
        CreateRestrictedToken(
            own.as_raw_handle(),
            flags,
            0,
            ptr::null(),
            0,
            ptr::null(),
            count,
            restricting.as_ptr(),
            &raw mut token,
        )
    })?;
    // SAFETY: the call succeeded, so this is a handle that nobody else has.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    open_own_objects(&token, sid)?;
    Ok(token)
}

fn own_token() -> io::Result<OwnedHandle> {
    let rights = TOKEN_QUERY | TOKEN_DUPLICATE | TOKEN_ASSIGN_PRIMARY | TOKEN_ADJUST_DEFAULT;
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: this call cannot fail, and what it gives need not be closed.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: a live process and a place for the result.
    done(unsafe { OpenProcessToken(process, rights, &raw mut token) })?;
    // SAFETY: the call succeeded, so this is a handle that nobody else has.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}

/// What commands make (pipes, events, processes) they may use among themselves.
fn open_own_objects(token: &OwnedHandle, sid: SessionSid) -> io::Result<()> {
    let person = information(token, TokenUser)?;
    // SAFETY: Windows wrote this structure to the start of the buffer.
    let person = unsafe { (*person.as_ptr().cast::<TOKEN_USER>()).User.Sid };
    let list = list::everything_to(&[&sid_bytes(person), &SYSTEM, &sid.to_bytes()])?;
    let list = Aligned::new(&list);
    let default = TOKEN_DEFAULT_DACL { DefaultDacl: list.as_ptr::<c_void>().cast_mut().cast() };
    let size = u32::try_from(size_of::<TOKEN_DEFAULT_DACL>()).map_err(io::Error::other)?;
    // SAFETY: the structure of this class, of the size that is named; Windows copies the list.
    done(unsafe {
        SetTokenInformation(
            token.as_raw_handle(),
            TokenDefaultDacl,
            (&raw const default).cast(),
            size,
        )
    })
}

/// The identity of the person's log-on, which desktops and the like are open to. A service has none.
fn logon(token: &OwnedHandle) -> io::Result<Option<Vec<u8>>> {
    let groups = information(token, TokenGroups)?;
    let start = groups.as_ptr().cast::<TOKEN_GROUPS>();
    // SAFETY: Windows wrote this structure to the start of the buffer.
    let count = unsafe { (*start).GroupCount } as usize;
    // SAFETY: as above; only the place is taken, nothing is read.
    let first = unsafe { &raw const (*start).Groups }.cast::<SID_AND_ATTRIBUTES>();
    // SAFETY: as many of them follow as were counted, all within the buffer.
    let all = unsafe { std::slice::from_raw_parts(first, count) };
    let mark = SE_GROUP_LOGON_ID.cast_unsigned();
    let logon = all.iter().find(|group| group.Attributes & mark == mark);
    Ok(logon.map(|group| sid_bytes(group.Sid)))
}

/// A copy of an identity that lies in a buffer of Windows'.
fn sid_bytes(sid: PSID) -> Vec<u8> {
    // SAFETY: callers take it from a structure that Windows filled in and that still lives.
    let length = unsafe { GetLengthSid(sid) } as usize;
    // SAFETY: an identity is as long as Windows says.
    unsafe { std::slice::from_raw_parts(sid.cast::<u8>(), length) }.to_vec()
}

/// What a token says about itself. Pointers in it lead into the same buffer.
fn information(token: &OwnedHandle, class: TOKEN_INFORMATION_CLASS) -> io::Result<Vec<u64>> {
    let mut size = 0;
    // SAFETY: without a buffer only the size is asked for; the answer is an error by design.
    unsafe { GetTokenInformation(token.as_raw_handle(), class, ptr::null_mut(), 0, &raw mut size) };
    let mut buffer = vec![0_u64; (size as usize).div_ceil(8).max(1)];
    let room = u32::try_from(buffer.len() * 8).map_err(io::Error::other)?;
    // SAFETY: the buffer has the room that is named, and is aligned for every structure.
    done(unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            class,
            buffer.as_mut_ptr().cast(),
            room,
            &raw mut size,
        )
    })?;
    Ok(buffer)
}
