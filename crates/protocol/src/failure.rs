//! Why commands do not start, by kind.

/// What kind of thing went wrong, for a caller that answers each kind in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The request makes no sense as it is, whatever the machine has installed.
    Request,
    /// The program, or the shell, is not there.
    NotFound,
    /// The program, or the shell, is there but cannot be executed.
    NotExecutable,
    /// The working directory cannot be used.
    Directory,
    /// The system did not start it for another reason.
    System,
    /// Nobody could be told of it.
    NobodyListens,
}

impl FailureKind {
    /// The exit code that shells and `env` give to a command that failed to start like this.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::NotFound => 127,
            Self::NotExecutable => 126,
            Self::Request | Self::Directory | Self::System | Self::NobodyListens => 125,
        }
    }
}
