package pool_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
)

// Files that the user has copied into worktrees stay private: no commit may contain one of them, or a secret from it, and reports
// show no such value.
func TestCopiedFilesStayPrivate(t *testing.T) {
	t.Parallel()
	const secret = "a-copied-value-0815"
	for name, c := range map[string]struct {
		script, want string // want: the policy's finding; empty: the run succeeds
	}{
		"committed":          {"git add -f .env.test", ".env.test was copied from a file of the checkout that git does not track"},
		"in a copied folder": {"git add -f private/deep/x.txt", "private/deep/x.txt was copied from a file of the checkout that git does not track"},
		"in base64":          {"base64 .env.test > notes.md", "notes.md adds a secret"},
		"from a folder":      {"cat private/.env > notes.md", "notes.md adds a secret"},
		"a token in JSON":    {"tr -d '{}' < private/key.json > notes.md", "notes.md adds a secret"},
		"made on the host":   {"cat .env.host > notes.md", "notes.md adds a secret"},
		"known there":        {"echo not-so-secret-1 > notes.md", ""},
		"said":               {"echo work > work; cat .env.test private/.env", ""},
		"tracked there":      {"echo more >> private/tracked.txt; echo new > private/new.txt", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+c.script+`; git add -A; git commit -qm work`+done)
			f.write(".gitignore", ".ralph/\n.env*\n/private/*\n!/private/tracked.txt\n!/private/new.txt\n")
			f.write("private/tracked.txt", "the password is not-so-secret-1\n")
			f.commit("ignored files")
			f.write(".env.test", "NODE_ENV=testing-1\nDB_PASSWORD="+secret+"\nDB_PASS=not-so-secret-1\n")
			f.write("private/.env", "COOKIE_SALT=Zm9vYmFyYmF6cXV4MTIzNDU2\n")
			f.write("private/deep/x.txt", "text\n")
			f.write("private/key.json", `{"k": "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw", "path": "/usr/share/text"}`)
			f.Config.Run.Copy, f.Config.Run.Secrets = []string{".env.test", "./private"}, redact.New()
			f.Config.Run.Before = []string{"echo API_TOKEN=a-token-made-4711 > .env.host"}
			f.Config.Run.Gate, f.Config.Run.NoCanary = lines("test -f .env.test"), true
			f.issue("a")
			r := f.one("a")
			switch all := strings.Join(r.Facts.Policy, "\n"); {
			case c.want == "" && r.Verdict.Outcome != journal.Succeeded:
				t.Errorf("%+v", r.Verdict)
			case c.want != "" && (r.Verdict.Outcome != journal.PolicyBlocked || !strings.Contains(all, c.want)):
				t.Errorf("%+v, found %q", r.Verdict, all)
			}
			text, err := os.ReadFile(f.repo + "/.ralph/backlog/a.md")
			if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "Zm9vYmFy") {
				t.Errorf("%v, the issue has %s", err, text)
			}
		})
	}
}

// A file that git tracks in the checkout was not copied, even if the base lacks it: the user looks at the branch.
func TestFilesOfABranchInTheCheckoutAreNotCopied(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; mkdir -p data; echo new >> data/new.txt; git add -A; git commit -qm work`+done)
	f.Config.Run.Base, f.Config.Run.Copy = "main", []string{"data"}
	f.write("data/mine.txt", "mine\n")
	f.write(".gitignore", ".ralph/\ndata/mine.txt\n")
	f.commit("ignored files")
	f.issue("a")
	f.one("a")
	if err := f.pool().Requeue(t.Context(), "a", "me", tracker.Retry, ""); err != nil {
		t.Fatal(err)
	}
	f.git(f.repo, "switch", "-q", "--detach", "ralph/a")
	if r := f.one("a"); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v, found %q", r.Verdict, r.Facts.Policy)
	}
}
