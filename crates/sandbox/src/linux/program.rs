//! One filter out of many small ones.
//!
//! The kernel runs a filter for each system call, and once for each number there is when the filter is
//! installed, so what it costs to find a number matters. The compiler compares with one number after
//! the other. Here calls are compiled in small parts, and a few jumps find the part.

use super::CageError;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter};
use std::collections::BTreeMap;

/// How many calls a part is about: about as many as there are parts.
const PART: usize = 10;

/// The second numbering of system calls that x86-64 kernels may have begins here. No table names it,
/// so it would go around them.
const X32_BIT: u32 = 0x4000_0000;

/// What becomes of a call that a rule holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This error.
    Error(i32),
    /// What the supervisor says.
    Ask,
}

/// For each call when a rule holds for it, and what becomes of it then. Without a rule it always does.
pub(super) type Table = BTreeMap<libc::c_long, (Vec<SeccompRule>, Answer)>;

/// Makes one program of a table.
pub(super) fn assemble(table: Table) -> Result<BpfProgram, CageError> {
    let parts = parts(table)?;
    let mut program = vec![load_number()];
    if cfg!(target_arch = "x86_64") {
        let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        program.extend([step(libc::BPF_JMP | libc::BPF_JGE, 0, 1, X32_BIT), answer(unknown)]);
    }
    // Two steps for each part, and one for the numbers behind the last of them.
    let mut place = 2 * parts.len() + 1;
    for (last, part) in &parts {
        program.push(step(libc::BPF_JMP | libc::BPF_JGT, 1, 0, *last));
        // The jump counts from the step behind it.
        let distance = u32::try_from(place - 2).map_err(CageError::filter)?;
        program.push(step(libc::BPF_JMP | libc::BPF_JA, 0, 0, distance));
        place = place - 2 + part.len();
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program.extend(parts.into_iter().flat_map(|(_, part)| part));
    Ok(program)
}

/// The programs for a few calls each, with the last number that each of them is about.
fn parts(table: Table) -> Result<Vec<(u32, BpfProgram)>, CageError> {
    let mut parts = Vec::new();
    let mut calls = table.into_iter().peekable();
    while let Some((first, (rules, answer))) = calls.next() {
        let mut part = BTreeMap::from([(first, rules)]);
        let mut last = first;
        while part.len() < PART
            && let Some((number, (rules, _))) = calls.next_if(|(_, (_, next))| *next == answer)
        {
            part.insert(number, rules);
            last = number;
        }
        parts.push((u32::try_from(last).map_err(CageError::filter)?, compile(part, answer)?));
    }
    Ok(parts)
}

fn compile(
    rules: BTreeMap<libc::c_long, Vec<SeccompRule>>,
    answer: Answer,
) -> Result<BpfProgram, CageError> {
    let action = match answer {
        Answer::Error(errno) => SeccompAction::Errno(errno.cast_unsigned()),
        // The compiler has no word for it.
        Answer::Ask => SeccompAction::Trap,
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(CageError::filter)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch);
    let mut program = filter.and_then(BpfProgram::try_from).map_err(CageError::filter)?;
    if answer == Answer::Ask {
        for step in program.iter_mut().filter(|step| step.code == code(libc::BPF_RET)) {
            if step.k == libc::SECCOMP_RET_TRAP {
                step.k = libc::SECCOMP_RET_USER_NOTIF;
            }
        }
    }
    Ok(program)
}

/// The number is the first field of what a filter sees.
fn load_number() -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)
}

fn answer(value: u32) -> sock_filter {
    step(libc::BPF_RET, 0, 0, value)
}

/// A step of a program. Whatever is compared with or returned is a constant.
fn step(operation: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code(operation), jt, jf, k }
}

fn code(operation: u32) -> u16 {
    u16::try_from(operation | libc::BPF_K).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition};

    const NATIVE: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };

    /// Runs a program as the kernel would.
    fn run(program: &[sock_filter], number: u32, arch: u32, argument: u64) -> u32 {
        let mut accumulator = 0;
        let mut at = 0;
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            at += 1;
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match u32::from(code) {
                0x20 => {
                    accumulator = match k {
                        0 => number,
                        4 => arch,
                        16 => u32::try_from(argument & u64::from(u32::MAX)).unwrap(),
                        20 => u32::try_from(argument >> 32).unwrap(),
                        other => panic!("a load from {other}"),
                    }
                }
                0x05 => at += usize::try_from(k).unwrap(),
                0x15 => at += jump(accumulator == k),
                0x25 => at += jump(accumulator > k),
                0x35 => at += jump(accumulator >= k),
                0x54 => accumulator &= k,
                0x06 => return k,
                other => panic!("an operation {other:#x}"),
            }
        }
    }

    fn answers() -> impl Strategy<Value = Answer> {
        prop_oneof![
            Just(Answer::Ask),
            Just(Answer::Error(libc::EPERM)),
            Just(Answer::Error(libc::ENOSYS))
        ]
    }

    proptest! {
        #[test]
        fn every_call_gets_the_answer_of_the_table(
            table in prop::collection::btree_map(0i64..500, (any::<bool>(), answers()), 1..150),
            argument in prop_oneof![Just(7u64), Just(8u64)],
        ) {
            let rule = || {
                let seven = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 7);
                SeccompRule::new(vec![seven.unwrap()]).unwrap()
            };
            let rules = table.iter().map(|(number, (conditional, answer))| {
                let rules = if *conditional { vec![rule()] } else { Vec::new() };
                (*number, (rules, *answer))
            });
            let program = assemble(rules.collect()).unwrap();
            for number in 0..600u32 {
                let expected = match table.get(&i64::from(number)) {
                    Some((true, _)) if argument != 7 => libc::SECCOMP_RET_ALLOW,
                    Some((_, Answer::Ask)) => libc::SECCOMP_RET_USER_NOTIF,
                    Some((_, Answer::Error(errno))) => {
                        libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
                    }
                    None => libc::SECCOMP_RET_ALLOW,
                };
                prop_assert_eq!(run(&program, number, NATIVE, argument), expected, "{}", number);
            }
            for number in table.keys() {
                let number = u32::try_from(*number).unwrap();
                let foreign = run(&program, number, 0x4000_0003, argument);
                prop_assert_eq!(foreign, libc::SECCOMP_RET_KILL_PROCESS);
                if cfg!(target_arch = "x86_64") {
                    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
                    prop_assert_eq!(run(&program, number | X32_BIT, NATIVE, argument), unknown);
                }
            }
        }
    }
}
