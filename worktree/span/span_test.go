package span

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

func FuzzParse(f *testing.F) {
	f.Add(">" + strings.Repeat("a", 40) + "\x00\x00\x00\x00A <a>\x00B <b>\x00Reviewed-by: C\x1esigned-off-by: D\x00subject\x00subject\n\nCloses #1\n\x00")
	f.Fuzz(func(_ *testing.T, out string) {
		_ = new(Span).parse(bufio.NewReader(strings.NewReader(out)))
	})
}

// A name cannot imitate the end of a field and so hide the following text.
func TestSeparatorsInNames(t *testing.T) {
	t.Parallel()
	r, base, tip := newReader(t, `GIT_AUTHOR_NAME="$(printf 'a\037b\037c\036d')" git commit -q --allow-empty -m "one

Closes #1

Reviewed-by: Eve"`)
	s, err := r.Read(t.Context(), base, tip)
	if err != nil || len(s.Commits) != 1 || s.Commits[0].Subject != "one" || !s.ForgeCommands[tip] || !s.Controls[tip] {
		t.Errorf("%+v, %v", s, err)
	}
	if !slices.Contains(s.People, Person{"Reviewed-by:", "Eve"}) {
		t.Errorf("people %+v", s.People)
	}
}

// newReader returns a reader of a repository whose main has one commit, with the script's commits on top of it, and the IDs
// of both tips.
func newReader(t *testing.T, script string) (r *Reader, base, tip string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("sh", "-ec", `git init -q -b main; echo a >a; git add a; git commit -qm first; git tag base; `+script+`
git rev-parse base HEAD`)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(out))
	ids = ids[len(ids)-2:]
	common := filepath.Join(dir, ".git")
	return &Reader{Git: git.New(t.TempDir()).Pin(common, common, dir)}, ids[0], ids[1]
}

// A span in memory gives the same answers as git.
func TestAnswersOfSpan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script             string
		unchanged, related bool
		unknown            bool // Unchanged has no answer
	}{
		"changed":      {`echo b >a; git commit -qam x`, false, true, false},
		"changed back": {`echo b >a; git commit -qam x; git revert --no-edit HEAD`, true, true, false},
		"empty":        {`git commit -q --allow-empty -m x`, true, true, false},
		"older":        {`git commit -q --allow-empty -m y; git tag -f base; git reset -q --hard HEAD~1; echo b >b; git add b; git commit -qm x`, false, true, false},
		"other":        {`git switch -q --orphan o; echo b >b; git add b; git commit -qm x`, false, false, true},
		"merge":        {`git switch -qc side; echo b >b; git add b; git commit -qm x; git switch -q main; git commit -q --allow-empty -m y; git merge -q --no-edit side`, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, base, tip := newReader(t, c.script)
			for range 2 { // first from git, then from the span
				unchanged, err := r.Unchanged(t.Context(), base, tip)
				if unchanged != c.unchanged || (err != nil) != c.unknown {
					t.Errorf("unchanged %v, %v", unchanged, err)
				}
				if related, err := r.Related(t.Context(), base, tip); err != nil || related != c.related {
					t.Errorf("related %v, %v", related, err)
				}
				fork, err := r.Fork(t.Context(), base, tip)
				if want, _ := r.Git.Output(t.Context(), "merge-base", base, tip); fork != want || (err != nil) == c.related {
					t.Errorf("fork %s, %v", fork, err)
				}
				if _, err := r.Read(t.Context(), base, tip); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	want := []Person{
		{"author", "José <j@x>"},
		{"committer", "Ada <ada@example.com>"},
		{"Reviewed-by:", "Grace <g@x>"},
		{"Co-authored-by:", "Bo <b@x>"},
	}
	script := `git commit -q --allow-empty --author='José <j@x>' -m "x

Reviewed-by: Grace <g@x>
Fixes: all
Co-authored-by: Bo
  <b@x>"`
	for name, script := range map[string]string{
		"": script, "in another encoding": `git config i18n.commitEncoding ISO-8859-1; printf 'x\n\nReviewed-by: Grace <g@x>\nCo-authored-by: Bo <b@x>\n' >m
git commit -q --allow-empty --author="$(printf 'Jos\351 <j@x>')" -F m`,
	} {
		r, base, tip := newReader(t, script)
		for range 2 {
			if got, err := r.People(t.Context(), base, tip); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}
