package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// soakFault is a kind of fault.
type soakFault struct {
	name   string
	disk   bool                         // needs a small disk
	before func(*testing.T, *soak)      // before the sweeps start
	strike func(*testing.T, *soak, int) // during the sweeps: a call of git has just started, in this process
	after  func(*testing.T, *soak)      // after they have ended
}

// soakFaults returns all faults, those of the short version first.
func soakFaults() []soakFault {
	return []soakFault{
		{name: "kill ralph", strike: func(t *testing.T, k *soak, _ int) { k.kill(t, k.victim().Process.Pid) }},
		{name: "kill git", strike: func(t *testing.T, k *soak, pid int) { k.kill(t, pid) }},
		{name: "kill any process", strike: func(t *testing.T, k *soak, _ int) {
			if all := k.local(t); len(all) > 0 {
				k.kill(t, all[k.random.IntN(len(all))].pid)
			}
		}},
		{name: "kill the group", strike: func(t *testing.T, k *soak, _ int) { k.kill(t, -k.victim().Process.Pid) }},
		{name: "kill everything", strike: killEverything},
		{name: "full disk", disk: true, strike: fillDisk, after: func(t *testing.T, k *soak) { k.remove(t, "filler") }},
		{name: "few descriptors", strike: fewDescriptors},
		{name: "stale locks", before: staleLocks, after: unmovedLocks},
		{name: "user checks out", strike: userRuns(
			"checkout --quiet -B topic", "checkout --quiet --detach", "checkout --quiet main")},
		{name: "user rebases", before: topicBranch, strike: userRuns(
			"checkout --quiet -B rebased topic", "rebase --quiet main", "checkout --quiet main")},
		// Without --prune=now: git documents that it destroys objects that others are writing.
		{name: "user collects garbage", strike: userRuns("gc --quiet", "pack-refs --all")},
		{name: "remote that declines", before: decline, after: func(t *testing.T, k *soak) { k.remove(t, "remote.git/hooks/pre-receive") }},
		{name: "remote that vanishes", strike: vanish},
		{name: "lost state of a killed ralph", strike: func(t *testing.T, k *soak, _ int) {
			k.kill(t, k.victim().Process.Pid)
			<-k.ended
			k.remove(t, "state")
		}},
		{name: "lost state of a running ralph", strike: func(t *testing.T, k *soak, _ int) { k.remove(t, "state") }},
	}
}

// victim is one of the disturbed ralph processes.
func (k *soak) victim() *ralph { return k.ralphs[k.random.IntN(len(k.ralphs))] }

// kill kills a process, or the process group for a negative id, if it still exists.
func (k *soak) kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("kill %d: %v", pid, err)
	}
}

// local lists the processes of ralph, agents and git, except git's processes on the remote's side.
func (k *soak) local(t *testing.T) []process {
	t.Helper()
	return slices.DeleteFunc(processesWith(t, k.mark), func(p process) bool {
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid))
		return strings.HasPrefix(dir, string(k.remote)) || strings.Contains(p.args, "-pack "+string(k.remote))
	})
}

// killEverything kills the ralph processes first, so that they start nothing more, and then everything that they have started.
func killEverything(t *testing.T, k *soak, _ int) {
	for _, p := range k.ralphs {
		k.kill(t, p.Process.Pid)
	}
	await(t, "the end of everything", func() bool {
		all := k.local(t)
		for _, p := range all {
			k.kill(t, p.pid)
		}
		return len(all) == 0
	})
}

// fillDisk fills the disk completely.
func fillDisk(t *testing.T, k *soak, _ int) {
	f, err := os.Create(filepath.Join(k.dir, "filler"))
	if err != nil {
		t.Log(err) // the disk was full already
		return
	}
	defer f.Close()
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if _, err := io.Copy(f, zero); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("fill the disk: %v", err)
	}
}

// fewDescriptors limits the file descriptors of a ralph process and of everything that it starts afterwards.
func fewDescriptors(t *testing.T, k *soak, _ int) {
	n := uint64(8 + k.random.IntN(32))
	err := unix.Prlimit(k.victim().Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}, nil)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// staleRefs are the refs that ralph moves in its clone for each issue.
var staleRefs = []string{"refs/heads/ralph/", "refs/ralph/work/"}

// staleLocks creates lock files on ralph's refs in both clones, like those that killed git processes leave.
func staleLocks(t *testing.T, k *soak) {
	for _, key := range k.keys {
		for _, r := range k.clones {
			path := filepath.Join(string(r), ".git", staleRefs[k.random.IntN(len(staleRefs))]+key+".lock")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	k.age(t)
}

// unmovedLocks removes the locks of issues that the clone has not worked, because nobody has moved their refs.
func unmovedLocks(t *testing.T, k *soak) {
	for _, r := range k.clones {
		for _, key := range k.keys {
			if _, err := r.try("rev-parse", "--verify", "--quiet", "refs/heads/ralph/"+key); err == nil {
				continue
			}
			for _, ref := range staleRefs {
				if err := os.RemoveAll(filepath.Join(string(r), ".git", ref+key+".lock")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// topicBranch creates a user's branch behind main in both clones.
func topicBranch(t *testing.T, k *soak) {
	for _, r := range k.clones {
		for _, name := range []string{"one", "two", "three"} {
			r.git(t, "checkout", "--quiet", "-B", "topic")
			r.write(t, name+".txt", name+"\n")
			r.commit(t, name)
		}
		r.git(t, "checkout", "--quiet", "main")
	}
	k.clones[0].write(t, "main.txt", "main\n")
	k.clones[0].commit(t, "more")
	k.clones[0].git(t, "push", "--quiet", "origin", "main")
	k.clones[1].git(t, "pull", "--quiet", "--ff-only")
}

// userRuns runs git commands of a user in both clones repeatedly while ralph works. Each must succeed, after a repetition if
// another git is just creating a worktree.
func userRuns(commands ...string) func(*testing.T, *soak, int) {
	return func(t *testing.T, k *soak, _ int) {
		for !k.over() {
			for _, c := range commands {
				for _, r := range k.clones {
					await(t, "the user's git "+c, func() bool {
						out, err := r.try(strings.Fields(c)...)
						if err != nil {
							t.Logf("the user's git %s: %v\n%s", c, err, out)
						}
						return err == nil
					})
				}
			}
		}
	}
}

// decline makes the remote reject some of the next pushes.
func decline(t *testing.T, k *soak) {
	var some []string
	for n := range 40 {
		if k.random.IntN(3) == 0 {
			some = append(some, fmt.Sprint(n+1))
		}
	}
	hook := fmt.Sprintf("#!/bin/sh\necho x >>'%[1]s'\ncase ' %[2]s ' in *\" $(grep -c x <'%[1]s') \"*)\n"+
		"  echo 'no room for this' >&2; exit 1;;\nesac\n", k.path("pushes"), strings.Join(some, " "))
	if err := os.WriteFile(filepath.Join(string(k.remote), "hooks", "pre-receive"), []byte(hook), 0o700); err != nil {
		t.Fatal(err)
	}
}

// vanish removes the remote for some calls of git, or until the sweeps have ended.
func vanish(t *testing.T, k *soak, _ int) {
	away, until := string(k.remote)+".away", k.calls()+1+k.random.IntN(40)
	if err := os.Rename(string(k.remote), away); err != nil {
		t.Fatal(err)
	}
	k.awaitCall(until)
	if err := os.Rename(away, string(k.remote)); err != nil {
		t.Fatal(err)
	}
}

// remove removes a part of the disk.
func (k *soak) remove(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(k.dir, name)
	await(t, path+" to be removed", func() bool { // a ralph process may write into it meanwhile
		err := os.RemoveAll(path)
		if err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			t.Fatal(err)
		}
		return err == nil
	})
}
