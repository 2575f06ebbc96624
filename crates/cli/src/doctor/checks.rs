//! The things that are looked at, one after the other.

use super::machine::Machine;
use super::{Check, CliDoctor, State};
use crate::config;
use crate::session::CliSession;
use crate::settings::{SettingsError, config_home, sources};
use crate::trust::Asked;
use jiff::{Timestamp, ToSpan as _};
use sandgate_agent::ModelError;
use sandgate_config::{CONFIG_FILE, TrustState};
use sandgate_protocol::{
    AskForApproval, Enforcement, SandboxPolicy, SessionSource, visible, visible_line,
};
use sandgate_runtime::audit::{audit_directory, verify_since};
use sandgate_runtime::rules::{self, ProjectRules};
use sandgate_runtime::{
    AskedCommand, BrokenPatches, CommandLine, Runtime, Session, SessionConfig, TurnDiffs,
    enforcement, new_call_id,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a model's service may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at everything.
pub(super) fn all(cli: &CliDoctor) -> Vec<Check> {
    // First of all, because it forks.
    let runtime = Runtime::start();
    let machine = Machine::look();
    let mut checks = system(&machine);
    checks.extend(sandbox(&machine, &enforcement()));
    match runtime {
        Ok(runtime) => checks.extend(with_runtime(Arc::new(runtime), cli)),
        Err(error) => {
            let why = visible_line(&error.to_string());
            checks.push(not_tried(why));
        }
    }
    checks.extend(settings(&cli.session));
    checks.extend(records());
    checks
}

/// What is said when no command can be started at all.
fn not_tried(why: impl Into<String>) -> Check {
    Check::new("Sandbox", "a trial", State::Failed, why)
        .means("no command can be started, so nothing works")
        .fix("ulimit -u; ulimit -n   (the processes and files that you may have; raise what is used up)")
}

fn system(machine: &Machine) -> Vec<Check> {
    let system = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
    let kernel = machine.kernel.as_deref().map(|kernel| format!(", kernel {kernel}"));
    let container = machine.container.map(|kind| format!(", in a container ({kind})"));
    let found = format!("{system}{}{}", kernel.unwrap_or_default(), container.unwrap_or_default());
    let mut checks = vec![Check::new("System", "machine", State::Ok, found)];
    let program = std::env::current_exe().map(|path| shown(&path));
    let version =
        format!("sandgate {}, {}", env!("CARGO_PKG_VERSION"), program.unwrap_or_default());
    checks.push(Check::new("System", "program", State::Ok, version));
    checks
}

/// What confines commands here.
fn sandbox(machine: &Machine, found: &Enforcement) -> Vec<Check> {
    const AREA: &str = "Sandbox";
    if !cfg!(target_os = "linux") {
        let check = match found.is_full() {
            true => Check::new(AREA, "confinement", State::Ok, "this system's own means are used"),
            false => Check::new(AREA, "confinement", State::Failed, found.missing.join("; ")).fix(
                "run agents on a Linux machine, or in a container or virtual machine with Linux",
            ),
        };
        return vec![check.means("docs/platforms.md says what was and was not tried here")];
    }
    let mut checks = Vec::new();
    checks.push(match found.namespaces {
        true => Check::new(
            AREA,
            "namespaces",
            State::Ok,
            "a command has its own view of files, processes and network",
        ),
        false => {
            let causes = machine.why_no_namespaces();
            let whys: Vec<&str> = causes.iter().map(|cause| cause.why.as_str()).collect();
            let state = if found.landlock_abi > 0 { State::Warning } else { State::Failed };
            let mut check = Check::new(AREA, "namespaces", state, whys.join("; ")).means(
                "protected names, file modes and what processes share are not held, and there is no \
                 loopback of its own; Landlock holds the rest (docs/platforms.md)",
            );
            check.fix = causes.into_iter().flat_map(|cause| cause.fix).collect();
            check
        }
    });
    checks.push(match found.landlock_abi {
        0 => {
            let cause = machine.why_no_landlock();
            let state = if found.namespaces { State::Warning } else { State::Failed };
            let means = match found.namespaces {
                true => "namespaces hold alone what both should hold",
                false => "with neither, nothing can be confined here",
            };
            let mut check = Check::new(AREA, "Landlock", state, cause.why).means(means);
            check.fix = cause.fix;
            check
        }
        version @ 1..6 => {
            let found = format!("version {version}");
            Check::new(AREA, "Landlock", State::Warning, found).means(
                "from version 6 on (Linux 6.12) it also keeps signals and sockets inside, which \
                 matters where namespaces are refused",
            )
            .fix("boot a kernel of 6.12 or newer, as Debian 13 and Ubuntu 25.04 have")
        }
        version => Check::new(AREA, "Landlock", State::Ok, format!("version {version}")),
    });
    checks.push(match found.seccomp {
        true => Check::new(AREA, "seccomp", State::Ok, "system calls are filtered"),
        false => Check::new(AREA, "seccomp", State::Failed, "this kernel has no filters")
            .means("nothing can be confined here")
            .fix("use a kernel that is built with CONFIG_SECCOMP_FILTER"),
    });
    checks.push(match found.supervisor {
        true => {
            Check::new(AREA, "supervisor", State::Ok, "what is refused is known, and not guessed")
        }
        false => Check::new(AREA, "supervisor", State::Warning, "nobody can be asked about calls")
            .means("unix sockets are closed, and what was blocked is guessed from the output")
            .fix("run it outside of the sandbox or tracer that is around it, or boot a kernel of 5.5 or newer"),
    });
    checks
}

/// What needs something to be run: a command in the cage, and the program that prints a key.
fn with_runtime(runtime: Arc<Runtime>, cli: &CliDoctor) -> Vec<Check> {
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asynchronous = match asynchronous {
        Ok(asynchronous) => asynchronous,
        Err(error) => {
            return vec![not_tried(error.to_string())];
        }
    };
    asynchronous.block_on(async {
        let mut checks = vec![trial(&runtime).await];
        checks.extend(shells(&runtime));
        checks.push(model(runtime, cli).await);
        checks
    })
}

/// Has a command try to write where it must not.
async fn trial(runtime: &Arc<Runtime>) -> Check {
    const AREA: &str = "Sandbox";
    const NAME: &str = "a trial";
    let home = sandgate_runtime::policy::home().unwrap_or_else(|| PathBuf::from("/"));
    let victim = home.join(format!(".sandgate-doctor-{}", std::process::id()));
    if !home.is_dir() {
        let found = format!("your home directory, {}, is not there", shown(&home));
        return Check::new(AREA, NAME, State::Failed, found)
            .means("whether a command that is confined can write to it was not tried")
            .fix("export HOME=/home/you   (a directory that is there and yours)");
    }
    let mut config = SessionConfig::new(home.clone());
    config.sandbox_policy = SandboxPolicy::ReadOnly;
    config.approval_policy = AskForApproval::Never;
    config.own_env = std::env::vars_os().collect();
    config.turn_diffs = TurnDiffs::Off;
    config.broken_patches = BrokenPatches::Left;
    let failed = |why: String| {
        Check::new(AREA, NAME, State::Failed, visible_line(&why))
            .means("commands cannot be confined here, so nothing runs unless you let it run freely")
            .fix("sandgate sandbox --status   (what is missing; the lines above say how to get it)")
    };
    let session = match Session::start(Arc::clone(runtime), config) {
        Ok(session) => session,
        Err(error) => return failed(error.to_string()),
    };
    let script = ": > \"$0\" && echo written";
    let argv = ["/bin/sh", "-c", script, &victim.to_string_lossy()].map(str::to_owned);
    let asked = AskedCommand::new(CommandLine::Argv(argv.to_vec()));
    let turn = session.begin_turn();
    let ran = session.requester().run_command(&new_call_id(), asked, &turn).await;
    let was_written = std::fs::remove_file(&victim).is_ok();
    match ran {
        _ if was_written => {
            failed("a command that may only read has written to your home directory".to_owned())
        }
        // Without a supervisor nobody knows what was refused; with one it must be this.
        Ok(ran) if enforcement().supervisor && ran.output.output.denials.is_empty() => {
            failed("a command ran, and nothing was refused to it".to_owned())
        }
        Ok(_) => Check::new(
            AREA,
            NAME,
            State::Ok,
            "a command ran confined, and could not write to your home directory",
        ),
        Err(error) => failed(error.to_string()),
    }
}

fn shells(runtime: &Runtime) -> Vec<Check> {
    const AREA: &str = "Shells";
    let own = shown(runtime.shell_path());
    let mut checks = vec![Check::new(AREA, "your own", State::Ok, own)];
    let others: Vec<&str> = ["bash", "zsh", "fish", "dash"]
        .into_iter()
        .filter(|name| {
            let here = |directory: &&str| Path::new(directory).join(name).is_file();
            ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(here)
        })
        .collect();
    checks.push(match others.is_empty() {
        true => Check::new(AREA, "found", State::Warning, "neither bash nor zsh, fish or dash")
            .means("scripts run by sh, and are judged as such")
            .fix("sudo apt install bash   (or dnf, pacman, apk)"),
        false => Check::new(AREA, "found", State::Ok, others.join(", ")),
    });
    checks
}

/// Whether the model of the settings can be asked.
async fn model(runtime: Arc<Runtime>, cli: &CliDoctor) -> Check {
    const AREA: &str = "Model";
    let session = match cli.session.prepare_for(Asked::Nobody) {
        Ok(session) => session,
        Err(error) => return Check::new(AREA, "provider", State::Failed, unset(error)).means(
            "without settings nobody knows which model is meant, and nothing that needs them runs",
        )
        .fix("sandgate config validate"),
    };
    let agent = match cli.model.prepare(&session, SessionSource::Exec) {
        Ok(agent) => agent,
        Err(error) => {
            return Check::new(AREA, "provider", State::Failed, visible(&error.into_message()))
                .means("sandgate exec, review and the terminal interface need it; run does not")
                .fix("sandgate config validate   (and docs/models.md for keys)");
        }
    };
    agent.keys.run_by(&runtime);
    let (name, model) = (visible_line(agent.provider.name()), visible_line(&agent.options.model));
    if agent.is_offline() {
        return Check::new(AREA, "provider", State::Warning, "none is set")
            .means(
                "sandgate exec proposes what your prompt holds; run, call and patch need no model",
            )
            .fix("sandgate config set model_provider anthropic   (and see docs/models.md)");
    }
    if cli.offline {
        let found = format!("{name}, model {model}; not asked whether it is there");
        return Check::new(AREA, "provider", State::Ok, found);
    }
    match tokio::time::timeout(PATIENCE, agent.provider.reach()).await {
        Ok(Ok(())) => {
            Check::new(AREA, "provider", State::Ok, format!("{name}, model {model}; it is there"))
        }
        Ok(Err(ModelError::Key(why))) => {
            Check::new(AREA, "provider", State::Failed, visible_line(&why))
                .means("nothing can be asked of the model without a key")
                .fix("set the variable that is named, or key_file or key_command (docs/models.md)")
        }
        Ok(Err(error)) => {
            Check::new(AREA, "provider", State::Failed, visible_line(&error.to_string()))
                .means("nothing could be asked of the model just now")
                .fix("sandgate config show --origin   (look at base_url, and at HTTPS_PROXY)")
        }
        Err(_) => {
            let found = format!("{name} did not answer within {} s", PATIENCE.as_secs());
            Check::new(AREA, "provider", State::Failed, found)
                .means("nothing could be asked of the model just now")
                .fix("look at the network, at HTTPS_PROXY and at base_url of the provider")
        }
    }
}

/// Why there are no settings, in short where the file is looked at in a line of its own.
fn unset(error: SettingsError) -> String {
    let file = config_home().map(|home| home.join(CONFIG_FILE));
    let is_told =
        file.is_some_and(|file| !is_missing(&file) && config::is_in_order(&file).is_err());
    match is_told {
        true => "not known: your settings are not in order".to_owned(),
        false => visible(&error.into_message()),
    }
}

/// Whether nothing is there. What cannot be looked at is not missing.
fn is_missing(file: &Path) -> bool {
    let found = std::fs::symlink_metadata(file);
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}

/// The person's settings, the project's, and the rules.
fn settings(session: &CliSession) -> Vec<Check> {
    const AREA: &str = "Settings";
    let Some(home) = config_home() else {
        let check = Check::new(AREA, "directory", State::Failed, "there is no home directory");
        let check = check.means("there is nowhere to keep settings, rules and the log");
        return vec![check.fix("export HOME=/home/you   (or CODEX_HOME)")];
    };
    let mut checks = Vec::new();
    let file = home.join(CONFIG_FILE);
    let name = shown(&file);
    checks.push(match is_missing(&file) {
        true => Check::new(AREA, "config.toml", State::Ok, format!("{name} is not there"))
            .means("everything is as it is without settings"),
        false => match config::is_in_order(&file) {
            Ok(0) => {
                let check = Check::new(AREA, "config.toml", State::Ok, format!("{name} is in order"));
                match sandgate_config::leads_out(&file, &home) {
                    None => check,
                    Some(target) => check.means(format!(
                        "it leads to {}: where commands may write to that, as in a workspace around it, \
                         only what makes things stricter counts",
                        shown(&target)
                    )),
                }
            }
            Ok(warnings) => {
                let found = format!("{name} is in order, with {warnings} to look at");
                Check::new(AREA, "config.toml", State::Warning, found)
                    .means("what is not known is not used")
                    .fix("sandgate config validate")
            }
            Err(why) => Check::new(AREA, "config.toml", State::Failed, visible(&why))
                .means("nothing that needs settings runs until that is mended")
                .fix("sandgate config validate"),
        },
    });
    let directory = session.cd.clone().unwrap_or_else(|| ".".into());
    let loaded = sandgate_config::load(&sources(&session.settings, &directory, Vec::new()));
    if let Ok(loaded) = loaded {
        let found = match &loaded.trust {
            TrustState::Trusted => (State::Ok, "this directory is trusted"),
            TrustState::ChangedSince { .. } => {
                (State::Warning, "this directory is trusted, but loosens what you have not seen")
            }
            TrustState::Untrusted => (State::Ok, "this directory is not trusted"),
            TrustState::Unknown => {
                (State::Warning, "you have not said whether you trust this directory")
            }
        };
        let check = Check::new(AREA, "trust", found.0, found.1);
        checks.push(match &loaded.trust {
            TrustState::Unknown => {
                check.means("until then commands only read here").fix("sandgate trust")
            }
            TrustState::ChangedSince { .. } => {
                check.means("until you have, that does not count").fix("sandgate trust")
            }
            TrustState::Trusted | TrustState::Untrusted => check,
        });
    }
    let loaded = rules::load(&home, ProjectRules::None);
    checks.push(match loaded.broken.first() {
        None => {
            let found = format!("{} of your own", loaded.rules.iter().count());
            Check::new(AREA, "rules", State::Ok, found)
        }
        Some(error) => Check::new(AREA, "rules", State::Failed, visible(&error.to_string()))
            .means("rules that forbid may be missing because of it")
            .fix("sandgate policy list"),
    });
    checks
}

/// The record of what happened.
fn records() -> Vec<Check> {
    const AREA: &str = "Record";
    let Some(home) = config_home() else { return Vec::new() };
    let directory = audit_directory(&home);
    if !directory.exists() {
        return vec![match why_not_made(&directory) {
            None => Check::new(AREA, "audit", State::Ok, "nothing was recorded yet"),
            Some(why) => Check::new(AREA, "audit", State::Failed, why)
                .means("with on_failure = \"stop\", which is the default, no command runs")
                .fix("export CODEX_HOME=DIRECTORY   (one that you may write to)"),
        }];
    }
    let week = Timestamp::now().checked_sub(168.hours()).unwrap_or(Timestamp::MIN);
    vec![match verify_since(&directory, week) {
        Ok(verified) if verified.is_intact() => {
            let found = format!("the last week is as it was written, {} lines", verified.lines);
            Check::new(AREA, "audit", State::Ok, found)
        }
        Ok(verified) => {
            let number = verified.findings.len() as u64 + verified.more_findings;
            let found = format!("{number} things are wrong with the last week of the log");
            Check::new(AREA, "audit", State::Failed, found)
                .means("a line was changed, lost or cut off")
                .fix("sandgate audit verify")
        }
        Err(error) => Check::new(AREA, "audit", State::Failed, visible_line(&error.to_string()))
            .means("with on_failure = \"stop\", which is the default, no command runs")
            .fix(format!("chmod 700 {} && sandgate audit verify", shown(&directory))),
    }]
}

/// Why a directory that is not there cannot be made, as far as that shows without making it.
fn why_not_made(directory: &Path) -> Option<String> {
    let nearest = directory.ancestors().find(|above| above.exists())?;
    let why = if !nearest.is_dir() {
        format!("{} is no directory", shown(nearest))
    } else if !is_ours(nearest) {
        format!("you may not write to {}", shown(nearest))
    } else {
        return None;
    };
    Some(format!("{} cannot be made: {why}", shown(directory)))
}

#[cfg(unix)]
fn is_ours(directory: &Path) -> bool {
    use rustix::fs::Access;
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_ours(_directory: &Path) -> bool {
    true
}
