package checks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
)

// A change that is too large to be read is listed by names, up to a limit, and counts as a change of the checks.
func TestUnread(t *testing.T) {
	t.Parallel()
	files := []diff.File{{Path: "main.go", New: diff.Entry{ID: "1"}}, {Path: "plain.txt", OldPath: "Makefile", Old: diff.Entry{ID: "1"}, New: diff.Entry{ID: "1"}}}
	for i := range 2 * maxListed {
		files = append(files, diff.File{Path: fmt.Sprintf("x%d_test.go", i), New: diff.Entry{ID: "1"}})
	}
	out := &journal.Watch{}
	undo := compareNames(files, nil, out)
	if len(out.Files) != maxListed || out.UnlistedFiles != maxListed+1 || len(undo) != 2*maxListed+2 || !out.Changed() {
		t.Errorf("%d files, %d more, %d edits", len(out.Files), out.UnlistedFiles, len(undo))
	}
	if out.Files[0].Path != "plain.txt" || out.Files[0].OldPath != "Makefile" || out.Files[0].Test {
		t.Errorf("%+v", out.Files[0])
	}
}

// A word is found wherever the output is cut, and however much follows it.
func TestFinder(t *testing.T) {
	t.Parallel()
	const text = "FAIL: TestXAbcDefghi (0.00s)"
	for cut := range len(text) {
		f := &finder{want: []byte("abcdefghi")}
		for _, piece := range []string{text[:cut], text[cut:], strings.Repeat("x", 10<<10)} {
			if n, err := f.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if !f.found || len(f.last) != len(f.want)-1 {
			t.Errorf("cut at %d: %v, %d bytes kept", cut, f.found, len(f.last))
		}
	}
	f := &finder{want: []byte("abc")}
	for _, piece := range []string{"ab", "", "xab", "a"} {
		_, _ = f.Write([]byte(piece))
	}
	if f.found {
		t.Error("found what is not there")
	}
}
