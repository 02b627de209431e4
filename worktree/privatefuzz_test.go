package worktree

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// FuzzPrivateFiles reads what an agent may have put into its private repository.
func FuzzPrivateFiles(f *testing.F) {
	sha := strings.Repeat("a", 40)
	f.Add("ref: refs/heads/x\n", sha+" refs/heads/x\n", "0 "+sha+" Ada <a> 1 +0000\tcommit\n")
	f.Add(sha, "^"+sha+"\n", "\n\n")
	f.Add("ref: ../../x", "# pack-refs with: peeled\n", "a b")
	root, err := os.OpenRoot(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	if err := root.Mkdir("logs", 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head, packed, log string) {
		for name, content := range map[string]string{"HEAD": head, "packed-refs": packed, "logs/HEAD": log} {
			if err := root.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h := readHead(root, "k")
		for _, commit := range h.commits {
			if !isObjectName(commit) {
				t.Errorf("%q is no name of a commit", commit)
			}
		}
		if h.onRef != "" && !validRef(h.onRef) {
			t.Errorf("on ref %q", h.onRef)
		}
	})
}

// FuzzLooseObject reads loose objects that an agent wrote, and what they refer to.
func FuzzLooseObject(f *testing.F) {
	sha := strings.Repeat("ab", 20)
	f.Add([]byte("blob 3\x00abc"))
	f.Add([]byte("tree 33\x00100644 x\x00" + strings.Repeat("a", 20)))
	f.Add([]byte("commit 99\x00tree " + sha + "\nparent " + sha + "\n\nsubject"))
	f.Add([]byte("blob 99999999999999999999\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := bytes.NewReader(raw)
		kind, size, err := looseHeader(r)
		if err == nil && (size < 0 || packKinds()[kind] == 0) {
			t.Errorf("accepted %s of %d bytes", kind, size)
		}
		body := raw[len(raw)-r.Len():]
		for _, name := range append(treeEntries(body, 20), commitLinks(string(body))...) {
			if !isObjectName(name) {
				t.Errorf("%q is no name of an object", name)
			}
		}
	})
}

// FuzzUserConfig writes what git listed so that it can be read again.
func FuzzUserConfig(f *testing.F) {
	f.Add("core.autocrlf\ninput\x00filter.a.b \"c\".clean\ntr \\ \t \"\n \x00core.bare\x00")
	f.Fuzz(func(t *testing.T, out string) {
		for _, s := range parseConfig(out) {
			section, subsection, key := s.split()
			if strings.Contains(section, ".") || strings.Contains(key, ".") || len(subsection) > len(s.name) {
				t.Errorf("%q is split into %q, %q, %q", s.name, section, subsection, key)
			}
		}
		parseConfig(out).inert()
		alternate(out)
	})
}

// TestPrivateConfigRoundTrip lets git read what is written for it.
func TestPrivateConfigRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := "printf \"a\\tb\" ; # \\ %f\n\tx"
	f.git("config", `filter.a.B "c".clean`, want)
	f.git("config", "core.abbrev", "9")
	in := f.private("k", "r1")
	if got := in.sh(`git config 'filter.a.B "c".clean'`); got != want {
		t.Errorf("filter is %q, want %q", got, want)
	}
	if got := in.sh("git config core.abbrev; git config user.name; git config user.email"); got != "9\nAda\nada@example.com" {
		t.Errorf("settings: %s", got)
	}
	f.remove(in.tree)
}
