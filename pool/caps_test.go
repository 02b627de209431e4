package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/sandboxes"
)

// tokensOfAnswer is the usage that each answer of the model reports.
const tokensOfAnswer = 7

// serveModel serves a model and counts its answers.
func serveModel(t *testing.T) (url string, answers *atomic.Int64) {
	t.Helper()
	answers = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		<-time.After(20 * time.Millisecond) // like a real model, so that requests of other runs are in flight
		answers.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"model":"m","usage":{"input_tokens":%d,"output_tokens":1}}`, tokensOfAnswer-1)
	}))
	t.Cleanup(s.Close)
	return s.URL, answers
}

// greedyAgent is an agent that queries its model until it is refused.
type greedyAgent struct{ loginAgent }

func newGreedyAgent() greedyAgent { return greedyAgent{loginAgent{login: func() error { return nil }}} }

func (g greedyAgent) Describe() agents.Description {
	d := g.loginAgent.Describe()
	d.Login = agents.Login{Keys: []agents.Key{{Env: "GREEDY_KEY"}}}
	return d
}

// metering is a provider with ralph's egress proxy, in which a greedyAgent runs.
type metering struct{ proxyProvider }

func (p metering) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	socket := spec.Egress
	spec.Egress = ""
	box, err := p.Provider.Open(ctx, spec)
	return metered{box, socket}, err
}

// asksFirst is the last argument of a program that queries its model once before it runs.
const asksFirst = "ask first"

type metered struct {
	sandboxes.Sandbox
	socket string
}

func (m metered) Exec(ctx context.Context, c sandboxes.Command) (sandboxes.Exit, error) {
	last := c.Argv[len(c.Argv)-1]
	once := last == "ask the model" || last == asksFirst
	if c.Argv[0] != "greedy" && !once {
		return m.Sandbox.Exec(ctx, c)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", m.socket)
		if err == nil {
			_, err = io.WriteString(conn, "ralph-egress/1 endpoint 0\n")
		}
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, len("ok\n")))
		}
		return conn, err
	}}}
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/v1/messages", strings.NewReader("{}"))
		if err != nil {
			return sandboxes.Exit{}, err
		}
		res, err := client.Do(q)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		switch {
		case ctx.Err() != nil:
			return sandboxes.Exit{}, context.Cause(ctx)
		case err != nil || res.StatusCode != http.StatusOK:
			_, _ = fmt.Fprintln(c.Stdout, "refused", err)
			return sandboxes.Exit{Code: 1}, nil
		case last == asksFirst:
			return m.Sandbox.Exec(ctx, c)
		case once:
			return sandboxes.Exit{}, nil
		}
	}
}

// withGreedy makes the fixture's agent a greedy one, under caps.
func (f *fixture) withGreedy(caps ledger.Caps) (answers *atomic.Int64) {
	f.t.Helper()
	url, answers := serveModel(f.t)
	c := &f.Config.Run
	c.Agent, c.Options = newGreedyAgent(), agents.Options{Command: []string{"greedy"}}
	c.Sandboxes, c.Caps = metering{proxyProvider{c.Sandboxes}}, caps
	c.Network.Upstream, c.Network.User = url, agents.User{Env: []string{"GREEDY_KEY=x"}}
	return answers
}

// Four workers never spend more than a day's cap and one answer. The runs that the cap ends count as no failure: the issues are
// worked again as soon as the cap allows it.
func TestDayCapOfSeveralWorkers(t *testing.T) {
	t.Parallel()
	const most = 100
	f := newFixture(t, "")
	answers := f.withGreedy(ledger.Caps{Day: loop.Budget{Tokens: most}})
	f.Config.Parallel = 4
	keys := []string{"a", "b", "c", "d", "e"}
	for _, key := range keys {
		f.issue(key)
	}
	s := f.sweep(t.Context())
	if n := answers.Load() * tokensOfAnswer; n < most || n >= most+tokensOfAnswer {
		t.Errorf("%d tokens are spent of %d", n, most)
	}
	spent, ok := errors.AsType[*ledger.SpentError](s.Unavailable)
	if !ok || spent.Period != "day" || len(s.Runs) == 0 || len(s.Runs) == len(keys) || len(s.Skipped) == 0 {
		t.Fatalf("unavailable: %v; %d runs, skipped %+v", s.Unavailable, len(s.Runs), s.Skipped)
	}
	for _, r := range s.Runs {
		v := r.Verdict
		if v.Outcome != journal.OverBudget || v.Reason.Code != journal.ReasonCap || v.Final || v.Counted {
			t.Errorf("%s: %+v", r.Key, v)
		}
		if text := f.text(r.Key); strings.Contains(text, "needs-human") || !strings.Contains(text, "when the cap has room") {
			t.Errorf("the issue says:\n%s", text)
		}
	}
	plan, err := f.pool().Plan(t.Context())
	if err != nil || len(plan.Work) > 0 || len(plan.Skipped) != len(keys) {
		t.Fatalf("%+v, %v", plan, err)
	}
	for _, k := range plan.Skipped {
		if k.Skip.Code != journal.SkipCap || !k.Skip.Until.Equal(ledger.DayOf(time.Now()).AddDate(0, 0, 1)) {
			t.Errorf("%+v", k.Skip)
		}
	}
	before := answers.Load()
	if s := f.sweep(t.Context(), "a"); len(s.Runs) > 0 || s.Unavailable == nil || answers.Load() != before {
		t.Errorf("a named issue breaks the cap: %+v", s)
	}
	f.Config.Run.Caps.Day.Tokens = 2 * most
	if s := f.sweep(t.Context()); len(s.Runs) == 0 {
		t.Errorf("nothing is worked although the cap has room: %+v", s)
	}
	if n := answers.Load() * tokensOfAnswer; n < 2*most || n >= 2*most+tokensOfAnswer {
		t.Errorf("%d tokens are spent of %d", n, 2*most)
	}
}

// Runs with a budget of their own reserve it: no more runs start than the budgets allow. A run that spends the issue's budget has
// a final outcome: a person has to raise the budget.
func TestBudgetsAreReserved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.withGreedy(ledger.Caps{Month: loop.Budget{Tokens: 100}})
	f.Config.Run.Budget = loop.Budget{Tokens: 28}
	f.Config.Parallel = 4
	for _, key := range []string{"a", "b", "c", "d"} {
		f.issue(key)
	}
	for _, r := range f.sweep(t.Context()).Runs {
		reserved := int64(28)
		if r.Verdict.Reason.Code == journal.ReasonCap {
			reserved = 16
		} else if !r.Verdict.Final {
			t.Errorf("%s: %+v", r.Key, r.Verdict)
		}
		if r.Reserved.Tokens() != reserved || r.Granted.Tokens != reserved {
			t.Errorf("%s: reserved %+v, granted %+v, want %d", r.Key, r.Reserved, r.Granted, reserved)
		}
	}
}

// The estimate for an iteration whose usage nobody reports is reserved: a run that has begun leaves no room for another, although
// it has spent nothing yet.
func TestEstimatesAreReserved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Caps.Day.CostUSD = 0.5 * ledger.DefaultEstimate().CostUSD
	f.issue("a")
	f.issue("b")
	f.onStage(journal.StageWork, func(journal.Record) {
		p, err := pool.New(f.again())
		if err != nil {
			t.Error(err)
			return
		}
		if s, err := p.Sweep(t.Context(), "b"); err != nil || len(s.Runs) > 0 || s.Unavailable == nil {
			t.Errorf("%+v %v", s, err)
		}
	})
	f.one("a")
}

// A run with a budget of its own ends at it, whatever the issue may use, and a person has to raise it.
func TestBudgetOfARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	answers := f.withGreedy(ledger.Caps{})
	f.Config.Run.Budget, f.Config.Run.PerRun = loop.Budget{Tokens: 1000}, loop.Budget{Tokens: 2 * tokensOfAnswer}
	f.issue("a")
	r := f.one()
	if v := r.Verdict; v.Outcome != journal.OverBudget || !v.Final || !strings.Contains(v.Reason.Detail, "that a run may use") {
		t.Errorf("%+v", v)
	}
	if n := answers.Load(); n != 2 {
		t.Errorf("the model has answered %d times", n)
	}
}

// The run's sum includes requests of the gate to the model after a rebase.
func TestUsageAfterTheWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	answers := f.withGreedy(ledger.Caps{})
	f.Config.Run.Options = agents.Options{Command: []string{"sh", "-c", commits}}
	f.Config.Run.Gate, f.Config.Run.Publish = lines("ask the model"), journal.PublishMerge
	f.issue("a")
	var moved, before atomic.Int64
	f.onStage(journal.StageVerify, func(journal.Record) {
		if moved.Add(1) == 1 {
			before.Store(answers.Load())
			f.write("other", "text\n")
			f.commit("move the base")
		}
	})
	r := f.one()
	if answers.Load() == before.Load() || r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("the gate ran %d times before the rebase, and %d in all; %+v", before.Load(), answers.Load(), r.Verdict)
	}
	baseline := int64(1) // belongs to no run
	if got, want := r.Facts.Usage.Tokens(), (answers.Load()-baseline)*tokensOfAnswer; got != want {
		t.Errorf("%d tokens are counted, want %d", got, want)
	}
}

// reportingAgent is a greedyAgent that states its usage.
type reportingAgent struct {
	greedyAgent
	used agents.Usage
}

func (b reportingAgent) NewDecoder() agents.Decoder {
	return usageDecoder{b.greedyAgent.NewDecoder(), b.used}
}

func tokens(u agents.Usage) [2]int64 { return [...]int64{u.Input, u.Output} }

// Usage that only the reviewer reports is in the run's sum once, is shown separately, and counts for no cap. The same holds for a
// review after the agent's loop.
func TestUsageThatOnlyTheReviewerReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t, listens)
	f.withReviewer(yes, 2)
	f.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
	f.commit("a file to add to")
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write("a.txt", "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
		f.commit("the base moves")
	})
	url, answers := serveModel(t)
	c := &f.Config.Run
	c.Publish = journal.PublishMerge
	c.Sandboxes, c.Network.Upstream, c.Network.User = metering{proxyProvider{c.Sandboxes}}, url, agents.User{Env: []string{"GREEDY_KEY=x"}}
	c.Agent, c.Review.Agent = usageAgent{used: agents.Usage{Input: 100}}, reportingAgent{newGreedyAgent(), agents.Usage{Input: 900, Output: 1}}
	c.Review.Options.Command = append(c.Review.Options.Command, asksFirst)
	r := f.one()
	seen, unseen := agents.Usage{Input: 2 * (tokensOfAnswer - 1), Output: 2}, agents.Usage{Input: 2 * (900 - tokensOfAnswer + 1)}
	if answers.Load() != 2 || r.Verdict.Outcome != journal.Succeeded || r.Verdict.Reason.Code != "" {
		t.Fatalf("%d answers, %+v, %+v", answers.Load(), r.Verdict, r.Facts.Review)
	}
	if s := r.Facts.ReviewSpend; tokens(s.Usage) != tokens(seen.Add(unseen)) || s.Unseen != unseen {
		t.Errorf("the review used %+v, unseen %+v", s.Usage, s.Unseen)
	}
	seen.Input += 100 // of the agent
	if tokens(r.Facts.Usage) != tokens(seen.Add(unseen)) || tokens(r.Facts.Metered()) != tokens(seen) {
		t.Errorf("used %+v, of which %+v counts for the caps", r.Facts.Usage, r.Facts.Metered())
	}
}

// A dead process frees the reservation of its run, even of a job, which no sweep recovers.
func TestDeadRunReservesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.withGreedy(ledger.Caps{Month: loop.Budget{Tokens: 100}})
	f.issue("a")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dead := journal.Record{
		Run:   journal.Run{ID: "dead", Kind: journal.KindPrompt, Key: "run-dead", Host: host, Agent: "greedy", Reserved: agents.Usage{Input: 100}},
		State: journal.State{Stage: journal.StageWork, PID: os.Getpid(), Process: "an earlier one of this number"},
	}
	if err := f.store.Save(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	if r := f.one(); r.Granted.Tokens != 100 {
		t.Errorf("granted %+v", r.Granted)
	}
}

// The budget of an issue also bounds what follows the agent's loop in another process, such as the gate after a stop.
func TestBudgetOfAContinuedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.withGreedy(ledger.Caps{})
	f.Config.Run.Options = agents.Options{Command: []string{"sh", "-c", commits}}
	f.Config.Run.Budget = loop.Budget{Tokens: 12 * tokensOfAnswer}
	f.Config.Run.Publish, f.Config.Run.GateOn = journal.PublishMerge, config.GateOnWorktree
	begun, goOn := newPipe(t), filepath.Join(t.TempDir(), "go-on")
	f.Config.Run.Gate = lines(`test ! -f moved || test -f ` + goOn + ` || { echo > ` + begun.path + `; exec sleep 1000; }`)
	for range 10 {
		f.Config.Run.Gate = append(f.Config.Run.Gate, lines("ask the model")...)
	}
	f.issue("a")
	ctx, stop := context.WithCancelCause(t.Context())
	begun.then(func() { stop(nil) })
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write("moved", "")
		f.commit("the base moves")
	})
	if r := f.only(f.sweep(ctx)); !r.Ended.IsZero() || r.Facts.Usage.Tokens() != 10*tokensOfAnswer {
		t.Fatalf("%+v, %+v", r.Verdict, r.Facts.Usage)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.onStage("", nil)
	if r := f.only(f.sweep(t.Context())); r.Facts.Usage.Tokens() > 13*tokensOfAnswer || r.Facts.Usage.Tokens() <= 10*tokensOfAnswer {
		t.Errorf("%+v, %+v", r.Verdict, r.Facts.Usage)
	}
}
