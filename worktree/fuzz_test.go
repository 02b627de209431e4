package worktree

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

func FuzzValidRef(f *testing.F) {
	for _, seed := range []string{
		"main", "a/b", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a..b", "a@{b", "@", "a b", "a~", "a\x7f", "é", "-a", "a.", "a/", "a\\b", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsRune(name, 0) || len(name) > 1000 {
			return // cannot be given to a program
		}
		ref := branchRef(name)
		accepted := exec.Command("git", "check-ref-format", ref).Run() == nil
		if validRef(ref) != accepted {
			t.Errorf("validRef(%q) = %v, git says %v", ref, !accepted, accepted)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	sha := strings.Repeat("a", 40)
	good, err := json.Marshal(record{
		Spec: Spec{Run: "r", Key: "k", Branch: "ralph/k", Base: Base{Commit: sha}}, Start: sha, GitDir: "/x/.git/worktrees/k",
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := decodeRecord(good); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"spec":{"run":"r","key":"../k"}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		rec, err := decodeRecord(content)
		if err == nil && (rec.Spec.check() != nil || !isObjectName(rec.Start)) {
			t.Errorf("accepted %+v", rec)
		}
	})
}

func FuzzDecodeHolder(f *testing.F) {
	f.Add(`{"owner":"o","generation":1,"expires":"2026-01-01T00:00:00Z","nonce":"x"}` + "\nmore")
	f.Add(`{"owner":"o","generation":-1}`)
	f.Fuzz(func(t *testing.T, message string) {
		if h, err := decodeClaim(message); err == nil && (h.Owner == "" || h.Generation < 1) {
			t.Errorf("accepted %+v", h)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add("# branch.oid " + strings.Repeat("a", 40) + "\x00# branch.head main\x001 .M N... 100644 100644 100644 a b x y\x00? z\x00")
	f.Add("u UU N... 1 2 3 4 a b c path\x00")
	f.Add("2 R. N... 1 2 3 a b R100 new\x00old\x00")
	f.Fuzz(func(t *testing.T, out string) {
		l, err := parseStatus(out)
		for _, c := range l.changes {
			if err == nil && strings.ContainsRune(c.path, 0) {
				t.Errorf("path %q", c.path)
			}
		}
	})
}

func FuzzParsers(f *testing.F) {
	f.Add("worktree /a\x00HEAD x\x00branch refs/heads/main\x00\x00worktree /b\x00locked why\x00\x00")
	f.Add(strings.Repeat("a", 40) + "\x1f\x1fsubject\x00")
	f.Add("aaa commit 14\ntree x\n\nhello\n\nbbb missing\n")
	f.Fuzz(func(_ *testing.T, out string) {
		parseCheckouts(out)
		_, _, _ = parseLog(out)
		_, _ = parseBatch(out, "commit")
		_ = (&GitError{Args: []string{"x"}, Stderr: out}).Error()
	})
}
