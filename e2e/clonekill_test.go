package e2e

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// death is the place at which a ralph process is killed: a stage in the journal, or around an answer of its model.
type death struct {
	stage  journal.Stage
	moment moment
}

func (d death) String() string {
	if d.stage != "" {
		return string(d.stage)
	}
	return fmt.Sprintf("%s answer %d", d.moment.at, d.moment.answer)
}

// deaths are lists of deaths that four clones die in turn.
func deaths() (list [][]death) {
	stages, answers, places := []journal.Stage{journal.StageVerify}, []int{3}, []string{"after"}
	if everything() {
		stages, answers, places = journal.Stages(), []int{1, 2, 3, 4, 5}, []string{"before", "within", "after"}
	}
	for _, stage := range stages {
		if stage != journal.StageClaim && stage != journal.StageEnd && stage != journal.StageBaseline {
			list = append(list, []death{{stage: stage}})
		}
	}
	for _, n := range answers {
		for _, at := range places {
			list = append(list, []death{{moment: moment{n, at}}})
		}
	}
	return append(list, []death{
		{moment: moment{3, "before"}}, {stage: journal.StagePrepare}, {moment: moment{4, "within"}}, {stage: journal.StageWork}, {moment: moment{2, "after"}},
	})
}

// Four clones of one remote, each with its own state, work one issue and are repeatedly killed, each at the same place. A
// restarted clone settles its dead run, and knows what the others have spent meanwhile: together they exceed the issue's
// budget by at most one answer. What a dead run had reserved and not used is lost to the issue.
func TestBudgetOfKilledClones(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is Linux's")
	}
	for _, list := range deaths() {
		t.Run(fmt.Sprint(list), func(t *testing.T) {
			t.Parallel()
			killClones(t, list)
		})
	}
}

func killClones(t *testing.T, list []death) {
	t.Helper()
	const most, each = 11, 2 // maximum answers in the budget of the issue, and of an iteration
	m := &table{asked: map[string]int{}, victims: map[string]*victim{}}
	model := httptest.NewServer(m)
	t.Cleanup(model.Close)
	s, r := newScene(t, doIt), newRepository(t)
	r.backlog(t, 1)
	remote := newRemote(t, r)
	clones := []repository{r, remote.clone(t), remote.clone(t), remote.clone(t)}
	killed := 0
	for i := range 3 * len(clones) {
		d := list[i%len(list)]
		if i >= 2*len(clones) {
			d = death{}
		}
		v := &victim{name: fmt.Sprintf("ralph-%d", i), dies: d.moment}
		m.mu.Lock()
		v.ralph = s.start(t, clones[i%len(clones)], []string{
			"RALPH_TEST_SPENDTHRIFT=1", "RALPH_AGENT=spendthrift", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native", "SPENDTHRIFT_URL=" + model.URL,
			"SPENDTHRIFT_KEY=" + v.name, fmt.Sprintf("SPENDTHRIFT_ASKS=%d", each), "RALPH_TEST_CRASH_AT=" + string(d.stage),
			fmt.Sprintf("RALPH_BUDGET_TOKENS=%d", most*tokensOfMeal),
		}, "work", "--no-progress", "-1", "--max-iterations", "50")
		m.victims[v.name] = v
		m.mu.Unlock()
		switch got := v.end(t); {
		case got == -int(syscall.SIGKILL):
			killed++
		case got != 0 && got != 3:
			t.Errorf("%s, to die at %s, ends with %d", v.name, d, got)
		}
	}
	if n := m.total(); n < most/2 || n > most+1 {
		t.Errorf("%d answers of a budget of %d, after %d deaths", n, most, killed)
	}
	t.Logf("%d answers of a budget of %d, after %d deaths", m.total(), most, killed)
	s.clean(t, append(clones, remote)...)
}
