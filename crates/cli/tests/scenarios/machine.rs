//! A machine with a sandbox, and one without.

use sandgate_protocol::SandboxType;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Every flag of clone(2) that makes a namespace.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Whether all of our sandbox works here, so that what it blocks is known for a fact.
pub(crate) fn has_full_sandbox() -> bool {
    sandgate_runtime::enforcement().is_full()
}

/// Does something where the kernel refuses everything that a sandbox is made of: in a thread of its own
/// whose filter all that it starts inherits. The other threads of this process keep theirs.
pub(crate) fn without_sandbox(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        refuse_sandboxes();
        let status = sandgate_runtime::enforcement();
        assert_eq!(status.sandbox, SandboxType::None, "it was taken away: {status:?}");
        work();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn refuse_sandboxes() {
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let namespaces = |argument: u8| {
        let has = |flag: libc::c_int| {
            let flag = u64::from(flag.cast_unsigned());
            let length = SeccompCmpArgLen::Dword;
            let equal = SeccompCmpOp::MaskedEq(flag);
            let condition = SeccompCondition::new(argument, length, equal, flag).unwrap();
            SeccompRule::new(vec![condition]).unwrap()
        };
        NAMESPACES.into_iter().map(has).collect::<Vec<_>>()
    };
    let refused = BTreeMap::from([
        (libc::SYS_unshare, namespaces(0)),
        (libc::SYS_clone, namespaces(0)),
        (libc::SYS_landlock_create_ruleset, Vec::new()),
    ]);
    install(refused, libc::EPERM, arch);
    // Its flags lie in memory, where a filter cannot look; every C library knows how to do without.
    install(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS, arch);
}

fn install(refused: BTreeMap<i64, Vec<SeccompRule>>, error: i32, arch: TargetArch) {
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, refuse, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}
