package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	t.Parallel()
	s, repo := Store{Dir: filepath.Join(t.TempDir(), "state", "trust")}, t.TempDir()
	want := Values{Of("before", `["make deps"]`, `["make deps"]`), Of("sandbox", "none", "none")}
	if got, err := s.Trusted(repo); got != nil || err != nil {
		t.Errorf("before anything: %v, %v", got, err)
	}
	for range 2 { // the second replaces the first
		if err := s.Trust(repo, want); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(repo, link); err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{repo, link} {
		got, err := s.Trusted(top)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", top, err, diff)
		}
	}
	if got, err := s.Trusted(t.TempDir()); got != nil || err != nil {
		t.Errorf("another repository: %v, %v", got, err)
	}
	files, err := os.ReadDir(s.Dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("left behind: %v, %v", files, err)
	}
	for path, mode := range map[string]os.FileMode{s.Dir: 0o700, filepath.Join(s.Dir, files[0].Name()): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if had, err := s.Forget(link); !had || err != nil {
		t.Errorf("forget: %v, %v", had, err)
	}
	if had, err := s.Forget(repo); had || err != nil {
		t.Errorf("forget again: %v, %v", had, err)
	}
	if got, err := s.Trusted(repo); got != nil || err != nil {
		t.Errorf("forgotten: %v, %v", got, err)
	}
}

// The error for an unusable home, such as a read-only one, contains a hint.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store := Store{Dir: filepath.Join(file, "trust")}
	if err := store.Trust(t.TempDir(), Values{}); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Error(err)
	}
	if _, err := store.Trusted(t.TempDir()); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Error(err)
	}
}

// TestBrokenRecord checks that a broken record counts as an error, with the fix in one line.
func TestBrokenRecord(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "half": `{"repository": "/a", "val`, "moved here": `{"repository": "/a", "values": []}`, "list": "[]",
	} {
		s, repo := Store{Dir: t.TempDir()}, t.TempDir()
		if err := s.Trust(repo, Values{Of("sandbox", "none", "none")}); err != nil {
			t.Fatal(err)
		}
		_, file, err := s.place(repo)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Trusted(repo)
		if got != nil || err == nil || !strings.HasSuffix(err.Error(), "with: ralph trust --revoke") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if _, err := s.Forget(repo); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	a, b := Of("a", "x", "x"), Of("b", "x", "x")
	seen := map[string]Values{}
	for _, v := range []Values{{}, {a}, {b}, {a, b}, {Of("a", "x", "y")}, {Of("a", "x", "x\nb=x")}} {
		if other, twice := seen[v.Hash()]; twice {
			t.Errorf("%v and %v have one hash", v, other)
		}
		seen[v.Hash()] = v
	}
	if (Values{a}).Hash() != (Values{Of("a", "another spelling", "x")}).Hash() {
		t.Error("what is shown counts")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	before := Values{Of("a", "1", "1"), Of("b", "1", "1"), Of("c", "1", "1")}
	after := Values{Of("b", "1", "1"), Of("c", "2", "2"), Of("d", "1", "1")}
	var got []string
	for _, c := range Compare(before, after) {
		state := "changed"
		switch {
		case c.Same():
			state = "same"
		case c.Before == nil:
			state = "new"
		case c.After == nil:
			state = "gone"
		}
		got = append(got, c.Key()+" "+state)
	}
	if diff := cmp.Diff([]string{"a gone", "b same", "c changed", "d new"}, got); diff != "" {
		t.Error(diff)
	}
}
