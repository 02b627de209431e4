package importer

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// TestCapsOverTwoImports sends a second import that refers to the folders of the first.
func TestCapsOverTwoImports(t *testing.T) {
	t.Parallel()
	names := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("n%04d", i))
		}
		return all
	}
	wide := func(p *pack) string { return p.tree("100644", p.object(typeBlob, "x"), names(1000)...) }
	file := func(p *pack) string { return p.tree("100644", p.object(typeBlob, "x"), "f") }
	deep := func(levels int) func(*pack, string) string {
		return func(p *pack, tree string) string {
			for range levels {
				tree = p.tree("40000", tree, "d")
			}
			return tree
		}
	}
	times := func(n int) func(*pack, string) string {
		return func(p *pack, tree string) string { return p.tree("40000", tree, names(n)...) }
	}
	tests := map[string]struct {
		first  func(p *pack) string
		second func(p *pack, tree string) string
		want   string // part of the error; empty: accepted
	}{
		"paths within the cap":  {wide, times(1), ""},
		"paths above the cap":   {wide, times(100), "paths"},
		"levels within the cap": {func(p *pack) string { return deep(200)(p, file(p)) }, deep(20), ""},
		"levels above the cap":  {func(p *pack) string { return deep(200)(p, file(p)) }, deep(100), "inside each other"},
		"many given folders, few paths": {
			func(p *pack) string { return p.tree("40000", file(p), names(30)...) }, times(30), "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, base := given(t)
			user := git.New(t.TempDir()).With("GIT_DIR=" + filepath.Dir(objects))
			send := func(p *pack, tip string, known ...string) error {
				q, err := Read(t.Context(), strings.NewReader("ralph 1\ntip "+tip+"\npack\n"+string(p.bytes())), Options{
					Dir: filepath.Join(t.TempDir(), "quarantine"), Given: []string{objects}, Known: known, Since: time.Now(),
					Caps: Caps{Paths: 2000},
				})
				if err != nil {
					return err
				}
				return errors.Join(q.Accept(t.Context(), user, ""), q.Close())
			}
			p := &pack{}
			tree := test.first(p)
			first := p.commit(tree, time.Now(), base)
			if err := send(p, first, base); err != nil {
				t.Fatal(err)
			}
			p = &pack{}
			err := send(p, p.commit(test.second(p, tree), time.Now(), first), base, first)
			if test.want == "" && err != nil ||
				test.want != "" && (!errors.Is(err, ErrTooBig) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
