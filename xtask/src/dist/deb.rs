//! A package for Debian and its kin: three files in an `ar` archive.

use super::archive::{Entry, gz, tar_gz};
use super::{Parts, Release};
use anyhow::bail;

/// What the package is called.
pub(super) fn file_name(release: &Release) -> anyhow::Result<String> {
    Ok(format!("sandgate_{}_{}.deb", release.version, architecture(&release.target)?))
}

/// The package.
pub(super) fn package(parts: &Parts, release: &Release) -> anyhow::Result<Vec<u8>> {
    let data = data(parts)?;
    let size = data.iter().map(Entry::size).sum::<u64>().div_ceil(1024);
    let control = control(release, size)?;
    let control = tar_gz(&[Entry::file("control", control.into_bytes())], release.time)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control),
        ("data.tar.gz", tar_gz(&data, release.time)?),
    ];
    Ok(ar(&members, release.time))
}

/// Where everything goes.
fn data(parts: &Parts) -> anyhow::Result<Vec<Entry>> {
    let mut entries = vec![
        Entry::program("usr/bin/sandgate", parts.program.clone()),
        Entry::link("usr/bin/sandgate-linux-sandbox", "sandgate"),
    ];
    for (shell, name, text) in &parts.completions {
        let directory = match *shell {
            "bash" => "bash-completion/completions",
            "zsh" => "zsh/vendor-completions",
            "fish" => "fish/vendor_completions.d",
            _ => continue,
        };
        entries.push(Entry::file(format!("usr/share/{directory}/{name}"), text.clone()));
    }
    for (name, text) in &parts.pages {
        entries.push(Entry::file(format!("usr/share/man/man1/{name}.gz"), gz(text)?));
    }
    for (name, text) in &parts.documents {
        let name = if *name == "LICENSE" { "copyright" } else { name };
        entries.push(Entry::file(format!("usr/share/doc/sandgate/{name}"), text.clone()));
    }
    Ok(entries)
}

fn control(release: &Release, size: u64) -> anyhow::Result<String> {
    let depends = match release.target.contains("musl") {
        true => "",
        false => "Depends: libc6, libgcc-s1\n",
    };
    Ok(format!(
        "Package: sandgate\nVersion: {}\nArchitecture: {}\nMaintainer: The Sandgate authors\n\
         Installed-Size: {size}\n{depends}Section: utils\nPriority: optional\n\
         Description: gate between an AI agent and a person's machine\n \
         Judges each command of an agent, confines it by the kernel's own means, runs it,\n \
         and says what was blocked.\n",
        release.version,
        architecture(&release.target)?
    ))
}

fn architecture(target: &str) -> anyhow::Result<&'static str> {
    match target.split('-').next() {
        Some("x86_64") => Ok("amd64"),
        Some("aarch64") => Ok("arm64"),
        _ => bail!("Debian has no name here for {target}"),
    }
}

/// An archive in the oldest form there is: a line of fixed width, then the bytes, padded to even length.
fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let line =
            format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
        archive.extend(line.bytes());
        archive.extend(bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn parts() -> Parts {
        Parts {
            program: b"#!/bin/sh\n".to_vec(),
            documents: vec![("LICENSE", b"terms".to_vec())],
            pages: vec![("sandgate.1".to_owned(), b".TH sandgate 1\n".to_vec())],
            completions: vec![("bash", "sandgate", b"complete\n".to_vec())],
        }
    }

    #[test]
    fn dpkg_reads_the_package() {
        let release = Release {
            version: "1.2.3".to_owned(),
            target: "x86_64-unknown-linux-musl".to_owned(),
            time: 1_000_000_000,
        };
        assert_eq!(file_name(&release).unwrap(), "sandgate_1.2.3_amd64.deb");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.deb");
        std::fs::write(&file, package(&parts(), &release).unwrap()).unwrap();
        let run = |words: &[&str]| Command::new("dpkg-deb").args(words).arg(&file).output();
        let Ok(fields) = run(&["--field"]) else {
            println!("SKIPPED: there is no dpkg-deb here");
            return;
        };
        let fields = String::from_utf8_lossy(&fields.stdout).into_owned();
        assert!(fields.contains("Version: 1.2.3\nArchitecture: amd64"), "{fields}");
        let listed = String::from_utf8_lossy(&run(&["--contents"]).unwrap().stdout).into_owned();
        for path in [
            "usr/bin/sandgate\n",
            "usr/bin/sandgate-linux-sandbox -> sandgate\n",
            "usr/share/man/man1/sandgate.1.gz\n",
            "usr/share/bash-completion/completions/sandgate\n",
            "usr/share/doc/sandgate/copyright\n",
        ] {
            assert!(listed.contains(path), "{path}: {listed}");
        }
    }
}
