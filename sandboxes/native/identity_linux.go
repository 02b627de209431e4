package native

import (
	"fmt"
	"os"
)

// nobody is the host user of the processes inside if both ralph and the worktree's owner are root: even without
// capabilities, root has too many permissions on the host.
const nobody = 65534

// identity is the user of the processes inside, in the sandbox and on the host.
type identity struct {
	insideUID, insideGID int
	hostUID, hostGID     int
	root                 bool // this process may map any user
}

// identify returns the user of the processes inside: ralph's own or, if that is root, the worktree's owner, or nobody if
// the owner is root, too.
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

// mapTo maps only this user in a process's new user namespace.
func (i identity) mapTo(pid int) error {
	if !i.root { // required without root: a user who leaves a group could gain access that the group is denied
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

func procFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
