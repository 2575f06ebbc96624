//! Pauses that are shorter than the runtime's timers can be, whose smallest step is a millisecond.

use crate::sys::streams::watch;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::time::Duration;
use tokio::io::Interest;

/// From here on the runtime's own timers are exact enough.
const LONG: Duration = Duration::from_millis(5);

/// Waits for a short time.
pub(crate) async fn pause(time: Duration) {
    if time >= LONG || precisely(time).await.is_err() {
        tokio::time::sleep(time).await;
    }
}

async fn precisely(time: Duration) -> std::io::Result<()> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    // A timer that is set to nothing never goes off.
    let nanoseconds = i64::from(time.subsec_nanos().max(1));
    let once = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: 0, tv_nsec: nanoseconds },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    let timer = watch(timer)?;
    timer.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut [0u8; 8])?)).await?;
    Ok(())
}
