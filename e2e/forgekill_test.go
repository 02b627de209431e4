package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// commitOnce is an agent that continues from a killed agent's commit.
const commitOnce = `
issues:
  "*":
    - - run: test -f "work-$RALPH_ISSUE_KEY.txt" || { echo x > "work-$RALPH_ISSUE_KEY.txt" && git add --all && git commit --quiet --message "Do $RALPH_ISSUE_KEY"; }
      - say: <promise>COMPLETE</promise>
`

// Three ralph processes, each with its own clone of one project, are killed at random calls and restarted until nothing is
// left: each issue has succeeded once, with one commit, one request and one report of that, and none is stuck. `make soak`
// has more issues and kills.
func TestForgeKilledAtRandom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		open          func(*testing.T, repository) forge
		issues, kills int
	}{{"github", onGitHub, 10, 5}, {"gitlab", onGitLab, 8, 5}} {
		if everything() {
			c.issues, c.kills = 50, 15
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, f := newScene(t, commitOnce), c.open(t, newRepository(t))
			var keys []string
			for n := range c.issues {
				keys = append(keys, f.issue("Do "+strconv.Itoa(n+1), "Please."))
			}
			k := newKiller(t, f, 3, c.kills)
			var clones []repository
			var all sync.WaitGroup
			for i := range 3 {
				r := repository(filepath.Join(t.TempDir(), "clone"))
				clone(t, f, r)
				clones = append(clones, r)
				all.Go(func() { k.untilDone(t, s, f, r, i) })
			}
			all.Wait()
			if left := k.left(); left > 0 {
				t.Errorf("%d of %d kills did not come", left, c.kills)
			}
			bare := repository(t.TempDir())
			bare.git(t, "-c", "credential.helper=", "clone", "--quiet", "--mirror", withToken(f), ".")
			var want []string
			for _, key := range keys {
				want = append(want, "ralph/"+key+": Do "+key+" (draft false)")
				if got := bare.lines(t, "log", "--format=%s", "main..ralph/"+key); !slices.Equal(got, []string{"Do " + key}) {
					t.Errorf("#%s: commits %q, want one", key, got)
				}
				text := f.report(key)
				oneReportARun(t, text)
				if n := strings.Count(text, "**ralph: succeeded**"); n != 1 {
					t.Errorf("#%s: %d reports of success:\n%s", key, n, text)
				}
				if got := f.labels(key); !slices.Equal(got, []string{"in-review"}) {
					t.Errorf("#%s: labels %q", key, got)
				}
			}
			got := f.requests()
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("requests %q, want %q", got, want)
			}
			s.clean(t, append(clones, bare)...)
		})
	}
}

// killer kills random ralph processes at random calls to the forge.
type killer struct {
	mu      sync.Mutex
	random  *rand.Rand
	ralphs  []*os.Process // nil: not running
	pending int           // remaining kills
	calls   int           // number of calls until the next kill
}

func newKiller(t *testing.T, f forge, ralphs, kills int) *killer {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &killer{random: rand.New(rand.NewPCG(seed, 0)), ralphs: make([]*os.Process, ralphs), pending: kills}
	f.server.Inject(func(forgetest.Call) *forgetest.Fault { k.called(); return nil })
	return k
}

func (k *killer) called() {
	k.mu.Lock()
	defer k.mu.Unlock()
	victim := k.ralphs[k.random.IntN(len(k.ralphs))]
	if k.calls--; k.calls > 0 || k.pending == 0 || victim == nil {
		return
	}
	k.calls = 20 + k.random.IntN(40)
	k.pending--
	_ = victim.Kill() // it may have ended already
}

func (k *killer) left() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pending
}

func (k *killer) set(i int, p *os.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ralphs[i] = p
}

// untilDone sweeps the clone until a sweep ends by itself.
func (k *killer) untilDone(t *testing.T, s scene, f forge, r repository, i int) {
	env := append(slices.Clone(f.env), "RALPH_WRITE_SPACING=0s")
	for {
		p := s.start(t, r, env, append([]string{"work", "--parallel", "2"}, f.flags...)...)
		k.set(i, p.Process)
		status := p.end(t)
		k.set(i, nil)
		if status != -int(syscall.SIGKILL) {
			if status != 0 {
				t.Errorf("a sweep ends with status %d", status)
			}
			return
		}
	}
}
