package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// spendthrift is an agent whose program calls its model until the call is refused, or SPENDTHRIFT_ASKS times.
type spendthrift struct{ agents.Command }

func (spendthrift) Name() string { return "spendthrift" }

func (spendthrift) Describe() agents.Description {
	return agents.Description{
		Program: "spendthrift", Login: agents.Login{Keys: []agents.Key{{Env: "SPENDTHRIFT_KEY"}}},
		Endpoint: &agents.Endpoint{
			Name: "spendthrift", Upstream: "https://api.spendthrift.example", UpstreamEnv: "SPENDTHRIFT_URL",
			Routes: []agents.Route{{Method: http.MethodPost, Path: "/v1/messages"}},
			ProxySettings: func(_ agents.Service, url, _ string) (env, args []string) {
				return []string{"SPENDTHRIFT_URL=" + url, "SPENDTHRIFT_ASKS=" + os.Getenv("SPENDTHRIFT_ASKS")}, nil
			},
		},
	}
}

func (a spendthrift) Invocation(r agents.Request) (agents.Invocation, error) {
	return agents.Invocation{Argv: []string{"spendthrift"}, Stdin: r.Prompt, Env: r.Options.Env}, agents.Check(a, r.Options)
}

// withSpendthrift adds the agent to ralph if RALPH_TEST_SPENDTHRIFT is set.
func withSpendthrift(h *compose.Host) {
	if os.Getenv("RALPH_TEST_SPENDTHRIFT") != "" {
		h.Agents = append(agents.Builtin(), spendthrift{})
	}
}

// spend is the agent's program.
func spend() error {
	most, _ := strconv.Atoi(os.Getenv("SPENDTHRIFT_ASKS"))
	for n := 0; most == 0 || n < most; n++ {
		res, err := http.Post(os.Getenv("SPENDTHRIFT_URL")+"/v1/messages", "application/json", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d: %w", res.StatusCode, err)
		}
	}
	return nil
}

// tokensOfMeal is the number of tokens of each answer to a spendthrift.
const tokensOfMeal = 110

// moment is the time at which a ralph process is killed.
type moment struct {
	answer int    // number of the answer
	at     string // "before", "within" or "after" the answer
}

// victim is a ralph process.
type victim struct {
	*ralph
	name string
	dies moment // zero: it is not killed
}

// table is the model of all spendthrifts. It kills the ralph process that sends a request when that process's moment has come.
type table struct {
	mu      sync.Mutex
	answers int                // guarded by mu; number of started answers
	asked   map[string]int     // guarded by mu; requests by ralph process
	victims map[string]*victim // guarded by mu
}

// next counts a request of a ralph process, and returns the process if it dies around this answer.
func (m *table) next(name string) *victim {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers++
	m.asked[name]++
	if v := m.victims[name]; v != nil && v.dies.answer == m.asked[name] {
		return v
	}
	return nil
}

func (m *table) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers
}

func (m *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	v := m.next(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	die := func(at string) {
		if v != nil && v.dies.at == at {
			_ = v.Process.Kill()
		}
	}
	die("before")
	w.Header().Set("Content-Type", "application/json")
	answer := []byte(`{"model":"m","content":"` + strings.Repeat("x", 2000) + fmt.Sprintf(`","usage":{"input_tokens":%d,"output_tokens":10}}`, tokensOfMeal-10))
	half := bytes.IndexByte(answer, 'x') + 1000
	_, _ = w.Write(answer[:half])
	_ = http.NewResponseController(w).Flush()
	die("within")
	_, _ = w.Write(answer[half:])
	_ = http.NewResponseController(w).Flush()
	die("after")
}

// moments are the times of the kills: around an early and a later answer, or around many.
func moments() (list []moment) {
	answers := []int{1, 3}
	if everything() {
		answers = []int{1, 2, 3, 4, 5, 8, 13}
	}
	for _, n := range answers {
		for _, at := range []string{"before", "within", "after"} {
			list = append(list, moment{n, at})
		}
	}
	return list
}

// Four ralph processes share a state folder and a daily cap, and are killed repeatedly before, during and after an answer of
// the model. Together they exceed the cap by at most one answer per process, and for each kill the ledger misses at most the
// current answer.
func TestCapOfKilledProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is Linux's")
	}
	const slots = 4
	m := &table{asked: map[string]int{}, victims: map[string]*victim{}}
	model := httptest.NewServer(m)
	t.Cleanup(model.Close)
	s, r := newScene(t, doIt), newRepository(t)
	r.backlog(t, slots+1)
	plan, most := moments(), 0
	for _, dies := range plan {
		most += dies.answer
	}
	most += 4 * slots // for the processes that end by themselves after the others have died
	env := []string{
		"RALPH_TEST_SPENDTHRIFT=1", "RALPH_AGENT=spendthrift", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native", "SPENDTHRIFT_URL=" + model.URL,
		fmt.Sprintf("RALPH_BUDGET_TOKENS_DAY=%d", most*tokensOfMeal),
	}
	started, killed, ended := 0, 0, make(chan *victim)
	start := func() {
		v := &victim{name: fmt.Sprintf("ralph-%d", started)}
		started++
		if len(plan) > 0 {
			v.dies, plan = plan[0], plan[1:]
		}
		m.mu.Lock()
		defer m.mu.Unlock() // before its first request can arrive
		v.ralph = s.start(t, r, append(env, "SPENDTHRIFT_KEY="+v.name), "work", "--parallel", "1")
		m.victims[v.name] = v
		go func() {
			_ = v.Wait()
			ended <- v
		}()
	}
	for range slots {
		start()
	}
	for on, doomed := slots, len(moments()); on > 0; on-- {
		v := <-ended
		if v.dies != (moment{}) {
			doomed--
		}
		switch ws := v.ProcessState.Sys().(syscall.WaitStatus); {
		case ws.Signaled():
			killed++
		case v.dies != moment{}:
			t.Errorf("%s was to be killed %s answer %d, and ended with %s:\n%s", v.name, v.dies.at, v.dies.answer, v.ProcessState, v.out.String())
		case ws.ExitStatus() != 3 && ws.ExitStatus() != 4:
			t.Errorf("%s: %s\n%s", v.name, v.ProcessState, v.out.String())
		}
		switch {
		case len(plan) > 0:
			start()
			on++
		case doomed == 0 && started == len(moments()):
			for range slots {
				start()
				on++
			}
		}
	}
	answers := m.total()
	t.Logf("%d answers of %d in the cap, by %d processes, %d of them killed", answers, most, started, killed)
	if answers > most+started || killed != len(moments()) || started != killed+slots {
		t.Errorf("%d answers of %d in the cap, by %d processes, %d of them killed", answers, most, started, killed)
	}
	v := s.status(t, r, env)
	if len(v.Caps) != 1 || v.Caps[0].Spent == nil || *v.Caps[0].LeftTokens != 0 {
		t.Fatalf("status %+v", v.Caps)
	}
	known := int(v.Caps[0].Spent.Input + v.Caps[0].Spent.Output)
	if real := answers * tokensOfMeal; known < real-killed*tokensOfMeal || known > real {
		t.Errorf("the ledger knows of %d tokens, and %d were spent, at most %d unseen", known, real, killed*tokensOfMeal)
	}
	p := s.start(t, r, append(env, "SPENDTHRIFT_KEY=late"), "work")
	if got := p.end(t); got != 4 || m.total() != answers {
		t.Errorf("status %d, want 4; %d more answers", got, m.total()-answers)
	}
	s.clean(t, r)
}
