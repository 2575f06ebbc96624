//! The programs that answers were proven with: what each does, and what is said of it then.
//!
//! The table is the test and the page: `reasons` runs each row, and `docs/sessions.md` shows them.

use Reason::{Exited, Waits, YieldElapsed};

/// One program and a conversation with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// How the page calls it.
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    /// What must be here.
    pub(crate) needs: &'static [&'static str],
    /// What must run beside it.
    pub(crate) beside: Beside,
    pub(crate) command: &'static [&'static str],
    pub(crate) screen: bool,
    /// What the start is answered with.
    pub(crate) first: Answer,
    /// What is done then.
    pub(crate) steps: &'static [Step],
    /// What the page says about it.
    pub(crate) note: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// A server with its socket in the workspace.
    Postgres,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Shells,
    Prompts,
    Readers,
    Work,
    Pipelines,
    Relays,
    Screens,
}

/// What is typed, and what the answer is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Text, or keys in angle brackets: `<ctrl-c>`. Nothing only waits.
    pub(crate) input: &'static str,
    pub(crate) answer: Answer,
}

/// Why it came, within which time limit, and what it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) reason: Reason,
    pub(crate) limit_ms: u64,
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Waits,
    /// It waits, and does not show what is typed.
    WaitsHidden,
    Exited,
    YieldElapsed,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Output {
    Any,
    Is(&'static str),
    Has(&'static str),
    Lacks(&'static str),
    ScreenHas(&'static str),
    ScreenLacks(&'static str),
}

const fn waits(output: Output) -> Answer {
    Answer { reason: Waits, limit_ms: 30_000, output }
}

const fn hidden(output: Output) -> Answer {
    Answer { reason: Reason::WaitsHidden, limit_ms: 30_000, output }
}

const fn exits(output: Output) -> Answer {
    Answer { reason: Exited, limit_ms: 30_000, output }
}

const fn works(limit_ms: u64) -> Answer {
    Answer { reason: YieldElapsed, limit_ms, output: Output::Any }
}

const fn step(input: &'static str, answer: Answer) -> Step {
    Step { input, answer }
}

const PLAIN: Case = Case {
    name: "",
    group: Group::Shells,
    needs: &[],
    beside: Beside::Nothing,
    command: &[],
    screen: false,
    first: waits(Output::Any),
    steps: &[],
    note: "",
};

use Output::{Any, Has, Is, Lacks, ScreenHas, ScreenLacks};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "`bash -i`",
        group: Group::Shells,
        needs: &["bash"],
        command: &["bash", "-i"],
        first: waits(Is("")),
        steps: &[
            step("echo hi\n", waits(Is("hi\n"))),
            step("cd /; false\n", waits(Is(""))),
            step("sleep 0.3; echo slept\n", waits(Is("slept\n"))),
            step("(sleep 0.3; echo la''te) &\n", waits(Lacks("late"))),
            step("wait\n", waits(Has("late"))),
            step("for i in 1 2\n", waits(Any)),
            step("do echo $i; done\n", waits(Has("1\n2\n"))),
            step("exit 3\n", exits(Any)),
        ],
        note: "Prompt marks: the answer is what the command printed, with its exit status. What a \
               background job prints later comes with the next answer.",
        ..PLAIN
    },
    Case {
        name: "`zsh -i`",
        needs: &["zsh"],
        command: &["zsh", "-i"],
        steps: &[
            step("echo hi\n", waits(Is("hi\n"))),
            step("false\n", waits(Is(""))),
            step("sleep 0.3; echo slept\n", waits(Is("slept\n"))),
            step("exit\n", exits(Any)),
        ],
        note: "Prompt marks.",
        ..PLAIN
    },
    Case {
        name: "`fish -i`",
        needs: &["fish"],
        command: &["fish", "-i"],
        steps: &[
            step("echo hi\n", waits(Has("hi\n"))),
            step("sleep 0.3; echo slept\n", waits(Has("slept\n"))),
            step("exit\n", exits(Any)),
        ],
        note: "Prompt marks.",
        ..PLAIN
    },
    Case {
        name: "`dash -i`",
        needs: &["dash"],
        command: &["dash", "-i"],
        steps: &[
            step("echo hi\n", waits(Has("hi\n"))),
            step("sleep 0.3; echo slept\n", waits(Has("slept\n"))),
            step("exit\n", exits(Any)),
        ],
        note: "No marks: the answer has echo and prompt in it.",
        ..PLAIN
    },
    Case {
        name: "`python3 -q`",
        group: Group::Prompts,
        needs: &["python3"],
        command: &["python3", "-q"],
        first: waits(Has(">>> ")),
        steps: &[
            step("6 * 7\n", waits(Has("42\n"))),
            step("import time; time.sleep(0.3); print('sl' + 'ept')\n", waits(Has("slept\n"))),
            step("sum(i * i for i in range(3000000))\n", waits(Has("8999995500000500000\n"))),
            step("input('name? ')\n", waits(Has("name? "))),
            step("me\n", waits(Has("'me'"))),
            step("exit()\n", exits(Any)),
        ],
        ..PLAIN
    },
    Case {
        name: "`node -i`",
        group: Group::Prompts,
        needs: &["node"],
        command: &["node", "-i"],
        first: waits(Has("> ")),
        steps: &[
            step("6 * 7\n", waits(Has("42\n"))),
            step(
                "for (let i = 0, s = 0; i < 2e8; i++) s += i; 'do' + 'ne'\n",
                waits(Has("'done'")),
            ),
            step(".exit\n", exits(Any)),
        ],
        note: "It has threads that wait for work; they do not count.",
        ..PLAIN
    },
    Case {
        name: "`sqlite3`",
        group: Group::Prompts,
        needs: &["sqlite3"],
        command: &["sqlite3"],
        first: waits(Has("sqlite> ")),
        steps: &[
            step("select 6 * 7;\n", waits(Has("42\n"))),
            step("select\n", waits(Any)),
            step("8 * 8;\n", waits(Has("64\n"))),
            step(".quit\n", exits(Any)),
        ],
        ..PLAIN
    },
    Case {
        name: "`psql`",
        group: Group::Prompts,
        needs: &["psql"],
        beside: Beside::Postgres,
        command: &["bash", "-c", "exec psql -X -h \"$HOME\" -U postgres postgres"],
        first: waits(Has("postgres=#")),
        steps: &[
            step("select 6 * 7;\n", waits(Has(" 42\n"))),
            step("select\n", waits(Has("postgres-#"))),
            step("8 * 8;\n", waits(Has(" 64\n"))),
            step("select pg_sleep(0.3), 'sl' || 'ept';\n", waits(Has("slept\n"))),
            step("\\prompt 'name? ' name\n", waits(Has("name? "))),
            step("me\n", waits(Has("postgres=#"))),
            step("\\q\n", exits(Any)),
        ],
        note: "Outside the cage: from inside, the socket of a server that was started outside needs a grant. \
               While a query runs it waits for the server, not for input.",
        ..PLAIN
    },
    Case {
        name: "`gdb -q -nx`",
        group: Group::Prompts,
        needs: &["gdb"],
        command: &["gdb", "-q", "-nx"],
        first: waits(Has("(gdb) ")),
        steps: &[
            step("print 6 * 7\n", waits(Has("= 42\n"))),
            step("shell sleep 0.3; echo slept\n", waits(Has("slept\n"))),
            step("quit\n", exits(Any)),
        ],
        ..PLAIN
    },
    Case {
        name: "`cat`",
        group: Group::Readers,
        command: &["cat"],
        first: waits(Is("")),
        steps: &[
            step("hello\n", waits(Is("hello\nhello\n"))),
            step("half", waits(Is("half"))),
            step("<enter>", waits(Is("\nhalf\n"))),
            step("<ctrl-d>", exits(Any)),
        ],
        note: "The terminal's echo is part of the answer.",
        ..PLAIN
    },
    Case {
        name: "`read` in a script",
        group: Group::Readers,
        needs: &["bash"],
        command: &["bash", "-c", "read -p 'name? ' a; sleep 0.3; read -p \"$a? \" b; echo got $b"],
        first: waits(Is("name? ")),
        steps: &[step("me\n", waits(Is("me\nme? "))), step("you\n", exits(Is("you\ngot you\n")))],
        note: "Between the questions it sleeps, and is not taken to wait.",
        ..PLAIN
    },
    Case {
        name: "`read -s`: a password",
        group: Group::Readers,
        needs: &["bash"],
        command: &["bash", "-c", "read -s -p 'Password: ' p; echo; echo ${#p} characters"],
        first: hidden(Is("Password: ")),
        steps: &[step("secret\n", exits(Is("\n6 characters\n")))],
        note: "The answer says that what is typed is not shown.",
        ..PLAIN
    },
    Case {
        name: "`getpass` in Python",
        group: Group::Readers,
        needs: &["python3"],
        command: &["python3", "-c", "import getpass; print(len(getpass.getpass()), 'characters')"],
        first: hidden(Is("Password: ")),
        steps: &[step("secret\n", exits(Is("\n6 characters\n")))],
        note: "Read from `/dev/tty`.",
        ..PLAIN
    },
    Case {
        name: "a password, by a program that nobody may look at",
        group: Group::Readers,
        needs: &["python3"],
        command: &[
            "python3",
            "-c",
            "import ctypes, getpass; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); \
             print(len(getpass.getpass()), 'characters')",
        ],
        first: hidden(Is("Password: ")),
        steps: &[step("secret\n", exits(Is("\n6 characters\n")))],
        note: "As `sudo` and `su` are to their user (`PR_SET_DUMPABLE` 0). The terminal's modes tell.",
        ..PLAIN
    },
    Case {
        name: "`sleep 2`",
        group: Group::Work,
        command: &["sleep", "2"],
        first: works(700),
        steps: &[step("", exits(Is("")))],
        note: "Silent, and not waiting.",
        ..PLAIN
    },
    Case {
        name: "`python3 -c 'while True: pass'`",
        group: Group::Work,
        needs: &["python3"],
        command: &["python3", "-c", "while True: pass"],
        first: works(900),
        steps: &[step("<ctrl-c>", exits(Has("KeyboardInterrupt")))],
        ..PLAIN
    },
    Case {
        name: "a compiler, silent for seconds",
        group: Group::Work,
        needs: &["bash", "gcc"],
        command: &[
            "bash",
            "-c",
            "for i in $(seq 1 800); do \
             echo \"int f$i(int a) { int s = 0; for (int i = 0; i < a; i++) s += (a * i) % (i + $i); return s; }\"; \
             done > big.c; gcc -O2 -c big.c -o big.o && echo compiled",
        ],
        first: works(1000),
        steps: &[step("", exits(Is("compiled\n")))],
        note: "`gcc -O2` of 800 functions.",
        ..PLAIN
    },
    Case {
        name: "a thread that reads, and one that computes",
        group: Group::Work,
        needs: &["python3"],
        command: &[
            "python3",
            "-c",
            "import hashlib, sys, threading\n\
             t = threading.Thread(target=sys.stdin.readline); t.start()\n\
             import time; end = time.time() + 2\n\
             while time.time() < end: hashlib.sha256(b'x' * 1000000).digest()\n\
             print('computed', flush=True); t.join()",
        ],
        first: Answer { reason: Waits, limit_ms: 30_000, output: Is("computed\n") },
        steps: &[step("\n", exits(Any))],
        note: "It works as long as one of its threads does, and waits once that has ended.",
        ..PLAIN
    },
    Case {
        name: "work that looks at its input now and then",
        group: Group::Work,
        needs: &["python3"],
        command: &[
            "python3",
            "-c",
            "import hashlib, select, sys, time\n\
             end = time.time() + 2\n\
             while time.time() < end:\n \
             hashlib.sha256(b'x' * 2000000).digest()\n \
             select.select([sys.stdin], [], [], 0.002)\n\
             print('done')",
        ],
        first: works(900),
        steps: &[step("", exits(Is("done\n")))],
        note: "As `ffmpeg` does, for its keys. A program that waits with a time limit must be seen to be \
               idle, not only to wait.",
        ..PLAIN
    },
    Case {
        name: "`sleep 1 | cat`",
        group: Group::Pipelines,
        needs: &["bash"],
        command: &["bash", "-c", "sleep 1 | cat"],
        first: works(500),
        steps: &[step("", exits(Is("")))],
        note: "`cat` waits for `sleep`, not for input.",
        ..PLAIN
    },
    Case {
        name: "`cat | sleep 1`",
        group: Group::Pipelines,
        needs: &["bash"],
        command: &["bash", "-c", "cat | sleep 1"],
        first: waits(Is("")),
        steps: &[step("<ctrl-d>", exits(Any))],
        note: "`cat` does wait for input.",
        ..PLAIN
    },
    Case {
        name: "`yes | head -c 100000000 | md5sum`",
        group: Group::Pipelines,
        needs: &["bash", "md5sum"],
        command: &["bash", "-c", "yes | head -c 100000000 | md5sum"],
        first: exits(Is("a3e8987f8305d5ad2b60ccb3e8125478  -\n")),
        ..PLAIN
    },
    Case {
        name: "a pipeline in `bash -i`",
        group: Group::Pipelines,
        needs: &["bash"],
        command: &["bash", "-i"],
        steps: &[
            step("sleep 0.4 | cat; echo over\n", waits(Is("over\n"))),
            step("cat | sort\n", waits(Any)),
            step("b\na\n", waits(Any)),
            step("<ctrl-d>", waits(Has("a\nb\n"))),
            step("sleep 30 &\n", waits(Any)),
            step("exit\n", exits(Any)),
        ],
        ..PLAIN
    },
    Case {
        name: "`script` with a shell in it",
        group: Group::Relays,
        needs: &["script", "bash"],
        command: &["script", "-q", "-c", "bash --norc -i", "/dev/null"],
        steps: &[step("echo hi\n", waits(Has("hi\n"))), step("exit\n", exits(Any))],
        note: "A relay waits for input and for another terminal at once, so it must be silent for 150 ms \
               too. Work without a word behind it looks like waiting: say what to wait for with `wait_for`.",
        ..PLAIN
    },
    Case {
        name: "a relay in raw mode, as `ssh` is",
        group: Group::Relays,
        needs: &["python3", "bash"],
        command: &["python3", "-c", "import pty; pty.spawn(['bash', '--norc', '-i'])"],
        steps: &[
            step("echo hi\n", waits(Has("hi\n"))),
            step("for i in 1 2 3 4; do sleep 0.05; echo $i; done\n", waits(Has("4\n"))),
            step("exit\n", exits(Any)),
        ],
        note: "The same.",
        ..PLAIN
    },
    Case {
        name: "`tmux`",
        group: Group::Relays,
        needs: &["tmux", "bash"],
        command: &["tmux", "-S", "sock", "-f", "/dev/null", "new-session", "bash --norc -i"],
        screen: true,
        first: waits(Any),
        steps: &[step("echo h''i\n", waits(ScreenHas("\nhi\n"))), step("exit\n", exits(Any))],
        note: "With `screen: true`. A relay too.",
        ..PLAIN
    },
    Case {
        name: "`less`",
        group: Group::Screens,
        needs: &["less", "bash"],
        command: &["bash", "-c", "seq 100 | sed 's/^/line /' > f; exec less f"],
        screen: true,
        first: waits(ScreenHas("line 1\nline 2\n")),
        steps: &[
            step("<pagedown>", waits(ScreenHas("line 24\n"))),
            step("/line 77\n", waits(ScreenHas("line 77\nline 78\n"))),
            step("q", exits(Any)),
        ],
        note: "With `screen: true`: the answer holds the screen.",
        ..PLAIN
    },
    Case {
        name: "`vim`",
        group: Group::Screens,
        needs: &["vim"],
        command: &["vim", "-N", "-u", "NONE", "-i", "NONE", "-n", "f"],
        screen: true,
        first: waits(Any),
        steps: &[
            step("ihello", waits(ScreenHas("-- INSERT --"))),
            step("<esc>", waits(ScreenLacks("-- INSERT --"))),
            step("yyp", waits(ScreenHas("hello\nhello\n"))),
            step(":q!<enter>", exits(Any)),
        ],
        note: "With `screen: true`. It waits with a time limit, and may draw again. An escape may be the \
               beginning of a key: the answer comes when it has decided.",
        ..PLAIN
    },
    Case {
        name: "`top`",
        group: Group::Screens,
        needs: &["top"],
        command: &["top"],
        screen: true,
        first: waits(ScreenHas("PID")),
        steps: &[
            step("h", waits(ScreenHas("Help"))),
            step("q", waits(ScreenHas("PID"))),
            step("q", exits(Any)),
        ],
        note: "With `screen: true`. It waits with a time limit, and draws again.",
        ..PLAIN
    },
];
