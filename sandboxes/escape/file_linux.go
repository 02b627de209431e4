package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

func fileAttacks() []Attack {
	return []Attack{
		{Name: "files/metadata of the host's files", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			r.attack("metadata", filepath.Join(r.host, "secret"))
			r.Works()
		}},
		{Name: "files/a checkout that runs share", Brief: true, Make: func(s *Suite) {
			l, ok := sandboxes.As[sandboxes.Layerer](s.Provider)
			if !ok || l.Layers(s.Bounded(), s.TempDir()) != nil {
				s.NotHere()
				return
			}
			s.layered = true
			r := s.open(nil)
			before := r.readLowerFolders()
			r.attack("lower")
			r.checkUnchanged()
			if err := r.Close(s.Bounded()); err != nil {
				s.Error(err)
			}
			r.enter() // forged attributes apply from this mount on, if at all
			out, _, err := r.Sh(`cat evil/own; ls -A evil; cat evil/secret evil-file "$1/secret"; ls -d whiteout; cat alias-work alias-made`, r.host)
			own := strings.HasPrefix(out, "own\nown\n") && strings.Contains(out, "\nwhiteout\nchanged\nchanged\n")
			if err != nil || !own || strings.Contains(out, secret) {
				s.Errorf("with forged attributes the worktree is %q, %v", out, err)
			}
			if after := r.readLowerFolders(); after != before {
				s.Errorf("the shared checkout was %s and is %s", before, after)
			}
			r.checkUnchanged()
		}},
		{Name: "files/mounts that would open the sandbox", Brief: true, Make: func(s *Suite) {
			r := s.open(nil) // the spec opens without these mounts
			mounts := []sandboxes.Mount{
				{Host: "/usr", Inside: "/"}, {Host: "/usr", Inside: "/proc/self"}, {Host: "/usr", Inside: "relative"},
			}
			for _, host := range []string{"/", "/proc", "/dev", "/run", "/sys", "/proc/self/root", "/dev/null", "/no/such/path"} {
				m := sandboxes.Mount{Host: host, Inside: "/host"}
				if s.inPlace() {
					m.Inside = host
				}
				mounts = append(mounts, m)
			}
			for _, m := range mounts {
				spec := r.spec
				spec.Run, spec.Mounts = "escape-mounts", []sandboxes.Mount{m}
				box, err := s.Provider.Open(s.Bounded(), spec)
				if err == nil {
					s.Errorf("%+v is accepted", m)
					_ = box.Close(s.Bounded())
				}
			}
		}},
	}
}

// attackMetadata tries all operations on a file that need no permission to open it.
func attackMetadata(a *attempt, args []string) {
	path := args[0]
	a.expectError("chmod", os.Chmod(path, 0o640))
	a.expectError("chown", os.Lchown(path, os.Getuid(), os.Getgid()))
	a.expectError("set the times", os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	a.expectError("watch", watch(path))
	a.expectError("set an attribute", unix.Setxattr(path, "user.planted", []byte("x"), 0))
	a.expectError("link", os.Link(path, "stolen"))
	a.expectError("rename", os.Rename(path, path+".moved"))
	a.expectError("truncate", os.Truncate(path, 0))
}

// watch adds an inotify watch on a file. Another attack as the same user may hold all instances or watches; then it waits
// for one.
func watch(path string) error {
	for limit := time.Now().Add(time.Minute); ; {
		notify, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err == nil {
			_, err = unix.InotifyAddWatch(notify, path, unix.IN_ALL_EVENTS)
			_ = unix.Close(notify)
		}
		if err != unix.EMFILE && err != unix.ENOSPC || time.Now().After(limit) {
			return err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// readLowerFolders returns everything visible of the shared checkout and of the folder of setup.
func (r *Room) readLowerFolders() string {
	r.Helper()
	var all strings.Builder
	for _, path := range append(r.lowerFiles(), r.spec.Lower, r.spec.Setup) {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			r.Fatal(err)
		}
		names := make([]byte, 1<<10)
		n, _ := unix.Llistxattr(path, names) // fails if the file system has no attributes
		fmt.Fprintf(&all, "%o %d %d %d %v %q; ", st.Mode, st.Uid, st.Nlink, st.Size, st.Mtim, names[:max(n, 0)])
	}
	return all.String()
}

// attackLower tries to change the worktree's lower folders, and forges overlayfs attributes.
func attackLower(a *attempt, _ []string) {
	_ = os.Mkdir("evil", 0o700)
	for name, text := range map[string]string{"evil/own": "own\n", "evil-file": "evil\n", "whiteout": ""} {
		_ = os.WriteFile(name, []byte(text), 0o600)
	}
	for _, path := range []string{".", "evil", "evil-file", "whiteout", "work", "made"} {
		for name, value := range map[string]string{
			"opaque":     "y",
			"redirect":   "/../../other",
			"metacopy":   "",
			"whiteout":   "y",
			"origin":     "x",
			"impure":     "y",
			"nlink":      "U+9",
			"xwhiteouts": "y",
		} {
			_ = unix.Setxattr(path, "user.overlay."+name, []byte(value), 0) // inside, these are ordinary attributes
			a.expectError("set trusted."+name, unix.Setxattr(path, "trusted.overlay."+name, []byte(value), 0))
		}
	}
	a.expectError("make a whiteout", unix.Mknod("hidden", unix.S_IFCHR, 0))
	for _, file := range []string{"work", "made"} {
		attackLowerFile(a, file)
	}
	a.expectError("unmount", unix.Unmount(".", unix.MNT_DETACH))
	a.expectError("remount", unix.Mount("", ".", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	a.expectError("mount another", unix.Mount("overlay", "evil", "overlay", 0, "lowerdir=.:evil"))
	_, err := unix.OpenTree(unix.AT_FDCWD, ".", unix.OPEN_TREE_CLONE)
	a.expectError("clone the mount", err)
	for _, path := range []string{"/.lower", "/.setup", "/.upper", "/proc/1/fd", "../work"} {
		_, err := os.ReadDir(path)
		a.expectError("look into "+path, err)
	}
}

// attackLowerFile changes the run's own copy of a file. The suite checks that nothing else changes.
func attackLowerFile(a *attempt, file string) {
	linked, alias := "linked-"+file, "alias-"+file
	_ = os.Link(file, linked)
	_ = os.Symlink(file, alias)
	if in, err := os.Open(file); err == nil {
		if out, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", in.Fd()), os.O_RDWR, 0); err == nil {
			_, _ = out.WriteString("changed\n")
			_ = out.Close()
		}
		_, err = in.WriteString("x")
		a.expectError("write to a file that is open for reading", err)
		a.expectError("allocate", unix.Fallocate(int(in.Fd()), 0, 0, 1<<16))
		_ = in.Close()
	}
	_ = os.WriteFile(linked, []byte("changed\n"), 0o600)
	_ = os.WriteFile(alias, []byte("changed\n"), 0o600)
	_ = os.Chmod(file, 0o777)
	_ = os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0))
	_ = os.Rename(file, "moved")
	_ = os.Rename("moved", file)
	if handle, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, file, 0); err == nil {
		_, err := unix.OpenByHandleAt(mount, handle, unix.O_RDWR)
		a.expectError("open a file by its handle", err)
	}
}
