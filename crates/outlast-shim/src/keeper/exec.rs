//! Turning a forked child into the agent.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use outlast_core::shim::ShimCommand;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::{latch, sys};

/// Where programs are looked up if the agent's environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What could not be done on the way to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Stage {
    /// A process, a session, descriptors.
    Process = 0,
    /// Opening the standard input.
    Stdin = 1,
    /// Entering the working directory.
    Directory = 2,
    /// Replacing the process by the program.
    Program = 3,
}

impl Stage {
    pub(crate) fn from_wire(number: i32) -> Stage {
        match number {
            1 => Stage::Stdin,
            2 => Stage::Directory,
            3 => Stage::Program,
            _ => Stage::Process,
        }
    }
}

/// Everything that the agent's start needs, checked and laid out before there is a process for it.
#[derive(Debug)]
pub(crate) struct ExecPlan {
    program: String,
    /// `PATH` as it was searched; none where the program was given as a path.
    path: Option<String>,
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    stdin: Option<CString>,
}

impl ExecPlan {
    /// Lays the start out.
    ///
    /// # Errors
    ///
    /// What no process can be started with, for people: no program, or a text with a NUL byte.
    pub(crate) fn new(command: &ShimCommand, env: &[(String, String)], cwd: &str) -> Result<Self, String> {
        let c_string = |what: &str, text: &str| {
            CString::new(text).map_err(|_| format!("cannot start the agent: {what} holds a NUL byte"))
        };
        let program = command.argv.first().filter(|program| !program.is_empty());
        let program = program.ok_or("cannot start the agent: its command is empty")?.clone();
        let (path, candidates) = if program.contains('/') {
            (None, vec![c_string("its command", &program)?])
        } else {
            let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
            let path = path.unwrap_or(DEFAULT_PATH);
            // An empty entry is the working directory, as everywhere.
            let entries = path.split(':').map(|dir| if dir.is_empty() { "." } else { dir });
            let candidates = entries.map(|dir| c_string("PATH", &format!("{dir}/{program}")));
            (Some(path.to_owned()), candidates.collect::<Result<_, _>>()?)
        };
        Ok(ExecPlan {
            path,
            candidates,
            argv: command.argv.iter().map(|arg| c_string("an argument", arg)).collect::<Result<_, _>>()?,
            env: env
                .iter()
                .map(|(name, value)| {
                    c_string(&format!("the environment variable {name:?}"), &format!("{name}={value}"))
                })
                .collect::<Result<_, _>>()?,
            cwd: c_string("its working directory", cwd)?,
            stdin: command
                .stdin
                .as_deref()
                .map(|path| c_string("the prompt file's name", path))
                .transpose()?,
            program,
        })
    }

    /// The exit status that a shell would give, and why, for people.
    pub(crate) fn explain(&self, stage: Stage, errno: i32) -> (i32, String) {
        let error = Errno::from_raw_os_error(errno);
        let text = io::Error::from(error);
        let program = &self.program;
        let cwd = self.cwd.to_string_lossy();
        match (stage, error) {
            (Stage::Directory, Errno::NOENT | Errno::NOTDIR) => {
                (127, format!("cannot start {program:?}: its working directory {cwd:?} does not exist"))
            }
            (Stage::Directory, _) => {
                (126, format!("cannot start {program:?}: cannot enter its working directory {cwd:?}: {text}"))
            }
            (Stage::Program, Errno::NOENT | Errno::NOTDIR) => {
                let cause = match &self.path {
                    Some(path) => format!("no such command in PATH ({path})"),
                    None => "no such file, or the interpreter in its first line does not exist".to_owned(),
                };
                (127, format!("cannot start {program:?}: {cause}"))
            }
            (Stage::Program, Errno::ACCESS) => {
                (126, format!("cannot start {program:?}: permission denied (not executable?)"))
            }
            (Stage::Program, _) => (126, format!("cannot start {program:?}: {text}")),
            (Stage::Stdin, _) => {
                let file = self.stdin.as_deref().unwrap_or(latch::NULL_DEVICE).to_string_lossy();
                (126, format!("cannot start {program:?}: cannot open its standard input {file:?}: {text}"))
            }
            (Stage::Process, _) => (126, format!("cannot start {program:?}: {text}")),
        }
    }

    /// Becomes the agent. Runs in the forked child of the process `keeper` and returns only on failure.
    pub(crate) fn exec(
        &self,
        keeper: Pid,
        stdout: &OwnedFd,
        stderr: &OwnedFd,
        failures: &OwnedFd,
    ) -> (Stage, Errno) {
        self.try_exec(keeper, stdout, stderr, failures).unwrap_or_else(|failure| failure)
    }

    fn try_exec(
        &self,
        keeper: Pid,
        stdout: &OwnedFd,
        stderr: &OwnedFd,
        failures: &OwnedFd,
    ) -> Result<(Stage, Errno), (Stage, Errno)> {
        let process = |error| (Stage::Process, error);
        rustix::process::setsid().map_err(process)?;
        // The agent dies with its keeper, which dies with the shim. A keeper that died before this line is noticed by
        // the line after it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(process)?;
        if rustix::process::getppid() != Some(keeper) {
            return Err((Stage::Process, Errno::CHILD));
        }
        let input = self.stdin.as_deref().unwrap_or(latch::NULL_DEVICE);
        let input = rustix::fs::open(input, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| (Stage::Stdin, error))?;
        rustix::stdio::dup2_stdin(input.as_fd()).map_err(process)?;
        drop(input);
        rustix::stdio::dup2_stdout(stdout.as_fd()).map_err(process)?;
        rustix::stdio::dup2_stderr(stderr.as_fd()).map_err(process)?;
        rustix::process::chdir(self.cwd.as_c_str()).map_err(|error| (Stage::Directory, error))?;
        sys::reset_signals();
        // Only the pipe for failures stays until the program is replaced, and it closes itself then.
        sys::close_all_but(&[failures.as_raw_fd()]);
        Ok((Stage::Program, self.replace()))
    }

    /// Tries the candidates in the order of `PATH`, as a shell does.
    fn replace(&self) -> Errno {
        let pointers = |texts: &[CString]| {
            let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
            pointers.push(std::ptr::null());
            pointers
        };
        let (argv, env) = (pointers(&self.argv), pointers(&self.env));
        let mut denied = false;
        for candidate in &self.candidates {
            let error = sys::execve(candidate, &argv, &env);
            match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::NOENT | Errno::NOTDIR => {}
                // A directory of `PATH` that may not be searched holds nothing as far as this user can tell.
                Errno::ACCESS => {
                    denied |= self.path.is_none() || rustix::fs::stat(candidate.as_c_str()).is_ok();
                }
                // A script without an interpreter line is the shell's.
                Errno::NOEXEC => return self.replace_by_shell(candidate, &env),
                other => return other,
            }
        }
        if denied { Errno::ACCESS } else { Errno::NOENT }
    }

    fn replace_by_shell(&self, script: &CStr, env: &[*const libc::c_char]) -> Errno {
        let shell = c"/bin/sh";
        let mut argv = vec![shell.as_ptr(), script.as_ptr()];
        argv.extend(self.argv.iter().skip(1).map(|arg| arg.as_ptr()));
        argv.push(std::ptr::null());
        let error = sys::execve(shell, &argv, env);
        Errno::from_io_error(&error).unwrap_or(Errno::NOEXEC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(argv: &[&str], env: &[(&str, &str)]) -> Result<ExecPlan, String> {
        let argv = argv.iter().map(|arg| (*arg).to_owned()).collect();
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        ExecPlan::new(&ShimCommand { argv, stdin: None }, &env, "/nowhere")
    }

    #[test]
    fn programs_are_looked_up_in_the_agents_path() {
        let candidates = |plan: ExecPlan| -> Vec<String> {
            plan.candidates.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        let searched = plan(&["foo"], &[("PATH", "/a::/b")]).expect("plan");
        assert_eq!(candidates(searched), ["/a/foo", "./foo", "/b/foo"]);
        assert_eq!(candidates(plan(&["./foo"], &[("PATH", "/a")]).expect("plan")), ["./foo"]);
        assert_eq!(candidates(plan(&["foo"], &[]).expect("plan"))[0], "/usr/local/bin/foo");
    }

    #[test]
    fn causes_for_people() {
        let foo = plan(&["foo"], &[("PATH", "/a")]).expect("plan");
        let explain = |stage, errno: Errno| foo.explain(stage, errno.raw_os_error());
        assert_eq!(
            explain(Stage::Program, Errno::NOENT),
            (127, "cannot start \"foo\": no such command in PATH (/a)".to_owned())
        );
        assert_eq!(
            explain(Stage::Directory, Errno::NOENT),
            (127, "cannot start \"foo\": its working directory \"/nowhere\" does not exist".to_owned())
        );
        assert_eq!(explain(Stage::Program, Errno::ACCESS).0, 126);
        assert!(plan(&[], &[]).is_err());
        assert!(plan(&["a", "b\0c"], &[]).expect_err("NUL").contains("NUL"));
        assert!(plan(&["a"], &[("X", "\0")]).expect_err("NUL").contains("\"X\""));
    }
}
