package importer

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestCommitLimits: the messages of commits are held in memory, by ralph and by git.
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
