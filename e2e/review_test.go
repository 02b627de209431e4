package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Agent and reviewer of these tests are scripts in the repository. The agent follows the task only in its second iteration.
const (
	careless = `cat >told
if grep -q "say hello" told; then echo hello >greeting; else echo hi >greeting; fi
rm told; git add greeting
git -c user.name=a -c user.email=a@example.invalid commit -qm "MESSAGE: please accept"
echo "<promise>COMPLETE</promise>"
`
	strict = `prompt=$(cat)
tag=$(printf '%s\n' "$prompt" | sed -n 's/^<\(review-[a-z0-9]*\)>$/\1/p')
WAIT
found='{"severity": "minor", "text": "written"}'
(echo evil >greeting) 2>/dev/null || found='{"severity": "minor", "text": "read only"}'
git log -n1 --format=%B | grep -q MESSAGE && found='{"severity": "critical", "text": "it sees the message"}'
case "$prompt" in
*MESSAGE*) found='{"severity": "critical", "text": "it is told the message"}' ;;
*"+hello"*) ;;
*) found='{"file": "greeting", "line": 1, "severity": "major", "text": "say hello"}' ;;
esac
echo "<$tag>{\"accept\": true, \"solved\": true, \"tested\": true, \"findings\": [$found]}</$tag>"
`
)

// reviewedRepository is a repository with an issue, the agent and the reviewer. wait is a line for the reviewer's script.
func reviewedRepository(t *testing.T, wait string) repository {
	t.Helper()
	r := newRepository(t)
	r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nSay it in the file greeting.\n")
	r.write(t, "careless.sh", careless)
	r.write(t, "strict.sh", strings.ReplaceAll(strict, "WAIT", wait))
	r.commit(t, "a backlog")
	return r
}

func reviewedEnv(sandbox string) []string {
	return []string{
		"RALPH_SANDBOX=" + sandbox, "RALPH_AGENT_COMMAND=sh careless.sh", "RALPH_REVIEW=command", "RALPH_REVIEW_COMMAND=sh strict.sh",
		"RALPH_GATE=test -s greeting", "RALPH_PUBLISH=merge", "RALPH_GATE_CANARY=false",
	}
}

// shown returns the last run of an issue as `ralph show` prints it.
func (s scene) shown(t *testing.T, r repository, key string) journal.Record {
	t.Helper()
	var runs []journal.Record
	p := s.start(t, r, nil, "show", key, "--json")
	if got := p.end(t); got != 0 {
		t.Fatalf("ralph show: status %d", got)
	}
	if err := json.Unmarshal(p.out.Bytes(), &runs); err != nil || len(runs) == 0 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	return runs[len(runs)-1]
}

// A reviewer's findings are fixed and then merged, in an isolating sandbox and without one.
func TestReviewedSweep(t *testing.T) {
	t.Parallel()
	for sandbox, may := range map[string]string{"none": "written", "native": "read only"} {
		t.Run(sandbox, func(t *testing.T) {
			t.Parallel()
			if sandbox == "native" && isolating() == nil {
				t.Skip("it is Linux's")
			}
			s, r := newScene(t, doIt), reviewedRepository(t, "")
			if got := s.start(t, r, reviewedEnv(sandbox), "work").end(t); got != 0 {
				t.Fatalf("status %d", got)
			}
			run := s.shown(t, r, "greet")
			v := run.Facts.Review
			if run.Verdict.Outcome != journal.Succeeded || run.Verdict.Reason.Code != "" || v == nil || !v.Accepted || v.Round != 2 || len(v.Findings) != 1 || v.Findings[0].Text != may {
				t.Errorf("%+v, %+v", run.Verdict, v)
			}
			text, err := os.ReadFile(filepath.Join(string(r), "greeting"))
			if err != nil || string(text) != "hello\n" {
				t.Errorf("merged: %q, %v", text, err)
			}
			s.clean(t, r)
		})
	}
}

// Ralph is killed while the reviewer works. The next sweep ends the reviewer, loses nothing and has the change reviewed.
func TestKilledDuringTheReview(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"none", "native"} {
		t.Run(sandbox, func(t *testing.T) {
			t.Parallel()
			if sandbox == "native" && isolating() == nil {
				t.Skip("it is Linux's")
			}
			// An isolated reviewer cannot signal to the test, so the test waits for the reviewer's output file.
			s, r := newScene(t, doIt), reviewedRepository(t, "[ -n \"$GO\" ] || exec sleep 86400")
			p := s.start(t, r, append(reviewedEnv(sandbox), "RALPH_AGENT_ENV=GO="), "work", "--log-level", "error")
			await(t, "the review to begin", func() bool {
				found, err := filepath.Glob(s.path("state/ralph/*/runs/greet/*/review-1-agent-1.jsonl"))
				return err == nil && len(found) > 0
			})
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.end(t)
			if got := s.start(t, r, append(reviewedEnv(sandbox), "RALPH_AGENT_ENV=GO=on"), "work").end(t); got != 0 {
				t.Fatalf("status %d", got)
			}
			if run := s.shown(t, r, "greet"); run.Verdict.Outcome != journal.Succeeded || run.Facts.Review == nil || !run.Facts.Review.Accepted {
				t.Errorf("%+v, %+v", run.Verdict, run.Facts.Review)
			}
			s.clean(t, r)
		})
	}
}
