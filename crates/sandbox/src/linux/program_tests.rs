//! Programs are run here as the kernel runs them, and `seccompiler` says what a table means.

use super::super::requests::{TIOCLINUX, TIOCSTI};
use super::super::seccomp::{Beneath, supervised, unsupervised};
use super::*;
use proptest::prelude::*;
use sandgate_protocol::NetworkAccess;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// More numbers than there are calls.
const NUMBERS: std::ops::Range<u32> = 0..600;

/// The 32-bit architectures that processors with 64 bits have beside their own.
const FOREIGN: [u32; 2] = [0x4000_0003, 0x4000_0028];

/// The bits of an argument that the kernel does not take for a number.
const UPPER_HALF: u64 = 0xdead_beef << 32;

/// Where the second numbering begins that x86-64 kernels may have.
const X32_BIT: u32 = 0x4000_0000;

type Arguments = [u64; 6];

/// What a filter sees of a call. Without arguments, a look at them is a mistake.
#[derive(Debug, Clone, Copy)]
struct Seen {
    number: u32,
    architecture: u32,
    arguments: Option<Arguments>,
}

impl Seen {
    fn native(number: u32, arguments: Option<Arguments>) -> Self {
        Self { number, architecture: architecture().unwrap(), arguments }
    }

    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            _ => {
                let arguments = self.arguments.expect("nothing here depends on the arguments");
                let argument = arguments[usize::try_from(offset - 16).unwrap() / 8];
                let is_upper = offset % 8 == 4;
                u32::try_from(if is_upper { argument >> 32 } else { argument << 32 >> 32 }).unwrap()
            }
        }
    }
}

/// Runs a program. This knows the operations that the kernel knows when it asks which calls are
/// allowed whatever their arguments, and no other.
fn run(program: &[sock_filter], seen: Seen) -> u32 {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            0x20 => accumulator = seen.word(k),
            0x05 => at += usize::try_from(k).unwrap(),
            0x15 => at += jump(accumulator == k),
            0x25 => at += jump(accumulator > k),
            0x35 => at += jump(accumulator >= k),
            0x45 => at += jump(accumulator & k != 0),
            0x54 => accumulator &= k,
            0x06 => return k,
            other => panic!("an operation {other:#x}"),
        }
    }
}

/// Says what a table means, with a program for each condition.
struct Judge(BTreeMap<u32, Vec<(Vec<Program>, Answer)>>);

impl Judge {
    fn new(table: &Table) -> Self {
        let programs = table.iter().map(|(number, cases)| {
            let case = |case: &Case| {
                let conditions = case.when.iter().map(|condition| compiled(*number, condition));
                (conditions.collect(), case.answer)
            };
            (u32::try_from(*number).unwrap(), cases.iter().map(case).collect())
        });
        Self(programs.collect())
    }

    /// What becomes of a call: what the first case says of which all conditions hold.
    fn answer(&self, seen: Seen) -> u32 {
        let holds = |program: &Program| run(program, seen) != libc::SECCOMP_RET_ALLOW;
        let mut cases = self.0.get(&seen.number).into_iter().flatten();
        let first = cases.find(|(conditions, _)| conditions.iter().all(holds));
        first.map_or(libc::SECCOMP_RET_ALLOW, |(_, answer)| answer.value())
    }
}

/// A program that allows a call unless the condition holds.
fn compiled(number: libc::c_long, condition: &Condition) -> Program {
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let one_of = alternatives(condition).into_iter().filter(|all| !all.is_empty());
    let rules = one_of.map(|all| SeccompRule::new(all).unwrap()).collect();
    let (rules, otherwise) = (BTreeMap::from([(number, rules)]), SeccompAction::Allow);
    let filter = SeccompFilter::new(rules, otherwise, SeccompAction::Trap, arch).unwrap();
    let steps = BpfProgram::try_from(filter).unwrap().into_iter();
    steps.map(|step| sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: step.k }).collect()
}

/// A condition as one of several, each of which is that some hold together.
fn alternatives(condition: &Condition) -> Vec<Vec<SeccompCondition>> {
    let half = |argument: &u32, op: Op, value: u32| {
        let argument = u8::try_from(*argument).unwrap();
        SeccompCondition::new(argument, Len::Dword, op, u64::from(value)).unwrap()
    };
    match condition {
        Condition::AnyBit(argument, bits) => {
            let bits = (0..32).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
            bits.map(|bit| vec![half(argument, Op::MaskedEq(u64::from(bit)), bit)]).collect()
        }
        Condition::OneOf(argument, Mask::All, values) => {
            values.iter().map(|value| vec![half(argument, Op::Eq, *value)]).collect()
        }
        Condition::NoneOf(argument, Mask::All, values) => {
            vec![values.iter().map(|value| half(argument, Op::Ne, *value)).collect()]
        }
        Condition::OneOf(argument, Mask::Only(mask), values) => {
            let op = Op::MaskedEq(u64::from(*mask));
            values.iter().map(|value| vec![half(argument, op.clone(), *value)]).collect()
        }
        Condition::NoneOf(argument, Mask::Only(mask), values) => {
            let others = (0..=*mask).filter(|value| value & !mask == 0 && !values.contains(value));
            let op = Op::MaskedEq(u64::from(*mask));
            others.map(|value| vec![half(argument, op.clone(), value)]).collect()
        }
        Condition::NotNull(argument) => {
            let argument = u8::try_from(*argument).unwrap();
            vec![vec![SeccompCondition::new(argument, Len::Qword, Op::Ne, 0).unwrap()]]
        }
    }
}

/// Compares a program with what its table means.
fn check(table: &Table, arguments: impl Fn(u32) -> Vec<Arguments>) {
    let program = assemble(table).unwrap();
    let judge = Judge::new(table);
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    for number in NUMBERS {
        if number > NEWEST {
            let seen = Seen::native(number, None);
            assert_eq!(run(&program, seen), unknown, "{seen:x?}");
        } else if judge.0.contains_key(&number) {
            for arguments in arguments(number) {
                let seen = Seen::native(number, Some(arguments));
                assert_eq!(run(&program, seen), judge.answer(seen), "{seen:x?}");
            }
        } else {
            let seen = Seen::native(number, None);
            assert_eq!(run(&program, seen), libc::SECCOMP_RET_ALLOW, "{seen:x?}");
        }
        for architecture in FOREIGN {
            for number in [number, number | X32_BIT] {
                let foreign = Seen { number, architecture, arguments: None };
                assert_eq!(run(&program, foreign), libc::SECCOMP_RET_KILL_PROCESS, "{foreign:x?}");
            }
        }
        let second = Seen::native(number | X32_BIT, None);
        assert_eq!(run(&program, second), unknown, "{second:x?}");
    }
}

/// Each bit of each argument by itself, alone and beside upper halves.
fn each_bit() -> Vec<Arguments> {
    let bits = (0..6).flat_map(|argument| (0..64).map(move |bit| (argument, 1u64 << bit)));
    let alone = bits.map(|(argument, bit)| {
        let mut arguments = [0; 6];
        arguments[argument] = bit;
        arguments
    });
    let alone = std::iter::once([0; 6]).chain(alone);
    alone.flat_map(|arguments| [arguments, arguments.map(|value| value | UPPER_HALF)]).collect()
}

/// Sockets of every family, type and protocol there is.
fn each_socket() -> Vec<Arguments> {
    let families = 0..50u64;
    let kinds = || (0..20u64).chain([0x801, 0x802, 0x8_0001, 0x8_0805, 0x8_0802]);
    let of_family =
        |family| kinds().flat_map(move |kind| (0..25).map(move |of| (family, kind, of)));
    let sockets = families.flat_map(of_family);
    let arguments = sockets.flat_map(|(family, kind, protocol)| {
        let plain = [family, kind, protocol, 0, 0, 0];
        [plain, plain.map(|value| value | UPPER_HALF)]
    });
    arguments.collect()
}

fn arguments_that_matter(number: u32) -> Vec<Arguments> {
    let mut all = each_bit();
    match libc::c_long::from(number) {
        libc::SYS_socket | libc::SYS_socketpair => all.extend(each_socket()),
        libc::SYS_setsockopt => {
            let options = |level| [82, 83, 84].map(|option| [3, level, option, 0, 0, 0]);
            let options = [0, 1, 2].into_iter().flat_map(options);
            all.extend(options.flat_map(|plain| [plain, plain.map(|value| value | UPPER_HALF)]));
        }
        libc::SYS_ioctl => {
            let requests = [TIOCSTI, TIOCLINUX].map(|request| [request - 1, request, request + 1]);
            let requests = requests.into_iter().flatten();
            all.extend(requests.flat_map(|value| [[value; 6], [value | UPPER_HALF; 6]]));
        }
        _ => {}
    }
    all
}

/// spec SANDBOX.97: A system call that is newer than sandgate is answered as if the kernel had none.
#[test]
fn calls_that_nobody_has_thought_of_do_not_exist() {
    let table = supervised(Beneath::Namespaces, NetworkAccess::Restricted);
    let program = assemble(&table).unwrap();
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    for number in [NEWEST + 1, NEWEST + 100, X32_BIT, u32::MAX] {
        assert_eq!(run(&program, Seen::native(number, None)), unknown, "{number}");
    }
    let newest = run(&program, Seen::native(NEWEST, None));
    assert_eq!(newest, libc::SECCOMP_RET_ALLOW, "the mount holds what it does");
}

/// A table that names a call beyond the last one would be a table that nobody obeys.
#[test]
fn no_table_names_a_call_that_is_unknown_to_all() {
    for beneath in [Beneath::Namespaces, Beneath::LandlockOnly] {
        for network in [NetworkAccess::Restricted, NetworkAccess::Enabled] {
            for table in [supervised(beneath, network), unsupervised(beneath, network)] {
                let last = table.keys().max().unwrap();
                assert!(*last <= libc::c_long::from(NEWEST), "{last}");
            }
        }
    }
}

#[test]
fn the_filters_of_every_cage_mean_what_their_tables_say() {
    for beneath in [Beneath::Namespaces, Beneath::LandlockOnly] {
        for network in [NetworkAccess::Restricted, NetworkAccess::Enabled] {
            check(&supervised(beneath, network), arguments_that_matter);
            check(&unsupervised(beneath, network), arguments_that_matter);
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let values = || prop::collection::vec(0..8u32, 1..4);
    let mask = || prop_oneof![Just(Mask::All), Just(Mask::Only(7))];
    prop_oneof![
        (0..6u32, prop::sample::select(vec![1, 6, 0x8000_0001, 0x100]))
            .prop_map(|(argument, bits)| { Condition::AnyBit(argument, bits) }),
        (0..6u32, mask(), values())
            .prop_map(|(argument, mask, values)| { Condition::OneOf(argument, mask, values) }),
        (0..6u32, mask(), values())
            .prop_map(|(argument, mask, values)| { Condition::NoneOf(argument, mask, values) }),
        (0..6u32).prop_map(Condition::NotNull),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let answers = [Answer::Ask, Answer::Error(libc::EPERM), Answer::Error(libc::ENOSYS)];
    let when = prop_oneof![Just(Vec::new()), prop::collection::vec(condition(), 1..3)];
    (when, prop::sample::select(answers.to_vec())).prop_map(|(when, answer)| Case { when, answer })
}

fn argument() -> impl Strategy<Value = u64> {
    let bit = (0..64u32).prop_map(|bit| 1u64 << bit);
    prop_oneof![0..16u64, bit, (0..16u64).prop_map(|value| value | UPPER_HALF)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_program_means_what_its_table_says(
        table in (1..6i64).prop_flat_map(|spread| {
            let cases = prop::collection::vec(case(), 1..4);
            prop::collection::btree_map(0..100 * spread, cases, 0..200)
        }),
        arguments in prop::collection::vec(prop::array::uniform6(argument()), 16),
    ) {
        check(&table, |_| arguments.clone());
    }
}
