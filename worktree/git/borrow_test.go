package git

import (
	"os"
	"path/filepath"
	"testing"
)

// Objects can be borrowed from a folder with any name.
func TestBorrowing(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, name := range []string{"plain", `a:b`, `"quoted"`, "two\nlines", "back\\slash:", "soft\u00adhyphen:"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		blob, err := Store{Dir: dir}.Write("blob", []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.WithAlternate(dir).Output(t.Context(), "cat-file", "blob", blob); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
