//! Writing what is run or obeyed later without anybody asking: shell start-up files, timetables,
//! services, hooks, keys that let others in, and the system's own files.

use super::disks::is_device;
use super::place::{Place, is_any, is_name};
use super::scene::{Scene, shown};
use crate::command::{Shape, Word};
use crate::surroundings::Surroundings;
use crate::wrapper::arguments::{Argument, arguments};

/// What lies in a home and is run or obeyed: the path, and what it is.
#[rustfmt::skip]
const IN_HOME: &[(&[&str], &str)] = &[
    (&[".agents"], "what agents obey"),
    (&[".aws"], "the keys of a cloud account"),
    (&[".bash*"], "what every shell runs when it starts"),
    (&[".cargo", "config*"], "what every build obeys"),
    (&[".cargo", "env"], "what every shell runs when it starts"),
    (&[".claude"], "what agents obey"),
    (&[".codex"], "what agents obey"),
    (&[".config", "autostart"], "what starts with the desktop"),
    (&[".config", "direnv"], "what every shell runs when it starts"),
    (&[".config", "environment.d"], "what every program gets"),
    (&[".config", "fish"], "what every shell runs when it starts"),
    (&[".config", "git"], "what every call of git obeys"),
    (&[".config", "nushell"], "what every shell runs when it starts"),
    (&[".config", "nvim"], "what the editor runs when it starts"),
    (&[".config", "powershell"], "what every shell runs when it starts"),
    (&[".config", "systemd"], "what the system starts by itself"),
    (&[".cshrc"], "what every shell runs when it starts"),
    (&[".emacs*"], "what the editor runs when it starts"),
    (&[".gdbinit"], "what every debugger runs when it starts"),
    (&[".gitconfig"], "what every call of git obeys"),
    (&[".gnupg"], "private keys"),
    (&[".inputrc"], "what every shell obeys"),
    (&[".kshrc"], "what every shell runs when it starts"),
    (&[".kube"], "the keys of a cluster"),
    (&[".lldbinit"], "what every debugger runs when it starts"),
    (&[".local", "share", "systemd"], "what the system starts by itself"),
    (&[".login"], "what every shell runs when it starts"),
    (&[".netrc"], "passwords for servers"),
    (&[".npmrc"], "what every call of npm obeys"),
    (&[".pam_environment"], "what every program gets"),
    (&[".profile"], "what every shell runs when it starts"),
    (&[".rhosts"], "who may log in"),
    (&[".ssh"], "who may log in, and the keys for it"),
    (&[".tcshrc"], "what every shell runs when it starts"),
    (&[".tmux.conf"], "what every terminal runs when it starts"),
    (&[".vim*"], "what the editor runs when it starts"),
    (&[".xinitrc"], "what starts with the desktop"),
    (&[".xprofile"], "what starts with the desktop"),
    (&[".xsession*"], "what starts with the desktop"),
    (&[".zlogin"], "what every shell runs when it starts"),
    (&[".zlogout"], "what every shell runs when it ends"),
    (&[".zprofile"], "what every shell runs when it starts"),
    (&[".zshenv"], "what every shell runs when it starts"),
    (&[".zshrc"], "what every shell runs when it starts"),
    (&["Library", "LaunchAgents"], "what the system starts by itself"),
    (&["Library", "Keychains"], "the person's keychain"),
    (&["Documents", "PowerShell"], "what every shell runs when it starts"),
    (&["Documents", "WindowsPowerShell"], "what every shell runs when it starts"),
    (&["AppData", "Roaming", "Microsoft", "Windows", "Start Menu"], "what starts with the desktop"),
];

/// What is run or obeyed wherever it lies.
#[rustfmt::skip]
const ANYWHERE: &[(&[&str], &str)] = &[
    (&[".git", "hooks"], "what git runs by itself"),
    (&[".git", "config"], "what git obeys"),
    (&[".git", "info"], "what git obeys"),
    (&[".ssh", "authorized_keys*"], "who may log in"),
    (&[".codex"], "what agents obey"),
    (&[".agents"], "what agents obey"),
];

/// The system's own places: what each is.
#[rustfmt::skip]
const IN_SYSTEM: &[(&[&str], &str)] = &[
    (&["etc", "bash*"], "what every shell runs when it starts"),
    (&["etc", "cron*"], "the system's timetable of commands"),
    (&["etc", "environment"], "what every program gets"),
    (&["etc", "hosts"], "where names of machines lead"),
    (&["etc", "ld.so*"], "code that is put into every program"),
    (&["etc", "pam.d"], "how people log in"),
    (&["etc", "passwd"], "the system's users"),
    (&["etc", "profile*"], "what every shell runs when it starts"),
    (&["etc", "resolv.conf"], "where names of machines are asked for"),
    (&["etc", "shadow"], "the system's passwords"),
    (&["etc", "ssh"], "who may log in"),
    (&["etc", "sudoers*"], "who may act as root"),
    (&["etc", "systemd"], "what the system starts by itself"),
    (&["etc", "zsh*"], "what every shell runs when it starts"),
    (&["var", "spool", "cron"], "the system's timetable of commands"),
    (&["proc", "sys"], "the kernel's settings"),
    (&["Library", "LaunchDaemons"], "what the system starts by itself"),
    (&["Library", "LaunchAgents"], "what the system starts by itself"),
];

/// What lies in a home and is run or obeyed, by its path there. The last name of one can end in `*`, which
/// stands for whatever comes after it.
pub fn obeyed_in_home() -> impl Iterator<Item = &'static [&'static str]> {
    IN_HOME.iter().map(|(names, _)| *names)
}

/// Whether a path begins with these names.
fn leads(parts: &[String], names: &[&str]) -> bool {
    parts.len() >= names.len() && parts.iter().zip(names).all(|(part, name)| is_name(part, name))
}

/// What a place is, if it is a person's or the system's own and run, obeyed or precious.
pub(super) fn kept_by_person(around: &Surroundings, place: &Place) -> Option<&'static str> {
    // A root that lies inside such a place was opened by the person, with all in it.
    let opened = place.root_length(around).unwrap_or_default();
    if let Some(parts) = place.in_home(around) {
        let home = place.parts.len() - parts.len();
        let known = IN_HOME.iter().find(|(names, _)| leads(parts, names));
        if let Some((names, what)) = known
            && opened < home + names.len()
        {
            return Some(what);
        }
    }
    let left_by_git = place.parts.last().is_some_and(|last| last.ends_with(".lock"));
    for at in opened..place.parts.len() {
        let known = ANYWHERE.iter().find(|(names, _)| leads(&place.parts[at..], names));
        if let Some((_, what)) = known
            && !left_by_git
        {
            return Some(what);
        }
    }
    if is_device(place) {
        return Some("a device, and all that is on it");
    }
    if place.in_system(around) && !is_harmless_device(place) {
        let known = IN_SYSTEM.iter().find(|(names, _)| leads(&place.parts, names));
        return Some(known.map_or("which belongs to the system", |(_, what)| what));
    }
    None
}

fn is_harmless_device(place: &Place) -> bool {
    let first = place.parts.first().map(String::as_str);
    first == Some("dev")
        || (first == Some("proc") && place.parts.get(1).is_some_and(|at| at == "self"))
}

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    for redirection in &scene.command.redirections {
        let target = &redirection.target;
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            let host = target.text.split('/').nth(3).unwrap_or_default();
            return Some(format!("opens a connection to {host} from the shell"));
        }
        if redirection.kind.writes()
            && let Some(reason) = writing(scene, target)
        {
            return Some(reason);
        }
    }
    written(scene)
}

/// What writing to a place would mean.
fn writing(scene: &Scene<'_>, word: &Word) -> Option<String> {
    let place = scene.place(word);
    kept_by_person(scene.around, &place)
        .map(|what| format!("writes to {}, {what}", shown(word, &place)))
}

/// What a program writes by its arguments.
fn written(scene: &Scene<'_>) -> Option<String> {
    match scene.name {
        "tee" | "sponge" | "touch" | "mkdir" | "nano" | "vi" | "vim" | "nvim" | "ed" | "ex"
        | "emacs" | "truncate" | "mkfifo" | "patch" => {
            scene.operands_of("c", &[]).iter().find_map(|word| writing(scene, word))
        }
        "cp" | "mv" | "ln" | "install" | "rsync" | "scp" | "ditto" | "gcp" | "gmv" => copied(scene),
        "sed" | "gsed" => {
            let in_place =
                |word: &Word| word.text.starts_with("-i") || word.text.starts_with("--in-p");
            let grouped = |word: &Word| word.text.starts_with('-') && word.text.ends_with('i');
            let edits = scene.rest().iter().any(|word| in_place(word) || grouped(word));
            let mut files = scene.operands().into_iter().filter(|_| edits);
            files.find_map(|word| writing(scene, word))
        }
        "perl" | "ruby" => {
            let edits = scene.rest().iter().any(|word| {
                word.text.starts_with('-')
                    && !word.text.starts_with("--")
                    && word.text.contains('i')
            });
            let mut files = scene.operands().into_iter().filter(|_| edits);
            files.find_map(|word| writing(scene, word))
        }
        "dd" => scene.rest().iter().find_map(|word| {
            let target = word.text.strip_prefix("of=")?;
            writing(scene, &Word { text: target.to_owned(), shape: word.shape })
        }),
        "curl" => outputs(scene, "o", &["output", "output-dir", "dump-header", "cookie-jar"]),
        "wget" => outputs(scene, "OP", &["output-document", "directory-prefix"]),
        "aria2c" => outputs(scene, "od", &["out", "dir"]),
        "sort" | "gcc" | "cc" | "openssl" => outputs(scene, "o", &["output", "out"]),
        _ => None,
    }
}

fn outputs(scene: &Scene<'_>, letters: &str, long: &[&str]) -> Option<String> {
    for (_, argument) in arguments(&scene.command.words, letters, long) {
        let named = match argument {
            Argument::Letter(letter, value) if letters.contains(letter) => value,
            Argument::Long(name, value) if long.contains(&name) => value,
            _ => None,
        };
        if let Some(text) = named
            && let Some(reason) = writing(scene, &guessed(text))
        {
            return Some(reason);
        }
    }
    None
}

/// An option's value as a word of its own.
fn guessed(text: &str) -> Word {
    let shape = if text.contains('$') { Shape::Dynamic } else { Shape::Literal };
    Word { text: text.to_owned(), shape }
}

fn copied(scene: &Scene<'_>) -> Option<String> {
    let (mut operands, mut target) = (Vec::new(), None);
    let letters = if scene.name == "install" { "tgomS" } else { "tSeifF" };
    let letters = if matches!(scene.name, "cp" | "mv" | "ln") { "tS" } else { letters };
    for (_, argument) in arguments(&scene.command.words, letters, &["target-directory", "suffix"]) {
        match argument {
            Argument::Operand(word) => operands.push(word.clone()),
            Argument::Letter('t', Some(value)) if scene.name != "rsync" => {
                target = Some(guessed(value));
            }
            Argument::Long("target-directory", Some(value)) => target = Some(guessed(value)),
            _ => {}
        }
    }
    let target = match target {
        Some(target) => target,
        None if operands.len() > 1 => operands.pop()?,
        None => return None,
    };
    if let Some(reason) = writing(scene, &target) {
        return Some(reason);
    }
    let place = scene.place(&target);
    if place.is_root_directory() {
        return Some(format!("puts files into {}, the top of the system", target.text));
    }
    // Into a directory, each keeps its name.
    operands.iter().find_map(|source| {
        let name = source.text.trim_end_matches('/').rsplit('/').next()?;
        if name.is_empty() || is_any(name, &[".", ".."]) {
            let home = place.in_home(scene.around).is_some_and(<[String]>::is_empty);
            return home.then(|| format!("puts all of {} into {}", source.text, target.text));
        }
        let text = format!("{}/{name}", target.text.trim_end_matches('/'));
        writing(scene, &Word { text, shape: target.shape })
    })
}
