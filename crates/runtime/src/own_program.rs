//! Programs that the person's own settings name, such as one that prints a key.

use crate::error::RuntimeError;
use crate::resolve::resolve_words;
use crate::runtime::Runtime;
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, OutputSink, Stop, execute};
use sandgate_protocol::{ExecExpiration, OutputStream};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The most that such a program may print, in bytes.
const MOST_PRINTED: usize = 64 * 1024;

/// What a program of the person's own printed.
pub struct Printed {
    /// Its exit code; 124 after the time limit.
    pub exit_code: i32,
    /// All of its standard output. It may be a secret: it is kept nowhere else.
    pub stdout: Vec<u8>,
}

impl Runtime {
    /// Runs a program that the person wrote into their own settings, as if they had typed it: nothing
    /// confines it, and nothing of it is told or recorded. A project's settings must never come this way.
    ///
    /// # Errors
    /// When it could not be started, or printed more than it may.
    pub async fn run_own_program(
        &self,
        command: Vec<String>,
        cwd: &Path,
        env: BTreeMap<OsString, OsString>,
        limit: Duration,
    ) -> Result<Printed, RuntimeError> {
        let params = resolve_words(command, cwd, env, ExecExpiration::Timeout(limit))?;
        let env = self.sandbox.transform(Grant::unconfined_by_person(params))?;
        let mut kept = Kept(Vec::new());
        let options = ExecuteOptions { stream_bytes: 4096, ..ExecuteOptions::default() };
        let stop = Stop::default();
        let executed = execute(&self.spawner, &env, options, &stop, &mut kept).await?;
        if kept.0.len() > MOST_PRINTED {
            let why = format!("it printed more than {MOST_PRINTED} bytes");
            return Err(RuntimeError::NobodyListens(io::Error::other(why)));
        }
        Ok(Printed { exit_code: executed.output.exit_code, stdout: kept.0 })
    }
}

struct Kept(Vec<u8>);

impl OutputSink for Kept {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        if stream == OutputStream::Stdout {
            self.0.extend_from_slice(bytes);
        }
        match self.0.len() > MOST_PRINTED {
            true => Err(io::Error::other("it prints too much")),
            false => Ok(()),
        }
    }
}
