package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	soakSeed   = 1  // default of the short version
	soakShort  = 13 // faults of the short version
	soakIssues = 4
	soakCalls  = 40 // minimum number of git calls of two sweeps over soakIssues
	soakRounds = 8  // maximum number of sweeps of each clone until nothing is left to do
)

// Faults at random moments of whole sweeps, each in a separate place. Two clones of one remote are swept concurrently when
// the fault occurs, and then repeatedly until nothing is left to do. Then plain git must find everything in order.
// SOAK_FAULTS is the number of faults (default: a short version), SOAK_SEED determines where and when they occur,
// SOAK_ONLY=N repeats one of them.
func TestSoak(t *testing.T) {
	t.Parallel()
	kinds := soakFaults()
	seed, count, only := soakNumber(t, "SOAK_SEED", soakSeed), soakNumber(t, "SOAK_FAULTS", soakShort), soakNumber(t, "SOAK_ONLY", 0)
	t.Logf("SOAK_SEED=%d", seed)
	for n := 1; n <= max(count, only); n++ {
		if only != 0 && n != only {
			continue
		}
		kind := kinds[(n-1)%len(kinds)]
		t.Run(fmt.Sprintf("%03d %s", n, kind.name), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("seed %d, fault %d; to run it again: make soak SOAK_SEED=%d SOAK_ONLY=%d", seed, n, seed, n)
				}
			})
			k := newSoak(t, rand.New(rand.NewPCG(uint64(seed), uint64(n))), kind.disk)
			k.disturb(t, kind)
			k.untilQuiet(t)
			k.check(t)
		})
	}
}

// soakNumber reads a number from the environment.
func soakNumber(t *testing.T, name string, unset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// soak is the place for one fault.
type soak struct {
	scene

	random *rand.Rand
	dir    string // disk of clones, remote, state and temporary files
	clones []repository
	remote repository
	keys   []string

	ralphs []*ralph      // the disturbed sweeps, one per clone
	ended  chan struct{} // closed when they have ended
}

// soakAgent commits once, continues from a killed agent's commit, and logs its start, commit and end.
const soakAgent = `
issues:
  "*":
    - - alone: DIR/alone-{{key}}
      - run: echo "start $RALPH_ISSUE_KEY $PPID" >>DIR/log
      - run: >
          test -f "$RALPH_ISSUE_KEY.txt" || {
          echo x >"$RALPH_ISSUE_KEY.txt" && git add --all && git commit --quiet --message "Do $RALPH_ISSUE_KEY" &&
          echo "commit $RALPH_ISSUE_KEY $(git rev-parse HEAD)" >>DIR/log; }
      - run: echo "end $RALPH_ISSUE_KEY $PPID" >>DIR/log
      - say: <promise>COMPLETE</promise>
`

// gitLog precedes git in the PATH. It logs its process id for each call, and then becomes git.
const gitLog = "#!/bin/sh\necho $$ >>'%s'\nexec '%s' \"$@\"\n"

func newSoak(t *testing.T, random *rand.Rand, small bool) *soak {
	t.Helper()
	k := &soak{random: random, ended: make(chan struct{})}
	k.scene = newScene(t, "issues: {}")
	if err := os.WriteFile(k.path("agent.yaml"), []byte(strings.ReplaceAll(soakAgent, "DIR", k.scene.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(k.path("bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(k.path("bin/git"), fmt.Appendf(nil, gitLog, k.path("calls"), git), 0o700); err != nil {
		t.Fatal(err)
	}
	k.dir = k.path("disk")
	if small {
		smallDisk(t, k.dir, "64")
	}
	if err := os.MkdirAll(filepath.Join(k.dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.fill(t)
	return k
}

// fill creates the remote and the clones. Their backlogs are not in git, so that the checkouts stay clean.
func (k *soak) fill(t *testing.T) {
	t.Helper()
	first, second := repository(filepath.Join(k.dir, "first")), repository(filepath.Join(k.dir, "second"))
	k.clones, k.remote = []repository{first, second}, repository(filepath.Join(k.dir, "remote.git"))
	if err := os.Mkdir(string(first), 0o700); err != nil {
		t.Fatal(err)
	}
	first.git(t, "init", "--quiet", "--initial-branch=main")
	first.write(t, ".gitignore", ".ralph/\n")
	first.commit(t, "start")
	first.git(t, "init", "--quiet", "--bare", "--initial-branch=main", string(k.remote))
	first.git(t, "remote", "add", "origin", string(k.remote))
	first.git(t, "push", "--quiet", "--set-upstream", "origin", "main")
	first.git(t, "clone", "--quiet", string(k.remote), string(second))
	for n := range soakIssues {
		key := fmt.Sprintf("issue-%d", n+1)
		k.keys = append(k.keys, key)
		for _, r := range k.clones {
			r.write(t, ".ralph/backlog/"+key+".md", "---\ntitle: Do "+key+"\nlabels: [no-human]\nstate: open\n---\n")
		}
	}
}

// sweepIn starts a sweep of a clone.
func (k *soak) sweepIn(t *testing.T, r repository) *ralph {
	t.Helper()
	return k.ralphIn(t, r, nil, "work", "--parallel", "2")
}

// ralphIn starts a ralph process in a clone.
func (k *soak) ralphIn(t *testing.T, r repository, env []string, args ...string) *ralph {
	t.Helper()
	return k.start(t, r, append([]string{
		"PATH=" + k.path("bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"XDG_STATE_HOME=" + filepath.Join(k.dir, "state"), "TMPDIR=" + filepath.Join(k.dir, "tmp"),
		"RALPH_RETRY_BACKOFF=1ms", "RALPH_RETRY_BACKOFF_MAX=1ms", "RALPH_MIN_FREE_MB=0", "RALPH_BASE=main",
	}, env...), args...)
}

// disturb sweeps both clones concurrently, applies the fault, and returns when the sweeps have ended and the fault is over.
func (k *soak) disturb(t *testing.T, f soakFault) {
	t.Helper()
	if f.before != nil {
		f.before(t, k)
	}
	var sweeps sync.WaitGroup
	for _, r := range k.clones {
		p := k.sweepIn(t, r)
		k.ralphs = append(k.ralphs, p)
		sweeps.Go(func() { p.end(t) })
	}
	go func() { sweeps.Wait(); close(k.ended) }()
	at := 1 + k.random.IntN(soakCalls)
	pid, ok := k.awaitCall(at)
	if !ok && f.strike != nil {
		t.Errorf("the sweeps ended before call %d of git", at)
	} else if ok && f.strike != nil {
		f.strike(t, k, pid)
	}
	<-k.ended
	if f.after != nil {
		f.after(t, k)
	}
}

// awaitCall waits for the n-th call of git and returns its process. It returns false if the sweeps end first.
func (k *soak) awaitCall(n int) (pid int, ok bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		over := k.over()
		if pids := strings.Fields(k.read("calls")); len(pids) >= n {
			pid, err := strconv.Atoi(pids[n-1])
			return pid, err == nil
		}
		if over {
			return 0, false
		}
		<-tick.C
	}
}

// calls returns the number of git calls so far.
func (k *soak) calls() int { return len(strings.Fields(k.read("calls"))) }

// over reports whether the disturbed sweeps have ended.
func (k *soak) over() bool {
	select {
	case <-k.ended:
		return true
	default:
		return false
	}
}

// read returns the text of a log; a missing one is empty.
func (k *soak) read(name string) string {
	b, _ := os.ReadFile(k.path(name))
	return string(b)
}

// untilQuiet sweeps the clones in turn until both have nothing to do.
func (k *soak) untilQuiet(t *testing.T) {
	t.Helper()
	for range soakRounds {
		quiet, log := true, k.read("log")
		for _, r := range k.clones {
			k.age(t)
			p := k.sweepIn(t, r)
			quiet = p.end(t) == 0 && quiet && !strings.Contains(p.out.String(), "left to the next sweep")
		}
		if quiet && k.read("log") == log {
			return
		}
	}
	t.Errorf("after %d sweeps of each clone there is still something to do", soakRounds)
}
