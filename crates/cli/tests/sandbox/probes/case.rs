//! One attempt, as it stands in a table.
//!
//! What becomes of an attempt is not known here: the tests beside this file make it in our own cages and check every
//! answer, and `cargo xtask escape` makes it in anybody's.

/// The rules by which something is refused, as they are reported.
pub(super) const OUTSIDE: &str = "outside-writable-roots";
pub(super) const PROTECTED: &str = "protected-name";
pub(super) const NETWORK: &str = "network-off";
pub(super) const SOCKET: &str = "socket-outside-writable-roots";
pub(super) const NEVER: &str = "never-allowed";

/// One attempt.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Python that follows the prelude.
    pub(super) does: &'static str,
    /// One word for each `t` in it, `|` between words that are equally good.
    pub(super) answers: &'static str,
    /// Operation, target and rule of everything that must be reported, in order. In targets `{out}`,
    /// `{ws}` and `{base}` stand for directories of the stage.
    pub(super) evidence: &'static [(&'static str, &'static str, &'static str)],
    /// Who finds the cage in the way; others are stopped by ordinary permissions before it.
    pub(super) refused_to: Who,
    pub(super) alone: Alone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Everybody,
    Root,
}

/// What Landlock and the filter do by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    Hold,
    /// They cannot hold this; docs/platforms.md says why, in the words that are given here.
    Let(&'static str),
}

/// Why some attempts succeed where namespaces are refused.
pub(super) const NAMES: Alone =
    Alone::Let("protected names in a writable root are as writable as the rest");

impl Case {
    pub(super) const fn new(name: &'static str, does: &'static str, answers: &'static str) -> Self {
        let (evidence, refused_to, alone) = (&[] as &[_], Who::Everybody, Alone::Hold);
        Self { name, does, answers, evidence, refused_to, alone }
    }

    pub(super) const fn seen(
        mut self,
        evidence: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        self.evidence = evidence;
        self
    }

    pub(super) const fn for_root(mut self) -> Self {
        self.refused_to = Who::Root;
        self
    }

    pub(super) const fn alone(mut self, alone: Alone) -> Self {
        self.alone = alone;
        self
    }
}

/// Runs what follows with descriptors of the world left open on the way in.
pub(crate) const LEFT_OPEN: &str =
    "exec 7>>\"$OUT/victim\" 8<\"$OUT\" 9<>\"$OUT/victim\"; exec \"$@\"";

/// The attempt itself is in the environment, so that nothing of it lies in the workspace. No byte code
/// is written: that would be an attempt of its own.
pub(crate) const SCRIPT: &str =
    "py=/usr/bin/python3; test -x $py || py=python3; exec $py -B -I -c \"$ATTEMPT\"";
