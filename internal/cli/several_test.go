package cli

import (
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// close, reopen and retry take several KEYs. A wrong KEY changes nothing; an issue that fails does not keep the others from it.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, key := range []string{"one", "two", "three"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\ntitle: "+key+"\nlabels: [no-human]\n---\n")
	}
	m.commit(t)
	state := "--state-dir=" + filepath.Join(m.root, "state")
	for _, c := range []struct {
		args []string
		want ran
	}{
		{[]string{"close"}, ran{status: exit.Usage, stderr: "ralph: name the issues: ralph close KEY...\n"}},
		{[]string{"close", "one", "nine"}, ran{status: exit.Usage, stderr: "ralph: no issue \"nine\" in the backlog; " +
			"`ralph work --dry-run` lists them\n"}},
		{[]string{"close", "one", "two", "one.md"}, ran{stdout: "one is closed.\ntwo is closed.\n"}},
		{[]string{"retry", state, "one", "three", "two"}, ran{
			status: exit.Incomplete, stdout: "The next `ralph work` works three.\n",
			stderr: "ralph: one is closed; open it first with: ralph reopen one\n" +
				"ralph: two is closed; open it first with: ralph reopen two\nralph: retry: 2 of 3 issues failed\n",
		}},
		{[]string{"retry", state, "one"}, ran{
			status: exit.Incomplete, stderr: "ralph: one is closed\nralph: open it first with: ralph reopen one\n",
		}},
		{[]string{"reopen", "-q", "one", "three", "two"}, ran{stdout: "one is open.\nthree is open already.\ntwo is open.\n"}},
	} {
		if got := m.run(t, nil, c.args...); got != c.want {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}
