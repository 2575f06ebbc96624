//! What others see or depend on: published packages, clouds, containers, databases, and ways for
//! others to come in.

use super::forms::{Row, row};
use super::place::Base;
use super::scene::Scene;
use crate::command::{RedirectionKind, Word};
use crate::wrapper::code::fed;

#[rustfmt::skip]
pub(super) const FORMS: &[Row] = &[
    row("ansible", &["-m", "shell|command|raw"], "runs commands on other machines"),
    row("aws", &["s3", "rm|rb"], "deletes what is stored in a cloud"),
    row("aws", &["terminate-instances|delete-bucket|delete-stack|delete-db-instance|delete-table|delete-user|delete-cluster|delete-function|delete-object|delete-objects|delete-secret|deregister-image|delete-volume|delete-snapshot|delete-vpc|delete-repository|delete-hosted-zone|schedule-key-deletion|delete-role"], "deletes what runs in a cloud"),
    row("aws", &["create-access-key|put-user-policy|attach-user-policy|put-bucket-policy|put-bucket-acl"], "changes who may use a cloud"),
    row("aws", &["configure", "get|export-credentials"], "prints the keys of a cloud account"),
    row("aws", &["get-secret-value|get-session-token|get-login-password|get-parameter|get-parameters"], "prints the keys of a cloud account"),
    row("az", &["delete|purge|deallocate"], "deletes what runs in a cloud"),
    row("az", &["get-access-token"], "prints the keys of a cloud account"),
    row("cargo", &["!-n|--dry-run", "^publish|yank|owner"], "publishes a package for everybody"),
    row("cdk", &["^destroy"], "deletes what runs in a cloud"),
    row("docker", &["^system|volume|image|container|network|builder", "prune"], "deletes containers' data that may be wanted"),
    row("docker", &["^volume", "rm|remove"], "deletes containers' data that may be wanted"),
    row("docker", &["^push"], "publishes an image"),
    row("docker", &["^compose", "down", "-v|--volumes|--rmi"], "deletes containers' data that may be wanted"),
    row("docker-compose", &["^down", "-v|--volumes|--rmi"], "deletes containers' data that may be wanted"),
    row("doctl", &["delete|destroy"], "deletes what runs in a cloud"),
    row("dropdb", &[], "deletes a database"),
    row("dropuser", &[], "deletes a user of a database"),
    row("eksctl", &["^delete"], "deletes what runs in a cloud"),
    row("firebase", &["delete|firestore:delete|projects:delete"], "deletes what runs in a cloud"),
    row("fly", &["destroy"], "deletes what runs in a cloud"),
    row("flyctl", &["destroy"], "deletes what runs in a cloud"),
    row("gcloud", &["delete|destroy|remove-iam-policy-binding|add-iam-policy-binding"], "deletes what runs in a cloud or changes who may use it"),
    row("gcloud", &["auth", "print-access-token|print-identity-token|application-default"], "prints the keys of a cloud account"),
    row("gcloud", &["secrets", "access"], "prints the keys of a cloud account"),
    row("gem", &["^push|yank"], "publishes a package for everybody"),
    row("gh", &["^auth", "token"], "prints the key of a GitHub account"),
    row("gh", &["^auth", "status", "-t|--show-token"], "prints the key of a GitHub account"),
    row("gh", &["^repo", "delete|archive|edit|rename"], "changes a repository that others use"),
    row("gh", &["^release|secret|ssh-key|gpg-key|variable|run|cache|label|issue|gist", "delete|remove|delete-asset"], "deletes what others use"),
    row("gh", &["^release", "create|upload"], "publishes a release"),
    row("gh", &["^secret|ssh-key|gpg-key", "set|add"], "changes who may use a GitHub account"),
    row("gh", &["^pr", "merge"], "merges into what others use"),
    row("gh", &["^api", "-X|--method", "DELETE|PUT|PATCH"], "changes what others use"),
    row("gh", &["^api", "-XDELETE|--method=DELETE"], "deletes what others use"),
    row("gpg", &["--export-secret-keys|--export-secret-subkeys|--delete-secret-keys|--delete-keys|--delete-secret-and-public-key"], "gives away or deletes private keys"),
    row("gpg2", &["--export-secret-keys|--export-secret-subkeys|--delete-secret-keys"], "gives away or deletes private keys"),
    row("gsutil", &["rm|rb"], "deletes what is stored in a cloud"),
    row("helm", &["^delete|uninstall|rollback"], "deletes what runs in a cluster"),
    row("heroku", &["apps:destroy|destroy|pg:reset|addons:destroy"], "deletes what runs in a cloud"),
    row("ibmcloud", &["delete|rm"], "deletes what runs in a cloud"),
    row("kubectl", &["delete|drain|cordon|replace|taint"], "deletes what runs in a cluster"),
    row("kubectl", &["get|describe", "secret|secrets"], "prints the secrets of a cluster"),
    row("kubectl", &["config", "view", "--raw"], "prints the keys of a cluster"),
    row("kubectl", &["scale", "--replicas=0"], "stops what runs in a cluster"),
    row("lxc", &["^delete"], "deletes a machine"),
    row("mvn", &["deploy|release:perform"], "publishes a package for everybody"),
    row("mysqladmin", &["drop|shutdown"], "deletes a database"),
    row("ngrok", &[], "lets others come in from the internet"),
    row("npm", &["!--dry-run", "^publish|unpublish|deprecate|owner|access|token|dist-tag"], "publishes a package for everybody"),
    row("nuget", &["^push|delete"], "publishes a package for everybody"),
    row("oc", &["delete"], "deletes what runs in a cluster"),
    row("op", &["^read|item|signin"], "prints what a password manager keeps"),
    row("pass", &["^show|rm|edit|generate"], "prints or changes what a password manager keeps"),
    row("php", &["artisan", "migrate:fresh|migrate:reset|db:wipe"], "deletes a database"),
    row("pnpm", &["!--dry-run", "^publish|unpublish"], "publishes a package for everybody"),
    row("podman", &["^system|volume|image", "prune|reset"], "deletes containers' data that may be wanted"),
    row("poetry", &["!--dry-run", "^publish"], "publishes a package for everybody"),
    row("pulumi", &["^destroy"], "deletes what runs in a cloud"),
    row("pulumi", &["^up", "-y|--yes"], "changes what runs in a cloud, without a question"),
    row("rails", &["db:drop|db:reset|db:purge"], "deletes a database"),
    row("rake", &["db:drop|db:reset|db:purge"], "deletes a database"),
    row("rclone", &["^delete|purge|sync|cleanup"], "deletes what is stored elsewhere"),
    row("redis-cli", &["FLUSHALL|FLUSHDB|flushall|flushdb|SHUTDOWN|shutdown|CONFIG"], "empties a database"),
    row("s3cmd", &["^del|rb|rm"], "deletes what is stored in a cloud"),
    row("secret-tool", &["^lookup|search|clear"], "reads the person's keyring"),
    row("security", &["^find-generic-password|find-internet-password|dump-keychain|export|delete-generic-password|delete-keychain|unlock-keychain|add-trusted-cert|find-identity"], "reads or changes the person's keychain"),
    row("serverless", &["^remove"], "deletes what runs in a cloud"),
    row("ssh-copy-id", &[], "lets this machine's keys into another"),
    row("supabase", &["^db", "reset"], "deletes a database"),
    row("terraform", &["apply", "-auto-approve|--auto-approve"], "changes what runs in a cloud, without a question"),
    row("terraform", &["destroy|-destroy"], "deletes what runs in a cloud"),
    row("terraform", &["state", "rm"], "forgets what runs in a cloud"),
    row("tofu", &["apply", "-auto-approve|--auto-approve"], "changes what runs in a cloud, without a question"),
    row("tofu", &["destroy"], "deletes what runs in a cloud"),
    row("twine", &["^upload"], "publishes a package for everybody"),
    row("uv", &["!--dry-run", "^publish"], "publishes a package for everybody"),
    row("vagrant", &["^destroy"], "deletes a machine"),
    row("vault", &["read|delete|kv"], "reads or changes the keys in a vault"),
    row("vercel", &["rm|remove|--prod"], "changes a site that others use"),
    row("virsh", &["^undefine|destroy|vol-delete|pool-delete|pool-destroy"], "deletes a machine"),
    row("yarn", &["^publish"], "publishes a package for everybody"),
    row("yarn", &["^npm", "publish"], "publishes a package for everybody"),
];

/// Statements that lose what a database holds.
const LOSING: &[&str] = &[
    "drop database",
    "drop schema",
    "drop table",
    "drop user",
    "drop role",
    "truncate ",
    "drop owned",
    "dropdatabase(",
    ".drop(",
    "deletemany({})",
];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    match scene.name {
        "docker" | "podman" => container(scene),
        "psql" | "mysql" | "mariadb" | "sqlite3" | "mongo" | "mongosh" => statement(scene),
        _ => way_in(scene),
    }
}

/// Code that hands a shell to whoever is at the other end of a connection.
pub(super) fn code(scene: &Scene<'_>) -> Option<String> {
    const FORKING: &[&str] =
        &["forkwhile", "while(1){fork", "while1{fork", "whileTrue:os.fork", "loop{fork"];
    let forks = |word: &Word| {
        let packed: String = word.text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let packed = packed.replace("()", "");
        FORKING.iter().any(|mark| packed.contains(mark))
    };
    if scene.rest().iter().chain(fed(scene.command)).any(forks) {
        return Some(format!(
            "starts itself over and over until the machine stops answering: {}",
            scene.line()
        ));
    }
    const CONNECTING: &[&str] = &["socket", "fsockopen", "TCPSocket", "net.connect", "/inet/tcp"];
    #[rustfmt::skip]
    const SHELL: &[&str] = &[
        "/bin/sh", "/bin/bash", "/bin/zsh", "cmd.exe", "pty.spawn", "\"sh\"", "'sh'", "\"bash\"", "'bash'",
    ];
    let has = |text: &str, marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let hands = |word: &Word| has(&word.text, SHELL) && has(&word.text, CONNECTING);
    scene
        .rest()
        .iter()
        .chain(fed(scene.command))
        .any(hands)
        .then(|| format!("lets whoever is at the other end run commands here: {}", scene.line()))
}

/// A listener or caller that hands a shell to the other end.
fn way_in(scene: &Scene<'_>) -> Option<String> {
    let runs = match scene.name {
        "socat" => scene.rest().iter().any(|word| {
            let text = word.text.to_ascii_lowercase();
            text.starts_with("exec:") || text.starts_with("system:")
        }),
        _ => scene.rest().iter().any(|word| {
            let text = word.text.as_str();
            let grouped = text.starts_with('-') && !text.starts_with("--");
            matches!(text, "--exec" | "--sh-exec" | "--lua-exec")
                || (grouped && text[1..].contains(['e', 'c']))
        }),
    };
    runs.then(|| format!("lets whoever is at the other end run commands here: {}", scene.line()))
}

/// A container that is none: it has the machine's rights or files.
fn container(scene: &Scene<'_>) -> Option<String> {
    if !scene.rest().iter().any(|word| matches!(word.text.as_str(), "run" | "create" | "exec")) {
        return None;
    }
    let mut words = scene.rest().iter().peekable();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let next = words.peek().map(|word| word.text.as_str());
        let attached =
            text.strip_prefix("-v").filter(|value| value.starts_with(['/', '~', '$', '.']));
        let (name, value) = match attached {
            Some(value) => ("-v", Some(value)),
            None => text.split_once('=').map_or((text, next), |(n, v)| (n, Some(v))),
        };
        let value = value.unwrap_or_default();
        let open = match name {
            "--privileged" => true,
            "--pid" | "--net" | "--network" | "--ipc" | "--uts" | "--userns" => {
                value == "host" && !matches!(name, "--net" | "--network")
            }
            "--cap-add" => matches!(
                value.to_ascii_uppercase().as_str(),
                "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE"
            ),
            "--device" => value.starts_with("/dev/"),
            "-v" | "--volume" | "--mount" => {
                let source = mounted(value);
                let place = scene.place(&Word { text: source.to_owned(), shape: word.shape });
                let home = place.in_home(scene.around).is_some_and(<[String]>::is_empty);
                let path = source.starts_with(['/', '~', '$', '.']);
                let socket = source.ends_with("docker.sock") || source.ends_with("containerd.sock");
                socket
                    || (path
                        && place.base == Base::Root
                        && (place.is_root_directory() || home || place.in_system(scene.around)))
            }
            _ => false,
        };
        if open {
            return Some(format!(
                "gives a container what belongs to the machine ({name} {value}): {}",
                scene.line()
            ));
        }
    }
    None
}

fn mounted(value: &str) -> &str {
    let named = value
        .split(',')
        .find_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")));
    named.unwrap_or_else(|| value.split(':').next().unwrap_or_default())
}

fn statement(scene: &Scene<'_>) -> Option<String> {
    let fed = scene.command.redirections.iter().filter(|redirection| {
        matches!(redirection.kind, RedirectionKind::HereDocument | RedirectionKind::HereString)
    });
    let texts = scene.rest().iter().chain(fed.map(|redirection| &redirection.target));
    for word in texts {
        let text = word.text.to_ascii_lowercase();
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = plain.contains("delete from") && !plain.contains("where");
        if all || LOSING.iter().any(|losing| plain.contains(losing)) {
            return Some(format!("deletes what a database holds: {}", scene.line()));
        }
    }
    None
}
