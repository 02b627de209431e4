package record

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

func FuzzDecode(f *testing.F) {
	sha := strings.Repeat("a", 40)
	good, err := json.Marshal(Record{
		Spec: Spec{Run: "r", Key: "k", Branch: "ralph/k", Base: Base{Commit: sha}}, Start: sha, GitDir: "/x/.git/worktrees/k",
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := Decode(good); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"spec":{"run":"r","key":"../k"}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		rec, err := Decode(content)
		if err == nil && (rec.Spec.Check() != nil || !git.IsObject(rec.Start)) {
			t.Errorf("accepted %+v", rec)
		}
	})
}
