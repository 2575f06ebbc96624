//! The script that makes a new shell what a login shell would be, and what it must not hold.
//!
//! It is what the login shell says of itself without what a shell without start-up files says too. What the
//! environment policy leaves out of a command's environment is not in it, and neither is a function, an
//! alias or a variable whose text has such a value in it.

use super::report::{Report, Variable};
use crate::environment::ShellEnvironmentPolicy;
use sandgate_process::ShellType;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// The variable that names the others which a call has set for itself, with a colon around each.
pub(super) const OF_THE_CALL: &str = "__sandgate_call";

/// A value of fewer characters is no secret: it would be found everywhere.
const SHORTEST_SECRET: usize = 8;

/// What differs from one shell to the next, and what the shell or the sandbox sets itself.
const NOT_KEPT: &[&str] = &[
    "!",
    "#",
    "$",
    "*",
    "-",
    "0",
    "?",
    "@",
    "_",
    "ARGC",
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_EXECUTION_STRING",
    "BASH_LINENO",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_VERSINFO",
    "BASH_VERSION",
    "COLUMNS",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EGID",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "FUNCNEST",
    "GID",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "LINES",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "TRY_BLOCK_ERROR",
    "TRY_BLOCK_INTERRUPT",
    "TTY",
    "TTYIDLE",
    "UID",
    "USERNAME",
    "ZSH_ARGZERO",
    "ZSH_EVAL_CONTEXT",
    "ZSH_EXECUTION_STRING",
    "ZSH_NAME",
    "ZSH_PATCHLEVEL",
    "ZSH_SUBSHELL",
    "ZSH_VERSION",
    "argv",
    "pipestatus",
    "signals",
    "status",
    "zsh_eval_context",
];

/// The beginnings of names that are the sandbox's or our own.
const OURS: &[&str] = &["CODEX_", "SANDGATE_", "__sandgate_"];

/// What no script can change, or what is about how a shell was started.
const FIXED_OPTIONS: &[&str] = &[
    "exec",
    "noexec",
    "globalrcs",
    "noglobalrcs",
    "interactive",
    "login",
    "login_shell",
    "monitor",
    "nomonitor",
    "privileged",
    "rcs",
    "norcs",
    "restricted",
    "restricted_shell",
    "shinstdin",
    "singlecommand",
    "zle",
    "kshoptionprint",
];

/// What a prelude is made from.
pub(super) struct Findings<'a> {
    pub(super) shell: ShellType,
    /// The login shell.
    pub(super) login: &'a Report,
    /// A shell that has read nothing.
    pub(super) bare: &'a Report,
    pub(super) policy: &'a ShellEnvironmentPolicy,
    /// The person's whole environment.
    pub(super) own_env: &'a BTreeMap<OsString, OsString>,
}

impl Findings<'_> {
    /// The script.
    pub(super) fn prelude(&self) -> Vec<u8> {
        let secrets = self.secrets();
        let mut script = Script(Vec::new());
        script.line(match self.shell {
            ShellType::Zsh => &[b"unset ZDOTDIR"],
            // Functions may have patterns that only parse with it; the choices come last.
            _ => &[b"unset -v BASH_ENV\nshopt -s extglob\nshopt -u expand_aliases"],
        });
        self.functions(&secrets, &mut script);
        self.variables(&secrets, &mut script);
        script.line(&[b"unset -v ", OF_THE_CALL.as_bytes()]);
        self.aliases(&secrets, &mut script);
        if self.login.umask != self.bare.umask && is_octal(&self.login.umask) {
            script.line(&[b"umask ", &self.login.umask]);
        }
        self.options(&mut script);
        script.0
    }

    fn functions(&self, secrets: &Secrets, script: &mut Script) {
        for (name, text) in &self.login.functions {
            if self.bare.functions.get(name) != Some(text) && !secrets.are_in(text) {
                script.line(&[text]);
                if self.login.exported.contains(name) && is_name(name) {
                    script.line(&[b"export -f ", name]);
                }
            }
        }
        for name in self.bare.functions.keys().filter(|name| is_name(name)) {
            if !self.login.functions.contains_key(name) {
                script.line(&[b"unset -f ", name]);
            }
        }
    }

    fn variables(&self, secrets: &Secrets, script: &mut Script) {
        let is_kept = |name: &[u8]| is_kept(name) && !self.is_left_out(name);
        for (name, Variable { declaration, value }) in &self.login.variables {
            let is_new =
                self.bare.variables.get(name).map(|bare| &bare.declaration) != Some(declaration);
            let is_safe = !secrets.are_in(value) && !secrets.are_in(declaration);
            if is_new && !declaration.is_empty() && is_kept(name) && is_safe {
                script.unless_of_the_call(name, declaration);
            }
        }
        for name in self.bare.variables.keys().filter(|name| is_kept(name)) {
            if !self.login.variables.contains_key(name) {
                script.unless_of_the_call(name, &[b"unset -v ", &name[..]].concat());
            }
        }
    }

    fn aliases(&self, secrets: &Secrets, script: &mut Script) {
        let bare: BTreeSet<_> = self.bare.aliases.iter().collect();
        for alias in &self.login.aliases {
            if !bare.contains(alias) && !alias.1.is_empty() && !secrets.are_in(&alias.1) {
                script.line(&[b"builtin ", &alias.1]);
            }
        }
    }

    fn options(&self, script: &mut Script) {
        let (on, off): (&[u8], &[u8]) = match self.shell {
            ShellType::Zsh => (b"setopt ", b"unsetopt "),
            _ => (b"set -o ", b"set +o "),
        };
        if self.shell == ShellType::Bash {
            let choices = listed(&self.login.choices);
            let mut bare = listed(&self.bare.choices);
            // As the first line of the script has them.
            bare.insert(b"extglob");
            bare.remove(&b"expand_aliases"[..]);
            script.switch((b"shopt -s ", b"shopt -u "), &choices, &bare);
        }
        script.switch(
            (on, off),
            &switched_on(&self.login.options),
            &switched_on(&self.bare.options),
        );
    }

    /// Whether the policy leaves a variable of this name out, or sets it itself.
    fn is_left_out(&self, name: &[u8]) -> bool {
        let name = OsStr::from_bytes(name);
        self.policy.leaves_out(name)
            || name.to_str().is_some_and(|name| self.policy.set.contains_key(name))
    }

    /// The values that must not be written: of what the policy leaves out because of its name.
    fn secrets(&self) -> Secrets {
        let of_shell = self
            .login
            .variables
            .iter()
            .map(|(name, one)| (OsStr::from_bytes(name), &one.value[..]));
        let of_person =
            self.own_env.iter().map(|(name, value)| (name.as_os_str(), value.as_bytes()));
        let all = of_shell.chain(of_person).filter(|(name, _)| self.policy.names_a_secret(name));
        let plain = all.map(|(_, value)| without_quotes(value));
        Secrets(plain.filter(|value| value.len() >= SHORTEST_SECRET).collect())
    }
}

/// Values that must not be written.
struct Secrets(BTreeSet<Vec<u8>>);

impl Secrets {
    /// Whether a text holds one, however it is quoted there.
    fn are_in(&self, text: &[u8]) -> bool {
        let text = without_quotes(text);
        self.0.iter().any(|secret| text.windows(secret.len()).any(|window| window == secret))
    }
}

fn without_quotes(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !matches!(byte, b'\\' | b'"' | b'\'')).collect()
}

struct Script(Vec<u8>);

impl Script {
    fn line(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.0.extend_from_slice(part);
        }
        self.0.push(b'\n');
    }

    /// What a call has set for itself stays.
    fn unless_of_the_call(&mut self, name: &[u8], command: &[u8]) {
        self.line(&[b"[[ ${", OF_THE_CALL.as_bytes(), b"-} == *:", name, b":* ]] || ", command]);
    }

    /// Turns on and off what differs.
    fn switch(
        &mut self,
        (on, off): (&[u8], &[u8]),
        wanted: &BTreeSet<&[u8]>,
        there: &BTreeSet<&[u8]>,
    ) {
        let is_plain = |name: &&&[u8]| {
            let is_fixed = FIXED_OPTIONS.iter().any(|fixed| fixed.as_bytes() == **name);
            !is_fixed
                && name
                    .iter()
                    .all(|byte| byte.is_ascii_lowercase() || b"_-0123456789".contains(byte))
        };
        for name in there.difference(wanted).filter(is_plain) {
            self.line(&[off, name]);
        }
        for name in wanted.difference(there).filter(is_plain) {
            self.line(&[on, name]);
        }
    }
}

/// The names in `SHELLOPTS` or `BASHOPTS`.
fn listed(options: &[u8]) -> BTreeSet<&[u8]> {
    options.split(|byte| *byte == b':').filter(|name| !name.is_empty()).collect()
}

/// The options that are on: of a list of names, or of lines with `on` or `off` at their end.
fn switched_on(options: &[u8]) -> BTreeSet<&[u8]> {
    if !options.contains(&b' ') {
        return listed(options);
    }
    let lines = options.split(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b" on"));
    lines.map(<[u8]>::trim_ascii).collect()
}

fn is_kept(name: &[u8]) -> bool {
    is_name(name)
        && !NOT_KEPT.iter().any(|other| other.as_bytes() == name)
        && !OURS.iter().any(|ours| name.starts_with(ours.as_bytes()))
}

fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.first().is_some_and(is_letter)
        && name.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

fn is_octal(text: &[u8]) -> bool {
    (1..=4).contains(&text.len()) && text.iter().all(|byte| (b'0'..=b'7').contains(byte))
}
