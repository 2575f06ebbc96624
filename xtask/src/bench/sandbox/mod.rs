//! What the cage costs: each row is a confined thing against the same thing plain, in one run.
//!
//! A target is about all layers with the supervisor on. A figure that was taken with less says so in
//! its row and has missed its target, however good it is.

mod compile;
mod confined;
mod layers;
mod many_files;
mod memory;
mod opens;
mod ordinary_user;
mod program;
mod spawn;
mod supervised;

pub(super) use confined::Confined;
pub(super) use opens::{FLAG as LOOP_FLAG, run_loop};
pub(super) use ordinary_user::Lent;
pub(super) use spawn::directories_of_tmp;
pub(super) use supervised::{FLAG as COMPILE_FLAG, compile_again_and_again};

use super::session::Session;

pub(super) fn measure(session: &mut Session) {
    session.take("/bin/true, confined", spawn::by_turns_with_bare);
    session.take("/bin/true, confined, many in a row", spawn::in_a_row);
    session.take("bash -lc 'echo hi', confined", spawn::login_shell);
    session.take("/bin/true, confined, first command", spawn::first_command);
    session.take("sandgate sandbox -- /bin/true", program::against_plain);
    session.take("sandgate sandbox -- /bin/true, against bubblewrap", program::against_bubblewrap);
    session.take("opening a file to write", opens::to_write);
    session.take("opening a file to read", opens::to_read);
    session.take("make -j2 of 40 files", compile::make);
    session.take("make -j2 of 40 files, supervised", supervised::make);
    session.take("cargo build --offline", compile::cargo);
    session.take("memory of an idle cage", memory::idle);
    if !session.is_lent() {
        session.take_all("all of this as an ordinary user", ordinary_user::measure);
    }
    // Last, because the disk is busy for a while when so many files have been removed.
    session.take("a workspace of many files", many_files::measure);
}
