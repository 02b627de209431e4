package worktree

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

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
		if err == nil && (rec.Spec.check() != nil || !git.IsObject(rec.Start)) {
			t.Errorf("accepted %+v", rec)
		}
	})
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", ".", "..", "a/b", "a b", "a.lock", "a..b", ".a", "é", "-x\n", strings.Repeat("a", 201)} {
		if checkKey(key) == nil {
			t.Errorf("key %q is accepted", key)
		}
	}
}
