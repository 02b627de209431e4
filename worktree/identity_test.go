package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/identity"
)

var (
	bot = identity.Ident{Name: "ralph-app[bot]", Email: "7+ralph-app[bot]@users.noreply.github.com"}
	eve = identity.Ident{Name: "Eve", Email: "eve@example.com"}
)

// as makes a private tree whose commits carry an identity.
func (f *fixture) as(key string, who Identity) inside {
	f.Helper()
	s := f.spec(key, "r1")
	s.Private, s.Identity = true, who
	tree := f.addSpec(s)
	return inside{f, tree, f.use(tree)}
}

// finished imports the tree and finishes its commits.
func (f *fixture) finished(t *Tree, neutralize bool) Import {
	f.Helper()
	f.imported(t)
	got, err := t.Finish(f.Context(), neutralize)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func TestFinishInAName(t *testing.T) {
	t.Parallel()
	const own = "Ada <ada@example.com>"
	const plain = "env -u GIT_AUTHOR_NAME -u GIT_AUTHOR_EMAIL -u GIT_COMMITTER_NAME -u GIT_COMMITTER_EMAIL "
	const agent = "GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b "
	for name, c := range map[string]struct {
		who       Identity
		env       string
		author    string
		committer string
		trailers  string
		kept      bool // no commit is rewritten
	}{
		"as it is":           {author: own, committer: own},
		"of the agent":       {env: agent, author: "A <a@b>", committer: "A <a@b>"},
		"author":             {who: Identity{Author: bot}, author: bot.String(), committer: bot.String()},
		"author, enforced":   {who: Identity{Author: bot}, env: agent, author: bot.String(), committer: bot.String()},
		"committer":          {who: Identity{Committer: eve}, author: own, committer: eve.String()},
		"both":               {who: Identity{Author: bot, Committer: eve}, env: agent, author: bot.String(), committer: eve.String()},
		"given to the agent": {who: Identity{Author: bot, Committer: eve}, env: plain, author: bot.String(), committer: eve.String(), kept: true},
		"trimmed by git":     {who: Identity{Author: identity.Ident{Name: "Ada L.", Email: "ada@example.com"}}, env: plain, author: "Ada L <ada@example.com>", committer: "Ada L <ada@example.com>", kept: true},
		"sign-off":           {who: Identity{SignOff: true}, env: agent, author: "A <a@b>", committer: own, trailers: "Signed-off-by: " + own},
		"sign-off of a bot":  {who: Identity{Author: bot, SignOff: true}, author: bot.String(), committer: bot.String(), trailers: "Signed-off-by: " + bot.String()},
		"co-authors": {
			who: Identity{Author: bot, CoAuthors: []identity.Ident{eve}, SignOff: true, Committer: eve}, author: bot.String(), committer: eve.String(),
			trailers: "Co-authored-by: " + eve.String() + "\nSigned-off-by: " + eve.String(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.as("42", c.who)
			in.sh("echo b > b.txt; git add -A; " + c.env + "git commit -qm 'Fixes #1' -m 'Helped-by: X <x@y>'; echo c > b.txt; " + c.env + "git commit -qam two")
			before := f.imported(in.tree)
			if c.kept {
				if got := f.finished(in.tree, false); got.Tip != before.Tip {
					t.Error("commits that were right were rewritten")
				}
			}
			got := f.finished(in.tree, true)
			for i, commit := range got.Commits {
				who := f.git("log", "-1", "--format=%an <%ae>\n%cn <%ce>", commit.SHA)
				if who != c.author+"\n"+c.committer {
					t.Errorf("commit %d is of %s", i, who)
				}
				want := []string{"Fixes # 1\n\nHelped-by: X <x@y>\n" + c.trailers, "two\n\n" + c.trailers}[i]
				if m := f.message(commit.SHA); strings.TrimSpace(m) != strings.TrimSpace(want) {
					t.Errorf("message %q, want %q", m, want)
				}
			}
			if again := f.finished(in.tree, true); again.Tip != got.Tip || len(got.Commits) != 2 {
				t.Errorf("a second time %+v, first %+v", again, got)
			}
			f.remove(in.tree)
		})
	}
}

// signing gives the user a key and returns the identity that signs with it.
func (f *fixture) signing(format identity.Format) Identity {
	f.Helper()
	dir := realDir(f)
	switch format {
	case identity.SSH:
		key := filepath.Join(dir, "key")
		f.sh(dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
		f.write(dir, "allowed", "ada@example.com "+f.read(key+".pub"))
		f.git("config", "user.signingKey", key)
		f.git("config", "gpg.ssh.allowedSignersFile", filepath.Join(dir, "allowed"))
	case identity.GPG:
		home := filepath.Join("/tmp", filepath.Base(filepath.Dir(dir))+"-gpg") // the path of a socket must be short
		if err := os.Mkdir(home, 0o700); err != nil {
			f.Fatal(err)
		}
		f.write(dir, "gpg", "#!/bin/sh\nexec gpg --homedir "+home+" \"$@\"\n")
		f.sh(dir, "chmod", "+x", "gpg")
		f.Cleanup(func() {
			_, _ = f.try(dir, "gpgconf", "--homedir", home, "--kill", "all")
			_ = os.RemoveAll(home)
		})
		f.sh(dir, "./gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Ada <ada@example.com>", "ed25519", "sign")
		f.git("config", "gpg.program", filepath.Join(dir, "gpg"))
	}
	return Identity{Sign: format}
}

// All commits of the run verify, also after a rebase. A person's commits do not change.
func TestFinishSigns(t *testing.T) {
	t.Parallel()
	for _, format := range []identity.Format{identity.SSH, identity.GPG} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			who := f.signing(format)
			f.git("switch", "-q", "-c", "ralph/42")
			person := f.commit(f.dir, "p.txt", "p\n", "Of a person")
			f.git("switch", "-q", "main")
			if err := f.repo.CheckIdentity(t.Context(), who, nil); err != nil {
				t.Fatal(err)
			}
			in := f.as("42", who)
			in.sh("echo b > b.txt; git add -A; git commit -qm one; git switch -qc side HEAD^; echo c > c.txt; git add -A; git commit -qm two; " +
				"git switch -q ralph/42; git merge -q --no-edit side; git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -m 'f\xfcnf'; " +
				"c=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN SSH SIGNATURE-----\\n forged\\n -----END SSH SIGNATURE-----' | git hash-object -t commit -w --stdin); git reset -q $c")
			verified := func(got Import, n int) {
				t.Helper()
				if len(got.Commits) != n || got.Commits[0].SHA != person && n == 5 {
					t.Errorf("%d commits: %+v", len(got.Commits), got.Commits)
				}
				for _, c := range got.Commits {
					if out, err := f.try(f.dir, "git", "verify-commit", c.SHA); (err == nil) == (c.SHA == person) {
						t.Errorf("%s (%s): %v %s", c.SHA, c.Subject, err, out)
					}
				}
			}
			before := f.imported(in.tree)
			got := f.finished(in.tree, true)
			verified(got, 5)
			const format = "--format=%an %ae %at %ct %e %T %B"
			if a, b := f.git("log", format, got.Tip), f.git("log", format, before.Tip); a != b {
				t.Errorf("%s\nwas %s", a, b)
			}
			if again := f.finished(in.tree, true); again.Tip != got.Tip {
				t.Error("signed a second time")
			}
			f.commit(f.dir, "m.txt", "m\n", "Meanwhile")
			if _, err := in.tree.Rebase(t.Context(), f.base()); err != nil {
				t.Fatal(err)
			}
			moved := f.finished(in.tree, true)
			if out, err := f.try(f.dir, "git", "verify-commit", moved.Tip); err != nil {
				t.Errorf("after a rebase: %v %s", err, out)
			}
			f.remove(in.tree)
			if left, err := os.ReadDir(f.repo.tempDir); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

func TestCheckIdentity(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	f.open(Options{})
	locked := filepath.Join(realDir(t), "key")
	f.sh("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", locked)
	for name, c := range map[string]struct {
		who  Identity
		here bool
		key  string
		want error
	}{
		"on the host":                 {here: true, want: ErrNoIdentity},
		"on the host, with a name":    {who: Identity{Author: bot}, here: true},
		"in a sandbox":                {},
		"sign-off":                    {who: Identity{SignOff: true}, want: ErrNoIdentity},
		"sign-off with a name":        {who: Identity{SignOff: true, Committer: eve}},
		"signature":                   {who: Identity{Sign: identity.SSH}, want: ErrNoIdentity},
		"signature without a key":     {who: Identity{Sign: identity.SSH, Author: eve}, want: ErrSign},
		"signature with a passphrase": {who: Identity{Sign: identity.SSH, Author: eve}, key: locked, want: ErrSign},
	} {
		f.git("config", "user.signingKey", c.key)
		var environ []string
		if c.here {
			environ = os.Environ()
		}
		if err := f.repo.CheckIdentity(t.Context(), c.who, environ); !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.git("config", "user.name", "Ada")
	f.git("config", "user.email", "ada@example.com")
	if err := f.repo.CheckIdentity(t.Context(), Identity{SignOff: true}, os.Environ()); err != nil {
		t.Error(err)
	}
	f.git("config", "--unset", "user.name")
	hidden := []string{"GIT_AUTHOR_NAME=Ada", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_NAME="}
	for _, environ := range [][]string{{}, hidden} {
		if err := f.repo.CheckIdentity(t.Context(), Identity{}, environ); !errors.Is(err, ErrNoIdentity) {
			t.Errorf("%q: %v", environ, err)
		}
	}
	if err := f.repo.CheckIdentity(t.Context(), Identity{}, hidden[:2]); err != nil {
		t.Error(err)
	}
}

// Header fields that an agent puts where git ignores them become neither arguments of the host's git nor names.
func TestFinishSignsNothingElse(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"tree":      "tree -F/etc/passwd",
		"parent":    "parent refs/heads/main",
		"author":    "author Eve <eve@example.com> 1 +0000",
		"committer": "committer Eve <eve@example.com>1700000000 +0000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.as("42", f.signing(identity.SSH))
			in.sh("echo b > b.txt; git add -A; git commit -qm one; c=$(git cat-file commit HEAD | sed '/^committer/a " + line + "' | git hash-object -t commit -w --stdin --literally); git reset -q --soft $c")
			if _, err := in.tree.Import(t.Context(), boxed(in.tree)); err != nil {
				t.Log("refused: ", err)
				return
			}
			got, err := in.tree.Finish(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			object := f.git("cat-file", "commit", got.Tip)
			if strings.Contains(object, "Eve") || strings.Contains(object, "root:") || strings.Count(object, "\nparent ") != 1 || strings.Count(object, "tree ") != 1 {
				t.Errorf("signed:\n%s", object)
			}
			f.git("verify-commit", got.Tip)
		})
	}
}
