package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	forges "github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/gitlab"
	"github.com/ralph-pool/ralph/tracker/token"
	"github.com/ralph-pool/ralph/tracker/trackertest"
	"github.com/ralph-pool/ralph/worktree"
)

// size is the amount of work and disturbance for the machines.
type size struct{ issues, kills, rounds int } // rounds: how often each fault occurs

func machineSize() size {
	if everything() {
		return size{30, 8, 2}
	}
	return size{12, 4, 1}
}

// Three machines, each with its own clone, journal and state, empty one backlog while calls to the forge fail in twenty ways and
// sweeps are cancelled or killed. In the end each issue has one request, one report and the right labels, the claim's record has
// the actual work and cost of the agents, and an idle sweep costs what the documentation says. `make soak` has more of everything.
func TestMachinesOnOneForge(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, repository) forge{"GitHub": onGitHub, "GitLab": onGitLab} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := newScene(t, "issues: {}"), open(t, newRepository(t))
			b := &bills{cost: map[string]float64{}}
			titles := map[string]string{}
			for n := range machineSize().issues {
				title := []string{"Fail", "Fail once", "Pass"}[min(n%5, 2)]
				titles[f.issue(fmt.Sprintf("%s %d", title, n), "Please.")] = title
			}
			var machines []*machine
			var clones []repository
			for range 3 {
				m := newMachine(t, s, f, b)
				machines, clones = append(machines, m), append(clones, m.clone)
			}
			d := disturb(t, f, machines)
			var all sync.WaitGroup
			for _, m := range machines {
				all.Go(func() { m.untilQuiet(t, d) })
			}
			all.Wait()
			d.stop(t, f)
			bury(t, f.bare)
			for _, m := range machines {
				m.untilQuiet(t, nil)
			}
			records, err := machines[0].config.Run.Repo.Claims(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var requests []string
			for key, title := range titles {
				checkWorked(t, f, key, title)
				if title != "Fail" {
					requests = append(requests, "ralph/"+key)
				}
				r := records[key].Record
				if r.Spend.CostUSD != b.cost[key] {
					t.Errorf("#%s (%s): the record says %v USD, the agents have spent %v", key, title, r.Spend.CostUSD, b.cost[key])
				}
				if n := failures(t, machines, key); title == "Fail" && (r.Attempts != n || n != 3) {
					t.Errorf("#%s: the record says %d attempts, %d runs have failed; want 3", key, r.Attempts, n)
				}
			}
			var got []string
			for _, r := range f.requests() {
				branch, _, _ := strings.Cut(r, ":")
				got = append(got, branch)
			}
			slices.Sort(got)
			slices.Sort(requests)
			if !slices.Equal(got, requests) {
				t.Errorf("requests of %q, want %q", got, requests)
			}
			checkIdle(t, name, f, machines, len(requests))
			s.clean(t, clones...)
		})
	}
}

// failures counts the failed runs of an issue on all machines.
func failures(t *testing.T, machines []*machine, key string) (n int) {
	t.Helper()
	for _, m := range machines {
		runs, err := m.config.Run.Store.Find(t.Context(), journal.Query{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs { // a fault of the forge before the agent starts uses up no attempt
			if r.Verdict.Outcome == journal.Failed && len(r.Facts.Iterations) > 0 {
				n++
			}
		}
	}
	return n
}

// bury makes the remaining claims look like those of a dead process. A sweep that is cancelled while it claims may leave a
// claim, and here its process stays alive.
func bury(t *testing.T, r repository) {
	t.Helper()
	const deadPID = 1 << 30 // above the maximum of Linux and macOS
	live := regexp.MustCompile(`"pid":[1-9][0-9]*`)
	for _, ref := range r.lines(t, "for-each-ref", "--format=%(refname)", "refs/ralph/claims") {
		dead := live.ReplaceAllString(r.git(t, "cat-file", "commit", ref)+"\n", fmt.Sprintf(`"pid":%d`, deadPID))
		path := filepath.Join(t.TempDir(), "claim")
		if err := os.WriteFile(path, []byte(dead), 0o600); err != nil {
			t.Fatal(err)
		}
		r.git(t, "update-ref", ref, r.git(t, "hash-object", "-t", "commit", "-w", path))
	}
}

// checkWorked checks an issue as people see it.
func checkWorked(t *testing.T, f forge, key, title string) {
	t.Helper()
	outcome, label := "succeeded", "in-review"
	if title == "Fail" {
		outcome, label = "failed", "needs-human"
	}
	text := f.report(key)
	if n := strings.Count(text, "\n=====\n") + 1; n != 1 || strings.Count(text, "**ralph: "+outcome+"**") != 1 {
		t.Errorf("#%s (%s): %d reports, want one of %s:\n%s", key, title, n, outcome, text)
	}
	labels := f.labels(key)
	if !slices.Contains(labels, label) || slices.Contains(labels, "no-human") == (outcome == "succeeded") {
		t.Errorf("#%s (%s): labels %q", key, title, labels)
	}
}

// checkIdle checks that idle sweeps cost what the documentation says, each the same.
func checkIdle(t *testing.T, column string, f forge, machines []*machine, requests int) {
	t.Helper()
	stated := trackertest.Costs(t, "../docs/forges.md", column)
	most := stated["the same, with labelled issues"] + requests*stated["an open request of ralph's, in each sweep"] + 2 // requests for the base branch
	for _, m := range machines {
		first := 0
		for n := range 3 {
			f.server.Calls()
			if _, err := m.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			calls := f.apiCalls()
			if n == 1 {
				first = calls
			}
			if calls > most || n > 1 && calls != first {
				t.Errorf("idle sweep %d costs %d requests, the one before %d; at most %d are documented", n+1, calls, first, most)
			}
		}
	}
}

// apiCalls counts the calls to the API since the previous call of Calls.
func (f forge) apiCalls() (n int) {
	for _, c := range f.server.Calls() {
		if !c.Git() {
			n++
		}
	}
	return n
}

// bills has the costs that agents report, by issue.
type bills struct {
	mu   sync.Mutex
	cost map[string]float64 // guarded by mu
}

// billed is an agent that prints "spent KEY" for each dollar.
type billed struct {
	agents.Command
	bills *bills
}

func (b billed) NewDecoder() agents.Decoder {
	return &billedDecoder{Decoder: b.Command.NewDecoder(), bills: b.bills}
}

type billedDecoder struct {
	agents.Decoder
	bills *bills
	cost  float64
}

var spentLine = regexp.MustCompile(`^spent (\S+)$`)

func (d *billedDecoder) Line(line []byte) []agents.Event {
	if m := spentLine.FindSubmatch(line); m != nil {
		d.cost++
		d.bills.mu.Lock()
		d.bills.cost[string(m[1])]++
		d.bills.mu.Unlock()
	}
	return d.Decoder.Line(line)
}

func (d *billedDecoder) Finish(e agents.Ending) agents.Report {
	r := d.Decoder.Finish(e)
	r.Usage = agents.Usage{CostUSD: d.cost}
	return r
}

// billedScript is the agent's program. DIR is a folder for its state.
const billedScript = `cat >/dev/null
echo "spent $RALPH_ISSUE_KEY"
case "$RALPH_ISSUE_TITLE" in
"Fail once"*) [ -f DIR/failed-$RALPH_ISSUE_KEY ] || { : >DIR/failed-$RALPH_ISSUE_KEY; exit 1; };;
Fail*) exit 1;;
esac
[ -f work-$RALPH_ISSUE_KEY ] || { echo x >work-$RALPH_ISSUE_KEY; git add --all; git commit --quiet --message "Do $RALPH_ISSUE_KEY"; }
echo "<promise>COMPLETE</promise>"`

// machine is a pool with its own clone, state folder and journal.
type machine struct {
	config pool.Config
	clone  repository

	mu   sync.Mutex
	stop func(kill bool) // guarded by mu; ends the current sweep; nil: none
}

func newMachine(t *testing.T, s scene, f forge, b *bills) *machine {
	t.Helper()
	m := &machine{clone: f.bare.clone(t)} // over HTTP git would take most of the time
	m.clone.git(t, "config", "user.name", "Ada")
	m.clone.git(t, "config", "user.email", "ada@example.invalid")
	state := t.TempDir()
	_, secret, _ := strings.Cut(f.env[0], "=")
	settings := tracker.Settings{
		Project: f.remote, Token: token.Fixed(secret), StateDir: state, MarkerKey: []byte("a key of machine " + state),
	}
	var backlog tracker.Tracker
	var closer interface{ Close() error }
	if f.hub != nil {
		settings.BaseURL = f.hub.BaseURL()
		g, err := github.New(forges.Config{Settings: settings, HTTP: transport.Config{Clock: f.hub.Clock()}})
		if err != nil {
			t.Fatal(err)
		}
		backlog, closer = g, g
	} else {
		settings.BaseURL = f.lab.URL
		g, err := gitlab.New(forges.Config{Settings: settings, HTTP: transport.Config{Clock: forgetest.NewClock()}})
		if err != nil {
			t.Fatal(err)
		}
		backlog, closer = g, g
	}
	t.Cleanup(func() {
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	})
	repo, err := worktree.Open(t.Context(), string(m.clone), worktree.Options{StateDir: state, Remote: "origin"})
	if err != nil {
		t.Fatal(err)
	}
	m.config = pool.Config{
		Run: run.Config{
			Repo: repo, Store: &journaltest.Memory{}, Tracker: backlog, Env: []string{s.mark},
			Agent: billed{bills: b}, Options: agents.Options{Command: []string{"sh", "-c", strings.ReplaceAll(billedScript, "DIR", s.dir)}},
			Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}), MaxIterations: 1,
			Retry: journal.Limits{MaxAttempts: 3, Backoff: -1}, ClaimTTL: time.Minute,
		},
		Parallel: 2, MinFree: -1,
	}
	return m
}

// sweep runs one sweep of a new pool, like a newly started program.
func (m *machine) sweep(ctx context.Context) (pool.Summary, error) {
	p, err := pool.New(m.config)
	if err != nil {
		return pool.Summary{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	m.stop = func(kill bool) {
		if kill {
			p.Kill()
		}
		cancel()
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.stop = nil
		m.mu.Unlock()
		cancel()
	}()
	return p.Sweep(ctx)
}

// untilQuiet sweeps until a sweep finds nothing to do and no problem. d may be nil.
func (m *machine) untilQuiet(t *testing.T, d *disturber) {
	for range 100 {
		s, err := m.sweep(t.Context())
		if err != nil || s.Unavailable != nil || s.Interrupted || len(s.Broken) > 0 {
			t.Logf("%s: %v, unavailable %v, broken %v", filepath.Base(filepath.Dir(string(m.clone))), err, s.Unavailable, s.Broken)
			if d == nil {
				t.Errorf("an undisturbed sweep: %v, unavailable %v, interrupted %v, broken %v", err, s.Unavailable, s.Interrupted, s.Broken)
			}
			continue
		}
		if len(s.Runs) == 0 {
			return
		}
	}
	t.Error("after 100 sweeps there is still something to do")
}

// disturber makes random calls fail and ends sweeps.
type disturber struct {
	mu       sync.Mutex
	random   *rand.Rand
	machines []*machine
	faults   []fault // remaining faults
	kills    int     // remaining kills
	calls    int     // number of calls until the next fault
	ending   sync.WaitGroup
}

func disturb(t *testing.T, f forge, machines []*machine) *disturber {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := &disturber{random: rand.New(rand.NewPCG(seed, 0)), machines: machines, kills: machineSize().kills}
	for range machineSize().rounds {
		d.faults = slices.Concat(d.faults, faults(), moreFaults())
	}
	d.random.Shuffle(len(d.faults), func(i, j int) { d.faults[i], d.faults[j] = d.faults[j], d.faults[i] })
	f.server.Inject(func(c forgetest.Call) *forgetest.Fault {
		if c.Git() {
			return nil
		}
		if f := d.next(); f != nil {
			return &f.is
		}
		return nil
	})
	return d
}

// next returns what happens to the current call.
func (d *disturber) next() *fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls--; d.calls > 0 || len(d.faults) == 0 {
		return nil
	}
	d.calls = 4 + d.random.IntN(8)
	if d.random.IntN(len(d.faults)) < d.kills { // spreads the kills evenly over the faults
		d.kills--
		m, kill := d.machines[d.random.IntN(len(d.machines))], d.random.IntN(2) == 0
		d.ending.Go(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.stop != nil {
				m.stop(kill)
			}
		})
	}
	f := d.faults[0]
	d.faults = d.faults[1:]
	return &f
}

// stop ends the disturbances and checks that all have occurred.
func (d *disturber) stop(t *testing.T, f forge) {
	t.Helper()
	f.server.Inject(nil)
	d.ending.Wait()
	if len(d.faults) > 0 || d.kills > 0 {
		t.Errorf("%d faults and %d kills did not come", len(d.faults), d.kills)
	}
}
