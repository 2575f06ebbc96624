//! Processes that live across calls: what they are asked, and what they answer.

use crate::{CallId, SandboxPermissions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a call on a live process was answered just then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReturnReason {
    /// The process has ended.
    Exited,
    /// It waits for input.
    WaitingForInput,
    /// It printed what was waited for.
    Pattern,
    /// It is silent, and this system does not show what it does.
    Quiet,
    /// The time of the call is over; the process goes on.
    YieldElapsed,
    /// The call was cancelled; the process goes on.
    Cancelled,
}

/// A command: words, or a script for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandText {
    /// A script for the shell.
    Script(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// The parameters of `exec_command`: a process that lives on after the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecCommandToolCallParams {
    /// A program and its arguments, or a script for the shell.
    #[serde(alias = "cmd")]
    pub command: CommandText,
    /// What to call the process by; chosen for you if it is left out.
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "session_id")]
    pub process_id: Option<String>,
    /// Where to run it; a relative path starts at the session's directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workdir: Option<String>,
    /// The shell that reads a script: bash, zsh, fish, sh, or a path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shell: Option<String>,
    /// Whether the shell reads the person's profile first (default true).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub login: Option<bool>,
    /// Whether it gets a terminal (default true); without one it has pipes, and an input that can be
    /// written to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tty: Option<bool>,
    /// Whether to keep its screen, for programs that draw on all of it: vim, less, top.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub screen: Option<bool>,
    /// The size of its terminal (default 24 rows of 80 columns).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub size: Option<TerminalSizeParams>,
    /// How many milliseconds to wait at most (default 10000; 250 to 30000). The answer comes earlier when
    /// the process has ended or waits for input.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub yield_time_ms: Option<u64>,
    /// A regular expression: answer as soon as it is printed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wait_for: Option<String>,
    /// How many tokens of output to return at most (default 10000).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_output_tokens: Option<usize>,
    /// Whether the process lives on when everything else has ended (default false).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep_alive: Option<bool>,
    /// Return what was printed as it was printed, with prompts, echoes and escape sequences.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<bool>,
    /// "require_escalated" asks to run it without the sandbox, and needs a justification.
    #[serde(default)]
    pub sandbox_permissions: SandboxPermissions,
    /// Why it must run without the sandbox, as one sentence for the person who decides.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub justification: Option<String>,
    /// With "require_escalated": the first words of the command, as a rule for commands like it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prefix_rule: Option<Vec<String>>,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSizeParams {
    /// Lines.
    #[schemars(range(min = 1, max = 500))]
    pub rows: u16,
    /// Characters in a line.
    #[schemars(range(min = 1, max = 500))]
    pub columns: u16,
}

/// The parameters of `write_stdin`: something for a live process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteStdinToolCallParams {
    /// The process.
    #[serde(alias = "session_id")]
    pub process_id: String,
    /// What to type; a line ends with "\n". Nothing only waits for what it prints.
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "chars")]
    pub input: Option<String>,
    /// Keys to press after that, e.g. ["ctrl-c"], ["esc", "up", "enter"].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keys: Option<Vec<String>>,
    /// How many milliseconds to wait at most (default 10000; 250 to 30000). The answer comes earlier when
    /// the process has ended or waits for input.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub yield_time_ms: Option<u64>,
    /// A regular expression: answer as soon as it is printed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wait_for: Option<String>,
    /// How many tokens of output to return at most (default 10000).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_output_tokens: Option<usize>,
    /// Whether its input ends after this.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub close_stdin: Option<bool>,
    /// A signal for what runs in the foreground: INT, TERM, HUP, QUIT, KILL, STOP, CONT, USR1, USR2.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<String>,
    /// A new size for its terminal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resize: Option<TerminalSizeParams>,
    /// Return what was printed as it was printed, with prompts, echoes and escape sequences.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<bool>,
}

/// The parameters of `list_processes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListProcessesToolCallParams {}

/// The parameters of `kill_process`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillProcessToolCallParams {
    /// The process.
    #[serde(alias = "session_id")]
    pub process_id: String,
}

/// The parameters of `read_output`: what a process, or an earlier command, printed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadOutputToolCallParams {
    /// A process, or the name of a full output as an earlier result gave it.
    #[serde(alias = "process_id", alias = "session_id")]
    pub id: String,
    /// The first line to return, counted from 1; from the end if it is negative.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_line: Option<i64>,
    /// How many lines to return (default 200).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<u64>,
    /// Instead of lines: the place of the first byte to return.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// How many bytes to return from there (default 8192).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// Return only lines that this regular expression matches, with their numbers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pattern: Option<String>,
    /// How many tokens to return at most (default 10000).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_output_tokens: Option<usize>,
    /// Return it as it was printed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<bool>,
}

/// What a call on a live process is answered with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnifiedExecReply {
    /// What it printed since the last answer.
    pub output: String,
    /// Its id, as long as it lives.
    pub process_id: Option<String>,
    /// Its exit code, once it has ended.
    pub exit_code: Option<i32>,
    /// Why the answer came just then.
    pub returned: ReturnReason,
    /// How long the call took.
    pub wall_time_seconds: f64,
    /// How many bytes it printed since the last answer, whatever was left out.
    pub original_bytes: u64,
    /// The exit status of the last command, in a shell that tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_status: Option<i32>,
    /// What is typed now is not shown: it asks for a password.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hides_input: bool,
    /// Its screen, for a program that draws on all of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub screen: Option<ScreenReply>,
    /// What its sandbox refused to it since the last answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub blocked: Vec<String>,
    /// Why it was not started again with what it lacked, where somebody was to be asked about that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_again: Option<String>,
}

/// A live process, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its id.
    pub process_id: String,
    /// Its command.
    pub command: Vec<String>,
    /// Where it was started.
    pub cwd: String,
    /// Its number in the system.
    pub pid: u32,
    /// What it does.
    pub state: ProcessState,
    /// Its exit code, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// How long ago it was started.
    pub age_seconds: u64,
    /// How much it has printed.
    pub printed_bytes: u64,
    /// The last line that it printed.
    pub last_line: String,
    /// Whether it was started to live on when everything else has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub kept: bool,
}

/// What a live process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It works.
    Running,
    /// It waits for input.
    WaitingForInput,
    /// It has ended.
    Exited,
}

/// Something happened to a live process while nobody waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWoke {
    /// The call that started it.
    pub call_id: CallId,
    /// Its id.
    pub process_id: String,
    /// What: it has ended, or printed what was waited for.
    pub reason: ReturnReason,
    /// Its exit code, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
}

/// A screen as it looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenReply {
    /// Its lines, down to the last that is not empty.
    pub lines: Vec<String>,
    /// The line of the cursor, from 0.
    pub cursor_row: usize,
    /// Its place in that line, from 0.
    pub cursor_column: usize,
}
