package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// fault is what happens to a call.
type fault struct {
	name string
	is   forgetest.Fault
}

// faults are faults that differ in whether the call has an effect, and in what ralph sees of it.
func faults() []fault {
	const soon = "1"
	return []fault{
		{"connection closed after the effect", forgetest.Fault{Reset: true, Effect: true}},
		{"status 500", forgetest.Fault{Status: http.StatusInternalServerError, Body: `{"message":"500 Internal Server Error"}`}},
		{"malformed JSON after the effect", forgetest.Fault{Status: http.StatusOK, Body: `{"id": 12,`, Effect: true}},
		{
			"status 429",
			forgetest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {soon}}, Body: `{"message":"slow down"}`},
		},
		{"cut body after the effect", forgetest.Fault{Cut: true, Effect: true}},
		refused(http.StatusUnauthorized, "Bad credentials"),
		refused(http.StatusNotFound, "Not Found"),
		refused(http.StatusUnprocessableEntity, "Validation Failed"),
		refused(http.StatusGone, "Gone"),
		{
			"JSON of another shape after the effect",
			forgetest.Fault{Status: http.StatusOK, Body: `{"id":"twelve","iid":"one","number":{},"user":[]}`, Effect: true},
		},
		{"an empty object", forgetest.Fault{Status: http.StatusOK, Body: `{}`}},
	}
}

// refused is a response that would be final unless only one call received it.
func refused(status int, message string) fault {
	return fault{fmt.Sprint("status ", status), forgetest.Fault{Status: status, Body: fmt.Sprintf(`{"message":%q}`, message)}}
}

// moreFaults are rarer faults.
func moreFaults() []fault {
	status := func(name string, status int, header, body string, after bool) fault {
		f := fault{name, forgetest.Fault{Status: status, Body: body, Effect: after}}
		if header != "" {
			f.is.Header = http.Header{"Retry-After": {header}}
		}
		return f
	}
	return []fault{
		status("a page in the place of JSON", http.StatusBadGateway, "", "<html>Bad Gateway", false),
		status("status 503 that says when", http.StatusServiceUnavailable, "2", "", false),
		status("status 503 after the effect", http.StatusServiceUnavailable, "", "", true),
		status("status 504", http.StatusGatewayTimeout, "", "", false),
		status("status 408", http.StatusRequestTimeout, "", "", false),
		status("a limit on bursts", http.StatusForbidden, "3", `{"message":"You have exceeded a secondary rate limit."}`, false),
		status("null", http.StatusOK, "", `null`, false),
		status("nothing", http.StatusOK, "", "", false),
		{"connection closed before the effect", forgetest.Fault{Reset: true}},
	}
}

// doOnce is an agent whose second start finds its work done.
const doOnce = `
issues:
  "*":
    - - run: test -f work.txt || { echo x > work.txt && git add --all && git commit --quiet --message "Do it"; }
      - say: <promise>COMPLETE</promise>
`

// One call of a whole sweep fails, then sweeps without a fault follow. In the end the issue is in the same state as without
// the fault. Here each write meets a lost response, and on GitHub one read of each route between two writes meets a fault.
// `make soak` tests all calls, each with more faults. TestMachinesOnOneForge has each fault, at random calls.
func TestForgeFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, repository) forge{"github": onGitHub, "gitlab": onGitLab} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, c := range sample(callsOfSweep(t, open)) {
				if name == "gitlab" && !c.write && !everything() {
					continue
				}
				for _, kind := range c.meets(at) {
					t.Run(fmt.Sprintf("call %d %s", at+1, kind.name), func(t *testing.T) {
						t.Parallel()
						survivesFault(t, open, at, kind)
					})
				}
			}
		})
	}
}

// call is a call during a sweep.
type call struct {
	route      string // method and path
	write, git bool
}

// sample omits reads that repeat an earlier one without a write in between.
func sample(calls []call) map[int]call {
	left, seen := map[int]call{}, map[string]bool{}
	for at, c := range calls {
		switch {
		case strings.HasSuffix(c.route, "/info/refs"): // one request with the call that follows, from ralph's view
			continue
		case c.write:
			clear(seen)
		case seen[c.route] && !everything():
			continue
		}
		seen[c.route] = true
		left[at] = c
	}
	return left
}

// meets returns the faults for the call with that number. A write to the API meets the hardest fault, a lost response, and
// some others in turn. All other calls meet the faults in turn.
func (c call) meets(at int) []fault {
	all := faults()
	others := all[1:]
	met := []fault{all[at%len(all)], all[(at+5)%len(all)]}
	if c.write && !c.git {
		met = []fault{all[0], others[at%len(others)], others[(at+3)%len(others)], others[(at+6)%len(others)]}
	}
	if everything() {
		return met
	}
	return met[:1]
}

// faultScene is a clone of a project with one issue.
type faultScene struct {
	scene
	forge
	clone repository
	key   string
}

func newFaultScene(t *testing.T, open func(*testing.T, repository) forge) faultScene {
	t.Helper()
	f := faultScene{scene: newScene(t, doOnce), forge: open(t, newRepository(t)), clone: repository(filepath.Join(t.TempDir(), "clone"))}
	f.key = f.issue("Do it", "Please.")
	clone(t, f.forge, f.clone)
	f.server.Calls()
	return f
}

// work runs one sweep. It reports whether another one must follow, because it failed or left work to the next.
func (f faultScene) work(t *testing.T) (again bool) {
	t.Helper()
	env := append(slices.Clone(f.forge.env), "RALPH_WRITE_SPACING=0s", "RALPH_RETRY_BACKOFF=1ms", "RALPH_RETRY_BACKOFF_MAX=1ms")
	p := f.start(t, f.clone, env, append([]string{"work"}, f.flags...)...)
	return p.end(t) != 0 || strings.Contains(p.out.String(), "left to the next sweep")
}

// callsOfSweep returns the calls of an undisturbed sweep in order.
func callsOfSweep(t *testing.T, open func(*testing.T, repository) forge) (calls []call) {
	t.Helper()
	f := newFaultScene(t, open)
	if f.work(t) {
		t.Fatal("a sweep without a fault has not ended well")
	}
	for _, c := range f.server.Calls() {
		calls = append(calls, call{c.Method + " " + c.Path, c.Write(), c.Git()})
	}
	return calls
}

// survivesFault applies the fault to the call with that number, counted from 0.
func survivesFault(t *testing.T, open func(*testing.T, repository) forge, at int, kind fault) {
	f := newFaultScene(t, open)
	var hit atomic.Pointer[string]
	f.server.Inject(func(c forgetest.Call) *forgetest.Fault {
		if c.N != at {
			return nil
		}
		hit.Store(new(c.Method + " " + c.Path))
		return &kind.is
	})
	const enough = 4
	for n := 1; f.work(t) || slices.Contains(f.labels(f.key), "no-human"); n++ {
		if n == enough {
			t.Fatalf("sweep %d has still not ended well; labels %q", n, f.labels(f.key))
		}
	}
	if got := f.labels(f.key); !slices.Equal(got, []string{"in-review"}) {
		t.Errorf("labels %q, want in-review", got)
	}
	if hit.Load() == nil {
		t.Fatal("the call was not made")
	}
	t.Log("the fault met", *hit.Load())
	if got, want := f.requests(), "ralph/"+f.key+": Do it (draft false)"; !slices.Equal(got, []string{want}) {
		t.Errorf("requests %q, want %q", got, want)
	}
	reportedOnce(t, f.report(f.key))
	if n := f.starts(t)[f.key]; n != 1 {
		t.Errorf("the agent was started %d times", n)
	}
	f.clone.git(t, "-c", "credential.helper=", "fetch", "--quiet", "--prune", withToken(f.forge), "+refs/heads/*:refs/remote/*")
	if got := f.clone.lines(t, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/remote"); !slices.Equal(got, []string{"main", "ralph/" + f.key}) {
		t.Errorf("branches %q", got)
	}
	if n := len(f.clone.lines(t, "rev-list", "refs/remote/main..refs/remote/ralph/"+f.key)); n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
	f.clean(t, f.clone)
}

// reportedOnce checks that each run has one report, and that the last one is of success.
func reportedOnce(t *testing.T, text string) {
	t.Helper()
	oneReportARun(t, text)
	const success = "**ralph: succeeded**"
	reports := strings.Split(text, "\n=====\n")
	if strings.Count(text, success) != 1 || !strings.Contains(reports[len(reports)-1], success) {
		t.Errorf("want one report of success, the last:\n%s", text)
	}
}

// oneReportARun checks that no run was reported twice.
func oneReportARun(t *testing.T, text string) {
	t.Helper()
	var runs []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "- Run: ") {
			runs = append(runs, line)
		}
	}
	slices.Sort(runs)
	if n := strings.Count(text, "\n=====\n") + 1; len(runs) != n || len(slices.Compact(runs)) != n {
		t.Errorf("%d reports of runs %q:\n%s", n, runs, text)
	}
}

// withToken returns the remote's address with ralph's token.
func withToken(f forge) string {
	_, secret, _ := strings.Cut(f.env[0], "=")
	return strings.Replace(f.remote, "http://", "http://x-access-token:"+secret+"@", 1)
}
