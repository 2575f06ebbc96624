//! The lines of a file or of standard input, as they come, none longer than a limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use tokio::sync::mpsc;

/// The longest line that is read.
const LONGEST: u64 = 16 << 20;

/// The lines, with their numbers.
pub(super) struct Lines {
    queue: mpsc::Receiver<io::Result<(u64, String)>>,
}

impl Lines {
    /// Begins to read. One thread does it, because a read of a pipe or a terminal cannot be called
    /// off.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let source: Box<dyn BufRead + Send> = match path.as_os_str() == "-" {
            true => Box::new(BufReader::new(io::stdin())),
            false => {
                let named = |error: io::Error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                };
                Box::new(BufReader::new(File::open(path).map_err(named)?))
            }
        };
        let (sender, queue) = mpsc::channel(1);
        let reading = std::thread::Builder::new().name("lines".to_owned());
        reading.spawn(move || read_all(source, &sender))?;
        Ok(Self { queue })
    }

    /// The next line that is not empty; none at the end.
    ///
    /// # Errors
    /// When it cannot be read, or is too long to be one.
    pub(super) async fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        self.queue.recv().await.transpose()
    }
}

fn read_all(mut source: impl BufRead, lines: &mpsc::Sender<io::Result<(u64, String)>>) {
    for number in 1.. {
        let mut line = String::new();
        let read = source.by_ref().take(LONGEST).read_line(&mut line);
        let too_long = line.len() as u64 == LONGEST && !line.ends_with('\n');
        let next = match read {
            Ok(0) => return,
            Ok(_) if too_long => {
                let message = format!("line {number} is longer than {LONGEST} bytes");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            Ok(_) if line.trim().is_empty() => continue,
            Ok(_) => Ok((number, line)),
            Err(error) => Err(error),
        };
        let over = next.is_err();
        if lines.blocking_send(next).is_err() || over {
            return;
        }
    }
}
