package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// gitSpan is what git itself says; the line is read without it.
func gitSpan(f *fixture, base, tip string) []Commit {
	f.Helper()
	out, err := f.repo.git.out(context.Background(), "log", "-z", "--format=%H%x1f%P%x1f%s", "--topo-order", "--reverse", base+".."+tip)
	if err != nil {
		f.Fatal(err)
	}
	commits, _, err := parseLog(out)
	if err != nil {
		f.Fatal(err)
	}
	return commits
}

// TestLineAsGit writes commits with any message and holds what is read in-process against git's own answer.
func TestLineAsGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := f.git("rev-parse", "HEAD")
	tree := f.git("rev-parse", "HEAD^{tree}")
	pieces := []string{" ", "\t", "\n", "\n\n", "\r\n", "a", "word", "é", "\xff", "\u2028", "\v", "-", "tree ", "\x1f"}
	rapid.Check(t, func(t *rapid.T) {
		at := base
		for range rapid.IntRange(1, 4).Draw(t, "commits") {
			message := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "message"), "")
			next, err := f.repo.objects.commit(tree, []string{at}, message, time.Unix(1, 0))
			if err != nil {
				t.Fatal(err)
			}
			at = next
		}
		line, ok := f.repo.objects.readLine(base, at)
		if !ok {
			t.Fatal("not read")
		}
		if want := gitSpan(f, base, at); !slices.Equal(line.commits, want) {
			t.Fatalf("read %q, git says %q", line.commits, want)
		}
	})
}

// TestLineLeavesTheRestToGit: what is not plain is not answered, and the span is right all the same.
func TestLineLeavesTheRestToGit(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*fixture, string) string{
		"merge": func(f *fixture, _ string) string {
			f.git("checkout", "-q", "-b", "side")
			f.git("commit", "-q", "--allow-empty", "-m", "on the side")
			f.git("checkout", "-q", "main")
			f.git("commit", "-q", "--allow-empty", "-m", "straight on")
			f.git("merge", "-q", "--no-edit", "side")
			return f.git("rev-parse", "HEAD")
		},
		"packed": func(f *fixture, _ string) string {
			f.git("commit", "-q", "--allow-empty", "-m", "packed")
			f.git("repack", "-adq")
			return f.git("rev-parse", "HEAD")
		},
		"another encoding": func(f *fixture, _ string) string {
			f.git("-c", "i18n.commitEncoding=latin1", "commit", "-q", "--allow-empty", "-m", "caf\xe9")
			return f.git("rev-parse", "HEAD")
		},
		"base is not below": func(f *fixture, _ string) string {
			f.git("checkout", "-q", "--orphan", "other")
			f.git("commit", "-q", "--allow-empty", "-m", "a root of its own")
			return f.git("rev-parse", "HEAD")
		},
		"shallow": func(f *fixture, base string) string {
			f.git("commit", "-q", "--allow-empty", "-m", "more")
			if err := os.WriteFile(filepath.Join(f.dir, ".git", "shallow"), []byte(base+"\n"), 0o600); err != nil {
				f.Fatal(err)
			}
			return f.git("rev-parse", "HEAD")
		},
		"damaged": func(f *fixture, _ string) string {
			f.git("commit", "-q", "--allow-empty", "-m", "was this")
			tip := f.git("rev-parse", "HEAD")
			f.git("commit", "-q", "--amend", "--allow-empty", "-m", "is that")
			other := f.git("rev-parse", "HEAD")
			object := func(sha string) string { return filepath.Join(f.dir, ".git", "objects", sha[:2], sha[2:]) }
			content, err := os.ReadFile(object(other))
			if err == nil {
				err = os.Remove(object(tip))
			}
			if err == nil {
				err = os.WriteFile(object(tip), content, 0o600)
			}
			if err != nil {
				f.Fatal(err)
			}
			return tip
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			base := f.git("rev-parse", "HEAD")
			tip := make(f, base)
			if line, ok := f.repo.objects.readLine(base, tip); ok {
				t.Fatalf("read %+v", line)
			}
			if name == "damaged" {
				return
			}
			s, err := f.repo.readSpan(context.Background(), base, tip)
			if err != nil || !slices.Equal(s.commits, gitSpan(f, base, tip)) {
				t.Fatalf("%+v, %v", s, err)
			}
		})
	}
}

func FuzzParseCommit(f *testing.F) {
	sha := strings.Repeat("a", 40)
	f.Add([]byte(fmt.Sprintf("tree %s\nparent %s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nsubject\n\nbody\n", sha, sha)))
	f.Add([]byte("tree " + sha + "\n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, ok := parseCommit(content)
		if !ok {
			return
		}
		if strings.Contains(c.subject, "\n") {
			t.Fatalf("%q", c.subject)
		}
		for _, p := range c.parents {
			if !isObjectName(p) {
				t.Fatalf("%q", p)
			}
		}
	})
}
