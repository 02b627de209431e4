package note

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// A join handles the remote's notes since the last join, however many notes are only here.
func TestJoinOfManyLocalNotes(t *testing.T) {
	t.Parallel()
	a := newSite(t)
	b := a.clone()
	first, second, third := a.commit(), b.commit(), a.commit()
	for _, step := range []struct {
		s      *site
		commit string
	}{{a, first}, {b, second}} {
		if err := step.s.Add(t.Context(), step.commit, "shared"); err != nil {
			t.Fatal(err)
		}
		if err := step.s.Push(t.Context(), step.commit); err != nil {
			t.Fatal(err)
		}
	}
	blob, _, _ := strings.Cut(a.git("ls-tree", "-r", "--format=%(objectname)", Ref), "\n")
	index := ""
	for i := range maxJoined + 1 {
		name := fmt.Sprintf("%040x", i+1)
		index += fmt.Sprintf("100644 %s\t%s/%s\n", blob, name[38:]+name[:0], name[:38])
	}
	a.git("read-tree", Ref)
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir, cmd.Stdin = a.dir, strings.NewReader(index)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.git("update-ref", Ref, a.git("commit-tree", "-m", "many", "-p", Ref, a.git("write-tree")))
	if err := a.Add(t.Context(), third, "third"); err != nil {
		t.Fatal(err)
	}
	if err := a.Push(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	a.want(a.here(second), "shared")
	a.want(a.here(third), "third")
	a.want(a.there(third), "third")
	a.want(a.here(fmt.Sprintf("%02x%038x", 1, 0)), "shared")
	if n := strings.Count(a.git("ls-tree", "-r", Ref), "\n"); n < maxJoined {
		t.Errorf("%d notes are here", n)
	}
	if n := strings.Count(a.git("ls-tree", "-r", a.git("ls-remote", "origin", Ref)[:40]), "\n"); n > 2 {
		t.Errorf("%d lines of notes are there", n)
	}
}
