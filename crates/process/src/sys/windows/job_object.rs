//! The object that holds all processes of a job.

use super::done;
use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle, RawHandle};
use std::ptr;
use windows_sys::Win32::System::JobObjects::{
    CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_UILIMIT_DESKTOP,
    JOB_OBJECT_UILIMIT_DISPLAYSETTINGS, JOB_OBJECT_UILIMIT_EXITWINDOWS,
    JOB_OBJECT_UILIMIT_GLOBALATOMS, JOB_OBJECT_UILIMIT_HANDLES, JOB_OBJECT_UILIMIT_READCLIPBOARD,
    JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS, JOB_OBJECT_UILIMIT_WRITECLIPBOARD,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_BASIC_UI_RESTRICTIONS,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS, JobObjectBasicAccountingInformation,
    JobObjectBasicUIRestrictions, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};

/// What a confined command may not do to the person's desktop.
const NO_DESKTOP: u32 = JOB_OBJECT_UILIMIT_DESKTOP
    | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
    | JOB_OBJECT_UILIMIT_EXITWINDOWS
    | JOB_OBJECT_UILIMIT_GLOBALATOMS
    | JOB_OBJECT_UILIMIT_HANDLES
    | JOB_OBJECT_UILIMIT_READCLIPBOARD
    | JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
    | JOB_OBJECT_UILIMIT_WRITECLIPBOARD;

/// The exit code of what is killed: what a shell says of SIGKILL on other systems.
const KILLED: u32 = 137;

/// A job object that no process can leave, and that ends all of them when it is closed.
#[derive(Debug)]
pub(super) struct JobObject(OwnedHandle);

impl JobObject {
    pub(super) fn new(confined: bool) -> io::Result<Self> {
        // SAFETY: neither attributes nor a name are needed.
        let handle = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so this is a handle that nobody else has.
        let object = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        object.limit(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
        if confined {
            let limits = JOBOBJECT_BASIC_UI_RESTRICTIONS { UIRestrictionsClass: NO_DESKTOP };
            object.set(JobObjectBasicUIRestrictions, &limits)?;
        }
        Ok(object)
    }

    /// The flags that would let processes break away are never among them.
    fn limit(&self, flags: u32) -> io::Result<()> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = flags;
        self.set(JobObjectExtendedLimitInformation, &limits)
    }

    fn set<T>(&self, class: JOBOBJECTINFOCLASS, value: &T) -> io::Result<()> {
        let size = u32::try_from(size_of::<T>()).map_err(io::Error::other)?;
        let value = ptr::from_ref(value).cast();
        // SAFETY: callers name the structure of the class, and its size is right.
        done(unsafe { SetInformationJobObject(self.raw(), class, value, size) })
    }

    pub(super) fn raw(&self) -> RawHandle {
        self.0.as_raw_handle()
    }

    /// Whether a process of it is still there.
    pub(super) fn is_in_use(&self) -> bool {
        let mut counts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let size = size_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>() as u32;
        // SAFETY: the structure of the class and its size; how much was written need not be known.
        let asked = done(unsafe {
            QueryInformationJobObject(
                self.raw(),
                JobObjectBasicAccountingInformation,
                (&raw mut counts).cast(),
                size,
                ptr::null_mut(),
            )
        });
        asked.is_ok() && counts.ActiveProcesses > 0
    }

    pub(super) fn kill(&self) {
        // SAFETY: a live handle. It fails only when there is nothing left to end.
        unsafe { TerminateJobObject(self.raw(), KILLED) };
    }

    /// Closes it without ending anything.
    pub(super) fn release(self) {
        // If that fails they end now, as if nobody had asked.
        let _ = self.limit(0);
    }
}
