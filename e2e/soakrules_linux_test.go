package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// soakCommits is an agent that adds its issue to a file which only one agent may have, and commits.
const soakCommits = `
issues:
  "*":
    - - alone: DIR/alone-LOCK
      - run: echo "start $RALPH_ISSUE_KEY" >>DIR/log
      - run: >
          grep -qs "^$RALPH_ISSUE_KEY$" FILE || {
          echo "$RALPH_ISSUE_KEY" >>FILE && git add --all && git commit --quiet --message "Do $RALPH_ISSUE_KEY"; }
      - say: <promise>COMPLETE</promise>
`

// Ralph is killed at a random moment while rules of scheduling and merging hold. They hold until nothing is left to do.
func TestSoakRules(t *testing.T) {
	t.Parallel()
	seed, only := soakNumber(t, "SOAK_SEED", soakSeed), soakNumber(t, "SOAK_ONLY", 0)
	for name, rule := range map[string]func(*testing.T, *soak){
		"touches": soakTouches, "max-open-requests": soakMaxOpen, "red batch": soakRedBatch,
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

// agents sets what agents do: the file that an issue changes, and what the agents have in common of which only one may work.
func (k *soak) agents(t *testing.T, file, lock string) {
	t.Helper()
	text := strings.NewReplacer("DIR", k.scene.dir, "FILE", file, "LOCK", lock).Replace(soakCommits)
	if err := os.WriteFile(k.path("agent.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// killed runs ralph in the first clone, and kills it at one of its next calls of git.
func (k *soak) killed(t *testing.T, calls int, env []string, args ...string) {
	t.Helper()
	at := k.calls() + 1 + k.random.IntN(calls)
	p := k.ralphIn(t, k.clones[0], env, args...)
	k.ended = make(chan struct{})
	go func() { defer close(k.ended); p.end(t) }()
	if _, ok := k.awaitCall(at); ok {
		k.kill(t, p.Process.Pid)
	} else {
		t.Errorf("ralph ended before call %d of git", at)
	}
	<-k.ended
	t.Logf("killed at call %d of git", at)
}

// on lists the issues whose commits a branch of the first clone has.
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

// issue is the text of an issue in the first clone.
func (k *soak) issue(t *testing.T, key string) string {
	t.Helper()
	b, err := os.ReadFile(string(k.clones[0]) + "/.ralph/backlog/" + key + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Issues that change the same file are worked one after the other, and all of them land.
func soakTouches(t *testing.T, k *soak) {
	k.agents(t, "shared.txt", "shared")
	for _, key := range k.keys {
		k.clones[0].write(t, ".ralph/backlog/"+key+".md", "---\ntitle: Do "+key+"\nlabels: [no-human]\nstate: open\ntouches: [shared.txt]\n---\n")
	}
	env, args := []string{"RALPH_REMOTE=none", "RALPH_PUBLISH=merge"}, []string{"work", "--parallel", "4"}
	k.killed(t, soakCalls, env, args...)
	for range soakRounds {
		k.age(t)
		if k.ralphIn(t, k.clones[0], env, args...).end(t) == 0 && len(k.on(t, "main")) == len(k.keys) {
			break
		}
	}
	if got := k.on(t, "main"); !slices.Equal(got, k.keys) {
		t.Errorf("main has %q, want each of %q once", got, k.keys)
	}
	if text := k.read("alone-shared"); text != "" {
		t.Errorf("two agents at the same time: %s", text)
	}
}

// No more branches are open than are allowed, and no more issues are begun.
func soakMaxOpen(t *testing.T, k *soak) {
	const most = 2
	k.agents(t, "$RALPH_ISSUE_KEY.txt", "{{key}}")
	env := []string{"RALPH_REMOTE=none", "RALPH_PUBLISH=branch", fmt.Sprint("RALPH_MAX_OPEN_REQUESTS=", most)}
	args := []string{"work", "--parallel", "4"}
	merged := 0
	begun := func() int {
		var keys []string
		for line := range strings.Lines(k.read("log")) {
			keys = append(keys, strings.TrimSpace(strings.TrimPrefix(line, "start ")))
		}
		slices.Sort(keys)
		return len(slices.Compact(keys))
	}
	k.killed(t, soakCalls/2, env, args...)
	for range 2 * soakRounds {
		k.age(t)
		k.ralphIn(t, k.clones[0], env, args...).end(t)
		if n := begun() - merged; n > most {
			t.Fatalf("%d issues are begun and not merged, want at most %d", n, most)
		}
		for _, key := range k.keys { // the user merges one
			if _, err := k.clones[0].try("rev-parse", "--verify", "--quiet", "ralph/"+key); err == nil &&
				strings.Contains(k.issue(t, key), "in-review") && !slices.Contains(k.on(t, "main"), key) {
				k.clones[0].git(t, "merge", "--quiet", "--no-edit", "ralph/"+key)
				merged++
				break
			}
		}
		if merged == len(k.keys) {
			break
		}
	}
	if got := k.on(t, "main"); !slices.Equal(got, k.keys) {
		t.Errorf("the user could merge %q, want each of %q once", got, k.keys)
	}
}

// Of branches that are merged together, those that pass land, and the one that does not is left to a person.
func soakRedBatch(t *testing.T, k *soak) {
	k.agents(t, "$RALPH_ISSUE_KEY.txt", "{{key}}")
	red := k.keys[k.random.IntN(len(k.keys))]
	green := slices.DeleteFunc(slices.Clone(k.keys), func(key string) bool { return key == red })
	env := []string{"RALPH_REMOTE=none", "RALPH_PUBLISH=branch"}
	if got := k.ralphIn(t, k.clones[0], env, "work", "--parallel", "2").end(t); got != 0 {
		t.Fatalf("the sweep before: status %d", got)
	}
	args := []string{"merge", "--all", "--gate", "test ! -e " + red + ".txt"}
	k.killed(t, soakCalls, env, args...)
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
