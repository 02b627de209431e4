package native

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is who the processes inside are on the host when ralph is root and the worktree is root's: root's rights on
// the host, even without capabilities, are too many.
const nobody = 65534

// identity is who the processes inside are.
type identity struct {
	insideUID, insideGID int
	hostUID, hostGID     int
	root                 bool // this process may map any user
}

// identify says who the processes inside are: the user itself, or, when that is root, the worktree's owner, who must
// not be root either.
func identify(p *plan) (identity, error) {
	if os.Getuid() != 0 {
		return identity{insideUID: p.UID, insideGID: p.GID, hostUID: os.Getuid(), hostGID: os.Getgid()}, nil
	}
	uid, gid, err := owner(p.Worktree)
	if err != nil {
		return identity{}, err
	}
	if uid == 0 || gid == 0 {
		uid, gid = nobody, nobody
	}
	return identity{insideUID: p.UID, insideGID: p.GID, hostUID: uid, hostGID: gid, root: true}, nil
}

// mapTo makes a process's new user namespace know this user, and no other.
func (i identity) mapTo(pid int) error {
	if !i.root { // else the user could leave groups whose members may do less than others
		if err := os.WriteFile(procFile(pid, "setgroups"), []byte("deny"), 0); err != nil {
			return fmt.Errorf("fix the groups inside: %w", err)
		}
	}
	for file, line := range map[string]string{
		"uid_map": fmt.Sprintf("%d %d 1\n", i.insideUID, i.hostUID),
		"gid_map": fmt.Sprintf("%d %d 1\n", i.insideGID, i.hostGID),
	} {
		if err := os.WriteFile(procFile(pid, file), []byte(line), 0); err != nil {
			return fmt.Errorf("map the user inside: %w", err)
		}
	}
	return nil
}

// assume makes the calling thread that user, when root has started it.
func (p *plan) assume() error {
	if !p.Assume {
		return nil
	}
	id, group := uintptr(p.UID), uintptr(p.GID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave all groups: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, group, group, group); errno != 0 {
		return fmt.Errorf("become group %d: %w", p.GID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
		return fmt.Errorf("become user %d: %w", p.UID, errno)
	}
	// The change of user has cancelled this.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with ralph: %w", err)
	}
	return nil
}

// startApart starts this program as a first process in namespaces of its own, with the capabilities over them that it
// needs; it is killed when the thread that starts it ends. As with every other process that Go starts, but not by itself
// with these, the child borrows the starter's memory, and the starter waits, until the new program begins: a copy would
// take time, and would for a while hold open all that is open here, which no other part of ralph expects.
//
// It is the one process that ralph does not start through package proc, which knows no namespaces.
func startApart(run string, flags uintptr, files ...*os.File) (*os.Process, error) {
	return os.StartProcess("/proc/self/exe", []string{initName, run, prepare}, &os.ProcAttr{
		Dir: "/", Env: firstEnv(), Files: files,
		Sys: &syscall.SysProcAttr{
			Cloneflags: flags | unix.CLONE_VM | unix.CLONE_VFORK, AmbientCaps: needed(), Pdeathsig: unix.SIGKILL, Setsid: true,
		},
	})
}
