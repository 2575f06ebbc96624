//! The programs that run another program, and how the other one is found among their words.
//!
//! Sorted by name. To add one: its options that take a value in the next word, how many operands
//! come before the command, and in what form the command is written.

/// A program that runs another one.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// The first operand that it must have to be one (`poetry run`), or nothing.
    pub(super) verb: &'static str,
    /// Letters of options that take a value.
    pub(super) letters: &'static str,
    /// Long options that take a value in the next word.
    pub(super) long: &'static [&'static str],
    /// How many operands come before the command; the verb is not counted.
    pub(super) skip: usize,
    pub(super) form: Form,
}

/// How the command is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The words that are left are the program and its arguments.
    Rest,
    /// Like it, after `NAME=value` words.
    Assigned,
    /// Like it, and words that nobody knows yet are added.
    Appended,
    /// The words that are left, joined by blanks, are a script.
    Joined,
    /// The value of `-c` or `--command` is a script; without it the words that are left are the
    /// command.
    ScriptOrRest,
}

use Form::{Appended, Assigned, Joined, Rest, ScriptOrRest};

const fn row(
    name: &'static str,
    verb: &'static str,
    letters: &'static str,
    long: &'static [&'static str],
    skip: usize,
    form: Form,
) -> Wrapper {
    Wrapper { name, verb, letters, long, skip, form }
}

#[rustfmt::skip]
pub(super) const WRAPPERS: &[Wrapper] = &[
    // name, verb, letters with a value, long options with a value, operands before, form
    row("!", "", "", &[], 0, Rest),
    row("arch", "", "e", &[], 0, Rest),
    row("asdf", "exec", "", &[], 0, Rest),
    row("aws-vault", "exec", "dt", &["duration", "mfa-token", "region"], 1, Rest),
    row("builtin", "", "", &[], 0, Rest),
    row("bundle", "exec", "", &[], 0, Rest),
    row("bunx", "", "p", &["package"], 0, Rest),
    row("busybox", "", "", &[], 0, Rest),
    row("caffeinate", "", "tw", &[], 0, Rest),
    row("catchsegv", "", "", &[], 0, Rest),
    row("cgexec", "", "g", &[], 0, Rest),
    row("chpst", "", "uUbeP/ndolmpfc", &[], 0, Rest),
    row("chronic", "", "", &[], 0, Rest),
    row("chroot", "", "", &["userspec", "groups"], 1, Rest),
    row("chrt", "", "TPDp", &["sched-runtime", "sched-period", "sched-deadline"], 1, Rest),
    row("command", "", "", &[], 0, Rest),
    row("conda", "run", "np", &["name", "prefix", "cwd"], 0, Rest),
    row("coproc", "", "", &[], 0, Rest),
    row("dbus-run-session", "", "", &["config-file", "dbus-daemon"], 0, Rest),
    row("direnv", "exec", "", &[], 1, Rest),
    row("doas", "", "uC", &[], 0, Rest),
    row("doppler", "run", "pct", &["project", "config", "token", "scope"], 0, Rest),
    row("dotenvx", "run", "fe", &["env-file", "env"], 0, Rest),
    row("dumb-init", "", "r", &["rewrite"], 0, Rest),
    row("entr", "", "", &[], 0, Rest),
    row("env", "", "uCSa", &["unset", "chdir", "split-string", "argv0"], 0, Assigned),
    row("envdir", "", "", &[], 1, Rest),
    row("eval", "", "", &[], 0, Joined),
    row("exec", "", "a", &[], 0, Rest),
    row("fakeroot", "", "lsib", &["lib", "faked"], 0, Rest),
    row("faketime", "", "f", &[], 1, Rest),
    row("firejail", "", "", &[], 0, Rest),
    row("flock", "", "wEc", &["timeout", "wait", "conflict-exit-code", "command"], 1, ScriptOrRest),
    row("gosu", "", "", &[], 1, Rest),
    row("gtimeout", "", "sk", &["signal", "kill-after"], 1, Rest),
    row("hatch", "run", "", &[], 0, Rest),
    row("hyperfine", "", "wmMrpcsLSn", &["warmup", "runs", "prepare", "cleanup", "setup", "shell", "export-json", "export-markdown"], 0, Joined),
    row("i386", "", "", &[], 0, Rest),
    row("infisical", "run", "", &["env", "path", "token", "projectId"], 0, Rest),
    row("ionice", "", "cnpPu", &["class", "classdata"], 0, Rest),
    row("ld.so", "", "", &["library-path", "preload", "audit", "inhibit-rpath", "argv0", "glibc-hwcaps-mask"], 0, Rest),
    row("linux32", "", "", &[], 0, Rest),
    row("linux64", "", "", &[], 0, Rest),
    row("ltrace", "", "aAeDFlnopsuwx", &["output"], 0, Rest),
    row("mise", "exec", "", &[], 0, Rest),
    row("mise", "x", "", &[], 0, Rest),
    row("nice", "", "n", &["adjustment"], 0, Rest),
    row("nix", "develop", "c", &["command"], 0, ScriptOrRest),
    row("nix-shell", "", "pAI", &["run", "command", "packages", "attr"], 0, ScriptOrRest),
    row("nocorrect", "", "", &[], 0, Rest),
    row("noglob", "", "", &[], 0, Rest),
    row("nohup", "", "", &[], 0, Rest),
    row("npm", "exec", "c", &["call", "package"], 0, ScriptOrRest),
    row("npx", "", "cp", &["call", "package"], 0, ScriptOrRest),
    row("nsenter", "", "tSGWN", &["target", "setuid", "setgid"], 0, Rest),
    row("numactl", "", "imCNplh", &["interleave", "membind", "cpunodebind", "physcpubind"], 0, Rest),
    row("parallel", "", "jaISNnLPdE", &["jobs", "arg-file", "joblog", "results", "timeout", "retries", "delay"], 0, Appended),
    row("perf", "record", "eopFgcCt", &["event", "output", "pid", "freq"], 0, Rest),
    row("perf", "stat", "eoprxCt", &["event", "output", "pid", "repeat"], 0, Rest),
    row("pipenv", "run", "", &[], 0, Rest),
    row("pkexec", "", "", &["user"], 0, Rest),
    row("pnpm", "dlx", "", &["package"], 0, Rest),
    row("pnpm", "exec", "", &[], 0, Rest),
    row("pnpx", "", "p", &["package"], 0, Rest),
    row("poetry", "run", "", &[], 0, Rest),
    row("prlimit", "", "p", &["pid"], 0, Rest),
    row("proot", "", "rbqwkR", &["rootfs", "bind", "cwd"], 0, Rest),
    row("proxychains", "", "f", &[], 0, Rest),
    row("proxychains4", "", "f", &[], 0, Rest),
    row("rlwrap", "", "bCDfHlpPqst", &[], 0, Rest),
    row("run0", "", "ug", &["user", "group", "chdir", "setenv", "unit", "property"], 0, Assigned),
    row("runuser", "", "ugGcsw", &["user", "group", "command", "session-command", "shell"], 0, ScriptOrRest),
    row("rye", "run", "", &[], 0, Rest),
    row("sandgate", "run", "Csa", &["cd", "sandbox", "ask-for-approval"], 0, Rest),
    row("screen", "", "cehpsStT", &[], 0, Rest),
    row("script", "", "cIOBTtEomFt", &["command", "log-in", "log-out", "log-io", "echo"], 1, ScriptOrRest),
    row("setarch", "", "", &[], 1, Rest),
    row("setlock", "", "", &[], 1, Rest),
    row("setpriv", "", "", &["reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits"], 0, Rest),
    row("setsid", "", "", &[], 0, Rest),
    row("softlimit", "", "adflmoprstc", &[], 0, Rest),
    row("ssh", "", "BbcDEeFIiJLlmOopQRSWw", &[], 1, Joined),
    row("ssh-agent", "", "aEtP", &[], 0, Rest),
    row("sshpass", "", "pfdP", &[], 0, Rest),
    row("stdbuf", "", "ioe", &["input", "output", "error"], 0, Rest),
    row("strace", "", "abeIoOpPsSuUEX", &["output", "trace", "attach", "user", "env", "string-limit", "trace-path"], 0, Rest),
    row("su", "", "cgGsw", &["command", "session-command", "group", "shell"], 0, ScriptOrRest),
    row("su-exec", "", "", &[], 1, Rest),
    row("sudo", "", "aCcDghpRrtTUu", &["user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "close-from", "command-timeout", "other-user"], 0, Assigned),
    row("systemd-inhibit", "", "", &["what", "who", "why", "mode"], 0, Rest),
    row("systemd-run", "", "upMHEPt", &["unit", "property", "description", "slice", "uid", "gid", "setenv", "on-calendar", "on-active", "working-directory"], 0, Rest),
    row("taskset", "", "p", &["pid"], 1, Rest),
    row("time", "", "fo", &["format", "output"], 0, Rest),
    row("timeout", "", "sk", &["signal", "kill-after"], 1, Rest),
    row("tini", "", "ep", &[], 0, Rest),
    row("tmux", "new", "cFenstxy", &[], 0, Joined),
    row("tmux", "new-session", "cFenstxy", &[], 0, Joined),
    row("tmux", "new-window", "cFenst", &[], 0, Joined),
    row("tmux", "neww", "cFenst", &[], 0, Joined),
    row("tmux", "run-shell", "dct", &[], 0, Joined),
    row("torify", "", "", &[], 0, Rest),
    row("torsocks", "", "aPpu", &[], 0, Rest),
    row("toybox", "", "", &[], 0, Rest),
    row("trap", "", "", &[], 0, Joined),
    row("tsocks", "", "", &[], 0, Rest),
    row("unbuffer", "", "", &[], 0, Rest),
    row("unshare", "", "SGRw", &["root", "wd", "setuid", "setgid", "map-user", "map-group"], 0, Rest),
    row("uv", "run", "p", &["python", "with", "project", "directory"], 0, Rest),
    row("uvx", "", "p", &["python", "with", "from"], 0, Rest),
    row("valgrind", "", "", &[], 0, Rest),
    row("watch", "", "nq", &["interval", "equexit"], 0, Joined),
    row("winpty", "", "", &[], 0, Rest),
    row("wsl", "", "du", &["distribution", "user", "cd"], 0, Rest),
    row("xargs", "", "aEIdLnPsJRS", &["arg-file", "delimiter", "replace", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"], 0, Appended),
    row("xcrun", "", "", &["sdk", "toolchain"], 0, Rest),
    row("xvfb-run", "", "enfpsw", &["error-file", "server-num", "auth-file", "xauth-protocol", "server-args", "wait"], 0, Rest),
    row("yarn", "dlx", "p", &["package"], 0, Rest),
    row("yarn", "exec", "", &[], 0, Rest),
];

/// Shells, with the one whose grammar their scripts are read by.
pub(super) const SHELLS: &[(&str, &str)] = &[
    ("ash", "sh"),
    ("bash", "bash"),
    ("csh", "bash"),
    ("dash", "sh"),
    ("fish", "bash"),
    ("ksh", "bash"),
    ("ksh93", "bash"),
    ("mksh", "bash"),
    ("rbash", "bash"),
    ("sh", "sh"),
    ("tcsh", "bash"),
    ("yash", "sh"),
    ("zsh", "zsh"),
];
