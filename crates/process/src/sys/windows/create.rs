//! One process, in its job from its first instruction on, with three handles and no others.

use super::done;
use super::job_object::JobObject;
use crate::spawner::Stdin;
use crate::sys::{LaunchError, Stage};
use sandgate_sandbox::ExecEnv;
use sandgate_sandbox::windows::{environment, quote};
use std::ffi::{OsStr, c_void};
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::{AsRawHandle, FromRawHandle as _, OwnedHandle};
use std::ptr;
use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CREATE_UNICODE_ENVIRONMENT, CreateProcessAsUserW, CreateProcessW,
    DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess, INFINITE,
    InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION,
    STARTF_USESTDHANDLES, STARTUPINFOEXW, UpdateProcThreadAttribute, WaitForSingleObject,
};

/// A process that runs.
pub(super) struct Created {
    pub(super) process: OwnedHandle,
    pub(super) pid: u32,
}

/// Starts the command of an environment, with its session's token if it is confined.
pub(super) fn create(
    env: &ExecEnv,
    stdin: Stdin,
    streams: &[OwnedHandle; 3],
    job: &JobObject,
) -> Result<Created, LaunchError> {
    let set_up = |e: io::Error| LaunchError::new(Stage::SetUp, e);
    let Line { program, mut text } = line(env).map_err(set_up)?;
    let variables = env.env().iter().map(|(name, value)| (wide(name), wide(value)));
    let block = environment::block(variables);
    let cwd = ended(quote::plain_path(&wide(env.cwd().as_os_str())));
    let handles: [HANDLE; 3] = streams.each_ref().map(AsRawHandle::as_raw_handle);
    let jobs = [job.raw()];
    let mut attributes = Attributes::new(2).map_err(set_up)?;
    attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &handles).map_err(set_up)?;
    attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, &jobs).map_err(set_up)?;
    let mut start = STARTUPINFOEXW::default();
    start.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    start.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [start.StartupInfo.hStdInput, start.StartupInfo.hStdOutput, start.StartupInfo.hStdError] =
        handles;
    start.lpAttributeList = attributes.list();
    let mut flags = CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
    if stdin != Stdin::Inherit {
        // A console of its own that nobody sees: ours is not its to draw on. Who reads from ours
        // needs it.
        flags |= CREATE_NO_WINDOW;
    }
    let token = env.restriction().map(|restriction| restriction.token().as_raw_handle());
    let mut made = PROCESS_INFORMATION::default();
    let start = (&raw const start).cast();
    let inherit = 1;
    let result = match token {
        // SAFETY: strings that end in NULs, a block that ends in two, a command line that may be
        // written to, and structures that outlive the call.
        Some(token) => unsafe {
            CreateProcessAsUserW(
                token,
                program.as_ptr(),
                text.as_mut_ptr(),
                ptr::null(),
                ptr::null(),
                inherit,
                flags,
                block.as_ptr().cast(),
                cwd.as_ptr(),
                start,
                &raw mut made,
            )
        },
        // SAFETY: as above.
        None => unsafe {
            CreateProcessW(
                program.as_ptr(),
                text.as_mut_ptr(),
                ptr::null(),
                ptr::null(),
                inherit,
                flags,
                block.as_ptr().cast(),
                cwd.as_ptr(),
                start,
                &raw mut made,
            )
        },
    };
    done(result).map_err(|e| LaunchError::new(Stage::Exec, e))?;
    // SAFETY: the call succeeded, so this is a handle that nobody else has.
    drop(unsafe { OwnedHandle::from_raw_handle(made.hThread) });
    // SAFETY: as above.
    let process = unsafe { OwnedHandle::from_raw_handle(made.hProcess) };
    Ok(Created { process, pid: made.dwProcessId })
}

/// Waits for the end of a process and returns its exit code.
pub(super) fn wait(process: &OwnedHandle) -> io::Result<i32> {
    // SAFETY: a live handle.
    if unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) } != WAIT_OBJECT_0 {
        return Err(io::Error::last_os_error());
    }
    let mut code = 0;
    // SAFETY: a live handle and a place for the result.
    done(unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) })?;
    Ok(code.cast_signed())
}

/// The file to execute and the text that it is given, both with a NUL behind them.
struct Line {
    program: Vec<u16>,
    text: Vec<u16>,
}

fn line(env: &ExecEnv) -> io::Result<Line> {
    let refused = |e: quote::QuoteError| io::Error::new(io::ErrorKind::InvalidInput, e);
    let arguments: Vec<Vec<u16>> = env.argv().map(wide).collect();
    let (name, arguments) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let arguments = arguments.iter().map(Vec::as_slice);
    let program = wide(env.program().as_os_str());
    let program = quote::plain_path(&program);
    if !quote::is_batch(program) {
        let text = quote::command_line(name, arguments).map_err(refused)?;
        return Ok(Line { program: ended(program), text: ended(&text) });
    }
    let cmd = command_interpreter()?;
    let text = quote::batch_line(&cmd, program, arguments).map_err(refused)?;
    Ok(Line { program: ended(&cmd), text: ended(&text) })
}

/// `cmd.exe` where Windows has it, whatever the environment says.
fn command_interpreter() -> io::Result<Vec<u16>> {
    let mut buffer = [0_u16; 260];
    // SAFETY: the buffer has the room that is named.
    let length = unsafe { GetSystemDirectoryW(buffer.as_mut_ptr(), buffer.len() as u32) } as usize;
    match buffer.get(..length) {
        Some(directory) if length > 0 => {
            Ok(directory.iter().copied().chain(r"\cmd.exe".encode_utf16()).collect())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().collect()
}

fn ended(text: &[u16]) -> Vec<u16> {
    text.iter().copied().chain(Some(0)).collect()
}

/// What a process is started with beside its streams. The values are borrowed until the start.
struct Attributes {
    buffer: Vec<u64>,
}

impl Attributes {
    fn new(count: u32) -> io::Result<Self> {
        let mut size = 0;
        // SAFETY: without a buffer only the size is asked for; the answer is an error by design.
        unsafe { InitializeProcThreadAttributeList(ptr::null_mut(), count, 0, &raw mut size) };
        let mut buffer = vec![0_u64; size.div_ceil(8)];
        let list = buffer.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer has at least the size that was asked for.
        done(unsafe { InitializeProcThreadAttributeList(list, count, 0, &raw mut size) })?;
        Ok(Self { buffer })
    }

    /// Adds a list of handles. It must stay where it is until the process is started.
    fn set(&mut self, attribute: u32, handles: &[HANDLE]) -> io::Result<()> {
        let (values, size) = (handles.as_ptr().cast(), size_of_val(handles));
        // SAFETY: a list that was initialised, and values that the caller keeps.
        done(unsafe {
            UpdateProcThreadAttribute(
                self.list(),
                0,
                attribute as usize,
                values,
                size,
                ptr::null_mut(),
                ptr::null(),
            )
        })
    }

    fn list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.buffer.as_mut_ptr().cast()
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: a list that was initialised and is not used any more.
        unsafe { DeleteProcThreadAttributeList(self.list()) };
    }
}
