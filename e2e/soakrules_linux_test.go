package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	soakLate  = 10 // approximate number of git calls of a sweep after its agents
	soakUsage = 100
)

// soakCommits is an agent that waits for the test, appends its issue to a file that only one agent may have, and commits.
const soakCommits = `
issues:
  "*":
    - - alone: DIR/alone-LOCK
      - run: echo "start $RALPH_ISSUE_KEY" >>DIR/log
      - wait: DIR/go
      - run: >
          grep -qs "^$RALPH_ISSUE_KEY$" FILE || {
          echo "$RALPH_ISSUE_KEY" >>FILE && git add --all && git commit --quiet --message "Do $RALPH_ISSUE_KEY"; }
      - say: <promise>COMPLETE</promise>
`

// soakSpends is an agent that is never done. It logs the clone in which it works.
const soakSpends = `
issues:
  "*":
    - - alone: DIR/alone-{{key}}
      - run: echo "start $RALPH_ISSUE_KEY $(git rev-parse --git-common-dir)" >>DIR/log
      - say: not yet
`

// Ralph is killed at a random moment while rules of scheduling, merging and spending apply, to the clones together if a rule
// covers all clones. The rules hold until nothing is left to do.
func TestSoakRules(t *testing.T) {
	t.Parallel()
	seed, only := soakNumber(t, "SOAK_SEED", soakSeed), soakNumber(t, "SOAK_ONLY", 0)
	for name, rule := range map[string]func(*testing.T, *soak){
		"touches": soakTouches, "max-open-requests": soakMaxOpen, "red batch": soakRedBatch, "caps": soakCaps,
	} {
		for n := 1; n <= max(1, soakNumber(t, "SOAK_FAULTS", soakShort)/30, only); n++ {
			if only != 0 && n != only {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				t.Parallel()
				rule(t, newSoak(t, rand.New(rand.NewPCG(uint64(seed), uint64(n))), false))
			})
		}
	}
}

// agents configures the agents: the file that an issue changes, and the lock that only one agent may hold.
func (k *soak) agents(t *testing.T, script, file, lock string) {
	t.Helper()
	text := strings.NewReplacer("DIR", k.scene.dir, "FILE", file, "LOCK", lock).Replace(script)
	if err := os.WriteFile(k.path("agent.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// let releases the agents that wait.
func (k *soak) let(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(k.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// strike kills ralph at one of its next calls of git, unless it ends first.
func (k *soak) strike(t *testing.T, p *ralph, calls int) {
	t.Helper()
	at := k.calls() + 1 + k.random.IntN(calls)
	k.ended = make(chan struct{})
	go func() { defer close(k.ended); p.end(t) }()
	k.let(t)
	if _, ok := k.awaitCall(at); ok {
		k.kill(t, p.Process.Pid)
		t.Logf("killed at call %d of git", at)
	}
	<-k.ended
}

// beside works in the first clone until on agents are active, sweeps the second one, which must start nothing then, and
// kills the first.
func (k *soak) beside(t *testing.T, on int, env []string, args ...string) {
	t.Helper()
	first := k.ralphIn(t, k.clones[0], env, args...)
	await(t, "the agents of the first clone", func() bool { return len(k.begun()) == on })
	k.ralphIn(t, k.clones[1], env, args...).end(t)
	if got := k.begun(); len(got) != on {
		t.Errorf("%q are begun by two clones at the same time, want %d issues", got, on)
	}
	k.strike(t, first, soakLate)
}

// begun lists the issues for which an agent was started.
func (k *soak) begun() (keys []string) {
	for line := range strings.Lines(k.read("log")) {
		keys = append(keys, strings.Fields(line)[1])
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// inTurn sweeps the clones in turn, and merges a branch as a user after each round, until all issues are merged. At no time
// are more than most issues started and not merged.
func (k *soak) inTurn(t *testing.T, most int, env []string, args ...string) {
	t.Helper()
	for range 2 * soakRounds {
		for _, r := range k.clones {
			k.age(t)
			k.ralphIn(t, r, env, args...).end(t)
			if n := len(k.begun()) - len(k.on(t, "main")); n > most {
				t.Fatalf("%d issues are begun and not merged, want at most %d", n, most)
			}
		}
		k.merge(t)
		if len(k.on(t, "main")) == len(k.keys) {
			break
		}
	}
	if got := k.on(t, "main"); !slices.Equal(got, k.keys) {
		t.Errorf("the user could merge %q, want each of %q once", got, k.keys)
	}
}

// merge merges a branch that ralph has pushed, as a user in the first clone, and updates main in the second.
func (k *soak) merge(t *testing.T) {
	t.Helper()
	r := k.clones[0]
	r.git(t, "fetch", "--quiet", "origin")
	for _, key := range k.keys {
		branch := "origin/ralph/" + key
		if _, err := r.try("rev-parse", "--verify", "--quiet", branch); err == nil && !slices.Contains(k.on(t, "main"), key) {
			r.git(t, "merge", "--quiet", "--no-edit", branch)
			r.git(t, "push", "--quiet", "origin", "main")
			k.clones[1].git(t, "pull", "--quiet", "--ff-only")
			return
		}
	}
}

// on lists the issues whose commits are on a branch of the first clone.
func (k *soak) on(t *testing.T, branch string) (keys []string) {
	t.Helper()
	for _, subject := range k.clones[0].lines(t, "log", "--format=%s", branch) {
		if key, ok := strings.CutPrefix(subject, "Do "); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// issue returns the text of an issue in the first clone.
func (k *soak) issue(t *testing.T, key string) string {
	t.Helper()
	b, err := os.ReadFile(string(k.clones[0]) + "/.ralph/backlog/" + key + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Issues that change the same file are worked one after the other, in any clone, and all are merged.
func soakTouches(t *testing.T, k *soak) {
	k.agents(t, soakCommits, "shared.txt", "shared")
	for _, key := range k.keys {
		for _, r := range k.clones {
			r.write(t, ".ralph/backlog/"+key+".md", "---\ntitle: Do "+key+"\nlabels: [no-human]\nstate: open\ntouches: [shared.txt]\n---\n")
		}
	}
	env, args := []string{"RALPH_PUBLISH=branch"}, []string{"work", "--parallel", "4"}
	k.beside(t, 1, env, args...)
	k.inTurn(t, 1, env, args...)
	if text := k.read("alone-shared"); text != "" {
		t.Errorf("two agents at the same time: %s", text)
	}
}

// All clones together have no more open branches, and start no more issues, than allowed.
func soakMaxOpen(t *testing.T, k *soak) {
	const most = 2
	k.agents(t, soakCommits, "$RALPH_ISSUE_KEY.txt", "{{key}}")
	env := []string{"RALPH_PUBLISH=branch", fmt.Sprint("RALPH_MAX_OPEN_REQUESTS=", most)}
	args := []string{"work", "--parallel", "4"}
	k.beside(t, most, env, args...)
	k.inTurn(t, most, env, args...)
}

// The clones together stay within the budget of an issue, and each clone within its own daily cap.
func soakCaps(t *testing.T, k *soak) {
	const parallel, issue, day = 2, 250, 500
	k.agents(t, soakSpends, "", "")
	env := []string{
		fmt.Sprint("RALPH_ESTIMATE_TOKENS=", soakUsage), fmt.Sprint("RALPH_BUDGET_TOKENS=", issue), fmt.Sprint("RALPH_BUDGET_TOKENS_DAY=", day),
		"RALPH_NO_PROGRESS=-1", "RALPH_MAX_ATTEMPTS=9",
	}
	args := []string{"work", "--parallel", fmt.Sprint(parallel)}
	first, second := k.ralphIn(t, k.clones[0], env, args...), k.ralphIn(t, k.clones[1], env, args...)
	k.strike(t, first, soakCalls)
	second.end(t)
	for range soakRounds {
		before := k.read("log")
		for _, r := range k.clones {
			k.age(t)
			k.ralphIn(t, r, env, args...).end(t)
		}
		if k.read("log") == before {
			break
		}
	}
	ofIssue, ofClone := map[string]int{}, map[string]int{}
	for line := range strings.Lines(k.read("log")) {
		words := strings.Fields(line)
		ofIssue[words[1]] += soakUsage
		ofClone[words[2]] += soakUsage
	}
	t.Logf("used by issues %v, by clones %v", ofIssue, ofClone)
	for key, used := range ofIssue {
		if used >= issue+soakUsage {
			t.Errorf("%s has used %d tokens, want at most %d and one iteration", key, used, issue)
		}
	}
	for clone, used := range ofClone {
		if used >= day+parallel*soakUsage {
			t.Errorf("%s has used %d tokens in a day, want at most %d and an iteration of each run", clone, used, day)
		}
	}
	if len(ofIssue) == 0 || len(ofClone) == 0 {
		t.Error("no agent has worked")
	}
}

// Of branches that are merged together, those that pass are merged, and the one that fails is left to a person. A clone
// merges only its own work.
func soakRedBatch(t *testing.T, k *soak) {
	k.agents(t, soakCommits, "$RALPH_ISSUE_KEY.txt", "{{key}}")
	k.let(t)
	red := k.keys[k.random.IntN(len(k.keys))]
	green := slices.DeleteFunc(slices.Clone(k.keys), func(key string) bool { return key == red })
	env := []string{"RALPH_REMOTE=none", "RALPH_PUBLISH=branch"}
	if got := k.ralphIn(t, k.clones[0], env, "work", "--parallel", "2").end(t); got != 0 {
		t.Fatalf("the sweep before: status %d", got)
	}
	args := []string{"merge", "--all", "--gate", "test ! -e " + red + ".txt"}
	k.strike(t, k.ralphIn(t, k.clones[0], env, args...), soakCalls)
	open := func() []string {
		return slices.DeleteFunc(slices.Clone(k.keys), func(key string) bool { return strings.Contains(k.issue(t, key), "state: closed") })
	}
	for range soakRounds {
		k.age(t)
		k.ralphIn(t, k.clones[0], env, args...).end(t)
		if slices.Equal(open(), []string{red}) && strings.Contains(k.issue(t, red), "needs-human") {
			break
		}
	}
	if got := k.on(t, "main"); !slices.Equal(got, green) || !slices.Equal(open(), []string{red}) {
		t.Errorf("main has %q and open are %q, want %q to land and %s to be left", got, open(), green, red)
	}
	if text := k.issue(t, red); !strings.Contains(text, "needs-human") {
		t.Errorf("%s is left to nobody:\n%s", red, text)
	}
	if !slices.Contains(k.on(t, "ralph/"+red), red) {
		t.Errorf("the commits of %s are gone", red)
	}
}
