//! Reading what proves who a person is: keys, tokens, passwords, cookies, histories.
//!
//! Any word or redirection that names one counts, whatever the program, except for programs that
//! only look at names. Public halves of keys and lists of known machines are no secret.

use super::place::{Base, Place, alternatives, could_be, is_any, is_name};
use super::scene::{Scene, shown};
use crate::command::{RedirectionKind, Shape, Word};
use crate::surroundings::Surroundings;
use crate::wrapper::code::{INTERPRETERS, fed};

/// What lies in a home: the path, and what it is.
#[rustfmt::skip]
const IN_HOME: &[(&[&str], &str)] = &[
    (&[".Xauthority"], "the key of the person's screen"),
    (&[".bash_history"], "what the person has typed"),
    (&[".bitcoin"], "a wallet"),
    (&[".boto"], "the keys of a cloud account"),
    (&[".cargo", "credentials*"], "the key of a package registry"),
    (&[".claude", ".credentials.json"], "the key of a model's account"),
    (&[".codex", "auth.json"], "the key of a model's account"),
    (&[".composer", "auth.json"], "the key of a package registry"),
    (&[".config", "BraveSoftware"], "a browser's passwords and cookies"),
    (&[".config", "chromium"], "a browser's passwords and cookies"),
    (&[".config", "composer", "auth.json"], "the key of a package registry"),
    (&[".config", "doctl"], "the keys of a cloud account"),
    (&[".config", "gcloud"], "the keys of a cloud account"),
    (&[".config", "gh"], "the key of a GitHub account"),
    (&[".config", "git", "credentials"], "passwords for git servers"),
    (&[".config", "glab-cli"], "the key of a GitLab account"),
    (&[".config", "google-chrome*"], "a browser's passwords and cookies"),
    (&[".config", "hub"], "the key of a GitHub account"),
    (&[".config", "microsoft-edge*"], "a browser's passwords and cookies"),
    (&[".config", "op"], "what a password manager keeps"),
    (&[".config", "rclone"], "the keys of a cloud account"),
    (&[".config", "solana"], "a wallet"),
    (&[".config", "sops"], "private keys"),
    (&[".databrickscfg"], "the keys of a cloud account"),
    (&[".docker", "config.json"], "the key of a package registry"),
    (&[".electrum"], "a wallet"),
    (&[".ethereum"], "a wallet"),
    (&[".fly"], "the keys of a cloud account"),
    (&[".gem", "credentials"], "the key of a package registry"),
    (&[".gradle", "gradle.properties"], "the key of a package registry"),
    (&[".local", "share", "keyrings"], "the person's keyring"),
    (&[".local", "share", "kwalletd"], "the person's keyring"),
    (&[".m2", "settings*"], "the key of a package registry"),
    (&[".my.cnf"], "the password of a database"),
    (&[".mylogin.cnf"], "the password of a database"),
    (&[".npmrc"], "the key of a package registry"),
    (&[".oci"], "the keys of a cloud account"),
    (&[".psql_history"], "what the person has typed"),
    (&[".mysql_history"], "what the person has typed"),
    (&[".python_history"], "what the person has typed"),
    (&[".s3cfg"], "the keys of a cloud account"),
    (&[".snowflake"], "the password of a database"),
    (&[".terraform.d"], "the keys of a cloud account"),
    (&[".terraformrc"], "the keys of a cloud account"),
    (&[".thunderbird"], "the person's mail"),
    (&[".zsh_history"], "what the person has typed"),
    (&["AppData", "Local", "Google", "Chrome"], "a browser's passwords and cookies"),
    (&["AppData", "Local", "Microsoft", "Edge"], "a browser's passwords and cookies"),
    (&["AppData", "Local", "Microsoft", "Credentials"], "the person's passwords"),
    (&["AppData", "Roaming", "Microsoft", "Credentials"], "the person's passwords"),
    (&["AppData", "Roaming", "Microsoft", "Protect"], "the person's passwords"),
    (&["AppData", "Roaming", "Mozilla"], "a browser's passwords and cookies"),
    (&["Library", "Application Support", "BraveSoftware"], "a browser's passwords and cookies"),
    (&["Library", "Application Support", "Firefox"], "a browser's passwords and cookies"),
    (&["Library", "Application Support", "Google", "Chrome"], "a browser's passwords and cookies"),
    (&["Library", "Cookies"], "a browser's passwords and cookies"),
    (&["Library", "Mail"], "the person's mail"),
    (&["Library", "Messages"], "the person's messages"),
    (&["_netrc"], "passwords for servers"),
];

/// What is a secret wherever it lies, as copies of homes do.
#[rustfmt::skip]
const ANYWHERE: &[(&[&str], &str)] = &[
    (&[".aws"], "the keys of a cloud account"),
    (&[".azure"], "the keys of a cloud account"),
    (&[".git-credentials"], "passwords for git servers"),
    (&[".gnupg"], "private keys"),
    (&[".kube", "config*"], "the keys of a cluster"),
    (&[".kube", "cache"], "the keys of a cluster"),
    (&[".mozilla"], "a browser's passwords and cookies"),
    (&[".netrc"], "passwords for servers"),
    (&[".password-store"], "what a password manager keeps"),
    (&[".pgpass"], "the password of a database"),
    (&[".pypirc"], "the key of a package registry"),
    (&[".ssh"], "the person's SSH keys"),
    (&[".vault-token"], "the key of a vault"),
    (&["Keychains"], "the person's keychain"),
    (&["id_dsa"], "a private key"),
    (&["id_ecdsa"], "a private key"),
    (&["id_ecdsa_sk"], "a private key"),
    (&["id_ed25519"], "a private key"),
    (&["id_ed25519_sk"], "a private key"),
    (&["id_rsa"], "a private key"),
];

/// The system's own secrets.
#[rustfmt::skip]
const IN_SYSTEM: &[(&[&str], &str)] = &[
    (&["dev", "kmem"], "the machine's memory"),
    (&["dev", "mem"], "the machine's memory"),
    (&["etc", "NetworkManager", "system-connections"], "passwords of networks"),
    (&["etc", "gshadow*"], "the system's passwords"),
    (&["etc", "krb5.keytab"], "the machine's keys"),
    (&["etc", "kubernetes"], "the keys of a cluster"),
    (&["etc", "master.passwd"], "the system's passwords"),
    (&["etc", "rancher"], "the keys of a cluster"),
    (&["etc", "security", "opasswd"], "the system's passwords"),
    (&["etc", "shadow*"], "the system's passwords"),
    (&["etc", "ssh", "ssh_host_*"], "the machine's keys"),
    (&["etc", "ssl", "private"], "private keys"),
    (&["etc", "sudoers*"], "who may act as root"),
    (&["etc", "wireguard"], "private keys"),
    (&["private", "etc", "master.passwd"], "the system's passwords"),
    (&["proc", "kcore"], "the machine's memory"),
    (&["run", "secrets"], "the keys of a container"),
    (&["var", "db", "shadow"], "the system's passwords"),
    (&["var", "run", "secrets"], "the keys of a container"),
    (&["Windows", "System32", "config"], "the system's passwords"),
];

/// In `.ssh` and beside keys, what is no secret.
const NO_SECRET: &[&str] = &["known_hosts*", "config", "authorized_keys", "environment"];

/// Programs that look at names, dates and modes, not into files.
const ONLY_NAMES: &[&str] = &[
    "ls",
    "stat",
    "test",
    "[",
    "[[",
    "echo",
    "printf",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "file",
    "find",
    "gfind",
    "du",
    "cd",
    "pushd",
    "chmod",
    "chown",
    "mkdir",
    "touch",
    "which",
    "rm",
    "rmdir",
    "exa",
    "eza",
    "lsd",
    "tree",
    "ssh-add",
    "git-crypt",
    "unset",
    "alias",
];

/// Programs whose first operand is a text to look for, not a file.
const SEARCHING: &[&str] =
    &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "jq", "yq"];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    for redirection in &scene.command.redirections {
        let reads = matches!(redirection.kind, RedirectionKind::Read | RedirectionKind::ReadWrite);
        if reads && let Some(reason) = secret(scene, &redirection.target) {
            return Some(reason);
        }
    }
    if ONLY_NAMES.contains(&scene.name) && !reads_names(scene) {
        return None;
    }
    if let Some(reason) = all_of_a_home(scene) {
        return Some(reason);
    }
    let words = scene.rest();
    let code = INTERPRETERS.contains(&scene.name);
    let skipped = text_to_find(scene);
    for (index, word) in words.iter().enumerate() {
        if Some(index) == skipped || is_key_to_use(scene, index) {
            continue;
        }
        let reason = secret(scene, word).or_else(|| if code { in_code(scene, word) } else { None });
        if reason.is_some() {
            return reason;
        }
    }
    let mut fed = fed(scene.command).filter(|_| code);
    fed.find_map(|text| in_code(scene, text))
}

/// `file -f LIST` and its like print what stands in the list.
fn reads_names(scene: &Scene<'_>) -> bool {
    match scene.name {
        "file" => scene.has('f', "files-from"),
        "du" => scene.rest().iter().any(|word| word.text.starts_with("--files0")),
        "tree" => scene.has_word("--fromfile"),
        _ => false,
    }
}

/// A search through all files of a directory meets every secret in it: of a place of secrets, of a
/// home, or of everybody's.
fn all_of_a_home(scene: &Scene<'_>) -> Option<String> {
    // ripgrep and its like look at nothing whose name begins with a dot, unless they are told to.
    let (recursive, hidden) = match scene.name {
        "grep" | "egrep" | "fgrep" => {
            let recursive = scene.has('r', "recursive")
                || scene.has('R', "dereference-recursive")
                || scene.has_word("--directories=recurse")
                || scene.has_word("-drecurse")
                || scene.has_word("recurse");
            (recursive, recursive)
        }
        "rg" | "ag" | "ack" => {
            let shown = |word: &Word| matches!(word.text.as_str(), "-uu" | "-uuu" | "--hidden");
            (true, scene.rest().iter().any(shown) || scene.has('.', "hidden"))
        }
        _ => (false, false),
    };
    let skipped = if recursive { text_to_find(scene) } else { return None };
    let mut operands = scene
        .rest()
        .iter()
        .enumerate()
        .filter(|(at, word)| Some(*at) != skipped && !word.text.starts_with('-'));
    // Without an operand it searches where it is.
    let here = Word::literal(".");
    let alone = operands.clone().next().is_none().then_some((0, &here));
    operands.by_ref().chain(alone).find_map(|(_, word)| {
        let place = scene.place(word).without_everything();
        if let Some(what) = what_is(scene.around, &place) {
            return Some(format!("reads {}, {what}", shown(word, &place)));
        }
        let is_home = place.in_home(scene.around).is_some_and(<[String]>::is_empty)
            || (place.base == Base::Root
                && matches!(place.names().as_slice(), [] | ["home" | "Users"]));
        (is_home && hidden)
            .then(|| format!("reads every file in {}, keys among them", shown(word, &place)))
    })
}

/// The operand that is a text to look for.
fn text_to_find(scene: &Scene<'_>) -> Option<usize> {
    if !SEARCHING.contains(&scene.name) {
        return None;
    }
    let words = scene.rest();
    let elsewhere = |word: &Word| {
        let text = word.text.as_str();
        matches!(text, "-e" | "-f" | "--files")
            || text.starts_with("--regexp")
            || text.starts_with("--file")
    };
    if let Some(at) = words.iter().position(elsewhere) {
        return (words[at].text == "-e").then_some(at + 1);
    }
    words.iter().position(|word| !word.text.starts_with('-'))
}

/// `ssh -i KEY`: using a key is what it is for.
fn is_key_to_use(scene: &Scene<'_>, index: usize) -> bool {
    let uses = matches!(scene.name, "ssh" | "scp" | "sftp" | "mosh" | "autossh" | "ssh-keygen");
    let before = index.checked_sub(1).and_then(|at| scene.rest().get(at));
    uses && before.is_some_and(|word| matches!(word.text.as_str(), "-i" | "-F" | "-f"))
}

/// What a word names that is a secret: as a whole, or in the value of an option or a pair.
fn secret(scene: &Scene<'_>, word: &Word) -> Option<String> {
    if let Some(each) = alternatives(word) {
        return each.iter().find_map(|word| secret(scene, word));
    }
    let text = word.text.as_str();
    if is_plain_name(word) && is_ordinary(scene) {
        return None;
    }
    let attached =
        text.strip_prefix('-').and_then(|rest| rest.find(['/', '~']).map(|at| &rest[at..]));
    let pieces = text.split(['=', '@', ':', ',']);
    std::iter::once(text).chain(pieces).chain(attached).find_map(|piece| named(scene, word, piece))
}

/// A word without a path, a dot or a pattern in it that is not a secret's name wherever it lies. Most
/// words are that, and need no look at where they lead from the workspace.
fn is_plain_name(word: &Word) -> bool {
    let text = word.text.as_str();
    // In quotes a star is a star.
    let quoted = word.shape == Shape::Literal;
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'+' | b' ')
            || (quoted && matches!(byte, b'*' | b'?' | b'[' | b']'))
    };
    let known = |start: &str| {
        text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    };
    text.bytes().all(plain) && !known("id_") && !known("_netrc") && !known("keychains")
}

/// Whether names from where a command runs lead to nothing that is a secret by its place.
fn is_ordinary(scene: &Scene<'_>) -> bool {
    let here = scene.here.place();
    here.base == Base::Here
        || (here.in_roots(scene.around)
            && here.in_home(scene.around).is_none_or(|parts| !parts.is_empty()))
}

fn named(scene: &Scene<'_>, word: &Word, piece: &str) -> Option<String> {
    let blank = piece.contains(char::is_whitespace);
    if piece.contains('\n') || (blank && !piece.starts_with(['/', '~', '$'])) {
        return None;
    }
    let place = Place::of(piece, word.shape, scene.here.place(), scene.around);
    let what = what_is(scene.around, &place)?;
    let piece = Word { text: piece.to_owned(), shape: word.shape };
    Some(format!("reads {}, {what}", shown(&piece, &place)))
}

fn leads(parts: &[String], names: &[&str]) -> bool {
    parts.len() >= names.len() && parts.iter().zip(names).all(|(part, name)| is_name(part, name))
}

/// The same for names whose place is known: there a lone star is all that is in it, secrets too.
fn leads_into(parts: &[String], names: &[&str]) -> bool {
    let [first, rest @ ..] = names else { return false };
    parts.len() >= names.len()
        && is_name(&parts[0], first)
        && parts[1..].iter().zip(rest).all(|(part, name)| could_be(part, name))
}

/// What secret a place is, if it is one.
pub(super) fn what_is(around: &Surroundings, place: &Place) -> Option<&'static str> {
    let last = place.parts.last()?;
    if last.ends_with(".pub")
        || is_any(last, NO_SECRET)
            && place.parts.iter().any(|part| part == ".ssh")
            && !last.contains('*')
    {
        return None;
    }
    let opened = place.root_length(around).unwrap_or_default();
    for at in opened..place.parts.len() {
        let known = ANYWHERE.iter().find(|(names, _)| leads(&place.parts[at..], names));
        if let Some((_, what)) = known {
            return Some(what);
        }
    }
    if let Some(parts) = place.in_home(around) {
        let home = place.parts.len() - parts.len();
        if opened <= home && parts.first().map(String::as_str).is_some_and(is_every_hidden) {
            return Some("which the person's keys and passwords are among");
        }
        let known = IN_HOME.iter().find(|(names, _)| leads_into(parts, names));
        if let Some((names, what)) = known
            && opened < home + names.len()
        {
            return Some(what);
        }
    }
    if place.base != Base::Root {
        return None;
    }
    if let [first, .., last] = place.parts.as_slice()
        && first == "proc"
        && is_any(last, &["environ", "mem"])
        && place.parts.len() > 2
    {
        return Some("a process's memory or what it was given, keys among it");
    }
    let private = [".pem", ".key", ".p12", ".pfx"].iter().any(|end| last.ends_with(end));
    let public = place.parts.iter().any(|part| {
        is_any(
            part,
            &[
                "certs",
                "cert.pem",
                "ca-certificates",
                "cacert.pem",
                "site-packages",
                "node_modules",
            ],
        )
    });
    if private && !public && !place.in_roots(around) {
        return Some("a private key, by its name");
    }
    IN_SYSTEM.iter().find(|(names, _)| leads_into(&place.parts, names)).map(|(_, what)| *what)
}

/// `.*` and its like: everything whose name begins with a dot.
fn is_every_hidden(part: &str) -> bool {
    part.starts_with('.') && part.contains('*') && !part.contains(char::is_alphanumeric)
}

/// Secrets that code names: each run of letters that can be a path is looked at.
fn in_code(scene: &Scene<'_>, word: &Word) -> Option<String> {
    let apart = |letter: char| letter.is_whitespace() || "\"'`(),;[]{}<>+|&".contains(letter);
    word.text.split(apart).filter(|piece| piece.len() > 4 && piece.contains(['/', '.'])).find_map(
        |piece| {
            let piece = Word { text: piece.to_owned(), shape: Shape::Literal };
            secret(scene, &piece)
        },
    )
}
