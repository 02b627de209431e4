package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The counted size is the bytes of all paths as git lists them.
func TestPathBytes(t *testing.T) {
	t.Parallel()
	p := &pack{}
	blob := p.object(typeBlob, "x")
	tree := p.tree("40000", p.tree("100644", blob, "one", "three"), "a", "bb") // a/one, a/three, bb/one, bb/three
	p.tree("40000", tree, "ccc")
	caps := Caps{}.WithDefaults()
	s := &scanner{in: bufio.NewReader(bytes.NewReader(p.bytes())), caps: caps}
	c, err := s.scan()
	if err != nil {
		t.Fatal(err)
	}
	for most, fits := range map[int64]bool{26 + 4*4: true, 26 + 4*4 - 1: false} {
		caps.PathBytes = most
		for _, tree := range c.trees {
			tree.depth = 0
		}
		if err := (pathCounter{trees: c.trees, caps: caps, idSize: 20}).countAll(); fits && err != nil || !fits && !errors.Is(err, ErrTooBig) {
			t.Errorf("%d bytes: error %v", most, err)
		}
	}
}

// The memory for folders is limited to their own bytes, and IDs of missing objects are limited by the cap.
func TestFoldersHeld(t *testing.T) {
	t.Parallel()
	p := &pack{}
	var content strings.Builder
	const count = 1000
	for i := range count {
		fmt.Fprintf(&content, "40000 %04d\x00%020d", i, i)
	}
	p.object(typeTree, content.String())
	s := &scanner{in: bufio.NewReader(bytes.NewReader(p.bytes())), caps: Caps{}.WithDefaults()}
	c, err := s.scan()
	if err != nil {
		t.Fatal(err)
	}
	g := givenTrees{known: c.trees, requested: map[string]bool{}, caps: Caps{Objects: 10}, idSize: 20}
	for _, tree := range c.trees {
		if len(tree.folders) != count*21 {
			t.Errorf("%d bytes of %d are kept", len(tree.folders), content.Len())
		}
		if err := g.addSubfolders(tree); !errors.Is(err, ErrTooBig) || len(g.requested) != 10 || len(g.pending) != 10 {
			t.Errorf("%d are named, error %v", len(g.requested), err)
		}
	}
}

// Messages of commits are held in memory, by ralph and by git.
func TestCommitLimits(t *testing.T) {
	t.Parallel()
	header := "tree " + strings.Repeat("1", 40) + "\n\n"
	tests := map[string]struct {
		count, size int
		fits        bool
	}{
		"a long message":      {1, 1<<20 - len(header), true},
		"too long a message":  {1, 1<<20 - len(header) + 1, false},
		"messages at a limit": {64, 1<<20 - len(header), true},
		"too many messages":   {65, 1<<20 - len(header), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pack{}
			content := header + strings.Repeat("x", test.size)
			for range test.count {
				p.object(typeCommit, content)
			}
			s := &scanner{in: bufio.NewReader(bytes.NewReader(p.bytes())), caps: Caps{}.WithDefaults()}
			_, err := s.scan()
			if test.fits && err != nil || !test.fits && !errors.Is(err, ErrTooBig) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A pack above the cap, which a full disk lowers, is too big wherever the cap cuts it.
func TestPackSize(t *testing.T) {
	t.Parallel()
	objects, tip := given(t)
	p := &pack{}
	p.object(typeBlob, "x")
	sent := "ralph 1\ntip " + tip + "\npack\n" + string(p.bytes())
	for size := int64(1); size <= int64(len(p.bytes())); size++ {
		o := Options{Dir: filepath.Join(t.TempDir(), "q"), Given: []string{objects}, Known: []string{tip}, Caps: Caps{Size: size}}
		q, err := Read(t.Context(), strings.NewReader(sent), o)
		if fits := size == int64(len(p.bytes())); fits && err != nil || !fits && !errors.Is(err, ErrTooBig) {
			t.Errorf("a cap of %d bytes: error %v", size, err)
		}
		if q != nil {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
