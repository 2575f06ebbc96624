//! Reads what there is to read for a directory, and resolves it.

use crate::check::Owner;
use crate::config::Config;
use crate::file::{FileError, read_own};
use crate::layer::{Anchor, Layer, OverrideError};
use crate::loosen::Loosening;
use crate::problem::Problem;
use crate::reach::{Reach, leads_out};
use crate::resolve::{Layers, ResolveError, Trust, resolve, strict_part, would_loosen};
use crate::settings::{ProjectSettings, TrustLevel};
use crate::trust::{Project, ProjectFile, ProjectFiles, TrustState, find_project, said_of};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the file in the directory of the person's settings.
pub const CONFIG_FILE: &str = "config.toml";

/// Where settings come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The directory of the person's settings: `CODEX_HOME`, or `~/.codex`.
    pub config_home: Option<PathBuf>,
    /// The person's home directory.
    pub home: Option<PathBuf>,
    /// Where the work is done.
    pub directory: PathBuf,
    /// `--profile`.
    pub profile: Option<String>,
    /// Each `-c`.
    pub overrides: Vec<String>,
    /// What options stand for.
    pub flags: Vec<Layer>,
}

/// The settings for a directory, and what there is to say about them.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The project that the directory is in.
    pub project: Project,
    /// Whether it is trusted.
    pub trust: TrustState,
    /// The project's rules, if it is trusted.
    pub rules: Vec<ProjectRulesFile>,
    /// What the person should be told, each a text of one or more lines.
    pub notes: Vec<String>,
    /// What was read, for a preview.
    layers: Layers,
    /// Where its commands may write.
    reach: Reach,
    /// Whether they could have written the person's own file.
    held_back: bool,
}

/// A rules file of a trusted project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRulesFile {
    /// The file.
    pub file: ProjectFile,
    /// Whether the person has seen it as it is. If not, what it allows does not count.
    pub seen: bool,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The person's file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something in the person's file is wrong.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
    Broken(Vec<Problem>),
    /// Something on the command line is wrong.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The layers do not go together.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The directory is not there.
    #[error("cannot use {}: {source}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The settings for a directory.
///
/// # Errors
/// When the person's own file or command line is wrong. Whatever is wrong with a project's file is a
/// note, and nothing of that file is used.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let own = OwnLayers::read(sources)?;
    // What is not there has no project; whoever is to work there says that it is not.
    let project = project_of(sources).unwrap_or_else(|_| {
        let root = sources.directory.clone();
        Project { trust_root: root.clone(), root }
    });
    let said = own.layers.said_of(&project);
    let mut notes: Vec<String> = own.warnings.iter().map(Problem::to_string).collect();
    let held_back = own.held_back.is_some();
    notes.extend(own.held_back);
    let mut layers = own.layers;
    let reach = |config: &Config| Reach::new(config, sources.config_home.as_deref(), &project.root);
    if !said.is_trusted() {
        let config = resolve(&layers, Trust::Untrusted)?;
        notes.extend(config.notes().iter().cloned());
        let trust = match said.trust_level {
            Some(TrustLevel::Untrusted) => TrustState::Untrusted,
            // An answer would be written to where it does not count.
            _ if held_back => TrustState::Untrusted,
            _ => TrustState::Unknown,
        };
        let reach = reach(&config);
        return Ok(Loaded {
            config,
            project,
            trust,
            rules: Vec::new(),
            notes,
            layers,
            reach,
            held_back,
        });
    }
    let files = ProjectFiles::read(&project.root, sources.config_home.as_deref());
    notes.extend(files.broken.iter().map(|error| format!("{error}; it is not used")));
    if let Some(file) = &files.config {
        match project_layer(file, &project, sources.home.as_deref()) {
            Ok((layer, warnings)) => {
                notes.extend(warnings.iter().map(Problem::to_string));
                layers.project = Some(layer);
            }
            Err(problems) => {
                notes.extend(problems.iter().map(Problem::to_string));
                let file = file.path.display();
                notes.push(format!("{file} is not used until that is corrected"));
            }
        }
    }
    let seen = files.config.as_ref().is_some_and(|file| {
        layers.project.is_some() && said.has_seen_to_loosen(file, &would_loosen(&layers))
    });
    let config = resolve(&layers, if seen { Trust::TrustedAndSeen } else { Trust::Trusted })?;
    notes.extend(config.notes().iter().cloned());
    let trust = match config.withheld() {
        [] => TrustState::Trusted,
        withheld => TrustState::ChangedSince { loosenings: withheld.to_vec() },
    };
    let rules = files.rules.into_iter().map(|file| {
        let seen = said.has_seen(&file);
        ProjectRulesFile { file, seen }
    });
    let (rules, reach) = (rules.collect(), reach(&config));
    Ok(Loaded { config, project, trust, rules, notes, layers, reach, held_back })
}

impl Loaded {
    /// Whether commands here could have written a rules file that the settings name, or the name of it, so that
    /// what it allows need not be the person's.
    pub fn is_in_reach(&self, rules: &Path) -> bool {
        self.held_back || self.reach.holds(rules)
    }

    /// What trusting the project would mean. The project's files are read anew, the person's are not.
    ///
    /// # Errors
    /// When the layers do not go together, or the directory is not there.
    pub fn preview(&self, sources: &Sources) -> Result<Preview, ConfigError> {
        let layers = Layers { project: None, ..self.layers.clone() };
        preview_of(layers, project_of(sources)?, sources)
    }
}

/// What trusting the project of a directory would mean.
#[derive(Debug)]
pub struct Preview {
    /// The project.
    pub project: Project,
    /// What the person has said about it.
    pub said: ProjectSettings,
    /// Its files. Trusting it means having seen these.
    pub files: ProjectFiles,
    /// What its settings would loosen.
    pub loosenings: Vec<Loosening>,
    /// What is wrong with its settings; then they would not count.
    pub problems: Vec<Problem>,
    /// Whether anything would be otherwise for who trusts it and has seen all of it.
    pub matters: bool,
}

/// What trusting the project of a directory would mean. Its files are read as text, and nothing in
/// them takes effect.
///
/// # Errors
/// When the person's own file or command line is wrong, or the directory is not there.
pub fn preview(sources: &Sources) -> Result<Preview, ConfigError> {
    let layers = OwnLayers::read(sources)?.layers;
    preview_of(layers, project_of(sources)?, sources)
}

/// `layers` are the person's own.
fn preview_of(
    mut layers: Layers,
    project: Project,
    sources: &Sources,
) -> Result<Preview, ConfigError> {
    let said = layers.said_of(&project);
    let files = ProjectFiles::read(&project.root, sources.config_home.as_deref());
    let now = match said.is_trusted() {
        true => resolve(&layers, Trust::Trusted)?,
        false => resolve(&layers, Trust::Untrusted)?,
    };
    let mut problems = Vec::new();
    if let Some(file) = &files.config {
        match project_layer(file, &project, sources.home.as_deref()) {
            Ok((layer, _)) => layers.project = Some(layer),
            Err(found) => problems = found,
        }
    }
    let loosenings = would_loosen(&layers);
    let then = resolve(&layers, Trust::TrustedAndSeen)?;
    let matters = now.settings() != then.settings() || !files.rules.is_empty();
    Ok(Preview { project, said, files, loosenings, problems, matters })
}

impl Preview {
    /// What of the settings the person has not been told of, if there is any: all that they loosen.
    pub fn untold(&self) -> &[Loosening] {
        match &self.files.config {
            Some(file) if !self.said.has_seen_to_loosen(file, &self.loosenings) => &self.loosenings,
            _ => &[],
        }
    }

    /// What is noted when the person has seen all of this.
    pub fn noted(&self) -> Vec<String> {
        self.files.noted(&self.loosenings)
    }
}

/// What is the person's own.
struct OwnLayers {
    layers: Layers,
    warnings: Vec<Problem>,
    /// Why only what is strict of the file counts, if that is so.
    held_back: Option<String>,
}

impl OwnLayers {
    fn read(sources: &Sources) -> Result<Self, ConfigError> {
        let home = sources.home.as_deref();
        let mut layers = Layers { profile: sources.profile.clone(), ..Layers::default() };
        let mut warnings = Vec::new();
        if let Some(config_home) = &sources.config_home {
            let file = config_home.join(CONFIG_FILE);
            if let Some(text) = read_own(&file)? {
                let anchor = Anchor { directory: &absolute(config_home), home };
                let (layer, found) = Layer::read(&text, &file, Owner::Person, anchor)
                    .map_err(ConfigError::Broken)?;
                warnings = found;
                layers.user = Some(layer);
            }
        }
        let here = absolute(Path::new("."));
        for given in &sources.overrides {
            let anchor = Anchor { directory: &here, home };
            layers.overrides.push(Layer::of_override(given, anchor)?);
        }
        layers.flags.clone_from(&sources.flags);
        let held_back = hold_back(&mut layers, sources)?;
        Ok(Self { layers, warnings, held_back })
    }
}

/// Takes from the person's file what would loosen anything, if a link leads to it where commands here may write:
/// one of them could have written it. Says so.
fn hold_back(layers: &mut Layers, sources: &Sources) -> Result<Option<String>, ResolveError> {
    let (Some(user), Some(home)) = (&layers.user, &sources.config_home) else { return Ok(None) };
    let file = home.join(CONFIG_FILE);
    let Some(target) = leads_out(&file, home) else { return Ok(None) };
    let project =
        project_of(sources).map_or_else(|_| sources.directory.clone(), |found| found.root);
    let config = resolve(layers, Trust::Untrusted)?;
    if !Reach::new(&config, Some(home), &project).holds(&target) {
        return Ok(None);
    }
    layers.user = Some(strict_part(user));
    Ok(Some(format!(
        "{} leads to {}, where commands may write, so that only what it makes stricter counts here; keep the file \
         itself in {}, or have all of that directory be a link",
        file.display(),
        target.display(),
        home.display()
    )))
}

impl Layers {
    /// What the person has said about a project.
    fn said_of(&self, project: &Project) -> ProjectSettings {
        let own = self.user.iter().chain(&self.overrides);
        said_of(&project.trust_root, own.map(Layer::table))
    }
}

fn project_of(sources: &Sources) -> Result<Project, ConfigError> {
    find_project(&sources.directory)
        .map_err(|source| ConfigError::Directory { path: sources.directory.clone(), source })
}

fn project_layer(
    file: &ProjectFile,
    project: &Project,
    home: Option<&Path>,
) -> Result<(Layer, Vec<Problem>), Vec<Problem>> {
    let anchor = Anchor { directory: &project.root, home };
    Layer::read(&file.text, &file.path, Owner::Project, anchor)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
