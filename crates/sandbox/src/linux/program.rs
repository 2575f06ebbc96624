//! Assembles a filter for system calls from a table.
//!
//! Each command installs one, and what that costs grows with its length: the kernel checks it,
//! translates it twice and runs it once for each number there is, to learn which calls it allows
//! whatever their arguments. `seccompiler` compares with one number after the other and spends several
//! steps on each bit of a mask; it has one answer for a filter, so that a supervised command needed
//! two. They had 903 steps, and it took 243 microseconds to install them. The same table has 125 here
//! and takes 62, where a filter of one step takes 16. The tests keep `seccompiler` as the judge of
//! what a table means.
//!
//! A program looks at the architecture, finds the number by halves, and looks at an argument only for
//! a call whose answer depends on it. The last is what lets the kernel allow most calls without
//! running the program at all.

use super::CageError;
use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_JSET};
use libc::{BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use std::collections::BTreeMap;

/// The last of the system calls that the tables were written with a look at. What a later kernel has beyond
/// it could go around them, so that to a command there is none. The second numbering that x86-64 kernels
/// may have is far beyond it too. The number is the same on every architecture.
const NEWEST: u32 = 469;

/// Where a filter finds the number, the architecture and the first argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// So many numbers are compared with one after the other. Fewer make a longer program, more a slower
/// one.
const ROW: usize = 4;

/// The steps of a filter.
pub(super) type Program = Vec<sock_filter>;

/// For each call what becomes of it: as the first case says that holds, and it is allowed when none
/// does.
pub(super) type Table = BTreeMap<libc::c_long, Vec<Case>>;

/// What becomes of a call when all conditions hold. Without a condition it always does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) when: Vec<Condition>,
    pub(super) answer: Answer,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This error.
    Error(i32),
    /// What the supervisor says.
    Ask,
}

/// Something about an argument, which is named by its index. All but pointers are looked at as the
/// kernel takes them: as 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    /// At least one of these bits is set.
    AnyBit(u32, u32),
    /// What is left of it under the mask is one of these.
    OneOf(u32, Mask, Vec<u32>),
    /// What is left of it under the mask is none of these.
    NoneOf(u32, Mask, Vec<u32>),
    /// A pointer to something.
    NotNull(u32),
}

/// The bits of an argument that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mask {
    /// Every one.
    All,
    /// These.
    Only(u32),
}

/// Makes the program of a table.
pub(super) fn assemble(table: &Table) -> Result<Program, CageError> {
    let mut program = Backwards::default();
    let kill = program.answer(libc::SECCOMP_RET_KILL_PROCESS)?;
    let unknown = program.answer(Answer::Error(libc::ENOSYS).value())?;
    let allow = program.answer(libc::SECCOMP_RET_ALLOW)?;
    let mut runs: Vec<Run> = Vec::new();
    for (number, cases) in table {
        let number = u32::try_from(*number).map_err(CageError::filter)?;
        let place = program.cases(cases)?;
        match runs.last_mut() {
            Some(run) if run.place == place && run.last + 1 == number => run.last = number,
            _ => runs.push(Run { first: number, last: number, place }),
        }
    }
    let known = program.search(&runs, allow)?;
    let start = program.branch(BPF_JGT, NEWEST, unknown, known)?;
    let number = program.load(NUMBER, start)?;
    let native = program.branch(BPF_JEQ, architecture()?, number, kill)?;
    program.load(ARCHITECTURE, native)?;
    program.steps.reverse();
    Ok(program.steps)
}

/// How the kernel calls the architecture that this program is made for. The lower half of an argument
/// comes first on all of them.
fn architecture() -> Result<u32, CageError> {
    match std::env::consts::ARCH {
        "x86_64" => Ok(0xC000_003E),
        "aarch64" => Ok(0xC000_00B7),
        "riscv64" => Ok(0xC000_00F3),
        other => Err(CageError::filter(format!("{other} has other system calls"))),
    }
}

impl Answer {
    fn value(self) -> u32 {
        match self {
            Self::Error(errno) => libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(),
            Self::Ask => libc::SECCOMP_RET_USER_NOTIF,
        }
    }
}

/// Calls with numbers in a row that become the same.
struct Run {
    first: u32,
    last: u32,
    place: Place,
}

/// A step, by how many there are from it to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(usize);

/// A program that is written from its end. All jumps go forward, so that whatever a step jumps to is
/// there before it. No step but a load goes on to the one behind it by itself: anything may be put
/// between two others.
#[derive(Default)]
struct Backwards {
    steps: Vec<sock_filter>,
    answers: BTreeMap<u32, Place>,
    /// For places that are too far from the start for a conditional jump, the nearest jump to them.
    bridges: BTreeMap<Place, Place>,
}

impl Backwards {
    /// Looks for the number in runs.
    fn search(&mut self, runs: &[Run], allow: Place) -> Result<Place, CageError> {
        if runs.len() <= ROW {
            let mut otherwise = allow;
            for run in runs.iter().rev() {
                otherwise = self.compare(run, otherwise)?;
            }
            return Ok(otherwise);
        }
        let (low, high) = runs.split_at(runs.len() / 2);
        let Some(Run { first, .. }) = high.first() else { return Ok(allow) };
        let above = self.search(high, allow)?;
        let below = self.search(low, allow)?;
        self.branch(BPF_JGE, *first, above, below)
    }

    fn compare(&mut self, run: &Run, otherwise: Place) -> Result<Place, CageError> {
        if run.first == run.last {
            return self.branch(BPF_JEQ, run.first, run.place, otherwise);
        }
        let within = self.branch(BPF_JGT, run.last, otherwise, run.place)?;
        self.branch(BPF_JGE, run.first, within, otherwise)
    }

    /// Answers as the first case that holds.
    fn cases(&mut self, cases: &[Case]) -> Result<Place, CageError> {
        let allow = self.answer(libc::SECCOMP_RET_ALLOW)?;
        cases.iter().rev().try_fold(allow, |otherwise, case| {
            let answer = self.answer(case.answer.value())?;
            let mut conditions = case.when.iter().rev();
            conditions.try_fold(answer, |yes, condition| self.condition(condition, yes, otherwise))
        })
    }

    fn condition(
        &mut self,
        condition: &Condition,
        yes: Place,
        no: Place,
    ) -> Result<Place, CageError> {
        match condition {
            Condition::AnyBit(argument, bits) => {
                let test = self.branch(BPF_JSET, *bits, yes, no)?;
                self.load(lower_half(*argument), test)
            }
            Condition::OneOf(argument, mask, values) => {
                self.one_of(*argument, *mask, values, yes, no)
            }
            Condition::NoneOf(argument, mask, values) => {
                self.one_of(*argument, *mask, values, no, yes)
            }
            Condition::NotNull(argument) => {
                let test = self.branch(BPF_JEQ, 0, no, yes)?;
                let lower = self.load(lower_half(*argument), test)?;
                let test = self.branch(BPF_JEQ, 0, lower, yes)?;
                self.load(lower_half(*argument) + 4, test)
            }
        }
    }

    fn one_of(
        &mut self,
        argument: u32,
        mask: Mask,
        values: &[u32],
        yes: Place,
        no: Place,
    ) -> Result<Place, CageError> {
        let mut test = no;
        for value in values.iter().rev() {
            test = self.branch(BPF_JEQ, *value, yes, test)?;
        }
        if let Mask::Only(bits) = mask {
            test = self.follow(BPF_ALU | BPF_AND, bits, test)?;
        }
        self.load(lower_half(argument), test)
    }

    fn load(&mut self, offset: u32, next: Place) -> Result<Place, CageError> {
        self.follow(BPF_LD | BPF_W | BPF_ABS, offset, next)
    }

    /// A step that goes on to the one behind it.
    fn follow(&mut self, operation: u32, k: u32, next: Place) -> Result<Place, CageError> {
        if self.distance(next) != 0 {
            self.jump(next)?;
        }
        self.push(operation, 0, 0, k)
    }

    /// Goes on at one of two places.
    fn branch(&mut self, test: u32, k: u32, yes: Place, no: Place) -> Result<Place, CageError> {
        let (yes, no) = (self.reach(yes)?, self.reach(no)?);
        let [yes, no] = [yes, no].map(|place| u8::try_from(self.distance(place)));
        let (yes, no) = (yes.map_err(CageError::filter)?, no.map_err(CageError::filter)?);
        self.push(BPF_JMP | test, yes, no, k)
    }

    /// A place that leads to this one and is near enough for the next step, even if a jump is put
    /// between them.
    fn reach(&mut self, place: Place) -> Result<Place, CageError> {
        let nearest = self.bridges.get(&place).copied().unwrap_or(place);
        if self.distance(nearest) < usize::from(u8::MAX) {
            return Ok(nearest);
        }
        let bridge = self.jump(place)?;
        self.bridges.insert(place, bridge);
        Ok(bridge)
    }

    fn jump(&mut self, place: Place) -> Result<Place, CageError> {
        let distance = u32::try_from(self.distance(place)).map_err(CageError::filter)?;
        self.push(BPF_JMP | BPF_JA, 0, 0, distance)
    }

    /// The end of the program that answers so. There is one for each answer.
    fn answer(&mut self, value: u32) -> Result<Place, CageError> {
        if let Some(place) = self.answers.get(&value) {
            return Ok(*place);
        }
        let place = self.push(BPF_RET, 0, 0, value)?;
        self.answers.insert(value, place);
        Ok(place)
    }

    /// How many steps are between a place and the step that is written next.
    fn distance(&self, place: Place) -> usize {
        self.steps.len() - place.0
    }

    fn push(&mut self, operation: u32, jt: u8, jf: u8, k: u32) -> Result<Place, CageError> {
        let code = u16::try_from(operation | BPF_K).map_err(CageError::filter)?;
        self.steps.push(sock_filter { code, jt, jf, k });
        Ok(Place(self.steps.len()))
    }
}

fn lower_half(argument: u32) -> u32 {
    ARGUMENTS + 8 * argument
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
