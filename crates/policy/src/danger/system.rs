//! The machine itself: switching it off, its users, its kernel, its guards, its timetable, and
//! other people's processes.

use super::forms::{Row, row};
use super::scene::Scene;
use crate::command::{Connective, SimpleCommand, Word};

#[rustfmt::skip]
pub(super) const FORMS: &[Row] = &[
    row("adduser", &[], "adds a user"),
    row("apt", &["^remove|purge|autoremove|autopurge|full-upgrade|dist-upgrade"], "removes the system's software"),
    row("apt-get", &["^remove|purge|autoremove|dist-upgrade"], "removes the system's software"),
    row("aptitude", &["^remove|purge"], "removes the system's software"),
    row("at", &[], "has commands run later"),
    row("auditctl", &["-D|-e"], "turns off the record of what happens"),
    row("batch", &[], "has commands run later"),
    row("brew", &["^uninstall|remove|rm|autoremove"], "removes software"),
    row("chpasswd", &[], "changes passwords"),
    row("chsh", &[], "changes the login shell"),
    row("csrutil", &["^disable|clear"], "turns off the system's protection"),
    row("date", &["=-s|--set|--se"], "sets the clock"),
    row("defaults", &["^write|delete"], "changes the person's settings"),
    row("deluser", &[], "removes a user"),
    row("dmsetup", &["^remove|remove_all|wipe_table"], "changes the system's disks"),
    row("dnf", &["^remove|erase|autoremove"], "removes the system's software"),
    row("doas", &[], "runs as another user"),
    row("dpkg", &["-r|-P|--remove|--purge|--force-all"], "removes the system's software"),
    row("dscl", &["-create|-delete|-append|-merge|-change|-passwd"], "changes the system's users"),
    row("firewall-cmd", &["--panic-on|--panic-off|--remove-service|--add-port|--remove-rich-rule|--set-default-zone"], "changes the firewall"),
    row("gpasswd", &[], "changes who belongs to a group"),
    row("groupadd", &[], "adds a group"),
    row("groupdel", &[], "removes a group"),
    row("groupmod", &[], "changes a group"),
    row("grub-install", &[], "changes how the system starts"),
    row("halt", &[], "switches the machine off"),
    row("hostnamectl", &["^set-hostname|set-deployment|set-chassis"], "changes the system's settings"),
    row("hwclock", &["-w|-s|--systohc|--hctosys|--set"], "sets the clock"),
    row("insmod", &[], "loads code into the kernel"),
    row("ip", &["^link|route|addr", "set|del|delete|flush"], "changes the network"),
    row("ip6tables", &["-F|--flush|-P|--policy|-X|-D"], "changes the firewall"),
    row("iptables", &["-F|--flush|-P|--policy|-X|-D"], "changes the firewall"),
    row("kexec", &[], "starts another kernel"),
    row("killall5", &[], "ends every process"),
    row("launchctl", &["^load|bootstrap|enable|submit|unload|bootout|setenv"], "changes what starts by itself"),
    row("loginctl", &["^terminate-user|terminate-session|terminate-seat|kill-user|kill-session|enable-linger"], "ends or changes a person's session"),
    row("modprobe", &[], "loads code into the kernel"),
    row("networksetup", &["-set*|-remove*|-create*|-delete*"], "changes the network"),
    row("newgrp", &[], "runs as another group"),
    row("nft", &["^flush|delete"], "changes the firewall"),
    row("nmcli", &["delete|down|off"], "changes the network"),
    row("nvram", &["-c|-d"], "changes how the machine starts"),
    row("pacman", &["-R"], "removes the system's software"),
    row("passwd", &[], "changes a password"),
    row("pfctl", &["-d|-F"], "changes the firewall"),
    row("pkexec", &[], "runs as another user"),
    row("poweroff", &[], "switches the machine off"),
    row("reboot", &[], "restarts the machine"),
    row("rmmod", &[], "takes code out of the kernel"),
    row("runuser", &[], "runs as another user"),
    row("sandgate", &["^approvals", "answer"], "answers a question that is for the person"),
    row("sandgate", &["^config", "set|unset|edit"], "changes what the person decided about agents"),
    row("sandgate", &["^console"], "opens what answers questions that are for the person"),
    row("sandgate", &["^mcp", "install", "--write"], "changes what the person's agents run"),
    row("sandgate", &["^trust"], "trusts a project in the person's name"),
    row("scutil", &["--set|--prefs|--nc"], "changes the system's settings"),
    row("setenforce", &["0|Permissive"], "turns off the system's protection"),
    row("shutdown", &[], "switches the machine off"),
    row("spctl", &["--master-disable|--global-disable"], "turns off the system's protection"),
    row("su", &[], "runs as another user"),
    row("sudo", &[], "runs as another user"),
    row("sudoedit", &[], "changes a file as another user"),
    row("sysctl", &["-w|--write|-p|--load|--system"], "changes the kernel's settings"),
    row("systemd-run", &[], "has the system run a command, out of every sandbox"),
    row("systemsetup", &[], "changes the system's settings"),
    row("tccutil", &["^reset"], "changes what programs may do"),
    row("timedatectl", &["^set-time|set-ntp"], "sets the clock"),
    row("ufw", &["disable|reset|allow|delete"], "changes the firewall"),
    row("update-grub", &[], "changes how the system starts"),
    row("useradd", &[], "adds a user"),
    row("userdel", &[], "removes a user"),
    row("usermod", &[], "changes a user"),
    row("vigr", &[], "changes a group"),
    row("vipw", &[], "changes a user"),
    row("visudo", &[], "changes who may act as root"),
    row("yum", &["^remove|erase|autoremove"], "removes the system's software"),
];

/// Variables that put code into every program that is started with them, or hide what was done.
#[rustfmt::skip]
const VARIABLES: &[(&str, &str)] = &[
    ("BASH_ENV", "has every shell run"),
    ("DYLD_INSERT_LIBRARIES", "puts into every program"),
    ("LD_AUDIT", "puts into every program"),
    ("LD_PRELOAD", "puts into every program"),
    ("PROMPT_COMMAND", "has the shell run at every prompt"),
];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    match scene.name {
        "kill" => killed(scene),
        "pkill" | "killall" => ended_by_name(scene),
        "init" | "telinit" => {
            let level = scene.rest().first()?.text.as_str();
            matches!(level, "0" | "1" | "6" | "s" | "S" | "q")
                .then(|| format!("switches the machine off or restarts it: {}", scene.line()))
        }
        "systemctl" => units(scene),
        "crontab" => timetable(scene),
        "history" => {
            let clears = scene.has('c', "clear") || scene.has('d', "delete");
            clears.then(|| format!("deletes the record of what was run: {}", scene.line()))
        }
        "unset" => scene
            .has_word("HISTFILE")
            .then(|| "stops the record of what is run, by unsetting HISTFILE".to_owned()),
        "export" | "declare" | "typeset" => {
            scene.rest().iter().find_map(|word| variable(word.text.split_once('=')?))
        }
        _ => None,
    }
}

/// Variables before a command.
pub(super) fn environment(scene: &Scene<'_>) -> Option<String> {
    let assignments = scene.command.assignments.iter();
    assignments
        .map(|assignment| (assignment.name.as_str(), assignment.value.text.as_str()))
        .find_map(variable)
}

fn variable((name, value): (&str, &str)) -> Option<String> {
    let hides = matches!(name, "HISTFILE" | "HISTSIZE") && matches!(value, "/dev/null" | "" | "0");
    if hides {
        return Some(format!("stops the record of what is run, by setting {name}"));
    }
    let (_, does) = VARIABLES.iter().find(|(known, _)| *known == name)?;
    (!value.is_empty()).then(|| format!("{does} {value}, by setting {name}"))
}

/// `:(){ :|:& };:`: something that starts itself twice, and again.
pub(super) fn fork_bomb(commands: &[SimpleCommand]) -> Option<(usize, String)> {
    if commands.len() < 3 {
        return None;
    }
    let alone = |command: &SimpleCommand| match command.words.as_slice() {
        [only] => only.as_literal().map(str::to_owned),
        _ => None,
    };
    // Both go on by themselves: `a | a | a` ends when the first does.
    let goes_on = |at: usize| {
        let next = commands.get(at + 1).map(|command| command.connective);
        commands[at].left_running || next == Some(Connective::Beside)
    };
    let at = (1..commands.len()).find(|at| {
        commands[*at].connective == Connective::Pipe
            && goes_on(*at)
            && commands[at - 1].words == commands[*at].words
            && alone(&commands[*at]).is_some()
    })?;
    let name = alone(&commands[at])?;
    let times = commands.iter().filter(|command| command.words == commands[at].words).count();
    (times > 2 && !matches!(name.as_str(), "cat" | "sort" | "uniq"))
        .then(|| (at, format!("starts {name} over and over until the machine stops answering")))
}

fn killed(scene: &Scene<'_>) -> Option<String> {
    let mut words = scene.rest().iter().map(|word| word.text.as_str()).peekable();
    match words.peek() {
        Some(&("-s" | "-n")) => {
            words.next();
            words.next();
        }
        Some(text) if text.starts_with('-') && *text != "--" => {
            // The first is a signal, even if it is `-1`.
            words.next();
        }
        _ => {}
    }
    let target = words.find(|text| matches!(*text, "-1" | "1" | "0"))?;
    let what = match target {
        "-1" => "every process of the person's",
        "1" => "the process that all others depend on",
        _ => return None,
    };
    Some(format!("ends {what}: {}", scene.line()))
}

fn ended_by_name(scene: &Scene<'_>) -> Option<String> {
    // Programs of the person's own session; an agent's server is another matter.
    const SESSION: &[&str] = &[
        "systemd",
        "sshd",
        "Xorg",
        "gnome-shell",
        "gnome-session",
        "kwin",
        "plasmashell",
        "dbus-daemon",
        "Finder",
        "Dock",
        "WindowServer",
        "launchd",
        "NetworkManager",
        "login",
        "tmux",
        "screen",
        "bash",
        "zsh",
        "sh",
        "fish",
        "dockerd",
        "containerd",
        "init",
        "cron",
        "sandgate",
        "codex",
    ];
    let all = scene.rest().iter().any(|word| {
        matches!(
            word.text.as_str(),
            "-u" | "--user" | "--euid" | "-U" | "--uid" | "-v" | "--inverse" | "." | ".*"
        )
    });
    let named = scene.operands().iter().any(|word| SESSION.contains(&word.text.as_str()));
    let forced = scene.name == "killall"
        && scene
            .rest()
            .iter()
            .any(|word| matches!(word.text.as_str(), "-9" | "-KILL" | "-SIGKILL"));
    (all || named || forced)
        .then(|| format!("ends processes that it did not start: {}", scene.line()))
}

fn units(scene: &Scene<'_>) -> Option<String> {
    let verb = scene.operands_of("tpHMnosE", &["type", "property", "host", "machine", "lines"]);
    let verb = verb.first()?.text.as_str();
    let does = match verb {
        "poweroff" | "halt" | "reboot" | "kexec" | "suspend" | "hibernate" | "soft-reboot" => {
            "switches the machine off or restarts it"
        }
        "rescue" | "emergency" | "isolate" | "default" | "set-default" => {
            "changes how the system runs"
        }
        "enable" | "link" | "edit" | "reenable" | "preset" | "set-environment" => {
            "changes what starts by itself"
        }
        "stop" | "disable" | "mask" | "kill" | "restart" | "revert" | "start" => {
            "changes what runs on the machine"
        }
        _ => return None,
    };
    Some(format!("{does}: {}", scene.line()))
}

fn timetable(scene: &Scene<'_>) -> Option<String> {
    let lists = scene.has('l', "list");
    let removes = scene.has('r', "remove");
    if removes {
        return Some(format!("deletes the person's timetable of commands: {}", scene.line()));
    }
    let piped = scene.command.connective == Connective::Pipe;
    let given = |word: &Word| word.text != "-l" && word.text != "-u";
    (!lists && (piped || scene.rest().iter().any(given)))
        .then(|| format!("has commands run at set times, from now on: {}", scene.line()))
}
