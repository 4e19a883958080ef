//! Which programs libfaketime reaches. It is a library that is loaded into dynamically linked programs and takes the place of
//! the C library's clock, so some programs keep the real time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many scripts are followed from one interpreter to the next.
const MAX_INTERPRETERS: usize = 4;

/// How long a program that does nothing may take under libfaketime.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program of the command whose clock does not move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmoved {
    pub pid: u32,
    pub program: PathBuf,
    pub why: String,
}

impl std::fmt::Display for Unmoved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the clock of {} does not move: {}", self.program.display(), self.why)
    }
}

/// Looks at programs, at each once.
pub struct Reach {
    library: PathBuf,
    known: BTreeMap<PathBuf, Option<String>>,
}

impl Reach {
    /// `library`: libfaketime's.
    pub fn new(library: PathBuf) -> Reach {
        Reach { library, known: BTreeMap::new() }
    }

    /// Looks at the program that a command would run. A program that cannot be found is not judged.
    ///
    /// # Errors
    /// Why its clock would not move.
    pub fn check_command(&mut self, name: &str) -> Result<(), String> {
        let Some(mut program) = find(name) else { return Ok(()) };
        for _ in 0..MAX_INTERPRETERS {
            match interpreter(&program) {
                Some(next) => program = next,
                None => break,
            }
        }
        let conflict = |reach: &Reach| reach.conflict(&program);
        match self.obstacle(&program).or_else(|| conflict(self)) {
            Some(why) => Err(Unmoved { pid: 0, program, why }.to_string()),
            None => Ok(()),
        }
    }

    /// Returns the processes of a command whose clocks do not move, the first process first.
    pub fn unmoved(&mut self, pid: u32) -> Vec<Unmoved> {
        let (mut found, mut waiting) = (Vec::new(), vec![pid]);
        while let Some(pid) = waiting.pop() {
            waiting.extend(children(pid));
            let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) else { continue };
            // It only prepares the command's environment.
            if program.file_name().is_some_and(|name| name == "faketime") {
                continue;
            }
            let why = self.obstacle(&program).or_else(|| self.lacks_library(pid));
            found.extend(why.map(|why| Unmoved { pid, program, why }));
        }
        found
    }

    /// Returns the reason if a process has loaded its libraries, and libfaketime is not among them. It comes before the C library.
    fn lacks_library(&self, pid: u32) -> Option<String> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let lacks = maps.contains("/libc.so") && !maps.contains("libfaketime");
        lacks.then(|| "it was started without LD_PRELOAD".to_owned())
    }

    /// Returns why libfaketime has no effect on a program.
    fn obstacle(&mut self, program: &Path) -> Option<String> {
        if let Some(known) = self.known.get(program) {
            return known.clone();
        }
        let found =
            has_more_rights(program).or_else(|| fs::read(program).ok().as_deref().and_then(unreachable));
        self.known.insert(program.to_owned(), found.map(str::to_owned));
        found.map(str::to_owned)
    }

    /// Returns why a program hangs under libfaketime: some builds of jemalloc and of libfaketime wait for each other.
    fn conflict(&self, program: &Path) -> Option<String> {
        let allocator = fs::read(program).ok().as_deref().and_then(allocator)?;
        let preload = format!("{}:{allocator}", self.library.display());
        let mut probe = Command::new("true");
        probe.env("LD_PRELOAD", preload).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut probe = probe.spawn().ok()?;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if probe.try_wait().ok()?.is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = probe.kill();
        let _ = probe.wait();
        Some(format!("it uses {allocator}, and under libfaketime that hangs at the start"))
    }
}

/// Finds a program as a shell does.
fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// Returns the program that runs a script.
fn interpreter(script: &Path) -> Option<PathBuf> {
    const LONGEST: usize = 256;
    let text = fs::read(script).ok()?;
    let line = text.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(&line[..line.len().min(LONGEST)]).into_owned();
    let mut words = line.split_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name().is_some_and(|name| name == "env") {
        return find(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
    }
    Some(program.to_owned())
}

/// Returns the child processes of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Returns the reason if a program runs with the rights of another user: then the system ignores LD_PRELOAD.
fn has_more_rights(program: &Path) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    let (file, own) = (fs::metadata(program).ok()?, fs::metadata("/proc/self").ok()?);
    (file.mode() & SET_USER != 0 && file.uid() != own.uid())
        .then_some("it is setuid, so the system loads no library into it")
}

/// Returns why no library can take the place of the clock of a program. Knows 64-bit little-endian ELF files; others are not
/// judged.
fn unreachable(program: &[u8]) -> Option<&'static str> {
    let elf = Elf::of(program)?;
    if elf.section(".go.buildinfo").is_some() || elf.section(".note.go.buildid").is_some() {
        return Some("it is a Go program, which reads the clock without the C library");
    }
    (!elf.has_interpreter()).then_some("it is statically linked, so no library can be loaded into it")
}

/// Returns the name of the library of jemalloc that a program needs.
fn allocator(program: &[u8]) -> Option<String> {
    let names = Elf::of(program)?.section(".dynstr")?;
    let mut names = names.split(|&byte| byte == 0);
    let name = names.find(|name| name.starts_with(b"libjemalloc.so"))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// An ELF file.
struct Elf<'a>(&'a [u8]);

impl<'a> Elf<'a> {
    fn of(file: &'a [u8]) -> Option<Elf<'a>> {
        const BITS_64_LITTLE_ENDIAN: &[u8] = b"\x7fELF\x02\x01";
        file.starts_with(BITS_64_LITTLE_ENDIAN).then_some(Elf(file))
    }

    fn number<const LEN: usize>(&self, at: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..LEN].copy_from_slice(self.0.get(at..at.checked_add(LEN)?)?);
        Some(u64::from_le_bytes(bytes))
    }

    /// Returns where the entries of a table begin: the offsets of its place, of the size of an entry and of their number.
    fn entries(&self, place: usize, size: usize, count: usize) -> Option<impl Iterator<Item = usize>> {
        let (start, size) = (self.number::<8>(place)? as usize, self.number::<2>(size)? as usize);
        let count = self.number::<2>(count)? as usize;
        Some((0..count).map(move |index| start.saturating_add(index * size)))
    }

    fn has_interpreter(&self) -> bool {
        const INTERPRETER: u64 = 3;
        let Some(mut segments) = self.entries(32, 54, 56) else { return false };
        segments.any(|at| self.number::<4>(at) == Some(INTERPRETER))
    }

    /// Returns the content of a section.
    fn section(&self, name: &str) -> Option<&'a [u8]> {
        let sections: Vec<usize> = self.entries(40, 58, 60)?.collect();
        let names = self.content(*sections.get(self.number::<2>(62)? as usize)?)?;
        let is_named = |at: usize| {
            let rest = self.number::<4>(at).and_then(|start| names.get(start as usize..));
            rest.is_some_and(|rest| rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0))
        };
        self.content(sections.iter().copied().find(|&at| is_named(at))?)
    }

    fn content(&self, section: usize) -> Option<&'a [u8]> {
        let (start, len) =
            (self.number::<8>(section + 24)? as usize, self.number::<8>(section + 32)? as usize);
        self.0.get(start..start.checked_add(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a small ELF file with these program header types and sections.
    fn elf(segments: &[u32], sections: &[(&str, &[u8])]) -> Vec<u8> {
        let all: Vec<(&str, Vec<u8>)> = {
            let mut names = b"\0.shstrtab\0".to_vec();
            for (name, _) in sections {
                names.extend([name.as_bytes(), b"\0"].concat());
            }
            let others = sections.iter().map(|(name, content)| (*name, content.to_vec()));
            [(".shstrtab", names)].into_iter().chain(others).collect()
        };
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let put =
            |file: &mut Vec<u8>, at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(&mut file, 32, &64u64.to_le_bytes());
        put(&mut file, 54, &56u16.to_le_bytes());
        put(&mut file, 56, &(segments.len() as u16).to_le_bytes());
        for kind in segments {
            file.extend(kind.to_le_bytes());
            file.extend([0; 52]);
        }
        let names = all[0].1.clone();
        let places: Vec<u64> = all
            .iter()
            .map(|(_, content)| {
                file.extend(content);
                (file.len() - content.len()) as u64
            })
            .collect();
        let table = file.len() as u64;
        put(&mut file, 40, &table.to_le_bytes());
        put(&mut file, 58, &64u16.to_le_bytes());
        put(&mut file, 60, &(all.len() as u16).to_le_bytes());
        for ((name, content), place) in all.iter().zip(places) {
            let text = [b"\0", name.as_bytes(), b"\0"].concat();
            let at = names.windows(text.len()).position(|part| part == text).unwrap_or(0) as u32 + 1;
            let mut header = vec![0; 64];
            put(&mut header, 0, &at.to_le_bytes());
            put(&mut header, 24, &place.to_le_bytes());
            put(&mut header, 32, &(content.len() as u64).to_le_bytes());
            file.extend(header);
        }
        file
    }

    #[test]
    fn programs_are_judged_by_their_files() {
        assert_eq!(unreachable(&elf(&[1, 3], &[])), None);
        assert!(unreachable(&elf(&[1, 2], &[])).is_some_and(|why| why.contains("statically")));
        let go = elf(&[1, 3], &[(".text", b"x"), (".go.buildinfo", b"go1")]);
        assert!(unreachable(&go).is_some_and(|why| why.contains("Go program")));
        let file = elf(&[3], &[(".dynstr", b"\0libc.so.6\0libjemalloc.so.2\0")]);
        assert_eq!(allocator(&file), Some("libjemalloc.so.2".to_owned()));
        assert_eq!(allocator(&elf(&[3], &[(".dynstr", b"\0libc.so.6\0")])), None);
        assert_eq!(unreachable(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn damaged_files_are_read_without_a_panic() {
        let whole = elf(&[1, 3], &[(".go.buildinfo", b"go1"), (".dynstr", b"\0")]);
        for len in 0..whole.len() {
            let _ = (unreachable(&whole[..len]), allocator(&whole[..len]));
        }
        for at in 6..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = (unreachable(&damaged), allocator(&damaged));
        }
    }
}
