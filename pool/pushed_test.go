package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// died has a machine die after its push, before it opens its request, and makes its claim look like that.
func (f *fixture) died(host *forge, bare string) {
	f.t.Helper()
	var m *mortalJournal
	host.opening = func() { m.kill() }
	if _, died := f.dieAt(0, false, func(j *mortalJournal) { m = j }); !died {
		f.t.Fatalf("ralph did not die:\n%s", f.text("a"))
	}
	host.opening = nil
	f.buryAll(bare)
}

// requests gives the fixture a forge with requests, and its remote.
func (f *fixture) requests() (host *forge, bare string) {
	f.t.Helper()
	bare = f.withRemote()
	host = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	f.Config.Run.Publish, f.Config.Run.Tracker, f.Config.Run.Gate = journal.PublishRequest, host, lines("true")
	return host, bare
}

// another returns another machine with the same remote. Its forge counts requests separately.
func (f *fixture) another(bare, agent string) (c *fixture, host *forge) {
	f.t.Helper()
	c = f.clone(bare, agent, "a")
	host = &forge{Tracker: c.Config.Run.Tracker, requests: map[string]int{}}
	c.Config.Run.Tracker, c.Config.Run.Gate = host, f.Config.Run.Gate
	return c, host
}

// forget gives the fixture an empty journal, like that of another machine with the same files.
func (f *fixture) forget() {
	f.store = &store{}
	f.Config.Run.Store = f.store
}

// ran returns an agent that only leaves a trace, and a function that reports whether it has run.
func ran(t *testing.T) (agent string, ran func() bool) {
	path := filepath.Join(t.TempDir(), "ran")
	return "touch " + path, func() bool { _, err := os.Stat(path); return err == nil }
}

// If a machine dies after its push, others do the rest, and none of them pays an agent for it again. The machine dies before it
// opens its request, or before it reports its outcome.
func TestDeathAfterThePush(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishRequest} {
		t.Run(string(publish), func(t *testing.T) {
			t.Parallel()
			f, host, bare := mortalFixture(t, publish)
			if publish == journal.PublishRequest {
				f.died(host, bare)
			} else if _, died := f.dieAt(slices.Index(savedStages(t, publish), journal.StagePublish)+2, false); !died {
				t.Fatal("ralph did not die")
			}
			f.buryAll(bare)
			tip := f.git(bare, "rev-parse", "ralph/a")
			agent, worked := ran(t)
			c, other := f.another(bare, agent)
			c.sweep(t.Context())
			if worked() {
				t.Error("an agent ran again")
			}
			if text := c.text("a"); strings.Count(text, "**ralph: succeeded**") != 1 {
				t.Errorf("it says:\n%s", text)
			}
			if got := f.git(bare, "rev-parse", "ralph/a"); got != tip {
				t.Errorf("the branch is at %s, was pushed as %s", got, tip)
			}
			if publish == journal.PublishRequest && other.requests["ralph/a"] != 1 {
				t.Errorf("requests %v", other.requests)
			}
			// When the machine is back, its record of the run says the same as the other machine's report.
			f.sweep(t.Context())
			want := journal.Succeeded
			if publish == journal.PublishRequest { // opened by a run of the other machine
				want = journal.Interrupted
			}
			if r := f.runs("a")[0]; r.Verdict.Outcome != want || r.Ended.IsZero() {
				t.Errorf("it ended as %+v at %s", r.Verdict, r.Ended)
			}
		})
	}
}

// A machine that cannot work the issue, for example without a program of the gate, leaves the pushed commits to the next one.
func TestPushedAndUnavailable(t *testing.T) {
	t.Parallel()
	f, host, bare := mortalFixture(t, journal.PublishRequest)
	f.died(host, bare)
	agent, worked := ran(t)
	c, _ := f.another(bare, agent)
	c.Config.Run.Gate = lines("no-such-program-here")
	if s := c.sweep(t.Context()); s.Unavailable == nil {
		t.Fatalf("%+v", s)
	}
	d, other := f.another(bare, agent)
	if got := outcomes(d.sweep(t.Context())); got["a"] != journal.Succeeded || other.requests["ralph/a"] != 1 || worked() {
		t.Errorf("%v, requests %v, an agent ran: %v", got, other.requests, worked())
	}
}

// If no gate runs on a clean checkout, pushed commits have to pass it there once.
func TestPushedWithoutACleanCheckout(t *testing.T) {
	t.Parallel()
	f, host, bare := mortalFixture(t, journal.PublishRequest)
	f.Config.Run.GateOn = config.GateOnWorktree
	f.died(host, bare)
	c, _ := f.another(bare, "exit 1")
	c.Config.Run.GateOn, c.Config.Run.Gate = config.GateOnWorktree, lines("false")
	if got := outcomes(c.sweep(t.Context())); got["a"] != journal.GateFailed {
		t.Errorf("%v", got)
	}
}

// A review that came meanwhile is answered by an agent.
func TestReviewOfWhatADeadMachinePushed(t *testing.T) {
	t.Parallel()
	f, _, bare := mortalFixture(t, journal.PublishRequest)
	stages := savedStages(t, journal.PublishRequest)
	if _, died := f.dieAt(slices.Index(stages, journal.StageReport), true); !died { // the request is open
		t.Fatal("ralph did not die")
	}
	f.buryAll(bare)
	c, host := f.another(bare, "echo x >z; git add z; git commit -qm renamed"+done)
	c.Config.Run.Tracker = &reviewedForge{forge: host, review: time.Now().Add(time.Hour)}
	s := c.sweep(t.Context())
	if len(s.Runs) != 1 || len(s.Runs[0].Facts.Iterations) != 1 || s.Runs[0].FollowUp != string(tracker.ChangesRequested) {
		t.Errorf("%+v", s)
	}
}

// A round that a machine has pushed but not reported to the forge is reported by another one, and counted once.
func TestRoundOfADeadMachine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	host, bare := f.requests()
	review := &reviewedForge{forge: host}
	f.Config.Run.Tracker = review
	f.issue("a")
	review.review = f.one().Ended
	review.review = review.review.Add(time.Nanosecond)
	f.died(host, bare)
	before := host.requests["ralph/a"]
	f.forget()
	r := f.one()
	if r.FollowUp == "" || len(r.Facts.Iterations) > 0 || host.requests["ralph/a"] != before+1 {
		t.Errorf("%+v; requests %v", r, host.requests)
	}
	claims, err := f.Config.Run.Repo.Claims(t.Context())
	if d := claims["a"].Record; err != nil || d.Rounds != 1 || d.Passed != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

// An answered question is not asked again because the machine that knew the answer has died.
func TestAnsweredQuestionOfADeadMachine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `test -f "$NOTES" || { touch "$NOTES"; echo '<needs-info>which?</needs-info>'; exit 0; }; `+commits)
	f.Config.Run.Env = append(os.Environ(), "NOTES="+filepath.Join(t.TempDir(), "asked"))
	host, bare := f.requests()
	f.issue("a")
	if v := f.one().Verdict; v.Outcome != journal.NeedsInfo {
		t.Fatalf("%+v", v)
	}
	f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "Please do a.", "Please do a, the red one.", 1))
	f.died(host, bare)
	f.forget()
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || len(r.Facts.Iterations) > 0 || host.requests["ralph/a"] != 1 {
		t.Errorf("%+v; requests %v", r, host.requests)
	}
}

// unapprovedForge is a forge on which no person has set a label.
type unapprovedForge struct{ *forge }

func (unapprovedForge) Approved(_ context.Context, _ tracker.Issue, label string) (string, error) {
	return "ralph", &tracker.UnapprovedError{Kind: tracker.LabelUntrusted, Label: label, Why: tracker.OwnAccount}
}

// Another machine publishes a run that a command has requested, and for which ralph itself has set the label. The command takes
// effect once.
func TestCommandToADeadMachine(t *testing.T) {
	t.Parallel()
	for _, verb := range []tracker.Verb{tracker.Retry, tracker.Fresh} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			host, bare := f.requests()
			f.issue("a")
			f.one()
			f.Config.Run.Tracker = unapprovedForge{host}
			if err := f.pool().Requeue(t.Context(), "a", "me", verb, ""); err != nil {
				t.Fatal(err)
			}
			f.died(host, bare)
			tip := f.git(bare, "rev-parse", "ralph/a")
			f.forget()
			if r := f.one(); len(r.Facts.Iterations) > 0 || r.Tip != tip || host.requests["ralph/a"] != 2 {
				t.Errorf("%+v; requests %v", r, host.requests)
			}
		})
	}
}

// A retry of work that a dead machine has pushed pays no agent again.
func TestRetryOfWhatADeadMachinePushed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	host, bare := f.requests()
	f.issue("a")
	f.died(host, bare)
	tip := f.git(bare, "rev-parse", "ralph/a")
	f.forget()
	if err := f.pool().Requeue(t.Context(), "a", "me", tracker.Retry, ""); err != nil {
		t.Fatal(err)
	}
	if r := f.one(); len(r.Facts.Iterations) > 0 || r.Tip != tip || host.requests["ralph/a"] != 1 {
		t.Errorf("%d iterations, %+v; requests %v", len(r.Facts.Iterations), r.Verdict, host.requests)
	}
}

// Commits that a reviewer has refused are not passed on: another review might accept them.
func TestRefusedReviewOfADeadMachine(t *testing.T) {
	t.Parallel()
	f := newFixture(t, listens)
	host, bare := f.requests()
	f.withReviewer(no, -1)
	f.died(host, bare)
	claims, err := f.Config.Run.Repo.Claims(t.Context())
	if d := claims["a"].Record; err != nil || d.Passed != nil {
		t.Errorf("%+v, %v", d, err)
	}
	agent, worked := ran(t)
	c, _ := f.another(bare, agent+done)
	c.Config.Run.Review = run.Reviewer{Agent: agents.Command{}, Options: agents.Options{Command: []string{"sh", "-c", yes}}}
	if c.sweep(t.Context()); !worked() {
		t.Error("it was published without the agent")
	}
}

// takenBy has another machine hold the claim of issue a.
func (f *fixture) takenBy(bare, run string) {
	f.t.Helper()
	f.git(bare, "update-ref", "-d", "refs/ralph/claims/a")
	ctx := context.WithoutCancel(f.t.Context())
	if _, err := f.Config.Run.Repo.Claim(ctx, "a", worktree.Holder{Owner: "elsewhere/1/x", Run: run}, time.Hour); err != nil {
		f.t.Error(err)
	}
}

// A machine that has lost the claim before its push publishes, reports and decides nothing, whatever else has changed.
func TestClaimLostBeforeThePush(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		gate  string
		moved bool
	}{"a success": {"true", false}, "a draft": {"false", false}, "its branch has moved, too": {"true", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			_, bare := f.requests()
			f.Config.Run.Gate = lines(test.gate)
			f.issue("a")
			f.onStage(journal.StagePublish, func(journal.Record) {
				f.takenBy(bare, "of-another-clone")
				if test.moved {
					f.git(bare, "update-ref", "refs/heads/ralph/a", "refs/heads/main")
				}
			})
			if r := f.one(); r.Verdict.Outcome != journal.Interrupted || r.Verdict.Reason.Code != journal.ReasonClaimLost {
				t.Errorf("%+v, %q", r.Verdict, r.Warnings)
			}
			if at := f.git(bare, "for-each-ref", "--format=%(objectname)", "refs/heads/ralph/a"); at != "" && at != f.git(bare, "rev-parse", "main") {
				t.Errorf("the branch is at %s", at)
			}
			if l := f.labels("a"); strings.Contains(l, "needs-human") || strings.Contains(l, "in-review") {
				t.Errorf("labels %s", l)
			}
		})
	}
}

// If a person has pushed to the branch before its request was opened, the request is still opened.
func TestPersonPushesBeforeTheRequest(t *testing.T) {
	t.Parallel()
	f, host, bare := mortalFixture(t, journal.PublishRequest)
	host.mu.Lock()
	host.err, host.failed, host.forever = &tracker.UnavailableError{Err: errors.New("away")}, "request", true
	host.mu.Unlock()
	if s := f.sweep(t.Context()); s.Unavailable == nil {
		t.Fatalf("%+v", s)
	}
	f.git(bare, "update-ref", "refs/heads/ralph/a", f.git(bare, "commit-tree", "-p", "ralph/a", "-m", "mine", "ralph/a^{tree}"))
	host.mu.Lock()
	host.failed, host.forever = "", false
	host.mu.Unlock()
	f.buryAll(bare)
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || len(r.Facts.Iterations) != 1 || host.requests["ralph/a"] != 1 {
		t.Errorf("%+v; requests %v", r, host.requests)
	}
}

// fullDiskJournal is a journal on a disk that is full once a stage has begun.
type fullDiskJournal struct {
	*journaltest.Memory
	at   journal.Stage
	full atomic.Bool
}

func (m *fullDiskJournal) Save(ctx context.Context, r journal.Record) error {
	if m.full.Load() {
		return errors.New("no space left on device")
	}
	if r.Stage == m.at {
		m.full.Store(true)
	}
	if r.PID != 0 {
		r.PID = deadPID
	}
	return m.Memory.Save(ctx, r)
}

// A run that the policy has blocked, and whose journal can no longer be written, reports nothing outside and stays blocked.
func TestBlockedRunWithoutItsJournal(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	f.Config.Run.Gate, f.Config.Run.Protected = lines("true"), []string{"a.txt"}
	f.issue("a")
	c := f.Config
	c.Run.Store = &fullDiskJournal{Memory: &f.store.Memory, at: journal.StagePublish}
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Sweep(t.Context()); err != nil || s.Unavailable == nil || strings.Contains(f.text("a"), "policy-blocked") {
		t.Errorf("%+v, %v:\n%s", s, err, f.text("a"))
	}
	f.buryAll(bare)
	f.sweep(t.Context())
	if r := f.runs("a")[0]; r.Verdict.Outcome != journal.PolicyBlocked || r.Published != "" || !strings.Contains(f.text("a"), "policy-blocked") {
		t.Errorf("%+v, published %q:\n%s", r.Verdict, r.Published, f.text("a"))
	}
}
